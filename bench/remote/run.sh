#!/usr/bin/env bash
# run.sh [--quick] [BUILD]
#
# Measures remotes against the S3 gateway of a cluster of Ceph that it starts on
# loopback (tests/remote/ceph.sh). Prints a line of JSON for each row, with the
# number of processors first.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
seconds=10
while [ $# -gt 0 ]; do
    case $1 in
    --quick) seconds=4 ;;
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
    "$program" "$command" "${AGENTWAL_TEST_S3/\?//$name\?}" "$work/$name" "$@"
}

printf 'processors %s\n' "$(nproc)"
row appends appends "$seconds" 20 1024 1
row rate200 appends "$seconds" 200 1024 1
row tickets appends "$seconds" 20 1024 16
row large appends "$seconds" 20 65536 16
row push push 20000
row local local "$((seconds * 2))"
row lag lag "$((seconds * 2))"
row handoff handoff 100000
