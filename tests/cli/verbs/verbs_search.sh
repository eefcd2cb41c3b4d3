#!/usr/bin/env bash
# agentwal search and index: what is found in sessions of each dialect, how it
# is printed, the entries around it, and what is not found.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store HOME=$work TZ=UTC

# Without SQLite the verbs say how to get it.
if agentwal index 2>&1 | grep -q 'built without SQLite'; then
    code 3 agentwal search word
    grep -q 'libsqlite3-dev' stderr || fail 'no advice'
    exit 0
fi

# found EXPECTED OPTION...: the hits, as SESSION:ENTRY:ROLE.
found() {
    local expected=$1
    shift
    agentwal search --json "$@" >hits 2>stderr || true
    same "$expected" "$(python3 -c '
import json
print(" ".join("%s:%s:%s" % (row["sessionId"], hit["entryId"], hit["role"])
               for row in map(json.loads, open("hits")) for hit in row["hits"]))
')" "search $*"
}

# say SESSION ID ROLE TEXT
say() {
    printf '{"id":"%s","type":"message","payload":{"role":"%s","content":"%s"}}\n' \
        "$2" "$3" "$4" | agentwal append "$1" >/dev/null
}

# Bad input.
code 3 agentwal search word
grep -q 'agentwal init\|agentwal import' stderr || fail 'no advice without a store'
[ ! -e "$store" ] || fail 'search made a store'
agentwal create --id one --title 'Cents' --cwd /srv/app >/dev/null 2>&1
code 2 agentwal search
code 2 agentwal search -- --
code 2 agentwal search --role none word
code 2 agentwal search --since yesterday word
code 2 agentwal search --limit x word
code 2 agentwal search --around -1 word
code 2 agentwal search --substring ab
code 1 agentwal search --session none word
code 2 agentwal index more

# Nothing, then something; grep's exit codes.
code 1 agentwal search rounding
[ ! -s stdout ] || fail 'output without a hit'
say one e1 user 'Invoices are off by one cent.'
say one e2 assistant 'It is a rounding error in tax.py.'
say one e3 user 'Rounding again?'
say one e4 assistant 'Fixed.'
code 0 agentwal search rounding
cat >expected <<'TEXT'
one  DATE  Cents
  agentwal cat --text one
  user       DATE  e3
    Rounding again?
  assistant  DATE  e2
    It is a rounding error in tax.py.

TEXT
sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}/DATE/' stdout |
    diff expected - || fail 'the output for people'
found 'one:e3:user one:e2:assistant' rounding
found 'one:e2:assistant' rounding --role assistant
found 'one:e2:assistant' 'rounding error'
found 'one:e2:assistant' --substring 'ROUNDING ERR'
found '' rounding error cent
found 'one:None:title' cents
found 'one:e3:user one:e2:assistant' --session one rounding
agentwal search --json rounding >hits
json 'rows[0]["matches"] == 2 and rows[0]["title"] == "Cents"
    and rows[0]["cwd"] == "/srv/app"
    and rows[0]["resume"] == "agentwal cat --text one"
    and rows[0]["hits"][0]["snippet"] == "Rounding again?"
    and rows[0]["hits"][0]["matches"] == [[0, 8]]
    and rows[0]["hits"][0]["time"].endswith("Z")' hits
agentwal --store "$AGENTWAL_STORE" search --json rounding | json '
    rows[0]["resume"] == "agentwal --store '"$AGENTWAL_STORE"' cat --text one"'

# Around a hit.
code 0 agentwal search --around 1 --json error
json '[e["id"] for e in rows[0]["hits"][0]["around"]] == ["e1", "e2", "e3"]' stdout
code 0 agentwal search --around 9 --json error
json '[e["id"] for e in rows[0]["hits"][0]["around"]] == ["e1", "e2", "e3", "e4"]' stdout
code 0 agentwal search --around 0 --json error
json '[e["id"] for e in rows[0]["hits"][0]["around"]] == ["e2"]' stdout
code 0 agentwal search --around 1 error
grep -q 'Invoices are off' stdout || fail 'no entry before it'
grep -q 'Rounding again' stdout || fail 'no entry after it'
# On another branch, the entry's branch before it.
branch='{"id":"b1","parentId":"e1","type":"message","payload":{"role":"user","content":"sidestep"}}'
agentwal append one <<<"$branch" >/dev/null
code 0 agentwal search --around 2 --json sidestep
json '[e["id"] for e in rows[0]["hits"][0]["around"]] == ["e1", "b1"]' stdout

# Times and directories.
found 'one:e4:assistant' fixed --since 1h
found '' fixed --until 2020-01-01
found 'one:e4:assistant' fixed --since 2020-01-01 --until 2100-01-01T00:00
found 'one:e4:assistant' fixed --cwd /srv/app
found '' fixed --cwd /srv
found '' fixed --project none

# More hits than are shown, and sessions.
for i in 1 2 3 4 5; do
    agentwal create --id "many-$i" >/dev/null
    say "many-$i" "m$i" user 'plenty plenty'
    say "many-$i" "n$i" user 'plenty'
    say "many-$i" "o$i" user 'plenty'
    say "many-$i" "p$i" user 'plenty'
