#!/usr/bin/env bash
# quickstart.sh [--bin FOLDER] [--store STORE] [FILE|FOLDER]
#
# Builds agentwal and demonstrates it with a session file, or with the session
# files of a folder: imports them into a new store, shows a tree, exports them
# byte for byte, forks a session, rewinds a file, and checks the store. Without
# an argument the session is tools/example/session.jsonl.
#
# --bin     use the tools in this folder instead of building them
# --store   the new store, which is kept; without it the store is made again in
#           the build directory each time
#
# Installs missing build dependencies (Debian 12), as root or with sudo.
# Exits with 0 when all is done, 1 if a step failed, 2 for wrong arguments, 3 if
# packages are missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

bin=
store=
input=$root/tools/example/session.jsonl
while [ $# -gt 0 ]; do
    case $1 in
    --bin | --store)
        [ $# -ge 2 ] || quit 2 "$1 needs a folder"
        [ "$1" = --bin ] && bin=$(realpath -m -- "$2")
        [ "$1" = --store ] && store=$(realpath -m -- "$2")
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) quit 2 "unknown option $1 (see --help)" ;;
    *) input=$(realpath -m -- "$1") ;;
    esac
    shift
done
[ -e "$input" ] || quit 2 "$input: no such file or folder"
[ -r "$input" ] || quit 2 "$input: cannot be read"
[ -s "$input" ] || quit 2 "$input: is empty"
if [ -n "$store" ] && [ -e "$store" ]; then
    quit 2 "$store: exists; name a new folder"
fi

# build TREE: without a word unless it fails.
build() {
    local log=$1/quickstart.log options=()
    if [ ! -e "$1/CMakeCache.txt" ] && deps_command ninja; then
        options=(-G Ninja)
    fi
    printf 'Building in %s, which takes about a minute the first time ...\n' "$1"
    {
        cmake -S "$root" -B "$1" "${options[@]}" -DCMAKE_BUILD_TYPE=Release &&
            cmake --build "$1" -j "$(nproc)"
    } >"$log" 2>&1 || {
        tail -n 30 "$log" >&2
        quit 1 "the build failed; $log has all of its output"
    }
}

tree=
if [ -z "$bin" ]; then
    deps_install "$deps_build"
    tree=$(deps_build_dir "$root" quickstart)
    build "$tree"
    bin=$tree/bin
fi
[ -x "$bin/agentwal" ] || quit 2 "$bin: has no agentwal"
work=$(mktemp -d "${TMPDIR:-/tmp}/agentwal.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ -z "$store" ]; then
    store=${tree:-$PWD}/quickstart-store
    # A store of an earlier run, and nothing else.
    [ ! -e "$store/MANIFEST" ] || rm -rf "$store"
    [ ! -e "$store" ] || quit 2 "$store: exists, and is no store"
fi
export PATH=$bin:$PATH AGENTWAL_STORE=$store

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
    bold=$'\e[1m' plain=$'\e[0m'
fi

# part HEADING SENTENCE
part() {
    printf '\n%s%s%s\n%s\n\n' "$bold" "$1" "$plain" "$2"
}

# show COMMAND...: prints the command and the beginning of its output.
show() {
    local lines
    printf '    %s %s\n' "${prompt-$}" "$*"
    "$@" >"$work/output" 2>&1 || {
        cat "$work/output" >&2
        quit 1 "$1 failed"
    }
    lines=$(wc -l <"$work/output")
    sed -n '1,16s/^/    /p' "$work/output"
    [ "$lines" -le 16 ] || printf '    ... (%d more lines)\n' $((lines - 16))
}

# field NAME: of the JSON on standard input, the first value that is a text.
field() {
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -1
}

part 'Import' 'A session file becomes a session, and each of its lines an entry.'
show agentwal import "$input"
[ -e "$store/MANIFEST" ] || quit 1 "$input: has no session files"
if [ -d "$input" ]; then
    show agentwal list --limit 8
    session=$(agentwal list --json --limit 1 | field sessionId)
else
    session=$(agentwal show --json "$input" | field sessionId)
fi
[ -n "$session" ] || quit 1 "$input: has no session files"

part 'Tree' 'A session is a tree: a branch that was abandoned is still there.'
show agentwal tree "$session"

part 'Export' 'What was imported is exported as the same bytes.'
agentwal export --dialect source "$work/export" >/dev/null
count=0
while IFS= read -r -d '' file; do
    original=$input
    [ ! -d "$input" ] || original=$input/${file#"$work/export/"}
    cmp -- "$file" "$original" || quit 1 "$file differs from $original"
    count=$((count + 1))
done < <(find "$work/export" -type f -not -path '*/.agentwal/*' -print0)
printf '    $ agentwal export --dialect source FOLDER\n'
printf '    files exported: %d; different from the original: 0\n' "$count"

part 'Fork' 'A fork is two records, whatever the length of the session.'
show agentwal fork "$session"
fork=$(head -1 "$work/output")
entry='{"type":"note","payload":{"text":"written to the fork"}}'
printf "    \$ echo '%s' |\n" "$entry"
printf '%s\n' "$entry" | prompt=' ' show agentwal append "$fork"

part 'Rewind' 'Files that an agent changed go back to a checkpoint.'
printf 'first\n' >"$work/note.txt"
show agentwal checkpoint "$session" before --root "$work" note.txt
printf 'first\nsecond\n' >"$work/note.txt"
show agentwal checkpoint-diff "$session" before
show agentwal rewind "$session" before
[ "$(cat "$work/note.txt")" = first ] || quit 1 'the file was not rewound'

part 'Check' 'Every byte of the store has a checksum.'
show agentwal check

part 'Go on' "The store is $store. In this shell:"
cat <<COMMANDS
    export PATH='$bin':\$PATH
    export AGENTWAL_STORE='$store'
    agentwal list
    agentwal tree ${fork}
    agentwal help

Without AGENTWAL_STORE the store is ~/.local/share/agentwal. To fill it with your
sessions of Claude Code, Codex and other clients:

    agentwal adopt
COMMANDS
