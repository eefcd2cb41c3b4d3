#!/usr/bin/env bash
# A store is the same on every system: of this one, arm64, which is emulated, and musl, each
# writes one, and the others read it, add to it, and find it sound.
set -euo pipefail

fail() {
    printf 'exchange.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=tools/deps.sh
. "$AGENTWAL_SOURCE/tools/deps.sh"
deps_install 'qemu-user-static deps_command qemu-aarch64-static'
root=$AGENTWAL_BUILD/cross/arm64-root
"$AGENTWAL_SOURCE/tests/lib/arm64_root.sh" "$root" libc6
export QEMU_LD_PREFIX=$root
declare -A program=([here]=$WALBIN/agentwal)
for target in "$(uname -m)-linux-musl" aarch64-linux-gnu; do
    "$AGENTWAL_SOURCE/tools/cross.sh" "$target" "$AGENTWAL_BUILD/cross/$target"
    program[$target]=$AGENTWAL_BUILD/cross/$target/bin/agentwal
done

# run SYSTEM ARGUMENT...
run() {
    local system=$1 emulated=()
    shift
    [ "$system" != aarch64-linux-gnu ] || emulated=(qemu-aarch64-static)
    AGENTWAL_STORE=$PWD/store "${emulated[@]}" "${program[$system]}" "$@"
}

# seen SYSTEM: what it reads of the store.
seen() {
    run "$1" check >/dev/null || fail "$1: the store of $writer is damaged"
    run "$1" list --json | sort
    rm -rf out
    run "$1" export --dialect source out >/dev/null 2>export.log || fail "$1: no export"
    (cd out && find . -type f -not -path '*/.agentwal/*' -exec sha256sum {} + | sort)
}

for writer in "${!program[@]}"; do
    rm -rf store
    run "$writer" import "$AGENTWAL_SOURCE/tests/golden/model" 2>/dev/null >&2
    session=$(run "$writer" list --json | sed -n '1s/.*"sessionId":"\([^"]*\)".*/\1/p')
    seen here >expected
    [ -s expected ] || fail "$writer: nothing was imported"
    for reader in "${!program[@]}"; do
        seen "$reader" | cmp - expected || fail "$reader reads another store than $writer wrote"
        printf '{"type":"note","payload":{"text":"of %s"}}\n' "$reader" |
            run "$reader" append "$session" >/dev/null
        seen here >expected
        grep -q . expected
    done
    printf '%s wrote, all read and added: %d lines are equal\n' "$writer" "$(wc -l <expected)"
done
