#!/usr/bin/env bash
# agentwal doc and meta: documents, versions, conflicts and merge patches; and
# migrate and accept-damage without anything to do.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

agentwal init
agentwal create --id s --meta '{"a": 1.50, "b":{"c":[1, 2],"d":null}}' \
    >/dev/null

# Metadata.
same '{"a": 1.50, "b":{"c":[1, 2],"d":null}}' "$(agentwal meta s)" \
    "metadata"
same '{"a":1.50,"b":{"c":[1, 2],"d":null,"e":"x"}}' \
    "$(agentwal meta s --merge '{"b":{"e":"x"}}')" "a merge"
same '{"a":1.50,"b":7}' "$(agentwal meta s --merge ' {"b":7} ')" \
    "a merge that replaces"
agentwal meta s --merge '{"a":null,"b":null}' | json 'rows == [{}]'
agentwal show --json s | json 'rows[0]["metadata"] == {}'
agentwal create --id bare >/dev/null
same '{}' "$(agentwal meta bare)" "no metadata"
same '{"x":{}}' "$(agentwal meta bare --merge '{"x":{"y":null}}')" \
    "a merge into nothing"
for patch in '' '[1]' 'null' '{"a":1' '{"a":1}}'; do
    code 2 agentwal meta bare --merge "$patch"
done
same '{"x":{}}' "$(agentwal meta bare)" "after refused patches"
code 1 agentwal meta none
code 2 agentwal meta

# Concurrent merges are all kept.
for n in 1 2 3 4 5 6; do
    agentwal meta bare --merge "{\"n$n\":$n}" >/dev/null &
done
wait
agentwal meta bare | json 'len(rows[0]) == 7'

# Documents of a session.
code 1 agentwal doc get s todo
agentwal doc put s todo <<<' {"items": [1.0, "é"]} ' >"$work/put"
json 'rows[0]["key"] == "todo" and rows[0]["version"] > 0
    and len(rows[0]) == 2' "$work/put"
first=$(field version "$work/put")
same '{"items": [1.0, "é"]}' "$(agentwal doc get s todo)" "a document"
agentwal doc get --json s todo | json "
    rows[0]['key'] == 'todo' and rows[0]['version'] == $first
    and rows[0]['modified'].endswith('Z')
    and rows[0]['value'] == {'items': [1.0, 'é']}"
agentwal doc put s todo --if-version "$first" <<<'2' >"$work/put"
second=$(field version "$work/put")
code 1 agentwal doc put s todo --if-version "$first" <<<'3'
json "rows == [{'conflict': {'expected': $first, 'actual': $second}}]" \
    "$work/stdout"
code 1 agentwal doc put s todo --if-version 0 <<<'3'
code 1 agentwal doc put s none --if-version "$first" <<<'3'
json "rows == [{'conflict': {'expected': $first, 'actual': 0}}]" "$work/stdout"
code 0 agentwal doc put s new --if-version 0 <<<'"n"'
same 2 "$(agentwal doc get s todo)" "the newest version"
same '{"items": [1.0, "é"]}' "$(agentwal doc get s todo --at "$first")" \
    "an older version"
for input in '' 'broken' '1 2'; do
    code 1 agentwal doc put s todo <<<"$input"
    [ ! -s "$work/stdout" ] || fail "a refusal on standard output"
done

# Lists, in the order of the keys.
agentwal doc put s todo/2 <<<'[
]' >/dev/null
agentwal doc put s todo/1 <<<'true' >/dev/null
same "new todo todo/1 todo/2" "$(agentwal doc list s | xargs)" "the keys"
same "todo/1 todo/2" "$(agentwal doc list s todo/ | xargs)" \
    "keys with a prefix"
same "" "$(agentwal doc list s none)" "no keys"
agentwal doc scan s todo | json '
    [(r["key"], r["value"]) for r in rows]
    == [("todo", 2), ("todo/1", True), ("todo/2", [])]
    and set(rows[0]) == {"key", "version", "modified", "value"}'
agentwal doc scan s todo --history | json "
    [r['version'] for r in rows][:2] == [$second, $first] and len(rows) == 4"

# Deleting.
code 1 agentwal doc delete s todo --if-version "$first"
agentwal doc delete s todo --if-version "$second" |
    json "rows[0]['key'] == 'todo' and rows[0]['version'] > $second"
code 1 agentwal doc get s todo
code 1 agentwal doc delete s todo
same 2 "$(agentwal doc get s todo --at "$second")" "a deleted document"
agentwal doc scan s todo --history |
    json 'rows[0]["deleted"] is True and "value" not in rows[0]'

# A fork has the documents of its source, and later versions of itself.
agentwal append s >/dev/null <<<'{"type":"t","payload":1}'
agentwal fork s --id f >/dev/null
agentwal doc put f new <<<'"f"' >/dev/null
agentwal doc put s later <<<'1' >/dev/null
same '"n"' "$(agentwal doc get s new)" "the source's document"
same '"f"' "$(agentwal doc get f new)" "the fork's document"
same true "$(agentwal doc get f todo/1)" "a shared document"
code 1 agentwal doc get f later

# Documents of the store.
agentwal doc put --store settings <<<'{"k":1}' >/dev/null
same '{"k":1}' "$(agentwal doc get --store settings)" "the store's"
code 1 agentwal doc get s settings
same settings "$(agentwal doc list --store)" "the store's keys"
agentwal list --json | json 'len(rows) == 3'

# Usage.
code 2 agentwal doc
code 2 agentwal doc fetch s key
code 2 agentwal doc put s <<<1
code 2 agentwal doc get --store
code 2 agentwal doc get s key more
code 2 agentwal doc get s key --if-version 1
code 2 agentwal doc put s key --if-version one <<<1
code 2 agentwal doc put s key --at 1 <<<1
code 2 agentwal doc list s --history
code 1 agentwal doc list none
code 3 agentwal --store "$work/none" doc list --store

# A new store and its sessions are at the current version.
agentwal migrate --json | json 'rows[0]["from"] == rows[0]["to"] == 1
    and rows[0]["sessions"] == 0'
agentwal migrate --json s | json 'rows[0]["from"] == rows[0]["to"] == 1
    and rows[0]["sessions"] == 0'
code 3 agentwal --store "$work/none" migrate
code 1 agentwal migrate none
same "" "$(agentwal accept-damage)" "damage of a sound store"
same '{"k":1}' "$(agentwal doc get --store settings)" "after that"
same settings "$(agentwal doc list --store)" "keys after that"
code 0 walcheck "$store"

# Damaged documents of the store cannot be written until accept-damage.
agentwal doc put --store marked <<<'"a value to be damaged"' >/dev/null
agentwal doc put --store later <<<'1' >/dev/null
python3 - "$store"/log/*.seg <<'PROGRAM'
import sys
with open(sys.argv[1], "r+b") as file:
    at = file.read().index(b"to be damaged")
    file.seek(at)
    file.write(b"T")
PROGRAM
rm -r "$store/index" # which has a copy of the log's content
code 1 walcheck "$store"
code 1 agentwal doc put --store later <<<'2'
grep -q 'accept-damage' "$work/stderr" || fail "no hint for accept-damage"
agentwal accept-damage --json >"$work/result"
json 'rows == [{"documents": "--store"}]' "$work/result"
same "" "$(agentwal accept-damage)" "remaining damage"
code 0 agentwal doc put --store later <<<'2'
same 2 "$(agentwal doc get --store later)" "a document after damage"
