#!/usr/bin/env bash
# move.sh URL: agentwal remote over a remote: a store is pushed, pulled by
# another machine and taken over there; its old writer is fenced.
set -euo pipefail

work=$PWD/move
mkdir "$work"
cd "$work"
url=${1/\?//move-$$\?}

# machine NAME VERB...: at one of two machines.
machine() {
    "$AGENTWAL_BUILD/bin/agentwal" --store "$work/$1" "${@:2}"
}

# append NAME TEXT
append() {
    printf '{"type":"note","payload":{"text":"%s"}}\n' "$2" |
        machine "$1" append one >/dev/null
}

fail() {
    echo "$*" >&2
    exit 1
}

machine laptop create --id one >/dev/null
head -c 300000 /dev/urandom >large
machine laptop checkpoint one before --root "$work" large >/dev/null
machine laptop remote add "$url"
for text in first second third; do
    append laptop "$text"
    machine laptop remote push
done
machine laptop remote pull "$url" server
machine laptop cat one >expected
machine server cat one | cmp - expected
machine server check
append server fourth 2>/dev/null && fail "a replica was written to"

machine laptop remote pull --take-over "$url" server
append server fourth
machine server remote push
append laptop lost
machine laptop remote push 2>refused && fail "the old writer has pushed"
grep -q 'another writer has epoch 2' refused || fail "$(cat refused)"
machine laptop remote pull "$url" phone
machine server cat one >expected
machine phone cat one | cmp - expected
