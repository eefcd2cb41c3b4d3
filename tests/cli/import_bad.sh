#!/usr/bin/env bash
# agentwal import of folders with files that no client wrote as expected.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

export AGENTWAL_STORE=$store
project=$work/home/.claude/projects/-srv
mkdir -p "$project"
row() { # ID NUMBER TEXT
    printf '{"parentUuid":null,"isSidechain":false,"type":"user",'
    printf '"cwd":"/srv","sessionId":"%s","uuid":"%s-%s",' "$1" "$1" "$2"
    printf '"message":{"role":"user","content":"%s"},' "$3"
    printf '"timestamp":"2026-02-03T09:00:00.000Z"}\n'
}

# Control characters in names and titles do not reach the terminal.
evil=$(printf 'e\033[31m\001vil')
row s1 1 'title \u001b[31m\u0007 end' >"$project/$evil.jsonl"
{
    printf '{"type":"summary","summary":"\\u001b]0;x\\u0007","leafUuid":"u"}\n'
    row s2 1 'text'
} >"$project/s2.jsonl"
echo '{"type":"system","uuid":"n1","parentUuid":null,"sessionId":"none"}' \
    >"$project/$(printf 'none\033[0m').jsonl"
# A row of an unknown version and of an unknown type: kept as they are.
{
    row s3 1 'hello'
    printf '{"type":"hologram","version":"99.0","sessionId":"s3","x":[1,2]}\n'
} >"$project/s3.jsonl"
mkdir -p "$work/home/.pi/agent/sessions/--srv--"
time='"timestamp":"2026-02-03T09:00:00.000Z"'
{
    printf '{"type":"session","version":9,"id":"p9",%s,"cwd":"/srv"}\n' "$time"
    printf '{"type":"message","id":"a1","parentId":null,%s,' "$time"
    printf '"message":{"role":"user","content":"x"}}\n'
} >"$work/home/.pi/agent/sessions/--srv--/t_p9.jsonl"
code 0 agentwal import --verbose "$work/home"
if grep -qP '[\x00-\x08\x0b-\x1f\x7f]' "$work/stdout" "$work/stderr"; then
    fail "control characters in the output of import"
fi
grep -q 'the version is not known' "$work/stderr" || fail "unknown version"
code 0 agentwal import "$work/home"
grep -q '1 line of 1 file is odd and was kept unchanged; -v lists them' "$work/stderr" ||
    fail "odd lines: $(cat "$work/stderr")"
code 0 agentwal list
if grep -qP '[\x00-\x08\x0b-\x1f\x7f]' "$work/stdout"; then
    fail "control characters in the list"
fi
grep -q '(no messages) none.*\.jsonl' "$work/stdout" || fail "a session without messages"
code 0 agentwal export --dialect source "$work/out"
cmp "$project/s3.jsonl" "$work/out/projects/-srv/s3.jsonl"
cmp "$project/$evil.jsonl" "$work/out/projects/-srv/$evil.jsonl"
cmp "$work/home/.pi/agent/sessions/--srv--/t_p9.jsonl" \
    "$work/out/sessions/--srv--/t_p9.jsonl"

# A folder that cannot be read is named, the rest is imported: exit code 1. An
# argument that cannot be read is a failure.
code 3 agentwal import "$work/none"
mkdir "$project-locked"
row s4 1 locked >"$project-locked/s4.jsonl"
row s5 1 more >"$project/s5.jsonl"
chmod 0 "$project-locked"
drop=()
if [ "$(id -u)" -eq 0 ]; then
    drop=(setpriv --bounding-set=-all --inh-caps=-all)
    "${drop[@]}" true 2>/dev/null || drop=()
fi
if "${drop[@]}" ls "$project-locked" >/dev/null 2>&1; then
    chmod 700 "$project-locked"
else
    code 1 "${drop[@]}" agentwal import "$work/home"
    chmod 700 "$project-locked"
    grep -qF "agentwal: $project-locked: " "$work/stderr" || fail "not named"
    grep -q '^failed: 1$' "$work/stdout" || fail "not counted"
    agentwal list | grep -q more || fail "the rest was not imported"
fi

# Two clients with one session id: both are kept, and the second is named.
row p9 1 other >"$project/p9.jsonl"
code 0 agentwal import "$work/home/.claude"
grep -qF "$project/p9.jsonl: differs from the session of its id; imported as 'p9~2'" \
    "$work/stderr" || fail "the same id: $(cat "$work/stderr")"

