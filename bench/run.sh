#!/usr/bin/env bash
# run.sh [--quick|--long] [--filter PATTERN] [--json FILE] [--markdown FILE]
#        [--plots FOLDER]
#
# Builds the benchmarks, runs them and prints one table: what was asked, what
# was measured, the bare limit or the peer measured beside it, their ratio, the
# target; then the rows that have a target alone.
#
# --quick    smaller stores and shorter turns: three minutes
# --long     larger ones, which need more than 2 GB: stores of 10 GB and of
#            1,000,000 sessions, where the disk has room
# --filter   only the benchmarks whose names match: append, open, replay, ...
# --json     writes all that was found to this file
# --markdown writes the rows that have a target to this file
# --plots    draws the plots, as SVG, into this folder
#
# Stores are made in TMPDIR, or in the folder of the build, and removed.
# Installs what is missing (Debian 12), as root or with sudo.
# Exits with 0 when all benchmarks ran, whatever they measured.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

options=()
report=()
filter=.
while [ $# -gt 0 ]; do
    case $1 in
    --quick | --long) options+=("$1") ;;
    --filter)
        filter=${2:?--filter needs a pattern}
        shift
        ;;
    --json | --markdown | --plots)
        report+=("$1" "${2:?$1 needs a path}")
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done

deps_install "$deps_build
g++               deps_command g++
libdeflate-dev    deps_module libdeflate
libbenchmark-dev  deps_header benchmark/benchmark.h
libsqlite3-dev    deps_header sqlite3.h
liblmdb-dev       deps_header lmdb.h
librocksdb-dev    deps_header rocksdb/c.h
libleveldb-dev    deps_header leveldb/c.h
git               deps_command git
python3           deps_command python3
"

dir=$(deps_build_dir "$root" bench)
programs=()
for source in "$root"/bench/bench_*.cc; do
    programs+=("$(basename "$source" .cc)")
done
cmake -S "$root" -B "$dir" -G Ninja -DAGENTWAL_BENCH=ON -DAGENTWAL_TESTS=OFF \
    >"$dir/configure.log" || { cat "$dir/configure.log" && exit 1; }
cmake --build "$dir" --target "${programs[@]}"

TMPDIR=$(mktemp -d "${TMPDIR:-$dir}/agentwal-bench.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM

results=$TMPDIR/results
: >"$results"
sync_us=$("$dir/bench/${programs[0]}" --sync-cost)
for program in "${programs[@]}"; do
    printf '\n== %s\n' "$program"
    "$dir/bench/$program" "${options[@]}" --results="$results" \
        --benchmark_filter="$filter"
done

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
filesystem=$(df --output=fstype "$TMPDIR" | tail -n 1)
printf '\n'
python3 "$root/bench/report.py" "$results" "${report[@]}" \
    --fact date="$(date -u +%Y-%m-%d)" \
    --fact processor="$(nproc) x $processor" \
    --fact memory_kib="$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" \
    --fact filesystem="$filesystem" \
    --fact linux="Linux $(uname -r)" \
    --fact load="$(cut -d ' ' -f 1-3 /proc/loadavg)" \
    --fact sync_us="$sync_us"

printf '\n%s cores, %s, %s, Linux %s\n' "$(nproc)" "$processor" \
    "$filesystem" "$(uname -r)"
printf 'A small write and its sync take %s us here.\n' "$sync_us"
if [ "$sync_us" -lt 50 ]; then
    printf 'That is no sync to stable storage: there are no ratios to it.\n'
fi
