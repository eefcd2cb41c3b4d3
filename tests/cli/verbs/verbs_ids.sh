#!/usr/bin/env bash
# agentwal: short ids that are printed and accepted.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store HOME=$work
unset COLUMNS
entry() {
    printf '{"id":"%s","type":"message","payload":{"role":"user","content":"%s"}}\n' "$1" "$1"
}

code 0 agentwal init
base=01a20720-ce96-715b-b3df
for end in 6a543bcc4082 23ca53bcc4082 8df387bb9e33 0000000aaaa; do
    agentwal create --id "$base-$end" >/dev/null
done
agentwal create --id "release-notes-for-billing" >/dev/null
agentwal create --id short >/dev/null
printed() {
    agentwal list | awk 'NR > 1 {print $1}' | sort | tr '\n' ' '
}
# Two share 3bcc4082: they differ in the characters before. What has no random
# ending is complete.
same "000aaaa 43bcc4082 53bcc4082 7bb9e33 release-notes-for-billing short " \
    "$(printed)" "short ids"
for id in $(printed); do
    same 1 "$(agentwal show --json "$id" | wc -l)" "what is printed is accepted"
done
# An id that begins as another one ends would be preferred.
agentwal create --id 7bb9e33-other >/dev/null
agentwal list | grep -q "^$base-8df387bb9e33 " || fail "an ending that is a beginning"
agentwal delete 7bb9e33-other >/dev/null

code 0 agentwal show --json 9e33
json "rows[0]['sessionId'] == '$base-8df387bb9e33'" stdout
code 0 agentwal show --json rele
code 1 agentwal show e33 # an ending of three characters
code 0 agentwal show rel # a beginning of any length
code 1 agentwal show 4082
grep -q 'matches 2 sessions: ' stderr || fail "two candidates"
code 1 agentwal show 01a2
same 4 "$(grep -o "$base" stderr | wc -l)" "candidates named"
for i in 1 2 3; do
    agentwal create --id "01a2-$i" >/dev/null
done
code 1 agentwal show 01a2
grep -q 'matches 7 sessions, for example: ' stderr || fail "seven candidates"
same 5 "$(grep -o '01a2[0-9-]' stderr | grep -c .)" "at most five are named"

# The beginning of a session is also that of its subagents.
agentwal create --id 'beef-1~agent-a1' >/dev/null
code 0 agentwal show --json beef
json 'rows[0]["sessionId"] == "beef-1~agent-a1"' stdout
agentwal create --id beef-1 >/dev/null
code 0 agentwal show --json beef
json 'rows[0]["sessionId"] == "beef-1"' stdout
code 0 agentwal show --json beef-1~a
json 'rows[0]["sessionId"] == "beef-1~agent-a1"' stdout

# A session whose id is that of its parent and such an ending is a subagent's.
agentwal append beef-1 --user 'Go.' >/dev/null 2>&1
for id in 'beef-1~agent-b2' 'beef-1x~agent-b3' 'beef-2~agent-b4'; do
    agentwal fork beef-1 --id "$id" >/dev/null
done
code 0 agentwal list --json --limit 0
json 'sorted(r["sessionId"] for r in rows if "~agent-b" in r["sessionId"]) ==
    ["beef-1x~agent-b3", "beef-2~agent-b4"]' stdout
code 0 agentwal list --subagents --json --limit 0
json '[r["sessionId"] for r in rows if r.get("subagent")] == ["beef-1~agent-b2"]' stdout

# Deleting again must not delete another session: no beginnings, and no ending
# that is likely to be that of another one.
code 1 agentwal delete 01a2-
code 1 agentwal delete 9e33
code 0 agentwal delete 7bb9e33
grep -q "^moved the session $base-8df387bb9e33 with 0 entries to the trash$" stdout ||
    fail "output of delete"
code 1 agentwal delete 7bb9e33
code 0 agentwal delete --json short
json 'rows == [{"sessionId": "short", "deleted": True, "entries": 0,
    "trashed": True}]' stdout

# Entries, heads and checkpoints.
agentwal create --id s --cwd . >/dev/null
for i in 1 2 3; do
    entry "entry-$i-0000abcdef$i" | agentwal append s >/dev/null
    echo "$i" >file
    agentwal checkpoint s "checkpoint-$i-of-three" file >/dev/null
done
agentwal tree s | grep -q '^abcdef1  message  user: entry-1' || fail "short ids in the tree"
code 0 agentwal cat s --up-to abcdef2
same 2 "$(wc -l <stdout)" "--up-to"
code 0 agentwal cat s --branch entry-1
same 1 "$(wc -l <stdout)" "--branch entry"
code 0 agentwal head s tried-this-one abcdef2
code 0 agentwal cat s --branch tried
same 2 "$(wc -l <stdout)" "--branch head"
code 0 agentwal head s tried
same "entry-2-0000abcdef2" "$(cat stdout)" "head"
code 1 agentwal cat s --up-to entry
grep -q 'matches 3 entries: entry-1-0000abcdef1, ' stderr || fail "ambiguous entry"
code 1 agentwal cat s --up-to ent
code 0 agentwal fork s --at bcdef1 --id forked
same 1 "$(agentwal cat forked | wc -l)" "fork --at"
code 0 agentwal checkpoint-diff s checkpoint-1 checkpoint-3
grep -q '+1 -1' stdout || fail "checkpoint-diff: $(cat stdout)"
code 0 agentwal checkpoint-show s checkpoint-2
code 1 agentwal checkpoint-diff s checkpoint
grep -q 'matches 3 checkpoints' stderr || fail "ambiguous checkpoint"
code 1 agentwal checkpoint-delete s checkpoint-1
code 0 agentwal rewind s checkpoint-1 --dry-run
grep -q '^would restore 1 file: +1 -1$' stdout || fail "dry run: $(cat stdout)"

# rewind --to moves both, and can be undone.
code 0 agentwal rewind s --to abcdef2
same 2 "$(cat file)" "the file"
same entry-2-0000abcdef2 "$(agentwal head s main)" "the conversation"
undo=$(sed -n 's/^to undo: agentwal rewind --head s //p' stdout)
code 0 agentwal rewind s "$undo" --head
same 3 "$(cat file)" "the file, undone"
same entry-3-0000abcdef3 "$(agentwal head s main)" "the conversation, undone"
code 0 agentwal rewind s --json --to abcdef1
json 'rows[0]["newHead"] == "entry-1-0000abcdef1" and rows[0]["canRewind"]' stdout
same 1 "$(cat file)" "the file, with --json"
entry entry-4-0000abcdef4 | agentwal append s >/dev/null
code 1 agentwal rewind s --to abcdef4
grep -q 'no checkpoint was made at this entry; nothing was changed' stderr ||
    fail "no checkpoint"
code 1 agentwal rewind s --to none
code 2 agentwal rewind s checkpoint-1 --to abcdef1
code 2 agentwal rewind s

# walcat prints and accepts what the verbs do.
walcat "$store" s --up-to abcdef2 >one
agentwal cat s --up-to abcdef2 >other
cmp one other
walcat "$store" s --tree >one
agentwal tree s >other
cmp one other
