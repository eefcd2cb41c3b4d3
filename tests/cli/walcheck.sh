#!/usr/bin/env bash
# walcheck: options, exit codes and JSON; every flipped bit of a store is
# detected; concurrent writes are not damage; a salvage keeps everything of a
# session; walcat --frames.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

# Usage.
code 0 walcheck --help
grep -q '^Usage: walcheck' "$work/stdout" || fail "--help"
code 0 walcheck --version
code 2 walcheck
code 2 walcheck --no-such-option
code 2 walcheck --jobs none "$store"
code 3 walcheck "$work/none"
mkdir "$work/empty" "$work/empty/log"
code 3 walcheck "$work/empty"
code 3 walcat --frames "$work/empty/log"

# A sound store, with any number of threads; the check changes no file.
agentwal init
for session in alpha beta; do
    agentwal create --id $session --cwd /srv/$session >"$work/id"
done
code 0 agentwal --store "$work/single" init
agentwal --store "$work/single" create --id only >"$work/id"
code 0 walcheck "$work/single"
grep -q '^sound: 1 session, [0-9]* records*, 1 segment$' "$work/stdout" ||
    fail "one of each"
code 0 walcheck --json "$store"
json 'rows[0]["sound"] and rows[0]["sessionCount"] == 2 and rows[0]["damage"] == []' "$work/stdout"

# A store of a library that knew fewer forms of messages: its indexes have other
# first messages, which is no damage.
python3 -m tarfile -e "$AGENTWAL_SOURCE/tests/golden/first_message.tar.xz" "$work"
code 0 walcheck "$work/first_message"
python3 - >"$work/entries" <<'PROGRAM'
import json
for i in range(3000):
    print(json.dumps({"id": "e%d" % i, "type": "message",
                      "payload": {"text": "x" * (i % 900)}}))
PROGRAM
for session in alpha beta; do
    split -l 500 --filter="agentwal append $session" "$work/entries" >"$work/appended"
done
agentwal fork alpha --at e100 --id gamma >"$work/id"

# One of everything else: a deleted session with a fork and one without, heads,
# documents of a session, a fork and the store, redactions, changes of metadata.
{
    agentwal create --id delta
    for id in d1 d2; do
        echo '{"id":"'$id'","type":"message","payload":{"role":"user","content":"Find '$id'"}}'
    done | agentwal append delta
    agentwal create --id lone
    agentwal head alpha kept e7 --note why
    agentwal head alpha gone e8
    agentwal head alpha gone e9
    agentwal redact beta e5 --reason secret
    agentwal redact gamma e6
    agentwal redact gamma e7
    agentwal redact --undo alpha e7
    echo '{"v":1}' | agentwal doc put delta notes
    agentwal fork delta --at d1 --id epsilon
    echo '{"v":2}' | agentwal doc put delta notes
    echo '{"v":3}' | agentwal doc put epsilon notes
    echo '[1]' | agentwal doc put alpha list
    agentwal doc delete alpha list
    echo '"now"' | agentwal doc put --store config
    delete_session "$store" delta
    delete_session "$store" lone
    agentwal create --id lone --title again
    agentwal meta gamma --merge '{"kept":true}'
} >"$work/made"
find "$store" -printf '%p %s %T@\n' | sort >"$work/before"
for jobs in 1 2 16; do
    code 0 walcheck --jobs $jobs "$store"
done
find "$store" -printf '%p %s %T@\n' | sort >"$work/after"
cmp "$work/before" "$work/after" || fail "walcheck wrote to the store"

# Files under other names with the same segment: the one with its name is used.
for id in 8 9; do
    cp "$work/single/log/0000000000000001.seg" "$work/single/log/000000000000000$id.seg"
done
code 1 walcheck --json "$work/single"
json 'rows[0]["tail"]["file"] == "log/0000000000000001.seg" and rows[0]["notes"] == []
      and [(d["file"][-5], d["redundant"]) for d in rows[0]["damage"]]
      == [("8", True), ("9", True)]' "$work/stdout"
# One of the others is used when that cannot be read.
truncate -s 0 "$work/single/log/0000000000000001.seg"
truncate -s 1048576 "$work/single/log/0000000000000001.seg"
code 1 walcheck --json "$work/single"
json 'rows[0]["sessionCount"] == 1 and rows[0]["tail"]["file"] == "log/0000000000000008.seg"' \
    "$work/stdout"
code 1 walcheck --json --salvage "$work/named" "$work/single"
json 'rows[0]["sessions"] == 1' "$work/stdout"

# Frames.
code 0 walcat --frames --json "$store"
json 'sum(r.get("type") == "ENTRY" and r["state"] == "ok" for r in rows) == 6005' "$work/stdout"
json '[r["key"] for r in rows if r.get("type", "").startswith("DOC")]
      == ["notes"] * 3 + ["list"] * 2 + ["config"]' "$work/stdout"
json '[r["target"] for r in rows if r.get("type") == "REDACT"] == ["e5", "e6", "e7"]
      and sum(r.get("type") == "TOMBSTONE" for r in rows) == 2' "$work/stdout"
if grep -q 'Find d1\|secret' "$work/stdout"; then
    fail "frames are printed with their content"
