#!/usr/bin/env bash
# examples/shared_agent.c: resumes, keeps interrupted answers, forks, and undoes
# files and conversation together.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

agent=$AGENTWAL_BUILD/tests/shared_agent
mkdir "$work/tree"
cd "$work/tree"

# talk PROMPT...: one run of the agent with these prompts.
talk() {
    printf '%s\n' "$@" | "$agent" "$store" >"$work/stdout"
}
# answers: the texts of the conversation's assistant.
answers() {
    walcat --text "$store" @latest | grep -A 1 '^assistant' |
        grep -v -e '^assistant' -e '^--' -e '^\[call'
}

talk one stop
same "new session" "$(head -1 "$work/stdout")" "the first run"
same stop "$(cat note.txt)" "the tool's file"
same "I wrote it down.
I wrote " "$(answers)" "an answer, and an interrupted one"
walcat --json "$store" @latest | json \
    'rows[-1]["payload"]["stopReason"] == "aborted"'

# The next process continues; an undo goes back to before the last prompt.
session=$(agentwal latest)
talk /undo
same "resumed session" "$(head -1 "$work/stdout")" "the second run"
same one "$(cat note.txt)" "the file after an undo"
same "I wrote it down." "$(answers)" "the conversation after an undo"
talk /undo
[ ! -e note.txt ] || fail "the file is there after all was undone"
same "" "$(answers || true)" "an empty conversation"

# A fork is the newest session; what is undone in it stays in its source.
talk two /fork three
same three "$(cat note.txt)" "the file of the fork"
[ "$(agentwal latest)" != "$session" ] || fail "there is no fork"
talk /undo
same two "$(cat note.txt)" "the file after an undo in the fork"

# A killed process leaves deltas; the next one makes a message of them.
printf '{"type":"message_delta_batch","payload":{"text":"%s"}}\n' "Half " "of" |
    agentwal append @latest --each >/dev/null
talk four
grep -qxF 'assistant: Half of (aborted)' "$work/stdout" ||
    fail "the deltas of a killed process are lost"

# Another process appends in between: the agent continues in a fork.
mkfifo "$work/prompts"
"$agent" "$store" <"$work/prompts" >"$work/stdout" &
exec 9>"$work/prompts"
printf 'five\n' >&9
until [ "$(cat note.txt)" = five ]; do
    [ -d "/proc/$!" ] || fail "the agent ended"
    sleep 0.05
done
source=$(agentwal latest)
printf '{"id":"other","type":"note","payload":{"text":"mine"}}\n' |
    agentwal append "$source" >/dev/null
printf 'six\n' >&9
exec 9>&-
wait
grep -qxF '(fork)' "$work/stdout" || fail "a conflict made no fork"
same "mine" "$(walcat --text "$store" "$source" | sed -n '/^.note/{n;p}')" \
    "the entry of the other process"
[ "$(agentwal latest)" != "$source" ] || fail "six is not in a fork"
walcheck "$store" >/dev/null
