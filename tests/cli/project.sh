#!/usr/bin/env bash
# agentwal project and projects: the id of a repository, the file that caches it,
# and sessions whose former project id it replaces.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

work=$(cd "$work" && pwd -P)
export AGENTWAL_STORE=$store HOME=$work GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=$work/gitconfig
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@b
git config --global protocol.file.allow always
git config --global init.defaultBranch main

# repository NAME: creates one with a commit.
repository() {
    git init -q "$work/$1"
    git -C "$work/$1" commit -q --allow-empty -m "$1"
}
roots() {
    git -C "$1" rev-list --max-parents=0 --all | LC_ALL=C sort
}
# cache DIRECTORY: caches its id, as a new session does.
cache() {
    agentwal --store "$work/scratch" create --cwd "$1" >/dev/null
}
# is ID DIRECTORY: without the cached id, and then with it. To print an id
# writes nothing.
is() {
    local before after
    before=$(find "$work" -name 'opencode*' -printf '%p %i %T@\n' | sort)
    same "$1" "$(agentwal project "$2")" "project of $2"
    after=$(find "$work" -name 'opencode*' -printf '%p %i %T@\n' | sort)
    same "$before" "$after" "files that the print of an id wrote"
    cache "$2"
    same "$1" "$(agentwal project "$2")" "project of $2, again"
}
# session ID FIELD
session() {
    agentwal show --json "$1" | field "$2"
}
# make ID DIRECTORY [PROJECT]
make() {
    agentwal create --id "$1" --cwd "$2" --project "${3-}" >/dev/null
}
former() {
    printf '%s' "$1" | sha256sum | cut -c 1-16
}

code 0 agentwal --store "$work/scratch" init

# A git that hangs.
mkdir "$work/slow"
printf '#!/bin/sh\nexec sleep 300\n' >"$work/slow/git"
chmod +x "$work/slow/git"
repository held
(
    PATH=$work/slow:$PATH timeout 60 agentwal project "$work/held" >"$work/held.id"
) &
held=$!

# A repository: the full hash of its root commit, cached in .git.
repository one
root=$(roots "$work/one")
same 40 "${#root}" "digits of a root commit"
git -C "$work/one" commit -q --allow-empty -m second
mkdir -p "$work/one/deep/down"
is "$root" "$work/one/deep/down"
same "$root" "$(cat "$work/one/.git/opencode")" "the cached id"
same 644 "$(stat -c %a "$work/one/.git/opencode")" "mode of the cached id"
is "$root" "$work/one"
is "$root" "$work/one/.git"
same "$root" "$(cd "$work/one/deep" && agentwal project)" "of the current one"
ln -s "$work/one/deep" "$work/link"
is "$root" "$work/link"
agentwal project --json "$work/one" | json "rows == [
    {'projectId': '$root', 'directory': '$work/one'}]"

# A valid cached id is used without git; an invalid one is replaced.
printf '%040d\n' 7 >"$work/one/.git/opencode"
mkdir "$work/empty"
cp "$(command -v agentwal)" "$work/agentwal"
same "$(printf '%040d' 7)" "$(PATH=$work/empty "$work/agentwal" project "$work/one")" \
    "the cached id, without git"
for junk in '' junk "${root%?}" "${root}0" "${root^^}Z" "$root $root" \
    "g${root#?}"; do
    printf '%s' "$junk" >"$work/one/.git/opencode"
    is "$root" "$work/one"
    same "$root" "$(cat "$work/one/.git/opencode")" "in place of '$junk'"
done
head -c 5000 /dev/zero >"$work/one/.git/opencode"
is "$root" "$work/one"
rm "$work/one/.git/opencode"
mkfifo "$work/one/.git/opencode"
is "$root" "$work/one"
same "$root" "$(cat "$work/one/.git/opencode")" "in place of a pipe"

# The id cannot be cached.
rm "$work/one/.git/opencode"
mkdir "$work/one/.git/opencode"
is "$root" "$work/one"
rmdir "$work/one/.git/opencode"
chmod a-w "$work/one/.git"
is "$root" "$work/one"
chmod u+w "$work/one/.git"
same "" "$(find "$work/one/.git" -name 'opencode.*')" "temporary files"
rm -f "$work/one/.git/opencode"

# Other variables of git and other repositories change nothing.
repository other
same "$root" "$(GIT_DIR=$work/other/.git GIT_WORK_TREE=$work/other \
    GIT_OBJECT_DIRECTORY=$work/none GIT_CEILING_DIRECTORIES=$work/one \
    GIT_NAMESPACE=n agentwal project "$work/one/deep")" "with variables set"
