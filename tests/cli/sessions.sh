#!/usr/bin/env bash
# agentwal create, append, list, show, fork and delete: options, exit codes and
# JSON.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

# The program and its other names handle their usage in the same way.
for tool in agentwal walcat walcheck; do
    code 0 "$tool" --help
    grep -q "^Usage: $tool" "$work/stdout" || fail "$tool --help"
    code 0 "$tool" --version
    grep -Eq "^$tool [0-9]+\.[0-9]+\.[0-9]+$" "$work/stdout" ||
        fail "$tool --version"
    [ "$tool" = agentwal ] || code 2 "$tool"
    code 2 "$tool" --no-such-option
    grep -q "^$tool: --no-such-option: " "$work/stderr" ||
        fail "$tool: an error names its option"
    [ ! -s "$work/stdout" ] || fail "$tool: an error on standard output"
done
code 0 agentwal append --help
grep -q '^Usage: agentwal append' "$work/stdout" || fail "append --help"
code 2 agentwal append --no-such-option
grep -q '^agentwal: --no-such-option: ' "$work/stderr" || fail "no name of the option"
[ ! -s "$work/stdout" ] || fail "an error on standard output"
code 2 agentwal no-such-command
code 2 agentwal init more
grep -q '^agentwal: more: ' "$work/stderr" || fail "no name of the extra argument"
code 2 agentwal append
grep -q '^agentwal: append: ' "$work/stderr" || fail "no name of the verb with too few arguments"

# Stores.
code 3 agentwal --store "$work/none" list
grep -q 'agentwal init' "$work/stderr" || fail "no hint for a missing store"
code 3 agentwal --store "$work/stdout/store" init
if grep -q 'agentwal init' "$work/stderr"; then
    fail "init suggests init"
fi
grep -q 'Not a directory' "$work/stderr" || fail "no reason why init failed"
code 0 agentwal init
code 1 agentwal init
agentwal stats --json | json 'rows[0]["sessions"] == 0
    and rows[0]["takesAppends"] is True and rows[0]["claims"] == []'
chmod a-w "$store/log"
may=$([ -w "$store/log" ] && echo True || echo False)
agentwal stats --json | json "rows[0]['takesAppends'] is $may"
chmod u+w "$store/log"
agentwal stats | grep -q '^Status  *writable$' || fail "state of a store"
same "" "$(agentwal list --json)" "sessions of an empty store"
code 1 agentwal latest

# Sessions.
here=$(pwd -P)
id=$(agentwal create --id alpha --title 'A "title"' --cwd /srv/app \
    --meta '{"a":1}')
same alpha "$id" "id of a new session"
code 1 agentwal create --id alpha
beta=$(agentwal create)
[ -n "$beta" ] || fail "create prints no id"
code 2 agentwal create --id ''
for bad in @x @latest $'a\nb' $'a\033b' $'a\177b' $'a\302\205b'; do
    code 2 agentwal create --id "$bad"
    code 2 agentwal fork alpha --id "$bad"
    code 2 agentwal compact-session alpha --first-kept e --new "$bad"
done
same 1 "$(wc -l <"$work/stderr")" "lines about an id with a newline"

# Invalid arguments of every command have the same exit code.
long=$(printf '%04097d' 0)
code 2 agentwal create --meta '{'
code 2 agentwal create --meta '[1]'
code 2 agentwal create --id "$long"
code 2 agentwal create --title "$long"
code 2 agentwal create --cwd "$long"
code 2 agentwal list --cwd "$long"
code 2 agentwal list --project "$long"
code 2 agentwal latest --cwd "$long"
code 2 agentwal fork alpha --id "$long"
code 2 agentwal fork alpha --at "$long"
code 2 agentwal append alpha --expect-tail "$long" </dev/null
code 2 agentwal head alpha "$long"
code 2 agentwal head alpha main "$long"
code 2 agentwal head alpha main e --expect "$long"
code 2 agentwal head alpha main e --note "$long"
code 2 agentwal redact alpha "$long"
code 2 agentwal redact alpha e --reason "$long"
code 2 agentwal doc put alpha "$long" <<<1
code 2 agentwal compact-session alpha --first-kept "$long" <<<text
code 2 agentwal compact-session alpha --first-kept e --new "$long" \
    <<<text
same 2 "$(agentwal list --json | wc -l)" "sessions after refusals"
same "$beta" "$(agentwal latest)" "latest"
same alpha "$(agentwal latest --cwd /srv/app)" "latest by directory"
agentwal list --json | json '[r["sessionId"] for r in rows][1] == "alpha"
    and set(rows[0]) >= {"sessionId", "title", "cwd", "projectId", "parentId",
                         "created", "updated", "entries", "head"}'
same 1 "$(agentwal list --json --limit 1 | wc -l)" "list --limit"
cursor=$(agentwal list --json --limit 1 --cursor 2>&1 >"$work/page")
json "[r['sessionId'] for r in rows] == ['$beta']" "$work/page"
agentwal list --json --limit 1 --cursor --after "$cursor" \
    2>"$work/stderr" | json '[r["sessionId"] for r in rows] == ["alpha"]'
