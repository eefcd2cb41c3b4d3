#!/usr/bin/env bash
# walcheck, walcat and salvage of a store whose segments were rewritten by
# compaction (SPEC.md 2.22, 2.23, 3.9): sound after each compaction; a flipped
# bit costs the records of its BLOCK alone, which the report names; everything
# else is salvaged.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
export AGENTWAL_STORE=$store

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
' "$3" "$4" | agentwal --store "$1" append "$2" >"$work/appended"
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
agentwal init
for session in alpha beta parent lone; do
    agentwal create --id $session --cwd /srv/$session >"$work/made"
done
for first in 0 160 320; do
    append "$store" alpha $first 160
    append "$store" beta $first 40
done
append "$store" parent 0 40
append "$store" lone 0 40
{
    agentwal fork parent --at e20 --id child
    agentwal redact beta e7 --reason secret
    agentwal redact child e5 --reason secret
    agentwal redact child e6
    agentwal redact --undo child e6
    for i in 1 2 3; do
        agentwal meta alpha --merge '{"round":'$i'}'
        agentwal head alpha kept e$i
        agentwal head alpha main e1$i
        echo '{"v":'$i'}' | agentwal doc put beta notes
        echo '{"v":'$i'}' | agentwal doc put --store config
    done
    delete_session "$store" parent
    delete_session "$store" lone
} >"$work/made"
code 0 walcheck "$store"
for session in alpha beta child; do
    ids "$store" $session >"$work/ids.$session"
done
compact "$store" --erase >"$work/compacted"
json 'rows[0]["rewritten"] == 1 and rows[0]["dropped"] > 60
      and rows[0]["erased"] == 2' "$work/compacted"
code 0 walcheck --json "$store"
json 'rows[0]["sound"] and rows[0]["notes"] == [] and rows[0]["sessionCount"] == 3
      and rows[0]["deletedCount"] == 1' "$work/stdout"

# What walcat shows of it: every record of a BLOCK after the BLOCK.
code 0 walcat --frames --json "$store"
json 'rows[0]["generation"] == 1 and rows[0]["firstId"] == 1
      and rows[0]["recordBytes"] > 60000' "$work/stdout"
json 'all(sum(r.get("block") == b["offset"] for r in rows) == b["records"]
          for b in rows if b.get("type") == "BLOCK")' "$work/stdout"
json 'sum(r.get("type") == "ENTRY" and r["block"] <= r["offset"] < r["block"] + 512
          for r in rows) == sum(r.get("type") == "ENTRY" for r in rows) > 200' "$work/stdout"
code 0 walcat --frames "$store"
grep -q '^rewritten  generation 1  first id 1 ' "$work/stdout" || fail "no header"
grep -q ' BLOCK .* ok  records [0-9]*$' "$work/stdout" || fail "no BLOCK"
grep -q '^ *[0-9]* - ENTRY ' "$work/stdout" || fail "no record of a BLOCK"

# A second segment that refers to the first, and a second compaction, which
# leaves the larger first one as it is.
append "$store" alpha 1000 40
append "$store" child 1000 60
agentwal redact alpha e3 --reason secret >"$work/made"
agentwal create --id lone --title again >"$work/made"
append "$store" lone 0 20
code 0 walcheck "$store"
compact "$store" >"$work/compacted"
code 0 walcheck --json "$store"
json 'rows[0]["sound"] and rows[0]["notes"] == []' "$work/stdout"
append "$store" beta 1000 5
code 0 walcheck "$store"
code 0 walcat --frames --json "$store"
python3 -ISc '
import json, sys
print("\n".join(row["file"] for row in map(json.loads, sys.stdin)
                if "generation" in row))' <"$work/stdout" >"$work/rewritten"
same 2 "$(wc -l <"$work/rewritten")" "the number of rewritten segments"
first=$(head -n 1 "$work/rewritten")
second=$(tail -n 1 "$work/rewritten")
for session in alpha beta child lone; do
    ids "$store" $session >"$work/ids.$session"
done
cp -r "$store" "$work/two"

# Merged: the files of the run that are still there are no damage.
mkdir "$work/old"
cp "$store"/log/*.seg "$work/old"
delete_session "$store" lone
compact "$store" --erase >"$work/compacted"
json 'rows[0]["erased"] == 1' "$work/compacted"
code 0 walcheck "$store"
grep -q '^sound' "$work/stdout" || fail "not sound after merging"
[ ! -e "$store/$first" ] || fail "nothing was merged"
code 0 walcat --frames --json "$store"
json 'rows[0]["firstId"] == 1 and rows[0]["id"] > 1 and rows[0]["generation"] > 2' "$work/stdout"
cp "$work/old/${first##*/}" "$store/log"
dd if=/dev/zero of="$store/$second" bs=4096 count=16 2>"$work/made"
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

# So does one whose redaction went with a deleted session; that is no loss.
cp -r "$work/two" "$work/three"
{
    agentwal --store "$work/three" create --id gamma
    append "$work/three" gamma 0 4
    agentwal --store "$work/three" fork gamma --id delta
    agentwal --store "$work/three" redact delta e1 --reason secret
    delete_session "$work/three" delta
} >"$work/made"
compact "$work/three" >"$work/compacted"
code 0 walcheck "$work/three"
code 0 walcheck --json --salvage "$work/out3" "$work/three"
json 'rows[0]["notes"] == [] and rows[0]["damage"] == []' "$work/stdout"
ids "$work/out3" gamma >"$work/got"
grep -qx 'e1 redacted' "$work/got" || fail "a redaction of a deleted session"