rm -f "$work/one/.git/opencode"

# Without git, and with a git that times out.
same global "$(PATH=$work/empty "$work/agentwal" project "$work/one")" "without git"
[ ! -e "$work/one/.git/opencode" ] || fail "cached without git"

# Two roots: the first of them, sorted.
repository two
for name in b c d; do
    git -C "$work/two" checkout -q --orphan $name
    git -C "$work/two" commit -q --allow-empty -m "root $name"
done
same 4 "$(roots "$work/two" | wc -l)" "roots"
is "$(roots "$work/two" | head -n 1)" "$work/two"

# A worktree, a submodule, a bare repository.
git -C "$work/one" worktree add -q "$work/tree" 2>/dev/null
mkdir "$work/tree/below"
is "$root" "$work/tree/below"
same "$root" "$(cat "$work/one/.git/opencode")" "cached by a worktree"
rm "$work/one/.git/opencode"
git -C "$work/one" submodule --quiet add "$work/other" sub
is "$(roots "$work/other")" "$work/one/sub"
same "$(roots "$work/other")" "$(cat "$work/one/.git/modules/sub/opencode")" \
    "cached in a submodule"
is "$root" "$work/one"
git clone -q --bare "$work/one" "$work/bare"
is "$root" "$work/bare"
same "$root" "$(cat "$work/bare/opencode")" "cached in a bare repository"
git init -q --object-format=sha256 "$work/long"
git -C "$work/long" commit -q --allow-empty -m long
is "$(roots "$work/long")" "$work/long"

# No id: no commit, no repository, an invalid repository.
git init -q "$work/new"
is global "$work/new"
[ ! -e "$work/new/.git/opencode" ] || fail "cached without a commit"
mkdir -p "$work/outside" "$work/one/odd/.git" "$work/outside/broken"
is global "$work/outside"
is "$root" "$work/one/odd"
printf 'gitdir: %s\n' "$work/none" >"$work/outside/broken/.git"
is global "$work/outside/broken"
printf 'nothing\n' >"$work/outside/broken/.git"
is global "$work/outside/broken"
is global /
code 1 agentwal project "$work/none"
code 1 agentwal project "$work/gitconfig"
code 2 agentwal project "$work" "$work"
mkdir -p "$work/one/fake/.git/objects" "$work/one/fake/.git/refs"
printf 'nonsense\n' >"$work/one/fake/.git/HEAD"
is global "$work/one/fake"
[ ! -e "$work/one/fake/.git/opencode" ] || fail "another repository's id is cached"
rm -r "$work/one/fake"

# Sessions: the project of their directory, or the one that is given.
code 0 agentwal init
agentwal create --id s1 --cwd "$work/one" >/dev/null
same "$root" "$(session s1 projectId)" "a new session's project"
agentwal create --id s2 --cwd "$work/outside" >/dev/null
same global "$(session s2 projectId)" "project of a session outside a repository"
agentwal create --id s3 --cwd "$work/none" >/dev/null
same global "$(session s3 projectId)" "project of a session without a directory"
make s4 "$work/one" mine
same mine "$(session s4 projectId)" "an explicit project"
make s5 /srv ''
same None "$(session s5 projectId)" "a session without a project"
code 2 agentwal create --project "$(printf '%04097d' 0)"
agentwal list --json --project "$root" |
    json '[r["sessionId"] for r in rows] == ["s1"]'
agentwal projects --json >"$work/projects"
json "[(r['projectId'], r['sessions'], r['newest'], r['directories'])
       for r in rows] == [
    (None, 1, 's5', ['/srv']), ('mine', 1, 's4', ['$work/one']),
    ('global', 2, 's3', ['$work/none', '$work/outside']),
    ('$root', 1, 's1', ['$work/one'])]
    and all(r['updated'].endswith('Z') for r in rows)" "$work/projects"
agentwal projects >"$work/projects"
same 5 "$(wc -l <"$work/projects")" "lines of projects"
grep -q "^~/one  *1  .* s1  *$root\$" "$work/projects" || fail "a row"
code 2 agentwal projects more
code 3 agentwal --store "$work/none" projects

