#!/usr/bin/env bash
# Views that the store knows of, after redact --erase, delete --erase and
# gc --erase: they are listed, and rewritten with --views.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store

# append ID TEXT: a message with this text.
append() {
    python3 -ISc '
import json, sys
print(json.dumps({"type": "message", "payload": {
    "role": "user", "content": sys.argv[1]}}))
' "$2" | agentwal append "$1" >/dev/null
}

# first ID: the id of its first entry.
first() {
    agentwal cat "$1" --json | field id
}

# views: how many views the last JSON line of a file lists, as a sorted list of
# "SESSION DIALECT STATE REWRITTEN".
views() {
    python3 -ISc '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
for line in sorted("%s %s %s %s" % (view["sessionId"], view["dialect"],
                                    view["state"], view["rewritten"])
                   for view in rows[-1]["views"]):
    print(line)
' "$1"
}

holds() {
    grep -rqaF "$1" "${@:2}"
}

agentwal init 2>/dev/null
for id in one two three; do
    agentwal create --id $id --cwd "/home/$id" >/dev/null
    append $id "secret-of-$id"
    append $id "text-of-$id"
done
agentwal export --dialect claude out >/dev/null
agentwal export --dialect pi --session one "$work/pi" >/dev/null
same 2 "$(find "$store/views" -type f | wc -l)" 'entries of the list'
agentwal export --dialect claude out >/dev/null
same 2 "$(find "$store/views" -type f | wc -l)" 'entries of the list'
agentwal check >/dev/null || fail 'the store is not sound'

# Bad input: nothing is done.
code 2 agentwal redact one "$(first one)" --views
grep -q -- '--views: requires --erase' stderr || fail 'no reason for --views'
code 2 agentwal delete one --views
holds secret-of-one "$store" || fail 'a usage error has erased'

# Redacted: both views of it are listed, and the command that rewrites them.
code 0 agentwal redact one "$(first one)" --erase
grep -q "^may hold it still: $work/out, claude, session one$" stdout ||
    fail "not listed: $(cat stdout)"
grep -q "^may hold it still: $work/pi, pi, session one$" stdout ||
    fail "not listed: $(cat stdout)"
grep -q '^rewrite them: agentwal gc --views$' stdout || fail 'no command'
if grep -q 'session two' stdout; then
    fail 'a view is listed that does not hold it'
fi
holds secret-of-one out pi || fail 'a view was rewritten without --views'
! holds secret-of-one "$store" || fail 'the store holds it'
code 0 agentwal gc --erase --dry-run --json
same "one claude redacted False
one pi redacted False" "$(views stdout)" 'views of a dry run'
code 0 agentwal gc --views --dry-run --json
holds secret-of-one out pi || fail 'a dry run has rewritten a view'
code 0 agentwal gc --views
grep -q "^rewrote the view: $work/pi, pi, session one$" stdout ||
    fail "not rewritten: $(cat stdout)"
! holds secret-of-one out pi "$store" || fail 'a view holds it'
holds text-of-one out || fail 'the rest of the view is gone'
code 0 agentwal gc --json
json '"views" not in rows[0]' stdout

# At once, as JSON.
agentwal redact two "$(first two)" --erase --views --json >result
same 'two claude redacted True' "$(views result)" 'views of redact'
json 'rows[0]["sessionId"] == "two" and len(rows) == 2' result
! holds secret-of-two out "$store" || fail 'it is still there'
agentwal delete one --erase --views --json >result
same "one claude deleted True
one pi deleted True" "$(views result)" 'views of delete'
json 'rows[0]["deleted"] and len(rows) == 2' result
! holds text-of-one out pi "$store" || fail 'it is still there'
[ -z "$(find pi -type f ! -name lock)" ] || fail 'a file of the view is left'
[ -z "$(find out pi -type d -empty)" ] || fail 'an empty directory is left'

# The trash stays, with its views; gc --erase deletes it, and lists them.
agentwal delete three >/dev/null
code 0 agentwal gc --views
holds text-of-three out || fail 'a view of the trash is gone'
code 0 agentwal gc --erase --views --json
same 'three claude deleted True' "$(views stdout)" 'views of gc --erase'
! holds text-of-three out "$store" || fail 'it is still there'

# Another program went on in a file: it is named, and left.
append two third
agentwal export --dialect claude out >/dev/null
path=$(agentwal path --dialect claude out two)
printf '{}\n' >>"$path"
id=$(agentwal cat two --json | tail -n 1 | field id)
code 1 agentwal redact two "$id" --erase --views
grep -q "^agentwal: .*$path" stderr || fail "not named: $(cat stderr)"
grep -q "^may hold it still: $work/out, claude, session two$" stdout ||
    fail 'not listed'
grep -q '^{}$' "$path" || fail 'a file of another program was changed'
code 1 agentwal delete two --erase --views
grep -q "^agentwal: .*$path" stderr || fail "not named: $(cat stderr)"
rm "$path"
code 0 agentwal gc --views
same '' "$(agentwal gc --erase --json >result && views result)" 'views left'

# A root whose states cannot be read, and one that is gone.
agentwal create --id four --cwd /home/four >/dev/null
append four secret-of-four
agentwal export --dialect pi unreadable >/dev/null
agentwal redact four "$(first four)" --erase >/dev/null 2>&1
mv unreadable/.agentwal states
ln -s ../states unreadable/.agentwal
code 3 agentwal gc --views --json
same 'None pi unknown False' "$(views stdout)" 'views of the root'
grep -q "$work/unreadable" stderr || fail "not named: $(cat stderr)"
rm -r unreadable
code 0 agentwal gc --views --json
same '' "$(views stdout)" 'views of a root that is gone'

# A damaged entry, a link in place of one and of the list: notes.
agentwal export --dialect pi pi >/dev/null
entry=$(find "$store/views" -type f -size -200c | sort | head -n 1)
printf x | dd of="$entry" bs=1 seek=20 conv=notrunc status=none
ln -s "$entry" "$store/views/0123456789abcdef"
mkdir "$store/views/fedcba9876543210"
code 0 agentwal check
grep -q 'note: views/.*: .*damaged' stdout || fail "no note: $(cat stdout)"
grep -q 'note: views/0123456789abcdef: .* symbolic link' stdout ||
    fail "no note of a link: $(cat stdout)"
agentwal check --json | json 'rows[0]["sound"] and rows[0]["damage"] == []'
code 0 agentwal gc --views --json
mv "$store/views" elsewhere
ln -s ../elsewhere "$store/views"
code 0 agentwal check
grep -q 'note: views: .* symbolic link\|note: views: ' stdout ||
    fail "no note of the list: $(cat stdout)"
code 3 agentwal gc --views
grep -q "$store/views" stderr || fail "not named: $(cat stderr)"
agentwal export --dialect claude out >/dev/null || fail 'an export fails for it'
rm "$store/views"

# A backup leaves the list out; a store that may not be written, and an export
# of the files that were imported, add nothing.
agentwal export --dialect claude out >/dev/null
[ -d "$store/views" ] || fail 'the list was not made again'
agentwal backup copy >/dev/null
[ ! -e copy/views ] || fail 'a backup has the list'
agentwal export --dialect claude --session four --stdout >/dev/null
same 1 "$(find "$store/views" -type f | wc -l)" 'entries of the list'
