#!/usr/bin/env bash
# Stores that change at random between compactions, whole, stopped and of all
# that is dead: walcheck says sound after each, a salvage has the same content,
# and no flipped byte makes a tool crash or hang.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

compact_store() {
    "$AGENTWAL_BUILD/tests/compact_store" "$@"
}

# dump STORE: all of each session and of the store, in any order, without what a salvage gives
# anew.
dump() {
    compact_store "$1" --describe | awk '/^ session=/ { of = $1 }
        /^document flags=[0-9]* key=/ { of = "store" }
        { print of, $0 }' | sed 's/ \(updated\|modified\)=[0-9]*//g' | sort
}

seeds=17
[ -z "${AGENTWAL_LONG-}" ] || seeds="4 17 38"
for seed in $seeds; do
    store=$work/$seed
    agentwal --store "$store" init
    for round in 1 2 3 4; do
        compact_store "$store" --fill $((seed * 10 + round))
        dump "$store" >"$work/before"
        case $(((seed + round) % 4)) in
        0) compact_store "$store" --erase ;;
        1) compact_store "$store" --stop ;;
        2) compact_store "$store" ;;
        esac >"$work/compacted"
        code 0 walcheck "$store"
        grep -q '^note' "$work/stdout" && fail "a note, seed $seed"
        dump "$store" >"$work/after"
        cmp "$work/before" "$work/after" || fail "compaction, seed $seed"
    done
    code 0 walcheck --json --salvage "$work/out$seed" "$store"
    json 'rows[0]["notes"] == []' "$work/stdout"
    code 0 walcheck "$work/out$seed"
    dump "$work/out$seed" >"$work/got"
    cmp "$work/after" "$work/got" || fail "a salvage, seed $seed"
done

# Flipped, zeroed and moved bytes anywhere in the rewritten segments.
python3 -ISc '
import glob, os, random, shutil, subprocess, sys

store, work = sys.argv[1:]
seed = int(os.environ.get("AGENTWAL_SEED") or "1")
rounds = 2000 if os.environ.get("AGENTWAL_LONG") else 20
print("seed", seed)
rng = random.Random(seed)
broken = os.path.join(work, "broken")
out = os.path.join(work, "salvaged")
names = []
for path in sorted(glob.glob(os.path.join(store, "log", "*.seg")) +
                   glob.glob(os.path.join(store, "pack", "*.seg"))):
    with open(path, "rb") as file:
        if file.read(24)[20] & 1:
            names.append(os.path.relpath(path, store))
assert names
shutil.copytree(store, broken)
for i in range(rounds):
    name = rng.choice(names)
    with open(os.path.join(store, name), "rb") as file:
        whole = file.read()
    used = len(whole.rstrip(b"\0")) if rng.random() < 0.1 else (
        len(whole[:-64].rstrip(b"\0")))
    got = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(used)
        if rng.random() < 0.2:
            at = rng.randrange(4096)
        count = rng.choice((1, 1, 8, 200, 5000))
        what = rng.randrange(4)
        if what < 2:
            got[at] ^= 1 << rng.randrange(8)
        elif what == 2:
            got[at:at + count] = bytes(len(got[at:at + count]))
        else:
            there = rng.randrange(used)
            piece = got[there:there + count]
            got[at:at + len(piece)] = piece
            del got[len(whole):]
    with open(os.path.join(broken, name), "wb") as file:
        file.write(got)
    shutil.rmtree(out, ignore_errors=True)
    for command in (["walcheck", broken], ["walcheck", "--salvage", out, broken],
                    ["walcat", "--frames", broken]):
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=100)
        assert done.returncode in (0, 1, 3), (
            seed, i, command, done.returncode, done.stderr[-2000:])
        assert b"Sanitizer" not in done.stderr, done.stderr[-2000:]
    if os.path.isdir(out):
        done = subprocess.run(["walcheck", out], stdout=subprocess.PIPE)
        assert done.returncode == 0, (seed, i, done.stdout[-500:])
    with open(os.path.join(broken, name), "wb") as file:
        file.write(whole)
' "$work/17" "$work"
