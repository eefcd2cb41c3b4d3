#!/usr/bin/env bash
# macos-check.sh [FOLDER]
#
# On a Mac: builds agentwal with its tests in FOLDER, else in build/macos, and runs the
# quickstart and the tests, but those that look at what only Linux has. It is what nobody
# has run yet: locks of open file descriptions, waiting for words of shared maps between
# processes, F_FULLFSYNC, F_PREALLOCATE, F_PUNCHHOLE, kqueue. Prints the system, and how
# long ten durable appends take.
#
# Needs Homebrew's bash cmake ninja pkgconf lz4 zstd openssl@3 libdeflate sqlite
# libmicrohttpd cmocka jansson, and installs what is missing.
# Exits with 0 when all passed, 1 if something failed, 2 on another system.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
if [ "$(uname -s)" != Darwin ]; then
    printf 'macos-check.sh: this system is %s\n' "$(uname -s)" >&2
    exit 2
fi
folder=${1-$root/build/macos}

packages=(bash cmake ninja pkgconf lz4 zstd openssl@3 libdeflate sqlite libmicrohttpd cmocka
    jansson)
for package in "${packages[@]}"; do
    brew list --versions "$package" >/dev/null || brew install "$package"
done
brew=$(brew --prefix)
for package in openssl@3 sqlite; do
    export PKG_CONFIG_PATH=$brew/opt/$package/lib/pkgconfig:${PKG_CONFIG_PATH-}
done
PATH=$brew/bin:$PATH

sw_vers
uname -m
df -h "$root" | tail -n 1

cmake -S "$root" -B "$folder" -G Ninja -DAGENTWAL_TESTS=ON -DAGENTWAL_NODE=OFF \
    -DAGENTWAL_PYTHON=OFF -DAGENTWAL_BENCH=OFF
cmake --build "$folder"

failed=0
"$brew/bin/bash" "$root/tools/quickstart.sh" --bin "$folder/bin" || failed=1
ctest --test-dir "$folder" -L 'unit|crash|sim|golden|fuzz' --output-on-failure || failed=1
ctest --test-dir "$folder" -R '^cli_(append|adopt|serve_events|watch)$' --output-on-failure ||
    failed=1

# A durable append waits for F_FULLFSYNC.
store=$(mktemp -d)/store
"$folder/bin/agentwal" --store "$store" init
"$folder/bin/agentwal" --store "$store" create --id one
time for i in 1 2 3 4 5 6 7 8 9 10; do
    printf '{"type":"note","payload":{"text":"%s"}}\n' "$i"
done | "$folder/bin/agentwal" --store "$store" append one >/dev/null || failed=1
"$folder/bin/agentwal" --store "$store" check || failed=1
rm -rf "${store%/store}"
exit "$failed"
