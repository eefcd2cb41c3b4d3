#!/usr/bin/env bash
# agentwal checkpoint-export and checkpoint-import: checkpoints in the layouts of
# two other session stores, in both directions.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

tree=$(realpath "$work")/tree
out=$work/out
mkdir -p "$tree/src"
agentwal --store "$store" init
agentwal --store "$store" create --id s --cwd "$tree" >/dev/null
cd "$tree"

# files SESSION ID: the files of a checkpoint that a layout can represent.
files() {
    agentwal --store "$store" checkpoint-show --json "$1" "$2" | python3 -c '
import json, sys
for row in map(json.loads, sys.stdin):
    if row["kind"] != "symlink" and "pathHex" not in row:
        print(json.dumps(row))'
}
# session ID: creates one with the same directory.
session() {
    agentwal --store "$store" create --id "$1" --cwd "$tree" >/dev/null
}
# found DIRECTORY: all files below it, with the digests of their contents.
found() {
    (cd "$1" && find . -type f -exec sha256sum {} + | sort)
}

printf 'a\nb\n' >a.txt
printf '#!/bin/sh\n' >src/run.sh
chmod 755 src/run.sh
cp a.txt copy.txt
: >empty
head -c 3000000 /dev/urandom >large
ln -s a.txt link
printf 'x' >$'odd\xff'
printf 'y' >$'new\nline "quoted" \\ \xc3\xa9'
agentwal --store "$store" checkpoint s 'first/../%one' a.txt src/run.sh copy.txt empty \
    large link none $'odd\xff' $'new\nline "quoted" \\ \xc3\xa9' >/dev/null
printf 'a\nB\n' >a.txt
agentwal --store "$store" checkpoint s second a.txt copy.txt >/dev/null
one='first%2F..%2F%25one'

# Export and import, in each layout.
code 3 agentwal --store "$store" checkpoint-export s "$out/sdk" --layout sdk
mkdir "$out"
for layout in sdk spec11; do
    case $layout in
    sdk) contents=blobs ;;
    *) contents=files ;;
    esac
    agentwal --store "$store" checkpoint-export --json s "$out/$layout" \
        --layout "$layout" >"$work/result"
    json '[(r["checkpointId"], r["files"], r["addedBlobs"], r["addedManifest"])
        for r in rows] == [("first/../%one", 9, 5, True),
        ("second", 2, 2, True)] and rows[1]["losses"] == []
        and {l["what"]: l["count"] for l in rows[0]["losses"]}
        == {"symlink": 1, "name that is not UTF-8": 1}' "$work/result"
    same "./$one ./second" "$(cd "$out/$layout/checkpoints" && echo ./*)" \
        directories
    for name in "$out/$layout/checkpoints"/*/"$contents"/*; do
        same "${name##*/}" "$(sha256sum <"$name" | cut -d' ' -f1)" "a content"
    done
    same "" "$(find "$out" -name '.*')" "temporary files"

    # A second export writes only what is new.
    found "$out/$layout" >"$work/before"
    agentwal --store "$store" checkpoint-export --json s "$out/$layout" \
        --layout "$layout" | json 'all(r["addedBlobs"] == r["addedBytes"] == 0
        and r["addedManifest"] is False for r in rows)'
    found "$out/$layout" | cmp - "$work/before" || fail "exporting again"

    session "$layout"
    agentwal --store "$store" checkpoint-import --json "$layout" "$out/$layout" \
        >"$work/result"
    json "[(r['checkpointId'], r['layout'], r['files'], r['added'])
        for r in rows] == [('first/../%one', '$layout', 7, 7),
        ('second', '$layout', 2, 2)]" "$work/result"
    for id in 'first/../%one' second; do
        same "$(files s "$id")" "$(files "$layout" "$id")" "files of $id"
    done
    same "$(agentwal --store "$store" checkpoints --json s | field created)" \
        "$(agentwal --store "$store" checkpoints --json "$layout" | field created)" \
        "when it was made"
    agentwal --store "$store" checkpoint-import --json "$layout" "$out/$layout" |
        json 'all(r["added"] == 0 for r in rows)'
    # Exporting imported checkpoints produces the same files.
    mkdir "$work/again"
    agentwal --store "$store" checkpoint-export "$layout" "$work/again/$layout" \
        --layout "$layout" >/dev/null
    found "$work/again/$layout" >"$work/after"
    cmp "$work/before" "$work/after" || fail "an export of imported checkpoints differs"
    rm -r "$work/again"

    code 1 agentwal --store "$store" rewind "$layout" 'first/../%one' \
        --root "$work/$layout"
    mkdir "$work/$layout"
    agentwal --store "$store" rewind --json "$layout" 'first/../%one' \
        --root "$work/$layout" |
        json 'rows[0]["canRewind"] is True'
    cmp large "$work/$layout/large" || fail "a large file"
    same 755 "$(stat -c %a "$work/$layout/src/run.sh")" "a mode"
