#!/usr/bin/env bash
# example.sh [FOLDER]: examples/agent.mts, of at most 60 lines, compiles strictly;
# it continues its session, records a file before its tool changes it, keeps an
# interrupted answer and that of a killed process, forks and rewinds. FOLDER has
# the package installed; without, the sources are used.
set -euo pipefail

# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

source=$AGENTWAL_SOURCE/bindings/node
mkdir -p example/node_modules example/work
if [ $# -gt 0 ]; then
    ln -s "$(cd "$1" && pwd -P)/node_modules/agentwal" example/node_modules/agentwal
else
    ln -s "$source" example/node_modules/agentwal
fi
ln -s "$source/node_modules/@types" example/node_modules/@types
cp "$AGENTWAL_SOURCE/examples/agent.mts" example
cd example
lines=$(wc -l <agent.mts)
[ "$lines" -le 60 ] || fail "it has $lines lines"
node "$source/node_modules/typescript/bin/tsc" --strict --target es2022 \
    --module nodenext --noUnusedLocals agent.mts
cd work
export AGENTWAL_STORE=$store

# talk PROMPT...: one run of the agent with these prompts.
talk() {
    { [ $# -eq 0 ] || printf '%s\n' "$@"; } | node ../agent.mjs "$store"
}

same 'I wrote it down.
I wrote' "$(talk hello stop | sed 's/ $//')" 'the answers of a new session'
same stop "$(cat note.txt)" "the tool's file"
session=$(agentwal latest)
agentwal cat --json "$session" | json \
    '[(r["payload"]["role"], r["payload"].get("stopReason")) for r in rows] == [
        ("system", None), ("user", None), ("assistant", "end"),
        ("user", None), ("assistant", "aborted")]'

# The first file of the second turn is that of the first one.
agentwal rewind "$session" \
    "$(agentwal checkpoints --json "$session" | sed -n 2p | field checkpointId)" \
    >/dev/null
same hello "$(cat note.txt)" 'the file before the second tool'

# The next process continues in a fork, and takes a turn back.
same 'system: You take notes.
user: hello
assistant: I wrote it down.
user: stop
assistant: I wrote
I wrote it down.
I wrote it down.' "$(talk /fork more /undo last | sed 's/ $//')" 'the resumed session'
fork=$(agentwal latest)
[ "$fork" != "$session" ] || fail 'there is no fork'
same 5 "$(agentwal cat --json "$session" | wc -l)" 'entries of the source'
same 7 "$(agentwal cat --json "$fork" | wc -l)" 'entries of the fork'
! agentwal cat "$fork" | grep -q more || fail 'the turn was not taken back'
same last "$(cat note.txt)" 'the file after the undo'

# What a process that died left of an answer becomes a message.
printf '%s\n' '{"type":"message","payload":{"role":"user","content":"Go on."}}' \
    '{"type":"message_delta_batch","payload":{"text":"On it"}}' \
    '{"type":"message_delta_batch","payload":{"text":" goes"}}' |
    agentwal append "$fork" >/dev/null
same 'On it goes' "$(talk | tail -1)" 'the answer that was cut off'
agentwal cat --json "$fork" | tail -1 | json \
    '[(r["payload"]["content"], r["payload"]["stopReason"]) for r in rows] == [
        ("On it goes", "aborted")]'
same 9 "$(agentwal cat --json --deltas "$fork" | wc -l)" 'entries after that'
agentwal check >/dev/null
