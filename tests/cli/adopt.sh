#!/usr/bin/env bash
# agentwal adopt imports the sessions of the clients in a home directory, and
# nothing that is kept next to them.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
count=12
[ -z "${AGENTWAL_LONG:-}" ] || count=200
total=$((3 * count))

export HOME=$work/home
unset CLAUDE_CONFIG_DIR CODEX_HOME PI_CODING_AGENT_DIR XDG_DATA_HOME \
    XDG_CONFIG_HOME XDG_STATE_HOME AGENTWAL_STORE
python3 "$here/../lib/make_home.py" "$HOME" "$count"
export AGENTWAL_STORE=$store
# Of the files only these may be read into the store.
find "$HOME" -type f | sort >"$work/files"
cp -r "$HOME" "$work/before"

sessions() {
    agentwal list --json | wc -l
}

no_secret() {
    if grep -rqa sk-planted-secret "$store"; then
        fail "a secret is in the store: $*"
    fi
}

# The plan, without a terminal: nothing is done.
code 0 agentwal adopt </dev/null
grep -q "^Claude Code: $HOME/.claude: $count sessions, " "$work/stdout" ||
    fail "the plan: $(cat "$work/stdout")"
grep -q "^Codex: $HOME/.codex: $count sessions, " "$work/stdout" || fail codex
grep -q "^pi: $HOME/.pi/agent: $count sessions, " "$work/stdout" || fail pi
grep -q 'left out: .*credentials' "$work/stdout" || fail "what is left out"
grep -q 'nothing was imported' "$work/stderr" || fail "that nothing was done"
if grep -q planted "$work/stdout" "$work/stderr"; then
    fail "the plan has a secret"
fi
[ ! -e "$store" ] || fail "the plan made a store"
code 0 agentwal adopt --json </dev/null
json 'len(rows) == 3 and all(r["leftOut"]["credentials"] > 0 for r in rows)' \
    "$work/stdout"
code 2 agentwal adopt --install --uninstall

# The import.
code 0 agentwal adopt --yes
grep -q "^$total sessions, " "$work/stdout" || fail "$(cat "$work/stdout")"
grep -q "agentwal import --follow $HOME/.claude $HOME/.codex $HOME/.pi/agent" \
    "$work/stdout" || fail "how to follow"
same "$total" "$(sessions)" "sessions after adopt"
no_secret adopt
diff -r "$work/before" "$HOME" || fail "adopt changed the home directory"

# Again, and from other roots: each session once.
for root in "$HOME/.claude/projects" "$HOME/.claude" "$HOME" \
    "$HOME/.codex/sessions" "$work/before" "$HOME/.claude/projects/-srv-app_0"; do
    code 0 agentwal import --json --summary "$root"
    json 'rows[-1]["summary"]["appended"] == 0' "$work/stdout"
    same "$total" "$(sessions)" "sessions after an import of $root"
done
code 0 agentwal adopt --yes
grep -q ' 0 new entries, ' "$work/stdout" || fail "a second adopt adds entries"
no_secret "imports from other roots"

# A hard link to credentials that is named as a session is none; one to a
# session is.
linked=$work/linked/.claude
mkdir "$work/linked"
cp -al "$HOME/.claude" "$linked"
for name in 00000000-0000-4000-8000-00000000c0de agent-c0de; do
    ln "$linked/.credentials.json" "$linked/projects/-srv-app_0/$name.jsonl"
done
for root in "$linked" "$linked/projects/-srv-app_0/../.."; do
    code 0 agentwal --store "$work/linked-store" import --json --summary "$root"
    same "$count" "$(agentwal --store "$work/linked-store" list --json | wc -l)" \
        "sessions of an import of hard links"
done
HOME=$work/linked AGENTWAL_STORE=$work/linked-store \
    code 0 agentwal adopt --json </dev/null
json "rows[0]['sessions'] == $count" "$work/stdout"
if grep -rqa sk-planted-secret "$work/linked-store"; then
    fail "a hard link to credentials was imported"
fi

# Titles.
agentwal list --json | json 'all(r["firstText"] and "<" not in r["firstText"]
    for r in rows)'

