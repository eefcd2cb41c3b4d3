#!/usr/bin/env bash
# agentwal remote push --follow, and appends that wait for it: what was
# acknowledged as cluster is in the remote; without a process that ships nothing
# is appended; a killed one, a remote that fails, another writer.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"
export AGENTWAL_STORE=$work/laptop
shipper=
trap 'kill -9 "$shipper" 2>/dev/null || true; rm -rf "$work"' EXIT

# Appends an entry with the number; further arguments are options.
append() {
    local number=$1
    shift
    printf '{"type":"note","payload":{"number":%s}}\n' "$number" |
        agentwal append one "$@"
}

# Starts to ship, and waits until it does.
ship() {
    rm -f shipping
    agentwal remote push --follow "$@" >shipping 2>failures &
    shipper=$!
    until grep -qs "shipping to" shipping; do
        sleep 0.02
        kill -0 "$shipper"
    done
}

agentwal create --id one >/dev/null 2>&1
agentwal remote add "$url" >/dev/null

# Nothing ships.
code 3 append 1 --durability cluster
grep -q 'no process ships the store' stderr || fail "$(cat stderr)"
same 0 "$(agentwal cat one --all | wc -l)" "entries"

# It is acknowledged, and in the remote at once.
ship
for i in 1 2 3; do
    code 0 append "$i" --durability cluster
    agentwal remote pull "$url" copy >/dev/null
    same "$i" "$(agentwal --store copy cat one --all | wc -l)" "entries there"
done
# What others append comes too.
append 4 >/dev/null
code 0 append 5 --durability cluster
agentwal remote pull "$url" copy >/dev/null
same 5 "$(agentwal --store copy cat one --all | wc -l)" "entries there"

# One process pushes.
code 3 agentwal remote push
grep -q 'another process is pushing' stderr || fail "$(cat stderr)"

# Killed: nothing is appended; started again, it goes on.
kill -9 "$shipper"
wait "$shipper" 2>/dev/null || true
code 3 append 6 --durability cluster
same 5 "$(agentwal cat one --all | wc -l)" "entries"
ship --rate 100
code 0 append 6 --durability cluster

# Ended by a signal: all is stored, and the next push has nothing to do.
append 7 --durability cluster >/dev/null
kill "$shipper"
code 0 wait "$shipper"
code 0 agentwal remote push
grep -q 'nothing new' stdout || fail "$(cat stdout)"

# The remote is gone for a while: the entry is here, and shipped later.
ship
mv bucket away
code 3 append 8 --durability cluster
grep -q 'it is durable here; .* The remote failed' stderr || fail "$(cat stderr)"
[ ! -s stdout ] || fail "acknowledged what the remote lacks: $(cat stdout)"
same 8 "$(agentwal cat one --all | wc -l)" "entries"
mv away bucket
until append 9 --durability cluster >/dev/null 2>&1; do
    sleep 0.1
done
grep -q 'answers again' failures || fail "$(cat failures)"
agentwal remote pull "$url" copy >/dev/null
same "$(agentwal cat one --all)" "$(agentwal --store copy cat one --all)" \
    "entries there"

# Another writer takes over: it ends, and says so.
agentwal remote pull --take-over "$url" desktop >/dev/null
append 10 >/dev/null
code 1 wait "$shipper"
grep -q 'another writer has epoch' failures || fail "$(cat failures)"
code 1 agentwal remote push --follow

# Options.
code 2 agentwal remote push --rate 5
code 2 agentwal remote push --follow --rate 10001
code 2 agentwal remote push --follow --rate 0
code 2 agentwal remote push --follow --rate x
code 2 agentwal remote status --follow
