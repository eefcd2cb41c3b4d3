# shellcheck shell=bash
# asan.sh - sourced by scripts whose Python loads the library: with
# AddressSanitizer its runtime must be loaded before Python. Leaks of Python are
# ignored.

set -euo pipefail
if grep -q '^AGENTWAL_SANITIZE:STRING=address' \
    "$AGENTWAL_BUILD/CMakeCache.txt"; then
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' \
        "$AGENTWAL_BUILD/CMakeCache.txt")
    case $("$compiler" --version) in
    *clang*) name=libclang_rt.asan-$(uname -m).so ;;
    *) name=libasan.so ;;
    esac
    runtime=$("$compiler" -print-file-name="$name")
    [ -e "$runtime" ] || {
        printf '%s: no %s\n' "${0##*/}" "$name" >&2
        exit 1
    }
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
    export LD_PRELOAD=$runtime
fi