# The first access migrates both former ids, for sessions of this directory.
store=$work/second
AGENTWAL_STORE=$store
agentwal init
deep=$work/one/deep
make a1 "$deep" "$(former "$deep")"
make a2 "$deep" global
make a3 "$deep" mine
make a4 "$deep" "$(former "$work/one")"
make b1 "$work/one" global
make b2 "$work/two" global
make b3 "$work/outside" global
make a5 "$deep" "$root"
agentwal list --json >"$work/before"
agentwal list --json | json '[r["projectId"] for r in rows].count("global")
    == 4'
same a5 "$(agentwal latest --cwd "$deep")" "latest"
agentwal list --json --cwd "$deep" >"$work/after"
json "{r['sessionId']: r['projectId'] for r in rows} == {
    'a1': '$root', 'a2': '$root', 'a3': 'mine',
    'a4': '$(former "$work/one")', 'a5': '$root'}
    and rows[0]['sessionId'] == 'a5'" "$work/after"
ids='[r["sessionId"] for r in rows if r["sessionId"] in ("a1", "a2")]'
json "$ids == ['a2', 'a1']" "$work/before"
json "$ids == ['a2', 'a1']" "$work/after"
for id in b1 b2 b3; do
    same global "$(session $id projectId)" "of another directory"
done
sequence() {
    agentwal stats --json | field lastSequence
}
before=$(sequence)
agentwal list --cwd "$deep" >/dev/null
agentwal latest --cwd "$deep" >/dev/null
agentwal latest --cwd "$work/outside" >/dev/null
same "$before" "$(sequence)" "records after a second access"
agentwal create --id b4 --cwd "$work/one" >/dev/null
same "$root" "$(session b1 projectId)" "after create"
same b4 "$(agentwal latest --cwd "$work/one")" "the newest after create"

# migrate: all sessions; a second call changes nothing.
make c1 "$work/tree" global
make c2 "$work/tree" "$(former "$work/tree")"
agentwal migrate --json | json 'rows[0]["moved"] == 3
    and rows[0]["from"] == rows[0]["to"]'
same "$root" "$(session c1 projectId)" "of a worktree, after migrate"
same "$root" "$(session c2 projectId)" "of a worktree, after migrate"
same "$(roots "$work/two" | head -n 1)" "$(session b2 projectId)" "after migrate"
same global "$(session b3 projectId)" "outside, after migrate"
before=$(sequence)
agentwal migrate --json | json 'rows[0]["moved"] == 0'
same "$before" "$(sequence)" "records after a second migrate"
code 0 walcheck "$store"

# Imported sessions: the project of their directory; where it is missing its
# path, until it is there. claude ID DIRECTORY SECOND: a file of one line.
claude() {
    {
        printf '{"parentUuid":null,"isSidechain":false,"type":"user",'
        printf '"cwd":"%s","sessionId":"%s","uuid":"u",' "$2" "$1"
        printf '"message":{"role":"user","content":"x"},'
        printf '"timestamp":"2024-05-06T00:00:%02d.000Z"}\n' "$3"
    } >"$work/$1.jsonl"
}
store=$work/third
AGENTWAL_STORE=$store
agentwal init
claude i1 "$deep" 3
claude i2 "$work/outside" 2
claude i3 "$work/later" 5
claude i4 later 4
agentwal import "$work"/i[1-4].jsonl >/dev/null
same "$root" "$(session i1 projectId)" "of an import"
same global "$(session i2 projectId)" "of an import outside a repository"
same "$work/later" "$(session i3 projectId)" "of an import of a missing directory"
same later "$(session i4 projectId)" "of an import of a relative directory"
agentwal list --json | json '[r["sessionId"] for r in rows] == [
    "i3", "i4", "i1", "i2"] and all(r["created"] == r["updated"] for r in rows)
    and rows[0]["updated"].startswith("2024-05-06T00:00:05")'
same i3 "$(agentwal latest)" "the latest of the imported sessions"
agentwal projects --json | json 'len(rows) == 4
    and rows[0]["newest"] == "i3"'
repository later
agentwal migrate --json | json 'rows[0]["moved"] == 1'
same "$(roots "$work/later")" "$(session i3 projectId)" "after the clone"
agentwal list --json | json '[r["sessionId"] for r in rows] == [
    "i3", "i4", "i1", "i2"]'
code 0 walcheck "$store"
store=$work/second
AGENTWAL_STORE=$store

# A store that is not writable is not migrated.
make d1 "$work/two" global
chmod -R a-w "$store"
agentwal list --json --cwd "$work/two" | json 'len(rows) == 2'
chmod -R u+w "$store"

wait "$held" || fail "project waits for a git that hangs"
same global "$(cat "$work/held.id")" "with a git that hangs"
