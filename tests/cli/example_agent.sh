#!/usr/bin/env bash
# examples/agent.c, of 60 to 120 lines: creates or resumes, records a file before
# its tool changes it, keeps an interrupted answer, and forks.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

agent=$AGENTWAL_BUILD/tests/agent
lines=$(wc -l <"$AGENTWAL_SOURCE/examples/agent.c")
if [ "$lines" -lt 60 ] || [ "$lines" -gt 120 ]; then
    fail "it has $lines lines"
fi
mkdir "$work/tree"
cd "$work/tree"

# talk PROMPT...: one run of the agent with these prompts.
talk() {
    printf '%s\n' "$@" | "$agent" "$store" >"$work/stdout"
}

talk one stop
same "I wrote it down.
I wrote " "$(cat "$work/stdout")" "the answers of a new session"
same stop "$(cat note.txt)" "the tool's file"
session=$(agentwal --store "$store" latest)
agentwal --store "$store" cat --json "$session" | json \
    '[r["payload"].get("stopReason") for r in rows]
        == [None, "end", None, "aborted"]'

# Each tool has a checkpoint: the file before it, and the entry of its prompt.
agentwal --store "$store" checkpoints --json "$session" >"$work/checkpoints"
json 'len(rows) == 2 and all(r["entryId"] for r in rows)' "$work/checkpoints"
agentwal --store "$store" rewind "$session" \
    "$(sed -n 2p "$work/checkpoints" | field checkpointId)" >/dev/null
same one "$(cat note.txt)" "the file before the second tool"

# The next process resumes it, and a fork leaves it as it was.
talk /fork two
same 4 "$(grep -c '^{' "$work/stdout")" "the messages of the resumed session"
same "" "$(agentwal --store "$store" cat "$session" | sed -n 5p)" \
    "the source of the fork"
fork=$(agentwal --store "$store" latest)
[ "$fork" != "$session" ] || fail "there is no fork"
same 6 "$(agentwal --store "$store" cat "$fork" | wc -l)" "the fork's entries"
agentwal --store "$store" check >/dev/null

# What cannot be stored ends it.
touch "$work/file"
code 1 "$agent" "$work/file" </dev/null
grep -q '^agent: .*a file, not a directory' "$work/stderr" || fail "no reason"
