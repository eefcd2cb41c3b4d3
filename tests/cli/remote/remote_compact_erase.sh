#!/usr/bin/env bash
# agentwal remote compact --erase: no object of the remote has what was deleted or redacted,
# not even what a killed process left, and no replica after its next pull. What is live can be
# read, and the store goes on being pushed. Also after kills at any moment.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"
export AGENTWAL_STORE=$work/laptop
RANDOM=${AGENTWAL_SEED:-36}
printf 'AGENTWAL_SEED=%s\n' "${AGENTWAL_SEED:-36}"
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT

# append SESSION ID TEXT
append() {
    printf '{"id":"%s","type":"message","payload":{"role":"user","content":"%s"}}\n' "$2" "$3" |
        agentwal append "$1" >/dev/null
}

# holds TEXT PLACE...: a file there has its first 8 characters. LZ4 leaves those as they are: they
# are there once, while the end may be that of another text too.
holds() {
    grep -rqaF -- "${1:0:8}" "${@:2}"
}

# none PLACE...: no file there has what is dead.
dead=(Vb2mTr70xQeL Tt4jKw93uZoP Nc5zHs18yGiM Qx9pBd52vJaR Hk6vXn47cFuS Zp1sLm29eWyD Ls7yUf86bNoC)
none() {
    local text
    for text in "${dead[@]}" Ub8nGv31tIxA Ea6fOq75kYhZ Ge3xPj64wVdB q8eKs05nRtHx; do
        ! holds "$text" "$@" || fail "$text is in $(grep -rlaF -- "${text:0:8}" "$@")"
    done
}

# digits: many hexadecimal digits. No compression finds a piece of the texts above in them.
digits() {
    head -c 200000 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# sound: what the remote has is whole, and leads to the store.
sound() {
    code 0 agentwal check --remote "$url"
    rm -rf fresh
    code 0 agentwal remote pull "$url" fresh
    for copy in fresh "$@"; do
        code 0 agentwal --store "$copy" check
        same "$(agentwal cat s --all)" "$(agentwal --store "$copy" cat s --all)" "entries of $copy"
    done
}

agentwal create --id s --title live-title-g7Kq >/dev/null 2>&1
agentwal create --id d --title Vb2mTr70xQeL >/dev/null 2>&1
agentwal create --id h --title Tt4jKw93uZoP >/dev/null 2>&1
agentwal remote add "$url" >/dev/null
append s a live-text-Yr8w
append s b Nc5zHs18yGiM
append s c "Qx9pBd52vJaR-$(digits)"
append s f "live-content-Mj3d-$(digits)"
append d a Hk6vXn47cFuS
append h a Zp1sLm29eWyD
printf '{"x":"Ls7yUf86bNoC"}' | agentwal doc put d key >/dev/null
agentwal remote push >/dev/null
code 0 agentwal remote handoff h
agentwal gc >/dev/null
append s g live-tail-Dd2u
code 0 agentwal remote push
code 0 agentwal remote compact --now
code 0 agentwal remote pull "$url" ahead
for text in "${dead[@]}"; do
    holds "$text" bucket || fail "the remote never had $text"
    [ "$text" = Zp1sLm29eWyD ] || holds "$text" ahead || fail "the replica never had $text"
done

# A process that was killed while it wrote an object of a directory leaves a file.
printf 'Ub8nGv31tIxA' >"$(dirname "$(find bucket -path '*/part/*' -type f | head -1)")/~7.0"
code 0 agentwal redact s b
code 0 agentwal redact s c
code 0 agentwal delete d
code 0 agentwal delete h
code 2 agentwal remote push --erase
code 0 agentwal remote compact --erase --json
json 'rows[0]["removedParts"] > 0 and rows[0]["removedSegments"] > 0 and rows[0]["base"] > 1' stdout
none bucket "$AGENTWAL_STORE"

# A replica that had all of it has nothing, whatever it derived from its log.
printf 'Ea6fOq75kYhZ' >ahead/index/catalogue
printf 'Ea6fOq75kYhZ' >ahead/index/0000000000000001.idx
code 0 agentwal remote pull "$url" ahead
none ahead
sound ahead
none fresh

# It goes on: what is appended later, and erased again.
append s i Ge3xPj64wVdB
code 0 agentwal remote push
code 0 agentwal remote pull "$url" ahead
code 0 agentwal redact s i
agentwal gc >/dev/null
append s k live-again-Cs1a
code 0 agentwal remote push
code 0 agentwal remote pull "$url" ahead
holds Ge3xPj64wVdB ahead || fail "the replica lost what was only redacted"
code 0 agentwal remote compact --erase
none bucket "$AGENTWAL_STORE"
code 0 agentwal remote pull "$url" ahead
none ahead
sound ahead

# Another process pushes: nothing changes.
mkfifo hold
python3 -ISc '
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
open(sys.argv[2], "w").close()
open(sys.argv[2])
' "$AGENTWAL_STORE" hold &
holder=$!
: <hold
find bucket -type f | sort >before
code 3 agentwal remote compact --erase
same "$(cat before)" "$(find bucket -type f | sort)" "objects"
kill "$holder"
wait "$holder" 2>/dev/null || true

# Killed at any moment, of the erasing and of the pull: repeated, they end it.
for round in $(seq 1 "${AGENTWAL_LONG:+3}8"); do
    append s "r$round" "W${round}q8eKs05nRtHx"
    append s "l$round" "live$round"
    code 0 agentwal remote push
    code 0 agentwal remote pull "$url" ahead
    code 0 agentwal redact s "r$round"
    for call in "remote compact --erase" "remote pull $url ahead"; do
        # shellcheck disable=SC2086
        agentwal $call >/dev/null 2>&1 &
        pid=$!
        sleep "0.0$(printf '%02d' $((RANDOM % 60)))"
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    code 0 agentwal check --remote "$url"
    code 0 agentwal remote compact --erase
    none bucket "$AGENTWAL_STORE"
    code 0 agentwal remote pull "$url" ahead
    none ahead
done
sound ahead
