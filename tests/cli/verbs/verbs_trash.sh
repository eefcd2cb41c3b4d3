#!/usr/bin/env bash
# agentwal delete, undelete, list --trash, and what the trash does to the other
# verbs and tools.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store

append() {
    printf '{"type":"message","payload":{"role":"user","content":"%s"}}\n' \
        "$2" | agentwal append "$1" >/dev/null
}

# in_trash WHAT: the error says that it is in the trash and how to get it back.
in_trash() {
    grep -q 'session "first-0a1b2c3d4e5f" is in the trash; undelete it' stderr ||
        fail "$1: $(cat stderr)"
}

first="first-0a1b2c3d4e5f"
code 3 agentwal undelete "$first"
[ ! -e "$store" ] || fail "undelete created a store"
agentwal create --id "$first" --title "A title" 2>/dev/null >/dev/null
append "$first" one
agentwal create --id second >/dev/null
append second two
agentwal fork "$first" --id fork >/dev/null
before=$(agentwal cat "$first")
shown=$(agentwal show "$first" --json | python3 -ISc '
import json, sys
row = json.loads(sys.stdin.readline())
for name in ("metadataVersion", "bytes"):
    del row[name]
print(json.dumps(row))')

# Into the trash: it says so, and how to undo it.
code 0 agentwal delete --json "$first"
json 'rows == [{"sessionId": "first-0a1b2c3d4e5f", "deleted": True,
    "entries": 1, "trashed": True}]' stdout
agentwal undelete "$first" >/dev/null
code 0 agentwal delete "$first"
grep -q '^moved the session first-0a1b2c3d4e5f (A title) with 1 entry to the' \
    stdout || fail "delete: $(cat stdout)"
grep -q "^undo: agentwal undelete $first$" stdout || fail "no way back"
code 1 agentwal delete "$first"
in_trash "delete twice"

# Several at once, or none if one of them is not there.
code 1 agentwal delete second nothing-1234
code 1 agentwal undelete "$first" nothing-1234
same 1 "$(agentwal list --trash --json | wc -l)" "nothing changed"
code 0 agentwal --store "$store" delete second fork second
same "undo: agentwal --store $store undelete second fork" "$(tail -n 1 stdout)" "the undo of two"
code 0 agentwal undelete second fork
same 2 "$(grep -c '^took the session ' stdout)" "undelete of two"

# It is in no list but that of the trash.
agentwal list --json | json '[r["sessionId"] for r in rows] == ["fork", "second"]
    and "trashed" not in rows[0]'
agentwal list --trash --json | json '[r["sessionId"] for r in rows]
    == ["first-0a1b2c3d4e5f"] and rows[0]["trashed"]'
code 0 agentwal list --trash
grep -q 'A title' stdout || fail "list --trash: $(cat stdout)"
same fork "$(agentwal latest)" latest
code 0 agentwal children fork
[ ! -s stdout ] || fail "children"

# Nothing opens it, and its id is taken.
for verb in show cat tree fork meta children checkpoints "head"; do
    code 1 agentwal "$verb" "$first"
    in_trash "$verb"
done
code 1 agentwal show first-
in_trash "a prefix"
code 1 agentwal show 2c3d4e5f
in_trash "an ending"
code 1 agentwal create --id "$first"
in_trash "create"
printf '{"type":"message","payload":{}}\n' >entry
code 1 agentwal append --create "$first" <entry
in_trash "append --create"
code 1 agentwal export --dialect source --session "$first" out
in_trash "export"
code 0 agentwal export --dialect entries -v out
grep -qF fork stdout || fail "export: $(cat stdout)"
if grep -qF "$first" stdout; then
    fail "export of what is in the trash"
fi

# The fork stays, and its lineage shows it.
same "$before" "$(agentwal cat fork)" "the fork"
agentwal show fork --json | json 'rows[0]["lineage"] == ["first-0a1b2c3d4e5f"]'

# check, gc, stats, salvage
code 0 agentwal check
agentwal gc --json | json 'rows[0]["trash"]["sessions"] == 1
    and rows[0]["trash"]["bytes"] > 300 and not rows[0]["trash"]["deleted"]'
agentwal stats --json | json 'rows[0]["sessions"] == 3
    and rows[0]["trashed"] == 1'
code 0 agentwal stats
grep -q '^Sessions  *3, 1 of them in the trash$' stdout || fail "stats"
code 0 agentwal gc
grep -Eq '^in the trash: 1 session, .*agentwal gc --erase' stdout ||
    fail "gc does not name the trash: $(cat stdout)"
code 0 agentwal check
code 0 agentwal salvage out.salvaged
AGENTWAL_STORE=$work/out.salvaged agentwal list --trash --json |
    json '[r["sessionId"] for r in rows] == ["first-0a1b2c3d4e5f"]'
code 0 agentwal --store "$work/out.salvaged" check

