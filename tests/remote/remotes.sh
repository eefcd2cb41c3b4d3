#!/usr/bin/env bash
# The driver of S3 against the gateway of a cluster of Ceph: the cases of every
# driver, failures, and a store that moves.
set -euo pipefail

here=$AGENTWAL_SOURCE/tests/remote
ceph=$PWD/ceph
trap '"$here/ceph.sh" stop "$ceph"' EXIT
"$here/ceph.sh" start "$ceph" >environment || {
    tail -n 20 ceph/log/*.out
    exit 1
}
while IFS='=' read -r name value; do
    export "$name=$value"
done <environment

mkdir s3
(cd s3 && "$here/s3.sh" >output 2>&1) || {
    cat s3/output
    exit 1
}
grep -h 'p50' s3/output || true
if grep -F "$AWS_SECRET_ACCESS_KEY" s3/output; then
    echo "a secret was printed"
    exit 1
fi
