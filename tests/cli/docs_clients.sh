#!/usr/bin/env bash
# The table of docs/clients.md matches the output of `agentwal dialects`.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

agentwal dialects --json | python3 -c '
import json, sys

rows = [json.loads(line) for line in sys.stdin]
rows = [row for row in rows if row["export"] and row["carries"]]
print("| carried |", *(" %s |" % row["name"] for row in rows), sep="")
print("|---|", *(":-:|" for row in rows), sep="")
for what in rows[0]["carries"]:
    print("| %s |" % what,
          *(" yes |" if row["carries"][what] else " |" for row in rows),
          sep="")
' >"$work/printed"
awk '/^\| carried /{ in_table = 1 } /^$/{ in_table = 0 } in_table' \
    "$AGENTWAL_SOURCE/docs/clients.md" >"$work/shown"
[ "$(wc -l <"$work/printed")" -gt 20 ] || fail "agentwal prints no table"
diff "$work/shown" "$work/printed" >&2 || fail "docs/clients.md is out of date"
