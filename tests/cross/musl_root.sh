#!/usr/bin/env bash
# The program for musl needs nothing of its system: in a root that has it, busybox and a
# session file, it makes a store, imports, lists, prints, exports the same bytes, ships and
# checks. Its threads have room on their stacks: an import of all golden sessions passes too.
set -euo pipefail

fail() {
    printf 'musl_root.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=tools/deps.sh
. "$AGENTWAL_SOURCE/tools/deps.sh"
deps_install 'busybox-static deps_command busybox'
target=$(uname -m)-linux-musl
built=$AGENTWAL_BUILD/cross/$target
"$AGENTWAL_SOURCE/tools/cross.sh" "$target" "$built"
program=$built/bin/agentwal
! readelf -d "$program" | grep -q NEEDED || fail 'the program needs a library'
! readelf -l "$program" | grep -q INTERP || fail 'the program needs a loader'

mkdir -p root/bin root/tmp root/home
cp "$program" "$(command -v busybox)" root/bin
ln -s busybox root/bin/sh
cp "$AGENTWAL_SOURCE/tools/example/session.jsonl" root/home
cp -r "$AGENTWAL_SOURCE/tests/golden/model" root/home/model

# inside COMMAND...
inside() {
    unshare --user --map-root-user chroot root \
        /bin/busybox env -i HOME=/home PATH=/bin TMPDIR=/tmp AGENTWAL_STORE=/home/store "$@"
}
inside agentwal --version
inside agentwal init
inside agentwal import /home/session.jsonl >imported
session=$(inside agentwal show --json /home/session.jsonl |
    sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p' | head -1)
[ -n "$session" ] || fail 'no session was imported'
[ "$(inside agentwal list --json | wc -l)" = 1 ] || fail 'the list is not of one session'
inside agentwal cat "$session" >entries
[ -s entries ] || fail 'the session has no entries'
inside agentwal export --dialect source /home/out >/dev/null
cmp root/home/out/session.jsonl root/home/session.jsonl || fail 'the export differs'
inside agentwal import /home/model >imported
inside agentwal search agent >found || [ $? -le 1 ] || fail 'the search failed'
mkdir root/home/remote
inside agentwal remote add file:///home/remote >added
inside agentwal remote push >pushed
inside agentwal check >checked || fail 'the store is damaged'
inside /bin/sh -c 'agentwal list | busybox head -3'
# What musl_root made is opened by the program of this system.
AGENTWAL_STORE=root/home/store "$WALBIN/agentwal" check >checked
AGENTWAL_STORE=root/home/store "$WALBIN/agentwal" cat "$session" | cmp - entries