fi
code 0 walcat --frames "$store/log/0000000000000001.seg"
grep -q 'trailer' "$work/stdout" || fail "no trailer in a sealed segment"

# A salvage of it has the same content.
code 2 walcheck --salvage "$store/inside" "$store"
code 0 walcheck --json --salvage "$work/out" "$store"
json 'rows[0]["entries"] == 6005 and rows[0]["sessions"] == 5 and rows[0]["notes"] == []
      and rows[0]["documents"] == 6 and rows[0]["leftOut"] == 1' "$work/stdout"
code 1 walcheck --salvage "$work/out" "$store"
code 0 walcheck "$work/out"

# A failed salvage leaves no files.
code 3 walcheck --salvage "$work/none/out" "$store"
for blocks in 100 900; do
    got=0
    (trap '' XFSZ && ulimit -f $blocks &&
        walcheck --salvage "$work/full" "$store") \
        >"$work/stdout" 2>"$work/stderr" || got=$?
    same 3 "$got" "exit code of a salvage without space"
    grep -q 'no space' "$work/stderr" || fail "no reason for a failed salvage"
    [ ! -e "$work/full" ] || fail "files of a failed salvage remain, $blocks"
done
mkdir "$work/mine"
code 1 walcheck --salvage "$work/mine" "$store"
[ -d "$work/mine" ] || fail "an existing directory was removed"

# describe STORE: all of it, without what a salvage gives anew.
describe() {
    "$AGENTWAL_BUILD/tests/compact_store" "$1" --describe |
        sed 's/ \(updated\|modified\)=[0-9]*//g'
}
describe "$store" >"$work/before"
describe "$work/out" >"$work/after"
grep -q ' session=5:alpha' "$work/before" || fail "nothing is described"
diff "$work/before" "$work/after" || fail "a salvage has something else"
same '"now"' "$(agentwal --store "$work/out" doc get --store config)" "the store's document"
code 1 agentwal --store "$work/out" show delta
code 0 walcat --all "$work/out" beta
if grep -q '"id":"e5"' "$work/stdout"; then
    fail "a redacted entry is visible after a salvage"
fi

# Each flipped bit is detected, as damage or as a torn tail. A segment without a
# header is preallocated: it has no content.
python3 - "$store" "${AGENTWAL_SEED:-1}" <<'PROGRAM' || fail "a flip was not detected"
import json, os, random, subprocess, sys
store, seed = sys.argv[1], int(sys.argv[2])
print("seed", seed)
random.seed(seed)
def is_preallocated(path):
    with open(path, "rb") as file:
        file.seek(4096)
        return path.endswith(".seg") and not any(file.read(4096))
files = [os.path.join(folder, name) for folder, _, names in os.walk(store)
         for name in sorted(names) if name != "LOCK"]
files = [path for path in files if not is_preallocated(path)]
missed = 0
for _ in range(400 if os.environ.get("AGENTWAL_LONG") else 40):
    path = random.choice(files)
    size = os.path.getsize(path)
    at = random.randrange(random.choice((size, min(size, 20000))))
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))
        file.flush()
        run = subprocess.run(["walcheck", "--json", store], text=True,
                             stdout=subprocess.PIPE)
        report = json.loads(run.stdout)
        named = [d["file"] for d in report["damage"] + report["notes"]]
        name = os.path.relpath(path, store)
        torn = report["tail"]["state"] == "torn" and report["tail"]["file"] == name
        if run.returncode not in (0, 1) or not (name in named or torn):
            print("not found:", name, at, run.returncode, run.stdout)
            missed += 1
        file.seek(at)
        file.write(bytes([byte]))
sys.exit(1 if missed else 0)
PROGRAM
code 0 walcheck "$store"

# Concurrent appends are not damage.
(
    for _ in $(seq 12); do
        sed 's/"id": "e/"id": "w'"$RANDOM"'-/;300q' "$work/entries" |
            agentwal append --each beta
    done
) >"$work/appended" &
writer=$!
while kill -0 $writer 2>/dev/null; do
    code 0 walcheck "$store"
done
wait $writer
code 0 walcheck "$store"

# Damage with the session's id, and a salvage that loses only that record.
python3 - "$store/log/0000000000000001.seg" <<'PROGRAM'
import sys
with open(sys.argv[1], "r+b") as file:
    at = file.read().index(b"e500") + 40
    file.seek(at)
    file.write(b"\0")
PROGRAM
code 1 walcheck --json "$store"
json 'rows[0]["damage"][0]["sessions"] == ["alpha"] and not rows[0]["sound"]
      and rows[0]["damage"][0]["firstSequence"] == rows[0]["damage"][0]["lastSequence"] > 0' \
    "$work/stdout"
rm -rf "$work/out"
code 1 walcheck --json --salvage "$work/out" "$store"
json 'rows[0]["notes"][0]["entryId"] == "e501" and len(rows[0]["notes"]) == 1' "$work/stdout"
code 0 walcheck "$work/out"
code 0 walcat --all "$work/out" alpha
json 'len(rows) == 2998 and rows[499]["id"] == "e501" and rows[499]["parentId"] == "e499"' \
    "$work/stdout"
