#!/usr/bin/env bash
# For tests that bound the memory of a tool.
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli.sh"

# bounded COMMAND...: runs it, and fails at 64 MiB of anonymous memory, or
# $limit_kb. The highest RssAnon, in kB, is in $work/peak.
bounded() {
    python3 - "$work/peak" "$@" <<'EOF'
import subprocess
import sys
import time

peak = 0
run = subprocess.Popen(sys.argv[2:])
while run.poll() is None:
    try:
        with open("/proc/%d/status" % run.pid, encoding="ascii") as file:
            peak = max([peak] + [int(line.split()[1]) for line in file
                                 if line.startswith("RssAnon:")])
    except OSError:
        pass
    time.sleep(0.004)
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(str(peak))
sys.exit(run.returncode)
EOF
    peak=$(cat "$work/peak")
    if [ "$peak" -eq 0 ] || [ "$peak" -ge "${limit_kb-65536}" ]; then
        fail "$peak kB of memory for: $*"
    fi
}
