#!/usr/bin/env bash
# agentwal resume --remote: a session goes on at another machine and back, what
# the former one refuses, both going on, and being killed at any time.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"

# on MACHINE COMMAND...: with the store of that machine.
on() {
    local machine=$1
    shift
    agentwal --store "$machine" "$@"
}

# message MACHINE SESSION TEXT
message() {
    printf '{"type":"message","payload":{"role":"user","content":"%s"}}\n' \
        "$3" | on "$1" append "$2"
}

# store_id MACHINE
store_id() {
    on "$1" stats --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["uuid"])'
}

# Bad input. No store is made by what is refused at once.
export AGENTWAL_STORE=$work/desk
code 2 agentwal resume --remote "$url"
code 2 agentwal resume --remote "$url" --take-back s
code 2 agentwal resume --take-back --store-id 00 s
code 2 agentwal resume --remote "$url" --store-id zz s
code 2 agentwal resume --remote https://example.org s
code 2 agentwal remote handoff
rm -rf desk
code 3 agentwal resume --take-back s
[ ! -e desk ] || fail "resume --take-back created a store"
code 1 agentwal resume --remote "$url" s
grep -q 'no other store' stderr || fail "no reason: $(cat stderr)"
rm -rf desk

# The laptop has a session of 60 messages, and pushes it.
on laptop create --id s --title 'A title' >/dev/null 2>&1
for i in $(seq 60); do
    printf '{"type":"message","payload":{"role":"user","content":"m%d"}}\n' "$i"
done | on laptop append s >/dev/null
printf '{"v":1}' | on laptop doc put s notes >/dev/null
on laptop remote add "$url" >/dev/null
code 2 agentwal remote sessions
code 2 agentwal remote sessions --store-id zz "$url"
code 1 agentwal remote sessions "$url"
grep -q 'no list of sessions' stderr || fail "no reason: $(cat stderr)"
on laptop remote push >/dev/null
code 1 on desk resume --remote "$url" unknown
grep -q 'no session "unknown" in the store of' stderr || fail "$(cat stderr)"
code 1 on laptop remote handoff unknown
[ -z "$(find bucket -path '*/own/*')" ] || fail "a claim of no session"

# The desk finds it in the list, without a replica and without a store.
rm -rf desk
code 0 agentwal remote sessions "$url"
grep -q '^s  .*A title' stdout || fail "$(cat stdout)"
code 0 agentwal remote sessions "$url" --store-id "$(store_id laptop)" --json
json '[(row["sessionId"], row["title"], row["firstText"]) for row in rows] ==
    [("s", "A title", "m1")]' stdout
json "[row['storeId'] for row in rows] == ['$(store_id laptop)']" stdout
code 1 agentwal remote sessions "$url" --store-id "$(printf '%032d' 7)"
[ ! -e desk ] || fail "a store was made"

# It goes on at the desk, whose store is made; the last 50 entries are shown.
code 0 on desk resume --remote "$url" s
grep -q 'm11$' stdout || fail "the entry before 49 others is not shown"
if grep -q 'm10$' stdout; then
    fail "more than 50 entries are shown"
fi
grep -q 'goes on here; 60 new entries' stderr || fail "$(cat stderr)"
same "$(on laptop cat s --all)" "$(on desk cat s --all)" "the session"
same '{"v":1}' "$(on desk doc get s notes)" "its document"
code 0 on desk check
same 700 "$(stat -c %a desk/remotes)" "the mode of the replicas"

# The laptop learns of it when it pushes, for good.
message laptop s late >/dev/null
code 0 on laptop remote push
grep -q 's: the session has moved to' stderr || fail "$(cat stderr)"
code 3 message laptop s refused
grep -q 'has moved to .*--take-back s' stderr || fail "$(cat stderr)"
on laptop cat s --tail 1 | grep -q late || fail "it cannot be read"
on laptop list | grep -q "\[moved to $(hostname)\]" || fail "list does not show it"
on laptop show s | grep -q '^moved to ' || fail "show does not say where"
for verb in "show s" list; do
    # shellcheck disable=SC2086
    on laptop $verb --json |
        json "rows[0]['moved'] and rows[0]['movedTo'] == '$(hostname)' and
              rows[0]['movedToStore'] == '$(store_id desk)'"
done
code 0 on laptop check
code 0 on laptop remote push
same '' "$(cat stderr)" "it is said once"
code 0 agentwal remote sessions "$url" --json
json '[row.get("moved") for row in rows] == [True]' stdout

