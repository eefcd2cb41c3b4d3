#!/usr/bin/env bash
# walctl doc and meta: documents, versions, conflicts and merge patches; and
# migrate and accept-damage without anything to do.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

walctl init "$store"
walctl create "$store" --id s --meta '{"a": 1.50, "b":{"c":[1, 2],"d":null}}' \
    >/dev/null

# Metadata.
same '{"a": 1.50, "b":{"c":[1, 2],"d":null}}' "$(walctl meta "$store" s)" \
    "metadata"
same '{"a":1.50,"b":{"c":[1, 2],"d":null,"e":"x"}}' \
    "$(walctl meta "$store" s --merge '{"b":{"e":"x"}}')" "a merge"
same '{"a":1.50,"b":7}' "$(walctl meta "$store" s --merge ' {"b":7} ')" \
    "a merge that replaces"
walctl meta "$store" s --merge '{"a":null,"b":null}' | json 'rows == [{}]'
walctl show --json "$store" s | json 'rows[0]["metadata"] == {}'
walctl create "$store" --id bare >/dev/null
same '{}' "$(walctl meta "$store" bare)" "no metadata"
same '{"x":{}}' "$(walctl meta "$store" bare --merge '{"x":{"y":null}}')" \
    "a merge into nothing"
for patch in '' '[1]' 'null' '{"a":1' '{"a":1}}'; do
    code 2 walctl meta "$store" bare --merge "$patch"
done
same '{"x":{}}' "$(walctl meta "$store" bare)" "after refused patches"
code 1 walctl meta "$store" none
code 2 walctl meta "$store"

# Concurrent merges are all kept.
for n in 1 2 3 4 5 6; do
    walctl meta "$store" bare --merge "{\"n$n\":$n}" >/dev/null &
done
wait
walctl meta "$store" bare | json 'len(rows[0]) == 7'

# Documents of a session.
code 1 walctl doc get "$store" s todo
walctl doc put "$store" s todo <<<' {"items": [1.0, "é"]} ' >"$work/put"
json 'rows[0]["key"] == "todo" and rows[0]["version"] > 0
    and len(rows[0]) == 2' "$work/put"
first=$(field version "$work/put")
same '{"items": [1.0, "é"]}' "$(walctl doc get "$store" s todo)" "a document"
walctl doc get --json "$store" s todo | json "
    rows[0]['key'] == 'todo' and rows[0]['version'] == $first
    and rows[0]['modified'].endswith('Z')
    and rows[0]['value'] == {'items': [1.0, 'é']}"
walctl doc put "$store" s todo --if-version "$first" <<<'2' >"$work/put"
second=$(field version "$work/put")
code 1 walctl doc put "$store" s todo --if-version "$first" <<<'3'
json "rows == [{'conflict': {'expected': $first, 'actual': $second}}]" \
    "$work/stdout"
code 1 walctl doc put "$store" s todo --if-version 0 <<<'3'
code 1 walctl doc put "$store" s none --if-version "$first" <<<'3'
json "rows == [{'conflict': {'expected': $first, 'actual': 0}}]" "$work/stdout"
code 0 walctl doc put "$store" s new --if-version 0 <<<'"n"'
same 2 "$(walctl doc get "$store" s todo)" "the newest version"
same '{"items": [1.0, "é"]}' "$(walctl doc get "$store" s todo --at "$first")" \
    "an older version"
for input in '' 'broken' '1 2'; do
    code 1 walctl doc put "$store" s todo <<<"$input"
    [ ! -s "$work/stdout" ] || fail "a refusal on standard output"
done

# Lists, in the order of the keys.
walctl doc put "$store" s todo/2 <<<'[
]' >/dev/null
walctl doc put "$store" s todo/1 <<<'true' >/dev/null
same "new todo todo/1 todo/2" "$(walctl doc list "$store" s | xargs)" "the keys"
same "todo/1 todo/2" "$(walctl doc list "$store" s todo/ | xargs)" \
    "keys with a prefix"
