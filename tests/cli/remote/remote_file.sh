#!/usr/bin/env bash
# agentwal remote over file://: a round trip, what each push ships, a session
# that goes on at another machine, the old writer, and what the remote may lose.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"
export AGENTWAL_STORE=$work/laptop

# append SESSION TEXT: one message, to the store of this machine.
append() {
    printf '{"type":"note","payload":{"text":"%s"}}\n' "$2" |
        agentwal append "$1" >/dev/null
}

# copy_of STORE OTHER: they have the same sessions and entries.
copy_of() {
    same "$(agentwal --store "$1" list --json)" \
        "$(agentwal --store "$2" list --json)" "the sessions of $2"
    same "$(agentwal --store "$1" cat one --all)" \
        "$(agentwal --store "$2" cat one --all)" "the entries of $2"
    code 0 agentwal --store "$2" check
}

# Bad input. No store is made.
code 2 agentwal remote
code 2 agentwal remote send
code 2 agentwal remote add
code 2 agentwal remote push "$url"
code 2 agentwal remote status --take-over
code 3 agentwal remote add "$url"
[ ! -e laptop ] || fail "remote add created a store"
agentwal create --id one >/dev/null 2>&1
code 1 agentwal remote push
grep -q 'agentwal remote add' stderr || fail "no advice: $(cat stderr)"
code 3 agentwal remote add "file://$work/nowhere"
code 2 agentwal remote add "https://example.org/bucket"
code 2 agentwal remote add "s3://user:secret@bucket"
if grep -q secret stderr; then
    fail "the password is printed"
fi
[ ! -e laptop/remote.json ] || fail "a remote that failed is kept"

# The remote is remembered without more than it needs.
code 0 agentwal remote add "$url"
same 600 "$(stat -c %a laptop/remote.json)" "the mode of remote.json"
json 'rows[0]["version"] == 1 and len(rows[0]["writer"]) == 32' \
    laptop/remote.json
same '' "$(find bucket -type f)" "what the probe left"
code 0 agentwal remote add "$url"
mkdir other
code 1 agentwal remote add "file://$work/other"
code 0 agentwal remote add --replace "file://$work/other"
code 0 agentwal remote add --replace "$url"
code 1 agentwal remote pull "$url" server
grep -q 'has no store' stderr || fail "no reason: $(cat stderr)"

# A session with entries, content and a checkpoint.
head -c 300000 /dev/urandom >large
append one first
agentwal checkpoint one before --root "$work" large >/dev/null
agentwal remote status --json >report
json 'rows[0]["epoch"] == 0 and rows[0]["lagSequences"] == 3
    and rows[0]["lagBytes"] > 300000' report
agentwal remote push --json >pushed
json 'rows[0]["epoch"] == 1 and rows[0]["bytes"] > 300000
    and rows[0]["lastSequence"] == 3' pushed
agentwal remote status --json >report
json 'rows[0]["isWriter"] and rows[0]["lagSequences"] == 0
    and rows[0]["lagBytes"] == 0 and rows[0]["lastSequence"] == 3' report

# The replica is the store, and only read.
code 0 agentwal remote pull "$url" server
copy_of laptop server
code 3 agentwal --store server create --id two
agentwal --store server checkpoint-export one files --layout sdk >/dev/null
found=$(find files -type f -size 300000c)
cmp large "${found:-missing}" || fail "the file of the checkpoint"

# A push ships what is new, and nothing else.
append one second
agentwal remote push --json >pushed
json 'rows[0]["parts"] == 1 and rows[0]["bytes"] < 20000
    and rows[0]["epoch"] == 1' pushed
code 0 agentwal remote push
grep -q '^nothing new' stdout || fail "not nothing: $(cat stdout)"
agentwal remote pull "$url" server --json >pulled
json 'rows[0]["parts"] == 1 and not rows[0]["writable"]' pulled
copy_of laptop server

# A store that is there is not replaced.
agentwal --store elsewhere create --id one >/dev/null 2>&1
code 1 agentwal remote pull "$url" elsewhere

# The session goes on at the server. The laptop is fenced, and says so.
append one third
agentwal remote push >/dev/null
agentwal remote pull --take-over "$url" server --json >pulled
json 'rows[0]["writable"]' pulled
copy_of laptop server
append one fourth
code 1 agentwal remote push
grep -q 'another writer has epoch 2' stderr || fail "no reason: $(cat stderr)"
for words in "list" "create --id later"; do
    # shellcheck disable=SC2086 # A verb and its options.
    code 0 agentwal $words
    grep -q 'another machine has taken this store over' stderr || fail "$words is silent"
