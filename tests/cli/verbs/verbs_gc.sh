#!/usr/bin/env bash
# agentwal gc and the bytes of each session in agentwal stats.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store

# entries COUNT TEXT: that many messages.
entries() {
    python3 -ISc '
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"type": "message", "payload": {
        "role": "user", "content": "%s %d " % (sys.argv[2], i) + "x" * 500}}))
' "$@"
}

read_all() {
    for id in "$@"; do
        agentwal cat "$id" --json
    done
}

# Bad input: nothing is changed, and no store is made.
code 3 agentwal gc
grep -q 'agentwal init' stderr || fail "no advice for a missing store"
code 3 agentwal gc --dry-run
[ ! -e "$store" ] || fail "gc created a store"
agentwal init 2>/dev/null
code 2 agentwal gc more
for size in '' x -1 1.5 1X 1kIB 1Ki 99999999999999999999 99999999TiB; do
    code 2 agentwal gc --rate "$size"
    grep -q '^agentwal: --rate: ' stderr || fail "no option in the error: $size"
    code 2 agentwal gc --max-bytes "$size"
done
code 2 agentwal gc --max-bytes 0
code 2 agentwal gc --rate
code 2 agentwal gc --dyr-run
grep -q 'did you mean --dry-run' stderr || fail "no suggestion"

# An empty store has nothing to give back.
code 0 agentwal gc
grep -q '^nothing to rewrite in 0 segments$' stdout || fail "gc of nothing"
agentwal gc --dry-run --json | json 'rows == [{"dryRun": True, "segments": 0,
    "rewritten": 0, "bytesBefore": 0, "bytesAfter": 0, "deadBytes": 0,
    "keptRecords": 0, "droppedRecords": 0, "erasedRecords": 0,
    "droppedContents": 0,
    "trash": {"sessions": 0, "bytes": 0, "deleted": False},
    "readers": [], "refused": [], "sessions": []}]'

# A dry run says what would come back, and changes nothing.
agentwal create --id first >/dev/null
entries 200 one | agentwal append first >/dev/null
agentwal create --id second >/dev/null
entries 100 two | agentwal append second >/dev/null
agentwal fork first --id third >/dev/null
delete_session "$store" second
before=$(read_all first third)
find "$store" -type f ! -name LOCK -exec sha256sum {} + | sort >files
agentwal gc --dry-run --json >plan
json 'rows[0]["rewritten"] == 1 and rows[0]["deadBytes"] > 50000
    and [s["sessionId"] for s in rows[0]["sessions"]]
        == ["first", "second", "third"]
    and rows[0]["sessions"][0]["sharedBytes"]
        == rows[0]["sessions"][2]["sharedBytes"] > 100000
    and rows[0]["sessions"][1]["deleted"]
    and rows[0]["sessions"][1]["reclaimableBytes"] > 50000
    and rows[0]["sessions"][2]["reclaimableBytes"] == 0' plan
code 0 agentwal gc --dry-run
grep -q '^would rewrite 1 of 1 segment, ' stdout || fail "plan for people"
grep -Eq '^second .* \(deleted\)$' stdout || fail "no session in the plan"
if grep -q '^first' stdout; then
    fail "the plan lists a session that gives nothing back"
fi
find "$store" -type f ! -name LOCK -exec sha256sum {} + | sort | diff files - >&2 ||
    fail "a dry run changed the store"
agentwal stats --json | json '[(s["sessionId"], s["deleted"])
    for s in rows[0]["space"]] == [("first", False), ("second", True),
    ("third", False)]'
code 0 agentwal stats
grep -q '^SESSION  *OWN .*RECLAIMABLE  *TITLE$' stdout || fail "stats for people"

# Read-only: a dry run works, and gc says why it does not.
if [ "$(id -u)" != 0 ]; then
    chmod -R a-w "$store"
    code 0 agentwal gc --dry-run
    code 3 agentwal gc
    grep -Eq 'read|permission|denied' stderr || fail "gc on a read-only store"
    chmod -R u+w "$store"
