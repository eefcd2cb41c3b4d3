#!/usr/bin/env bash
# The npm package installs without a network and without scripts, and so does its
# folder; the program of its README runs there by import and by require, and the
# example in TypeScript compiles and runs. With AGENTWAL_LONG=1 the package is
# built from a copy of the sources, as its README says.
set -euo pipefail

fail() {
    printf 'package.sh: %s\n' "$*" >&2
    exit 1
}

source=$AGENTWAL_SOURCE/bindings/node
unset AGENTWAL_NODE_BINARY
export HOME=$PWD/home npm_config_cache=$PWD/cache npm_config_update_notifier=false
mkdir home cache packages

# --- the package ------------------------------------------------------------

# copy FOLDER...: what git has of these folders of the sources, to ./sources.
copy() {
    mkdir -p sources
    git -C "$AGENTWAL_SOURCE" ls-files -co --exclude-standard -z -- "$@" |
        tar c -C "$AGENTWAL_SOURCE" --ignore-failed-read --null -T - 2>/dev/null |
        tar x -C sources
}

if [ "${AGENTWAL_LONG:-}" = 1 ]; then
    copy .
    (cd packages && ../sources/bindings/node/pack.sh >/dev/null)
else
    copy bindings/{generate.py,structs.txt,records.txt,node} {engine,convert,search}/include LICENSE
    sources/bindings/node/pack.sh --binary "$AGENTWAL_BUILD/node/agentwal.node" \
        "$PWD/packages" >/dev/null
fi
version=$("$WALBIN/agentwal" --version)
package=$PWD/packages/agentwal-${version#agentwal }.tgz
[ -f "$package" ] || fail "there is no $package"

tar xzf "$package"
bytes=$(find package -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')
[ "$bytes" -le $((9 << 20)) ] || fail "unpacked it has $bytes bytes"
! find package -name binding.gyp | grep . || fail 'npm would build it'
node -e '
const { scripts = {}, dependencies = {} } = require("./package/package.json");
const found = Object.keys(scripts).filter((name) =>
    /^(pre|post)?(install|prepare|pack)$|^prepublish/.test(name));
if (found.length + Object.keys(dependencies).length > 0) {
    throw new Error(JSON.stringify([found, dependencies]));
}'
for file in LICENSE README.md index.d.ts records.d.ts index.mjs lib/index.js NOTICE; do
    [ -s "package/$file" ] || fail "it has no $file"
done
for name in native test bench node_modules build CMakeLists.txt; do
    [ ! -e "package/$name" ] || fail "it has $name"
done
cmp "$AGENTWAL_SOURCE/LICENSE" package/LICENSE
cmp "$AGENTWAL_SOURCE/engine/include/agentwal.h" package/docs/include/agentwal.h
# Each link in a document leads to a file of the package.
find package -name '*.md' | while read -r page; do
    { grep -o ']([^)#]*' "$page" || true; } | sed -e 's/^](//' -e '/^$/d' -e '/^https:/d' |
        while read -r link; do
            name=$(realpath -m --relative-to=. "$(dirname "$page")/$link")
            [[ $name == package/* && -e $name ]] || printf '%s: %s\n' "$page" "$link"
        done
done >broken
[ ! -s broken ] || fail "links lead nowhere: $(xargs <broken)"
grep -q '(docs/api.md)' package/README.md || fail 'README.md has lost its links'
for library in libssl liblz4 zlib1g libzstd libdeflate libsqlite3; do
    grep -q "code of $library:" package/NOTICE || fail "NOTICE has no $library"
done
! grep -q '"resolved": "[a-z+]*:' "$source/package-lock.json" ||
    fail 'the lock file names a registry'

binary=package/prebuilds/linux-$(node -p process.arch).node
if [ "$(nm -D --defined-only --format=just-symbols "$binary" | sed 's/@.*//' | sort |
    xargs)" != 'napi_register_module_v1 node_api_module_get_api_version_v1' ]; then
    fail "it exports: $(nm -D --defined-only "$binary")"
fi
! readelf -S "$binary" | grep -q '\.debug_\|\.symtab' || fail 'it is not stripped'
! readelf -d "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -v -x -e libc.so.6 -e libm.so.6 -e 'ld-linux.*' || fail 'it needs another library'
highest=$(objdump -T "$binary" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
[ "$(printf '%s\nGLIBC_2.34\n' "$highest" | sort -V | tail -1)" = GLIBC_2.34 ] ||
    fail "it needs $highest"
printf '%d bytes in %d files, %s, packed %d bytes\n' "$bytes" \
    "$(find package -type f | wc -l)" "$highest" "$(stat -c %s "$package")"

# --- installing -------------------------------------------------------------

# install FOLDER ARGUMENT...: into an empty folder.
install() {
    mkdir "$1"
    (cd "$1" && shift && npm install --offline --no-audit --no-fund "$@" >npm.log 2>&1) ||
        { cat "$1/npm.log" && fail "npm install ${*:2}"; }
}

# The program of README.md, section "Example", and what it prints.
awk '/^## /{ in_section = ($0 == "## Example") } in_section' \
    "$source/README.md" >section
awk '/^```$/{ in_code = 0 } in_code; /^```js$/{ in_code = 1 }' section >program.mjs
awk '/prints:$/{ shown = 1; next } shown && /^    /{ print substr($0, 5) }' \
    section >expected
[ -s program.mjs ] || fail 'README.md has no program'
[ -s expected ] || fail 'README.md does not show what it prints'

# By require, as README.md says.
grep -q "const { Store } = require('agentwal');" "$source/README.md" ||
    fail 'README.md does not show require'
{
    printf '(async () => {\n'
    sed "s/^import { Store } from 'agentwal';/const { Store } = require('agentwal');/" \
        program.mjs
    printf '})();\n'
} >program.cjs
! grep -q '^import ' program.cjs || fail 'the program imports'

# runs FOLDER: the programs run there, each with its store.
runs() {
    local kind
    for kind in mjs cjs; do
        mkdir -p "$1/$kind"
        cp "program.$kind" "$1/$kind"
        (cd "$1/$kind" && node "program.$kind") >printed ||
            fail "program.$kind fails in $1"
        diff expected printed || fail "program.$kind prints something else in $1"
    done
}

install archive --ignore-scripts "$package"
runs archive
[ ! -L archive/node_modules/agentwal ] || fail 'it is a link'
(cd archive && node -e "
const { Store } = require('agentwal');
const store = Store.memory();
store.createSync({ id: 's', title: 'A title' });
store.openSearch().find('title').then(([{ sessionId }]) => console.log(sessionId));
") | grep -qx s || fail 'it does not search'
printf 'ignore-scripts=true\n' >home/.npmrc
install configured "$package"
rm home/.npmrc
runs configured
install folder ./../sources/bindings/node
runs folder

# --- the example ------------------------------------------------------------

"$AGENTWAL_SOURCE/tests/node/example.sh" archive
