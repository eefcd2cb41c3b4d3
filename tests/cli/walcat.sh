#!/usr/bin/env bash
# walcat: which entries it prints, and how.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

agentwal init
agentwal create --id s --title 'The title' >/dev/null
entry() {
    printf '{"id":"%s","type":"%s"%s,"payload":%s}\n' "$@"
}
text='{"type":"text","text":"answer"}'
call='{"type":"toolCall","name":"bash","arguments":{"x":1}}'
{
    entry a message '' '{"role":"user","content":"hello \u001b[31m there"}'
    entry b message '' "{\"role\":\"assistant\",\"content\":[$text,$call]}"
    entry c note '' '{"text":"a \u001b[1mnote\u001b[22;39m"}'
    entry d message ',"parentId":"b"' '{"role":"user","content":"other way"}'
} | agentwal append s >/dev/null

ids() {
    walcat "$@" | python3 -c '
import json, sys
print(*(json.loads(line)["id"] for line in sys.stdin))'
}

# Sessions.
walcat "$store" | grep -q 'The title' || fail "the table"
walcat --json "$store" | json 'rows[0]["sessionId"] == "s"'
code 3 walcat "$work/none"
code 1 walcat "$store" none

# Entries.
same "a b c" "$(ids "$store" s)" "live branch"
same "a b c d" "$(ids "$store" s --all)" "all"
same "a b d" "$(ids "$store" s --branch d)" "branch of an entry"
same "a b c" "$(ids "$store" s --branch main)" "branch of a head"
same "a b" "$(ids "$store" s --up-to b)" "up to an entry"
code 1 walcat "$store" s --up-to none
same "b c" "$(ids "$store" s --tail 2)" "tail"
same "a b c" "$(ids "$store" s --tail 9)" "tail longer than the branch"
same "" "$(ids "$store" s --tail 0)" "no tail"
same "a b d" "$(ids "$store" s --all --type message)" "type"
same "b d" "$(ids "$store" s --all --type message --tail 2)" "type and tail"
same "" "$(ids "$store" s --stream 3)" "a stream without entries"
agentwal append s --stream 1 >/dev/null \
    <<<'{"id":"t","type":"t","payload":1}'
same "t" "$(ids "$store" s --stream 1)" "another stream"
same "a b c" "$(ids "$store" s)" "the default stream"
code 2 walcat "$store" s --all --up-to b
code 2 walcat "$store" s --tail many
code 2 walcat "$store" s --branch a --up-to b
long=$(printf '%0256d' 0)
code 2 walcat "$store" s --branch "$long"
code 2 walcat "$store" s --up-to "$long"

# Options that need a session.
for option in --text --tree --all --deltas --redacted \
    --since-compaction --tail=1 --type=t --stream=1 --branch=a --up-to=a; do
    code 2 walcat "$store" "$option"
    code 2 walcat --frames "$store" "$option"
done
code 2 walcat --frames "$store" --follow
# Of all sessions only --type and --text can be followed.
for option in --tree --all --deltas --redacted --since-compaction --tail=1 \
    --stream=1 --branch=a --up-to=a; do
    code 2 walcat --follow "$store" "$option"
done
for option in --text --tail=1 --type=t --branch=a --up-to=a --follow \
    --since-compaction; do
    code 2 walcat --tree "$store" s "$option"
    grep -q "^walcat: ${option%=*}: not allowed with --tree" "$work/stderr" ||
        fail "which option does not go with --tree"
done
code 0 walcat --tree --all --redacted "$store" s

# Control characters are escaped in text output.
walcat --text "$store" s >"$work/text"
grep -q '^user  ' "$work/text" || fail "role"
grep -q '^answer$' "$work/text" || fail "text of a block"
grep -q 'bash' "$work/text" || fail "tool call"
grep -qx 'a note' "$work/text" || fail "note"
if grep -q "$(printf '\033')" "$work/text"; then
    fail "an escape sequence was not escaped"
fi

# The tree.
walcat --tree "$store" s >"$work/tree"
same 4 "$(wc -l <"$work/tree")" "lines of the tree"
grep -q '^a ' "$work/tree" || fail "root of the tree"
grep -q '^├─ c .*<- main$' "$work/tree" || fail "head of the tree"
grep -q '^└─ d ' "$work/tree" || fail "branch of the tree"

