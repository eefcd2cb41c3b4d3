#!/usr/bin/env bash
# agentwal remote compact and remote pull --follow, and agentwal check --remote:
# bases from which a pull begins, a replica that is kept up to date, and each
# object of a remote that is damaged or lost.
set -euo pipefail
# shellcheck source=tests/lib/remote.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/remote.sh"
export AGENTWAL_STORE=$work/laptop

# append SESSION TEXT: one message.
append() {
    printf '{"type":"note","payload":{"text":"%s"}}\n' "$2" |
        agentwal append "$1" >/dev/null
}

# Bad input.
code 2 agentwal remote compact extra
code 2 agentwal remote push --now
code 2 agentwal remote status --follow
code 2 agentwal remote pull --follow --take-over "$url" replica
code 2 agentwal check --store-id 12
code 2 agentwal check --remote "$url" --store-id 12
code 2 agentwal check --remote "http://host/bucket"
code 2 agentwal salvage --remote "$url" out
code 1 agentwal check --remote "$url"
grep -q 'has no store' stderr || fail "no reason: $(cat stderr)"
code 3 agentwal check --remote "$work/nowhere"
agentwal create --id one >/dev/null 2>&1
code 1 agentwal check --remote "$work/laptop"
code 1 agentwal remote compact

# A base, from which a pull begins.
agentwal remote add "$url" >/dev/null
code 0 agentwal remote compact
grep -q '^no base was due' stdout || fail "not none: $(cat stdout)"
for i in 1 2 3 4 5 6 7 8; do
    append one "$i"
    agentwal remote push >/dev/null
done
code 0 agentwal remote compact --json
json 'rows[0]["base"] == 0 and rows[0]["removedParts"] == 0' stdout
code 0 agentwal remote compact --now --json
json 'rows[0]["base"] == 1 and rows[0]["segments"] == 1' stdout
append one after
agentwal remote push >/dev/null
agentwal remote pull "$url" copy --json >pulled
json 'rows[0]["parts"] == 2' pulled
same "$(agentwal cat one --all)" "$(agentwal --store copy cat one --all)" \
    "the entries of the copy"
code 0 agentwal remote compact --now
code 0 agentwal remote compact --anew
grep -q '^base 3' stdout || fail "not anew: $(cat stdout)"

# All of it is sound, by the URL and by the store.
code 0 agentwal check --remote "$url" --json
json 'rows[0]["sound"] and rows[0]["damage"] == [] and rows[0]["bases"] == 3
    and rows[0]["parts"] == 9' stdout
code 0 agentwal check --remote "$work/laptop"
grep -q '^sound: 9 parts' stdout || fail "not sound: $(cat stdout)"
ln -s "$(command -v agentwal)" walcheck
code 0 ./walcheck --remote "$url"
append one last
agentwal remote push >/dev/null

# Each object that is damaged is named, and each that must be there.
find bucket -type f | sort >objects
while read -r object; do
    cp "$object" kept
    head -c -3 kept >"$object"
    code 1 agentwal check --remote "$url"
    grep -q "^${object#bucket/}: " stdout || fail "$object: $(cat stdout)"
    grep -q '^damaged: 1 object; ' stdout || fail "$object: $(cat stdout)"
    cp kept "$object"
done <objects
segment=$(find bucket -path '*/seg/*' -type f | sort | tail -1)
mv "$segment" kept
code 1 agentwal check --remote "$url" --json
json 'not rows[0]["sound"] and len(rows[0]["damage"]) == 1
    and rows[0]["damage"][0]["lost"]' stdout
mv kept "$segment"
code 0 agentwal check --remote "$url"

# A replica that is kept up to date, until it is interrupted.
agentwal remote pull --follow "$url" follower --json >followed 2>failed &
follower=$!
trap 'kill "$follower" 2>/dev/null || true; rm -rf "$work"' EXIT
for text in more still_more; do
    append one "$text"
    agentwal remote push >/dev/null
    for _ in $(seq 100); do
        if agentwal --store follower cat one --all 2>/dev/null |
            grep -q "\"$text\""; then
            break
        fi
        sleep 0.1
    done
    same "$(agentwal cat one --all)" \
        "$(agentwal --store follower cat one --all)" "what $text brought"
done
kill -TERM "$follower"
got=0
wait "$follower" || got=$?
same 0 "$got" "the exit code of the follower"
json 'len(rows) >= 2 and not rows[0]["writable"]' followed
same '' "$(cat failed)" "what the follower said"
code 0 agentwal --store follower check
