#!/usr/bin/env bash
# An imported copy of a session's file is a fork of the session: it takes little
# space, and its export has the bytes of the file.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

maker=$(dirname "${BASH_SOURCE[0]}")/../../lib/session_copy.py
in=$work/in
stride=${AGENTWAL_STRIDE:-1} # of the cuts that are tried

log_bytes() {
    agentwal --store "$store" stats --json | field logBytes
}

# begin STYLE SIZE: a store with the session $in/a.jsonl.
begin() {
    rm -rf "$store" "$in" "$work/out"
    mkdir "$in"
    agentwal --store "$store" init
    python3 "$maker" make "$1" "$2" 1 "$in/a.jsonl"
    agentwal --store "$store" import --json "$in/a.jsonl" >"$work/rows"
    original=$(field sessionId "$work/rows")
}

# give FILE: imports it; the report is in $work/rows.
give() {
    agentwal --store "$store" import --json "$1" >"$work/rows"
}

# back WHAT: an export equals $in.
back() {
    rm -rf "$work/out"
    code 0 agentwal --store "$store" export --dialect source "$work/out"
    diff -r "$in" "$work/out" || fail "the export differs from the import: $*"
}

# again FILE: importing it again adds nothing.
again() {
    local before
    before=$(log_bytes)
    give "$1"
    json 'rows[0]["appended"] == 0 and rows[0]["shared"] == 0 and
        rows[0]["duplicates"] == rows[0]["lines"]' "$work/rows"
    same "$before" "$(log_bytes)" "bytes of the log after a second import"
}

# The cost of a copy, its bytes, a copy of the copy, and a copy that grows.
for style in claude codex pi; do
    begin "$style" 2000000
    python3 "$maker" copy "$style" 2 "$in/a.jsonl" "$in/b.jsonl"
    before=$(log_bytes)
    give "$in/b.jsonl"
    json 'rows[0]["shared"] >= rows[0]["lines"] - 8 and
        rows[0]["shared"] + rows[0]["appended"] == rows[0]["lines"]' \
        "$work/rows"
    copy=$(field sessionId "$work/rows")
    cost=$(($(log_bytes) - before))
    size=$(stat -c %s "$in/b.jsonl")
    [ $((cost * 20)) -lt "$size" ] || fail "$style: $cost of $size bytes"
    agentwal --store "$store" show --json "$copy" |
        json "rows[0]['parentId'] == '$original'"
    back "$style"
    again "$in/b.jsonl"

    python3 "$maker" copy "$style" 3 "$in/b.jsonl" "$in/c.jsonl"
    before=$(log_bytes)
    give "$in/c.jsonl"
    cost=$(($(log_bytes) - before))
    [ $((cost * 20)) -lt "$size" ] || fail "$style: $cost for a copy's copy"
    again "$in/c.jsonl"
    back "$style, a copy of a copy"

    for file in b c; do
        python3 "$maker" more "$style" "1$((16#$file))" "$in/$file.jsonl" 20
        give "$in/$file.jsonl"
        json 'rows[0]["appended"] == 20 and rows[0]["damaged"] == []' \
            "$work/rows"
        again "$in/$file.jsonl"
    done
    back "$style, grown"
    # A copy of lines that a copy added.
    python3 "$maker" copy "$style" 5 "$in/c.jsonl" "$in/d.jsonl"
    give "$in/d.jsonl"
    json 'rows[0]["shared"] >= rows[0]["lines"] - 8' "$work/rows"
    again "$in/d.jsonl"
    back "$style, a copy of a grown copy"
    # The conversation continues after the shared lines.
    walcat "$store" "$copy" | json 'len(rows) > 20 and
        all(b["parentId"] == a["id"] for a, b in zip(rows, rows[1:]))'
    code 0 walcheck "$store"

    # The original is in the trash; its copies stay, and can be copied.
    agentwal --store "$store" delete "$original" >/dev/null
    rm "$in/a.jsonl"
    back "$style, with the original in the trash"
    again "$in/b.jsonl"
    again "$in/d.jsonl"
    python3 "$maker" more "$style" 6 "$in/d.jsonl" 3
    give "$in/d.jsonl"
    json 'rows[0]["appended"] == 3 and rows[0]["damaged"] == []' "$work/rows"
    back "$style, grown with the original in the trash"

    # One import takes the original first, regardless of the names.
    rm -rf "$store"
    agentwal --store "$store" init
    python3 "$maker" make "$style" 20000 1 "$in/z.jsonl"
    python3 "$maker" copy "$style" 2 "$in/z.jsonl" "$in/y.jsonl"
    python3 "$maker" copy "$style" 3 "$in/y.jsonl" "$in/x.jsonl"
    rm "$in"/[bcd].jsonl
    agentwal --store "$store" import --json "$in" >"$work/rows"
    json '[r["shared"] > 0 for r in rows] == [False, True, True]' "$work/rows"
    back "$style, backwards"
    # A copy without its original is stored whole.
    rm -rf "$store"
    agentwal --store "$store" init
    rm "$in/z.jsonl" "$in/x.jsonl"
    give "$in/y.jsonl"
    json 'rows[0]["shared"] == 0 and rows[0]["appended"] == rows[0]["lines"]' \
        "$work/rows"
    back "$style, alone"
