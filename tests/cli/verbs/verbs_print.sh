#!/usr/bin/env bash
# agentwal: what each verb prints for people, and with --json.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store HOME=$work
unset COLUMNS
agentwal init
line() {
    printf '{"id":"%s","type":"message","payload":{"role":"user","content":"%s"}}\n' "$1" "$2"
}
# says PATTERN COMMAND...: prints a line that matches.
says() {
    local pattern=$1
    shift
    code 0 "$@"
    grep -qE "$pattern" stdout || fail "$*: $(cat stdout)"
}
# gives EXPRESSION COMMAND...: prints JSON for which the expression holds.
gives() {
    local expression=$1
    shift
    code 0 "$@"
    json "$expression" stdout
}

agentwal create --id s --title "A title" --cwd . >/dev/null
line e1 one >one.jsonl
line e2 two >two.jsonl
says '^appended 1 entry to the session s; the last one is e1$' agentwal append s <one.jsonl
says '^appended 0 entries to the session s; 1 known' agentwal append s <one.jsonl
gives 'rows[0]["appendedCount"] == 1' agentwal append s --json <two.jsonl
code 1 agentwal append s --expect-tail e1 <<<'{"type":"t","payload":{}}'
[ ! -s stdout ] || fail "a conflict prints JSON for people"
grep -q 'e2' stderr || fail "the conflict does not name the tail: $(cat stderr)"
says '^queued 1 entry' agentwal append s --durability queued <<<'{"type":"t","payload":{}}'
agentwal append s --each >each < <(line e4 four; line e5 five)
same 2 "$(grep -c '^appended 1 entry' each)" "append --each"

# What a message lacks, and one that is made.
code 1 agentwal append s <<<'{"role":"user","content":"bare"}'
grep -qF '; put a message into {"type":"message","payload":{...}}; nothing was appended' stderr ||
    fail "a bare message: $(cat stderr)"
says '^appended 1 entry' agentwal append s --user 'say "hi"'
agentwal cat s --tail 1 | json 'rows[0]["payload"] == {"role": "user", "content": "say \"hi\""}'

code 2 agentwal append s --each --user 'not lost' <<<'{"type":"t","payload":{}}'
same "agentwal: --each: not allowed with --user" "$(cat stderr)" "--each with --user"

# A directory: the command that records its files, in a work tree or not.
mkdir -p below/part
echo one >below/part/one
code 1 agentwal checkpoint s all below/part
same "agentwal: below/part: is a directory; to record its files: find below/part -type f -print0 | \
agentwal checkpoint s all --files-from - -0" "$(cat stderr)" "a directory"
says '^checkpoint all: 1 file, ' bash -c "$(sed 's/.*files: //' stderr)"
says '^deleted the checkpoint all$' agentwal checkpoint-delete s all
mkdir 'a tree'
(cd 'a tree' && git init -q && echo kept >kept && echo left >left && echo left >.gitignore)
code 1 agentwal --store "$store" checkpoint s all 'a tree'
says '^checkpoint all: 2 files, ' bash -c "$(sed 's/.*files: //' stderr)"
agentwal checkpoint-show s all --json |
    json '[r["path"] for r in rows] == ["a tree/.gitignore", "a tree/kept"]'
says '^deleted the checkpoint all$' agentwal checkpoint-delete s all

# Nothing to say: why.
for verb in latest list resume; do
    agentwal $verb --cwd "$work/none" >stdout 2>stderr || true
    same "agentwal: $work/none: no session of this directory" "$(cat stdout stderr)" "$verb --cwd"
done
code 0 agentwal accept-damage s
same "agentwal: s: has no damage" "$(cat stdout stderr)" "a sound session"
code 2 agentwal list --limit -1
same "agentwal: --limit: '-1' is not a number of 0 or more" "$(cat stderr)" "a limit"
code 2 agentwal -v
grep -q '(see agentwal help)$' stderr || fail "no verb: $(cat stderr)"

# Thinking that the client keeps to itself is left out; what is cut has a mark.
printf '{"type":"message","payload":{"role":"assistant","content":[%s,{%s:{"run":"%0300d"}}]}}\n' \
    '{"type":"thinking","thinking":""}' '"type":"toolCall","name":"bash","arguments"' 0 |
    agentwal --store calls append --create calls >/dev/null
says '^\[call bash \{"run":"0{180,}…\]$' agentwal --store calls cat --text calls
gives 'rows[0]["heads"][0]["name"] == "main" and len(rows[0]["nodes"]) == 1' \
    agentwal --store calls tree calls --json
code 2 agentwal --store calls tree calls --json --deltas
# A call has its arguments, and the author of a message is there once.
echo '{"id":"u","type":"user","payload":{"role":"user","content":"hi"}}' |
    agentwal --store calls append calls >/dev/null
