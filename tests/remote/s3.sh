#!/usr/bin/env bash
# The driver of S3, by the gateway of a cluster: run by remotes.sh.
set -euo pipefail

here=$AGENTWAL_SOURCE/tests/remote
programs=$AGENTWAL_BUILD/tests

"$programs/remote_driver_run" "$AGENTWAL_TEST_S3"
"$here/move.sh" "$AGENTWAL_TEST_S3"
python3 "$here/faults.py" "$programs/remote_driver_call"
