#!/usr/bin/env bash
# Sessions exported as other clients' files, at the paths where these
# look for them, with a report of the losses; and imported again.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

made=${AGENTWAL_SOURCE:?}/tests/golden/model
out=$work/out
mkdir "$work/in"
cp "$made/pi.jsonl" "$work/in/pi.jsonl"
cp "$made/claude.jsonl" "$work/in/11111111-2222-4333-8444-555555555555.jsonl"
agentwal --store "$store" init
code 0 agentwal --store "$store" import --json "$work/in"

# The same client: the same bytes, at its path; a second export adds nothing.
code 0 agentwal --store "$store" export --json --dialect pi --session s-1 "$out"
json 'rows[0]["sessionId"] == "s-1" and rows[0]["dialect"] == "pi" and
    rows[0]["added"] == 20 and rows[0]["losses"] == []' "$work/stdout"
pi=$out/sessions/--home-u-p--/2026-01-02T03-04-05-678Z_s-1.jsonl
same "$pi" "$(field path "$work/stdout")" "path of a session of pi"
cmp "$pi" "$made/pi.jsonl"
code 0 agentwal --store "$store" export --json --dialect pi --session s-1 "$out"
json 'rows[0]["added"] == 0' "$work/stdout"
id=11111111-2222-4333-8444-555555555555
code 0 agentwal --store "$store" export --json --dialect claude --session "$id" "$out"
claude=$out/projects/-home-u-a-project/$id.jsonl
same "$claude" "$(field path "$work/stdout")" "path of a session of Claude Code"
cmp "$claude" "$made/claude.jsonl"
same "$pi" "$(agentwal --store "$store" path --dialect pi "$out" s-1)" "agentwal path"

# Another client: losses are counted by name.
code 0 agentwal --store "$store" export --json --dialect claude --session s-1 "$out"
json 'set(l["what"] for l in rows[0]["losses"]) == {
    "tool names of results", "providers of models", "costs of messages",
    "model changes", "thinking levels", "branch summaries, kept as messages",
    "kinds of messages that no person wrote", "client-specific fields"}' \
    "$work/stdout"
json 'all(l["count"] > 0 for l in rows[0]["losses"])' "$work/stdout"
other=$(field path "$work/stdout")
json 'all(r["parentUuid"] is None or r["parentUuid"] in
        {q["uuid"] for q in rows if "uuid" in q}
    for r in rows if "uuid" in r)' "$other"
json 'len({r["uuid"] for r in rows if "uuid" in r}) ==
    len([r for r in rows if "uuid" in r])' "$other"
json 'len({r["sessionId"] for r in rows}) == 1 and
    rows[0]["sessionId"] in "'"$other"'"' "$other"
code 0 agentwal --store "$store" export --dialect claude --session s-1 "$work/text"
grep -q '^  lost: 1 model changes$' "$work/stdout" || fail "no loss reported"

code 0 agentwal --store "$store" export --dialect claude "$work/all"
code 0 agentwal --store "$store" export --dialect claude -v "$work/each"
python3 - "$work/stdout" >"$work/sums" <<'PY'
import collections, re, sys
losses, files, lines = collections.Counter(), 0, 0
for line in open(sys.argv[1]):
    if line.startswith("  lost: "):
        count, what = line[len("  lost: "):].rstrip("\n").split(" ", 1)
        losses[what] += int(count)
    else:
        files += 1
        lines += int(re.search(r", (\d+) lines? added$", line)[1])
print("%d files, %d lines added" % (files, lines))
print(*("  lost: %d %s" % (count, what) for what, count in losses.items()), sep="\n")
PY
rm -r "$work/all"
code 0 agentwal --store "$store" export --dialect claude "$work/all"
diff "$work/sums" "$work/stdout" || fail "a summary"

# One session on standard output.
code 0 agentwal --store "$store" export --stdout --dialect pi --session s-1
cmp "$work/stdout" "$made/pi.jsonl"
code 2 agentwal --store "$store" export --stdout --dialect pi
code 2 agentwal --store "$store" export --dialect lines "$out"

# Imported again: the same text, calls and results, in the same order.
agentwal --store "$work/back" init
code 0 agentwal --store "$work/back" import "$other"
code 0 agentwal --store "$work/back" export --dialect pi --json "$work/pi"
cat >"$work/meaning.py" <<'PY'
import json, sys

def meaning(path):
    rows = [json.loads(line) for line in open(path)]
    for row in rows:
        message = row.get("message", {})
        content = message.get("content", [])
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content:
            if block["type"] in ("text", "toolCall"):
                block.pop("type")
                yield message["role"], json.dumps(block, sort_keys=True)

one, two = (list(meaning(path)) for path in sys.argv[1:])
sys.exit(0 if one == two and len(one) > 5 else f"{one}\n{two}")
PY
python3 "$work/meaning.py" "$made/pi.jsonl" "$(field path "$work/stdout")" ||
    fail "pi to Claude Code and back differs"

