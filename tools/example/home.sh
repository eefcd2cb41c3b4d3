#!/usr/bin/env bash
# home.sh FOLDER
#
# Makes FOLDER, a new or an empty one, as the home directory of somebody who works
# with Claude Code, Codex and pi: a session of each where the client keeps it,
# those of Claude Code and Codex as of three and of two days ago, and tax.py, a
# file that an agent is going to change.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
home=${1:?home.sh needs the name of a new folder}
mkdir -p "$home"
[ -z "$(ls -A "$home")" ] || { printf 'home.sh: %s: is not empty\n' "$home" >&2 && exit 1; }

# put EXAMPLE DAY PATH: the session, as of that day.
put() {
    mkdir -p "$home/$(dirname "$3")"
    sed "s/@DAY@/$2/g" "$here/$1" >"$home/$3"
}
day=$(date -u -d '-3 days' +%F)
put claude.jsonl "$day" \
    .claude/projects/-srv-app-shop/5b8e1f6c-2d47-4c0a-9e35-b7a1c4d2f608.jsonl
day=$(date -u -d '-2 days' +%F)
put codex.jsonl "$day" \
    ".codex/sessions/${day//-//}/rollout-${day}T16-40-31-019a90cf-41d2-7f60-8b13-6a5c0e9d7b24.jsonl"
put session.jsonl '' .pi/agent/sessions/--srv-app-billing--/\
2026-03-09T14-20-11-204Z_0199d1c4-7a30-7c52-9b1e-4f0a6d2c8e17.jsonl
cp -r "$here/tax.py" "$here/new" "$home"
