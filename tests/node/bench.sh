#!/usr/bin/env bash
# bindings/node/bench/bench.mjs measures, and writes what its README has.
set -euo pipefail

cmake --build "$AGENTWAL_BUILD" --target agentwal_node_bench >/dev/null
node "$AGENTWAL_SOURCE/bindings/node/bench/bench.mjs" 1 results.json >printed
cat printed
[ "$(grep -c 'in flight' printed)" -eq 5 ]
[ "$(grep -c '"ratio": [0-9.]*$' results.json)" -eq 3 ]
