#!/usr/bin/env bash
# run.sh [--quick|--long] [--filter PATTERN]
#
# Builds the benchmarks, runs them and prints one table: what was asked, what
# was measured, the bare limit measured beside it, their ratio, the target.
#
# --quick    smaller stores and fewer turns: a minute or two
# --long     larger ones: stores of 10 GB where the disk has room
# --filter   only the benchmarks whose names match: append, open, replay, ...
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
filter=.
while [ $# -gt 0 ]; do
    case $1 in
    --quick | --long) options+=("$1") ;;
    --filter)
        filter=${2:?--filter needs a pattern}
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

rows=$TMPDIR/rows
printf 'question\tmeasured\tbare limit\tratio\ttarget\t\n' >"$rows"
sync_us=$("$dir/bench/${programs[0]}" --sync-cost)
for program in "${programs[@]}"; do
    printf '\n== %s\n' "$program"
    "$dir/bench/$program" "${options[@]}" --rows="$rows" \
        --benchmark_filter="$filter"
done

printf '\n'
awk -F '\t' '
    { for (i = 1; i <= NF; i++) { cell[NR, i] = $i
      if (length($i) > width[i]) width[i] = length($i) } }
    END { for (row = 1; row <= NR; row++) {
        line = ""
        for (i = 1; i <= 6; i++)
            line = line sprintf("%-" width[i] + 2 "s", cell[row, i])
        sub(/ +$/, "", line); print line } }' "$rows"

printf '\n%s cores, %s, %s, Linux %s\n' "$(nproc)" \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
    "$(df --output=fstype "$TMPDIR" | tail -n 1)" "$(uname -r)"
printf 'A small write and its sync take %s us here.\n' "$sync_us"
if [ "$sync_us" -lt 50 ]; then
    printf 'That is no sync to stable storage: there are no ratios to it.\n'
fi
