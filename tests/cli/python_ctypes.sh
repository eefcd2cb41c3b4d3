#!/usr/bin/env bash
# Calls every function of the public headers from Python, through ctypes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
library=$AGENTWAL_BUILD/lib/libagentwal.so
# shellcheck source=tests/lib/asan.sh
. "$here/../lib/asan.sh"
exec python3 "$here/../lib/ctypes_calls.py" "$AGENTWAL_SOURCE" "$library"
