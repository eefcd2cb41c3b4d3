#!/usr/bin/env bash
# A copy of a session with lines of 1 and 100 MB shares its lines, in 64 MiB of
# anonymous memory.
set -euo pipefail
# shellcheck source=tests/lib/peak_memory.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/peak_memory.sh"

in=$work/in
mkdir "$in"
python3 - "$in" <<'PY'
import json
import random
import sys
import uuid

pick = random.Random(1)


def new():
    return str(uuid.UUID(int=pick.getrandbits(128), version=4))


def dump(row):
    return json.dumps(row, separators=(",", ":")) + "\n"


words = ["".join(pick.choices("abcdefghij klmnop", k=9)) for _ in range(4096)]
session, other, names, last = new(), new(), {None: None}, None
with open(sys.argv[1] + "/a.jsonl", "w") as a, \
        open(sys.argv[1] + "/b.jsonl", "w") as b:
    for size in 100, 1000000, 300000, 100000000, 200:
        row = {"parentUuid": last, "sessionId": session, "type": "user",
               "message": {"role": "user",
                           "content": " ".join(pick.choices(
                               words, k=size // 10 + 1))},
               "uuid": new(), "timestamp": "2026-01-01T00:00:00.000Z"}
        a.write(dump(row))
        names[row["uuid"]] = new()
        last = row["uuid"]
        row.update(parentUuid=names[row["parentUuid"]], sessionId=other,
                   uuid=names[last],
                   forkedFrom={"sessionId": session, "messageUuid": last})
        b.write(dump(row))
    # The next line is a child of the long line.
    row.update(uuid=new(), message={"role": "user", "content": "then"})
    b.write(dump(row))
PY

agentwal --store "$store" init
bounded agentwal --store "$store" import --json "$in/a.jsonl" >/dev/null
before=$(du -sb "$store" | cut -f1)
bounded agentwal --store "$store" import --json "$in/b.jsonl" >"$work/rows"
json 'rows[0]["shared"] == 5 and rows[0]["appended"] == 1 and
    rows[0]["damaged"] == []' "$work/rows"
cost=$(($(du -sb "$store" | cut -f1) - before))
[ "$cost" -lt 100000 ] || fail "$cost bytes for a copy"
bounded agentwal --store "$store" import --json "$in/b.jsonl" >"$work/rows"
json 'rows[0]["appended"] == 0' "$work/rows"
bounded agentwal --store "$store" export --dialect source "$work/out" >/dev/null
diff -r "$in" "$work/out"

# Many lines.
rm -rf "$store" "$in" "$work/out"
mkdir "$in"
maker=$(dirname "${BASH_SOURCE[0]}")/../../lib/session_copy.py
python3 "$maker" make claude 20000000 1 "$in/a.jsonl"
python3 "$maker" copy claude 2 "$in/a.jsonl" "$in/b.jsonl"
python3 "$maker" more claude 3 "$in/b.jsonl" 10
agentwal --store "$store" init
bounded agentwal --store "$store" import --json "$in/a.jsonl" >/dev/null
bounded agentwal --store "$store" import --json "$in/b.jsonl" >"$work/rows"
json 'rows[0]["shared"] >= rows[0]["lines"] - 18' "$work/rows"
bounded agentwal --store "$store" export --dialect source "$work/out" >/dev/null
diff -r "$in" "$work/out"