done
agentwal delete later >/dev/null 2>&1
cp laptop/remote.json kept
echo damaged >laptop/remote.json
code 0 agentwal list
same '' "$(cat stderr)" "what list says of a remote.json that it cannot read"
mv kept laptop/remote.json
AGENTWAL_STORE=$work/server append one fifth
code 0 agentwal --store server remote push
code 1 agentwal remote push
# It lacks the fifth entry, so that it cannot take over.
code 1 agentwal remote push --take-over
grep -q 'lacks what the remote has' stderr || fail "no reason: $(cat stderr)"
code 1 agentwal remote compact --now
grep -q 'lacks what the remote has' stderr || fail "no reason: $(cat stderr)"
agentwal remote status >report 2>stderr && fail "another past is not reported"
grep -q '^lag  *not known' report || fail "$(cat report)"
grep -q 'appended here is not pushed.*--take-over' stderr || fail "$(cat stderr)"
agentwal remote status --json >report 2>stderr || true
json 'not rows[0]["isWriter"] and "lagBytes" not in rows[0]' report
AGENTWAL_STORE=$work/server append one sixth
code 0 agentwal --store server remote push
code 0 agentwal remote pull "$url" again
copy_of server again

# Taken back: push --take-over of a copy that has everything.
cp -r server moved
rm moved/remote.json
code 0 agentwal --store moved remote add "$url"
code 1 agentwal --store moved remote push
code 0 agentwal --store moved list
grep -q 'another machine has taken' stderr || fail "the fence is not named"
code 0 agentwal --store moved remote push --take-over
code 0 agentwal --store moved list
same '' "$(cat stderr)" "what list says of a store that writes again"
AGENTWAL_STORE=$work/server append one seventh
code 1 agentwal --store server remote push
AGENTWAL_STORE=$work/moved append one eighth
code 0 agentwal --store moved remote push
code 0 agentwal remote pull "$url" again
copy_of moved again

# A store that was compacted before its first push.
export AGENTWAL_STORE=$work/compacted
agentwal create --id one >/dev/null 2>&1
for i in 1 2 3; do
    append one "$i"
    agentwal create --id "gone$i" >/dev/null
    agentwal delete "gone$i" --erase >/dev/null 2>&1 || true
done
agentwal gc --rate 0 >/dev/null 2>&1 || true
mkdir second
code 0 agentwal remote add "file://$work/second"
code 0 agentwal remote push
code 0 agentwal remote pull "file://$work/second" copy
copy_of compacted copy

# Two stores in a bucket.
code 0 agentwal remote add --replace "$url"
code 0 agentwal remote push
code 2 agentwal remote pull "$url" which
grep -q 'several stores' stderr || fail "no reason: $(cat stderr)"
code 2 agentwal remote pull --store-id 12 "$url" which
id=$(field storeId pulled)
code 0 agentwal remote pull --store-id "$id" "$url" which
copy_of moved which

# A replica does not become a writer: it could not go on.
code 3 agentwal --store which remote add "$url"
grep -q 'is a replica.*--take-over' stderr || fail "no advice: $(cat stderr)"
cp moved/remote.json which/remote.json
for verb in "push --take-over" status compact; do
    # shellcheck disable=SC2086
    code 3 agentwal --store which remote $verb
    grep -q 'is a replica' stderr || fail "$verb: $(cat stderr)"
done
rm -f which/remote.json
code 3 agentwal --store which create --id two
grep -q 'is a replica.*--take-over' stderr || fail "no advice: $(cat stderr)"
code 0 agentwal --store moved remote push

# Removed and added again, it is another writer.
code 0 agentwal remote remove
grep -q 'push --take-over' stderr || fail "no advice: $(cat stderr)"
code 1 agentwal remote remove
code 1 agentwal remote push
code 0 agentwal remote add "$url"
code 1 agentwal remote push
code 0 agentwal remote push --take-over
grep -q 'takes over from the writer of epoch' stderr || fail "$(cat stderr)"

# Damage and loss are found, and the object is named.
part=$(find "bucket/$id/part" -type f | sort | sed -n 2p)
cp "$part" kept
head -c 100 kept >"$part"
code 1 agentwal remote pull --store-id "$id" "$url" damaged
grep -q "${part##*/}" stderr || fail "not named: $(cat stderr)"
rm -f "$part"
code 1 agentwal remote pull --store-id "$id" "$url" lost
grep -q "${part##*/}.*lost" stderr || fail "not named: $(cat stderr)"
code 1 agentwal remote pull --store-id "$id" "$url" lost --json
json 'rows[0]["error"]["status"] == "WAL_ECORRUPT"
    and rows[0]["error"]["exitCode"] == 1' stderr
cp kept "$part"
code 0 agentwal remote pull --store-id "$id" "$url" lost
copy_of moved lost

# The remote is gone: the store is as it was.
mv bucket bucket.away
code 3 agentwal remote push
code 3 agentwal remote status
append one ninth
