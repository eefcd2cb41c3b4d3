#!/usr/bin/env bash
# walcheck, walcat and salvage of a store whose segments were rewritten by
# compaction (SPEC.md 2.22, 2.23, 3.9): sound after each compaction; a flipped
# bit costs the records of its BLOCK alone, which the report names; everything
# else is salvaged.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

compact() {
    "$AGENTWAL_BUILD/tests/compact_store" "$@"
}

# append STORE SESSION FIRST COUNT: entries of 400 bytes.
append() {
    python3 -ISc '
import json, sys
first, count = int(sys.argv[1]), int(sys.argv[2])
for i in range(first, first + count):
    print(json.dumps({"id": "e%d" % i, "type": "message", "payload": {
        "role": "user", "content": ("entry %d of it " % (i * 7919)) * 25}}))
' "$3" "$4" | walctl append "$1" "$2" >"$work/appended"
}

# ids STORE SESSION: the ids of its entries, redacted ones marked.
ids() {
    walcat --all --redacted "$1" "$2" | python3 -ISc '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(row["id"], "redacted" if "redactedBy" in row["payload"] else "kept")
'
}

# A first segment: two sessions that interleave, a deleted one that a fork
# shares, one that nothing shares, documents, heads, redactions, changed titles.
walctl init "$store"
for session in alpha beta parent lone; do
    walctl create "$store" --id $session --cwd /srv/$session >"$work/made"
done
for first in 0 40 80; do
    append "$store" alpha $first 40
    append "$store" beta $first 20
done
append "$store" parent 0 40
append "$store" lone 0 40
{
    walctl fork "$store" parent --at e20 --id child
    walctl redact "$store" beta e7 --reason secret
    walctl redact "$store" child e5 --reason secret
    for i in 1 2 3; do
        walctl meta "$store" alpha --merge '{"round":'$i'}'
        walctl head "$store" alpha kept e$i
        walctl head "$store" alpha main e1$i
        echo '{"v":'$i'}' | walctl doc put "$store" beta notes
        echo '{"v":'$i'}' | walctl doc put --store "$store" config
    done
    walctl delete "$store" parent
    walctl delete "$store" lone
} >"$work/made"
code 0 walcheck "$store"
for session in alpha beta child; do
    ids "$store" $session >"$work/ids.$session"
done
compact "$store" >"$work/compacted"
json 'rows[0]["rewritten"] == 1 and rows[0]["dropped"] > 60 and rows[0]["erased"] == 2' "$work/compacted"
code 0 walcheck --json "$store"
json 'rows[0]["sound"] and rows[0]["notes"] == [] and rows[0]["sessionCount"] == 3
      and rows[0]["deletedCount"] == 1' "$work/stdout"

# What walcat shows of it: every record of a BLOCK after the BLOCK.
code 0 walcat --frames --json "$store"
json 'rows[0]["generation"] == 1 and rows[0]["firstId"] == 1 and rows[0]["recordBytes"] > 60000' "$work/stdout"
json 'all(sum(r.get("block") == b["offset"] for r in rows) == b["records"]
          for b in rows if b.get("type") == "BLOCK")' "$work/stdout"
json 'sum(r.get("type") == "ENTRY" and r["block"] <= r["offset"] < r["block"] + 512
          for r in rows) == sum(r.get("type") == "ENTRY" for r in rows) > 200' "$work/stdout"
code 0 walcat --frames "$store"
grep -q '^rewritten  generation 1  first id 1 ' "$work/stdout" || fail "no header"
grep -q ' BLOCK .* ok  records [0-9]*$' "$work/stdout" || fail "no BLOCK"
grep -q '^ *[0-9]* - ENTRY ' "$work/stdout" || fail "no record of a BLOCK"

# A second segment that refers to the first, and a second compaction.
append "$store" alpha 200 40
append "$store" child 300 60
walctl redact "$store" alpha e3 --reason secret >"$work/made"
walctl create "$store" --id lone --title again >"$work/made"
append "$store" lone 0 20
code 0 walcheck "$store"
compact "$store" >"$work/compacted"
code 0 walcheck --json "$store"
json 'rows[0]["sound"] and rows[0]["notes"] == []' "$work/stdout"
append "$store" beta 400 5
code 0 walcheck "$store"
[ -e "$store/log/0000000000000002.seg" ] || fail "there is no second segment"
for session in alpha beta child lone; do
    ids "$store" $session >"$work/ids.$session"
done
cp -r "$store" "$work/two"

