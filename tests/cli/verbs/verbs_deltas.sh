#!/usr/bin/env bash
# Deltas: what cat, tree and --follow show of them, what gc leaves, and what
# check says of a store whose deltas are wrong.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store

# send SESSION ID...: entries; those that begin with d are deltas.
send() {
    local session=$1 id type
    shift
    for id in "$@"; do
        type=message
        [ "${id#d}" = "$id" ] || type=message_delta_batch
        printf '{"id":"%s","type":"%s","payload":{"text":"of %s"}}\n' \
            "$id" "$type" "$id"
    done | agentwal append "$session" >/dev/null
}

ids() {
    agentwal cat --json "$@" | python3 -ISc '
import json, sys
print(*(json.loads(line)["id"] for line in sys.stdin))'
}

# lines FILE COUNT: waits until the file has that many.
lines() {
    for _ in $(seq 200); do
        [ "$(wc -l <"$1")" -ge "$2" ] && return
        sleep 0.05
    done
    fail "$1 has $(wc -l <"$1") lines instead of $2"
}

agentwal init 2>/dev/null
agentwal create --id talk >/dev/null
send talk a d1 d2
same a "$(ids talk)" "without deltas"
same "a d1 d2" "$(ids talk --deltas)" "with deltas"
same "d1 d2" "$(ids talk --deltas --tail 2)" "the last two with deltas"
agentwal cat talk --deltas --json | json 'rows[2]["parentId"] == "a"'
agentwal show talk --json | json 'rows[0]["entries"] == 1'
agentwal tree talk | grep -q '^a .*<- main$' || fail "the head in a tree"
agentwal tree talk --deltas | grep -q 'd2 ' || fail "a tree with deltas"
code 1 agentwal fork talk --at d1
grep -q '"d1" is a delta' stderr || fail "a fork at a delta: $(cat stderr)"
code 1 agentwal cat talk --up-to d1
printf '{"id":"x","parentId":"d1","type":"message","payload":1}\n' >wrong
code 1 agentwal append talk <wrong
grep -q '"d1" is a delta: name the entry that it is under' stderr ||
    fail "a delta as parent: $(cat stderr)"
agentwal check >/dev/null

# A reader that follows sees each delta once, also when gc drops some of them.
agentwal cat talk --follow --deltas --json >followed &
follower=$!
lines followed 3
send talk b
lines followed 4
code 0 agentwal gc
send talk d3 c d4
lines followed 7
kill "$follower"
wait "$follower" || true
json '[row["id"] for row in rows] == ["a", "d1", "d2", "b", "d3", "c", "d4"]' \
    followed
same "a b d3 c d4" "$(ids talk --deltas --all)" "the log after gc"
agentwal check >/dev/null

# What gc gives back; deltas that are not complete stay.
agentwal gc --dry-run --json | json 'rows[0]["droppedRecords"] == 0
    and rows[0]["deadBytes"] > 0'
code 2 agentwal gc --erase --keep-deltas
grep -q -- '--keep-deltas: excludes --erase' stderr ||
    fail "gc --erase --keep-deltas: $(cat stderr)"
agentwal gc --keep-deltas --json | json 'rows[0]["droppedRecords"] == 0'
same "a b d3 c d4" "$(ids talk --deltas --all)" "after gc --keep-deltas"
agentwal gc --erase --json 2>/dev/null | json 'rows[0]["droppedRecords"] == 1'
same "a b c d4" "$(ids talk --deltas --all)" "after gc --erase"
agentwal check >/dev/null

# A bundle has none; a salvage has those that are there.
agentwal bundle talk talk.bundle >/dev/null 2>&1
agentwal --store other import talk.bundle >/dev/null 2>&1
same "a b c" "$(AGENTWAL_STORE=other ids talk --deltas --all)" "a bundle"
agentwal salvage saved >/dev/null
same "a b c d4" "$(AGENTWAL_STORE=saved ids talk --deltas)" "a salvage"
agentwal --store saved check >/dev/null

# A delta that holds a secret can be redacted.
agentwal redact talk d4 --erase --reason key >/dev/null 2>&1
case " $(ids talk --deltas --all) " in
*" d4 "*) fail "a redacted delta is shown" ;;
esac
code 1 agentwal cat talk --up-to d4
agentwal check >/dev/null
if grep -rq 'of d4' "$store"; then
    fail "a file has what was redacted"
fi
agentwal bundle talk again.bundle >/dev/null 2>&1
agentwal --store third import again.bundle >/dev/null 2>&1
agentwal --store third check >/dev/null
code 1 agentwal --store third cat talk --up-to d4

# MANIFEST says that there are deltas.
agentwal --store plain create --id x 2>/dev/null >/dev/null
cp plain/MANIFEST without
AGENTWAL_STORE=plain send x a d1
cp plain/MANIFEST with
cp without plain/MANIFEST
code 1 agentwal --store plain check
grep -q 'is provisional, and MANIFEST lacks this feature' stdout ||
    fail "check of a feature that is missing: $(cat stdout)"
cp with plain/MANIFEST
agentwal --store plain check >/dev/null

# forge FLAGS KIND TO: sets the flags of the ENTRY of that kind, and the
# checksums that follow from it.
forge() {
    rm -rf plain/index/*
    python3 -ISc '
import glob, struct, sys, zlib

kind, flags = int(sys.argv[1]), int(sys.argv[2])
name = sorted(glob.glob("plain/log/*.seg"))[0]
bytes_ = bytearray(open(name, "rb").read())
salt = struct.unpack_from("<Q", bytes_, 56)[0]
at, chain = 4096, 0


def seed(offset):
    x = salt ^ (offset * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    return (x ^ x >> 32) & 0xffffffff


def sign(at):
    size = struct.unpack_from("<I", bytes_, at + 8)[0]
    struct.pack_into("<I", bytes_, at + 4,
                     zlib.crc32(bytes_[at + 48:at + 48 + size]))
    struct.pack_into("<I", bytes_, at, zlib.crc32(bytes_[at + 4:at + 48],
                                                  seed(at)))
    return size


while bytes_[at + 16] not in (0, 13):
    if bytes_[at + 16] == 3 and bytes_[at + 19] == kind:
        bytes_[at + 17] = bytes_[at + 17] & 6 | flags
    if bytes_[at + 16] == 12:
        struct.pack_into("<I", bytes_, at + 48 + 16, chain)
    size = sign(at)
    chain = zlib.crc32(bytes_[at:at + 8], chain)
    at += 48 + (size + 7 & ~7)
open(name, "wb").write(bytes_)' "$@"
}
cp -r plain original
forge 1 64
code 1 agentwal --store plain check
grep -q 'is provisional, and is no delta' stdout ||
    fail "check of a message that is provisional: $(cat stdout)"
rm -rf plain
cp -r original plain
forge 3 96
code 1 agentwal --store plain check
grep -q 'is provisional, and is no delta' stdout ||
    fail "check of a delta that moves the head: $(cat stdout)"
rm -rf plain
cp -r original plain
forge 1 32
code 0 agentwal --store plain check