# What came in goes out at the path of its first import.
code 0 agentwal export --dialect source "$work/out"
same "$total" "$(find "$work/out" -type f | wc -l)" "files of an export"
(cd "$work/out" && find . -type f) | while read -r path; do
    for folder in .claude .codex .pi/agent; do
        [ ! -e "$HOME/$folder/$path" ] || cmp "$HOME/$folder/$path" \
            "$work/out/$path"
    done
done

# Variables that name the folders.
mkdir "$work/moved"
cp -r "$HOME/.claude" "$work/moved/claude-files"
cp -r "$HOME/.codex" "$work/moved/codex-files"
HOME=$work/nobody CLAUDE_CONFIG_DIR=$work/moved/claude-files \
    CODEX_HOME=$work/moved/codex-files AGENTWAL_STORE=$work/moved-store \
    code 0 agentwal adopt --yes
grep -q "^$((2 * count)) sessions, " "$work/stdout" || fail "moved folders"
if grep -rqa sk-planted-secret "$work/moved-store"; then
    fail "a secret of a moved folder"
fi
HOME=$work/nobody AGENTWAL_STORE=$work/no-store code 1 agentwal adopt --yes
[ ! -e "$work/no-store" ] || fail "adopt without clients made a store"

# Sessions of a client that is known and not read: one sentence, exit code 1, and no store.
mkdir -p "$work/other/.qoder/projects/-srv-app" "$work/other/.local/share/goose/sessions"
cp "$(find "$HOME/.claude/projects" -name '*.jsonl' | sort | head -n 1)" \
    "$work/other/.qoder/projects/-srv-app/q1.jsonl"
echo >"$work/other/.local/share/goose/sessions/sessions.db"
for command in "adopt" "adopt --yes" "import $work/other" "import --follow $work/other/.qoder"; do
    # shellcheck disable=SC2086
    HOME=$work/other AGENTWAL_STORE=$work/no-store code 1 agentwal $command </dev/null
    cat "$work/stdout" "$work/stderr" >"$work/both"
    same 1 "$(grep -c '1 file with sessions of Qoder, which this version does not read: ' \
        "$work/both")" "$command: $(cat "$work/both")"
    [ ! -e "$work/no-store" ] || fail "$command made a store"
done
HOME=$work/other AGENTWAL_STORE=$work/no-store code 1 agentwal adopt --json </dev/null
json 'rows[0]["unread"][0].startswith("1 file with sessions of Goose")' "$work/stdout"
HOME=$work/other AGENTWAL_STORE=$work/other-store code 0 agentwal import \
    "$work/other/.qoder/projects/-srv-app/q1.jsonl"
AGENTWAL_STORE=$work/other-store code 0 agentwal resume --json
if grep -q 'claude --resume' "$work/stdout"; then
    fail "a session of Qoder has a command of Claude Code"
fi
mkdir "$work/empty"
AGENTWAL_STORE=$work/no-store code 0 agentwal import "$work/empty"
[ ! -e "$work/no-store" ] || fail "an import of nothing made a store"

# The folder of projects is a link.
mkdir -p "$work/linked-home/.claude"
cp -r "$HOME/.claude/projects" "$work/linked-projects"
ln -s "$work/linked-projects" "$work/linked-home/.claude/projects"
HOME=$work/linked-home AGENTWAL_STORE=$work/linked-home-store code 0 agentwal adopt --yes
grep -q "^$count sessions, " "$work/stdout" || fail "a linked folder: $(cat "$work/stdout")"
rm "$work/linked-home/.claude/projects"
ln -s nowhere "$work/linked-home/.claude/projects"
HOME=$work/linked-home AGENTWAL_STORE=$work/no-store code 1 agentwal adopt --yes
grep -q 'a link that leads to no folder of its owner' "$work/stderr" || fail "a bad link"
[ ! -e "$work/no-store" ] || fail "a bad link made a store"

