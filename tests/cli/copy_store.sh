#!/usr/bin/env bash
# Copies of a store that a process has open, as docs/keeping.md says: cp is
# sound while no process writes, and a salvage at any time.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

agentwal init
agentwal create --id work >/dev/null
printf '{"type":"note","payload":{"text":"%s"}}\n' one two |
    agentwal append work >/dev/null

# entries N: lines that become N entries.
entries() {
    python3 -c '
for number in range(int(__import__("sys").argv[1])):
    print("{\"type\":\"note\",\"payload\":{\"text\":\"%s\"}}"
          % ("x" * (number % 3000)))' "$1"
}
mkfifo "$work/lines"
agentwal append work --each <"$work/lines" >"$work/acknowledged" &
writer=$!
exec 9>"$work/lines"
entries 50 >&9
until [ "$(wc -l <"$work/acknowledged")" -eq 50 ]; do
    [ -d "/proc/$writer" ] || fail "the writer ended"
    sleep 0.05
done
cp -r "$store" "$work/copy"
code 0 walcheck "$work/copy"
same 52 "$(walcat "$work/copy" work | wc -l)" "entries of the copy"
echo '{"type":"note","payload":{}}' | agentwal --store "$work/copy" append work >/dev/null
code 0 walcheck "$work/copy"

# The writer appends all the time.
entries 20000 >&9 2>/dev/null &
for round in 1 2 3; do
    before=$(wc -l <"$work/acknowledged")
    code 0 walcheck --salvage "$work/out$round" "$store"
    code 0 walcheck "$work/out$round"
    found=$(walcat "$work/out$round" work | wc -l)
    [ "$found" -ge $((before + 2)) ] ||
        fail "$found entries of at least $before and 2 are in the salvage"
done
kill "$writer" "$!"
wait 2>/dev/null || true
code 0 walcheck "$store"
