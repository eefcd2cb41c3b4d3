#!/usr/bin/env bash
# walctl: options, exit codes, and the JSON that scripts rely on.
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

# Every tool has the same manners.
for tool in walctl walcat walconv; do
    code 0 "$tool" --help
    grep -q "^Usage: $tool" "$work/stdout" || fail "$tool --help"
    code 0 "$tool" --version
    grep -Eq "^$tool [0-9]+\.[0-9]+\.[0-9]+$" "$work/stdout" ||
        fail "$tool --version"
    code 2 "$tool"
    code 2 "$tool" --no-such-option
    grep -q "^$tool: --no-such-option: " "$work/stderr" ||
        fail "$tool: how an error is told"
    [ ! -s "$work/stdout" ] || fail "$tool: an error on standard output"
done
code 2 walctl no-such-command "$store"
code 2 walctl init
code 2 walctl init "$store" more

# Stores.
code 3 walctl list "$work/none"
grep -q 'walctl init' "$work/stderr" || fail "no hint for a missing store"
code 0 walctl init "$store"
code 1 walctl init "$store"
walctl stats --json "$store" | json 'rows[0]["sessions"] == 0'
same "" "$(walctl list --json "$store")" "sessions of an empty store"
code 1 walctl latest "$store"

# Sessions.
here=$(pwd -P)
id=$(walctl create "$store" --id alpha --title 'A "title"' --cwd /srv/app \
    --meta '{"a":1}')
same alpha "$id" "id of a new session"
code 1 walctl create "$store" --id alpha
beta=$(walctl create "$store")
[ -n "$beta" ] || fail "create prints no id"
code 2 walctl create "$store" --id ''
same "$beta" "$(walctl latest "$store")" "latest"
same alpha "$(walctl latest "$store" --cwd /srv/app)" "latest by directory"
walctl list --json "$store" | json '[r["sessionId"] for r in rows][1] == "alpha"
    and set(rows[0]) >= {"sessionId", "title", "cwd", "projectId", "parentId",
                         "created", "updated", "entries", "head"}'
same 1 "$(walctl list --json --limit 1 "$store" | wc -l)" "list --limit"
cursor=$(walctl list --json --limit 1 --cursor "$store" 2>&1 >"$work/page")
json "[r['sessionId'] for r in rows] == ['$beta']" "$work/page"
walctl list --json --limit 1 --cursor --after "$cursor" "$store" \
    2>"$work/stderr" | json '[r["sessionId"] for r in rows] == ["alpha"]'
[ ! -s "$work/stderr" ] || fail "a cursor behind the last session"
code 2 walctl list --after none "$store"
walctl list --json --cwd /srv/app "$store" |
    json 'len(rows) == 1 and rows[0]["title"] == "A \"title\""'
walctl show --json "$store" alph | json '
    rows[0]["sessionId"] == "alpha" and rows[0]["metadata"] == {"a": 1}
    and rows[0]["heads"] == {} and rows[0]["lineage"] == []
    and rows[0]["bytes"] >= 0 and rows[0]["head"] is None'
walctl show --json "$store" @latest | json "rows[0]['cwd'] == '$here'"
code 1 walctl show "$store" gamma
walctl create "$store" --id alphabet >/dev/null
code 1 walctl show "$store" alph
grep -q 'fits 2 sessions' "$work/stderr" || fail "ambiguous prefix"
code 0 walctl show "$store" alpha

# Appending a batch.
cat >"$work/batch" <<'LINES'
{"id":"e1","type":"message","timestamp":"2026-01-02T03:04:05Z","payload":{"n":1.50}}

{"id":"e2","type":"no\u0074e","runId":"r","payload":[1,2],"meta":{"k":true}}
LINES
walctl append "$store" alpha <"$work/batch" >"$work/result"
json 'rows == [{"sessionId": "alpha", "lastAppendedEntryId": "e2",
    "appendedCount": 2, "duplicateCount": 0}]' "$work/result"
walctl append "$store" alpha <"$work/batch" |
    json '(rows[0]["appendedCount"], rows[0]["duplicateCount"]) == (0, 2)'
