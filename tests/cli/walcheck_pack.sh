#!/usr/bin/env bash
# walcheck and the blob stream: sound stores of every kind of content; damage of
# each kind is reported with its offset and the affected sessions; a salvage
# keeps the rest; every flipped bit is detected; walcat --frames.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

tree=$(realpath "$work")/tree
mkdir -p "$tree"
agentwal init
agentwal create --id one --cwd "$tree" >"$work/id"
python3 - "$tree" >"$work/entries" <<'PROGRAM'
import json, random, sys
random.seed(3)
for i in range(3):
    print(json.dumps({"id": "e%d" % i, "type": "message", "payload": {
        "role": "user", "content": ("line %d " % i) * (50000 * (i * 3 + 1))}}))
print(json.dumps({"id": "small", "type": "message", "payload": {}}))
lines = ["%d of text %d\n" % (i, random.random() * 1e9) for i in range(9000)]
open(sys.argv[1] + "/text", "w").write("".join(lines))
open(sys.argv[1] + "/large", "wb").write(random.randbytes(1500000))
open(sys.argv[1] + "/small", "w").write("hello\n")
PROGRAM
agentwal append one <"$work/entries" >"$work/appended"
cd "$tree"
ln -s small link
agentwal checkpoint one c1 text large small link none >"$work/made"
agentwal fork one --at e1 --id two >"$work/id"
for i in 1 2 3; do
    sed -i "$((i * 100))s/^/EDIT /" text
    agentwal checkpoint one v$i text >"$work/made"
done
agentwal checkpoint two c3 text >"$work/made"
agentwal checkpoint two c4 small >"$work/made"
agentwal checkpoint-delete two c4
agentwal checkpointing two off >"$work/made"

# Sound, with any number of threads.
for jobs in 1 2 16; do
    code 0 walcheck --jobs $jobs "$store"
done
code 0 walcheck --json "$store"
json 'rows[0]["sound"] and rows[0]["packTail"]["state"] == "clean"' "$work/stdout"

# Frames: digest, size, encoding, depth.
code 0 walcat --frames --json "$store"
cp "$work/stdout" "$work/frames"
digest=$(sha256sum <small | cut -d' ' -f1)
json "[(r['contentSize'], r['encoding'], r['depth']) for r in rows
       if r.get('digest') == '$digest'] == [(6, 'raw', 0)]" "$work/frames"
json '[r["chunkCount"] for r in rows if r.get("type") == "BLOB"] == [2, 3, 2]
      and {r["depth"] for r in rows if r.get("encoding") == "delta"} >= {1, 2, 3}
      and all("base" in r for r in rows if r.get("encoding") == "delta")' "$work/frames"
code 0 walcat --frames "$store"
grep -q "sha256 $digest  size 6  raw  depth 0" "$work/stdout" || fail "a chunk as text"

# dump STORE SESSION: entries, documents and checkpoints with their files.
dump() {
    walcat --all "$1" "$2"
    agentwal --store "$1" checkpoints --json "$2" | python3 -c '
import json, sys
for row in map(json.loads, sys.stdin):
    for name in ("newBlobs", "newBytes", "version"):
        del row[name]
    print(row)'
    for id in c1 v1 v2 v3 c3; do
        agentwal --store "$1" checkpoint-show --json "$2" $id || true
    done
}

# A salvage of it has the same content.
code 0 walcheck --json --salvage "$work/out" "$store"
json 'rows[0]["notes"] == [] and rows[0]["damage"] == []
      and rows[0]["entries"] == 4 and rows[0]["blobs"] > 10' "$work/stdout"
code 0 walcheck "$work/out"
for session in one two; do
    dump "$store" $session >"$work/before" 2>"$work/stderr"
    dump "$work/out" $session >"$work/after" 2>"$work/stderr"
    cmp "$work/before" "$work/after" || fail "$session differs after a salvage"
done
agentwal --store "$work/out" checkpoint --json two c9 small >"$work/made" 2>"$work/stderr"
same 0 "$(field files "$work/made")" "files while checkpoints are off"

