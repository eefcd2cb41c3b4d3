#!/usr/bin/env bash
# Sessions that are stored as line deltas to the session that they are a copy of
# (SPEC.md 5.17): golden/copies.tar.xz has a store, the files that were imported
# into it, and what is exported from it in each dialect. No import makes such
# sessions; exports, imports of grown files, and views read them.
#
# By client: -a and -s are originals, -b is a copy of -a that goes on, -c one of
# -b, -d nothing but a copy of -a, -e one of -s with one line more and without
# some of its lines; -m is a copy of -l, with a line that is out of line; in -r,
# and so in its copy -q, a line is redacted.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

maker=$AGENTWAL_SOURCE/tests/lib/session_copy.py
python3 -m tarfile -e "$AGENTWAL_SOURCE/tests/golden/copies.tar.xz" "$work"
expected=$work/expected
files=$expected/source
cp -r "$store" "$work/kept"

# out STORE DIALECT...: exports have the expected bytes.
out() {
    local from=$1 dialect
    shift
    for dialect in "$@"; do
        rm -rf "$work/out"
        # What is redacted is a loss, and no damage.
        code 0 agentwal --store "$from" export --dialect "$dialect" "$work/out"
        diff -r -x '.agentwal*' "$expected/$dialect" "$work/out" >"$work/diff" ||
            fail "$dialect: $(head -c 2000 "$work/diff")"
    done
}

# give FILE: imports it; the report is in $work/rows.
give() {
    code 0 agentwal --store "$store" import --json "$1"
    cp "$work/stdout" "$work/rows"
}

# again FILE: importing it once more adds nothing.
again() {
    give "$1"
    json 'rows[0]["appended"] == 0 and rows[0]["duplicates"] == rows[0]["lines"]
        and rows[0]["damaged"] == []' "$work/rows"
}

id_of() {
    grep -Eo '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' <(grep -Eo \
        '"sessionId":"[^"]*"|"type":"session".*|"session_meta".*' "$1") | head -n 1
}

code 0 walcheck "$store"
json 'any(row.get("stream") == 253 for row in rows)' <(walcat --frames --json "$store")
out "$store" source claude codex pi entries

# In other stores, and after a compaction.
code 0 agentwal --store "$work/merged" init
code 0 agentwal --store "$work/merged" merge "$store"
out "$work/merged" source claude codex pi entries
agentwal --store "$store" list --json | python3 -ISc '
import json, sys
for line in sys.stdin:
    print(json.loads(line)["sessionId"])' >"$work/ids"
mapfile -t ids <"$work/ids"
code 0 agentwal --store "$store" bundle "${ids[@]}" "$work/all.bundle"
code 0 agentwal --store "$work/bundled" init
code 0 agentwal --store "$work/bundled" import "$work/all.bundle"
out "$work/bundled" source entries
code 0 walcheck --salvage "$work/salvaged" "$store"
out "$work/salvaged" source
code 0 agentwal --store "$store" gc
code 0 walcheck "$store"
out "$store" source entries

# The files add nothing; lines that are appended to one are lines of the session.
agentwal --store "$store" import --json "$work/files" >"$work/rows"
json 'len(rows) == 22 and all(row["appended"] == 0 and row["damaged"] == [] and
    row["duplicates"] == row["lines"] for row in rows)' "$work/rows"
for style in claude codex pi; do
    for part in b d e; do
        file=$work/files/$style-$part.jsonl
        python3 "$maker" more "$style" "9$((16#$part))" "$file" 3
        give "$file"
        json 'rows[0]["appended"] == 3 and rows[0]["damaged"] == []' "$work/rows"
        again "$file"
        session=$(field sessionId "$work/rows")
        rm -rf "$work/out"
        code 0 agentwal --store "$store" export --dialect source --stdout --session "$session"
        cmp "$file" "$work/stdout" || fail "$file grew"
        # The conversation continues after the shared lines.
        [ "$style-$part" = claude-e ] || walcat "$store" "$session" | json 'len(rows) > 12 and
            all(b["parentId"] == a["id"] for a, b in zip(rows, rows[1:]))'
    done
done
python3 "$maker" more claude 93 "$work/files/claude-m.jsonl" 3
give "$work/files/claude-m.jsonl"
json 'rows[0]["appended"] == 3 and rows[0]["damaged"] == []' "$work/rows"
code 0 walcheck "$store"
out "$work/bundled" source

# Lines that are appended to a view come back, and again after a compaction.
rm -rf "$store"
cp -r "$work/kept" "$store"
for style in claude codex pi; do
    rm -rf "$work/view"
    code 0 agentwal --store "$store" export --dialect "$style" "$work/view"
    session=$(id_of "$work/files/$style-d.jsonl")
    view=$(grep -rl "$session" "$work/view" --include='*.jsonl' | grep "$session")
    python3 "$maker" more "$style" 94 "$view" 2
    give "$view"
    json 'rows[0]["appended"] == 2' "$work/rows"
    cp "$view" "$work/grown"
    code 0 agentwal --store "$store" export --dialect "$style" "$work/view"
    cmp "$work/grown" "$view" || fail "$style: the view changed"
    walcat "$store" "$session" | json 'len(rows) > 12 and
        all(b["parentId"] == a["id"] for a, b in zip(rows, rows[1:]))'
done
code 0 walcheck "$store"

# A redaction in the original hides the copy's line, and only that.
rm -rf "$store"
cp -r "$work/kept" "$store"
original=$(id_of "$files/claude-s.jsonl")
copy=$(id_of "$files/claude-e.jsonl")
entry=$(walcat "$store" "$original" | sed -n 2p | field id)
code 0 agentwal --store "$store" redact "$original" "$entry"
code 0 agentwal --store "$store" export --dialect source --stdout --session "$copy"
grep -v "$entry" "$files/claude-e.jsonl" | cmp - "$work/stdout" ||
    fail 'another line is missing'
again "$files/claude-e.jsonl"

# The original is deleted: the copy stays.
delete_session "$store" "$original"
code 0 agentwal --store "$store" gc
code 0 agentwal --store "$store" export --dialect source --stdout --session "$copy"
grep -v "$entry" "$files/claude-e.jsonl" | cmp - "$work/stdout" ||
    fail 'a line went with the original'

# A lost chunk loses its lines, but none that are the session's own.
for style in claude codex pi; do
    file=$files/$style-b.jsonl
    copy=$(id_of "$file")
    agentwal --store "$store" redact "$copy" copy-1 >/dev/null
    code 1 agentwal --store "$store" export --dialect source --stdout --session "$copy"
    { [ $style = claude ] || head -n 1 "$file"; tail -n 4 "$file"; } |
        cmp - "$work/stdout" || fail "$style: the lines after a lost chunk"
done