done
json 'set(rows[0]) == {"checkpoint_id", "created_at", "files"}
    and rows[0]["checkpoint_id"] == "first/../%one"
    and [f["hash"] for f in rows[0]["files"] if f["path"] == "none"] == [""]' \
    "$out/sdk/checkpoints/$one/manifest.json"
json 'set(rows[0]) == {"UserMessageUUID", "CreatedAt", "Files"}
    and set(rows[0]["Files"][0]) == {"Path", "Exists", "Hash", "Size"}
    and [f["Exists"] for f in rows[0]["Files"] if f["Path"] == "none"]
    == [False]' "$out/spec11/checkpoints/$one/manifest.json"

# Files that were added to a checkpoint are added to its directory.
printf 'late\n' >late
agentwal --store "$store" checkpoint s second late >/dev/null
agentwal --store "$store" checkpoint-export --json s "$out/sdk" --layout sdk | json '
    [(r["addedBlobs"], r["addedManifest"]) for r in rows]
    == [(0, False), (1, True)]'
# A truncated content is written again.
: >"$out/sdk/checkpoints/second/blobs/$(sha256sum <late | cut -d' ' -f1)"
agentwal --store "$store" checkpoint-export --json s "$out/sdk" --layout sdk | json '
    [r["addedBlobs"] for r in rows] == [0, 1]'
# Paths are absolute when the root is not the session's directory.
agentwal --store "$store" checkpoint s third --root "$tree/src" run.sh >/dev/null
agentwal --store "$store" checkpoint-export s "$out/sdk" --layout sdk >/dev/null 2>&1
json "rows[0]['files'][0]['path'] == '$tree/src/run.sh'" \
    "$out/sdk/checkpoints/third/manifest.json"
session rooted
agentwal --store "$store" checkpoint-import rooted "$out/sdk/checkpoints/third" \
    --root "$tree/src" >/dev/null
same "$(files s third)" "$(files rooted third)" "files of another root"

# As written by a Go program: absolute paths, times with an offset, indented.
go=$work/go
uuid=0b9a3f5e-6d1c-4e0a-9a51-2f1b8f0f8d11
mkdir -p "$go/$uuid/files"
hash=$(sha256sum <copy.txt | cut -d' ' -f1)
cp copy.txt "$go/$uuid/files/$hash"
cat >"$go/$uuid/manifest.json" <<EOF
{
  "UserMessageUUID": "$uuid",
  "CreatedAt": "2026-02-09T15:04:05.123456789+01:00",
  "Files": [
    {"Path": "$tree/a.txt", "Exists": true, "Hash": "$hash", "Size": 4},
    {"Path": "$tree/gone.txt", "Exists": false, "Hash": "", "Size": 0}
  ]
}
EOF
session go
agentwal --store "$store" checkpoint-import --json go "$go" | json "
    [(r['checkpointId'], r['layout'], r['files']) for r in rows]
    == [('$uuid', 'spec11', 2)]"
