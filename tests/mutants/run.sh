#!/usr/bin/env bash
# Plants the bugs of tests/mutants/*.patch in a copy of the sources, one at a
# time, and runs the tests that each patch names: a bug that they do not find
# survives.
#
# Usage: tests/mutants/run.sh [PATCH]...
#
# A patch begins with the lines "bug: TEXT" and "tests: PROGRAM...". The copy and
# its build are in AGENTWAL_MUTANTS (default: below TMPDIR) and stay there, so
# that a second run compiles little. Prints found or survived for each, and ends
# with 1 when one survived.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=${AGENTWAL_MUTANTS:-${TMPDIR:-/tmp}/agentwal-mutants}
source=$work/source
build=$work/build
patches=("$@")
[ $# -gt 0 ] || patches=("$root"/tests/mutants/*.patch)

# A new copy with the times of the old files; those that a patch may have changed
# since they were compiled are made new.
rm -rf "$source"
mkdir -p "$source"
tar -C "$root" --exclude=./build --exclude=./.git -cf - . | tar -C "$source" -xf -
sed -n 's|^+++ b/||p' "$root"/tests/mutants/*.patch | sort -u |
    (cd "$source" && xargs touch)
[ -e "$build/build.ninja" ] ||
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
        -DAGENTWAL_TESTS=ON -DAGENTWAL_BENCH=OFF -DAGENTWAL_WERROR=OFF \
        -DCMAKE_C_COMPILER_LAUNCHER="$(command -v ccache || true)" \
        >"$work/cmake.log"

field() {
    sed -n "s/^$1: //p" "$2" | head -1
}

found=0
survivors=()
for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch)
    read -ra tests <<<"$(field tests "$patch")"
    if ! patch -d "$source" -p1 -s --dry-run <"$patch" >"$work/patch.log"; then
        echo "$name does not apply"
        survivors+=("$name")
        continue
    fi
    patch -d "$source" -p1 -s <"$patch"
    verdict=survived
    if ! ninja -C "$build" "${tests[@]}" walcheck walctl walcat >"$work/build.log" 2>&1; then
        verdict="does not compile"
    fi
    for test in "${tests[@]}"; do
        [ "$verdict" = survived ] || break
        rm -rf "$work/scratch"
        mkdir "$work/scratch"
        (cd "$work/scratch" && WALBIN=$build/bin AGENTWAL_SOURCE=$source \
            timeout 120 "$build/tests/$test") >"$work/test.log" 2>&1 ||
            verdict="found by $test"
    done
    patch -d "$source" -p1 -s -R <"$patch"
    echo "$name: $verdict ($(field bug "$patch"))"
    case $verdict in
        found*) found=$((found + 1)) ;;
        *) survivors+=("$name") ;;
    esac
done
echo "$found of ${#patches[@]} found; survived: ${survivors[*]:-none}"
[ ${#survivors[@]} -eq 0 ]
