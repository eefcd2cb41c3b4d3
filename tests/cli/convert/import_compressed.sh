#!/usr/bin/env bash
# Session files that their client has compressed: a session is known by the name
# without the ending, whichever of its forms was imported first; a file that cannot
# be expanded is named, and the others are imported.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

export HOME=$work/home
unset CODEX_HOME
day=$HOME/.codex/sessions/2026/11/01
id=019fa000-0000-7000-8000-00000000000
mkdir -p "$day"

# rollout LETTER: the file of a session of two messages.
rollout() {
    python3 -ISc '
import json, sys
def line(second, kind, **payload):
    print(json.dumps({"timestamp": "2026-11-01T09:00:0%d.000Z" % second, "type": kind,
                      "payload": payload}))
def message(second, role, kind, text):
    line(second, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])
id, letter = sys.argv[1:]
line(0, "session_meta", id=id + letter, timestamp="2026-11-01T09:00:00.000Z", cwd="/srv/app",
     originator="codex-tui", cli_version="0.169.0", source="cli")
message(1, "user", "input_text", "Question " + letter)
message(2, "assistant", "output_text", "Answer " + letter)' "$id" "$1"
}
# name LETTER: the file's path without its ending.
name() {
    printf '%s/rollout-2026-11-01T09-00-00-%s%s' "$day" "$id" "$1"
}
# counts SESSIONS NEW KNOWN: what an import of the client's folder gives.
counts() {
    agentwal --store "$store" import --json "$HOME/.codex" 2>"$work/stderr" >"$work/rows"
    json "[len(rows), sum(r['appended'] for r in rows), sum(r['duplicates'] for r in rows)] \
        == [$1, $2, $3]" "$work/rows"
}
# back LETTER FILE: the session is exported as the file, by its plain name.
back() {
    rm -rf "$work/out"
    agentwal --store "$store" export --dialect source --session "$id$1" "$work/out" >/dev/null
    cmp "$2" "$work/out/${day#"$HOME"/.codex/}/$(basename "$(name "$1")").jsonl"
}

agentwal --store "$store" init
rollout a >"$work/a"
rollout b >"$work/b"

# In one frame, in several, with one to skip between them, and one that is empty.
zstd -q -o "$(name a).jsonl.zst" "$work/a"
{
    head -c 100 "$work/b" | zstd -q
    printf '\x50\x2a\x4d\x18\x03\0\0\0abc'
    printf '' | zstd -q
    tail -c +101 "$work/b" | zstd -q --no-check
} >"$(name b).jsonl.zst"
counts 2 6 0
counts 2 0 6
back a "$work/a"
back b "$work/b"
agentwal --store "$store" list --json |
    json 'sorted(r["sessionId"][-1] for r in rows) == ["a", "b"]'
agentwal --store "$store" cat --text "${id}b" >"$work/text"
grep -q 'Answer b' "$work/text" || fail 'no answer'

# The client expands it to go on: while both are there the plain one counts.
cp "$work/a" "$(name a).jsonl"
rollout z | tail -n 1 >>"$(name a).jsonl"
cp "$(name a).jsonl" "$work/a2"
counts 2 1 6
rm "$(name a).jsonl.zst"
counts 2 0 7
zstd -q --rm "$(name a).jsonl"
counts 2 0 7
back a "$work/a2"

# Imported plain, and compressed later; in any other folder; given by its path.
rollout c >"$(name c).jsonl"
counts 3 3 7
zstd -q --rm "$(name c).jsonl"
counts 3 0 10
cp -r "$day" "$work/copy"
agentwal --store "$store" import --json "$work/copy" | json 'len(rows) == 3 and
    all(row["appended"] == 0 for row in rows)'
agentwal --store "$store" import --json "$(name c).jsonl.zst" |
    json 'rows[0]["appended"] == 0 and rows[0]["sessionId"].endswith("c")'
# As lines: the bytes of the file as they are.
agentwal --store "$work/raw" init
agentwal --store "$work/raw" import --json --dialect lines "$(name c).jsonl.zst" >"$work/rows"
agentwal --store "$work/raw" export --dialect source --stdout \
    --session "$(field sessionId "$work/rows")" | cmp - "$(name c).jsonl.zst"

# Continued: it is enough for its client, until only the store has more; what is written then
# is the plain file.
rollout 5 >"$work/5"
zstd -q -o "$(name 5).jsonl.zst" "$work/5"
agentwal --store "$store" import "$(name 5).jsonl.zst" >/dev/null
agentwal --store "$store" resume "${id}5" >/dev/null
[ ! -e "$(name 5).jsonl" ] || fail "a file that nobody needs"
agentwal --store "$store" append "${id}5" --user 'Only here' >/dev/null
agentwal --store "$store" resume "${id}5" >/dev/null 2>&1
cmp "$work/5" <(head -n 3 "$(name 5).jsonl")
grep -q '"text":"Only here"' "$(name 5).jsonl" || fail "what only the store has is not continued"
agentwal --store "$store" import --json "$HOME/.codex" 2>/dev/null |
    json 'all(row["appended"] == 0 for row in rows)'
rm "$(name 5)".jsonl*
agentwal --store "$store" delete --erase "${id}5" >/dev/null

# Each file that cannot be expanded has its sentence; the others are imported.
rollout d | zstd -q | head -c 90 >"$(name d).jsonl.zst"
: >"$(name e).jsonl.zst"
{ rollout f | zstd -q && echo 'more text'; } >"$(name f).jsonl.zst"
rollout g >"$(name g).jsonl.zst"
# A frame that states 100 GB.
printf '\x28\xb5\x2f\xfd\xc0\x58\0\xe8\x76\x48\x17\0\0\0' >"$(name h).jsonl.zst"
rollout j >"$work/j"
zstd -q "$work/j" -o "$work/j.zst"
{ head -c 40 "$work/j.zst" && printf XXXX && tail -c +45 "$work/j.zst"; } >"$(name j).jsonl.zst"
rollout k | zstd -q >"$(name k).jsonl.zst"
# shellcheck disable=SC2119
code 1 agentwal --store "$store" import "$HOME/.codex"
cp "$work/stderr" "$work/failures"
# says LETTER TEXT
says() {
    grep -F "$(name "$1").jsonl.zst: $2" "$work/failures" >/dev/null ||
        fail "$1: $(cat "$work/failures")"
}
says d 'its compressed content is cut short'
says e 'its compressed content is cut short'
says f 'other bytes follow its compressed content'
says g 'its compressed content is damaged: '
says h 'it expands to more than 4096 MiB, which is the most that is read'
says j 'its compressed content is damaged: '
same 6 "$(wc -l <"$work/failures")" 'failures'
same 4 "$(agentwal --store "$store" list --json | wc -l)" 'sessions'
code 0 walcheck "$store"
