#!/usr/bin/env bash
# make_copies.sh OUT: a store with copies of session files as line deltas (SPEC.md
# 5.17), the files that were imported into it, and what each dialect exports: a
# tar archive, golden/copies.tar.xz. Needs a program that writes such chunks.
set -euo pipefail

out=$(realpath -m "${1:?}")
maker=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../lib/session_copy.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export AGENTWAL_STORE=$work/store
mkdir files
agentwal init

# give FILE: imports it as a copy.
give() {
    agentwal import --json "files/$1.jsonl" | grep -Eq '"shared": *[1-9]'
}

seed=0
for style in claude codex pi; do
    seed=$((seed + 100)) # which the ids are made of
    python3 "$maker" make $style 7000 $((seed + 1)) files/$style-a.jsonl 40
    python3 "$maker" make $style 7000 $((seed + 7)) files/$style-s.jsonl 40
    agentwal import files/$style-a.jsonl files/$style-s.jsonl
    # A copy that goes on, and a copy of that.
    python3 "$maker" copy $style $((seed + 2)) files/$style-a.jsonl files/$style-b.jsonl
    python3 "$maker" more $style $((seed + 3)) files/$style-b.jsonl 4
    give $style-b
    python3 "$maker" copy $style $((seed + 4)) files/$style-b.jsonl files/$style-c.jsonl
    give $style-c
    # One that is nothing but the copy, and one whose lines are named.
    python3 "$maker" copy $style $((seed + 5)) files/$style-a.jsonl files/$style-d.jsonl
    give $style-d
    python3 "$maker" copy $style $((seed + 6)) files/$style-s.jsonl all
    python3 - all files/$style-e.jsonl $style <<'PY'
import sys

lines = open(sys.argv[1]).readlines()
own = {"claude": '{"type":"summary","summary":"own","leafUuid":null}\n',
       "codex": lines[1].replace('"timestamp":"2026', '"timestamp":"2025', 1)
                        .replace('"text":"', '"text":"own ', 1),
       "pi": ""}[sys.argv[3]]
open(sys.argv[2], "w").writelines(lines[:5] + [own] + lines[8:14] + lines[16:])
PY
    give $style-e
done

# A line that is out of line, and a child of it.
python3 "$maker" make claude 2000 8 files/claude-l.jsonl 40
python3 - files/claude-l.jsonl <<'PY'
import sys

lines = open(sys.argv[1]).readlines()
at = max(i for i, line in enumerate(lines) if '"user"' in line)
lines[at] = lines[at].replace('"content":"', '"content":"' + 400000 * "x", 1)
open(sys.argv[1], "w").writelines(lines)
PY
agentwal import files/claude-l.jsonl
python3 "$maker" copy claude 9 files/claude-l.jsonl files/claude-m.jsonl
python3 "$maker" more claude 10 files/claude-m.jsonl 2
give claude-m

# A line that is redacted in the original, and so in its copy.
python3 "$maker" make claude 3000 11 files/claude-r.jsonl 40
agentwal import --json files/claude-r.jsonl >row
python3 "$maker" copy claude 12 files/claude-r.jsonl files/claude-q.jsonl
give claude-q
session=$(grep -o '"sessionId": *"[^"]*"' row | cut -d '"' -f 4)
entry=$(grep -o '"uuid":"[^"]*"' files/claude-r.jsonl | sed -n 3p | cut -d '"' -f 4)
agentwal redact "$session" "$entry"

for dialect in source claude codex pi entries; do
    agentwal export --dialect $dialect expected/$dialect || [ $? -eq 1 ]
done
find expected -name .agentwal\* -print0 | xargs -0 rm -rf
rm -rf store/views store/LOCK
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -S -cJf "$out" \
    store files expected
