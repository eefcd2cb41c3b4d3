#!/usr/bin/env bash
# clang-tidy finds nothing, with the checks of .clang-tidy.
set -euo pipefail

cd "$AGENTWAL_SOURCE"

# tidy FILE...
tidy() {
    clang-tidy-14 --quiet --warnings-as-errors='*' "$@" -- -std=c11 \
        -D_GNU_SOURCE -I. -Iengine/include -Iconvert/include \
        -Isearch/include -Iremote/include -DAGENTWAL_VERSION='"0"' \
        -DAGENTWAL_SOURCE_DIR='"."' -DNAPI_VERSION=8 \
        ${NODE_HEADERS:+-isystem "$NODE_HEADERS"} \
        ${PYTHON_HEADERS:+-isystem "$PYTHON_HEADERS"} \
        -DPy_LIMITED_API=0x030B0000 2>/dev/null
}
export -f tidy

dirs=(engine format convert search remote tools tests bindings/table)
for headers in bindings/node/node_modules/node-api-headers/include /usr/include/node; do
    if [ -e "$headers/node_api.h" ]; then
        dirs+=(bindings/node/native)
        export NODE_HEADERS=$headers
        break
    fi
done
if [ -e /usr/include/python3.11/Python.h ]; then
    dirs+=(bindings/python/src)
    export PYTHON_HEADERS=/usr/include/python3.11
fi
# What needs headers of another system, or of a file system in user space, is left out.
{
    find "${dirs[@]}" \( -name node_modules -o -path engine/base/darwin -o \
        -path tests/filesystems \) -prune -o -name '*.c' -print0
    printf '%s\0' engine/base/darwin/portable.c
} |
    xargs -0 -n 12 -P "$(nproc)" bash -c 'tidy "$@"' _