fi

# No space for the new file: nothing is lost, and the next run does it.
if (trap '' XFSZ && ulimit -f 8 && agentwal gc --no-progress >stdout 2>stderr); then
    fail "gc without space"
fi
grep -q 'space' stderr || fail "no advice without space: $(cat stderr)"
same "$before" "$(read_all first third)" "sessions after gc without space"

# The real thing, at a rate and without a limit.
agentwal gc --rate 500MB --json >result
json 'rows[0]["rewritten"] == 1 and rows[0]["refused"] == []
    and rows[0]["droppedRecords"] >= 100 and "sessions" not in rows[0]
    and rows[0]["bytesAfter"] * 4 < rows[0]["bytesBefore"]' result
same "$before" "$(read_all first third)" "sessions after gc"
code 1 agentwal show second
code 0 agentwal gc --rate 0
grep -q '^nothing to rewrite in 1 segment$' stdout || fail "gc again"
entries 10 three | agentwal append first >/dev/null
code 0 agentwal gc --rate 0 --max-bytes 4KiB
grep -q '^nothing to rewrite' stdout || fail "--max-bytes"
code 0 agentwal gc
grep -Eq '^rewrote 1 of 2 segments: .* came back$' stdout || fail "gc for people"
grep -q '^records: [0-9]* kept, 0 dropped, 0 erased; contents dropped: 0$' stdout || fail "records"

# Erasing says what it does not reach.
agentwal redact first "$(agentwal cat first --json | field id)" >/dev/null
code 0 agentwal gc --erase
grep -q 'backups' stderr || fail "no limits of erasing"
if grep -rqF 'one 0 x' "$store"; then
    fail "an erased text is in the store"
fi
before=$(read_all first third)

# Two at once: the second is refused, and names the first; unless it came first.
entries 3000 four | agentwal append third >/dev/null
agentwal gc --rate 100kB >/dev/null 2>&1 &
gc=$!
sleep 0.5
if ! agentwal gc >stdout 2>stderr; then
    grep -q "process $gc compacts the store" stderr || fail "who: $(cat stderr)"
fi
kill -9 "$gc" 2>/dev/null || true
{ wait "$gc"; } 2>/dev/null || true
# A killed one leaves a sound store.
code 0 agentwal gc
code 0 agentwal list
[ -z "$(find "$store" -name '*.rewrite')" ] || fail "a file is left over"

# A damaged segment is named, and the rest goes on.
delete_session "$store" third
segment=$(find "$store/log" -name '*.seg' -size +70k | sort | head -1)
python3 -ISc '
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(4096 + 512 + 100)
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 1]))
' "$segment"
code 1 agentwal gc --erase
grep -q "${segment##*/}: left as it is: " stderr || fail "$(cat stderr)"
code 1 agentwal gc --erase --json
json "rows[0]['refused'][0]['file'].endswith('${segment##*/}')" stdout

# A segment that is missing, or of another store: refused by name, and nothing
# is written.
for name in own other; do
    export AGENTWAL_STORE=$work/$name
    agentwal create --id big 2>/dev/null >/dev/null
    entries 8000 "$name" | agentwal append big >/dev/null
done
first=$(basename "$(find other/log -name '*.seg' | sort | head -n 1)")
[ "$(find own/log -name '*.seg' | wc -l)" -ge 3 ] || fail "too few segments"
cp -r own missing
rm "missing/log/$first"
cp -r own foreign
cp "other/log/$first" foreign/log/
for name in missing foreign; do
    find "$name/log" -name '*.seg' -exec cksum {} + >before
    code 1 agentwal --store "$work/$name" gc
    grep -q "segment ${first%.seg}" stderr || fail "$name: $(cat stderr)"
    find "$name/log" -name '*.seg' -exec cksum {} + | cmp before - ||
        fail "gc changed a store with a $name segment"
done
