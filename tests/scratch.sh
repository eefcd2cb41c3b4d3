#!/usr/bin/env bash
# scratch.sh COMMAND...: runs a test in a private empty directory, which
# is the current one and $TMPDIR, and is removed afterwards. It is below
# $AGENTWAL_SCRATCH, else below $TMPDIR, else below /tmp.
set -euo pipefail

dir=$(mktemp -d "${AGENTWAL_SCRATCH:-${TMPDIR:-/tmp}}/agentwal-test.XXXXXX")
trap 'chmod -R u+rwX "$dir" && rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
cd "$dir"
TMPDIR=$dir "$@"
