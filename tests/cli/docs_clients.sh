#!/usr/bin/env bash
# The tables of clients in docs/clients.md and README.md match the output of
# `agentwal dialects`, and the tests that it names exist.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

agentwal dialects --json >"$work/dialects"
"$AGENTWAL_SOURCE/docs/clients.py" --check "$AGENTWAL_SOURCE/docs/clients.md" \
    "$AGENTWAL_SOURCE/README.md" <"$work/dialects" || fail "a table is out of date"
python3 -c '
import glob, json, os, sys

for line in open(sys.argv[1]):
    for client in json.loads(line)["clients"]:
        for test in client["tests"]:
            if not glob.glob(os.path.join(sys.argv[2], "tests", test + ".*")):
                sys.exit("%s: no test %s" % (client["client"], test))
' "$work/dialects" "$AGENTWAL_SOURCE" || fail "the tests of a client"
