#!/usr/bin/env bash
# agentwal remote: pushes and pulls that are killed at any moment, while the store
# is written to and compacted. What a push acknowledged is in each later pull,
# every replica is sound, and in the end the copy is the store.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"
export AGENTWAL_STORE=$work/laptop
RANDOM=${AGENTWAL_SEED:-22}
printf 'AGENTWAL_SEED=%s\n' "${AGENTWAL_SEED:-22}"

# killed COMMAND...: it is killed after up to 40 ms.
killed() {
    local pid

    "$@" >/dev/null 2>&1 &
    pid=$!
    sleep "0.0$(printf '%02d' $((RANDOM % 40)))"
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}

agentwal create --id one >/dev/null 2>&1
agentwal remote add "$url" >/dev/null
agentwal remote push >/dev/null
acknowledged=0
for i in $(seq 1 "${AGENTWAL_LONG:+3}30"); do
    head -c 3000 /dev/urandom | base64 -w 0 >text
    printf '{"type":"note","payload":{"number":%s,"text":"%s"}}\n' "$i" "$(cat text)" |
        agentwal append one >/dev/null
    killed agentwal remote push
    if [ $((i % 5)) -eq 0 ]; then
        acknowledged=$(agentwal remote push --json | field lastSequence)
    fi
    if [ $((i % 3)) -eq 1 ]; then
        agentwal gc --rate 0 >/dev/null
    fi
    killed agentwal remote pull "$url" copy
    if [ $((i % 4)) -eq 1 ]; then
        killed agentwal remote compact --now
    fi
    if [ $((i % 3)) -eq 0 ]; then
        code 0 agentwal remote pull "$url" copy --json
        [ "$(field lastSequence stdout)" -ge "$acknowledged" ] ||
            fail "the copy ends before number $acknowledged: $(cat stdout)"
        code 0 agentwal --store copy check
    fi
done
agentwal remote push >/dev/null
code 0 agentwal remote compact --now
code 0 agentwal check --remote "$url"
code 0 agentwal remote pull "$url" copy
code 0 agentwal remote pull "$url" new
for store in copy new; do
    same "$(agentwal cat one --all)" "$(agentwal --store "$store" cat one --all)" \
        "the entries of $store"
    code 0 agentwal --store "$store" check
done
