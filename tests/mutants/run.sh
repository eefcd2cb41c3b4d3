#!/usr/bin/env bash
# run.sh [--build FOLDER] [--jobs N] [--named] [NUMBER]...
#
# Builds the tree once with all planted bugs of this folder in it, each with
# a switch, and runs the tests with one switched on after the other. The tests
# that a bug names run first, in that order; when all of them pass, the tests of
# a plain run but those labelled style and packaging. Prints a line for each bug:
#
#   NUMBER-NAME found by TEST, N s
#   NUMBER-NAME hung TEST, N s    a test ran into its time limit
#   NUMBER-NAME SURVIVED, N s
#
# Exits with 1 when fewer than 95 of 100 were found; hung is not found.
#
# NUMBER...       only these bugs
# --build FOLDER  where to copy and build; by default build-mutants in the
#                 source. What is there is used again
# --jobs N        as many bugs at once; by default as many as processors
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
    found=$(printf '%s\n' "$here"/*/"$(printf '%02d' "$1")"-*.patch)
    [ -f "$found" ] || { printf 'run.sh: no mutant %s\n' "$1" >&2 && exit 2; }
    printf '%s\n' "$found"
}

# tests_of NUMBER: prints the tests that the bug names.
tests_of() {
    local patch
    patch=$(patch_of "$1")
    sed -n '/^--- /q;s/^tests: *//p' "$patch"
}

# ctest_in FOLDER NUMBER OPTION...: runs ctest with one bug switched on; 0 is
# none. FOLDER is where ctest writes, since several run at once.
ctest_in() {
    local folder=$1 number=$2
    shift 2
    mkdir -p "$folder"
    printf 'subdirs("%s")\n' "$build/tree" >"$folder/CTestTestfile.cmake"
    AGENTWAL_MUTANT=$number timeout "$((3 * limit))" env -u AGENTWAL_LONG \
        ctest --test-dir "$folder" --timeout "$limit" --stop-on-failure \
        --no-tests=error "$@" >"$folder/log" 2>&1
}

# failed FOLDER: prints how the first test that did not pass ended, and its
# name. A failure that a test reports counts before one that ran out of time; also
# where another case of the same program does not end afterwards.
failed() {
    local line='^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*' found
    found=$(sed -n "s/${line}Timeout.*/hung \1/p;s/$line.*/found by \1/p" \
        "$1/log" | sort | head -n 1)
    grep -q '^\[  FAILED  \]' "$1/Testing/Temporary/LastTest.log" &&
        found=${found/#hung/found by}
    printf '%s\n' "${found:-hung}"
}

# check NUMBER FOLDER: prints how the bug ended.
check() {
    local number=$1 folder=$2 end='' name
    for name in $(tests_of "$number"); do
        ctest_in "$folder" "$number" -R "^$name\$" || {
            end=$(failed "$folder")
            break
        }
    done
    if [ -z "$end" ] && [ -z "$named_only" ]; then
        ctest_in "$folder" "$number" -j "$jobs" \
            -LE '^(style|packaging|long|timing)$' || end=$(failed "$folder")
    fi
    case $end in
    found*)
        # A test that fails anyway finds nothing.
        ctest_in "$folder.none" 0 -R "^${end##* }\$" ||
            end="SURVIVED: ${end##* } fails without it"
        ;;
    esac
    printf '%s\n' "${end:-SURVIVED}"
}

# try NUMBER: prints the line of the bug.
try() {
    local patch started=$SECONDS end
    patch=$(patch_of "$1")
    patch=${patch##*/}
    end=$(check "$1" "$build/run/$1")
    printf '%s %s, %d s\n' "${patch%.patch}" "$end" "$((SECONDS - started))"
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
    for patch in "$here"/*/*.patch; do
        patch=${patch##*/}
        numbers+=("$((10#${patch%%-*}))")
    done
fi

rm -rf "$build/run"
for number in "${numbers[@]}"; do
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    try "$number" &
done | tee "$build/lines"
found=$(grep -c ' found by ' "$build/lines" || true)
printf '%d of %d found\n' "$found" "${#numbers[@]}"
[ $((found * 100)) -ge $((${#numbers[@]} * 95)) ]
