#!/usr/bin/env bash
# A session that a client forked by copying its file is a session with all lines
# of the file, and a child of the session that the file names, whichever of them
# is imported first.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

maker=$(dirname "${BASH_SOURCE[0]}")/../../lib/session_copy.py
in=$work/in
stride=${AGENTWAL_STRIDE:-1} # of the cuts that are tried

log_bytes() {
    agentwal --store "$store" stats --json | field logBytes
}

# begin STYLE SIZE: an empty store, a session's file a.jsonl, a copy of it that
# goes on, b.jsonl, and a copy of that, c.jsonl.
begin() {
    rm -rf "$store" "$in" "$work/out"
    mkdir "$in"
    agentwal --store "$store" init
    python3 "$maker" make "$1" "$2" 1 "$in/a.jsonl"
    python3 "$maker" copy "$1" 2 "$in/a.jsonl" "$in/b.jsonl"
    python3 "$maker" more "$1" 3 "$in/b.jsonl" 5
    python3 "$maker" copy "$1" 4 "$in/b.jsonl" "$in/c.jsonl"
}

# give FILE: imports it; the report is in $work/rows, the session in $session.
give() {
    agentwal --store "$store" import --json "$1" >"$work/rows"
    session=$(field sessionId "$work/rows")
}

# again FILE: importing it again adds nothing.
again() {
    local before
    before=$(log_bytes)
    touch -d 2099-01-01 "$1" # no stamp is kept
    give "$1"
    json 'rows[0]["appended"] == 0 and rows[0]["damaged"] == [] and
        rows[0]["duplicates"] == rows[0]["lines"]' "$work/rows"
    same "$before" "$(log_bytes)" "bytes of the log after a second import"
}

# back WHAT: an export equals $in.
back() {
    rm -rf "$work/out"
    code 0 agentwal --store "$store" export --dialect source "$work/out"
    diff -r "$in" "$work/out" || fail "the export differs from the import: $*"
}

# parents: SESSION PARENT of each session, sorted.
parents() {
    agentwal --store "$store" list --json | python3 -ISc '
import json, sys
rows = [json.loads(line) for line in sys.stdin.buffer]
print(*sorted("%s %s %d" % (row["sessionId"], row["parentId"], row["entries"])
              for row in rows), sep="\n")'
}

for style in claude codex pi; do
    begin "$style" 20000
    give "$in/a.jsonl"
    original=$session
    give "$in/b.jsonl"
    copy=$session
    json 'rows[0]["appended"] == rows[0]["lines"] and rows[0]["damaged"] == []' "$work/rows"
    give "$in/c.jsonl"
    third=$session
    parents >"$work/parents"
    same 3 "$(grep -Ec "^($original None|$copy $original|$third $copy) " "$work/parents")" \
        "$style: $(cat "$work/parents")"
    agentwal --store "$store" show --json "$copy" |
        json "rows[0]['parentId'] == '$original' and rows[0]['inherited'] == 0"
    agentwal --store "$store" children --json "$original" |
        json "[row['sessionId'] for row in rows] == ['$copy']"
    back "$style"
    code 0 walcheck "$store"

    # Files that have grown.
    for file in a b c; do
        python3 "$maker" more "$style" "1$((16#$file))" "$in/$file.jsonl" 20
        give "$in/$file.jsonl"
        json 'rows[0]["appended"] == 20 and rows[0]["damaged"] == []' "$work/rows"
        again "$in/$file.jsonl"
    done
    back "$style, grown"
    walcat "$store" "$copy" | json 'len(rows) > 20 and
        all(b["parentId"] == a["id"] for a, b in zip(rows, rows[1:]))'
    agentwal --store "$store" gc >/dev/null
    back "$style, grown, after gc"
    parents >"$work/parents"

    # In any order, in one import, and each alone.
    rm -rf "$store"
    agentwal --store "$store" init
    for file in c b a; do
        give "$in/$file.jsonl"
    done
    back "$style, backwards"
    parents | diff "$work/parents" - || fail "$style: other links backwards"
    rm -rf "$store"
    agentwal --store "$store" init
    agentwal --store "$store" import "$in" >/dev/null
    back "$style, at once"
    parents | diff "$work/parents" - || fail "$style: other links at once"

    # A bundle of the copy alone.
    agentwal --store "$store" bundle "$copy" "$work/$style.bundle"
    rm -rf "$work/other"
    agentwal --store "$work/other" init
    agentwal --store "$work/other" import "$work/$style.bundle" >/dev/null
    agentwal --store "$work/other" export --dialect source --stdout --session "$copy" |
        cmp - "$in/b.jsonl"
    agentwal --store "$work/other" show --json "$copy" |
        json "rows[0]['parentId'] == '$original'"

    # What is redacted in the original is not in the copy, and the other way round.
    entry=$(walcat "$store" "$original" | sed -n 3p | field id)
    agentwal --store "$store" redact "$original" "$entry" >/dev/null
    code 0 agentwal --store "$store" export --dialect source --stdout --session "$original"
    cmp -s "$in/a.jsonl" "$work/stdout" && fail "$style: nothing is redacted"
    code 0 agentwal --store "$store" export --dialect source --stdout --session "$copy"
    cmp "$in/b.jsonl" "$work/stdout" || fail "$style: the copy lost a line"

    # The original goes for good: its copies stay, and grow.
    agentwal --store "$store" delete --erase "$original" >/dev/null
    rm "$in/a.jsonl"
    back "$style, without the original"
    python3 "$maker" more "$style" 6 "$in/b.jsonl" 3
    give "$in/b.jsonl"
    json 'rows[0]["appended"] == 3 and rows[0]["damaged"] == []' "$work/rows"
    back "$style, grown without the original"
    code 0 walcheck "$store"
done

# entries: the session's, without what says that a line has no newline yet.
entries() {
    walcat --all "$store" "$session" | python3 -ISc '
import json, sys
for line in sys.stdin.buffer:
    row = json.loads(line)
    row.pop("meta", None)
    print(json.dumps(row))'
}

# A copy that is truncated anywhere, imported, completed and imported again has
# the same entries and the same link as when it is imported whole.
for style in claude codex; do
    begin "$style" 6000
    rm "$in/a.jsonl" "$in/c.jsonl"
    give "$in/b.jsonl"
    entries >"$work/whole"
    parents >"$work/parents"
    size=$(stat -c %s "$in/b.jsonl")
    cp "$in/b.jsonl" "$work/b"
    for cut in $(seq 1 $((1997 * stride)) "$size") $((size - 1)); do
        rm -rf "$store"
        agentwal --store "$store" init 2>/dev/null
        head -c "$cut" "$work/b" >"$in/b.jsonl"
        give "$in/b.jsonl"
        cp "$work/b" "$in/b.jsonl"
        give "$in/b.jsonl"
        back "$style cut at $cut"
        entries | diff - "$work/whole" >/dev/null ||
            fail "$style cut at $cut: other entries"
        parents | diff "$work/parents" - || fail "$style cut at $cut: another link"
    done
done

# Concurrent imports of one copy make one session.
begin claude 400000
give "$in/a.jsonl"
for n in 1 2 3; do
    agentwal --store "$store" import --json "$in/b.jsonl" >"$work/at-once-$n" \
        2>/dev/null &
done
wait
cat "$work"/at-once-* | json 'sum(r["appended"] > 0 for r in rows) == 1'
again "$in/b.jsonl"
give "$in/c.jsonl"
back "at once"
