#!/usr/bin/env bash
# An export of imported files has the same bytes, and the import reports their
# faults.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

in=$work/in
out=$work/out
mkdir "$in"
agentwal --store "$store" init

time='"timestamp":"2026-01-01T00:00:00Z"'
message='"message":{"role":"user","content":"text"}'
user='{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"S1","cwd":"/x"'
user="$user,$time,$message}"
row() {
    printf '{"type":"message","id":"%s","parentId":%s,%s,%s}\n' "$1" "$2" \
        "$time" "$message"
}
header='{"type":"session","version":3,"id":"pi-1","cwd":"/srv/pi",'"$time}"

# One file for each fault.
printf '%s\r\n' "$header" '{"type":"x","id":"a","parentId":null}' >"$in/crlf"
printf '\357\273\277%s\n' "$user" >"$in/bom"
printf '\n%s\n\n  \n' "$user" >"$in/blank"
printf '%s' "$user" >"$in/no-newline"
: >"$in/empty"
printf '%s\n{"type":"user","uu' "$user" >"$in/torn"
printf '%s\n{"type":"assis%s\n%s\n' "$user" "$user" "$user" >"$in/welded"
printf '%s\n' "$user$user" "$user" >"$in/two-values"
{
    printf '%s\n' "$user"
    head -c 4096 /dev/zero
    printf '\n%s\n' "$user"
} >"$in/nul"
printf '%s\n{"bad":"\377\376"}\n' "$user" >"$in/not-utf8"
{
    printf '%s\n' "$header"
    row a null
    row a null
    row b '"a"'
    row c '"gone"'
    row d '"d"'
    row e '"f"'
    row f '"e"'
} >"$in/parents"
python3 -c 'print("{\"type\":\"user\",\"id\":\"big\",\"x\":\"" + "y" * 10000000 + "\"}")' \
    >"$in/line-10m"
python3 -c 'print("{\"x\":\"" + "y" * 20000000 + "\"}\n{\"id\":\"after\"}")' \
    >"$in/line-20m"
printf '{\n  "a": [\n    1,\n    2\n  ],\n  "b": {}\n}\n' >"$in/pretty.json"
head -c 300000 /dev/urandom >"$in/binary"
printf '%s\n' '{"type":"session_header","id":"h","payload":{"cwd":"/srv/e"}}' \
    '{"id":"i","type":"message","payload":{}}' >"$in/entries"
printf '%s\n' '{"role":"user","content":"x"}' '{"a":1}' '[2]' >"$in/lines"
mkdir -p "$in/sub/.hidden"
printf '%s\n' '{"n":1}' >"$in/sub/.hidden/.dot"
printf '%s\n' '{"n":2}' >"$in/sub/we ird%41$(printf '\001\377')name"
ln -s ../entries "$in/sub/link"

code 0 agentwal --store "$store" import --json --all-files "$in"
cp "$work/stdout" "$work/first"
rm "$in/sub/link"
json 'all(set(r) >= {"path", "dialect", "sessionId", "lines", "appended",
    "duplicates", "damaged"} for r in rows)' "$work/first"
same "$(find "$in" -type f | wc -l)" "$(wc -l <"$work/first")" "files imported"

# is NAME EXPRESSION: true of the row r and the reasons of that file.
is() {
    json "[r for r in rows if r['path'].endswith('/$1')] != [] and
        all($2 for r in rows if r['path'].endswith('/$1')
            for reasons in [[d['reason'].split(':')[0] for d in r['damaged']]]
            for lines in [[d['line'] for d in r['damaged']]])" "$work/first"
}
is crlf 'r["dialect"] == "pi" and r["sessionId"] == "pi-1" and not reasons'
is bom 'r["dialect"] == "claude" and not reasons'
is blank 'r["lines"] == 4 and not reasons'
is no-newline 'r["lines"] == 1 and not reasons'
is empty 'r["lines"] == 0 and r["appended"] == 0'
is torn 'reasons == ["torn"] and lines == [2]'
is welded 'reasons[0] == "welded" and lines[0] == 2'
is two-values 'reasons == ["welded"] and lines == [1]'
is nul 'reasons[0] == "holds NUL bytes" and lines[0] == 2'
is not-utf8 'reasons == ["invalid UTF-8"] and
    r["damaged"][0]["offset"] == len(open(r["path"], "rb").read()) - 5'
