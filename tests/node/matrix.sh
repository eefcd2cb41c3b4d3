#!/usr/bin/env bash
# matrix.sh [RUNTIME]...: the tests of bindings/node/test pass in each runtime
# that the package supports (tests/node/lib/runtimes.sh), all by the same binary.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
folder=$AGENTWAL_BUILD/node/runtimes
work=${TMPDIR:?}
export AGENTWAL_NODE_BINARY=${AGENTWAL_NODE_BINARY:-$AGENTWAL_BUILD/node/agentwal.node}

cd "$AGENTWAL_SOURCE/bindings/node"
# All but those that run the compiler of TypeScript alone.
mapfile -t files < <(printf '%s\n' test/*.test.mjs test/claude/*.test.mjs |
    grep -v 'types[.]test')
[ "${#files[@]}" -gt 5 ]

# run NAME PROGRAM: prints the number of tests that passed, or fails.
run() {
    local out=$work/$1.out file status=0
    if [ "$1" = bun ]; then
        : >"$out"
        # A process for each file, as node has.
        for file in "${files[@]}"; do
            timeout 600 "$2" test --timeout 300000 "./$file" >>"$out" 2>&1 || status=$?
        done
        awk '$2 == "pass" { n += $1 } END { print n + 0 }' "$out"
    else
        timeout 3600 "$2" --test --test-reporter=tap "${files[@]}" >"$out" 2>&1 || status=$?
        awk '/^# pass / { print $3 }' "$out"
    fi
    return "$status"
}

failures=0
first=
"$here/lib/runtimes.sh" "$folder" >"$work/runtimes"
while read -r name program; do
    if [ "$#" -gt 0 ] && [[ " $* " != *" $name "* ]]; then
        continue
    fi
    version=$("$program" --version)
    if passed=$(run "$name" "$program"); then
        printf '%-12s %-10s %s tests\n' "$name" "$version" "$passed"
    else
        printf '%-12s %-10s FAILED\n' "$name" "$version"
        grep -E -A 12 '^ *not ok|^\(fail\)|error:|panic' "$work/$name.out" | head -60
        failures=$((failures + 1))
        continue
    fi
    # None leaves tests out.
    first=${first:-$passed}
    if [ "$passed" != "$first" ]; then
        printf '%s ran %s tests, and the first one %s\n' "$name" "$passed" "$first"
        failures=$((failures + 1))
    fi
done <"$work/runtimes"
[ -n "$first" ] && [ "$failures" -eq 0 ]
