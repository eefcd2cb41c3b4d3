#!/usr/bin/env bash
# agentwal usage: what sessions of each dialect state, what is counted once, the
# groups, and bad input.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store HOME=$work TZ=UTC

# counts CLIENT: requests, input, output, cache read and write, reasoning, total
# and cost of a client.
counts() {
    agentwal usage --by client --json >rows 2>stderr || fail "usage: $(cat stderr)"
    python3 -ISc '
import json, sys
for row in map(json.loads, open("rows")):
    if row["client"] == sys.argv[1]:
        print(*[row[key] for key in (
            "requests", "inputTokens", "outputTokens", "cacheReadTokens",
            "cacheWriteTokens", "reasoningTokens", "totalTokens", "cost")])
' "$1"
}

# Bad input.
code 3 agentwal usage
[ ! -e "$store" ] || fail 'usage made a store'
agentwal init >/dev/null 2>&1
code 2 agentwal usage more
code 2 agentwal usage --by hour
grep -q 'day, model, project, client or session' stderr || fail 'no list of groups'
code 2 agentwal usage --since yesterday
code 2 agentwal usage --until ''
code 0 agentwal usage
[ ! -s stdout ] || fail 'a table of nothing'
grep -q 'no session states' stderr || fail 'no note'
code 0 agentwal usage --json
same '' "$(cat stdout stderr)" 'output of nothing'

# Streamed and copied answers, repeated events, subagents, and copies of sessions:
# usage_sessions.py.
python3 -I "$AGENTWAL_SOURCE/tests/lib/usage_sessions.py" "$work"
codex=019b2ea4-aaaa-4bbb-8ccc-58208e1f0001
agentwal import claude >/dev/null 2>&1
same '6 57 77 5000 500 0 5634 0.25' "$(counts claude)" claude
agentwal usage --by model --json >rows
json '[(row["model"], row["requests"], row["totalTokens"], row["costed"]) for row in rows]
    == [("claude-opus-4-1", 5, 5619, 1), ("claude-haiku-4-5", 1, 15, 0)]' rows
agentwal import codex >/dev/null 2>&1
same '3 100 40 90 10 6 240 None' "$(counts codex)" codex
agentwal usage --by model --json >rows
json 'any(row["model"] == "gpt-5.2" and row["requests"] == 3 for row in rows)' rows
agentwal import pi >/dev/null 2>&1
same '2 11 22 3 4 0 40 0.75' "$(counts pi)" pi

# OpenCode, entries and the SDK's layout, as the golden sessions have them.
agentwal import "$AGENTWAL_SOURCE"/tests/golden/model/opencode >/dev/null 2>&1
same '4 4 8 16 20 12 60 1' "$(counts opencode)" opencode
agentwal import "$AGENTWAL_SOURCE"/tests/golden/model/entries.jsonl >/dev/null 2>&1
same '2 2 4 3 4 0 13 0.75' "$(counts entries)" entries
agentwal import "$AGENTWAL_SOURCE"/tests/golden/model/sdk >/dev/null 2>&1
same '0 0 0 0 0 0 0 0.5' "$(counts sdk)" sdk

# A new version of a document, with a fraction, counts instead of the old one; a deleted one not.
agentwal create --id docs >/dev/null
# answer OUTPUT
answer() {
    printf '{"id":"msg_d","sessionID":"ses_d","role":"assistant","modelID":"m","cost":0,'
    printf '"time":{"created":1770000000000},'
    printf '"tokens":{"input":1,"output":%s,"reasoning":2,"cache":{"read":0,"write":0}}}' "$1"
}
answer 5 | agentwal doc put docs message/ses_d/msg_d.json >/dev/null
answer 9.0 | agentwal doc put docs message/ses_d/msg_d.json >/dev/null
same '1 1 9 0 0 2 12 0' "$(counts agentwal)" 'a document'
agentwal doc delete docs message/ses_d/msg_d.json >/dev/null
same '' "$(counts agentwal)" 'a deleted document'

# Appended entries: equal ones are two, a fork adds nothing.
agentwal create --id own --cwd /srv/own >/dev/null
own='{"role":"assistant","model":"m-2","usage":{"input":1,"output":1,"reasoning":1,"cost":0.1}}'
for id in e1 e2; do
    agentwal append own <<<"{\"id\":\"$id\",\"type\":\"message\",\"payload\":$own}" >/dev/null
done
same '2 2 2 0 0 2 4 0.2' "$(counts agentwal)" appended
agentwal fork own --id own-fork >/dev/null
same '2 2 2 0 0 2 4 0.2' "$(counts agentwal)" 'a fork'