is parents 'lines == [3, 5, 6, 7] and "duplicate id" in reasons[0]
    and "comes later" in reasons[1] and "names itself" in reasons[2]
    and r["appended"] == 8'
is line-10m 'r["appended"] == 1 and not reasons'
is line-20m 'r["lines"] == 2 and r["appended"] == 2 and not reasons'
is pretty.json 'r["appended"] == 1 and not reasons'
is entries 'r["dialect"] == "entries" and r["sessionId"] == "h"'
is lines 'r["dialect"] == "lines" and r["appended"] == 3'

# A second import adds nothing and reports the same.
same_import() {
    agentwal --store "$store" import --json --all-files "$in" >"$work/again"
    json "all(r['appended'] == 0 for r in rows) and
        [(r['path'], r['damaged'], r['sessionId']) for r in rows] ==
        [(r['path'], r['damaged'], r['sessionId']) for r in
            map(json.loads, open('$work/first'))]" "$work/again"
}
same_import

# Export.
code 0 agentwal --store "$store" export --dialect source --json "$out"
json 'all(set(r) >= {"sessionId", "dialect", "path", "added", "losses"}
    for r in rows) and all(r["losses"] == [] for r in rows)' "$work/stdout"
diff -r "$in" "$out" || fail "the export differs from the import"
same 600 "$(stat -c %a "$out/lines")" "mode of a file"
same 700 "$(stat -c %a "$out/sub")" "mode of a directory"
code 0 agentwal --store "$store" export --dialect source --json "$out"
json 'all(r["added"] == 0 for r in rows)' "$work/stdout"
agentwal --store "$store" export --dialect source --stdout --session pi-1 |
    cmp - "$in/crlf" || fail "--stdout"
same "$out/crlf" "$(agentwal --store "$store" path --dialect source "$out" pi-1)" "path"
walcat "$store" "$in/entries" | json 'rows[0]["id"] == "h"
    and rows[0]["payload"]["id"] == "h"'
walcat --all "$store" "$in/torn" | json 'len(rows) == 1'

# Branches, as in the dialect.
walcat "$store" "$in/parents" | json '[r["id"] for r in rows][-2:] == ["e", "f"]'
walcat "$store" "$in/parents" --branch b |
    json '[r["id"] for r in rows] == ["a~3", "b"]'

# A file that grows, also within its last line.
printf '%s\n' "$user" >>"$in/lines"
printf 'id":"t2"}\n{"more":1}\n' >>"$in/torn"
printf '\n%s\n' '{"type":"user","uuid":"u9","parentUuid":"u1"}' \
    >>"$in/no-newline"
printf 'tail' >>"$in/binary"
code 0 agentwal --store "$store" import --json --all-files "$in"
cp "$work/stdout" "$work/first"
is lines 'r["appended"] == 4 and r["dialect"] == "claude"'
is torn 'r["appended"] == 2 and r["duplicates"] == 1 and not reasons'
is no-newline 'r["appended"] == 1 and not reasons'
is binary 'r["appended"] == 1'
json 'len(set(r["sessionId"] for r in rows)) == len(rows)' "$work/first"
same_import
code 0 agentwal --store "$store" export --dialect source --json "$out"
json 'sum(r["added"] for r in rows) > 0' "$work/stdout"
diff -r "$in" "$out" || fail "the export of a grown file differs"
walcat "$store" "$in/no-newline" |
    json '[r["id"] for r in rows] == ["u1", "u9"]'

# A file with other content is not overwritten.
printf 'mine' >"$out/lines"
code 1 agentwal --store "$store" export --dialect source "$out"
grep -qF "agentwal: $out/lines: " "$work/stderr" || fail "no path of the existing file"
code 3 agentwal --store "$store" export --dialect source "$out/lines"
grep -q "^agentwal: $out/lines: is not a directory" "$work/stderr" ||
    fail "no report that the output is not a directory"
ln -s "$work/nowhere" "$work/dangling"
code 3 agentwal --store "$store" export --dialect source "$work/dangling/out"
grep -qF "agentwal: $work/dangling/out/" "$work/stderr" ||
    fail "no path of the file that cannot be created"
same mine "$(cat "$out/lines")" "a file with other content"