done

# A copy that is truncated anywhere, imported, completed and imported again has
# the same entries as when it is imported whole.
for style in claude codex; do
    begin "$style" 6000
    python3 "$maker" copy "$style" 2 "$in/a.jsonl" "$in/b.jsonl"
    python3 "$maker" more "$style" 4 "$in/b.jsonl" 2
    cp -r "$store" "$work/before"
    give "$in/b.jsonl"
    id=$(field sessionId "$work/rows")
    walcat --all "$store" "$id" >"$work/whole"
    size=$(stat -c %s "$in/b.jsonl")
    cp "$in/b.jsonl" "$work/b"
    same_as_whole=0
    for cut in $(seq 1 $((397 * stride)) "$size") $((size - 1)); do
        rm -rf "$store"
        cp -r "$work/before" "$store"
        head -c "$cut" "$work/b" >"$in/b.jsonl"
        give "$in/b.jsonl"
        cp "$work/b" "$in/b.jsonl"
        give "$in/b.jsonl"
        back "$style cut at $cut"
        if grep -q '"shared": *[1-9]' "$work/rows"; then
            id=$(field sessionId "$work/rows")
            walcat --all "$store" "$id" | diff - "$work/whole" >/dev/null ||
                fail "$style cut at $cut: other entries"
            same_as_whole=$((same_as_whole + 1))
        fi
    done
    rm -rf "$work/before"
    again "$in/b.jsonl"
    [ "$same_as_whole" -gt $((8 / stride)) ] || fail "$style: only $same_as_whole imported again"
done

# Concurrent imports of one copy: one of them imports it, no damage.
begin claude 400000
python3 "$maker" copy claude 2 "$in/a.jsonl" "$in/b.jsonl"
for n in 1 2 3; do
    agentwal --store "$store" import --json "$in/b.jsonl" >"$work/at-once-$n" \
        2>/dev/null &
done
wait
cat "$work"/at-once-* | json 'sum(r["shared"] > 0 for r in rows) == 1 and
    all(r["appended"] == 0 for r in rows)'
again "$in/b.jsonl"
back "at once"

# A redaction in the original removes the line, and only it, from the copy.
begin claude 20000
python3 "$maker" copy claude 2 "$in/a.jsonl" "$in/b.jsonl"
give "$in/b.jsonl"
copy=$(field sessionId "$work/rows")
entry=$(walcat "$store" "$original" | sed -n 3p | field id)
agentwal --store "$store" redact "$original" "$entry" >/dev/null
agentwal --store "$store" export --dialect source --stdout --session "$copy" \
    >"$work/left" 2>/dev/null
same 0 "$(grep -c "$entry" "$work/left")" "lines of the redacted entry"
grep -v "$entry" "$in/b.jsonl" | cmp - "$work/left" ||
    fail "another line is missing"
again "$in/b.jsonl"

# Damage of a chunk is detected and loses its lines; a salvage keeps everything
# that can be read.
begin claude 400000
python3 "$maker" copy claude 2 "$in/a.jsonl" "$in/b.jsonl"
python3 "$maker" more claude 4 "$in/b.jsonl" 3
give "$in/b.jsonl"
copy=$(field sessionId "$work/rows")
code 0 walcheck --salvage "$work/salvaged" "$store"
rm -rf "$work/out"
code 0 agentwal --store "$work/salvaged" export --dialect source "$work/out"
diff -r "$in" "$work/out" || fail "a salvage of a sound store"
cp -r "$store" "$work/before"

# left STORE: the copy is exported without the lines of its chunk.
left() {
    code 1 agentwal --store "$1" export --dialect source --stdout --session "$copy"
    tail -n 3 "$in/b.jsonl" | cmp - "$work/stdout" ||
        fail "the lines after a lost chunk"
}
chunk=$(walcat --frames --json "$store" | grep '"stream":253' | sed -n 2p)
read -r file offset < <(python3 -c '
import json, sys
row = json.loads(sys.argv[1])
print(row["file"], row["offset"] + row["size"] // 2)' "$chunk")
printf '\377\376\375' |
    dd of="$store/$file" bs=1 seek="$offset" conv=notrunc status=none
code 1 walcheck "$store"
rm -rf "$work/salvaged"
code 1 walcheck --salvage "$work/salvaged" "$store"
left "$work/salvaged"
code 0 agentwal --store "$work/salvaged" export --dialect source --stdout --session "$original"
cmp "$in/a.jsonl" "$work/stdout"

# A redacted chunk: the same.
rm -rf "$store"
mv "$work/before" "$store"
agentwal --store "$store" redact "$copy" copy-1 >/dev/null
left "$store"
