#!/usr/bin/env bash
# scratch.sh COMMAND...: runs a test in an empty directory of its own, which
# is the current one, is $TMPDIR too, and is gone afterwards.
set -euo pipefail

dir=$(mktemp -d "${TMPDIR:-/tmp}/agentwal-test.XXXXXX")
trap 'chmod -R u+rwX "$dir" && rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
cd "$dir"
TMPDIR=$dir "$@"
