#!/usr/bin/env bash
# Import and export: checkpoints/ of sdk and spec11 become checkpoints of their sessions,
# and views of these dialects contain them.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

in=$work/in
tree=$work/tree
mkdir -p "$tree/src" "$in/sdk" "$in/spec11/sessions"

hash_of() { sha256sum "$1" | cut -d' ' -f1; }
printf 'one\n' >"$work/one"
printf 'two\0\n' >"$work/two"
head -c 300000 /dev/urandom >"$work/large"
: >"$work/empty"
one=$(hash_of "$work/one")
two=$(hash_of "$work/two")
large=$(hash_of "$work/large")
empty=$(hash_of "$work/empty")

# session DIRECTORY METADATA
session() {
    mkdir -p "$1/checkpoints"
    printf '%s' "$2" >"$1/metadata.json"
    printf '{"uuid":"u1","timestamp":"2026-01-02T03:04:05Z","role":"user",%s\n' \
        '"content":"go"}' >"$1/messages.jsonl"
}
# checkpoint DIRECTORY CONTENTS MANIFEST FILE...
checkpoint() {
    mkdir -p "$1/$2"
    printf '%s' "$3" >"$1/manifest.json"
    for file in "${@:4}"; do
        cp "$work/$file" "$1/$2/$(hash_of "$work/$file")"
    done
}

sdk=$in/sdk/s-1
session "$sdk" "{\"session_id\":\"s-1\",\"created_at\":\"2026-01-02T03:04:05Z\",
    \"model\":\"m\",\"cwd\":\"$tree\",\"turn_count\":1}"