# Each redacted entry is shown with its reason.
agentwal create --id r >/dev/null
for id in r1 r2 r3; do
    entry "$id" t '' 1
done | agentwal append r >/dev/null
agentwal redact r r1 --reason 'the first reason' >/dev/null
agentwal redact r r2 --reason 'another one' >/dev/null
walcat --tree "$store" r >"$work/tree"
grep -q '^r1  t  \[redacted\] the first reason$' "$work/tree" ||
    fail "reason of the first in the tree"
grep -q '^r2  t  \[redacted\] another one$' "$work/tree" ||
    fail "reason of the second in the tree"
walcat "$store" r --redacted --type t --tail 3 |
    json '[r["payload"]["reason"] for r in rows[:2]] ==
        ["the first reason", "another one"]'

# Following.
walcat --follow "$store" s >"$work/follow" &
follower=$!
for _ in $(seq 100); do
    [ "$(wc -l <"$work/follow")" -ge 3 ] && break
    sleep 0.05
done
agentwal append s >/dev/null <<<'{"id":"f","type":"t","payload":1}'
for _ in $(seq 100); do
    [ "$(wc -l <"$work/follow")" -ge 4 ] && break
    sleep 0.05
done
# A redaction or a hidden entry does not affect later entries.
agentwal redact s c >/dev/null
agentwal redact s f >/dev/null
printf '%s\n' '{"id":"x","type":"message_delta_batch","payload":1}' \
    '{"id":"g","type":"t","payload":1}' | agentwal append s >/dev/null
for _ in $(seq 100); do
    [ "$(wc -l <"$work/follow")" -ge 7 ] && break
    sleep 0.05
done
kill "$follower"
wait "$follower" || true
json '[r["id"] for r in rows][:4] == ["a", "b", "c", "f"]
    and [r["type"] for r in rows][4:] == ["redaction", "redaction", "t"]
    and rows[6]["parentId"] == rows[5]["id"]' "$work/follow"

# walcat ends without an error when its reader closes the pipe.
for n in $(seq 2000); do
    printf '{"id":"n%d","type":"t","payload":"%0200d"}\n' "$n" 0
done | agentwal append s >/dev/null
{
    walcat "$store" s 2>"$work/stderr"
    printf '%d\n' "$?" >"$work/code"
} | head -n 1 >/dev/null
same 0 "$(cat "$work/code")" "exit code for a closed pipe"
[ ! -s "$work/stderr" ] || fail "a closed pipe was reported"
walcat --tree "$store" s | grep -q '^.*\.\.\. [0-9]* more$' ||
    fail "a long run of entries was not abbreviated"

# An entry that cannot be read is reported with its offset, and skipped.
lossy=$work/lossy
agentwal --store "$lossy" init
agentwal --store "$lossy" create --id l >/dev/null
for id in e1 e2 e3 e4; do
    entry "$id" message '' "{\"role\":\"user\",\"content\":\"text-$id\"}"
done | agentwal --store "$lossy" append l >/dev/null
python3 - "$lossy/log/0000000000000001.seg" <<'PROGRAM'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(file.read().index(b"text-e2"))
    file.write(b"T")
PROGRAM
for option in --branch=main --text --all --tail=3; do
    code 1 walcat "$lossy" l "$option"
    grep -q '0000000000000001\.seg, byte [1-9]' "$work/stderr" ||
        fail "no offset of the unreadable entry, $option"
    grep -q 'e4' "$work/stdout" || fail "no entries after it, $option"
done
code 1 walcat "$lossy" l
grep -q '^walcat: the entry after e1: ' "$work/stderr" ||
    fail "no id next to the unreadable entry"
json '[r["id"] for r in rows] == ["e1", "e3", "e4"]' "$work/stdout"

# When opening detected the damage, the branch begins after it, with a report.
rm -r "$lossy/index"
for option in --branch=main --text --all --tail=1 --tree; do
    code 1 walcat "$lossy" l "$option"
    grep -q '^walcat: l: the session lost entries' "$work/stderr" ||
        fail "lost entries are not reported, $option"
    grep -q 'e4' "$work/stdout" || fail "the remaining entries, $option"
done
agentwal --store "$lossy" accept-damage >/dev/null
code 0 walcat "$lossy" l