same "" "$(walctl doc list "$store" s none)" "no keys"
walctl doc scan "$store" s todo | json '
    [(r["key"], r["value"]) for r in rows]
    == [("todo", 2), ("todo/1", True), ("todo/2", [])]
    and set(rows[0]) == {"key", "version", "modified", "value"}'
walctl doc scan "$store" s todo --history | json "
    [r['version'] for r in rows][:2] == [$second, $first] and len(rows) == 4"

# Deleting.
code 1 walctl doc delete "$store" s todo --if-version "$first"
walctl doc delete "$store" s todo --if-version "$second" |
    json "rows[0]['key'] == 'todo' and rows[0]['version'] > $second"
code 1 walctl doc get "$store" s todo
code 1 walctl doc delete "$store" s todo
same 2 "$(walctl doc get "$store" s todo --at "$second")" "a deleted document"
walctl doc scan "$store" s todo --history |
    json 'rows[0]["deleted"] is True and "value" not in rows[0]'

# A fork has the documents of its source, and later versions of itself.
walctl append "$store" s >/dev/null <<<'{"type":"t","payload":1}'
walctl fork "$store" s --id f >/dev/null
walctl doc put "$store" f new <<<'"f"' >/dev/null
walctl doc put "$store" s later <<<'1' >/dev/null
same '"n"' "$(walctl doc get "$store" s new)" "the source's document"
same '"f"' "$(walctl doc get "$store" f new)" "the fork's document"
same true "$(walctl doc get "$store" f todo/1)" "a shared document"
code 1 walctl doc get "$store" f later

# Documents of the store.
walctl doc put "$store" --store settings <<<'{"k":1}' >/dev/null
same '{"k":1}' "$(walctl doc get --store "$store" settings)" "the store's"
code 1 walctl doc get "$store" s settings
same settings "$(walctl doc list "$store" --store)" "the store's keys"
walctl list --json "$store" | json 'len(rows) == 3'

# Usage.
code 2 walctl doc
code 2 walctl doc fetch "$store" s key
code 2 walctl doc put "$store" s <<<1
code 2 walctl doc get "$store" --store
code 2 walctl doc get "$store" s key more
code 2 walctl doc get "$store" s key --if-version 1
code 2 walctl doc put "$store" s key --if-version one <<<1
code 2 walctl doc put "$store" s key --at 1 <<<1
code 2 walctl doc list "$store" s --history
code 1 walctl doc list "$store" none
code 3 walctl doc list "$work/none" --store

# A new store and its sessions are at the current version.
walctl migrate "$store" | json 'rows[0]["from"] == rows[0]["to"] == 1
    and rows[0]["sessions"] == 0'
walctl migrate "$store" s | json 'rows[0]["from"] == rows[0]["to"] == 1
    and rows[0]["sessions"] == 0'
code 3 walctl migrate "$work/none"
code 1 walctl migrate "$store" none
same "" "$(walctl accept-damage "$store")" "damage of a sound store"
same '{"k":1}' "$(walctl doc get --store "$store" settings)" "after that"
same settings "$(walctl doc list "$store" --store)" "keys after that"
code 0 walcheck "$store"

# Damaged documents of the store cannot be written until accept-damage.
walctl doc put "$store" --store marked <<<'"a value to be damaged"' >/dev/null
walctl doc put "$store" --store later <<<'1' >/dev/null
python3 - "$store"/log/*.seg <<'PROGRAM'
import sys
with open(sys.argv[1], "r+b") as file:
    at = file.read().index(b"to be damaged")
    file.seek(at)
    file.write(b"T")
PROGRAM
rm -r "$store/index" # which has a copy of the log's content
code 1 walcheck "$store"
code 1 walctl doc put "$store" --store later <<<'2'
grep -q 'accept-damage' "$work/stderr" || fail "no hint for accept-damage"
same --store "$(walctl accept-damage "$store")" "accepted damage"
same "" "$(walctl accept-damage "$store")" "remaining damage"
code 0 walctl doc put "$store" --store later <<<'2'
same 2 "$(walctl doc get "$store" --store later)" "a document after damage"
