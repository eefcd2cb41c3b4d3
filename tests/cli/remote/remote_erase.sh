#!/usr/bin/env bash
# What is erased in a store that has a remote: it is named that the remote keeps it, and a push to
# another place has nothing of it.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"
export AGENTWAL_STORE=$store
mkdir first second

# append ID TEXT: one message with this id.
append() {
    printf '{"id":"%s","type":"message","payload":{"role":"user","content":"%s"}}\n' "$1" "$2" |
        agentwal append s >/dev/null
}

agentwal create --id s >/dev/null 2>&1
append a first-text-91c0
append b secret-text-5d1f
code 0 agentwal redact s a --erase
if grep -q 'the remote of the store' stderr; then
    fail "it names a remote of a store that has none"
fi
agentwal remote add "file://$work/first"
agentwal remote push >/dev/null
grep -rqaF secret-text-5d1f first || fail "the remote does not hold it"
code 0 agentwal redact s b --erase
grep -q 'not reached: the remote of the store' stderr || fail "not named: $(cat stderr)"
code 0 agentwal gc --erase
grep -q 'not reached: the remote of the store' stderr || fail "not named: $(cat stderr)"
! grep -rqaF secret-text-5d1f "$store" || fail "the store still holds it"

# What a handoff left that was killed; one that cannot be removed is named.
mkdir -p "$store/remotes"
echo secret-text-5d1f >"$store/remotes/handoff.bundle"
mkdir "$store/remotes/other.bundle"
code 1 agentwal gc --erase
grep -q 'other.bundle may hold' stderr || fail "not named: $(cat stderr)"
rmdir "$store/remotes/other.bundle"
! grep -rqaF secret-text-5d1f "$store" || fail "the bundle is there"
code 0 agentwal gc --erase

# Elsewhere there is the log as it is now.
code 0 agentwal remote add --replace "file://$work/second"
code 0 agentwal remote push
! grep -rqaF secret-text-5d1f second || fail "the other remote holds it"
agentwal remote pull "file://$work/second" replica >/dev/null
same "$(agentwal cat s --all)" "$(agentwal --store replica cat s --all)" "the entries"
code 0 agentwal --store replica check