# Damage by kind. hurt EXPRESSION: copies the store and flips a bit of the copy.
# EXPRESSION is Python for a frame and an offset in it. Prints the frame's file
# and offset.
hurt() {
    rm -rf "$work/hurt"
    cp -r "$store" "$work/hurt"
    python3 - "$work/frames" "$work/hurt" "$@" <<'PROGRAM'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
def frame(**wanted):
    return next(r for r in rows
                if all(r.get(k) == v for k, v in wanted.items()))
what = eval(sys.argv[3])
name = what[0]["file"]
with open(sys.argv[2] + "/" + name, "r+b") as file:
    file.seek(what[0]["offset"] + what[1])
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 16]))
print(name, what[0]["offset"])
PROGRAM
}
# found SESSIONS REASON: walcheck reports both at the damaged offset.
found() {
    code 1 walcheck --json "$work/hurt"
    python3 - "$work/stdout" "$(cat "$work/place")" "$1" "$2" <<'PROGRAM' ||
import json, sys
report = json.load(open(sys.argv[1]))
name, offset = sys.argv[2].split()
sessions = sys.argv[3].split(",") if sys.argv[3] else []
offset = int(offset)
hit = [d for d in report["damage"] if d["file"] == name
       and d["offset"] <= offset < d["offset"] + d["length"]]
ok = not report["sound"] and hit and any(d["sessions"] == sessions for d in hit)
ok = ok and any(sys.argv[4] in d["reason"] and (not sessions or
                set(d["sessions"]) <= set(sessions)) for d in report["damage"])
if not ok:
    print(name, offset, report["damage"], file=sys.stderr)
sys.exit(not ok)
PROGRAM
        fail "not reported: $2"
}

# The data and the digest of a chunk of a checkpoint, a base chunk of others, a
# list of chunks, a chunk of it.
hurt "(frame(digest='$digest'), 48 + 40)" >"$work/place"
found one "the file small of the checkpoint c1"
hurt "(frame(digest='$digest'), 48 + 3)" >"$work/place"
found one "the file small of the checkpoint c1"
hurt "(next(r for r in rows if r.get('encoding') == 'delta'
    and r['contentSize'] > 100000), 48 + 100)" >"$work/place"
found one,two "the file text of the checkpoint v2"
hurt "([r for r in rows if r.get('type') == 'BLOB'][1], 48 + 60)" >"$work/place"
found one "the payload of the entry e2"
hurt "([r for r in rows if r.get('contentSize') == 1 << 20][0], 48 + 1000)" >"$work/place"
found one "the payload of the entry"
# The COMMIT frame, the index in a segment, and the index file.
hurt "(frame(type='COMMIT', file=frame(type='CHUNK')['file']), 60)" >"$work/place"
code 1 walcheck --json "$work/hurt"
json 'any(d["file"].startswith("pack/") for d in rows[0]["damage"])' "$work/stdout"
hurt "(frame(type='INDEX', file=frame(type='CHUNK')['file']), 300)" >"$work/place"
code 0 walcheck --json "$work/hurt"
json 'rows[0]["sound"] and rows[0]["damage"] == []
      and ["INDEX frame" in n["reason"] for n in rows[0]["notes"]] == [True]' "$work/stdout"
rm -rf "$work/hurt"
cp -r "$store" "$work/hurt"
python3 - "$work"/hurt/index/pack-*.idx <<'PROGRAM'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(900)
    file.write(b"\1\2\3\4")
PROGRAM
code 0 walcheck --json "$work/hurt"
json 'rows[0]["notes"][0]["file"].startswith("index/pack-") and rows[0]["sound"]
      and rows[0]["notes"][0]["redundant"] and len(rows[0]["notes"]) == 1' "$work/stdout"

# Records with valid checksums whose content does not match their fields. forge
# EXPRESSION is hurt, with the frame's checksums recomputed.
forge() {
    hurt "$1" >"$work/place"
    python3 - "$work/hurt" "$(cat "$work/place")" <<'PROGRAM'
import struct, sys, zlib
name, offset = sys.argv[2].split()
offset = int(offset)
with open(sys.argv[1] + "/" + name, "r+b") as file:
    file.seek(56)
    salt = struct.unpack("<Q", file.read(8))[0]
    file.seek(offset)
    head = bytearray(file.read(48))
    payload = file.read(struct.unpack_from("<I", head, 8)[0])
    struct.pack_into("<I", head, 4, zlib.crc32(payload))
    x = salt ^ (offset * 0x9e3779b97f4a7c15) & (1 << 64) - 1
    seed = (x ^ x >> 32) & 0xffffffff
    struct.pack_into("<I", head, 0, zlib.crc32(head[4:], seed))
    file.seek(offset)
    file.write(head)
PROGRAM
}
forge "(frame(digest='$digest'), 48 + 40)"
found one "SHA-256 $digest, cannot be read: its SHA-256 does not match"
forge "(frame(encoding='lz4'), 48 + 41)"
code 1 walcheck --json "$work/hurt"
json 'any("its compression is not valid" in d["reason"]
          or "its SHA-256 does not match" in d["reason"]
          for d in rows[0]["damage"])' "$work/stdout"
