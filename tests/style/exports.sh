#!/usr/bin/env bash
# The shared library exports the functions of the public headers, and nothing
# else.
set -euo pipefail

include=$AGENTWAL_SOURCE/engine/include
for header in "$include"/agentwal.h "$include"/agentwal/*.h; do
    gcc -E -P -I"$include" "$header"
done | grep -v typedef |
    grep -oE '\bwal_[a-z0-9_]+ ?\(' | tr -d ' (' | sort -u >declared
nm -D --defined-only "$AGENTWAL_BUILD/lib/libagentwal.so" |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported

if ! diff -u declared exported; then
    printf 'declared (-) and exported (+) differ\n'
    exit 1
fi
test -s declared

# The same of the other libraries, where they are built.
for part in convert search remote; do
    library=$AGENTWAL_BUILD/lib/libagentwal-$part.so
    [ -e "$library" ] || continue
    names=$part
    [ $part != convert ] || names='(import|view)'
    for header in "$AGENTWAL_SOURCE/$part"/include/agentwal/*.h; do
        gcc -E -P -I"$include" "$header"
    done | grep -v typedef |
        grep -oE "\\bwal_${names}_[a-z0-9_]+ ?\\(" | tr -d ' (' | sort -u >declared
    nm -D --defined-only "$library" |
        awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported
    diff -u declared exported
    test -s declared
done
test -e "$AGENTWAL_BUILD/lib/libagentwal-convert.so"
