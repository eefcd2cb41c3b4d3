#!/usr/bin/env bash
# build.sh [CMAKE-OPTION...]
#
# Builds the addon for this system: build/agentwal.node, which the package loads
# from a checkout. pack.sh makes a package of it.
#
# Needs CMake, a C compiler and, on Debian: liblz4-dev zlib1g-dev libzstd-dev
# libssl-dev libdeflate-dev libsqlite3-dev python3, and libnode-dev or `npm ci` for
# headers of Node-API. Without libsqlite3-dev there is no full-text search.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

cmake -S "$here/../.." -B "$here/build/cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DAGENTWAL_NODE=ON "$@"
cmake --build "$here/build/cmake" --target agentwal_node --parallel "$(nproc)"
cp "$here/build/cmake/node/agentwal.node" "$here/build/agentwal.node.new"
mv "$here/build/agentwal.node.new" "$here/build/agentwal.node"
