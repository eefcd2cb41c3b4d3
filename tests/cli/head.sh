#!/usr/bin/env bash
# agentwal head, redact, compact-session and delete; heads and hidden entries in
# the output of walcat.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

ids() {
    walcat "$@" | python3 -c '
import json, sys
print(*(json.loads(line)["id"] for line in sys.stdin))'
}
message() {
    printf '{"id":"%s","type":"message"%s,"payload":{"role":"user","content":"%s"}}\n' "$@"
}

agentwal init
agentwal create --id s >/dev/null
code 1 agentwal head s main
same "" "$(agentwal head s)" "heads of an empty session"
{
    message a '' 'first of all'
    message b '' second
    message c '' third
    message d ',"parentId":"b"' 'another way'
} | agentwal append s >/dev/null

# Listing, showing and moving.
same c "$(agentwal head s main)" "the head main"
agentwal head --json s main |
    json 'rows == [{"name": "main", "entryId": "c"}]'
code 1 agentwal head s try
code 0 agentwal head s try d --note 'to be tried'
[ ! -s "$work/stdout" ] || fail "a new head has no former entry"
same d "$(agentwal head s try b)" "the former entry of a head"
agentwal head --json s try d |
    json 'rows == [{"name": "try", "entryId": "d", "previous": "b"}]'
agentwal head --json s | json '
    [(r["name"], r["stream"], r["entryId"]) for r in rows]
    == [("main", 0, "c"), ("try", 0, "d")]
    and rows[1]["version"] > rows[0]["version"] and rows[0]["note"] is None'
agentwal head s | grep -q '^try  d$' || fail "the list of heads"
agentwal show --json s |
    json 'rows[0]["heads"] == {"main": "c", "try": "d"}'
code 1 agentwal head s try none
code 1 agentwal head --json s try a --expect b
json 'rows == [{"conflict": {"expected": "b", "actual": "d"}}]' "$work/stdout"
code 1 agentwal head --json s new a --expect b
json 'rows == [{"conflict": {"expected": "b", "actual": ""}}]' "$work/stdout"
code 0 agentwal head s new a --expect ''
code 0 agentwal head s new '' --expect a
code 1 agentwal head s new
code 2 agentwal head s try --expect d
code 2 agentwal head s --note why
code 2 agentwal head s '' a
code 2 agentwal head s main a more
code 2 agentwal head s main --stream 256
code 1 agentwal head none

# Branches of heads, and the tree.
same "a b d" "$(ids "$store" s --branch try)" "branch of a head"
same "a b c" "$(ids "$store" s --branch main)" "branch of main"
same "a b" "$(ids "$store" s --branch b)" "branch of an entry"
code 1 walcat "$store" s --branch none
code 1 walcat "$store" s --up-to try
agentwal head s also d >/dev/null
walcat --tree "$store" s >"$work/tree"
grep -q '^├─ c .*<- main$' "$work/tree" || fail "main in the tree"
grep -q '^└─ d .*<- also, try$' "$work/tree" || fail "two heads of an entry"

# After main moves back, appended entries become children of its entry.
same c "$(agentwal head s main b)" "going back"
message e '' 'once more' | agentwal append s >/dev/null
same "a b e" "$(ids "$store" s)" "after going back"

# Deltas are omitted, and move no head; asked for, they are there until the
# message is, and in the log until gc.
printf '%s\n' '{"id":"x1","type":"message_delta_batch","payload":[1]}' |
    agentwal append s >/dev/null
same "a b e" "$(ids "$store" s)" "without deltas"
same "a b e x1" "$(ids "$store" s --deltas)" "with deltas"
printf '%s\n' '{"id":"f","type":"note","payload":{"text":"after"}}' |
    agentwal append s >/dev/null
same "a b e f" "$(ids "$store" s --deltas)" "after the message"
same "a b c d e x1 f" "$(ids "$store" s --deltas --all)" "all in the log"
walcat "$store" s | json 'rows[-1]["parentId"] == "e"'
agentwal gc --keep-deltas >/dev/null
same "a b c d e x1 f" "$(ids "$store" s --deltas --all)" "kept deltas"
code 2 agentwal gc --keep-deltas --erase
agentwal gc --erase >/dev/null 2>&1
same "a b c d e f" "$(ids "$store" s --deltas --all)" "after gc"

# Redaction.
agentwal redact --json s b --reason 'a secret' >"$work/result"
json 'rows[0]["sessionId"] == "s" and rows[0]["appendedCount"] == 1
    and len(rows[0]["lastAppendedEntryId"]) > 0' "$work/result"
by=$(field lastAppendedEntryId "$work/result")
same "a e f $by" "$(ids "$store" s)" "without the redacted entry"
if walcat "$store" s --all --deltas --redacted | grep -q second; then
    fail "redacted content was printed"
fi
walcat "$store" s --redacted | json "
    [r for r in rows if r['id'] == 'b'][0]['payload'] ==
    {'redactedBy': '$by', 'reason': 'a secret'}"
walcat --tree "$store" s >"$work/tree"
grep -q '^b  message  \[redacted\] a secret$' "$work/tree" ||
    fail "a redacted entry in the tree"
walcat --text --redacted "$store" s | grep -q '^\[redacted\] a secret$' ||
    fail "a redacted entry as text"
code 1 agentwal redact s none
code 2 agentwal redact s
agentwal redact s a >/dev/null
agentwal show --json s | json 'rows[0]["firstText"] is None'

# Compaction.
message g '' 'kept' | agentwal append s >/dev/null
printf 'All that was "said".\n' |
    agentwal compact-session --json s --first-kept g >"$work/result"
json 'rows[0]["sessionId"] == "s" and rows[0]["appendedCount"] == 1' \
    "$work/result"
by=$(field lastAppendedEntryId "$work/result")
same "g $by" "$(ids "$store" s --since-compaction)" "since the compaction"
walcat "$store" s --tail 1 | json '
    rows[0]["type"] == "compaction_summary"
    and rows[0]["payload"]["firstKeptEntryId"] == "g"
    and rows[0]["payload"]["summary"] == "All that was \"said\"."'
printf 'shorter' |
    agentwal compact-session --json s --first-kept g --new t >"$work/result"
json 'rows[0]["sessionId"] == "t" and rows[0]["appendedCount"] == 1' \
    "$work/result"
by=$(field lastAppendedEntryId "$work/result")
agentwal show --json t | json "rows[0]['parentId'] == 's'
    and rows[0]['lineage'] == ['s'] and rows[0]['head'] == '$by'"
agentwal show --json s | json "rows[0]['head'] != '$by'"
code 1 agentwal compact-session s --first-kept none <<<text
code 1 agentwal compact-session s --first-kept g --new t <<<text
code 2 agentwal compact-session s <<<text
code 2 agentwal compact-session s --first-kept g --new '' <<<text

# Deleting.
before=$(walcat "$store" t)
code 0 delete_session "$store" s
code 1 agentwal show s
code 1 agentwal delete s
agentwal list --json | json '[r["sessionId"] for r in rows] == ["t"]'
same "$before" "$(walcat "$store" t)" "a fork of a deleted session"
agentwal show --json t | json 'rows[0]["lineage"] == ["s"]'
agentwal create --id s >/dev/null
same "" "$(walcat "$store" s)" "a new session of the same id"
code 0 walcheck "$store"
