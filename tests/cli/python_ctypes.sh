#!/usr/bin/env bash
# Calls every function of the public headers from Python, through ctypes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
library=$AGENTWAL_BUILD/lib/libagentwal.so
if grep -q '^AGENTWAL_SANITIZE:STRING=address' \
    "$AGENTWAL_BUILD/CMakeCache.txt"; then
    # The runtime must be loaded before Python; leaks of Python are ignored.
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' \
        "$AGENTWAL_BUILD/CMakeCache.txt")
    case $("$compiler" --version) in
    *clang*) name=libclang_rt.asan-$(uname -m).so ;;
    *) name=libasan.so ;;
    esac
    runtime=$("$compiler" -print-file-name="$name")
    [ -e "$runtime" ] || {
        printf 'python_ctypes: no %s\n' "$name" >&2
        exit 1
    }
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
    export LD_PRELOAD=$runtime
fi
exec python3 "$here/../lib/ctypes_calls.py" "$AGENTWAL_SOURCE" "$library"