# Numbers that are no counts, and members of other kinds.
agentwal create --id odd --cwd /srv/odd >/dev/null
for usage in '{"input":-5,"output":1.5}' '{"input":1e3}' '{"input":"7","output":3}' \
    '{"input":99999999999999999999,"output":9223372036854775807}' \
    '{"output":9223372036854775807,"cost":1e999}' '{"cost":{"total":-1},"input":0}' \
    '[]' '7' 'null' '{}' '{"cost":5}'; do
    printf '{"type":"message","payload":{"role":"assistant","model":7,"usage":%s}}\n' "$usage" |
        agentwal append odd >/dev/null
done
agentwal usage --by session --json >rows
json '[(row["outputTokens"], row["totalTokens"], row["cost"]) for row in rows
    if row["sessionId"] == "odd"] == [(2**64 - 1, 2**64 - 1, None)]' rows
agentwal delete odd >/dev/null

# Groups.
agentwal usage --json >rows
json '[row["day"] for row in rows][:-1] == sorted(row["day"] for row in rows)[:-1]
    and rows[0]["day"] == "2026-01-02"' rows
agentwal usage --since 2026-02-04 --until 2026-02-05 --json >rows
json '[row["day"] for row in rows] == ["2026-02-04"]' rows
TZ=Pacific/Auckland agentwal usage --since 2026-02-04T12:00:00Z \
    --until 2026-02-05T12:00:00Z --json >rows
json '[row["day"] for row in rows] == ["2026-02-05"]' rows
agentwal usage --by project --json >rows
json 'any(row["cwd"] == "/srv/tool" and row["requests"] == 3 for row in rows)' rows
agentwal usage --by session --json >rows
json "any(row['sessionId'] == '$codex' and row['cwd'] == '/srv/tool' for row in rows)" rows
code 0 agentwal usage --by client
grep -Eq '^TOTAL ' stdout || fail 'no total'
same 3 "$(grep -Ec '^(claude|codex|pi) ' stdout)" 'rows of clients'

# Control characters of a model do not reach the terminal.
agentwal create --id evil >/dev/null
evil='{"role":"assistant","model":"a\u001b[31m\u202eb","usage":{"input":1,"output":1}}'
agentwal append evil <<<"{\"type\":\"message\",\"payload\":$evil}" >/dev/null
code 0 agentwal usage --by model
! grep -q $'\e' stdout || fail 'an escape was printed'
agentwal redact evil "$(agentwal cat --json evil | field id)" >/dev/null
code 0 agentwal usage --by session --json
json 'not any(row["sessionId"] == "evil" for row in rows)' stdout

agentwal delete own-fork >/dev/null
expected=$(counts claude)
agentwal gc --erase >/dev/null 2>&1
same "$expected" "$(counts claude)" 'after a compaction'

# While another process ends segments and replaces them. The records are in the
# segment that it ends first: of a store that it has not compacted yet.
cp -a "$store" "$work/before"
for _ in 1 2 3 4 5; do
    rm -rf "$store"
    cp -a "$work/before" "$store"
    agentwal append own <<<"{\"type\":\"message\",\"payload\":$own}" >/dev/null
    expected=$(counts agentwal)
    agentwal gc --erase >/dev/null 2>"$work/gc" &
    while kill -0 $! 2>/dev/null; do
        same "$expected" "$(counts agentwal)" 'during a compaction'
    done
    wait $! || fail "gc: $(cat "$work/gc")"
    same "$expected" "$(counts agentwal)" 'after it'
done

# The files of AGENTWAL_FIXTURES, against a count of the rows in Python.
if [ -d "${AGENTWAL_FIXTURES:-}/claude/projects" ]; then
    export AGENTWAL_STORE=$work/real
    agentwal import "$AGENTWAL_FIXTURES/claude/projects" >/dev/null 2>&1
    same "$(python3 -ISc '
import json, os, sys
seen = {}
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        if not name.endswith(".jsonl"):
            continue
        for line in open(os.path.join(folder, name), "rb"):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            message = row.get("message") if isinstance(row, dict) else None
            usage = message.get("usage") if isinstance(message, dict) else None
            if not usage:
                continue
            counts = [usage.get(key) or 0 for key in (
                "input_tokens", "output_tokens", "cache_read_input_tokens",
                "cache_creation_input_tokens")]
            key = (message.get("id"), row.get("requestId"))
            if key not in seen or sum(counts) > sum(seen[key]):
                seen[key] = counts
print(len(seen), *map(sum, zip(*seen.values())))
' "$AGENTWAL_FIXTURES/claude/projects")" "$(counts claude | cut -d ' ' -f 1-5)" 'real sessions'
fi
