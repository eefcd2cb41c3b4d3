#!/usr/bin/env bash
# agentwal append --each sends a line again by its id when its outcome is unknown:
# a sync fails, and healing once. Where processes may not be traced nothing can
# be made to fail, and only the plain run is compared.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

lines() {
    printf '{"type":"note","payload":{"n":%d}}\n' 1 2
}
# fail_syncs WHICH: appends the lines while these syncs fail.
fail_syncs() {
    lines | strace -f -qq -o /dev/null -e trace=fdatasync \
        -e "inject=fdatasync:error=EIO:when=$1" \
        "$WALBIN/agentwal" append s --each --json
}

agentwal init
agentwal create --id s >/dev/null
same 2 "$(lines | agentwal append s --each --json | wc -l)" "result lines"
if strace -qq -o /dev/null true 2>/dev/null; then
    fail_syncs 1..2 >"$work/results"
    json 'len(rows) == 2 and rows[0]["duplicateCount"] == 1
          and rows[1]["appendedCount"] == 1' "$work/results"
    same 4 "$(walcat "$store" s | wc -l)" "entries, each once"

    # Without an end to the failures the reason is printed once.
    got=0
    fail_syncs 1+ >"$work/results" 2>"$work/stderr" || got=$?
    same 3 "$got" "exit code when every sync fails"
    same 1 "$(wc -l <"$work/stderr")" "lines of errors"
fi
code 0 walcheck "$store"
