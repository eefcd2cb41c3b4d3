#!/usr/bin/env bash
# The driver of a cluster's pools: run by remotes.sh.
set -euo pipefail

here=$AGENTWAL_SOURCE/tests/remote
programs=$AGENTWAL_BUILD/tests

if [ ! -x "$programs/remote_driver_watch" ]; then
    echo "this build has no driver of pools"
    exit
fi
if [ "$AGENTWAL_STRIDE" != 1 ]; then
    # AddressSanitizer looks for __cxa_throw when a program starts, and librados
    # is loaded later. What librados leaks is not ours.
    LD_PRELOAD=$(gcc -print-file-name=libstdc++.so.6)
    printf 'leak:librados\nleak:libceph-common\n' >suppressions
    LSAN_OPTIONS=print_suppressions=0:suppressions=$PWD/suppressions
    export LD_PRELOAD LSAN_OPTIONS
fi
"$programs/remote_driver_run" "$AGENTWAL_TEST_RADOS"
"$programs/remote_driver_watch" "$AGENTWAL_TEST_RADOS"
"$here/move.sh" "$AGENTWAL_TEST_RADOS"
python3 "$here/rados_faults.py" "$programs/remote_driver_call"
