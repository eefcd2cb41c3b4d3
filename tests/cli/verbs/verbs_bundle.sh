#!/usr/bin/env bash
# agentwal bundle, import of a bundle, and merge.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store
TMPDIR=$PWD/tmp
export TMPDIR
mkdir tmp

# Bad input: nothing is written, and no store is made.
code 3 agentwal bundle a file
[ ! -e "$store" ] || fail "bundle created a store"
code 3 agentwal merge none
[ ! -e "$store" ] || fail "merge created a store for a missing one"
code 2 agentwal bundle file
code 2 agentwal merge
code 2 agentwal merge a b

# A client's file, a session with branches and documents, and a fork.
client=11111111-2222-4333-8444-555555555555
python3 -ISc '
import json, sys
parent = None
for i, role in enumerate(["user", "assistant"]):
    print(json.dumps({"type": role, "uuid": "u%d" % i, "parentUuid": parent,
                      "sessionId": sys.argv[1], "cwd": "/w",
                      "timestamp": "2026-01-01T10:00:0%d.000Z" % i,
                      "message": {"role": role, "content": "text %d" % i}}))
    parent = "u%d" % i
' "$client" >client.jsonl
agentwal import client.jsonl 2>/dev/null >/dev/null
agentwal create --id first --title 'A title' >/dev/null
message() {
    printf '{"id":"%s","type":"message","payload":{"role":"user"}}\n' "$@"
}
message a b | agentwal append first >/dev/null
printf '{"v":1}' | agentwal doc put first notes >/dev/null
agentwal fork first --at a --id fork >/dev/null
message c | agentwal append fork >/dev/null
code 1 agentwal bundle none file
code 1 agentwal bundle first none file
[ ! -e file ] || fail "a bundle of a missing session"

# A bundle gives the same back; a second import adds nothing.
code 0 agentwal bundle first "$client" work.bundle
grep -q '^sessions: 2 new, ' stdout || fail "no sums of a bundle"
code 1 agentwal bundle first work.bundle
agentwal bundle fork fork.bundle --json | json '
    rows[-1]["summary"]["created"] == 1
    and rows[-1]["summary"]["bytes"] > 1000'
code 0 agentwal --store other import work.bundle
grep -q '^sessions: 2 new, ' stdout || fail "no sums of an import"
agentwal --store other import work.bundle --json | json '
    [row.get("result") for row in rows] == ["unchanged", "unchanged", None]
    and rows[0]["bundle"] == "work.bundle"
    and rows[2]["summary"]["entries"] == 0'
for id in first "$client"; do
    agentwal cat "$id" --json >here
    agentwal --store other cat "$id" --json >there
    cmp here there
done
agentwal doc get first notes >here
agentwal --store other doc get first notes >there
cmp here there
agentwal export --dialect source --session "$client" out >/dev/null
agentwal --store other export --dialect source --session "$client" out2 \
    >/dev/null
diff -r out out2
cmp "$(find out2 -name client.jsonl)" client.jsonl

# A fork alone: its source is not listed.
code 0 agentwal --store alone import fork.bundle
agentwal --store alone list --json |
    json '[row["sessionId"] for row in rows] == ["fork"]'
agentwal cat fork --json >here
agentwal --store alone cat fork --json >there
cmp here there

# Bundles and other files in one import.
code 0 agentwal --store mixed import work.bundle client.jsonl fork.bundle
agentwal --store mixed list --json | json '
    sorted(row["sessionId"] for row in rows) ==
    ["11111111-2222-4333-8444-555555555555", "first", "fork"]'

# A cut bundle: nothing is taken in.
head -c 5000 work.bundle >cut.bundle
agentwal --store bad init >/dev/null 2>&1
code 1 agentwal --store bad import cut.bundle
grep -q 'cut off' stderr || fail "no reason for a cut bundle"
agentwal --store bad list --json | json 'rows == []'
[ -z "$(ls -A tmp)" ] || fail "a temporary store was left"

# merge: all sessions, then nothing, then what is new.
code 0 agentwal --store merged merge "$store"
grep -q '^sessions: 3 new, ' stdout || fail "no sums of a merge"
agentwal --store merged merge "$store" --json | json '
    [row.get("result") for row in rows] == ["unchanged"] * 3 + [None]'
message d | agentwal append first >/dev/null
agentwal --store merged merge "$store" --json | json '
    [row["result"] for row in rows if "result" in row].count("continued") == 1
    and rows[-1]["summary"]["entries"] == 1'
code 0 agentwal --store merged check

# Another session under the id: it is refused by name, the others are taken.
agentwal --store clash create --id first >/dev/null 2>&1
message z | agentwal --store clash append first >/dev/null
printf '1' | agentwal doc put --store key >/dev/null
printf '2' | agentwal --store clash doc put --store key >/dev/null
code 1 agentwal --store clash merge "$store"
grep -q '^agentwal: first: .*other entries' stderr ||
    fail "the session is not named"
grep -q 'key: the document of the store' stderr ||
    fail "the document is not named"
agentwal --store clash cat first --json |
    json '[row["id"] for row in rows] == ["z"]'
agentwal --store clash cat "$client" --json | json 'len(rows) == 2'
# --keep-both: the other one becomes a branch, once. The document still differs.
code 1 agentwal --store clash merge --keep-both "$store"
grep -q '1 branched' stdout || fail "nothing is branched: $(cat stdout)"
code 1 agentwal --store clash merge --keep-both "$store" --json
branch=$(sed -n 's/.*"branchId":"\(first@[0-9a-f]*\)".*/\1/p' stdout)
json 'rows[-1]["summary"]["branched"] == 0' stdout
same "$(agentwal cat first --all)" \
    "$(agentwal --store clash cat "$branch" --all)" "the branch"
code 0 agentwal --store clash check

code 2 agentwal merge "$store"
grep -q 'with itself' stderr || fail "a store is merged with itself"

# A bundle of an encrypted store has a separate passphrase.
agentwal --store locked init --encrypt --key-file key >/dev/null 2>&1
export AGENTWAL_KEY_FILE=key
agentwal --store locked create --id secret >/dev/null
echo '{"id":"e","type":"note","payload":{"text":"between us"}}' |
    agentwal --store locked append secret >/dev/null
echo 'correct horse' >phrase
echo 'another one' >wrong
code 1 agentwal --store locked bundle secret locked.bundle
[ ! -e locked.bundle ] || fail "a bundle without a passphrase"
code 2 agentwal --store locked bundle --no-passphrase --bundle-key-file k secret locked.bundle
code 0 agentwal --store locked bundle --bundle-passphrase-fd 3 secret locked.bundle 3<phrase
code 0 agentwal --store locked bundle --no-passphrase secret open.bundle
grep -q 'between us' open.bundle || fail "no text in a plain bundle"
! grep -q 'between us' locked.bundle || fail "a text in an encrypted bundle"
unset AGENTWAL_KEY_FILE
code 1 agentwal --store opened import locked.bundle
code 1 agentwal --store opened import --bundle-passphrase-fd 3 locked.bundle 3<wrong
code 0 agentwal --store opened import --bundle-passphrase-fd 3 locked.bundle 3<phrase
code 0 agentwal --store opened cat --text secret
grep -q 'between us' stdout || fail "the bundle's session"
# One of a store that is not encrypted, with a key.
code 0 agentwal --store opened bundle --bundle-key-file bundle.key secret keyed.bundle
! grep -q 'between us' keyed.bundle || fail "a text in a bundle with a key"
code 0 agentwal --store last import --bundle-key-file bundle.key keyed.bundle
