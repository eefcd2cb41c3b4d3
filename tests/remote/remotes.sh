#!/usr/bin/env bash
# The drivers of S3 and of Ceph's pools against a cluster that is started for
# them once: the cases of every driver, failures, and a store that moves. Then,
# in a build without a sanitizer, daemons and writers are killed (chaos.sh).
set -euo pipefail

here=$AGENTWAL_SOURCE/tests/remote
long=()
[ -z "${AGENTWAL_LONG-}" ] || long=(--long)

ceph=$PWD/ceph
trap '"$here/ceph.sh" stop "$ceph"' EXIT
"$here/ceph.sh" "${long[@]}" start "$ceph" >environment || {
    tail -n 20 ceph/log/*.out
    exit 1
}
while IFS='=' read -r name value; do
    export "$name=$value"
done <environment

# part NAME: runs it in a directory of its name.
part() {
    mkdir "$1"
    (cd "$1" && "$here/$1.sh" >output 2>&1)
}

# Half of the time of each is spent waiting.
part s3 &
s3=$!
part rados &
rados=$!
failed=()
wait "$s3" || failed+=(s3)
wait "$rados" || failed+=(rados)
grep -h 'p50' s3/output rados/output || true
for name in "${failed[@]}"; do
    printf '\n== %s.sh failed\n' "$name"
    cat "$name/output"
done
if grep -F "$AWS_SECRET_ACCESS_KEY" s3/output rados/output; then
    echo "a secret was printed"
    exit 1
fi
[ "${#failed[@]}" -eq 0 ]

if [ -n "${AGENTWAL_LONG-}" ]; then
    urls=("${AGENTWAL_TEST_S3/\?//chaos\?}")
    [ ! -x "$AGENTWAL_BUILD/tests/remote_driver_watch" ] ||
        urls+=("${AGENTWAL_TEST_RADOS/\?//chaos\?}")
    mkdir chaos && cd chaos
    "$here/chaos.sh" "$ceph" 60 "${urls[@]}"
fi