says '^[^ ]+  message  assistant: \[call bash \{"run":"0+' agentwal --store calls tree calls
grep -q '^u  user: hi  <- main$' stdout || fail "a type twice: $(cat stdout)"
code 0 agentwal --store calls cat --text calls
! grep -q thinking stdout || fail "empty thinking: $(cat stdout)"
# A message of a user that has results only is a tool's.
printf '{"id":"r","type":"user","payload":{"role":"user","content":[%s]}}\n' \
    '{"type":"tool_result","tool_use_id":"c","content":"done"}' |
    agentwal --store calls append calls >/dev/null
says '^r  tool: \[result\] done +<- main$' agentwal --store calls tree calls
says '^tool  ' agentwal --store calls cat --text calls

echo content >file
says '^checkpoint c1: 1 file, 8 bytes; 1 new content, ' agentwal checkpoint s c1 file
gives 'rows[0]["checkpointId"] == "c2" and rows[0]["newBlobs"] == 0' \
    agentwal checkpoint s c2 file --json
echo changed >file
says '^restored 1 file: \+1 -1$' agentwal rewind s c1
grep -q '^to undo: agentwal rewind s ' stdout || fail "no undo: $(cat stdout)"
says '^restored 0 files' agentwal rewind s c1
gives 'rows[0]["canRewind"] is True' agentwal rewind s c1 --json
code 1 agentwal rewind s nothing
[ ! -s stdout ] || fail "a refusal prints on standard output"
code 1 agentwal rewind s nothing --json
json 'rows[0]["canRewind"] is False' stdout
mkdir folder
echo one >folder/one
code 0 agentwal checkpoint s folder folder/one
rm -r folder
echo file >folder
code 1 agentwal rewind s folder
grep -q ': folder/one: replacing the file failed: Not a directory; ' stderr ||
    fail "no cause: $(cat stderr)"
code 0 agentwal checkpoint-delete s folder
says '^deleted the checkpoint c2$' agentwal checkpoint-delete s c2
gives 'rows == [{"checkpointId": "c1"}]' agentwal checkpoint-delete s c1 --json
says '^checkpoints of this session are now off$' agentwal checkpointing s off
code 0 agentwal checkpoint s c3 file
[ ! -s stdout ] || fail "a checkpoint was printed"
grep -q 'checkpoints are off' stderr || fail "no note"
gives 'rows[0]["checkpointing"] is False' agentwal checkpoint s c3 file --json
[ ! -s stderr ] || fail "a note with --json"

says '^redacted the entry e1$' agentwal redact s e1
gives 'rows[0]["sessionId"] == "s"' agentwal redact s e2 --json
says '^Sessions +1$' agentwal stats
grep -qE '^Log +[0-9.]+ kB in 1 segment, [0-9.]+ [kM]B on disk$' stdout || fail "$(cat stdout)"
gives 'rows[0]["sessions"] == 1 and rows[0]["logBytes"] > 1000' agentwal stats --json
gives 'rows[0]["from"] == rows[0]["to"]' agentwal migrate --json
says '^has version [0-9]+ already$' agentwal migrate
says '^sound: 1 session' agentwal check
gives 'rows[0]["sound"] is True' agentwal check --json
code 0 agentwal salvage out
same s "$(agentwal --store out latest)" "salvage"
code 2 agentwal salvage
code 2 agentwal salvage a --salvage b
says '^log/' agentwal cat --frames
gives 'len(rows) > 3' agentwal cat --frames --json
segment=$(echo "$store"/log/*.seg)
says 'OPEN' agentwal cat --frames "$segment"
code 2 agentwal cat
grep -q 'cat: too few arguments' stderr || fail "cat: $(cat stderr)"
code 2 agentwal tree
gives 'rows[0]["sessionId"] == "s"' agentwal list --json
gives 'rows[0]["projectId"] == "global"' agentwal projects --json
says '^session +s$' agentwal show s
# cat prints the same as walcat.
cmp <(agentwal cat s) <(walcat "$store" s)

cp "$AGENTWAL_SOURCE/tools/example/session.jsonl" .
gives 'rows[0]["appended"] == 13' agentwal import --json session.jsonl
id=$(field sessionId stdout)
code 0 agentwal export --dialect source out-files
cmp session.jsonl out-files/session.jsonl
gives "rows[0]['path'].endswith('session.jsonl')" agentwal path --json --dialect source o "$id"
gives "rows[0]['path'].endswith('.jsonl')" agentwal path --json --dialect claude o "$id"
code 0 agentwal export --dialect source --session "${id: -7}" --stdout
cmp session.jsonl stdout
code 2 agentwal export --dialect source --session "$id" --stdout --json
gives 'len(rows) > 5' agentwal dialects --json
says '^moved the session s \(A title\) with 8 entries to the trash$' \
    agentwal delete s
says '^took the session s out of the trash$' agentwal undelete s
says '^pinned the session s$' agentwal pin s
says '^unpinned the session s$' agentwal pin --off s
