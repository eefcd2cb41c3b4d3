#!/usr/bin/env bash
# run.sh [--build FOLDER] [--jobs N] [--named] [NUMBER]...
#
# Builds the tree once with all planted bugs of this folder in it, each behind
# a switch, and runs the tests with one switched on after the other. The tests
# that a bug names run first; when all of them pass, the tests of a plain run
# but those labelled style and packaging. Prints a line for each bug:
#
#   NUMBER-NAME found by TEST, N s
#   NUMBER-NAME hung TEST, N s    a test ran into its time limit
#   NUMBER-NAME SURVIVED, N s
#
# Exits with 1 when fewer than 95 of 100 were found; hung is not found. The
# named tests run once without a bug before: one that fails then exits with 2.
#
# NUMBER...       only these bugs
# --build FOLDER  where to copy and build; by default build-mutants in the
#                 source. What is there is used again
# --jobs N        as many tests at once; by default as many as processors
# --named         only the tests that the bugs name
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
build=$root/build-mutants
jobs=$(nproc)
limit=600
named_only=
numbers=()

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

while [ $# -gt 0 ]; do
    case $1 in
    --build) build=${2:?--build needs a folder} && shift ;;
    --jobs) jobs=${2:?--jobs needs a number} && shift ;;
    --named) named_only=1 ;;
    -h | --help) usage && exit 0 ;;
    [0-9]*) numbers+=("$((10#$1))") ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

# patch_of NUMBER: prints the path of its patch.
patch_of() {
    local found
    found=$(printf '%s\n' "$here/$(printf '%02d' "$1")"-*.patch)
    [ -f "$found" ] || { printf 'run.sh: no mutant %s\n' "$1" >&2 && exit 2; }
    printf '%s\n' "$found"
}

# tests_of PATCH...: prints a pattern of the tests that they name.
tests_of() {
    local names
    names=$(sed -n 's/^tests: *//p' "$@" | tr -s ' ' '\n' | sort -u | tr '\n' '|')
    printf '^(%s)$' "${names%|}"
}

# failed LOG: prints how the first test that did not pass ended, and its name.
# A failure that a test reports counts before one that ran out of time.
failed() {
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*\(Timeout\).*/hung \1/p
        s/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*.*/found by \1/p' \
        "$1" | sort | head -n 1
}

# tests NUMBER OPTION...: runs ctest with one bug switched on; none is 0.
tests() {
    local number=$1
    shift
    AGENTWAL_MUTANT=$number env -u AGENTWAL_LONG ctest \
        --test-dir "$build/tree" -j "$jobs" \
        --timeout "$limit" --stop-on-failure --no-tests=error "$@" \
        >"$build/log.$number" 2>&1
}

mkdir -p "$build"
"$here/apply.py" "$root" "$build/source"
options=(-G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1"
    -DAGENTWAL_TESTS=ON -DAGENTWAL_BENCH=OFF -DAGENTWAL_WERROR=OFF)
if command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache
        -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake -S "$build/source" -B "$build/tree" "${options[@]}" \
    >"$build/log.build" || { cat "$build/log.build" && exit 2; }
cmake --build "$build/tree" >>"$build/log.build" ||
    { tail -n 40 "$build/log.build" && exit 2; }

if [ ${#numbers[@]} -eq 0 ]; then
    for patch in "$here"/*.patch; do
        patch=${patch##*/}
        numbers+=("$((10#${patch%%-*}))")
    done
fi

patches=()
for number in "${numbers[@]}"; do
    patch=$(patch_of "$number")
    patches+=("$patch")
done
tests 0 -R "$(tests_of "${patches[@]}")" || {
    printf 'without a bug: %s\n' "$(failed "$build/log.0")"
    exit 2
}

found=0
for number in "${numbers[@]}"; do
    patch=$(patch_of "$number")
    name=${patch##*/}
    started=$SECONDS
    end=SURVIVED
    tests "$number" -R "$(tests_of "$patch")" ||
        end=$(failed "$build/log.$number")
    if [ "$end" = SURVIVED ] && [ -z "$named_only" ]; then
        tests "$number" -LE '^(style|packaging|long|timing)$' ||
            end=$(failed "$build/log.$number")
    fi
    case $end in found*) found=$((found + 1)) ;; esac
    printf '%s %s, %d s\n' "${name%.patch}" "$end" "$((SECONDS - started))"
done
printf '%d of %d found\n' "$found" "${#numbers[@]}"
[ $((found * 100)) -ge $((${#numbers[@]} * 95)) ]
