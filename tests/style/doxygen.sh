#!/usr/bin/env bash
# Doxygen reads the public headers without a warning, and a comment precedes
# each function in them.
set -euo pipefail

include=$AGENTWAL_SOURCE/engine/include
for header in "$include"/agentwal.h "$include"/agentwal/*.h \
    "$AGENTWAL_SOURCE"/{convert,search}/include/agentwal/*.h; do
    awk -v header="$header" '
        /^(typedef .*wal_|WAL_API)/ && before !~ /\*\/$/ {
            printf "%s:%d: no comment before it\n", header, NR
            failed = 1
        }
        { before = $0 }
        END { exit failed }' "$header"
done

command -v doxygen >/dev/null || {
    printf 'doxygen is not installed: the reference is not made\n'
    exit 0
}
mkdir html
{
    cat "$AGENTWAL_BUILD/docs/Doxyfile"
    printf 'OUTPUT_DIRECTORY = %s\n' "$PWD"
} >Doxyfile
doxygen Doxyfile
grep -q 'Creates a session, as durable as' html/agentwal_8h.html
