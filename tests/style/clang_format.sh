#!/usr/bin/env bash
# The code is formatted as .clang-format says. To format it:
#   clang-format-14 -i FILE...
set -euo pipefail

cd "$AGENTWAL_SOURCE"
dirs=()
for dir in format engine convert search remote tools bench tests examples \
    bindings/node/{native,bench} bindings/python/src bindings/{digest,table}; do
    [ -d "$dir" ] && dirs+=("$dir")
done
find "${dirs[@]}" -name node_modules -prune -o -name '*.[ch]' -print0 -o \
    -name '*.cc' -print0 |
    xargs -0 clang-format-14 --dry-run -Werror
