#!/usr/bin/env bash
# agentwal usage: what sessions of each dialect state, what is counted once, the
# groups, list prices, and bad input.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store HOME=$work TZ=UTC

# counts CLIENT: requests, input, output, cache read and write, reasoning, total
# and stated cost of a client that states something.
counts() {
    agentwal usage --by client --json >rows 2>stderr || fail "usage: $(cat stderr)"
    python3 -ISc '
import json, sys
for row in map(json.loads, open("rows")):
    if row["client"] == sys.argv[1] and row["requests"] + row["costed"] > 0:
        stated = row["cost"] - (row["computedCost"] or 0) if row["costed"] else None
        print(*[row[key] for key in (
            "requests", "inputTokens", "outputTokens", "cacheReadTokens",
            "cacheWriteTokens", "reasoningTokens", "totalTokens")],
            0 if stated == 0 else stated and round(stated, 9))
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
same '7 380 160 90 10 6 640 None' "$(counts codex)" codex
agentwal usage --by model --json >rows
json 'any(row["model"] == "gpt-5.2" and row["requests"] == 7 for row in rows)' rows
agentwal import pi >/dev/null 2>&1
same '2 11 22 3 4 0 40 0.75' "$(counts pi)" pi

# OpenCode, entries and the SDK's layout, as the golden sessions have them.
agentwal import "$AGENTWAL_SOURCE"/tests/golden/model/opencode >/dev/null 2>&1
same '4 4 8 16 20 12 60 1' "$(counts opencode)" opencode
agentwal import "$AGENTWAL_SOURCE"/tests/golden/model/entries.jsonl >/dev/null 2>&1
same '2 2 4 3 4 0 13 0.75' "$(counts entries)" entries
agentwal import "$AGENTWAL_SOURCE"/tests/golden/model/sdk >/dev/null 2>&1
same '0 0 0 0 0 0 0 0.5' "$(counts sdk)" sdk

# Qwen Code: the prompt includes what was cached; a fork has the same records.
agentwal import "$AGENTWAL_SOURCE"/tests/golden/model/qwen.jsonl >/dev/null 2>&1
same '7 658 49 66 0 5 773 None' "$(counts qwen)" qwen
sed 's/11111111-2222/11111112-2222/g' "$AGENTWAL_SOURCE"/tests/golden/model/qwen.jsonl >fork.jsonl
agentwal import fork.jsonl >/dev/null 2>&1
same '7 658 49 66 0 5 773 None' "$(counts qwen)" 'a fork of qwen'

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
json 'any(row["cwd"] == "/srv/tool" and row["requests"] == 7 for row in rows)' rows
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

# List prices. The tokens are round, so that costs are whole dollars.
export AGENTWAL_STORE=$work/priced
agentwal init >/dev/null 2>&1
cat >prices <<'END'
{"about": {"date": "2026-05-04", "source": "made up"},
 "Plain": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-05, "mode": "chat"},
 "all": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-05,
  "cache_read_input_token_cost": 2e-06, "cache_creation_input_token_cost": 3e-06,
  "cache_creation_input_token_cost_above_1hr": 4e-06, "output_cost_per_reasoning_token": 2e-05,
  "output_cost_per_token_above_2000k_tokens": 5e-05,
  "input_cost_per_token_above_2000k_tokens": 6e-06,
  "input_cost_per_token_above_9000k_tokens": 7e-06, "input_cost_per_token_priority": 1,
  "output_cost_per_image": "none", "input_cost_per_token_above_1k_images": 1,
  "provider_specific_entry": {"fast": 3}},
 "day-2026-01-02": {"input_cost_per_token": 5e-06, "output_cost_per_token": 0},
 "day": {"input_cost_per_token": 1e-06, "output_cost_per_token": null},
 "day\u0032": {"input_cost_per_token": 2e-06, "output_cost_per_token": 0},
 "part": {"input_cost_per_token": 2e-06}}
END
# priced EXPECTED MODEL USAGE NAME: a session with a request of that model. EXPECTED: its cost, the
# number of requests that state one, of those that are computed, and of those without a price.
mkdir cases
count=0
priced() {
    count=$((count + 1))
    printf '{"type":"session","version":3,"id":"case-%s","cwd":"/p"}\n%s\n' "$count" \
        "{\"type\":\"message\",\"id\":\"0000$((1000 + count))\",\"parentId\":null,\
\"timestamp\":\"2026-03-01T10:00:00.000Z\",\"message\":{\"role\":\"assistant\",\"content\":[],\
\"model\":\"$2\",\"usage\":${3//$'\n'/}}}" >"cases/case-$count.jsonl"
    printf 'case-%s\t%s\t%s\n' "$count" "$1" "$4" >>expected
}
million='"input_tokens":1000000'
priced '1 0 1 0' plain "{$million}" 'a name in other letters'
priced '1 0 1 0' a/b/PLAIN "{$million}" 'a provider before the name'
priced '1 0 1 0' plain-20260203 "{$million}" 'a version of the model'
priced '1 0 1 0' x/plain-2026-02-03 "{$million}" 'both'
priced '5 0 1 0' day-2026-01-02 "{$million}" 'a version with its own price'
priced '2 0 1 0' day2 "{$million}" 'an escaped name'
for model in plain-2026-02-033 plain-latest plain- lain plain-2026-2-3 day part about '' \
    -20260203; do
    priced 'None 0 0 1' "$model" "{$million}" "no price of $model"
