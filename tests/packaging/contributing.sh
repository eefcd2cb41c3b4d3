#!/usr/bin/env bash
# A contributor's first hour works as CONTRIBUTING.md shows it.
set -euo pipefail

unset DESTDIR
"$AGENTWAL_SOURCE/tests/cli/docs_commands.py" "$AGENTWAL_SOURCE/CONTRIBUTING.md"
