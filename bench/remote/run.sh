#!/usr/bin/env bash
# run.sh [--quick] [--rados] [BUILD]
#
# Measures remotes against a cluster of Ceph that it starts on loopback
# (tests/remote/ceph.sh): by its S3 gateway, or with --rados by librados. Prints
# a line of JSON for each row, with the number of processors first.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
seconds=10
url=AGENTWAL_TEST_S3
while [ $# -gt 0 ]; do
    case $1 in
    --quick) seconds=4 ;;
    --rados) url=AGENTWAL_TEST_RADOS ;;
    -h | --help)
        sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) break ;;
    esac
    shift
done
program=${1:-$root/build/gcc}/bench/bench_remote
work=$(mktemp -d "${TMPDIR:-/tmp}/agentwal-remote.XXXXXX")
trap '"$root/tests/remote/ceph.sh" stop "$work/ceph"; rm -rf "$work"' EXIT

"$root/tests/remote/ceph.sh" start "$work/ceph" >"$work/environment"
while IFS='=' read -r name value; do
    export "$name=$value"
done <"$work/environment"

# row NAME COMMAND ARGUMENT...: in a separate prefix.
row() {
    local name=$1 command=$2
    shift 2
    printf '%s ' "$name"
    "$program" "$command" "${!url/\?//$name\?}" "$work/$name" "$@"
}

printf 'processors %s, %s\n' "$(nproc)" "${url#AGENTWAL_TEST_}"
row appends appends "$seconds" 20 1024 1
row rate200 appends "$seconds" 200 1024 1
row tickets appends "$seconds" 20 1024 16
row large appends "$seconds" 20 65536 16
row push push 20000
row local local "$((seconds * 2))"
row lag lag "$((seconds * 2))"
row handoff handoff 100000