same 2026-02-09T14:04:05.123Z \
    "$(agentwal --store "$store" checkpoints --json go | field created)" "a time of Go"
printf 'made since\n' >gone.txt
printf 'changed\n' >a.txt
agentwal --store "$store" rewind --json go "$uuid" | json 'rows[0]["filesChanged"]
    == ["a.txt", "gone.txt"] and rows[0]["insertions"] == 2
    and rows[0]["deletions"] == 2'
same "$hash" "$(sha256sum <a.txt | cut -d' ' -f1)" "a file that was rewound"
[ ! -e gone.txt ] || fail "a file absent from the checkpoint exists"

# Keys with tags; the directory's name is the id; null for no files; contents
# of an older checkpoint in the same import.
tags=$work/tags/checkpoints
mkdir -p "$tags/b/files" "$tags/a/files" "$tags/c"
cp large "$tags/b/files/$(sha256sum <large | cut -d' ' -f1)"
big=$(sha256sum <large | cut -d' ' -f1)
printf '{"created_at":"2026-01-01T00:00:00Z","files":[{"path":"x","exists":true,
    "hash":"%s","size":3000000,"more":[{}]}]}' "$big" >"$tags/b/manifest.json"
printf '{"createdAt":"2026-01-02T00:00:00Z","files":[{"path":"y","hash":"%s"}]}' \
    "$big" >"$tags/a/manifest.json"
printf '{"user_message_uuid":"see","files":null}' >"$tags/c/manifest.json"
session tags
agentwal --store "$store" checkpoint-import --json tags "$work/tags" | json '
    [(r["checkpointId"], r["files"]) for r in rows]
    == [("see", 0), ("b", 1), ("a", 1)]'

# An invalid checkpoint is reported and not imported; the others are.
bad=$work/bad
tries=0
# refused CODE TEXT MANIFEST [COMMANDS]: an import of a valid checkpoint and one
# with this manifest. The commands run in the directory of the second.
refused() {
    rm -rf "$bad"
    mkdir -p "$bad/good/blobs" "$bad/evil/blobs"
    cp copy.txt "$bad/good/blobs/$hash"
    cp copy.txt "$bad/evil/blobs/$hash"
    printf '{"files":[{"path":"g","hash":"%s"}]}' "$hash" \
        >"$bad/good/manifest.json"
    printf '%s' "$3" >"$bad/evil/manifest.json"
    [ -z "${4-}" ] || (cd "$bad/evil" && eval "$4")
    tries=$((tries + 1))
    session "bad-$tries"
    code "$1" agentwal --store "$store" checkpoint-import "bad-$tries" "$bad"
    grep -qF -- "$2" "$work/stderr" ||
        fail "not reported: $2; but $(cat "$work/stderr")"
    grep -q 'evil' "$work/stderr" || fail "the checkpoint is not named"
    code 1 agentwal --store "$store" checkpoint-show "bad-$tries" evil
    code 0 agentwal --store "$store" checkpoint-show "bad-$tries" good
}
file() {
    printf '{"files":[{"path":"ok","hash":"%s"},{"path":"%s","hash":"%s"}]}' \
        "$hash" "$1" "$hash"
}
other=$(printf 'other' | sha256sum | cut -d' ' -f1)
refused 1 "the content $hash" "$(file x)" "printf damage >blobs/$hash"
refused 1 'is damaged: its SHA-256 is' "$(file x)" ": >blobs/$hash"
refused 1 "the content $other of \"x\" is missing" \
    "{\"files\":[{\"path\":\"x\",\"hash\":\"$other\"}]}"
refused 1 'has 4 bytes, not 5' \
    "{\"files\":[{\"path\":\"x\",\"hash\":\"$hash\",\"size\":5}]}"
refused 1 '../x' "$(file ../x)"
refused 1 'a/../../x' "$(file a/../../x)"
refused 1 '/etc/passwd' "$(file /etc/passwd)"
refused 1 'zero byte' "$(file 'a\u0000b')"
refused 1 'zero byte' "$(file '')"
refused 1 'not a SHA-256' \
    '{"files":[{"path":"x","hash":"../../../../../../etc/passwd"}]}'
