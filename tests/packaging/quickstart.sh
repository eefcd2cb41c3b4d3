#!/usr/bin/env bash
# tools/quickstart.sh in a fresh copy of the sources: it builds without a word
# and shows its parts; if the build fails it shows the end of the log.
set -euo pipefail

fail() {
    printf 'quickstart.sh: %s\n' "$*" >&2
    exit 1
}

mkdir copy home
git -C "$AGENTWAL_SOURCE" ls-files -z | (cd "$AGENTWAL_SOURCE" &&
    xargs -0 cp --parents -t "$OLDPWD/copy")
export HOME=$PWD/home
unset AGENTWAL_STORE

begin=$(date +%s)
copy/tools/quickstart.sh >output 2>errors || { cat errors && fail 'failed'; }
printf 'from the sources to the first result: %d s\n' $(($(date +%s) - begin))
for heading in Import Tree Export Fork Rewind Check 'Go on'; do
    grep -qx "$heading" output || fail "no $heading"
done
[ "$(wc -l <output)" -lt 100 ] || fail 'is long'
[ ! -s errors ] || { cat errors && fail 'prints to standard error'; }
[ -e copy/build/quickstart/quickstart-store/MANIFEST ] || fail 'no store'

printf 'this is not C\n' >>copy/engine/base/error.c
code=0
copy/tools/quickstart.sh >output 2>errors || code=$?
[ "$code" -eq 1 ] || fail "exit code $code"
grep -q 'this is not C' errors || fail 'no end of the log'
grep -q 'the build failed; .*quickstart.log has all' errors || fail 'no path'
[ "$(wc -l <errors)" -lt 40 ] || fail 'the end of the log is long'
