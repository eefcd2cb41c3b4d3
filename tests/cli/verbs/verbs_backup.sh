#!/usr/bin/env bash
# agentwal backup: what it prints, what it refuses, and copies of a store that
# four processes write to, while backups are killed.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store

# append SESSION TEXT: one message.
append() {
    printf '{"type":"note","payload":{"text":"%s"}}\n' "$2" |
        agentwal append "$1" >/dev/null
}

# sound COPY: it is, and can be read while it stays a backup.
sound() {
    code 0 agentwal --store "$1" check
}

# Bad input: no store is made, and no copy.
code 3 agentwal backup copy
grep -q 'agentwal init' stderr || fail "no advice for a missing store"
[ ! -e "$store" ] || fail "backup created a store"
code 2 agentwal backup
code 2 agentwal backup one two
code 2 agentwal backup --nothing copy
agentwal create --id one >/dev/null 2>&1
code 2 agentwal backup ''
code 2 agentwal backup "$store"
grep -q 'inside the store' stderr || fail "no reason: $(cat stderr)"
code 2 agentwal backup "$store/log/copy"
mkdir other && touch other/file
code 1 agentwal backup other
grep -q 'other files' stderr || fail "no reason: $(cat stderr)"
same file "$(ls other)" "files of another directory"
agentwal --store another create --id one >/dev/null 2>&1
code 1 agentwal backup another
code 1 agentwal backup another --json
json 'rows[0]["error"]["exitCode"] == 1' stderr

# All, nothing, and what is new.
append one first
agentwal backup copy --json >result
json 'rows[0]["path"] == "copy" and rows[0]["segments"] == rows[0]["copied"] == 1
    and rows[0]["bytes"] > 0 and rows[0]["removed"] == 0
    and rows[0]["lastSequence"] == 2' result
code 0 agentwal backup copy
grep -q '^nothing new: the copy has all 1 segment$' stdout || fail "again"
append one second
code 0 agentwal backup copy/
grep -Eq '^copied 1 of 1 segment: wrote [0-9.]+ kB$' stdout || fail "new"
sound copy
same "$(agentwal cat one)" "$(agentwal --store copy cat one)" "the copy"
code 0 agentwal gc --rate 0
code 0 agentwal backup copy
sound copy
append one third
agentwal --store copy backup second >/dev/null
agentwal backup copy >/dev/null
agentwal --store copy backup second >/dev/null
sound second
same "$(agentwal cat one)" "$(agentwal --store second cat one)" "the second copy"

# A store that may only be read.
if [ "$(id -u)" != 0 ]; then
    chmod -R a-w "$store"
    code 0 agentwal backup third
    chmod -R u+w "$store"
    sound third
fi

# Restored by copying it back; what was written to is refused.
rm -r "$store"
cp -r copy "$store"
append one fourth
code 0 agentwal backup copy
sound copy
agentwal --store copy append one <<<'{"type":"note","payload":{}}' >/dev/null
code 1 agentwal backup copy
grep -q 'it was written to' stderr || fail "no reason: $(cat stderr)"

# Four processes append; each copy is sound, and killed backups leave one.
entries() {
    python3 -ISc '
import sys, time
for number in range(100000):
    time.sleep(0.005)
    print("{\"type\":\"note\",\"payload\":{\"text\":\"%s\"}}"
          % ("x" * (number * 7919 % 9000)), flush=True)
'
}
writers=()
for number in 1 2 3 4; do
    agentwal create --id "writer$number" >/dev/null
    entries 2>/dev/null | agentwal append "writer$number" --each >/dev/null 2>&1 &
    writers+=("$!")
done
for round in $(seq 12); do
    if [ $((round % 3)) = 0 ]; then
        agentwal backup live >/dev/null 2>&1 &
        killed=$!
        sleep "0.0$((round % 4))"
        kill -9 "$killed" 2>/dev/null || true
        wait "$killed" 2>/dev/null || true
    else
        code 0 agentwal backup live
    fi
    sound live
    if [ $((round % 5)) = 0 ]; then
        agentwal gc --rate 0 >/dev/null
    fi
done
kill "${writers[@]}" 2>/dev/null || true
wait || true
code 0 agentwal backup live
sound live
for number in 1 2 3 4; do
    same "$(agentwal cat "writer$number" --json | sha256sum)" \
        "$(agentwal --store live cat "writer$number" --json | sha256sum)" \
        "what writer $number has written"
done