refused 1 'not a SHA-256' '{"files":[{"path":"x","hash":"abc"}]}'
refused 1 'without a hash' '{"files":[{"path":"x","exists":true}]}'
refused 1 'has no path' "{\"files\":[{\"hash\":\"$hash\"}]}"
refused 1 'manifest.json is damaged' '{"files":['
refused 1 'not an object' '{"files":[1]}'
refused 1 'not an array' '{"files":{}}'
refused 1 'list of files is missing' '{}'
refused 1 'creation time' '{"created_at":"yesterday","files":[]}'
refused 1 'zero byte' '{"checkpoint_id":"a\u0000b","files":[]}'
refused 1 'permission bits' \
    "{\"files\":[{\"path\":\"x\",\"hash\":\"$hash\",\"mode\":33188}]}"
refused 1 'with different states' "{\"files\":[{\"path\":\"x\",\"hash\":\"$hash\"},
    {\"path\":\"./x\",\"hash\":\"\"}]}"
refused 1 "$hash: not a regular file" "$(file x)" "rm blobs/$hash; ln -s /etc/passwd blobs/$hash"
refused 1 "$hash: not a regular file" "$(file x)" "rm blobs/$hash; mkfifo blobs/$hash"
refused 1 'manifest.json: No such file' "$(file x)" 'rm manifest.json'
refused 1 'manifest.json: not a regular file' "$(file x)" \
    'rm manifest.json; ln -s ../good/manifest.json .'
[ ! -e "$work/x" ] || fail "a file outside the root"

# A checkpoint with the same id and another root; checkpoints are off.
session other
agentwal --store "$store" checkpoint other b --root "$tree/src" run.sh >/dev/null
code 1 agentwal --store "$store" checkpoint-import other "$work/tags"
grep -q 'another root' "$work/stderr" || fail "no reason for the refusal"
code 0 agentwal --store "$store" checkpointing go off
code 1 agentwal --store "$store" checkpoint-import go "$work/tags"
grep -q 'checkpoints are off' "$work/stderr" || fail "no report that checkpoints are off"

# A checkpoint with a damaged blob is not exported. It may be there twice: a
# caller's is stored again where records alone had it.
python3 - "$store" "$hash" <<'PY'
import glob, sys
found = 0
for path in glob.glob(sys.argv[1] + "/pack/*.seg"):
    data = open(path, "rb").read()
    wanted = bytes.fromhex(sys.argv[2]) + (4).to_bytes(4, "little")
    at = data.find(wanted)
    while at >= 0:
        with open(path, "r+b") as file:
            file.seek(at + 40)
            file.write(b"\xff")
        found += 1
        at = data.find(wanted, at + 1)
sys.exit(None if found else "no such blob")
PY
agentwal --store "$store" checkpoint-import s "$tags/b" >/dev/null
code 1 agentwal --store "$store" checkpoint-export s "$work/damaged" --layout sdk
grep -q "$hash" "$work/stderr" || fail "the blob is not named"
[ ! -e "$work/damaged/checkpoints/$one/manifest.json" ] ||
    fail "a manifest with missing contents"
[ -e "$work/damaged/checkpoints/b/manifest.json" ] || fail "the other checkpoints"
same "" "$(find "$work/damaged" -name '.*')" "temporary files"

code 2 agentwal --store "$store" checkpoint-export s "$out"
code 2 agentwal --store "$store" checkpoint-export s "$out" --layout git
code 2 agentwal --store "$store" checkpoint-export s --layout sdk
code 3 agentwal --store "$store" checkpoint-export s "$tree/late" --layout sdk
code 2 agentwal --store "$store" checkpoint-import s
code 3 agentwal --store "$store" checkpoint-import s "$work/nowhere"
mkdir "$work/nothing"
code 1 agentwal --store "$store" checkpoint-import s "$work/nothing"
