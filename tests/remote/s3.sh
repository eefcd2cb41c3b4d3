#!/usr/bin/env bash
# The driver of S3 against a radosgw that is started for it: the cases of every
# driver, failures of the store and on the way to it; and a store that moves.
set -euo pipefail

here=$AGENTWAL_SOURCE/tests/remote
programs=$AGENTWAL_BUILD/tests
long=()
[ -z "${AGENTWAL_LONG-}" ] || long=(--long)

trap '"$here/ceph.sh" stop ceph' EXIT
"$here/ceph.sh" "${long[@]}" start ceph >environment || {
    tail -n 20 ceph/log/*.out
    exit 1
}
while IFS='=' read -r name value; do
    export "$name=$value"
done <environment

"$programs/remote_driver_s3" >output 2>&1 || { cat output && exit 1; }
grep 'put_if_absent of' output
if grep -F "$AWS_SECRET_ACCESS_KEY" output; then
    exit 1
fi
"$here/move.sh"
python3 "$here/faults.py" "$programs/remote_driver_call"