[ ! -s "$work/stderr" ] || fail "a cursor after the last session"
code 2 agentwal list --after none
grep -q '^agentwal: --after: .*--cursor' "$work/stderr" || fail "no hint for --after"
same 2 "$(agentwal list --json --limit 0 | wc -l)" "list --limit 0"
agentwal list --json --cwd /srv/app |
    json 'len(rows) == 1 and rows[0]["title"] == "A \"title\""'
agentwal show --json alph | json '
    rows[0]["sessionId"] == "alpha" and rows[0]["metadata"] == {"a": 1}
    and rows[0]["heads"] == {} and rows[0]["lineage"] == []
    and rows[0]["bytes"] >= 0 and rows[0]["head"] is None'
agentwal show --json @latest | json "rows[0]['cwd'] == '$here'"
code 1 agentwal show gamma
agentwal create --id alphabet >/dev/null
code 1 agentwal show alph
grep -q 'matches 2 sessions' "$work/stderr" || fail "ambiguous prefix"
code 0 agentwal show alpha

# Another title, and none.
agentwal title alpha 'Another title' | grep -qx 'the title is now Another title'
agentwal show --json alpha >row
json 'rows[0]["title"] == "Another title"' row
agentwal title --json alpha '' >row
json 'rows[0] == {"title": ""}' row
agentwal show --json alpha >row
json 'not rows[0]["title"]' row
code 2 agentwal title alpha
code 1 agentwal title nobody text

# Appending a batch.
cat >"$work/batch" <<'LINES'
{"id":"e1","type":"message","timestamp":"2026-01-02T03:04:05Z","payload":{"n":1.50}}

{"id":"e2","type":"no\u0074e","runId":"r","payload":[1,2],"meta":{"k":true}}
LINES
agentwal append --json alpha <"$work/batch" >"$work/result"
json 'rows == [{"sessionId": "alpha", "lastAppendedEntryId": "e2",
    "appendedCount": 2, "duplicateCount": 0}]' "$work/result"
agentwal append --json alpha <"$work/batch" |
    json '(rows[0]["appendedCount"], rows[0]["duplicateCount"]) == (0, 2)'
walcat "$store" alpha >"$work/entries"
json 'rows[0] == {"id": "e1", "parentId": None, "type": "message",
        "timestamp": "2026-01-02T03:04:05Z", "payload": {"n": 1.5}}
    and rows[1]["parentId"] == "e1" and rows[1]["type"] == "note"
    and rows[1]["runId"] == "r" and rows[1]["meta"] == {"k": True}' \
    "$work/entries"
grep -q '"payload":{"n":1.50}' "$work/entries" || fail "a number was rewritten"

# A batch is atomic, and an error reports its line.
printf '%s\n' '{"id":"e3","type":"t","payload":1}' 'broken' >"$work/bad"
code 1 agentwal append alpha <"$work/bad"
grep -q 'line 2' "$work/stderr" || fail "no number of the invalid line"
same 2 "$(walcat "$store" alpha | wc -l)" "entries after a refused batch"
code 1 agentwal append alpha <<<'{"id":"e1","type":"t","payload":2}'
code 1 agentwal append alpha \
    <<<'{"type":"t","parentId":"none","payload":2}'
grep -q '^agentwal: line 1: ' "$work/stderr" || fail "no number of the line without a parent"
printf '%s\n' '{"type":"t","payload":1}' '' \
    '{"type":"t","parentId":"none","payload":2}' >"$work/bad"
code 1 agentwal append alpha <"$work/bad"
grep -q '^agentwal: line 3: ' "$work/stderr" || fail "no number of the line without a parent"
printf '%s\n' '{"type":"t","payload":1}' '{"id":"e1","type":"t","payload":2}' \
    >"$work/bad"
code 1 agentwal append alpha <"$work/bad"
grep -q '^agentwal: line 2: ' "$work/stderr" || fail "no number of the line with a duplicate id"
code 1 agentwal append alpha \
    <<<'{"type":"redaction","payload":{"targetEntryId":"none"}}'
grep -q '^agentwal: append: ' "$work/stderr" || fail "no name of the failed verb"
code 1 agentwal append alpha <<<'{"type":"t"}'
code 1 agentwal append alpha \
    <<<'{"type":"t","payload":{"n":1,"n":2},"parent":"e1"}'
grep -q '^agentwal: line 1: the member "parent" ' "$work/stderr" ||
    fail "no name of the unknown member"
code 1 agentwal append alpha \
    <<<'{"type":"t","payload":1,"p\u0061yload":2}'
grep -q 'twice' "$work/stderr" || fail "a duplicate member"
same 2 "$(walcat "$store" alpha | wc -l)" "entries after refused members"
code 2 agentwal append alpha --durability soon </dev/null
code 2 agentwal append alpha --stream 256 </dev/null
agentwal append --json alpha </dev/null | json 'rows[0]["appendedCount"] == 0'

# The expected tail.
code 1 agentwal append --json alpha --expect-tail e1 \
    <<<'{"id":"e3","type":"t","payload":3}'
