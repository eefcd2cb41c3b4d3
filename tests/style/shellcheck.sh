#!/usr/bin/env bash
# The linter has nothing to say about any script, and what scripts call of
# tools/deps.sh is there.
set -euo pipefail

cd "$AGENTWAL_SOURCE"
find . -path './.git' -prune -o -path './build*' -prune -o \
    -name '*.sh' -print0 -o -path './.ci/run' -print0 |
    xargs -0 shellcheck -x

# shellcheck source=tools/deps.sh
. tools/deps.sh
while read -r name; do
    [ -n "$(type -t "$name")" ] || [ -n "${!name+set}" ] ||
        { printf 'tools/deps.sh has no %s\n' "$name" && exit 1; }
done < <(grep -hoEr --include='*.sh' '\bdeps_[a-z_]+\b' bench tools tests | sort -u)
