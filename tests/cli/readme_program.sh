#!/usr/bin/env bash
# The program of README.md, section "A program", compiles without a warning
# against this build's header and library, and prints the output shown there.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

readme=$AGENTWAL_SOURCE/README.md
# option NAME: the value in the build's CMake cache.
option() {
    sed -n "s/^$1:[A-Z]*=//p" "$AGENTWAL_BUILD/CMakeCache.txt"
}

# The section's program and output.
awk '/^## /{ in_section = ($0 == "## A program") } in_section' "$readme" \
    >"$work/section"
awk '/^```$/{ in_code = 0 } in_code; /^```c$/{ in_code = 1 }' \
    "$work/section" >"$work/program.c"
awk '/It prints:$/{ shown = 1; next } shown && /^    /{ print substr($0, 5) }' \
    "$work/section" >"$work/expected"
grep -q 'int main' "$work/program.c" || fail "no program in README.md"
[ -s "$work/expected" ] || fail "no output of the program in README.md"
lines=$(wc -l <"$work/program.c")
[ "$lines" -le 40 ] || fail "the program has $lines lines"

flags=()
case $(option AGENTWAL_SANITIZE) in
address) flags=("-fsanitize=address,undefined") ;;
thread) flags=(-fsanitize=thread) ;;
esac
"$(option CMAKE_C_COMPILER)" -std=c11 -Wall -Wextra -Werror "${flags[@]}" \
    -I "$AGENTWAL_SOURCE/engine/include" "$work/program.c" \
    -o "$work/program" -L "$AGENTWAL_BUILD/lib" -lagentwal \
    -Wl,-rpath,"$AGENTWAL_BUILD/lib"
code 0 "$work/program" "$store"
diff "$work/expected" "$work/stdout" >&2 || fail "the output differs from README.md"
[ ! -s "$work/stderr" ] || fail "$(cat "$work/stderr")"

# A failure is printed, and sets the exit code.
touch "$work/file"
code 1 "$work/program" "$work/file"
grep -q "a file, not a directory" "$work/stderr" || fail "an error is not printed"
