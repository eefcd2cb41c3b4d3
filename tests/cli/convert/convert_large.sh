#!/usr/bin/env bash
# Lines of 10 and 100 MB are imported and exported in 64 MiB of anonymous memory,
# whole, one entry each, and 700,000 short ones in 24 MiB.
set -euo pipefail
# shellcheck source=tests/lib/peak_memory.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/peak_memory.sh"

# line SIZE ID: a line of SIZE bytes, JSON with varied text.
line() {
    python3 - "$1" "$2" <<'EOF'
import random
import sys

size = int(sys.argv[1])
head = '{"type":"user","uuid":"%s","sessionId":"%s","cwd":"/x","message":' \
    '{"role":"user","content":"the beginning ' % (sys.argv[2], sys.argv[2])
text = random.Random(size).randbytes(size // 2 + 1).hex()
tail = '"}}'
print(head + text[:size - len(head) - len(tail)] + tail)
EOF
}

in=$work/in
mkdir "$in"
line 10000000 ten >"$in/ten.jsonl"
line 100000000 hundred >"$in/hundred.jsonl"
printf '%s\n' '{"type":"user","uuid":"u2","parentUuid":"hundred"}' \
    >>"$in/hundred.jsonl"
line 30000000 binary | tr '{' '\377' | tr -d '\n' >"$in/no-json"

agentwal --store "$store" init
bounded agentwal --store "$store" import --json --all-files "$in" >"$work/rows"
json 'sum(r["lines"] for r in rows) == 4 and all(
    r["appended"] == r["lines"] for r in rows if "no-json" not in r["path"])' \
    "$work/rows"
agentwal --store "$store" list --json |
    json '[r for r in rows if r["sessionId"] == "hundred"][0]["firstText"][:13] ==
        "the beginning"'
bounded agentwal --store "$store" import --json --all-files "$in" >"$work/rows"
json 'all(r["appended"] == 0 for r in rows)' "$work/rows"
bounded agentwal --store "$store" export --dialect source "$work/out" >/dev/null
diff -r "$in" "$work/out"
bounded agentwal --store "$store" export --dialect source "$work/out" >/dev/null
bounded agentwal --store "$store" export --dialect source --stdout --session hundred \
    >"$work/stdout"
cmp "$in/hundred.jsonl" "$work/stdout"

# A truncated line is imported again when it is complete.
{
    printf '%s\n' '{"type":"user","uuid":"u0","sessionId":"g","cwd":"/x",
        "timestamp":"2026-01-01T00:00:00Z"}' | tr -d '\n '
    echo
    cat "$in/hundred.jsonl"
} >"$work/whole.jsonl"
head -c 60000000 "$work/whole.jsonl" >"$work/grow.jsonl"
agentwal --store "$work/grown" init
bounded agentwal --store "$work/grown" import "$work/grow.jsonl" >/dev/null 2>&1
cp "$work/whole.jsonl" "$work/grow.jsonl"
bounded agentwal --store "$work/grown" import --json "$work/grow.jsonl" >"$work/rows"
json 'rows[0]["appended"] == 2 and rows[0]["duplicates"] == 1' "$work/rows"
bounded agentwal --store "$work/grown" export --dialect source "$work/grown-out" >/dev/null
cmp "$work/whole.jsonl" "$work/grown-out/grow.jsonl"

# Each line takes less than 35 bytes of memory.
limit_kb=24576 lines=700000
[ -z "${AGENTWAL_LONG-}" ] || limit_kb=65536 lines=2000000
seq -f '{"n":%.0f}' "$lines" >"$work/tiny.jsonl"
agentwal --store "$work/tiny" init
bounded agentwal --store "$work/tiny" import "$work/tiny.jsonl" >/dev/null
bounded agentwal --store "$work/tiny" import --json "$work/tiny.jsonl" >"$work/rows"
json 'rows[0]["appended"] == 0' "$work/rows"
bounded agentwal --store "$work/tiny" export --dialect source "$work/tiny-out" >/dev/null
cmp "$work/tiny.jsonl" "$work/tiny-out/tiny.jsonl"
rm -r "$work/tiny" "$work/tiny-out"
unset limit_kb

# An entry's payload is printed while it is read.
{
    printf '{"type":"message","id":"m","payload":'
    head -n 1 "$in/ten.jsonl"
    printf '}'
} | tr -d '\n' >"$work/entry"
agentwal --store "$store" create --id native >/dev/null
agentwal --store "$store" append native <"$work/entry" >/dev/null
bounded walcat "$store" native >"$work/printed"
json 'len(rows) == 1 and rows[0]["id"] == "m"
    and len(rows[0]["payload"]["message"]["content"]) > 9999000' \
    "$work/printed"
walcat --text "$store" native | grep -q "the beginning" ||
    fail "the text of a large message"
walcat --tree "$store" native | grep -q "user: the beginning" ||
    fail "the preview of a large message"

# A damaged blob loses only its line.
python3 - "$work/grown/pack" <<'EOF'
import os
import sys

path = os.path.join(sys.argv[1], sorted(os.listdir(sys.argv[1]))[0])
with open(path, "r+b") as file:
    file.seek(500000)
    byte = file.read(1)
    file.seek(500000)
    file.write(bytes([byte[0] ^ 16]))
EOF
code 1 agentwal --store "$work/grown" export --dialect source "$work/damaged"
sed 2d "$work/whole.jsonl" | cmp - "$work/damaged/grow.jsonl"
code 1 walcat --all "$work/grown" "$work/grow.jsonl"
json '[r["id"] for r in rows] == ["u0", "u2"]' "$work/stdout"
