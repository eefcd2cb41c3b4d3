#!/usr/bin/env bash
# agentwal retain and pin: what rules choose, what stays in any case, and what
# is refused.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/lib/cli.sh
. "$tests/lib/cli.sh"
cd "$work"
mkfifo fifo
export AGENTWAL_STORE=$store

# session ID DAYS [PROJECT]: last active that many days ago.
session() {
    local time
    time=$(date -u -d "$2 days ago" +%Y-%m-%dT%H:%M:%SZ)
    agentwal create --id "$1" --project "${3:-p}" 2>/dev/null >/dev/null
    printf '{"type":"message","timestamp":"%s","payload":{"role":"user","content":"%s"}}\n' \
        "$time" "$1" | agentwal append "$1" >/dev/null
}

# chosen IDS OPTION...: a run without --apply chooses just these, newest first.
chosen() {
    local ids=$1
    shift
    agentwal retain --json "$@" >plan
    same "$ids" "$(python3 -ISc '
import json
print(" ".join(s["sessionId"] for s in json.load(open("plan"))["sessions"]))')" \
        "retain $*"
}

listed() {
    agentwal list --json | python3 -ISc '
import json, sys
print(" ".join(json.loads(line)["sessionId"] for line in sys.stdin))'
}

# Bad input, and no store is made.
code 3 agentwal retain --older-than 1d
[ ! -e "$store" ] || fail "retain created a store"
session new 1
session mid 50
session old 100
session other 200 q
code 2 agentwal retain
grep -q 'needs a rule: --older-than, --keep-last or --max-bytes' stderr ||
    fail "no rule: $(cat stderr)"
code 2 agentwal retain --project p --apply
for age in d x90d 90 90m -1d 90dd 99999999999d 99999999999999999999d; do
    code 2 agentwal retain --older-than "$age"
    grep -q 'is not an age such as 12h, 90d, 8w or 1y' stderr || fail "age '$age'"
done
code 2 agentwal retain --older-than ''
code 2 agentwal retain --keep-last -1
code 2 agentwal retain --keep-last many
code 2 agentwal retain --max-bytes 1X
code 2 agentwal retain --older-than 1d more
code 2 agentwal retain --archive '' --older-than 1d

# Each rule alone, and together.
chosen "old other" --older-than 90d
chosen "other" --older-than 20w
chosen "" --older-than 1y
chosen "mid old other" --older-than 1200h
chosen "mid old other" --keep-last 1
chosen "" --keep-last 9
chosen "other" --older-than 90d --keep-last 3
bytes=$(agentwal show mid --json | field bytes)
chosen "old other" --max-bytes $((bytes * 5 / 2))
chosen "" --max-bytes 1MB
chosen "mid old other" --max-bytes 0 --keep-last 1
chosen "old" --older-than 90d --project p
agentwal retain --older-than 90d --json | json 'not rows[0]["applied"]
    and rows[0]["moved"] == 0 and rows[0]["staying"] == 2
    and rows[0]["bytes"] > 0
    and rows[0]["sessions"][0]["rule"] == "older-than"
    and rows[0]["sessions"][0]["title"] == "old"'
same "new mid old other" "$(listed)" "after runs without --apply"
code 0 agentwal retain --older-than 90d
grep -q '^would move 2 of 4 sessions, ' stdout || fail "for people: $(cat stdout)"
grep -q -- '--apply' stdout || fail "how to apply: $(cat stdout)"

# What would leave nothing is refused.
for rule in "--older-than 1h" "--keep-last 0" "--max-bytes 0" \
    "--older-than 1h --project q"; do
    # shellcheck disable=SC2086
    code 1 agentwal retain $rule --apply
    grep -q 'the rules leave none of .*; --all permits that' stderr ||
        fail "$rule: $(cat stderr)"
done
same "new mid old other" "$(listed)" "after refusals"
chosen "new mid old other" --older-than 1h --all

# A pinned session stays, a claimed one, and the ancestors of what stays.
code 0 agentwal pin --json old
json 'rows == [{"sessionId": "old", "pinned": True}]' stdout
agentwal meta old | json 'rows == [{"pinned": True}]'
chosen "other" --older-than 90d
agentwal retain --older-than 90d --json | json 'rows[0]["pinned"] == 1'
code 0 agentwal retain --older-than 90d
grep -q '^kept: 1 pinned$' stdout || fail "pinned: $(cat stdout)"
chosen "mid other" --max-bytes $((bytes * 3))
agentwal pin --off old >/dev/null
agentwal meta old | json 'rows == [{}]'
code 1 agentwal pin nothing
code 2 agentwal pin
agentwal fork old --id fork >/dev/null
printf '{"type":"message","payload":{}}\n' | agentwal append fork >/dev/null
chosen "other" --older-than 90d
agentwal retain --older-than 90d --json | json 'rows[0]["ancestors"] == 1'
code 0 agentwal retain --older-than 90d
grep -q '1 with forks or children that are kept$' stdout || fail "$(cat stdout)"
# A fork in the trash passes it on: what was forked from it stays.
agentwal fork fork --id grandchild >/dev/null
printf '{"type":"message","payload":{}}\n' | agentwal append grandchild >/dev/null
agentwal delete fork >/dev/null
chosen "other" --older-than 90d
agentwal delete grandchild >/dev/null
chosen "old other" --older-than 90d

