#!/usr/bin/env bash
# tools/release.sh makes a release of a commit alone, from a clone of it, and tags
# it. The clone's package.sh is replaced, for packaging_release runs it.
set -euo pipefail

fail() {
    printf 'tag.sh: %s\n' "$*" >&2
    exit 1
}

# refuses TEXT ARGUMENT...
refuses() {
    local text=$1
    shift
    ! tools/release.sh "$@" >output 2>&1 || fail "succeeds: $text"
    grep -q -- "$text" output || { cat output && fail "no text: $text"; }
}

export HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@localhost \
    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@localhost
mkdir -p copy/tools
cd copy
cp "$AGENTWAL_SOURCE"/{CMakeLists.txt,CHANGELOG.md} .
cp "$AGENTWAL_SOURCE"/tools/{deps,release}.sh tools/
cat >tools/package.sh <<'SCRIPT'
#!/usr/bin/env bash
[ "$1" = --build ] && [ ! -e "$(dirname "$0")/../output" ] && echo package >"${!#}/agentwal.deb"
[ "$3" != --cross ] || echo package >"$4/agentwal.whl"
SCRIPT
chmod +x tools/package.sh
printf '/output\n' >.gitignore
git init -q .
git add -A
git commit -q -m first
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)

tools/release.sh --help >output
grep -q '^--cross' output || fail 'the help has no end'
tools/release.sh ../made >output
grep -q "^Not tagged: git tag .* v$version\$" output || fail 'how to tag'
(cd ../made && sha256sum -c --quiet SHA256SUMS)
[ "$(wc -l <../made/SHA256SUMS)" -eq 2 ] || fail 'the number of files'
tar tzf "../made/agentwal-$version-source.tar.gz" |
    grep -qx "agentwal-$version/tools/release.sh" || fail 'the archive of the sources'
[ -z "$(git tag)" ] || fail 'tagged'
refuses 'exists; name a new folder' ../made
refuses 'unknown option --nope' --nope
[ ! -e ../other ] || fail 'a refusal makes a folder'

tools/release.sh --tag ../tagged >output
[ "$(git rev-parse "v$version^{commit}")" = "$(git rev-parse HEAD)" ] || fail 'the tag'
cmp ../made/SHA256SUMS ../tagged/SHA256SUMS || fail 'a second release differs'

tools/release.sh --cross ../crossed >output
grep -q ' agentwal.whl$' ../crossed/SHA256SUMS || fail 'no package of another system'

echo >>CMakeLists.txt
refuses 'the work tree has changes' ../other
git commit -q -a -m second
refuses "v$version is another commit" ../other
sed -i "s/^## ${version//./[.]}\$/## next/" CHANGELOG.md
git commit -q -a -m third
refuses "CHANGELOG.md has no section $version" ../other
