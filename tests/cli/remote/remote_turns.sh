#!/usr/bin/env bash
# Two machines work on a store by turns: agentwal remote pull --take-over goes on
# with the store that wrote before, without pulling what it has; one that has
# went on by itself is refused and stays as it is; a kill at any time.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"

# say MACHINE NUMBER
say() {
    printf '{"type":"note","payload":{"number":%d}}\n' "$2" |
        agentwal --store "$1" append s >/dev/null
}

# has MACHINE NUMBER: its store has the notes up to that number, in order.
has() {
    same "$(seq "$2")" "$(agentwal --store "$1" cat s --all --json |
        sed 's/.*"number":\([0-9]*\).*/\1/')" "the notes of $1"
    code 0 agentwal --store "$1" check
}

# An epoch without a part: nothing is taken over, and nobody is fenced.
agentwal --store laptop create --id s >/dev/null 2>&1
agentwal --store laptop remote add "$url" >/dev/null
agentwal --store laptop remote push >/dev/null
mkdir empty
cp -r bucket/* empty
rm -rf empty/*/part
code 1 agentwal remote pull --take-over "file://$work/empty" desk
grep -q 'has nothing of the store yet' stderr || fail "$(cat stderr)"
same 1 "$(find empty -path '*/epoch/*' -type f | wc -l)" "epochs"
rm -rf desk

# By turns; each pull is of what the other one added.
say laptop 1
agentwal --store laptop remote push >/dev/null
n=1
from=laptop
to=desk
for round in 1 2 3 4 5 6 7; do
    code 0 agentwal remote pull --take-over "$url" "$to"
    has "$to" "$n"
    n=$((n + 1))
    say "$to" "$n"
    if [ "$round" = 4 ]; then
        agentwal --store "$to" gc >/dev/null
    fi
    code 0 agentwal --store "$to" remote push
    code 1 agentwal --store "$from" remote push
    grep -q 'pull --take-over' stderr || fail "$(cat stderr)"
    read -r from to <<<"$to $from"
done

# It is open elsewhere: that process would go on to write to it.
mkfifo hold
agentwal --store "$to" append s <hold >/dev/null 2>&1 &
holder=$!
exec 9>hold
printf '\n' >&9
sleep 0.5
code 3 agentwal remote pull --take-over "$url" "$to"
grep -q 'has the store open' stderr || fail "$(cat stderr)"
exec 9>&-
wait "$holder" || true
code 0 agentwal remote pull --take-over "$url" "$to"
has "$to" "$n"

# Killed at any time: the next call goes on.
for i in $(seq 12); do
    read -r from to <<<"$to $from"
    n=$((n + 1))
    say "$from" "$n"
    code 0 agentwal --store "$from" remote push
    { timeout -s KILL "$(printf '0.%03d' $((i * 5)))" "$(command -v agentwal)" \
        remote pull --take-over "$url" "$to" || true; } >/dev/null 2>&1
    code 0 agentwal remote pull --take-over "$url" "$to"
    has "$to" "$n"
    say "$to" "$((n + 1))"
    n=$((n + 1))
    code 0 agentwal --store "$to" remote push
done

# Both went on: the store is refused, stays one, and is merged.
say "$from" 1000
code 1 agentwal remote pull --take-over "$url" "$from"
grep -q 'went on by itself' stderr || fail "$(cat stderr)"
say "$from" 1001
code 1 agentwal --store "$from" remote push --take-over
code 0 agentwal --store "$to" merge --keep-both "$from"
agentwal --store "$to" list | grep -q 's@' || fail "$(agentwal --store "$to" list)"