# One that a process has claimed: a rewind and an import claim; here a program.
(
    # shellcheck source=tests/lib/asan.sh
    . "$tests/lib/asan.sh"
    exec python3 "$tests/lib/pty/claim.py" "$AGENTWAL_BUILD/lib/libagentwal.so" "$store" old
) <fifo >claimed &
claimer=$!
exec 9>fifo
for _ in $(seq 1 100); do
    ! grep -q claimed claimed || break
    sleep 0.1
done
chosen "other" --older-than 90d
agentwal retain --older-than 90d --json | json 'rows[0]["claimed"] == 1'
exec 9>&-
wait "$claimer"
chosen "old other" --older-than 90d

# Moving: the sessions are in the trash, and can be taken back.
code 0 agentwal retain --older-than 90d --apply
grep -q '^moved 2 of 4 sessions, ' stdout || fail "moved: $(cat stdout)"
undo=$(sed -n 's/^undo: //p' stdout)
same "new mid" "$(listed)" "after --apply"
code 0 bash -c "$undo"
same "new mid old other" "$(listed)" "after the undo of all"
agentwal delete other >/dev/null
agentwal retain --older-than 90d --apply --json | json 'rows[0]["applied"]
    and rows[0]["moved"] == 1 and rows[0]["staying"] == 2'
code 0 agentwal retain --older-than 90d --apply
grep -q '^moved 0 of 2 sessions, ' stdout || fail "again: $(cat stdout)"

# Two at once: each session is moved once, and neither run fails.
for i in $(seq 1 30); do
    session "s$i" 300
done
agentwal retain --older-than 90d --apply --json >one 2>one.err &
first=$!
agentwal retain --older-than 90d --apply --json >two 2>two.err &
second=$!
wait "$first" || fail "the first of two: $(cat one.err)"
wait "$second" || fail "the second of two: $(cat two.err)"
same "new mid" "$(listed)" "after two at once"
cat one two | json 'rows[0]["moved"] + rows[1]["moved"] == 30
    and all(s.get("skipped") in (None, "a process has claimed it",
                                 "another process has moved or deleted it")
            for row in rows for s in row["sessions"])'
code 0 agentwal check

# The archive has the sessions before they are moved; restore takes them back,
# from the trash or when they were erased.
session far 400
session farther 500
before=$(agentwal cat far)
printf 'text\n' >no-store
code 3 agentwal retain --older-than 1y --archive no-store --apply
same "new mid far farther" "$(listed)" "after an archive that is no store"
code 2 agentwal retain --older-than 1y --archive "$store" --apply
same "new mid far farther" "$(listed)" "after an archive that is the store"
agentwal --store taken create --id farther 2>/dev/null >/dev/null
printf '{"type":"message","payload":{"a":1}}\n' |
    agentwal --store taken append farther >/dev/null
code 0 agentwal retain --older-than 1y --archive taken --apply
grep -q '^moved 1 of 4 sessions' stdout || fail "refused: $(cat stdout)"
grep -q '^agentwal: farther: ' stderr || fail "who is refused: $(cat stderr)"
same "new mid farther" "$(listed)" "after an archive that refuses one"
code 0 agentwal retain --older-than 1y --archive archive
[ ! -e archive ] || fail "an archive without --apply"
code 0 agentwal retain --older-than 1y --archive archive --apply
same "new mid" "$(listed)" "after --archive"
same farther "$(agentwal --store archive list --json | field sessionId)" archive
code 0 agentwal restore archive farther
same "new mid farther" "$(listed)" "restored from the trash"
code 0 agentwal restore taken far
code 0 agentwal retain --older-than 1y --archive archive --apply
code 0 agentwal gc --erase
code 1 agentwal undelete far
code 0 agentwal restore archive far
same "$before" "$(agentwal cat far)" "restored after gc --erase"
code 1 agentwal restore archive nothing
code 2 agentwal restore archive
code 3 agentwal restore no-store far
agentwal delete far >/dev/null

# Read-only: it shows, and does not move.
if [ "$(id -u)" != 0 ]; then
    chmod -R a-w "$store"
    code 0 agentwal retain --older-than 30d
    code 3 agentwal retain --older-than 30d --apply
    grep -Eq 'read-only|permission' stderr || fail "read-only: $(cat stderr)"
    chmod -R u+w "$store"
fi
same "new mid" "$(listed)" "after a read-only store"

# An empty store.
agentwal --store empty init
code 0 agentwal --store empty retain --older-than 1d --apply