done
priced '0.5 1 0 0' plain "{$million,\"cost\":0.5}" 'a stated cost'
priced '0 1 0 0' plain "{$million,\"cost\":0}" 'a stated cost of nothing'
priced 'None 0 0 0' plain '{"input_tokens":0}' 'no tokens'
priced '2 0 1 0' plain '{"input_tokens":1000000,"cache_read_input_tokens":500000,
    "cache_creation_input_tokens":500000}' 'a cache without a price'
priced '1 0 1 0' all "{$million}" input
priced '2 0 1 0' all '{"input_tokens":1000000,"cached_input_tokens":1000000}' 'read'
priced '3 0 1 0' all '{"cache_creation_input_tokens":1000000}' 'written'
priced '3.25 0 1 0' all '{"cache_creation_input_tokens":1000000,
    "cache_creation":{"ephemeral_1h_input_tokens":250000}}' 'written for an hour'
priced '4 0 1 0' all '{"cache_creation_input_tokens":1000000,
    "cache_creation":{"ephemeral_1h_input_tokens":9000000}}' 'more for an hour than written'
priced '12.5 0 1 0' all '{"output":1000000,"reasoning":250000}' 'reasoning'
priced '20 0 1 0' all '{"output":1000000,"reasoning":9000000}' 'reasoning above output'
priced '2 0 1 0' all '{"input_tokens":2000000}' 'the last size of a tier'
priced '12.000006 0 1 0' all '{"input_tokens":2000001}' 'a larger request'
priced '70 0 1 0' all '{"input_tokens":10000000}' 'a still larger one'
priced '69 0 1 0' all '{"input_tokens":2000000,"cache_creation_input_tokens":1000000,
    "cache_creation":{"ephemeral_1h_input_tokens":1000000},"output":1000000,
    "cache_read_input_tokens":1500000}' 'a larger request with all kinds'
priced '3 0 1 0' all "{$million,\"speed\":\"fast\"}" 'a fast answer'
priced 'None 0 0 1' plain "{$million,\"speed\":\"fast\"}" 'no price of fast answers'
agentwal import cases >/dev/null 2>&1
agentwal usage --by session --json --prices prices >rows
python3 -ISc 'import json
rows = {row["sessionId"]: row for row in map(json.loads, open("rows"))}
for line in open("expected"):
    session, expected, name = line.rstrip("\n").split("\t")
    row = rows.get(session, {"cost": None, "costed": 0, "computed": 0, "unpriced": 0})
    got = " ".join(str(row[key]) for key in ("cost", "costed", "computed", "unpriced"))
    assert got == expected, (name, got, expected)' || fail 'a price'
export AGENTWAL_STORE=$work/priced-2
agentwal init >/dev/null 2>&1
agentwal create --id open >/dev/null
printf '{"id":"msg_e","role":"assistant","modelID":"all","tokens":%s}' \
    '{"input":0,"output":1000000,"reasoning":1000000,"cache":{"read":0,"write":0}}' |
    agentwal doc put open message/ses_d/msg_e.json >/dev/null
agentwal usage --json --prices prices >rows
json 'rows[0]["cost"] == 30' rows
agentwal create --id unknown --cwd /srv/app >/dev/null
for model in no-1 no-1 no-2 ''; do
    printf '{"type":"message","payload":{"model":"%s","usage":{"input":5}}}\n' "$model" |
        agentwal append unknown >/dev/null
done
code 0 agentwal usage --prices prices
grep -q '~[$]30\.00$' stdout || fail 'no mark of a computed cost'
grep -q 'computed with prices of 2026-05-04 for 1 of 5 requests' stderr || fail 'no source'
grep -q 'no price of no-1 (2 requests), no-2 (1 request), requests without a model (1 request)$' \
    stderr || fail "no names: $(cat stderr)"
# Lines of other clients: Copilot CLI sums up a session, Gemini CLI writes a growing message again,
# and Kimi Code has sums of several scopes.
# lines CLIENT: requests, tokens and computed cost of the lines on standard input.
lines() {
    local session
    session=$(agentwal create)
    while read -r line; do
        printf '{"type":"line","payload":%s}\n' "$line"
    done | agentwal append "$session" >/dev/null
    agentwal usage --by session --json --prices prices >rows
    agentwal delete "$session" >/dev/null
    python3 -ISc 'import json, sys
for row in map(json.loads, open("rows")):
    if row["sessionId"] == sys.argv[1]:
        print(*[row[key] for key in (
            "requests", "inputTokens", "outputTokens", "cacheReadTokens",
            "cacheWriteTokens", "reasoningTokens", "totalTokens", "computedCost", "unpriced")])
' "$session"
}
metrics='"requests":{"count":3},"usage":{"inputTokens":3000000,"cacheReadTokens":1000000,
    "cacheWriteTokens":500000,"outputTokens":200000,"reasoningTokens":100000}'
