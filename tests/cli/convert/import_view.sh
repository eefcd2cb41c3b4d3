#!/usr/bin/env bash
# Lines that a client appended to a view are imported into the session
# of the view.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

made=${AGENTWAL_SOURCE:?}/tests/golden/model
out=$work/out
mkdir "$work/in"
cp "$made/claude.jsonl" "$work/in/claude.jsonl"
agentwal --store "$store" init
code 0 agentwal --store "$store" import --json "$work/in"
session=$(field sessionId "$work/stdout")
code 0 agentwal --store "$store" export --json --dialect claude --session "$session" "$out"
file=$(field path "$work/stdout")
lines=$(wc -l <"$file")

# An unchanged view adds no session.
code 0 agentwal --store "$store" import --json "$out"
json 'len(rows) == 1 and rows[0]["appended"] == 0' "$work/stdout"
json "rows[0]['lines'] == rows[0]['duplicates'] == $lines" "$work/stdout"
same "$session" "$(field sessionId "$work/stdout")" "session of a view"

# The client appends after the last row.
last=$(python3 -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print([row["uuid"] for row in rows if row.get("uuid")][-1])' "$file")
row() { # id, parent, text
    printf '{"parentUuid":"%s","isSidechain":false,"type":"user",' "$2"
    printf '"gitBranch":"main","message":{"role":"user","content":"%s"},' "$3"
    printf '"uuid":"%s","timestamp":"2026-05-01T10:00:00.000Z"}\n' "$1"
}
one=0f0f0f0f-0000-4000-8000-000000000001
two=0f0f0f0f-0000-4000-8000-000000000002
{
    row "$one" "$last" "of the client"
    row "$two" "$one" "and more of it"
    printf '{"unfinished":'
} >>"$file"
code 0 agentwal --store "$store" import --json "$file"
json 'rows[0]["appended"] == 2 and rows[0]["damaged"] == []' "$work/stdout"
json "rows[0]['duplicates'] == $lines" "$work/stdout"
same "$session" "$(field sessionId "$work/stdout")" "session of a view"
printf 'true}\nno JSON\n' >>"$file"
code 0 agentwal --store "$store" import --json "$out"
json 'len(rows) == 1 and rows[0]["appended"] == 2' "$work/stdout"
json "rows[0]['damaged'] == [{'line': $lines + 4,
    'offset': $(($(wc -c <"$file") - 8)), 'reason': 'is not JSON'}]" \
    "$work/stdout"
code 0 agentwal --store "$store" import --json "$out"
json 'rows[0]["appended"] == 0' "$work/stdout"
same 1 "$(agentwal --store "$store" list --json | wc -l)" "sessions"

# The view has all rows; the source file is exported unchanged, and importing it
# again adds nothing.
code 0 agentwal --store "$store" export --dialect claude --session "$session" "$out"
grep -q "and more of it" "$file" || fail "the client's row is missing"
code 0 agentwal --store "$store" export --dialect source "$work/source"
diff -r "$work/in" "$work/source" || fail "the source differs from the import"
code 0 agentwal --store "$store" import --json "$work/in"
json 'rows[0]["appended"] == 0' "$work/stdout"
row 0f0f0f0f-0000-4000-8000-000000000003 "$last" "in the source" \
    >>"$work/in/claude.jsonl"
code 0 agentwal --store "$store" import --json "$work/in"
json 'rows[0]["appended"] == 1' "$work/stdout"
same "$session" "$(field sessionId "$work/stdout")" "session of the source"
code 0 agentwal --store "$store" export --dialect source "$work/source"
diff -r "$work/in" "$work/source" || fail "the source differs from the import"
code 0 walcheck "$store"

# A view with changed rows is imported as a new session.
code 0 agentwal --store "$store" export --dialect claude --session "$session" "$out"
sed -i 's/and more of it/and less of it/' "$file"
code 0 agentwal --store "$store" import --json "$file"
grep -q "not only appended to" "$work/stderr" || fail "the reason is not reported"
json "rows[0]['sessionId'] != '$session'" "$work/stdout"
code 0 walcheck "$store"
