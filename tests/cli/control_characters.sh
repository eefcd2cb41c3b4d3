#!/usr/bin/env bash
# Characters that control a terminal, in every text that a store can hold: no
# tool prints one raw, and their escapes are the same values.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

# C0, NUL, DEL, C1, line separators, bidirectional controls; and what only looks
# like them.
python3 - "$work" <<'PROGRAM'
import json, sys
work = sys.argv[1]
bad = "".join(map(chr, [1, 7, 27, 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0x61c, 0x200e,
                        0x200f, 0x2028, 0x2029, *range(0x202a, 0x202f),
                        *range(0x2066, 0x206a)]))
good = "\u00a0\u00e9\u0627\u061b\u200d\u2027\u202f\u2065\u206a\u20ac\U0001f600"
text = bad + "\0" + good + bad
open(work + "/title", "w").write(bad.replace("\x01", "").replace("\x07", "")
                                 .replace("\x1b", "").replace("\x7f", "") + good)
open(work + "/text", "w").write(json.dumps(text))
with open(work + "/entries", "w") as out:
    for name, ascii in (("e1", False), ("e2", True)):
        out.write(json.dumps({"id": name, "type": "message", "runId": "r" + good,
                              "payload": {"role": "user", "content": text, text: 1}},
                             ensure_ascii=ascii) + "\n")
    # A payload out of line, in whose pieces the characters begin anywhere.
    out.write(json.dumps({"id": "e3", "type": "message",
                          "payload": {"content": (bad + "x") * 8000}},
                         ensure_ascii=False) + "\n")
with open(work + "/meta", "w") as out:
    out.write(json.dumps({text: text}, ensure_ascii=False))
with open(work + "/value", "w") as out:
    out.write(json.dumps({text: [text]}, ensure_ascii=False, indent=1))
PROGRAM
agentwal init
for id in one two; do
    agentwal create --id $id --cwd /srv --title "$(cat "$work/title")" >"$work/id" ||
        agentwal create --id $id --cwd /srv >"$work/id"
done
agentwal append one <"$work/entries" >"$work/appended"
agentwal meta one --merge "$(cat "$work/meta")" >"$work/merged"
agentwal doc put one key <"$work/value"
agentwal fork one --at e1 --id fork --json >"$work/forked"

# clean NAME COMMAND...: the output has none of them.
clean() {
    local name=$1
    shift
    "$@" >"$work/$name" 2>"$work/$name.err" || fail "$*: $(cat "$work/$name.err")"
    python3 - "$work/$name" "$work/$name.err" <<'PROGRAM' || fail "raw in: $*"
import sys, unicodedata
for name in sys.argv[1:]:
    text = open(name, encoding="utf-8").read()
    raw = [hex(ord(c)) for c in text if c != "\n" and
           (unicodedata.category(c) in ("Cc", "Zl", "Zp") or
            c in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")]
    if raw:
        sys.exit("%s: %s" % (name, sorted(set(raw))))
PROGRAM
}
clean list agentwal list --json
clean latest agentwal latest --json
clean show agentwal show --json one
clean cat walcat --all "$store" one
clean tree walcat --tree "$store" one
clean plain walcat --text "$store" one
clean frames walcat --frames --json "$store"
clean doc agentwal doc get --json one key
clean got agentwal doc get one key
clean scan agentwal doc scan --history one
clean head agentwal head --json one
clean check walcheck --json "$store"
clean people agentwal list
clean shown agentwal show one

# Their values are those that were put.
python3 - "$work" <<'PROGRAM' || fail "a value differs"
import json, sys
work = sys.argv[1]
put = [json.loads(line) for line in open(work + "/entries")]
got = {row["id"]: row for row in map(json.loads, open(work + "/cat"))}
assert [got[row["id"]]["payload"] for row in put] == [row["payload"] for row in put]
value = json.load(open(work + "/got"))
text = json.load(open(work + "/text"))
assert value == {text: [text]} == json.load(open(work + "/doc"))["value"]
assert json.load(open(work + "/show"))["metadata"] == {text: text}
assert open(work + "/got").read().count("\n") > 2
PROGRAM
