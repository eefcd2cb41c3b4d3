#!/usr/bin/env bash
# Sessions of clients without branches, rollouts and Codex. Exports
# have the same bytes, are at the clients' paths, and convert into each other.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

made=${AGENTWAL_SOURCE:?}/tests/golden/model
out=$work/out
mkdir "$work/in"
cp "$made/codex.jsonl" "$made/rollouts.jsonl" "$work/in"
if [ -d "${AGENTWAL_FIXTURES:-}/codex" ]; then
    cp -R "$AGENTWAL_FIXTURES/codex" "$work/in/fixtures"
    chmod -R u+w "$work/in"
fi
agentwal --store "$store" init
code 0 agentwal --store "$store" import --json "$work/in"
json 'all(d["reason"] == "no header before it" and "drift" in r["path"]
    for r in rows for d in r["damaged"])' "$work/stdout"
json 'all(r["appended"] == r["lines"] for r in rows)' \
    "$work/stdout"
json 'all(r["dialect"] == ("rollouts" if "rollouts" in r["path"] else "codex")
    for r in rows)' "$work/stdout"
code 0 agentwal --store "$store" import --json "$work/in"
json 'all(r["appended"] == 0 for r in rows)' "$work/stdout"
code 0 agentwal --store "$store" export --dialect source "$work/source"
diff -r "$work/in" "$work/source" || fail "the source differs from the import"

# The same client: the same conversation, at its path.
codex=019b2ea4-aaaa-4bbb-8ccc-58208e1f0001
code 0 agentwal --store "$store" export --json --dialect codex --session "$codex" "$out"
file=$out/sessions/2026/01/02/rollout-2026-01-02T03-04-01-$codex.jsonl
same "$file" "$(field path "$work/stdout")" "path of a rollout"
json 'rows[0]["losses"] ==
    [{"what": "entries off the active branch", "count": 2}]' "$work/stdout"
grep -v -e 'rong' -e thread_rolled_back "$made/codex.jsonl" | cmp - "$file" ||
    fail "a rollout differs, in addition to the rolled-back turn"
code 0 agentwal --store "$store" export --json --dialect codex --session "$codex" "$out"
json 'rows[0]["added"] == 0' "$work/stdout"
rollouts=6f1c9b1e-0000-4000-8000-000000000001
code 0 agentwal --store "$store" export --json --dialect rollouts --session "$rollouts" "$out"
file="$out/sessions/--home-u-a project--/2026-01-02T03-04-05_$rollouts.jsonl"
same "$file" "$(field path "$work/stdout")" "path of a session of rollouts"
json 'rows[0]["losses"] == []' "$work/stdout"
cmp "$file" "$made/rollouts.jsonl"

# The other client: only blocks that it accepts, and both spellings of a text.
code 0 agentwal --store "$store" export --json --dialect rollouts --session "$codex" "$out"
other=$(field path "$work/stdout")
json 'set(rows[0]) == {"type", "id", "timestamp", "cwd", "provider", "model"}
    and all(rows[0].values())' "$other"
json 'all(b["type"] in ("text", "thinking", "toolCall", "image")
    for r in rows[1:] for b in r["message"]["content"] or []
    if not isinstance(b, str))' "$other"
code 0 agentwal --store "$store" export --json --dialect codex --session "$rollouts" "$out"
other=$(field path "$work/stdout")
json 'rows[0]["type"] == "session_meta" and
    {"id", "timestamp", "cwd", "originator", "cli_version"}
        <= set(rows[0]["payload"])' "$other"
json '[r["payload"]["message"] for r in rows
        if r["payload"].get("type") in ("user_message", "agent_message")] ==
    ["\n".join(b["text"] for b in r["payload"]["content"] if "text" in b)
        for r in rows if r["payload"].get("type") == "message" and
        r["payload"]["role"] != "developer" and r["payload"]["content"]]' \
    "$other"

# A turn that only an event has is on the branch at the end, too: each client goes on after it.
mkdir "$work/ends"
head -n 35 "$made/codex.jsonl" > "$work/ends/codex.jsonl"
code 0 agentwal --store "$work/ends-store" import "$work/ends"
for to in claude gemini kimi opencode; do
    code 0 agentwal --store "$work/ends-store" export --dialect "$to" "$work/ends-$to"
    grep -rq 'And this\.' "$work/ends-$to" || fail "$to lacks the last turn"
done
! grep -rq walconv_head "$work/ends-claude" || fail "the last turn is on no branch"
