#!/usr/bin/env bash
# run.sh [--quick|--long] [--filter PATTERN] [--json FILE [--add]]
#        [--markdown FILE] [--plots FOLDER] [--page FILE]
#
# Builds the benchmarks, runs them and prints one table: what was asked, what
# was measured, the bare limit or the peer measured with it, their ratio, the
# target, in how many turns; then the rows that have a target alone.
#
# --quick    smaller stores and shorter turns: three minutes
# --long     larger ones, which need more than 2 GB: stores of 10 GB and of
#            1,000,000 sessions, where the disk has room
# --filter   only the benchmarks whose names match: append, open, replay, ...
# --json     writes all that was found to this file
# --add      keeps the rows that the file of --json has next to those of this run
# --markdown writes the rows that have a target to this file
# --plots    draws the plots, as SVG, into this folder
# --page     puts those rows into this file, between its two marks
#
# Stores are made in TMPDIR, or in the folder of the build, and removed.
# Installs what is missing (Debian 12), as root or with sudo; what it is
# compared with, as far as it can.
# Exits with 0 when all benchmarks ran, whatever they measured; with 2 when it
# was called wrongly; with 3 when it could not build for lack of packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

wrong() {
    quit 2 "$1"
}

# --- what was asked ----------------------------------------------------------

size=()
report=()
filter=.
json=
add=
while [ $# -gt 0 ]; do
    case $1 in
    --quick | --long)
        [ "${size[*]:-$1}" = "$1" ] || wrong "--quick or --long, not both"
        size=("$1")
        ;;
    --filter | --json | --markdown | --plots | --page)
        [ -n "${2-}" ] || wrong "$1 needs a value"
        case $1 in
        --filter) filter=$2 ;;
        --json) json=$2 ;;&
        --json | --markdown | --plots | --page) report+=("$1" "$2") ;;
        esac
        shift
        ;;
    --add)
        report+=("$1")
        add=$1
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        wrong "there is no $1"
        ;;
    esac
    shift
done
[ -z "$add" ] || [ -n "$json" ] || wrong "--add needs --json"

# Before minutes of measuring: can it all be written?
check_file() {
    if [ -e "$1" ]; then
        [ -f "$1" ] && [ -w "$1" ]
    else
        [ -d "$(dirname "$1")" ] && [ -w "$(dirname "$1")" ]
    fi || wrong "cannot write $1"
}

for ((i = 0; i + 1 < ${#report[@]}; i++)); do
    case ${report[i]} in
    --json | --markdown) check_file "${report[i + 1]}" ;;
    --page)
        [ -f "${report[i + 1]}" ] || wrong "there is no ${report[i + 1]}"
        check_file "${report[i + 1]}"
        ;;
    --plots)
        { mkdir -p "${report[i + 1]}" && [ -w "${report[i + 1]}" ]; } \
            2>/dev/null || wrong "cannot write into ${report[i + 1]}"
        ;;
    esac
done
if [ -n "${TMPDIR-}" ] && ! { [ -d "$TMPDIR" ] && [ -w "$TMPDIR" ]; }; then
    wrong "cannot write into $TMPDIR, which TMPDIR names"
fi

# --- building ----------------------------------------------------------------

deps_install "$deps_build
g++               deps_command g++
libdeflate-dev    deps_library libdeflate libdeflate.h
libbenchmark-dev  deps_header benchmark/benchmark.h
python3           deps_command python3
"
(deps_install "
libsqlite3-dev    deps_header sqlite3.h
liblmdb-dev       deps_header lmdb.h
librocksdb-dev    deps_header rocksdb/c.h
libleveldb-dev    deps_header leveldb/c.h
git               deps_command git
") || printf '%s: going on without them\n' "${0##*/}" >&2

dir=$(deps_build_dir "$root" bench)
programs=()
for source in "$root"/bench/bench_*.cc; do
    programs+=("$(basename "$source" .cc)")
done
cmake -S "$root" -B "$dir" -G Ninja -DAGENTWAL_BENCH=ON \
    >"$dir/configure.log" || { cat "$dir/configure.log" && exit 1; }
sed -n 's/^-- \(.*the benchmarks leave out.*\)/\1/p' "$dir/configure.log"
cmake --build "$dir" --target "${programs[@]}"

# Programs none of whose benchmarks match are not run.
asked=()
for program in "${programs[@]}"; do
    if [ -n "$("$dir/bench/$program" "${size[@]}" --benchmark_list_tests \
        --benchmark_filter="$filter" 2>/dev/null)" ]; then
        asked+=("$program")
    fi
done
[ "${#asked[@]}" -gt 0 ] || wrong "no benchmark matches $filter"

# --- measuring ---------------------------------------------------------------

TMPDIR=$(mktemp -d "${TMPDIR:-$dir}/agentwal-bench.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM

results=$TMPDIR/results
: >"$results"
sync_us=$("$dir/bench/${programs[0]}" --sync-cost)
load=$(cut -d ' ' -f 1-3 /proc/loadavg)
run=${size[*]:---normal}
begin=$SECONDS
for program in "${asked[@]}"; do
    printf '\n== %s\n' "$program"
    "$dir/bench/$program" "${size[@]}" --results="$results" \
        --benchmark_filter="$filter"
done

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
filesystem=$(df --output=fstype "$TMPDIR" | tail -n 1)
printf '\n'
python3 "$root/bench/report.py" "$results" "${report[@]}" \
    --fact run="${run#--}" \
    --fact date="$(date -u +%Y-%m-%d)" \
    --fact processor="$(nproc) x ${processor:-$(uname -m)}" \
    --fact memory_kib="$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" \
    --fact filesystem="$filesystem" \
    --fact linux="Linux $(uname -r | cut -d - -f 1)" \
    --fact load="$load" \
    --fact sync_us="$sync_us"

printf '\n%s cores, %s, %s, Linux %s; %d s of measuring\n' "$(nproc)" \
    "$processor" "$filesystem" "$(uname -r | cut -d - -f 1)" $((SECONDS - begin))
printf 'A small write and its sync take %s us here.\n' "$sync_us"
if [ "$sync_us" -lt 50 ]; then
    printf 'That is no sync to stable storage: there are no ratios to it.\n'
fi
