#!/usr/bin/env bash
# quickstart.sh [--keep] [SESSION.jsonl]
#
# Builds agentwal and demonstrates it with one session: imports it into a new
# store, prints its tree, forks it, appends to the fork, records a file and
# rewinds it, checks the store, and exports the session byte for byte. Without
# an argument the session is tools/example/session.jsonl.
#
# --keep    keep the store and the exported file
#
# Installs missing build dependencies (Debian 12), as root or with sudo.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

keep=
file=$root/tools/example/session.jsonl
while [ $# -gt 0 ]; do
    case $1 in
    --keep) keep=1 ;;
    -h | --help)
        sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    -*)
        printf 'quickstart.sh: unknown option %s\n' "$1" >&2
        exit 2
        ;;
    *) file=$(realpath -- "$1") ;;
    esac
    shift
done
if [ ! -r "$file" ]; then
    printf 'quickstart.sh: %s: cannot be read\n' "$file" >&2
    exit 2
fi

# show COMMAND...: prints the command to the script's output, even if the
# command's output is captured, and runs it.
exec 3>&1
show() {
    printf '\n$ %s\n' "$*" >&3
    "$@"
}

deps_install "$deps_build"
build=$(deps_build_dir "$root" quickstart)
printf 'Building in %s\n' "$build"
cmake -S "$root" -B "$build" -G Ninja -DAGENTWAL_TESTS=OFF \
    -DAGENTWAL_BENCH=OFF >"$build/configure.log" ||
    { cat "$build/configure.log" && exit 1; }
cmake --build "$build"
PATH=$build/bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/agentwal.XXXXXX")
if [ -z "$keep" ]; then
    trap 'rm -rf "$work"' EXIT
fi
store=$work/store

show walctl init "$store"
show walconv import "$store" "$file"
session=$(show walctl latest "$store")
printf '%s\n' "$session"
show walcat --tree "$store" "$session"

fork=$(show walctl fork "$store" "$session")
printf '%s\n' "$fork"
entry='{"type":"note","payload":{"text":"written to the fork"}}'
printf "\n$ echo '%s' |" "$entry"
printf '%s\n' "$entry" |
    show walctl append --durability durable "$store" "$fork"
show walctl list "$store"

printf 'first\n' >"$work/note.txt"
show walctl checkpoint "$store" "$session" before --root "$work" note.txt
printf 'first\nsecond\n' >"$work/note.txt"
show walctl checkpoint-diff "$store" "$session" before
show walctl rewind "$store" "$session" before
show walcheck "$store"

show walconv export --dialect source --session "$session" \
    "$store" "$work/export"
show cmp "$work/export/$(basename "$file")" "$file"

printf '\n%s was exported byte for byte. The tools are in %s/bin.\n' \
    "$(basename "$file")" "$build"
if [ -n "$keep" ]; then
    printf 'The store and the exported file are in %s.\n' "$work"
fi