few='"no":{"requests":{"count":2},"usage":{"inputTokens":2,"outputTokens":1}},"odd":7'
same '5 1500002 200001 1000000 500000 100000 3200003 8 2' "$(lines <<END
{"type":"session.start","data":{"sessionId":"s-1"}}
{"type":"session.shutdown","data":{"modelMetrics":{"all":{"usage":{"inputTokens":5}}}}}
{"type":"session.shutdown","data":{"modelMetrics":{"all":{${metrics//$'\n'/}},$few}}}
END
)" 'Copilot CLI'
same '3 2 17 5 0 4 24 None 3' "$(lines <<'END'
{"sessionId":"s-2","projectHash":"a","kind":"main"}
{"id":"m1","type":"gemini","model":"no","tokens":{"input":5,"output":1,"cached":4}}
{"id":"m1","type":"gemini","model":"no","tokens":{"input":5,"output":9,"cached":4,"thoughts":4}}
{"$set":{"messages":[{"id":"m1","tokens":{"input":5,"output":1}},7,{"tokens":[]}]}}
{"$set":{"messages":[{"id":"m2","tokens":{"input":1,"output":3}}]}}
{"$set":{"messages":[{"id":"m3","tokens":{"input":1,"output":1,"cached":9}}]}}
END
)" 'Gemini CLI'
record='"type":"usage.record","model":"no","usage":{"inputOther":10,"output":20'
cached='"inputCacheRead":30,"inputCacheCreation":40'
same '2 20 40 60 80 0 200 None 2' "$(lines <<END
{$record,$cached},"usageScope":"turn"}
{$record,$cached}}
{$record},"usageScope":"session"}
END
)" 'Kimi Code'
cached='"input_cache_read":30,"input_cache_creation":40'
record='{"message":{"type":"StatusUpdate","payload":{"token_usage":'
same '1 10 20 30 40 0 100 None 1' "$(lines <<END
${record}null}}}
$record{"input_other":10,"output":20,$cached}}}}
END
)" 'Kimi CLI'
agentwal create --id silent >/dev/null
agentwal import "$AGENTWAL_SOURCE/tests/golden/model/rollouts.jsonl" >/dev/null 2>&1
code 0 agentwal usage --by client
grep -q 'rollouts: 1 session states no token counts' stderr || fail "silence: $(cat stderr)"
grep -q '^rollouts$' stdout || fail "no row of a client without counts: $(cat stdout)"
code 0 agentwal usage --by model
grep -q 'list prices of 20' stderr || ! grep -q computed stderr || fail 'no date'

# Bad tables of prices.
# bad CODE TEXT: the table on standard input is refused with that sentence.
bad() {
    cat >bad
    code "$1" agentwal usage --prices bad
    grep -Fq -- "$2" stderr || fail "no \"$2\" in: $(cat stderr)"
    [ ! -s stdout ] || fail 'a table with bad prices'
}
code 3 agentwal usage --prices missing
grep -q 'missing: No such file' stderr || fail 'no cause'
code 3 agentwal usage --prices "$work"
code 2 agentwal usage --prices ''
code 3 agentwal view unknown --prices missing
code 3 agentwal serve --prices missing
both='"input_cost_per_token":1e-06,"output_cost_per_token":1e-06'
bad 2 'line 1: text ends inside a value' </dev/null
bad 2 'line 2: unexpected byte' <<<$'{"m":\nx}'
bad 2 'line 2: text ends inside a value' <<<'{"m":{'
bad 2 'line 1: a table of prices is a JSON object' <<<'[]'
bad 2 'line 1: ill-formed UTF-8' < <(printf '{"\377":1}')
bad 2 'line 1: raw NUL byte' < <(printf '{"m":\0}')
bad 2 'line 1: a member is no object with prices of a model' <<<'{"m":3}'
bad 2 'no model has an input_cost_per_token' <<<'{}'
bad 2 'no model has an input_cost_per_token' <<<'{"m":{"input_cost_per_token":1e-06}}'
for value in '"1e-06"' -1 1e999 true '{}' '[1]'; do
    bad 2 'line 2: m: a price is a number of US dollars' \
        <<<$'{\n"m":{"input_cost_per_token":'"$value}}"
done
bad 2 'line 1: m: more than a cent for a token' <<<'{"m":{"input_cost_per_token":3}}'
bad 2 'line 2: m: this model is in the table twice' <<<"{\"m\":{$both},"$'\n'"\"M\":{$both}}"
bad 2 'line 1: m: states a price twice' <<<"{\"m\":{$both,$both}}"
bad 2 'the name of a model is longer' <<<"{\"$(printf '%300s' '' | tr ' ' m)\":{$both}}"
bad 2 'more than 4 sizes' <<<"{\"m\":{$(for n in 1 2 3 4; do
    printf '"input_cost_per_token_above_%sk_tokens":1e-06,' "$n"; done)$both}}"
bad 2 'nested too deeply' <<<"{\"m\":$(printf '%600s' '' | tr ' ' '[')"
unset AGENTWAL_STORE
export AGENTWAL_STORE=$store

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
