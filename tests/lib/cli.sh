# shellcheck shell=bash
# cli.sh - sourced by tests of the tools: a private folder, and checks that
# print the expected value.

set -euo pipefail
: "${WALBIN:?WALBIN must name the folder of the tools}"
PATH=$WALBIN:$PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/agentwal-cli.XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2034  # for those who source this
store=$work/store

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# code N COMMAND...: the command ends with that exit code. Its output is in
# $work/stdout and $work/stderr.
code() {
    local expected=$1 got=0
    shift
    "$@" >"$work/stdout" 2>"$work/stderr" || got=$?
    if [ "$got" -ne "$expected" ]; then
        cat "$work/stderr" >&2
        fail "exit code $got, not $expected: $*"
    fi
}

# delete_session STORE SESSION: deletes it for good; its records stay in the
# files of the store, as after a call of the library.
delete_session() {
    "${AGENTWAL_BUILD:?}/tests/delete_session" "$@"
}

# same EXPECTED GOT WHAT
same() {
    [ "$1" = "$2" ] || fail "$3: expected '$1', got '$2'"
}

# json EXPRESSION [FILE]: a Python expression over rows, the list of the JSON
# values that are the lines of the file or of standard input; true or fails.
json() {
    python3 -ISc '
import json, sys
text = open(sys.argv[2], "rb") if len(sys.argv) > 2 else sys.stdin.buffer
rows = [json.loads(line) for line in text]
result = eval("(" + sys.argv[1] + ")")
if result is not True:
    print("got", result, "of", rows[:3], file=sys.stderr)
    sys.exit(1)
' "$@" || fail "not so: $1"
}

# field NAME [FILE]: that member of the first JSON line.
field() {
    python3 -ISc '
import json, sys
text = open(sys.argv[2], "rb") if len(sys.argv) > 2 else sys.stdin.buffer
print(json.loads(next(iter(text)))[sys.argv[1]])
' "$@"
}

# name_all STORE: sets the array `named` to the options of an export that name
# every session, also those that are in no view of all sessions.
# shellcheck disable=SC2034  # for those who source this
name_all() {
    mapfile -t named < <(agentwal --store "$1" list --json | python3 -ISc '
import json, sys
for line in sys.stdin.buffer:
    print("--session", json.loads(line)["sessionId"], sep="\n")')
    [ "${#named[@]}" -gt 0 ] || fail "no session in $1"
}