# A creation of a store that was killed is repeated; a directory with other files is none.
for names in "" log "log index" "log index LOCK"; do
    rm -rf "$work/begun"
    mkdir "$work/begun"
    for name in $names; do
        case $name in
        LOCK) touch "$work/begun/LOCK" ;;
        *) mkdir "$work/begun/$name" ;;
        esac
    done
    code 0 agentwal --store "$work/begun" import "$in/lines"
done
rm -rf "$work/begun"
mkdir "$work/begun"
touch "$work/begun/mine"
code 3 agentwal --store "$work/begun" import "$in/lines"
same mine "$(ls -A "$work/begun")" "a directory with a file"

# Nothing is written through a symbolic link below the output directory.
mkdir "$work/linked" "$work/elsewhere"
ln -s ../elsewhere "$work/linked/sub"
code 1 agentwal --store "$store" export --dialect source "$work/linked"
same "" "$(ls -A "$work/elsewhere")" "files outside the output directory"
cmp "$in/lines" "$work/linked/lines"

# An import continues after it was killed.
agentwal --store "$work/killed" init
for delay in 0.01 0.02 0.05 0.1 0.2; do
    agentwal --store "$work/killed" import --all-files "$in" >/dev/null 2>&1 &
    sleep "$delay"
    { kill -KILL "$!" && wait "$!"; } 2>/dev/null || true
done
code 0 agentwal --store "$work/killed" import --json --all-files "$in"
code 0 agentwal --store "$work/killed" import --json --all-files "$in"
json 'all(r["appended"] == 0 for r in rows)' "$work/stdout"
code 0 agentwal --store "$work/killed" export --dialect source "$work/killed-out"
diff -r "$in" "$work/killed-out" || fail "the export after a kill differs"

# Two sources with the same relative path.
mkdir "$work/one" "$work/two"
printf '{"n":1}\n' >"$work/one/same.jsonl"
printf '{"n":2}\n' >"$work/two/same.jsonl"
code 0 agentwal --store "$work/pair" init
code 0 agentwal --store "$work/pair" import "$work/one/same.jsonl" \
    "$work/two/same.jsonl"
code 0 agentwal --store "$work/pair" import --json "$work/two/same.jsonl" \
    "$work/one/same.jsonl"
json 'all(r["appended"] == 0 and r["duplicates"] == 1 for r in rows)' \
    "$work/stdout"
code 0 agentwal --store "$work/pair" export --dialect source --json "$work/pair-out"
json 'len(rows) == 2' "$work/stdout"
cmp "$work/one/same.jsonl" "$work/pair-out/0/same.jsonl"
cmp "$work/two/same.jsonl" "$work/pair-out/1/same.jsonl"
rm -r "$work/pair-out"
code 0 agentwal --store "$work/pair" export --dialect source "$work/pair-out"
same '2 files, 2 lines added' "$(cat "$work/stdout")" "a summary"
code 0 agentwal --store "$work/pair" export --dialect source -v "$work/pair-out"
same 2 "$(grep -c ', 0 lines added$' "$work/stdout")" "a line for each file"

# With closed standard streams no message is written to a file.
rm -r "$work/pair-out"
agentwal --store "$work/pair" export --dialect source "$work/pair-out" <&- >&- 2>&-
cmp "$work/one/same.jsonl" "$work/pair-out/0/same.jsonl"
walcat "$work/pair" "$work/two/same.jsonl" | json 'rows[0]["payload"] == {"n": 2}'

# Any spelling of a directory's path; the store is not imported.
code 0 agentwal --store "$work/one/store" init
code 0 agentwal --store "$work/one/store" import --json --all-files "$work/one//"
json 'len(rows) == 1 and rows[0]["appended"] == 1' "$work/stdout"
(cd "$work/one" && agentwal --store store import --json --all-files .) |
    json 'len(rows) == 1 and rows[0]["appended"] == 0'

# Entries that came from no file are losses.
agentwal --store "$work/pair" append "$work/one/same.jsonl" >/dev/null \
    <<<'{"type":"note","payload":1}'
agentwal --store "$work/pair" create --id native >/dev/null
agentwal --store "$work/pair" export --dialect source --json "$work/pair-out" |
    json 'sorted(loss["count"] for r in rows for loss in r["losses"]) == [1, 1]'

