#!/usr/bin/env bash
# agentwal redact --undo: what is shown, printed and refused.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"
cd "$work"
export AGENTWAL_STORE=$store
agentwal init >/dev/null 2>&1
agentwal create --id demo --title "a plan" >/dev/null
printf '{"id":"%s","type":"message","payload":{"role":"user","content":"a plan %s"}}\n' \
    m1 m1 m2 m2 | agentwal append demo >/dev/null
agentwal fork demo --id branch >/dev/null

code 0 agentwal redact demo m1
same "undo: agentwal redact --undo demo m1" "$(tail -n 1 stdout)" "how to undo"
code 0 agentwal redact --undo demo m1
same "restored the entry m1
the session has no title: agentwal title demo TITLE" "$(cat stdout)" "what undoing prints"
code 0 agentwal cat branch
grep -q 'a plan m1' stdout || fail "the fork does not show the entry again"
agentwal title demo "a plan" >/dev/null
agentwal redact branch m2 >/dev/null
code 0 agentwal --json redact --undo branch m2
json 'rows == [{"entryId": "m2", "redacted": False}]' stdout
code 1 agentwal redact --undo branch m2
grep -q 'the entry "m2" is not redacted' stderr || fail "why not: $(cat stderr)"
code 2 agentwal redact --undo branch m2 --reason why
code 2 agentwal redact --undo branch m2 --erase

# As JSON lines the redactions that were undone would hide what they named.
code 0 agentwal export --dialect entries --session demo --stdout
grep -q '"a plan m2"' stdout || fail "a shown entry is not exported"
if grep -q '"redaction"' stdout; then
    fail "a redaction that was undone is exported"
fi

# A session without a title is listed by its first message that is shown.
agentwal create --id plain >/dev/null
printf '{"id":"%s","type":"message","payload":{"role":"user","content":"text %s"}}\n' \
    p1 p1 p2 p2 | agentwal append plain >/dev/null
listed() {
    same "$1" "$(agentwal list | sed -n 's/^plain .*  //p')" "$2"
}
listed "text p1" "the first message"
agentwal redact plain p1 >/dev/null
listed "text p2" "the next message"
code 0 agentwal show plain
grep -q '^begins  *text p2$' stdout || fail "show: $(cat stdout)"
agentwal redact plain p2 >/dev/null
listed "(redacted)" "no message is shown"
agentwal redact --undo plain p1 >/dev/null
listed "text p1" "the message is shown again"

# What was erased is gone.
code 0 agentwal redact demo m2 --erase
if grep -q '^undo: ' stdout; then
    fail "erasing cannot be undone"
fi
code 1 agentwal redact --undo demo m2
grep -q 'the content of the entry "m2" was erased' stderr || fail "why not: $(cat stderr)"
code 0 walcheck "$AGENTWAL_STORE"
code 0 walcat --frames "$AGENTWAL_STORE"
grep -q ' RESTORE ' stdout || fail "no RESTORE among the frames"
