#!/usr/bin/env bash
# agentwal redact --erase and delete --erase: no file of the store holds it.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store

# append ID TEXT: a message with this text, and some before and after it.
append() {
    python3 -ISc '
import json, sys
for text in ("before", sys.argv[1], "after"):
    print(json.dumps({"type": "message", "payload": {
        "role": "user", "content": text}}))
' "$2" | agentwal append "$1" >/dev/null
}

# large ID TEXT: a message above 256 KiB that begins with this text.
large() {
    python3 -ISc '
import json, random, sys
rest = "%x" % random.getrandbits(8 * 200000)
print(json.dumps({"type": "message", "payload": {
    "role": "user", "content": sys.argv[1] + rest}}))
' "$2" | agentwal append "$1" >/dev/null
}

# holds TEXT: whether a file of the store holds it as it is.
holds() {
    grep -rqaF "$1" "$store"
}

# entry ID TEXT: the id of the entry with this text.
entry() {
    agentwal cat "$1" --json | python3 -ISc '
import json, sys
for line in sys.stdin:
    entry = json.loads(line)
    if entry.get("payload", {}).get("content", "").startswith(sys.argv[1]):
        print(entry["id"])
' "$2"
}

agentwal init 2>/dev/null
agentwal create --id kept >/dev/null
agentwal create --id gone --title 'title-of-gone-71c0' >/dev/null
agentwal create --id trashed >/dev/null
append kept 'secret-inline-5d1f'
large kept 'secret-large-9b3e'
append gone 'text-of-gone-44aa'
large gone 'large-of-gone-8c2d'
append trashed 'text-in-the-trash-13b7'
agentwal delete trashed >/dev/null
for text in secret-inline-5d1f secret-large-9b3e text-of-gone-44aa \
    large-of-gone-8c2d title-of-gone-71c0; do
    holds "$text" || fail "the store does not hold $text"
done

# Bad input.
code 2 agentwal redact kept
code 1 agentwal redact kept nothing --erase
code 1 agentwal delete nothing --erase
holds secret-inline-5d1f || fail "a refused redaction has erased"

# Redacted, and hidden only; then erased with the next one.
inline=$(entry kept secret-inline-5d1f)
large=$(entry kept secret-large-9b3e)
agentwal redact kept "$inline" >/dev/null
holds secret-inline-5d1f || fail "redacting alone has erased"
code 0 agentwal redact kept "$large" --erase
grep -q 'not reached: ' stderr || fail "it does not say what is not reached"
for text in secret-inline-5d1f secret-large-9b3e; do
    ! holds "$text" || fail "the store still holds $text"
done
[ "$(agentwal cat kept --json | wc -l)" -eq 4 ] || fail "other entries are gone"

# Deleted for good; what is in the trash stays there.
agentwal delete gone --erase --json >deleted
json 'rows[0]["trashed"] is False and rows[0]["deleted"]' <deleted
for text in text-of-gone-44aa large-of-gone-8c2d title-of-gone-71c0; do
    ! holds "$text" || fail "the store still holds $text"
done
code 1 agentwal undelete gone
agentwal undelete trashed >/dev/null
agentwal cat trashed | grep -q 'text-in-the-trash-13b7' || fail "the trash was emptied"
agentwal check >/dev/null || fail "the store is not sound"

# A session of a client, and a fork: what is hidden, left out, and still in the client's file.
export HOME=$work
mkdir -p .claude/projects/-srv
file=$work/.claude/projects/-srv/6f0c2b1e-1111-4222-8333-944455556666.jsonl
for text in first second; do
    printf '{"type":"user","uuid":"%s","sessionId":"6f0c2b1e-1111-4222-8333-944455556666",' "$text"
    printf '"message":{"role":"user","content":"%s of the client"}}\n' "$text"
done >"$file"
agentwal import .claude >/dev/null 2>&1
agentwal fork 55556666 --id fork-of-it >/dev/null
agentwal fork fork-of-it --id third-fork >/dev/null
code 0 agentwal redact fork-of-it first
same "it is hidden in these sessions: $(basename "$file" .jsonl), fork-of-it, third-fork" \
    "$(sed -n 2p stdout)" "what a redaction hides"
code 0 agentwal export --dialect source --session 55556666 exported
grep -q ': left out: 1 redacted entry$' stderr || fail "nothing was left out: $(cat stderr)"
code 0 agentwal export --dialect source --session 55556666 exported --json
json 'rows[0]["losses"] == [{"what": "redacted entries", "count": 1}]' stdout
code 0 agentwal resume 55556666
same 'claude --resume 6f0c2b1e-1111-4222-8333-944455556666' "$(cat stdout)" \
    "the command of a session with a redacted entry"
code 0 agentwal redact third-fork second --erase
grep -q "^agentwal: $file: still has what was erased" stderr || fail "$(cat stderr)"
agentwal delete 55556666 fork-of-it third-fork >/dev/null
code 0 agentwal gc --erase
grep -q "^agentwal: $file: still has what was erased" stderr || fail "$(cat stderr)"

# The files of a checkpoint, once it is deleted; a copy learns that by merging.
mkdir files
echo 'secret-of-a-file-2e70' >files/secret
agentwal create --id files --cwd "$work/files" >/dev/null
append files 'text-of-files'
agentwal checkpoint files c secret >/dev/null
agentwal gc >/dev/null
cp -r "$store" copy
agentwal checkpoint-delete files c >/dev/null
holds secret-of-a-file-2e70 || fail "deleting a checkpoint has erased"
code 0 agentwal gc --erase
for text in secret-of-a-file-2e70 "$work/files\",\"list"; do
    ! holds "$text" || fail "the store still holds $text"
done
agentwal check >/dev/null || fail "the store is not sound"
code 0 agentwal --store copy merge "$store"
[ -z "$(agentwal --store copy checkpoints files --json)" ] || fail "the copy has it still"

# What calls on bundles left that were killed, also of sessions of other stores.
mkdir -p tmp "$store/remotes"
for place in tmp "$store/remotes"; do
    left=$place/.agentwal-0123456789abcdef
    mkdir -p "$left/log"
    echo 'left-in-a-store-5c77' >"$left/log/0000000000000001.seg"
    touch "$left.lock"
    echo 'left-in-a-bundle-5c78' >"$place/.agentwal-1123456789abcdef.tmp"
done
TMPDIR=$work/tmp code 0 agentwal gc --erase
[ -z "$(find tmp "$store/remotes" -name '.agentwal-*')" ] || fail "a temporary store is left"