# Sessions that were not imported.
agentwal --store "$store" create --id native --cwd /srv/n >"$work/id"
cat >"$work/native" <<'JSON'
{"id":"a","type":"message","payload":{"role":"user","content":"hello"}}
JSON
call='{"type":"tool_use","id":"t1","name":"read","input":{"p":1}}'
result='{"type":"tool_result","tool_use_id":"t1","content":"done"}'
printf '{"id":"%s","type":"message","payload":{"role":"%s","content":[%s]}}\n' \
    b assistant "$call" c user "$result" >>"$work/native"
cat >>"$work/native" <<'JSON'
{"id":"d","parentId":"a","type":"message","payload":{"role":"assistant","content":"other"}}
JSON
agentwal --store "$store" append native <"$work/native" >"$work/appended"
code 0 agentwal --store "$store" export --dialect pi --json --session native "$out"
json '[r["type"] for r in rows] == ["session"] + ["message"] * 4 + ["custom"]
    and rows[3]["message"]["toolName"] == "read"
    and rows[5]["parentId"] == rows[3]["id"]' "$(field path "$work/stdout")"
code 0 agentwal --store "$store" export --dialect entries --json --session native "$out"
json 'rows[0]["type"] == "session_header" and
    [r["id"] for r in rows[1:5]] == ["a", "b", "c", "d"]' \
    "$(field path "$work/stdout")"
agentwal --store "$store" redact native b >"$work/redacted"
code 0 agentwal --store "$store" export --dialect pi --json --session native "$work/r"
json '{"what": "redacted entries", "count": 1} in rows[0]["losses"]' \
    "$work/stdout"
json 'rows[2]["parentId"] == rows[1]["id"]' "$(field path "$work/stdout")"

# Payloads that the store keeps out of line, in a message of several rows, the
# last one without a newline.
python3 - "$work/long.jsonl" <<'PY'
import json, sys

rows, parent = [], None
for n, letter in enumerate("abc"):
    uuid = f"00000000-0000-4000-8000-00000000000{n}"
    block = {"type": "text", "text": letter * 400000}
    message = {"role": "assistant", "id": "m1", "content": [block]}
    rows.append({"parentUuid": parent, "sessionId": "long", "cwd": "/l",
                 "type": "assistant", "message": message, "uuid": uuid,
                 "timestamp": "2026-01-02T03:04:05.678Z"})
    parent = uuid
open(sys.argv[1], "w").write("\n".join(json.dumps(row) for row in rows))
PY
code 0 agentwal --store "$store" import "$work/long.jsonl"
code 0 agentwal --store "$store" export --dialect pi --json --session long "$out"
json '[b["text"] for b in rows[1]["message"]["content"]] ==
    [c * 400000 for c in "abc"]' "$(field path "$work/stdout")"

# A file with other content is not overwritten.
printf 'mine\n' >"$pi"
code 1 agentwal --store "$store" export --dialect pi --session s-1 "$out"
same mine "$(cat "$pi")" "a file with other content"

# A line that is not JSON, or is blank, does not split the conversation: the
# next entry is a child of the entry before that line.
{
    head -n 4 "$made/rollouts.jsonl"
    printf '\n{"type":"mess\n'
    tail -n +5 "$made/rollouts.jsonl"
} >"$work/cut.jsonl"
for name in "$made/rollouts.jsonl" "$work/cut.jsonl"; do
    rm -rf "$work/whole" "$work/views"
    agentwal --store "$work/whole" init
    agentwal --store "$work/whole" import --json "$name" >"$work/id"
    for dialect in pi claude codex entries; do
        agentwal --store "$work/whole" export --dialect "$dialect" "$work/views" \
            >"$work/exported"
    done
    agentwal --store "$work/whole" import --json "$work/views" >"$work/again"
    json 'all(r["damaged"] == [] for r in rows) and len(rows) == 4' \
        "$work/again"
    agentwal --store "$work/whole" export --stdout --dialect rollouts \
        --session "$(field sessionId "$work/id")" \
        2>"$work/stderr" |
        tail -n +2 | grep -v config_change >"$work/rollout-${name##*/}"
    python3 -c '
import json, sys
for line in open(sys.argv[1]):
    print(json.loads(line)["sessionId"])' "$work/again" |
        while read -r id; do
            agentwal --store "$work/whole" export --stdout --dialect sdk \
                --session "$id" 2>"$work/stderr" |
                sed 's/"uuid":"[^"]*"//; s/"timestamp":"[^"]*"//'
        done >"$work/text-${name##*/}"
done
cmp "$work/rollout-rollouts.jsonl" "$work/rollout-cut.jsonl"
cmp "$work/text-rollouts.jsonl" "$work/text-cut.jsonl"
[ "$(wc -l <"$work/text-cut.jsonl")" -gt 20 ] || fail "too few lines"

# The list of dialects.
agentwal dialects --json >"$work/dialects"
json 'all({"name", "import", "export", "summary", "carries"} <= set(r)
    for r in rows) and [r["name"] for r in rows][0] == "source" and
    [r["carries"]["labels"] for r in rows if r["name"] == "pi"] == [True] and
    [r["export"] for r in rows if r["name"] == "lines"] == [False]' \
    "$work/dialects"
agentwal dialects | grep -q '^thinking signatures .*yes' || fail "no table"
