# shellcheck shell=bash
# remote.sh - sourced instead of cli.sh by tests of a remote in a directory: they
# run in $work, and $url is that of `bucket` there. In a build that has no
# remotes the test ends here.
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli.sh"
cd "$work"
mkdir bucket
# shellcheck disable=SC2034
url=file://$work/bucket

agentwal remote 2>without || true
if grep -q 'built without libcurl' without; then
    exit 0
fi