checkpoint "$sdk/checkpoints/cp-1" blobs "{\"checkpoint_id\":\"cp-1\",
    \"created_at\":\"2026-01-02T03:04:06Z\",\"files\":[
    {\"path\":\"src/a\",\"hash\":\"$one\"},{\"path\":\"b\",\"hash\":\"$large\"},
    {\"path\":\"$tree/src/c\",\"hash\":\"$empty\"}],\"more\":1.0}" one large empty
checkpoint "$sdk/checkpoints/cp-2" blobs "{\"checkpoint_id\":\"cp-2\",
    \"created_at\":\"2026-01-02T03:04:07Z\",\"files\":[
    {\"path\":\"src/a\",\"hash\":\"$two\"},{\"path\":\"b\",\"hash\":\"$large\"},
    {\"path\":\"gone\",\"hash\":\"\"}]}" two
spec=$in/spec11/sessions/t-1
session "$spec" "{\"id\":\"t-1\",\"project_hash\":\"h\",\"cwd\":\"$tree\",
    \"created_at\":\"2026-01-02T03:04:05Z\",\"message_count\":1}"
uuid=0b9a3f5e-6d1c-4e0a-9a51-2f1b8f0f8d11
checkpoint "$spec/checkpoints/$uuid" files "{\"UserMessageUUID\":\"$uuid\",
    \"CreatedAt\":\"2026-01-02T03:04:06.5+01:00\",\"Files\":[
    {\"Path\":\"$tree/src/a\",\"Exists\":true,\"Hash\":\"$two\",\"Size\":5},
    {\"Path\":\"$tree/new\",\"Exists\":false,\"Hash\":\"\",\"Size\":0}]}" two
checkpoint "$spec/checkpoints/lower" files "{\"user_message_uuid\":\"lower\",
    \"created_at\":\"2026-01-02T03:04:08Z\",\"files\":null}"

rmdir "$spec/checkpoints/lower/files" # no export makes a directory alone
agentwal --store "$store" init
code 0 agentwal --store "$store" import --json "$in"
json '[r["checkpoints"] for r in rows if "checkpoints" in r] == [2, 2]' \
    "$work/stdout"
json 'all(r["damaged"] == [] for r in rows)' "$work/stdout"
same $'cp-1\ncp-2' "$(agentwal --store "$store" checkpoints --json s-1 |
    python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line)["checkpointId"])')" "checkpoints"
agentwal --store "$store" checkpoint-show --json s-1 cp-2 |
    json '[(r["path"], r["kind"]) for r in rows] == [("b", "file"),
        ("gone", "absent"), ("src/a", "file")]'

# A second import adds nothing to the store.
size_of() { find "$store" -name '*.seg' -size +0 -printf '%f %s\n' | sort; }
code 0 agentwal --store "$store" import --json "$in"
json 'all(r.get("checkpoints", 0) == 0 for r in rows)' "$work/stdout"
size_of >"$work/before"
code 0 agentwal --store "$store" import --json "$in"
size_of >"$work/after"
diff "$work/before" "$work/after"
same 2 "$(agentwal --store "$store" checkpoints --json t-1 | wc -l)" "of spec11"

# A checkpoint is added later.
checkpoint "$sdk/checkpoints/cp-3" blobs "{\"checkpoint_id\":\"cp-3\",
    \"files\":[{\"path\":\"late\",\"hash\":\"$one\"}]}" one
code 0 agentwal --store "$store" import --verbose "$in"
grep -q '3 new or changed\|2 new or changed, 1 new checkpoint' "$work/stdout" ||
    fail "not reported: $(cat "$work/stdout")"

# An export as the source has all files, and views have the same contents.
code 0 agentwal --store "$store" export --dialect source "$work/out"
diff -r "$in" "$work/out"
for dialect in sdk spec11; do
    code 0 agentwal --store "$store" export --dialect "$dialect" "$work/$dialect"
    code 0 agentwal --store "$store" export --dialect "$dialect" "$work/$dialect"
    find "$work/$dialect" -path '*/checkpoints/*' -type f \
        ! -name manifest.json >"$work/blobs"
    same 7 "$(wc -l <"$work/blobs")" "contents as $dialect"
    while read -r blob; do
        same "${blob##*/}" "$(hash_of "$blob")" "a content as $dialect"
    done <"$work/blobs"
    same "" "$(find "$work/$dialect" -name '.*' -type f)" "temporary files"
    # Importing them detects the same dialect.
    agentwal --store "$work/again-$dialect" init
    code 0 agentwal --store "$work/again-$dialect" import "$work/$dialect"
    for id in s-1:cp-1 s-1:cp-2 s-1:cp-3 t-1:$uuid t-1:lower; do
        same "$(agentwal --store "$store" checkpoint-show "${id%:*}" "${id#*:}")" \
            "$(agentwal --store "$work/again-$dialect" checkpoint-show "${id%:*}" \
                "${id#*:}")" "$id as $dialect"
    done
done
[ -d "$work/sdk/s-1/checkpoints/cp-1/blobs" ] || fail "no blobs of sdk"
[ -d "$work/spec11/sessions/t-1/checkpoints/$uuid/files" ] ||
    fail "no files of spec11"
code 0 agentwal --store "$store" export --dialect pi "$work/pi"
same "" "$(find "$work/pi" -name checkpoints)" "checkpoints of pi"

# A rewind to one of them restores its files.
printf 'changed\n' >"$tree/src/a"
printf 'made since\n' >"$tree/new"
agentwal --store "$store" rewind --json t-1 "$uuid" | json 'rows[0]["canRewind"]'
cmp "$work/two" "$tree/src/a"
[ ! -e "$tree/new" ] || fail "a file absent from the checkpoint exists"

# An invalid checkpoint is reported; the others, and all files, are imported.
bad=$work/bad/s-2
session "$bad" "{\"session_id\":\"s-2\",\"created_at\":\"\",\"cwd\":\"$tree\"}"
# shellcheck disable=SC2016
evil() {
    checkpoint "$bad/checkpoints/$1" blobs \
        "{\"files\":[{\"path\":\"$2\",\"hash\":\"$3\"}]}" one
}
evil good ok "$one"
evil up ../x "$one"
evil root /etc/passwd "$one"
evil lost a "$two$two"
evil missing a "$(printf '0%.0s' {1..64})"
evil short a "$one"
printf '{"files":[' >"$bad/checkpoints/short/manifest.json"
evil rotten a "$one"
printf 'x' >"$bad/checkpoints/rotten/blobs/$one"
mkdir "$bad/checkpoints/none"
ln -s /etc "$bad/checkpoints/link"
code 0 agentwal --store "$store" import --json "$work/bad"
json '[r["checkpoints"] for r in rows if "checkpoints" in r] == [1]' \
    "$work/stdout"
for name in up root lost missing short rotten none; do
    json "any(d['path'].endswith('checkpoints/$name')
        and 'skipped' in d['reason']
        for r in rows for d in r['damaged'])" "$work/stdout"
done
code 0 agentwal --store "$store" import --verbose "$work/bad"
grep -q 'checkpoints/up: "../x".*skipped' "$work/stderr" ||
    fail "not reported: $(cat "$work/stderr")"
same 1 "$(agentwal --store "$store" checkpoints --json s-2 | wc -l)" "valid checkpoints"
agentwal --store "$store" export --dialect source --session s-2 "$work/bad-out" >/dev/null
rm "$bad/checkpoints/link"
rmdir "$bad/checkpoints/none"
diff -r "$work/bad" "$work/bad-out"

# A session without a directory has no root for the paths.
session "$work/lone/s-3" '{"session_id":"s-3","created_at":""}'
checkpoint "$work/lone/s-3/checkpoints/c" blobs \
    "{\"files\":[{\"path\":\"a\",\"hash\":\"$one\"}]}" one
code 0 agentwal --store "$store" import --verbose "$work/lone"
grep -q 's-3/checkpoints/c: .*skipped' "$work/stderr" ||
    fail "not reported: $(cat "$work/stderr")"
walcheck "$store" >"$work/checked"