# --all-files takes what is left out otherwise; a file by its name always is.
printf '{"key":"value"}\n' >"$work/home/.claude/settings.json"
code 0 agentwal import "$work/home"
grep -q 'left out: 1 setting$' "$work/stdout" || fail "settings"
code 0 agentwal import --json --all-files "$work/home"
json 'any(r["path"].endswith("settings.json") for r in rows)' "$work/stdout"
code 0 agentwal --store "$work/other" import --json "$work/home/.claude/settings.json"
json 'len(rows) == 1 and rows[0]["lines"] == 1' "$work/stdout"

# Files that are in no client's folder are left out too, but with --all-files; and
# --json prints the rows alone.
mkdir -p "$work/plain/.claude"
printf '{"n":1}\n' | tee "$work/plain/data" >"$work/plain/.claude/settings.json"
code 0 agentwal --store "$work/old" import "$work/plain"
grep -q 'left out: 1 setting, 1 other file' "$work/stdout" || fail "other files"
code 0 agentwal --store "$work/old" import --json "$work/plain"
[ ! -s "$work/stdout" ] || fail "rows of what is left out"
code 0 agentwal --store "$work/old" import --json --all-files "$work/plain"
json '[r["path"].split("/")[-1] for r in rows] == ["settings.json", "data"]
    and not any("summary" in r for r in rows)' "$work/stdout"

# Views of all sessions leave out those without messages.
code 0 agentwal export --dialect claude "$work/view"
if grep -rq '"key":"value"' "$work/view"; then
    fail "a view of settings"
fi

# A full disk, as a limit of the sizes of files has it: the import stops at the first file, and
# says so once. The store is sound, and the next import completes it.
AGENTWAL_STORE=$work/room
mkdir "$work/many"
for id in r1 r2 r3 r4; do
    for number in {1..300}; do
        row $id "$number" "$(printf '%0500d' 0)"
    done >"$work/many/$id.jsonl"
done
agentwal init
(trap '' XFSZ && ulimit -f 80 && agentwal import "$work/many") \
    >"$work/stdout" 2>"$work/stderr" && fail "an import without space"
same 1 "$(grep -c 'free disk space' "$work/stderr")" "advice on a full disk"
same 1 "$(grep -o 'no space' "$work/stderr" | wc -l)" "sentences on a full disk"
code 0 agentwal check
code 0 agentwal import "$work/many"
same 4 "$(agentwal list --json | wc -l)" "sessions after a full disk"

# What is not text is refused, with what to do; --dialect lines takes it.
AGENTWAL_STORE=$work/text-store
export AGENTWAL_STORE
mkdir "$work/files"
row b1 1 'typed in PowerShell' >"$work/files/utf-8"
for form in UTF-16 UTF-16LE UTF-16BE; do
    iconv -f UTF-8 -t "$form" "$work/files/utf-8" >"$work/files/$form"
    code 1 agentwal import "$work/files/$form"
    grep -q 'in UTF-16, .* iconv -f UTF-16 -t UTF-8 .* --dialect lines' "$work/stderr" ||
        fail "$form: $(cat "$work/stderr")"
done
printf '\x1f\x8b\x08\0\0\0\0\0' >"$work/files/gzip"
printf 'SQLite format 3\0' >"$work/files/database"
printf '\x89PNG\r\n\x1a\n' >"$work/files/image"
for name in gzip database image; do
    code 1 agentwal import "$work/files/$name"
    grep -q 'is not text: .* --dialect lines' "$work/stderr" || fail "$name: $(cat "$work/stderr")"
done
same 0 "$(agentwal list --json | wc -l)" "sessions of files that are not text"
code 0 agentwal import --dialect lines "$work/files/UTF-16" "$work/files/database"
same 2 "$(agentwal list --json | wc -l)" "sessions of the dialect lines"
# Text, and lines of a client that end in zeros.
printf 'caf\xe9\tau lait\n' >"$work/files/latin-1"
{ row b2 1 'torn' && head -c 512 /dev/zero; } >"$work/files/torn"
code 0 agentwal import "$work/files/latin-1" "$work/files/torn"
# A file that begins with a byte order mark has its title.
{ printf '\xef\xbb\xbf' && row b3 1 'after a mark'; } >"$work/files/mark.jsonl"
code 0 agentwal import "$work/files/mark.jsonl"
agentwal list --json | json 'any(r["firstText"] == "after a mark" for r in rows)'