# Each flipped bit.
python3 -ISc '
import json, os, shutil, subprocess, sys

two, work, first, second = sys.argv[1:]
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
    hides all that was redacted: unless the REDACT record is lost, and the
    content was not erased."""
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
                    (entry in shown and (session, entry) not in erased)), (
                        session, entry)


everything = {session: entries(two, session)
              for session in ("alpha", "beta", "child", "lone")}
erased = {("beta", "e7"), ("child", "e5")}
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
            # Without its FORK record the fork has no entry of its source.
            forks = any(r["type"] == "FORK" for r in records)
            salvage({r.get("id") for r in records if r["type"] == "ENTRY"} |
                    ({"e%d" % i for i in range(21)} if forks else set()),
                    {r.get("target") for r in records if r["type"] == "REDACT"})
    elif frame.get("type") == "COMMIT" and frame["file"] == first:
        report = check(frame["file"], frame["offset"] + 30, (1,))
        assert all(d["sequences"] == [] for d in report["damage"]), report
        salvage(set())
    elif (frame.get("type") in ("INDEX", "SEAL", "trailer") and
          frame["file"] in (first, second)):
        report = check(frame["file"], frame["offset"] + 30, (0,))
        assert report["sound"] and report["notes"], report
        salvage(set())
    elif frame.get("type") == "OPEN" and frame["file"] == second:
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
' "$work/two" "$work" "$first" "$second"

# What has valid checksums and is not so.
python3 -ISc '
import json, os, shutil, struct, subprocess, sys, zlib

two, work, first = sys.argv[1:]
broken = os.path.join(work, "forged")
with open(os.path.join(two, first), "rb") as file:
    whole = file.read()


def check(forged, reason):
    """What is reported of the store with that first segment; None: nothing."""
    shutil.rmtree(broken, ignore_errors=True)
    shutil.copytree(two, broken)
    with open(os.path.join(broken, first), "wb") as file:
        file.write(forged)
    done = subprocess.run(["walcheck", "--json", broken],
                          stdout=subprocess.PIPE)
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["sound"] == (reason is None), report
    if reason is not None:
        assert any(reason in d["reason"] for d in report["damage"]), report


def header(offset, form, change):
    forged = bytearray(whole)
    for base in (0, 2048):
        value, = struct.unpack_from(form, forged, base + offset)
        struct.pack_into(form, forged, base + offset, value + change)
        struct.pack_into("<I", forged, base + 124,
                         zlib.crc32(forged[base + 84:base + 124]))
    return forged


def index(change):
    """The segment with another payload of its INDEX frame."""
    forged = bytearray(whole)
    at, = struct.unpack_from("<Q", whole, len(whole) - 64 + 24)
    size, = struct.unpack_from("<I", whole, at + 8)
    salt, = struct.unpack_from("<Q", whole, 56)
    payload = bytearray(whole[at + 48:at + 48 + size])
    change(payload)
    struct.pack_into("<I", payload, 104, zlib.crc32(payload[112:]))
    struct.pack_into("<I", payload, 108, zlib.crc32(payload[:108]))
    forged[at + 48:at + 48 + size] = payload
    struct.pack_into("<I", forged, at + 4, zlib.crc32(payload))
    seed = salt ^ (at * 0x9E3779B97F4A7C15 & 0xffffffffffffffff)
    struct.pack_into("<I", forged, at, zlib.crc32(
        forged[at + 4:at + 48], (seed ^ seed >> 32) & 0xffffffff))
    return forged


def add(offset, form, change):
    def apply(payload):
        value, = struct.unpack_from(form, payload, offset)
        struct.pack_into(form, payload, offset, value + change)
    return apply


check(whole, None)
check(header(96, "<Q", 8), "does not continue its predecessor")
check(header(112, "<I", 1), "does not continue its predecessor")
check(header(104, "<Q", 1), "does not continue its predecessor")
check(header(104, "<Q", -60), "is not in the range of the segment")
check(header(116, "<Q", 8), "bytes of records")
check(header(84, "<I", 9), None)  # a catalogue of another generation
check(index(lambda payload: None), None)
check(index(add(112 + 64, "<Q", 1)), "the entry count of session")
check(index(add(112 + 80, "<Q", -1000)), "the bytes of session")
check(index(add(112 + 80, "<Q", 10)), "the bytes of session")  # later ones
check(index(add(112 + 8, "<Q", 1)), "the id of session")
check(index(add(112 + 16, "<Q", 1)), "has other texts of session")
check(index(add(112 + 88, "<Q", 1)), "the head of session")
count, = struct.unpack_from("<I", index(lambda payload: None),
                            struct.unpack_from("<Q", whole, len(whole) - 40)[0]
                            + 48 + 12)
check(index(add(112 + 160 * count, "<I", 1)), "a posting differs from its frame")
check(index(add(112 + 160 * count + 8, "<Q", 10 ** 6)),
      "a posting names a record that is not there")
' "$work/two" "$work" "$first"