# A delta is a line like any other; importing the file again does not restore a
# redacted line.
message='"timestamp":"2026-01-01T00:00:00Z","type":"message","payload":{"n"'
for redacted in first delta last; do
    agentwal --store "$work/hidden-$redacted" init
    mkdir -p "$work/lines-$redacted"
    cat >"$work/lines-$redacted/s.jsonl" <<EOF
{"id":"head","type":"session_header","timestamp":"2026-01-01T00:00:00Z","payload":{"version":1}}
{"id":"first","parentId":"head",$message:1}}
{"id":"delta","parentId":"first",${message/message/message_delta_batch}:2}}
{"id":"last","parentId":"first",$message:3}}
EOF
    agentwal --store "$work/hidden-$redacted" import "$work/lines-$redacted/s.jsonl" \
        >/dev/null
    agentwal --store "$work/hidden-$redacted" export --dialect source \
        "$work/lines-$redacted/out" >/dev/null
    cmp "$work/lines-$redacted/s.jsonl" "$work/lines-$redacted/out/s.jsonl"
    agentwal --store "$work/hidden-$redacted" redact head "$redacted" >/dev/null
    agentwal --store "$work/hidden-$redacted" import --json \
        "$work/lines-$redacted/s.jsonl" |
        json 'rows[0]["appended"] == 0 and rows[0]["sessionId"] == "head"'
    [ "$(agentwal --store "$work/hidden-$redacted" list --json | wc -l)" -eq 1 ]
    rm -r "$work/lines-$redacted/out"
    agentwal --store "$work/hidden-$redacted" export --dialect source \
        "$work/lines-$redacted/out" >/dev/null 2>&1
    grep -v "\"id\":\"$redacted\"" "$work/lines-$redacted/s.jsonl" |
        cmp - "$work/lines-$redacted/out/s.jsonl"
done

# The first bytes of a file created a session; its id stays when the complete
# file contains another one.
example=$(dirname "${BASH_SOURCE[0]}")/../../../tools/example/session.jsonl
mkdir "$work/grown"
head -c 40 "$example" >"$work/grown/s.jsonl"
agentwal --store "$work/grown/store" init
code 0 agentwal --store "$work/grown/store" import --json "$work/grown/s.jsonl"
grown=$(python3 -c 'import json, sys
print(json.load(sys.stdin)["sessionId"])' <"$work/stdout")
agentwal --store "$work/grown/store" meta "$grown" --merge '{"mine":"x"}' >/dev/null
cp "$example" "$work/grown/s.jsonl"
code 0 agentwal --store "$work/grown/store" import "$work/grown/s.jsonl"
agentwal --store "$work/grown/store" meta "$grown" | json 'rows[0]["mine"] == "x"'
same 1 "$(agentwal --store "$work/grown/store" list --json | wc -l)" "sessions of a file"
agentwal --store "$work/grown/store" export --dialect source "$work/grown/out" >/dev/null
cmp "$work/grown/s.jsonl" "$work/grown/out/s.jsonl"

# Exit codes.
code 3 agentwal --store "$store" import "$work/none"
code 3 agentwal --store "$work/none" export --dialect source "$out"
mkfifo "$work/fifo"
code 3 agentwal --store "$store" import "$work/fifo"
code 2 agentwal --store "$store" import --dialect none "$in"
code 2 agentwal --store "$store" export "$out"
code 2 agentwal --store "$store" export --dialect none "$out"
code 1 agentwal --store "$work/pair" path --dialect source "$out" native
agentwal dialects --json | json '{r["name"] for r in rows} >=
    {"source", "pi", "claude", "entries", "lines"}'
agentwal --store "$work/pair" import --json --dialect lines "$in/crlf" |
    json 'rows[0]["dialect"] == "lines"'

# Missing parents of the output directory are created; an error names the path
# that is not a directory.
deep=$work/no/such/out
code 0 agentwal --store "$work/pair" export --dialect source "$deep"
code 0 agentwal --store "$work/pair" export --dialect pi --session native "$deep/view/"
file=$(find "$deep/view/sessions" -type f | head -n 1)
printf '{}\n' >>"$file"
code 1 agentwal --store "$work/pair" export --dialect pi --session native "$deep/view"
grep -qF "agentwal: $file: another program wrote to it" "$work/stderr" ||
    fail "a view's path: $(cat "$work/stderr")"
: >"$work/no/file"
code 3 agentwal --store "$work/pair" export --dialect source "$work/no/file/out"
grep -qF "agentwal: $work/no/file/out" "$work/stderr" ||
    fail "a source's path: $(cat "$work/stderr")"
