#!/usr/bin/env bash
# The driver of a cluster's pools: run by remotes.sh.
set -euo pipefail

here=$AGENTWAL_SOURCE/tests/remote
programs=$AGENTWAL_BUILD/tests

if [ ! -x "$programs/remote_driver_watch" ]; then
    echo "this build has no driver of pools"
    exit
fi
"$programs/remote_driver_run" "$AGENTWAL_TEST_RADOS"
"$programs/remote_driver_watch" "$AGENTWAL_TEST_RADOS"
"$here/move.sh" "$AGENTWAL_TEST_RADOS"
python3 "$here/rados_faults.py" "$programs/remote_driver_call"
