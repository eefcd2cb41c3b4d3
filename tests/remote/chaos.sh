#!/usr/bin/env bash
# chaos.sh CEPH SECONDS URL...
#
# Kills a process three times in 4 seconds: an OSD, the gateway or a writer of
# the cluster in the directory CEPH (ceph.sh), and starts it again at once. There
# is a writer for each URL, which appends entries with WAL_CLUSTER. Afterwards
# each acknowledged entry must be readable from the remote alone, and the writers
# go on.
set -euo pipefail

here=$AGENTWAL_SOURCE/tests/remote
ceph=$1
seconds=$2
shift 2
urls=("$@")
seed=${AGENTWAL_SEED:-$SRANDOM}
echo "seed $seed"
RANDOM=$((seed % 32768))

writers=()
declare -A first

# write_to NUMBER SECONDS: starts a writer in the background.
write_to() {
    first[$1]=$((${first[$1]:-0} + 1000000))
    "$AGENTWAL_BUILD/tests/remote_chaos_writer" "store.$1" "${urls[$1]}" \
        "${first[$1]}" "$2" >>"acknowledged.$1" 2>>"writer.$1" &
    writers[$1]=$!
}

trap 'kill -KILL "${writers[@]}" 2>/dev/null || true' EXIT

mapfile -t osds < <(cd "$ceph/run" && ls osd.*.pid)
osds=("${osds[@]%.pid}")
end=$((SECONDS + seconds))
for number in "${!urls[@]}"; do
    write_to "$number" "$seconds"
done
# An OSD that replaces itself serves when the lease of its predecessor is over,
# after 3 s (osd heartbeat grace); an only one can be killed less often.
pause=$((${#osds[@]} > 1 ? 4 : 8))
for ((turn = 0; SECONDS < end; turn++)); do
    sleep 1
    number=$((RANDOM % ${#urls[@]}))
    if [ $((turn % pause)) = 3 ]; then
        "$here/ceph.sh" crash "$ceph" "${osds[turn / pause % ${#osds[@]}]}"
    elif [ $((turn % 4)) = 2 ]; then
        "$here/ceph.sh" crash "$ceph" rgw
    elif [ $((turn % 4)) = 0 ] && [ $((end - SECONDS)) -gt 2 ]; then
        kill -KILL "${writers[number]}" 2>/dev/null || true
        wait "${writers[number]}" 2>/dev/null || true
        write_to "$number" "$((end - SECONDS))"
    fi
done

for number in "${!urls[@]}"; do
    wait "${writers[number]}" || { cat "writer.$number" && exit 1; }
    # The writer goes on: another process of it, without faults.
    write_to "$number" 2
    wait "${writers[number]}" || { cat "writer.$number" && exit 1; }
    until "$AGENTWAL_BUILD/bin/agentwal" remote pull "${urls[number]}" "pulled.$number" \
        2>"pull.$number"; do
        [ "$SECONDS" -lt $((end + 120)) ] || { cat "pull.$number" && exit 1; }
        sleep 1
    done
    "$AGENTWAL_BUILD/bin/agentwal" --store "pulled.$number" cat --json chaos |
        grep -o '"chaos":[0-9]*' | cut -d : -f 2 | sort >"found.$number"
    sort "acknowledged.$number" >"expected.$number"
    if [ -n "$(comm -23 "expected.$number" "found.$number")" ]; then
        echo "${urls[number]}: acknowledged and lost:"
        comm -23 "expected.$number" "found.$number" | head
        exit 1
    fi
    for ((start = 1; start <= ${first[$number]} / 1000000; start++)); do
        count+=" $(grep -c "^$start" "acknowledged.$number" || true)"
    done
    echo "${urls[number]%%:*}: $(wc -l <"acknowledged.$number") entries acknowledged," \
        "by process:$count; none lost"
    count=
    grep -q "^${first[$number]}" "acknowledged.$number" || { echo "no progress" && exit 1; }
done
