#!/usr/bin/env bash
# The shared library exports the functions of the public headers, and nothing
# else; those of removed.h are not available.
set -euo pipefail

include=$AGENTWAL_SOURCE/engine/include
for header in "$include"/agentwal.h "$include"/agentwal/*.h; do
    gcc -E -P -I"$include" "$header"
done | grep -v -e typedef -e unavailable |
    grep -oE '\bwal_[a-z0-9_]+ ?\(' | tr -d ' (' | sort -u >declared
nm -D --defined-only "$AGENTWAL_BUILD/lib/libagentwal.so" |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported

if ! diff -u declared exported; then
    printf 'declared (-) and exported (+) differ\n'
    exit 1
fi
test -s declared

# The same of search and remotes, where they are built.
for part in search remote; do
    library=$AGENTWAL_BUILD/lib/libagentwal-$part.so
    header=$AGENTWAL_SOURCE/$part/include/agentwal/$part.h
    if [ ! -e "$library" ] || [ ! -e "$header" ]; then
        continue
    fi
    gcc -E -P -I"$include" "$header" | grep -v -e typedef -e unavailable |
        grep -oE "\\bwal_${part}_[a-z0-9_]+ ?\\(" | tr -d ' (' | sort -u >declared
    nm -D --defined-only "$library" |
        awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported
    diff -u declared exported
    test -s declared
done