# Merged: the files of the run that are still there are no damage.
mkdir "$work/old"
cp "$store"/log/*.seg "$work/old"
walctl delete "$store" lone >"$work/made"
compact "$store" --erase >"$work/compacted"
code 0 walcheck "$store"
grep -q '^sound' "$work/stdout" || fail "not sound after merging"
[ ! -e "$store/log/0000000000000001.seg" ] || fail "nothing was merged"
code 0 walcat --frames --json "$store"
json 'rows[0]["firstId"] == 1 and rows[0]["id"] > 1 and rows[0]["generation"] > 2' "$work/stdout"
cp "$work/old/0000000000000001.seg" "$store/log"
dd if=/dev/zero of="$store/log/0000000000000002.seg" bs=4096 count=16 2>"$work/made"
code 0 walcheck --json "$store"
json 'rows[0]["sound"] and len(rows[0]["notes"]) == 2
      and all("replaced by compaction" in n["reason"] for n in rows[0]["notes"])' "$work/stdout"
code 0 walcheck --salvage "$work/merged" "$store"
code 0 walcheck "$work/merged"
ids "$work/merged" child >"$work/got"
cmp "$work/ids.child" "$work/got" || fail "a salvage of the merged store"

# Salvage of a sound one has everything; erased entries stay redacted.
code 0 walcheck --json --salvage "$work/out" "$work/two"
json 'rows[0]["notes"] == []' "$work/stdout"
for session in alpha beta child lone; do
    ids "$work/out" $session >"$work/got"
    cmp "$work/ids.$session" "$work/got" || fail "a salvage of $session"
done
grep -qx 'e7 redacted' "$work/ids.beta" || fail "e7 is not redacted"

# Each flipped bit.
python3 -ISc '
import json, os, shutil, subprocess, sys

two, work = sys.argv[1:]
broken = os.path.join(work, "broken")
stride = int(os.environ.get("AGENTWAL_STRIDE", "1"))
blocks = 0


def run(*command, ok=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode in ok, (command, done.returncode, done.stdout[-500:],
                                   done.stderr[-500:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def ranges(numbers):
    found = []
    for n in sorted(numbers):
        if found and found[-1][1] == n - 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    return found


def check(name, offset, ok):
    """The report after a bit at this offset was flipped."""
    shutil.rmtree(broken, ignore_errors=True)
    shutil.copytree(two, broken)
    with open(os.path.join(broken, name), "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 16]))
    rows = run("walcheck", "--json", broken, ok=ok)
    return rows[0]


def entries(store, session):
    """The ids of the entries of a session, and which are redacted."""
    done = subprocess.run(["walcat", "--all", "--redacted", store, session],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["id"]: "redactedBy" in row["payload"] for row in rows}


def salvage(lost, shown=frozenset()):
    """A salvage of the damaged store has all entries but the lost ones, and
    hides all that was redacted but where the REDACT record is lost."""
    out = os.path.join(work, "salvaged")
    shutil.rmtree(out, ignore_errors=True)
    run("walcheck", "--json", "--salvage", out, broken, ok=(0, 1))
    run("walcheck", "--json", out)
    for session, before in everything.items():
        after = entries(out, session)
        missing = set(before) - set(after)
        assert missing <= lost, (session, missing - lost)
        for entry in set(before) & set(after):
            assert (after[entry] or not before[entry] or
                    entry in shown), (session, entry)


everything = {session: entries(two, session)
              for session in ("alpha", "beta", "child", "lone")}
whole = run("walcheck", "--json", two)[0]["recordCount"]
frames = run("walcat", "--frames", "--json", two)
numbers = {}
for row in frames:
    if row.get("type") == "SESSION":
        numbers[row["session"]] = row["id"]
for frame in frames:
    if frame.get("type") == "BLOCK":
        records = [r for r in frames if r.get("block") == frame["offset"] and
                   r["file"] == frame["file"]]
        blocks += 1
        for at in (frame["offset"] + 20, frame["offset"] + 48,
                   frame["offset"] + frame["size"] // 2):
            report = check(frame["file"], at, (1,))
            losses = [d for d in report["damage"] if not d["redundant"]]
            assert len(losses) == 1, losses
            loss = losses[0]
            assert loss["file"] == frame["file"], loss
            assert loss["offset"] == frame["offset"], loss
            assert loss["length"] == frame["size"], loss
            assert loss["sequences"] == ranges(r["sequence"] for r in records)
            names = {"#store" if r["session"] == 0xffffffff else
                     numbers.get(r["session"], "#%d" % r["session"])
                     for r in records}
            assert set(loss["sessions"]) == names, (loss["sessions"], names)
        if blocks % stride == 0:
            salvage({r.get("id") for r in records if r["type"] == "ENTRY"},
                    {r.get("target") for r in records if r["type"] == "REDACT"})
    elif frame.get("type") == "COMMIT" and frame["file"].endswith("1.seg"):
        report = check(frame["file"], frame["offset"] + 30, (1,))
        assert all(d["sequences"] == [] for d in report["damage"]), report
        salvage(set())
    elif frame.get("type") in ("INDEX", "SEAL", "trailer"):
        report = check(frame["file"], frame["offset"] + 30, (0,))
        assert report["sound"] and report["notes"], report
        salvage(set())
    elif frame.get("type") == "OPEN" and "2.seg" in frame["file"]:
        report = check(frame["file"], frame["offset"] + 60, (1,))
        assert report["damage"], report
        salvage(set())
    elif "generation" in frame:
        for at in (8, 90, 100, 2048 + 118):
            report = check(frame["file"], at, (1,))
            assert [d["redundant"] for d in report["damage"]] == [True], report
            salvage(set())
        with open(os.path.join(two, frame["file"]), "rb") as file:
            header = file.read(4096)
        check(frame["file"], 90, (1,))
        with open(os.path.join(broken, frame["file"]), "r+b") as file:
            file.seek(2048 + 90)
            file.write(bytes([header[90] ^ 1]))
        report = run("walcheck", "--json", broken, ok=(1,))[0]
        assert "no reader opens" in report["damage"][0]["reason"], report
        assert report["recordCount"] == whole, report
        salvage(set())
assert blocks >= 6, blocks
' "$work/two" "$work"
