#!/usr/bin/env bash
# Every file under AGENTWAL_FIXTURES, when that is set, and the example of the
# project have the same bytes after import and export.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd -P)
in=${AGENTWAL_FIXTURES:-$root/tools/example}

agentwal --store "$store" init
code 0 agentwal --store "$store" import --json --all-files "$in"
cp "$work/stdout" "$work/first"
# A file is a source by itself, or one of the documents of a tree.
files=$(find "$in" -type f | wc -l)
json "sum(r.get('documents', 1) for r in rows) == $files" "$work/first"
json 'sum(r["appended"] for r in rows) > 0' "$work/first"
json 'all(r["duplicates"] == 0 and r["lines"] == r["documents"]
    and r["appended"] == r["changed"] for r in rows if "documents" in r)' \
    "$work/first"

code 0 agentwal --store "$store" import --json --all-files "$in"
json 'all(r["appended"] + r.get("changed", 0) == 0 for r in rows)' \
    "$work/stdout"
json 'all(r["duplicates"] == r["lines"] for r in rows if "documents" in r)' \
    "$work/stdout"

code 0 agentwal --store "$store" export --json --dialect source "$work/out"
json 'all(r["losses"] == [] for r in rows)' "$work/stdout"
diff -r "$in" "$work/out" || fail "the export differs from the import"

# Their entries are JSON, and every file has a live branch.
agentwal --store "$store" list --json >"$work/list"
json 'all(r["entries"] == 0 or r["head"] for r in rows)' "$work/list"
python3 -c '
import json, sys
for line in open(sys.argv[1]):
    print(json.loads(line)["sessionId"])' "$work/list" >"$work/ids"
while read -r id; do
    walcat --all "$store" -- "$id" | json 'len(rows) >= 0'
    walcat --text "$store" -- "$id" >/dev/null
    walcat --tree "$store" -- "$id" >/dev/null
done <"$work/ids"
