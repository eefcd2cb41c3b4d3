#!/usr/bin/env bash
# bench/run.sh rejects invalid arguments before it builds and measures.
set -euo pipefail

run=$AGENTWAL_SOURCE/bench/run.sh

# refused WORDS ARGUMENT...: exit code 2, and a message that contains WORDS.
refused() {
    local words=$1 code=0
    shift
    timeout 20 "$run" "$@" >out 2>err || code=$?
    if [ "$code" -ne 2 ] || ! grep -qF -- "$words" err; then
        printf 'run.sh %s: exit code %d\n' "$*" "$code"
        cat out err
        exit 1
    fi
}

refused "there is no --fast" --fast
refused "there is no append" append
refused "--filter needs a value" --filter
refused "--filter needs a value" --filter ""
refused "--json needs a value" --quick --json
refused "not both" --quick --long
refused "--add needs --json" --add
refused "cannot write nowhere/out.json" --json nowhere/out.json
refused "cannot write nowhere/out.md" --markdown nowhere/out.md
refused "cannot write ." --json .
refused "there is no page" --page page
touch file
refused "cannot write into file" --plots file
refused "cannot write into file/below" --plots file/below
TMPDIR=$PWD/nowhere refused "which TMPDIR names"

timeout 20 "$run" --help >out
grep -q -- '--page' out