done
code 0 agentwal search --limit 2 plenty
same 2 "$(grep -c '^many-' stdout)" 'sessions'
grep -q "1 more: agentwal search --session many-[0-9] plenty$" stdout ||
    fail 'no command for more'
code 0 agentwal search --session many-3 plenty
same 4 "$(grep -c '^  user' stdout)" 'hits of a session'

# Sessions of each dialect, and the command that resumes them.
agentwal import "$AGENTWAL_SOURCE/tests/golden/model" >/dev/null 2>&1
# resumes DIALECT QUERY COMMAND ROLE
resumes() {
    agentwal search --limit 100 --json "$2" >hits || fail "nothing of $1"
    python3 - "$1" "$3" "$4" <<'PYTHON' || fail "$1: $(cat hits)"
import json, sys
dialect, command, role = sys.argv[1:]
rows = [json.loads(line) for line in open("hits")]
assert any(row["resume"].endswith(command) and
           any(hit["role"] == role for hit in row["hits"])
           for row in rows), (command, rows)
PYTHON
}
claude=11111111-2222-4333-8444-555555555555
codex=019b2ea4-aaaa-4bbb-8ccc-58208e1f0001
opencode=ses_7fffffffffffAAAAAAAAAAAAAA
resumes claude 'find it' "cd '/home/u/a project' && claude --resume $claude" user
resumes codex 'right one' "cd /home/u/p && codex resume $codex" user
resumes codex 'apply_patch' "codex resume $codex" tool
resumes codex 'sum' "codex resume $codex" summary
resumes opencode 'two' "cd /home/u/p && opencode -s $opencode" assistant
resumes opencode 'title' "cd /home/u/p && opencode -s $opencode" title
resumes pi 'ok' 'agentwal cat --text s-1' assistant
resumes rollouts 'one' 'agentwal cat --text 6f1c9b1e-0000-4000-8000-000000000001' assistant
resumes sdk 'before' 'agentwal cat --text s-1~3' assistant
found "$opencode:msg_b7ca99458000AAAAAAAAAAAAAA:assistant" --session $opencode ok
found "$opencode:msg_b7ca99458000AAAAAAAAAAAAAA:tool" --session $opencode --tool read
code 0 agentwal search --session $opencode --around 1 --json ok
json 'any(e["id"] == "msg_b7ca99458000AAAAAAAAAAAAAA" for e in rows[0]["hits"][0]["around"])
    and len(rows[0]["hits"][0]["around"]) >= 2' stdout
# The results of tools on demand.
found '' --session $codex 'Twice'
found "$codex:line-17:result" --session $codex --deep 'Twice'
found "$codex:line-17:result" --session $codex --role result 'Twice'

# Control characters of a session do not reach the terminal.
agentwal create --id evil --title $'\e]0;title\a' --cwd $'/x\e[31m' >/dev/null
say evil v1 user 'marker \u001b[2J after'
code 0 agentwal search marker
! grep -q $'\e' stdout || fail 'an escape was printed'

# What was redacted, trashed or deleted is not found, and erasing leaves nothing.
canary=qzcanaryzq
say one c1 user "the $canary here"
say one c2 tool "a result with $canary"
agentwal create --id gone --title "$canary" >/dev/null
say gone g1 user "$canary too"
agentwal index --deep >/dev/null
grep -rqa $canary "$store/index" || fail 'the canary was not indexed'
agentwal redact one c1 >/dev/null
found 'gone:None:title gone:g1:user' $canary
agentwal delete gone >/dev/null
found '' $canary
found 'one:c2:result' --deep $canary
agentwal redact one c2 --erase >/dev/null 2>&1
agentwal gc --erase >/dev/null 2>&1
! grep -rqa $canary "$store" || fail "erased, and in $(grep -rla $canary "$store")"
code 1 agentwal search --deep $canary
! grep -rqa $canary "$store" || fail 'the index has what was erased'
code 0 agentwal check

# The index: made again, and of a store that may only be read.
code 0 agentwal index
grep -Eq '^[0-9]+ segments? indexed, 0 of them now; index size:' stdout || fail "$(cat stdout)"
rm "$store"/index/*.fts
agentwal index --json >result
json 'rows[0]["built"] == rows[0]["segments"] > 0 and rows[0]["indexBytes"] > 0
    and rows[0]["damaged"] == 0' result
found 'one:e4:assistant' fixed
rm "$store"/index/*.fts
if [ "$(id -u)" -ne 0 ]; then
    chmod -w "$store" "$store"/*
    found 'one:e4:assistant' fixed
    chmod u+w "$store" "$store"/*
fi
# A file that cannot be named.
agentwal index >/dev/null
files=("$store"/index/*.fts)
rm "${files[@]}"
mkdir "${files[@]}"
code 3 agentwal index
grep -q 'not all files could be written' stderr || fail "$(cat stderr)"
same "$(ls "$store"/index/*.fts-* "$store"/index/*.new-* 2>/dev/null)" '' 'files left'
found 'one:e4:assistant' fixed
rmdir "${files[@]}"
code 0 agentwal index
# A backup is a store, and has no index of what was erased.
agentwal backup copy >/dev/null
agentwal --store copy search fixed >/dev/null || fail 'no hit in the copy'
