#!/usr/bin/env bash
# With WAL_OPEN_MEMORY or WAL_OPEN_NOOP no public function creates or changes a
# name on disk, or opens a file that is not below /proc (SPEC.md 5.11). A seccomp
# filter kills the program otherwise, and where processes may be traced, strace
# confirms it.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

source=$AGENTWAL_SOURCE/tests/cli/no_files.c
include=$AGENTWAL_SOURCE/engine/include
convert=$AGENTWAL_SOURCE/convert/include
# option NAME: the value in the build's CMake cache.
option() {
    sed -n "s/^$1:[A-Z]*=//p" "$AGENTWAL_BUILD/CMakeCache.txt"
}

# Every function that the headers declare is called.
cat "$include"/agentwal.h "$include"/agentwal/*.h "$convert"/agentwal/*.h |
    grep -v '^ \*\|^/\*\|^typedef' | grep -o '\bwal_[a-z_]*(' | sort -u \
    >"$work/declared"
[ "$(wc -l <"$work/declared")" -ge 40 ] || fail "too few functions found"
while read -r name; do
    grep -qF "$name" "$source" || fail "no_files.c does not call $name"
done <"$work/declared"

# The runtimes of the sanitizers read /proc: only builds without a sanitizer run
# under the seccomp filter.
sanitize=$(option AGENTWAL_SANITIZE)
flags=()
case $sanitize in
address) flags=("-fsanitize=address,undefined") ;;
thread) flags=(-fsanitize=thread) ;;
esac
"$(option CMAKE_C_COMPILER)" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror \
    "${flags[@]}" -I "$include" -I "$convert" "$source" \
    -o "$work/no_files" -L "$AGENTWAL_BUILD/lib" -lagentwal-convert -lagentwal \
    -Wl,-rpath,"$AGENTWAL_BUILD/lib"

for mode in noop memory; do
    code 0 "$work/no_files" "$mode"
    printf 'calls begin\ncalls end\n' | diff - "$work/stderr" >&2 ||
        fail "$mode: a call failed"
    [ ! -e store ] || fail "$mode: a store was created"
done
case $sanitize in
address | thread) exit 0 ;;
esac

for mode in noop memory; do
    code 0 "$work/no_files" "$mode" filtered
done

if ! strace -qq -o /dev/null true 2>/dev/null; then
    printf 'no_files: tracing is not permitted; only the filter was used\n'
    exit 0
fi
for mode in noop memory; do
    strace -f -qq -o "$work/trace" -e trace=%file,write \
        "$work/no_files" "$mode" 2>"$work/stderr" || fail "$mode, traced"
    for line in begin end; do
        grep -q "write(2, \"calls $line" "$work/trace" ||
            fail "$mode: the trace lacks its $line"
    done
    sed -n '/write(2, "calls begin/,/write(2, "calls end/p' "$work/trace" |
        sed '1d; $d' | grep -v ' write(' >"$work/found" || fail "$mode: no calls"
    # strace shows fstat(2) as a call with an empty path.
    if grep -v -e '"/proc/' -e '"", .*AT_EMPTY_PATH' "$work/found" >"$work/elsewhere"; then
        fail "$mode: calls on paths: $(cat "$work/elsewhere")"
    fi
done