# What the laptop had not pushed is a session by itself at the desk, once.
message desk s here >/dev/null
code 0 on desk resume --remote "$url" s --json
json 'rows[0]["result"] == "branched" and rows[0]["sessionId"] != "s"' stdout
branch=$(python3 -c 'import json
print(json.loads(open("stdout").readline())["sessionId"])')
on desk cat "$branch" --tail 1 | grep -q late || fail "late is lost"
on desk cat s --tail 1 | grep -q here || fail "here is lost"
code 0 on desk resume --remote "$url" s --json
json 'rows[0]["result"] == "unchanged"' stdout
code 0 on desk check

# Back at the laptop, with what was added; then the desk is refused.
on desk remote add "$url" >/dev/null
on desk remote push >/dev/null
code 0 on laptop resume --remote "$url" s
code 0 message laptop s again
code 0 on laptop remote push
code 0 on desk remote push
code 3 message desk s refused
code 0 on desk resume --take-back s
code 0 message desk s mine
code 0 on laptop remote push
code 3 message laptop s refused

# Handed off, and found by a third machine, which names no store.
code 0 on desk remote handoff s
code 3 message desk s refused
code 0 on desk remote handoff s
on laptop create --id other >/dev/null 2>&1
on laptop remote push >/dev/null
code 2 on tablet resume --remote "$url" other
grep -q 'remote sessions' stderr || fail "no advice: $(cat stderr)"
code 0 agentwal remote sessions "$url" --json
json '{(row["storeId"], row["sessionId"]) for row in rows} >= {
    ("'"$(store_id laptop)"'", "other"), ("'"$(store_id desk)"'", "s")}' stdout
code 0 agentwal remote list "$url"
grep -q "^$(store_id laptop)  up to number" stdout || fail "$(cat stdout)"
grep -q "^$(store_id desk)  up to number" stdout || fail "$(cat stdout)"
code 0 agentwal remote list "$url" --json
json '[row["storeId"] for row in rows] == sorted(row["storeId"] for row in rows)' stdout
code 0 on tablet resume --remote "$url" --store-id "$(store_id laptop)" other
code 0 on tablet resume --remote "$url" s
on tablet cat s --tail 1 | grep -q mine || fail "it is not the desk's"
code 0 message tablet s there

# One that shares nothing with others comes without the store.
on desk create --id alone >/dev/null
message desk alone here >/dev/null
code 0 on desk remote handoff alone
same 1 "$(find bucket -path '*/bundle/*' -type f | wc -l)" "bundles"
code 0 on phone resume --remote "$url" --store-id "$(store_id desk)" alone --json
json 'rows[0]["result"] == "created" and rows[0]["parts"] == 0' stdout
same '' "$(find bucket -path '*/bundle/*' -type f)" "the bundle"
[ ! -e "phone/remotes/$(store_id desk)" ] || fail "the store was pulled"
same '' "$(find desk phone -name '*.bundle')" "files that are left"
same "$(on desk cat alone --all)" "$(on phone cat alone --all)" "the session"
code 0 message phone alone there

# A session that was deleted there stays deleted; the claim does no harm.
on desk delete s >/dev/null 2>&1 || on desk delete s --force >/dev/null
code 0 on desk remote push

# A claim that is damaged is named, and local work goes on.
claim=$(find bucket -path "*/own/*" -type f | sort | tail -1)
chmod u+w "$claim"
echo '{"version":1' >"$claim"
code 0 message tablet s more
on laptop create --id kept >/dev/null 2>&1
for machine in laptop desk; do
    on "$machine" remote push >/dev/null 2>stderr || true
done
on laptop remote status | grep -q '^lag  *none' || fail "it is not pushed"

# Killed at any time, and done again: one claim, and all entries.
on one create --id k >/dev/null 2>&1
for i in $(seq 300); do
    printf '{"type":"message","payload":{"role":"user","content":"k%d"}}\n' "$i"
done | on one append k >/dev/null
mkdir kills
kills=file://$work/kills
on one remote add "$kills" >/dev/null
on one remote push >/dev/null
for i in $(seq 10); do
    rm -rf two kills/*/own
    timeout -s KILL "0.0$((i * 4 + 10))" \
        "$(command -v agentwal)" --store two resume --remote "$kills" k \
        >/dev/null 2>&1 || true
    code 0 on two resume --remote "$kills" k
    same "$(on one cat k --all)" "$(on two cat k --all)" "round $i"
    # A killed process may leave a temporary file, whose name begins with '~'.
    same 1 "$(find kills -path '*/own/*' -type f ! -name '~*' | wc -l)" "claims"
    code 0 on two check
done

# Two machines at once: one gets it.
for i in $(seq 5); do
    rm -rf two three kills/*/own
    on two resume --remote "$kills" k >/dev/null 2>two.err &
    first=$!
    on three resume --remote "$kills" k >/dev/null 2>three.err &
    second=$!
    won=0
    if wait "$first"; then won=$((won + 1)); fi
    if wait "$second"; then won=$((won + 1)); fi
    same 1 "$won" "machines in round $i: $(cat two.err three.err)"
done
