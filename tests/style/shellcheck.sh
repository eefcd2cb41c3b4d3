#!/usr/bin/env bash
# The linter has nothing to say about any script.
set -euo pipefail

cd "$AGENTWAL_SOURCE"
find . -path './.git' -prune -o -path './build*' -prune -o \
    -name '*.sh' -print0 -o -path './.ci/run' -print0 |
    xargs -0 shellcheck -x