# A merge leaves it out, but for what its fork shares with it; a backup has it.
agentwal --store merged merge "$store" >/dev/null 2>&1
same "fork second" "$(agentwal --store merged list --json | python3 -ISc '
import json, sys
print(*sorted(json.loads(line)["sessionId"] for line in sys.stdin))')" "merge"
same "$before" "$(agentwal --store merged cat fork)" "the fork after a merge"
agentwal --store merged list --trash --json | json 'rows == []'
agentwal --store merged merge "$store" >/dev/null 2>&1
agentwal backup copy >/dev/null
agentwal --store copy list --trash --json | json 'len(rows) == 1'

# Back again, as it was.
code 1 agentwal undelete nothing
grep -q 'no such session in the trash (see: agentwal list --trash)' stderr ||
    fail "undelete of nothing: $(cat stderr)"
code 1 agentwal undelete second
grep -q 'session "second" is not in the trash' stderr ||
    fail "undelete of what is not there: $(cat stderr)"
code 2 agentwal undelete
code 1 agentwal undelete "$first" more
code 0 agentwal undelete --json 2c3d4e5f
json 'rows == [{"sessionId": "first-0a1b2c3d4e5f", "undeleted": True}]' stdout
same "$before" "$(agentwal cat "$first")" "after undelete"
agentwal show "$first" --json >now
python3 -ISc '
import json, sys
old, new = json.loads(sys.argv[1]), json.load(open("now"))
for name in old:
    assert old[name] == new[name], (name, old[name], new[name])
' "$shown" || fail "show after undelete"
code 1 agentwal undelete "$first"

# A store with a session in the trash says so in MANIFEST.
agentwal --store other create --id x 2>/dev/null >/dev/null
cp other/MANIFEST without
agentwal --store other delete x >/dev/null
cp without other/MANIFEST
code 1 agentwal --store other check
grep -q 'puts a session in the trash, and MANIFEST lacks this feature' stdout ||
    fail "check of a feature that is missing: $(cat stdout)"

# Read-only: both say why they do not.
if [ "$(id -u)" != 0 ]; then
    chmod -R a-w "$store"
    code 3 agentwal delete second
    code 0 agentwal list --trash
    chmod -R u+w "$store"
fi

# What is deleted for good is in no trash.
code 0 delete_session "$store" second
code 1 agentwal show second
grep -q 'no such session' stderr || fail "after a deletion for good: $(cat stderr)"
agentwal list --trash --json | json 'rows == []'

# gc --erase empties the trash; without it a dry run says so.
agentwal delete "$first" >/dev/null
code 0 agentwal gc --erase --dry-run
grep -q '^would delete from the trash: 1 session' stdout || fail "$(cat stdout)"
agentwal list --trash --json | json 'len(rows) == 1'
code 0 agentwal gc --erase
grep -q '^deleted from the trash: 1 session' stdout || fail "$(cat stdout)"
agentwal list --trash --json | json 'rows == []'
code 1 agentwal undelete "$first"
agentwal create --id "$first" >/dev/null
same "$before" "$(agentwal cat fork)" "the fork after gc --erase"
code 0 agentwal check

# line NUMBER PARENT TEXT: of a file of Claude Code.
line() {
    printf '{"type":"user","message":{"role":"user","content":"%s"},' "$3"
    printf '"uuid":"u%s","parentUuid":%s,"sessionId":"%s",' "$1" "$2" \
        5a6b7c8d-1111-4222-8333-444455556666
    printf '"timestamp":"2026-01-01T00:00:0%sZ","cwd":"/w"}\n' "$1"
}

# The file of a session in the trash does not come back by itself.
mkdir files
line 1 null hello >files/5a6b7c8d-1111-4222-8333-444455556666.jsonl
printf '%s\n' '{"a":1}' >files/other.jsonl
agentwal import --all-files files >/dev/null
agentwal list --json >rows
imported=$(python3 -ISc '
import json
for line in open("rows"):
    row = json.loads(line)
    if row["firstText"] == "hello":
        print(row["sessionId"])')
[ -n "$imported" ] || fail "nothing was imported"
agentwal delete "$imported" >/dev/null
printf '%s\n' '{"a":2}' >>files/other.jsonl
code 0 agentwal import --all-files files
grep -q '^in the trash, and not imported: 1$' stdout || fail "$(cat stdout)"
[ ! -s stderr ] || fail "import of a directory: $(cat stderr)"
code 1 agentwal import files/5a6b7c8d-1111-4222-8333-444455556666.jsonl
grep -q 'is in the trash; undelete it' stderr || fail "import: $(cat stderr)"
mkdir moved
mv files/5a6b7c8d-1111-4222-8333-444455556666.jsonl moved
code 1 agentwal import moved/5a6b7c8d-1111-4222-8333-444455556666.jsonl
agentwal list --json | json '[r for r in rows if r["firstText"] == "hello"] == []'
agentwal undelete "$imported" >/dev/null
line 2 '"u1"' more >>moved/5a6b7c8d-1111-4222-8333-444455556666.jsonl
mv moved/5a6b7c8d-1111-4222-8333-444455556666.jsonl files
code 0 agentwal import files
agentwal show "$imported" --json | json 'rows[0]["entries"] == 2'
