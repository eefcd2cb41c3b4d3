#!/usr/bin/env bash
# The table of README.md, section "Clients", is what `walconv dialects` says.
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

walconv dialects --json | python3 -c '
import json, sys

rows = [json.loads(line) for line in sys.stdin]
rows = [row for row in rows if row["export"] and row["carries"]]
print("| carried |", *(" %s |" % row["name"] for row in rows), sep="")
print("|---|", *(":-:|" for row in rows), sep="")
for what in rows[0]["carries"]:
    print("| %s |" % what,
          *(" yes |" if row["carries"][what] else " |" for row in rows),
          sep="")
' >"$work/said"
awk '/^## /{ in_section = ($0 == "## Clients") } in_section' \
    "$AGENTWAL_SOURCE/README.md" >"$work/section"
awk '/^\| carried /{ in_table = 1 } /^$/{ in_table = 0 } in_table' \
    "$work/section" >"$work/shown"
[ "$(wc -l <"$work/said")" -gt 20 ] || fail "walconv says nothing"
diff "$work/shown" "$work/said" >&2 || fail "not what README.md shows"
