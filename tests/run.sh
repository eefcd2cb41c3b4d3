#!/usr/bin/env bash
# run.sh [--long] [--tree gcc|asan|tsan]... [NAME]...
#
# Builds agentwal three times and runs the tests of each build:
#
#   asan  clang, address and undefined behaviour sanitizers; the tests with a cluster,
#         those that kill processes, and most scripts, only with --long, or when it is
#         the only tree
#   tsan  gcc, thread sanitizer; the tests labelled threads
#   gcc   gcc, no sanitizer: all but the unit tests, the simulator, the damaged stores
#         and the fuzz corpora, unless it is the only tree; last
#
# NAME...   only the tests whose names match one of these patterns
# --long    the long campaigns too: crash, power loss and fuzzing for minutes
#           and hours instead of seconds
#
# Tests run in memory (/dev/shm), unless TMPDIR is set: on a disk half of a test's
# time it waits for syncs. Those of processes that race for a store run on the disk.
#
# Installs what is missing (Debian 12), as root or with sudo. Compiles by ccache, where
# that is found.
# Exits with 0 when all passed, 3 when it could not build for lack of packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

trees=()
names=()
timeout=300
left_out=long
while [ $# -gt 0 ]; do
    case $1 in
    --long)
        export AGENTWAL_LONG=1
        timeout=5400
        left_out=
        ;;
    --tree)
        trees+=("${2:?--tree needs a name}")
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        usage >&2
        exit 2
        ;;
    *) names+=("$1") ;;
    esac
    shift
done
[ "${#trees[@]}" -gt 0 ] || trees=(asan tsan gcc)

[ "${#names[@]}" -eq 0 ] || left_out=

deps_install "$deps_test"
[ -z "${AGENTWAL_LONG-}" ] || deps_install "$deps_long"

# What the tests of the Node.js package use: headers, and a compiler of types;
# and those of the page: what drives a browser.
for node in "$root/bindings/node" "$root/tests/page"; do
    if [ "$node/package-lock.json" -nt "$node/node_modules/.package-lock.json" ]; then
        (cd "$node" && npm ci --no-progress >/dev/null)
        touch "$node/node_modules/.package-lock.json"
    fi
done

# Scripts start Python thousands of times: the interpreter itself, not a
# version manager's wrapper of it.
python=$(python3 -c 'import sys; print(sys.executable)')
PATH=$(dirname "$python"):$PATH

# Most of what a change builds was built before, for another tree or commit.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
fi

# The sanitizers' runtimes cannot live with every layout of the address space.
fixed_layout=()
if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_layout=(setarch "$(uname -m)" -R)
fi

export ASAN_OPTIONS=${ASAN_OPTIONS:-allow_addr2line=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:allow_addr2line=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

# build FOLDER TARGET OPTION...
build() {
    local dir=$1 target=$2
    shift 2
    cmake -S "$root" -B "$dir" -G Ninja -DAGENTWAL_WERROR=ON \
        -DAGENTWAL_TESTS=ON "$@" >"$dir/configure.log" ||
        { cat "$dir/configure.log" && return 1; }
    cmake --build "$dir" --target "$target"
}

# Prints a folder in memory that has room for tests, or nothing.
memory() {
    [ -z "${TMPDIR-}" ] && [ -w /dev/shm ] &&
        [ "$(df --output=avail -k /dev/shm | tail -n 1)" -ge $((4 << 20)) ] || return 0
    echo /dev/shm
}

# run FOLDER OPTION...; with $prefix before ctest
run() {
    local dir=$1 pattern scratch
    shift
    scratch=$(memory)
    if [ "${#names[@]}" -gt 0 ]; then
        pattern=$(IFS='|' && printf '%s' "${names[*]}")
        set -- "$@" -R "$pattern"
    fi
    # More than processors, for tests also wait: for syncs and other processes.
    env ${scratch:+AGENTWAL_SCRATCH="$scratch"} "${prefix[@]}" ctest --test-dir "$dir" \
        -j "$((3 * $(nproc)))" --output-on-failure --timeout "$timeout" "$@"
}

# tree NAME
tree() {
    local dir prefix=()
    case $1 in
    gcc)
        dir=$(deps_build_dir "$root" gcc)
        if [ "${#trees[@]}" -gt 1 ] && [ "${#names[@]}" -eq 0 ]; then
            # The benchmarks are only compiled.
            build "$dir" all -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ \
                -DAGENTWAL_BENCH_FLAGS=-O0 -DAGENTWAL_UNIT_TESTS=OFF
            run "$dir" -LE "^(unit|sim|golden|fuzz${left_out:+|$left_out})\$"
        else
            build "$dir" all -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ \
                -DAGENTWAL_UNIT_TESTS=ON
            run "$dir" -LE "^(${left_out})\$"
        fi
        ;;
    asan)
        dir=$(deps_build_dir "$root" clang-asan)
        build "$dir" all -DCMAKE_C_COMPILER=clang-14 -DAGENTWAL_BENCH=OFF \
            -DAGENTWAL_SANITIZE=address
        prefix=("${fixed_layout[@]}")
        if [ "${#trees[@]}" -gt 1 ] && [ -n "$left_out" ]; then
            run "$dir" -LE "^(timing|style|remote|plain|crash|model|$left_out)\$"
        else
            run "$dir" -LE '^(timing|style)$'
        fi
        ;;
    tsan)
        dir=$(deps_build_dir "$root" tsan)
        build "$dir" threads_tests -DCMAKE_C_COMPILER=gcc -DAGENTWAL_BENCH=OFF \
            -DAGENTWAL_SANITIZE=thread -DAGENTWAL_LIBDEFLATE=OFF
        prefix=("${fixed_layout[@]}")
        run "$dir" -L '^threads$'
        ;;
    *)
        printf 'run.sh: no tree %s\n' "$1" >&2
        exit 2
        ;;
    esac
}

for name in "${trees[@]}"; do
    printf '\n== %s\n' "$name"
    tree "$name"
done