walcat "$store" alpha >"$work/entries"
json 'rows[0] == {"id": "e1", "parentId": None, "type": "message",
        "timestamp": "2026-01-02T03:04:05Z", "payload": {"n": 1.5}}
    and rows[1]["parentId"] == "e1" and rows[1]["type"] == "note"
    and rows[1]["runId"] == "r" and rows[1]["meta"] == {"k": True}' \
    "$work/entries"
grep -q '"payload":{"n":1.50}' "$work/entries" || fail "a number was rewritten"

# A batch is atomic, and what is refused says where.
printf '%s\n' '{"id":"e3","type":"t","payload":1}' 'broken' >"$work/bad"
code 1 walctl append "$store" alpha <"$work/bad"
grep -q 'line 2' "$work/stderr" || fail "which line is broken"
same 2 "$(walcat "$store" alpha | wc -l)" "entries after a refused batch"
code 1 walctl append "$store" alpha <<<'{"id":"e1","type":"t","payload":2}'
code 1 walctl append "$store" alpha \
    <<<'{"type":"t","parentId":"none","payload":2}'
code 1 walctl append "$store" alpha <<<'{"type":"t"}'
code 2 walctl append "$store" alpha --durability soon </dev/null
code 2 walctl append "$store" alpha --stream 256 </dev/null
walctl append "$store" alpha </dev/null | json 'rows[0]["appendedCount"] == 0'

# The expected tail.
code 1 walctl append "$store" alpha --expect-tail e1 \
    <<<'{"id":"e3","type":"t","payload":3}'
json 'rows == [{"conflict": {"expected": "e1", "actual": "e2"}}]' \
    "$work/stdout"
code 0 walctl append "$store" alpha --expect-tail e2 \
    <<<'{"id":"e3","type":"t","payload":3}'
code 0 walctl append "$store" "$beta" --expect-tail '' \
    <<<'{"id":"b1","type":"t","payload":3}'

# One append a line.
for n in 1 2 3; do
    printf '{"id":"x%d","type":"t","payload":%d}\n' "$n" "$n"
done | walctl append "$store" alpha --each --expect-tail e3 \
    --durability written >"$work/each"
json '[r["lastAppendedEntryId"] for r in rows] == ["x1", "x2", "x3"]' \
    "$work/each"
printf '%s\n' '{"id":"y1","type":"t","payload":1}' '{"type":7}' \
    '{"id":"y2","type":"t","payload":1}' >"$work/stop"
code 1 walctl append "$store" alpha --each <"$work/stop"
same 1 "$(wc -l <"$work/stdout")" "results before a refusal"
walcat "$store" alpha | json 'rows[-1]["id"] == "y1"'

# The first text of a user stands for a title.
walctl append "$store" "$beta" >/dev/null \
    <<<'{"type":"message","payload":{"role":"user","content":" Mend\n it. "}}'
walctl show --json "$store" "$beta" | json 'rows[0]["firstText"] == "Mend it."
    and rows[0]["title"] is None'
walctl list "$store" | grep -q 'Mend it\.$' || fail "the first text in the table"
walctl list --json "$store" --cwd /srv/app | json 'rows[0]["firstText"] is None'

# Forks.
fork=$(walctl fork "$store" alpha --at e2 --id gamma)
same gamma "$fork" "id of a fork"
walctl append "$store" gamma <<<'{"id":"g1","type":"t","payload":1}' \
    >/dev/null
walcat "$store" gamma | json '[r["id"] for r in rows] == ["e1", "e2", "g1"]'
walctl show --json "$store" gamma |
    json 'rows[0]["parentId"] == "alpha" and rows[0]["lineage"] == ["alpha"]
    and rows[0]["heads"] == {"main": "g1"}'
walctl children --json "$store" alpha |
    json '[r["sessionId"] for r in rows] == ["gamma"]'
code 1 walctl fork "$store" alpha --at none
code 0 walctl accept-damage "$store"

# A reader that goes away is no failure.
walctl list "$store" | head -c 1 >/dev/null