# A client's folder that cannot be read is named in the plan, and the others are imported.
mkdir -p "$work/closed/.codex/sessions"
cp -r "$HOME/.claude" "$work/closed/.claude"
drop=()
[ "$(id -u)" -ne 0 ] || drop=(setpriv --bounding-set=-all --inh-caps=-all)
chmod 0 "$work/closed/.codex/sessions"
if ! "${drop[@]}" ls "$work/closed/.codex/sessions" >/dev/null 2>&1; then
    for answer in "" --yes; do
        # shellcheck disable=SC2086
        HOME=$work/closed AGENTWAL_STORE=$work/closed-store code 1 "${drop[@]}" \
            agentwal adopt $answer </dev/null
        grep -qxF "    $work/closed/.codex/sessions: Permission denied" "$work/stdout" ||
            fail "a closed folder: $(cat "$work/stdout")"
    done
    grep -q "^$count sessions, " "$work/stdout" || fail "the rest: $(cat "$work/stdout")"
fi
chmod 700 "$work/closed/.codex/sessions"

# The unit. A systemctl that only records its calls.
mkdir "$work/bin"
cat >"$work/bin/systemctl" <<EOF
#!/bin/sh
echo "\$@" >>"$work/calls"
exit "\$(cat "$work/systemd")"
EOF
chmod +x "$work/bin/systemctl"
unit=$HOME/.config/systemd/user/agentwal-import.service
link=$HOME/.config/systemd/user/default.target.wants/agentwal-import.service
echo 1 >"$work/systemd"
code 0 agentwal adopt --install </dev/null
[ ! -e "$unit" ] || fail "a plan installed the unit"
PATH=$work/bin:$PATH code 0 agentwal adopt --yes --install
grep -q 'could not be started' "$work/stderr" || fail "no systemd"
line="ExecStart=\"$(readlink -f "$WALBIN/agentwal")\" --store \"$store\""
line="$line import --follow \"$HOME/.claude\" \"$HOME/.codex\""
grep -qxF "$line \"$HOME/.pi/agent\"" "$unit" || fail "the unit: $(cat "$unit")"
[ -e "$link" ] || fail "the unit is not enabled"
# systemd expands $ in the command, and not in Environment=.
cp -r "$HOME/.claude" "$work/claude\$files"
PATH=$work/bin:$PATH CLAUDE_CONFIG_DIR=$work/claude\$files \
    code 0 agentwal adopt --yes --install
grep -qxF "Environment=\"CLAUDE_CONFIG_DIR=$work/claude\$files\"" "$unit" ||
    fail "a variable of the unit: $(cat "$unit")"
grep -qF " import --follow \"$work/claude\$\$files\"" "$unit" ||
    fail "a folder of the unit: $(cat "$unit")"
echo 0 >"$work/systemd"
PATH=$work/bin:$PATH code 0 agentwal adopt --yes --install
grep -q '^started' "$work/stdout" || fail "the unit was not started"
grep -q -- '--user restart agentwal-import.service' "$work/calls" ||
    fail "systemctl: $(cat "$work/calls")"
PATH=$work/bin:$PATH code 0 agentwal adopt --uninstall
{ [ ! -e "$unit" ] && [ ! -L "$link" ]; } || fail "the unit remains"
grep -q -- '--user stop agentwal-import.service' "$work/calls" || fail "stop"
PATH=$work/bin:$PATH code 0 agentwal adopt --uninstall
grep -q 'no unit' "$work/stdout" || fail "a second uninstall"
rm -r "$HOME/.config"

# A view into the client's folder, then an import: no session twice.
cp -r "$HOME/.claude" "$work/client"
code 0 agentwal export --dialect claude "$HOME/.claude"
same "$total" "$(find "$HOME/.claude/projects" -name '*.jsonl' \
    ! -name auth.jsonl ! -name credentials.jsonl | wc -l)" \
    "sessions of the client after an export of all"
for id in $(agentwal list --json | python3 -c '
import json, sys
print(*(json.loads(line)["sessionId"] for line in sys.stdin))'); do
    same 1 "$(find "$HOME/.claude/projects" -name "*$id*.jsonl" | wc -l)" \
        "files of session $id"
done
[ -z "$(find "$HOME/.claude" -name '.agentwal*')" ] ||
    fail "the view left state in the client's folder"
code 0 agentwal adopt --yes
same "$total" "$(sessions)" "sessions after a view"
diff -r "$work/client/projects" "$HOME/.claude/projects" |
    grep -v "^Only in $HOME" && fail "the view changed the client's files"
no_secret views
