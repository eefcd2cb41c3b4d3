#!/usr/bin/env bash
# agentwal remote handoff while an agent appends: what was acknowledged is in
# the remote. Also where another process ships or pushes the store; and a handoff
# that fails leaves the session here.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"
agent=
shipper=
trap 'kill -9 $agent $shipper 2>/dev/null || true; rm -rf "$work"' EXIT

# on MACHINE COMMAND...: with the store of that machine.
on() {
    local machine=$1
    shift
    agentwal --store "$machine" "$@"
}

# Starts an agent that appends until it is refused, and waits for 20 entries.
start_agent() {
    : >acked
    while printf '{"type":"note","payload":{"text":"x"}}\n'; do
        :
    done 2>/dev/null | agentwal --store laptop append --each --json s >acked 2>refused &
    agent=$!
    until [ "$(wc -l <acked)" -ge 20 ]; do
        sleep 0.02
        kill -0 "$agent"
    done
}

# stop_agent CODE
stop_agent() {
    local got=0
    wait "$agent" || got=$?
    same "$1" "$got" "the agent's exit code: $(cat refused)"
    grep -q 'has moved to' refused || fail "$(cat refused)"
}

# has_all DESK: everything that the agent was acknowledged is there.
has_all() {
    on "$1" cat s --all --json | sed 's/^{"id":"\([^"]*\)".*/\1/' | sort >there
    sed 's/.*"lastAppendedEntryId":"\([^"]*\)".*/\1/' acked | sort >sent
    same '' "$(comm -23 sent there | head -3)" "acknowledged, and not at $1"
}

on laptop create --id s >/dev/null 2>&1
on laptop remote add "$url" >/dev/null
on laptop remote push >/dev/null
laptop=$(on laptop stats --json | field uuid)

for round in 1 2 3; do
    start_agent
    code 0 on laptop remote handoff s
    stop_agent 3
    code 0 on "desk.$round" resume --remote "$url" --store-id "$laptop" s
    has_all "desk.$round"
    code 0 on laptop resume --take-back s
done

# A process that ships: the handoff waits until it has the session.
agentwal --store laptop remote push --follow >shipping 2>failures &
shipper=$!
until grep -qs 'shipping to' shipping; do
    sleep 0.02
    kill -0 "$shipper"
done
start_agent
code 0 on laptop remote handoff s
stop_agent 3
code 0 on ship.desk resume --remote "$url" --store-id "$laptop" s
has_all ship.desk
kill "$shipper"
wait "$shipper" || fail "$? $(cat failures)"
code 0 on laptop resume --take-back s

# A process that pushes and is stopped: the handoff pushes after it has ended.
python3 -c 'import fcntl, os, sys, time
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(2)' laptop >locked &
until grep -qs locked locked; do
    sleep 0.02
done
code 0 on laptop remote handoff s
code 0 on laptop remote handoff s
code 0 on laptop resume --take-back s

# Another writer has the store: nothing is given away, and the session stays.
code 0 agentwal remote pull --take-over --store-id "$laptop" "$url" other
code 1 on laptop remote handoff s
grep -q 'another writer' stderr || fail "$(cat stderr)"
grep -q 'appends to it are permitted here' stderr || fail "$(cat stderr)"
printf '{"type":"note","payload":{}}\n' | code 0 on laptop append s
