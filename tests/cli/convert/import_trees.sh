#!/usr/bin/env bash
# Directories of files that form sessions are imported as sessions, and
# every file is exported with the same bytes.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

in=$work/in
made=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../golden/model" && pwd)
agentwal --store "$store" init
mkdir "$in"
cp -R "$made/sdk" "$made/spec11" "$made/opencode" "$in"
chmod -R u+w "$in"

# Files of no session, files that are not JSON, and empty files.
mkdir -p "$in/spec11/memory" "$in/sdk/s-1/checkpoints/c/blobs"
printf '# what was done\n' >"$in/spec11/memory/summary.md"
head -c 3000 /dev/urandom >"$in/sdk/s-1/checkpoints/c/blobs/ff"
printf '2' >"$in/opencode/storage/migration"
mkdir -p "$in/opencode/storage/project"
printf '{"id":"global"}' >"$in/opencode/storage/project/global.json"
printf '{"id":"torn' >"$in/opencode/storage/todo/torn.json"
printf '{"a":1}' >"$in/opencode/storage/todo/$(printf 'we%%41 \001\377').json"

# Half of the files are missing.
mkdir -p "$in/half/one" "$in/half/storage/part/msg_x" "$in/half/two"
head -n 2 "$made/sdk/s-1/messages.jsonl" >"$in/half/one/messages.jsonl"
: >"$in/half/one/transcript.jsonl"
cp "$made/sdk/s-1/metadata.json" "$in/half/two"
printf '{"id":"prt_1","messageID":"msg_x","type":"text","text":"t"}' \
    >"$in/half/storage/part/msg_x/prt_1.json"

agentwal --store "$store" import --verbose --all-files "$in" >"$work/first" 2>"$work/messages"
grep -q 'todo/torn.json: byte 11: not JSON' "$work/messages"
agentwal --store "$store" import --json --all-files "$in" >"$work/second" 2>"$work/messages"
if grep -e '"changed":[1-9]' -e '"appended":[1-9]' "$work/second"; then
    echo 'a second import adds something' >&2
    exit 1
fi
agentwal --store "$store" export --dialect source "$work/out" >"$work/put"
diff -r "$in" "$work/out"

# Files that change in place, and streams that grow.
title=$(find "$in/opencode/storage/session" -name '*.json')
sed -i 's/A title/Another title/' "$title"
tail -n 1 "$made/sdk/s-1/messages.jsonl" >>"$in/half/one/messages.jsonl"
printf '{}' >"$in/opencode/storage/todo/torn.json"
agentwal --store "$store" import --json --all-files "$in" >"$work/third" 2>"$work/messages"
test "$(grep -c -e '"changed":[1-9]' "$work/third")" -eq 2
test "$(grep -v -e documents "$work/third" | grep -c -e '"appended":[1-9]')" -eq 1
agentwal --store "$store" export --dialect source "$work/out" >"$work/put"
diff -r "$in" "$work/out"

# A file that matches no imported version is not overwritten.
printf 'mine' >"$work/out/opencode/storage/migration"
if agentwal --store "$store" export --dialect source "$work/out" >"$work/put" \
    2>"$work/messages"; then
    exit 1
fi
grep -q 'migration: exists with other content' "$work/messages"
test "$(cat "$work/out/opencode/storage/migration")" = mine

# Views of them all, written twice.
name_all "$store"
for dialect in sdk spec11 opencode pi claude entries; do
    agentwal --store "$store" export --dialect "$dialect" "${named[@]}" "$work/$dialect" \
        >"$work/put"
    agentwal --store "$store" export --json --dialect "$dialect" "${named[@]}" \
        "$work/$dialect" >"$work/again"
    if grep -e '"added":[1-9]' "$work/again"; then
        echo "a second export as $dialect adds something" >&2
        exit 1
    fi
done
walcheck "$store" >"$work/checked"