forge "([r for r in rows if r.get('encoding') == 'delta' and r['depth'] > 1][0],
    48 + 45)"
code 1 walcheck --json "$work/hurt"
json 'any("its base chunk is missing" in d["reason"]
          for d in rows[0]["damage"])' "$work/stdout"
forge "([r for r in rows if r.get('type') == 'BLOB'][1], 48 + 90)"
found one "a chunk of it is missing"
json 'any("the payload of the entry e2" in d["reason"]
          for d in rows[0]["damage"])' "$work/stdout"
forge "(frame(digest='$digest'), 48 + 38)"
found one,two "CHUNK of sequence"

# A missing segment, a truncated one, and all of them missing. The log records
# the end of the blob stream.
segments=("$store"/pack/*.seg)
[ "${#segments[@]}" -gt 1 ] || fail "only one segment"
for victim in "${segments[@]}"; do
    # The last one has nothing yet.
    [ "$(stat -c %s "$victim")" -gt 65536 ] || continue
    name=pack/${victim##*/}
    for change in "rm" "truncate -s 20000"; do
        rm -rf "$work/hurt"
        cp -r "$store" "$work/hurt"
        rm -f "$work"/hurt/index/*
        $change "$work/hurt/$name"
        code 1 walcheck --json "$work/hurt"
        json "any(d['file'] == '$name' for d in rows[0]['damage'])
              and any('one' in d['sessions'] and 'cannot be read' in d['reason']
                      for d in rows[0]['damage'])" "$work/stdout"
    done
done
rm -rf "$work/hurt"
cp -r "$store" "$work/hurt"
rm -r "$work/hurt/pack"
code 1 walcheck --json "$work/hurt"
json 'any("the log depends on" in d["reason"] for d in rows[0]["damage"])
      and {i for i in range(3) for d in rows[0]["damage"]
           if "the entry e%d," % i in d["reason"] and d["file"].startswith("log/")
           and d["sessions"] == ["one"]} == {0, 1, 2}' "$work/stdout"

# A salvage loses one payload and one file, and keeps everything else.
hurt "([r for r in rows if r.get('type') == 'BLOB'][0], 48 + 60)" >"$work/place"
cp -r "$work/hurt" "$work/two"
python3 - "$work/frames" "$work/two" "$digest" <<'PROGRAM'
import json, sys
row = next(r for r in map(json.loads, open(sys.argv[1]))
           if r.get("digest") == sys.argv[3])
with open(sys.argv[2] + "/" + row["file"], "r+b") as file:
    file.seek(row["offset"] + 88)
    file.write(b"J")
PROGRAM
rm -rf "$work/out"
code 1 walcheck --json --salvage "$work/out" "$work/two"
json 'rows[0]["entries"] == 3
      and [n["entryId"] for n in rows[0]["notes"] if "the entry is lost" in n["reason"]] == ["e1"]
      and any("1 file is lost of the checkpoint c1" in n["reason"]
              and n["sessionId"] == "one" for n in rows[0]["notes"])
      and {n["sessionId"] for n in rows[0]["notes"]} == {"one", "two"}' "$work/stdout"
code 0 walcheck "$work/out"
code 0 walcat --all "$work/out" one
json '[(r["id"], r["parentId"]) for r in rows]
      == [("e0", None), ("e2", "e0"), ("small", "e2")]' "$work/stdout"
agentwal --store "$work/out" checkpoint-show --json one c1 >"$work/shown"
json '[r["path"] for r in rows] == ["large", "link", "none", "text"]' "$work/shown"

# Each flipped bit of the blob stream is reported at its offset, or is after the
# written end.
python3 - "$store" "${AGENTWAL_SEED:-1}" <<'PROGRAM' || fail "a flip was not detected"
import glob, json, os, random, subprocess, sys
store, seed = sys.argv[1], int(sys.argv[2])
print("seed", seed)
random.seed(seed)
files = sorted(glob.glob(store + "/pack/*.seg") + glob.glob(store + "/index/pack-*"))
missed = 0
for _ in range(400 if os.environ.get("AGENTWAL_LONG") else 25):
    path = random.choice(files)
    size = os.path.getsize(path)
    at = random.randrange(random.choice((size, min(size, 25000))))
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))
        file.flush()
        run = subprocess.run(["walcheck", "--json", store], text=True,
                             stdout=subprocess.PIPE)
        report = json.loads(run.stdout)
        name = os.path.relpath(path, store)
        near = [d for d in report["damage"] + report["notes"] if d["file"] == name
                and d["offset"] <= at < d["offset"] + max(d["length"], 1)]
        tail = report["packTail"]
        beyond = (tail["file"] == name and tail["state"] == "torn"
                  and at >= tail["offset"])
        if run.returncode != (1 if report["damage"] else 0) or not (near or beyond):
            print("not found:", name, at, run.returncode, run.stdout)
            missed += 1
        file.seek(at)
        file.write(bytes([byte]))
sys.exit(1 if missed else 0)
PROGRAM
code 0 walcheck "$store"

# Concurrent writes of contents, segments and indexes are not damage.
(
    for i in $(seq 12); do
        head -c 300000 /dev/urandom >"file$i"
        agentwal checkpoint one "w$i" "file$i" text
        python3 -c 'import json, os
print(json.dumps({"type": "message", "payload": {"t": os.urandom(200000).hex()}}))' |
            agentwal append two
    done
) >"$work/appended" &
writer=$!
while kill -0 $writer 2>/dev/null; do
    code 0 walcheck "$store"
done
wait $writer
code 0 walcheck "$store"

# Content that nothing names, at the end that the log depends on: compaction
# replaces its segment by one that is smaller, or has another id. The store is
# sound; and a segment that holds what an entry names is missed.
large() {
    python3 -c 'import json, random, sys
random.seed(int(sys.argv[1]))
print(json.dumps({"id": "x1", "type": "message", "payload": {
    "t": "%x" % random.getrandbits(2400000)}}))' "$1"
}
for merges in 0 1; do
    rm -rf "$work/named"
    agentwal --store "$work/named" init
    agentwal --store "$work/named" create --id x >"$work/id"
    if [ "$merges" -eq 1 ]; then
        large 1 | agentwal --store "$work/named" append x >"$work/appended"
    else
        printf '{"id":"x1","type":"message","payload":{}}\n' |
            agentwal --store "$work/named" append x >"$work/appended"
    fi
    agentwal --store "$work/named" gc --no-progress >"$work/made" 2>&1
    large 2 >"$work/other"
    # Refused, after its content was stored.
    code 1 agentwal --store "$work/named" append x <"$work/other"
    agentwal --store "$work/named" gc --no-progress >"$work/made" 2>&1
    code 0 walcheck "$work/named"
    rm -rf "$work/new"
    code 0 walcheck --salvage "$work/new" "$work/named"
    [ "$merges" -eq 1 ] || continue

    # A segment of the pack in place of the newest one of the log, whose records it lost,
    # also where it has an id that compaction replaced in the log.
    printf '{"id":"x2","type":"message","payload":{}}\n' |
        agentwal --store "$work/named" append x >"$work/appended"
    agentwal --store "$work/named" gc --no-progress >"$work/made" 2>&1
    printf '{"id":"x3","type":"message","payload":{}}\n' |
        agentwal --store "$work/named" append x >"$work/appended"
    for other in "$work"/named/pack/*.seg; do
        cp -r "$work/named" "$work/lost"
        newest=$(printf '%s\n' "$work"/lost/log/*.seg | tail -n 1)
        cp "$other" "$newest"
        code 1 walcheck --json "$work/lost"
        json '[d["reason"] for d in rows[0]["damage"] if not d["redundant"]]
              == ["is a segment of class 2", "the segment is missing"]
              and rows[0]["notes"] == []' "$work/stdout"
        rm -rf "$work/lost"
    done
    rm "$work"/named/index/*
    for victim in "$work"/named/pack/*.seg; do
        [ "$(stat -c %s "$victim")" -gt 300000 ] && rm "$victim"
    done
    code 1 walcheck --json "$work/named"
    json 'any("the entry x1" in d["reason"] for d in rows[0]["damage"])' "$work/stdout"
    rm -rf "$work/new"
    code 1 walcheck --salvage "$work/new" "$work/named"
done