json 'rows == [{"conflict": {"expected": "e1", "actual": "e2"}}]' \
    "$work/stdout"
code 0 agentwal append alpha --expect-tail e2 \
    <<<'{"id":"e3","type":"t","payload":3}'
code 0 agentwal append "$beta" --expect-tail '' \
    <<<'{"id":"b1","type":"t","payload":3}'

# One append per line.
for n in 1 2 3; do
    printf '{"id":"x%d","type":"t","payload":%d}\n' "$n" "$n"
done | agentwal append --json alpha --each --expect-tail e3 \
    --durability written >"$work/each"
json '[r["lastAppendedEntryId"] for r in rows] == ["x1", "x2", "x3"]' \
    "$work/each"
printf '%s\n' '{"id":"y1","type":"t","payload":1}' '{"type":7}' \
    '{"id":"y2","type":"t","payload":1}' >"$work/stop"
code 1 agentwal append alpha --each <"$work/stop"
same 1 "$(wc -l <"$work/stdout")" "results before a refusal"
walcat "$store" alpha | json 'rows[-1]["id"] == "y1"'

# The first text of a user replaces a missing title.
agentwal append "$beta" >/dev/null \
    <<<'{"type":"message","payload":{"role":"user","content":" Mend\n it. "}}'
agentwal show --json "$beta" | json 'rows[0]["firstText"] == "Mend it."
    and rows[0]["title"] is None'
agentwal list | grep -q 'Mend it\.$' || fail "the first text in the table"
agentwal list --json --cwd /srv/app | json 'rows[0]["firstText"] is None'

# Queued appends are counted as queued.
agentwal append --json "$beta" --durability queued \
    <<<'{"id":"q","type":"t","payload":1}' |
    json 'rows[0]["queued"] == 1 and rows[0]["lastAppendedEntryId"] == "q"
    and set(rows[0]) >= {"sessionId", "appendedCount", "duplicateCount"}'
agentwal append --json "$beta" <"$work/batch" |
    json '"queued" not in rows[0]'

# Forks.
fork=$(agentwal fork alpha --at e2 --id gamma)
same gamma "$fork" "id of a fork"
agentwal append gamma <<<'{"id":"g1","type":"t","payload":1}' \
    >/dev/null
walcat "$store" gamma | json '[r["id"] for r in rows] == ["e1", "e2", "g1"]'
agentwal show --json gamma |
    json 'rows[0]["parentId"] == "alpha" and rows[0]["lineage"] == ["alpha"]
    and rows[0]["heads"] == {"main": "g1"}'
agentwal children --json alpha |
    json '[r["sessionId"] for r in rows] == ["gamma"]'
code 1 agentwal fork alpha --at none
code 0 agentwal accept-damage

# delete accepts no prefix: a second call would delete a fork.
agentwal create --id run >/dev/null
agentwal append run <<<'{"id":"r1","type":"t","payload":1}' >/dev/null
agentwal fork run --id run-fork >/dev/null
code 0 delete_session "$store" run
code 1 agentwal delete run
grep -q 'needs the complete id' "$work/stderr" ||
    fail "no reason for a refused prefix"
code 1 agentwal redact run r1
code 0 agentwal show run-fork
code 0 agentwal redact run-fork r1
(cd "$work" && agentwal create --id here >/dev/null &&
    agentwal delete @latest)
code 1 agentwal show here

# An id is printed on one line, with its control characters escaped.
agentwal create --id odd >/dev/null
agentwal append odd <<<'{"id":"a\nb\u001b","type":"t","payload":1}' \
    >/dev/null
walcat --tree "$store" odd | grep -q '^a\\x0ab\\x1b  t  <- main$' ||
    fail "control characters in the tree"
agentwal head odd | grep -q '^main  a\\x0ab\\x1b$' ||
    fail "control characters in a list of heads"
agentwal show odd | grep -q 'main: a\\x0ab\\x1b$' ||
    fail "control characters in the output of show"
code 1 agentwal show $'no\nne\033'
grep -qF 'agentwal: no\x0ane\x1b: ' "$work/stderr" ||
    fail "control characters in an error"

# No file of the store gets the descriptor of a closed standard stream.
for stream in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
    got=0
    eval "agentwal list $stream" >/dev/null 2>"$work/stderr" || got=$?
    same 0 "$got" "exit code with $stream"
done
got=0
agentwal list >&- 2>"$work/stderr" || got=$?
same 0 "$got" "exit code without standard output"
[ ! -s "$work/stderr" ] || fail "a closed standard output was reported"
got=0
agentwal append alpha <<<'{"id":"z","type":"t","payload":1}' \
    >&- 2>&- || got=$?
same 0 "$got" "exit code of an append without output"
walcat "$store" alpha | json 'rows[-1]["id"] == "z"'
got=0
agentwal show gamma-none >&- 2>&- || got=$?
same 1 "$got" "exit code of an error without output"
walcheck "$store" >/dev/null

# A reader that closes the pipe is not an error.
agentwal list | head -c 1 >/dev/null
