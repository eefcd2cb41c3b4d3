#!/usr/bin/env bash
# pack.sh [--binary FILE] [FOLDER]
#
# Makes the npm package, agentwal-VERSION.tgz, in a folder (default: the current
# one). It has the binary for this system, without symbols, which build.sh
# makes, or FILE; so it installs without a compiler and without a network.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
binary=
if [ "${1:-}" = --binary ]; then
    binary=${2:?--binary needs a file}
    shift 2
fi
folder=${1:-$PWD}

if [ -z "$binary" ]; then
    "$here/build.sh"
    binary=$here/build/agentwal.node
fi
mkdir -p "$here/prebuilds"
objcopy --strip-all "$binary" "$here/prebuilds/linux-$(node -p process.arch).node"

# The terms of what the binary contains.
for library in liblz4-dev zlib1g-dev libdeflate-dev libssl-dev; do
    copyright=/usr/share/doc/$library/copyright
    if [ -e "$copyright" ]; then
        printf '==== %s\n\n' "${library%-dev}"
        cat "$copyright"
        printf '\n'
    else
        printf 'pack.sh: %s is missing in prebuilds/LICENSES\n' "$copyright" >&2
    fi
done >"$here/prebuilds/LICENSES"

cd "$here"
npm pack --silent --pack-destination "$folder"
