#!/usr/bin/env bash
# --cwd of list, latest, resume and search: a directory and a link to it are one,
# and so are the ways to write its path.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

work=$(cd "$work" && pwd -P)
export AGENTWAL_STORE=$store HOME=$work
folder=$work/.claude/projects/-x
mkdir -p "$work/real/proj" "$folder"
ln -s real "$work/link"

# session ID CWD SECOND: CWD as JSON.
session() {
    printf '{"type":"user","uuid":"%s","sessionId":"%s","cwd":"%s",' "$1-1" "$1" "$2"
    printf '"parentUuid":null,"timestamp":"2026-02-03T09:00:0%s.000Z",' "$3"
    printf '"message":{"role":"user","content":"hello"}}\n'
}
add() {
    session "$@" >"$folder/$1.jsonl"
}
add real "$work/real/proj" 1
add link "$work/link/proj" 2
add slashes "$work//real/proj/" 3
add other "$work/real" 4
add drive 'C:\\w\\p' 5
add lower 'c:\\w\\p' 6
add forward c:/w//p/ 7
add gone /gone//x/ 8
agentwal import "$work/.claude" >/dev/null

# ids: of the objects on standard input, in their order.
ids() {
    sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p' | uniq | tr '\n' ' '
}
# is IDS DIRECTORY
is() {
    same "$1" "$(agentwal list --json --cwd "$2" | ids)" "list of $2"
    same "$1" "$(agentwal resume --json --cwd "$2" </dev/null | ids)" "resume in $2"
    same "$1" "$(agentwal search --json --cwd "$2" hello | ids)" "search in $2"
    same "${1%% *}" "$(agentwal latest --cwd "$2")" "latest of $2"
}
cd "$work"
is 'slashes link real ' real/proj
is 'slashes link real ' "$work/link/proj"
is 'slashes link real ' "$work//link///proj/"
is 'other ' link
is 'forward lower drive ' 'C:\w\p'
is 'forward lower drive ' c:/w/p
is 'gone ' /gone/x
same '' "$(agentwal list --json --cwd /gone | ids)" 'list of a directory without sessions'
cd link/proj
same slashes "$(agentwal show --json @latest | field sessionId)" 'the latest session here'

same 'C:/w/p' "$(agentwal show --json lower | field projectId)" 'project of a lower drive letter'
same 'C:/w/p' "$(agentwal show --json drive | field projectId)" 'project of backslashes'
same /gone/x "$(agentwal show --json gone | field projectId)" 'project of doubled slashes'

# A limit and its cursor count the sessions of the directory.
first=$(agentwal list --json --cwd . --limit 2 --cursor 2>"$work/cursor")
same 'slashes link ' "$(ids <<<"$first")" 'first page'
same 'real ' "$(agentwal list --json --cwd . --after "$(cat "$work/cursor")" | ids)" 'second page'
