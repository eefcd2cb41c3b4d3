#!/usr/bin/env bash
# tools/quickstart.sh in a fresh copy of the sources builds without a word and
# shows its parts; if the build fails it shows the end of the log. The packages
# of that build install into an empty root, work there, and leave nothing when
# they are removed; the archive of the tools runs where no library is; and what
# cmake --install wrote, the target uninstall removes.
set -euo pipefail

fail() {
    printf 'release.sh: %s\n' "$*" >&2
    exit 1
}

# ticks: processor time of the commands so far.
ticks() {
    awk '{ print $16 + $17 }' "/proc/$$/stat"
}

# The first result -----------------------------------------------------------------

mkdir copy home
git -C "$AGENTWAL_SOURCE" ls-files -z | (cd "$AGENTWAL_SOURCE" &&
    xargs -0 cp --parents -t "$OLDPWD/copy")
# The cache of compilations, where there is one.
export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache} CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export HOME=$PWD/home
unset AGENTWAL_STORE DESTDIR

begin=$(date +%s)
(cd copy && tools/quickstart.sh) >output 2>errors || { cat errors && fail 'quickstart.sh failed'; }
printf 'from the sources to the first result: %d s\n' $(($(date +%s) - begin))
for heading in Import Tree Export Fork Rewind Check 'Go on'; do
    grep -qx "$heading" output || fail "no $heading"
done
[ "$(wc -l <output)" -lt 100 ] || fail 'is long'
[ ! -s errors ] || { cat errors && fail 'prints to standard error'; }
[ -e copy/build/quickstart/quickstart-store/MANIFEST ] || fail 'no store'
tree=$PWD/copy/build/quickstart

# The packages -------------------------------------------------------------------

session=$AGENTWAL_SOURCE/tools/example/session.jsonl
headers=bindings/node/node_modules/node-api-headers
if [ -e "$AGENTWAL_SOURCE/$headers" ]; then
    mkdir -p "copy/$(dirname "$headers")"
    cp -r "$AGENTWAL_SOURCE/$headers" "copy/$headers"
fi
copy/tools/package.sh --build "$tree" "$PWD/packages" | tee steps
[ "$(grep -c ' \.\.\.$' steps)" -ge 7 ] || fail 'package.sh does not say its steps'
version=$("$WALBIN/agentwal" --version)
version=${version#agentwal }
series=${version%.*}
runtime=$(echo packages/libagentwal"${series}"_"${version}"_*.deb)
development=$(echo packages/libagentwal-dev_"${version}"_*.deb)
tools=$(echo packages/agentwal_"${version}"_*.deb)
convert=$(echo packages/libagentwal-convert"${series}"_"${version}"_*.deb)
convert_development=$(echo packages/libagentwal-convert-dev_"${version}"_*.deb)
search=$(echo packages/libagentwal-search"${series}"_"${version}"_*.deb)
search_development=$(echo packages/libagentwal-search-dev_"${version}"_*.deb)
remote=$(echo packages/libagentwal-remote"${series}"_"${version}"_*.deb)
remote_development=$(echo packages/libagentwal-remote-dev_"${version}"_*.deb)
debs=("$runtime" "$development" "$tools" "$convert" "$convert_development"
    "$search" "$search_development" "$remote" "$remote_development"
    packages/agentwal-all_"${version}"_all.deb)

# first_result BIN: what a newcomer does.
first_result() {
    local data=$PWD/data
    rm -rf "$data"
    PATH=$1:$PATH XDG_DATA_HOME=$data HOME=$data \
        agentwal import "$session" >/dev/null
    PATH=$1:$PATH XDG_DATA_HOME=$data HOME=$data \
        agentwal list | grep -q 'One cent off' || fail "no session by $1"
    PATH=$1:$PATH XDG_DATA_HOME=$data HOME=$data \
        agentwal search cent | grep -q 'agentwal cat\|pi --session' ||
        fail "no hit by $1"
    PATH=$1:$PATH XDG_DATA_HOME=$data HOME=$data \
        walcheck "$data/agentwal" >/dev/null || fail "walcheck of $1"
}

# Debian packages --------------------------------------------------------------

lintian --allow-root --fail-on error,warning "${debs[@]}" || fail 'lintian'
for deb in "${debs[@]}"; do
    dpkg-deb --fsys-tarfile "$deb" | tar x
done
# What is installed has that size, to a tenth.
size=$(find usr -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%d", sum / 1024 }')
stated=$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Installed-Size; done |
    awk '{ sum += $1 } END { print sum }')
difference=$((stated > size ? stated - size : size - stated))
[ "$((difference * 10))" -lt "$size" ] || fail "Installed-Size: $stated kB of $size kB"
folder=$(dirname "$(find usr -name 'libagentwal.so.*.*.*')")
for file in usr/bin/agentwal "$folder/libagentwal.so.$version"; do
    ! readelf -S "$file" | grep -q '\.debug_\|\.symtab' ||
        fail "$file is not stripped"
done
! readelf -S "$folder/libagentwal.a" | grep -q '\.debug_' ||
    fail 'the static library is not stripped'
rm -rf usr
[ "$(find packages -name '*.deb' | wc -l)" -eq 10 ]
for deb in "$search" "$tools"; do
    dpkg-deb -f "$deb" Depends | grep -q libsqlite3-0 ||
        fail "$deb does not depend on libsqlite3-0"
done
for deb in "$remote" "$tools"; do
    dpkg-deb -f "$deb" Depends | grep -q libcurl4 ||
        fail "$deb does not depend on libcurl4"
done
dpkg-deb -f "$tools" Depends | grep -q libmicrohttpd12 ||
    fail "$tools does not depend on libmicrohttpd12"
! dpkg-deb -f "$runtime" Depends | grep -q 'sqlite\|curl' ||
    fail 'the engine links SQLite or libcurl'
for library in libc6 liblz4-1 zlib1g 'libssl[0-9a-z]*'; do
    for deb in "$runtime" "$tools"; do
        dpkg-deb -f "$deb" Depends | grep -q "$library" ||
            fail "$deb does not depend on $library"
    done
done

# dpkg of a root that has the packages which these need, and no others.
root=$PWD/root
mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates
for deb in "${debs[@]}"; do
    dpkg-deb -f "$deb" Depends
done | tr ',' '\n' | sed 's/(.*//' | tr -d ' ' | grep -v agentwal | sort -u |
    xargs dpkg-query -s >root/var/lib/dpkg/status
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(unshare --map-root-user)
in_root() {
    PATH=$PATH:/usr/sbin:/sbin "${as_root[@]}" dpkg --root="$root" \
        --force-not-root --force-script-chrootless --no-triggers \
        --log=/dev/null "$@" >dpkg.log 2>&1 || { cat dpkg.log && fail "$*"; }
}

# Processor time, for other load on the machine is none of it.
begin=$(ticks)
in_root -i "${debs[@]}"
LD_LIBRARY_PATH=$root/$folder first_result "$root/usr/bin"
elapsed=$((($(ticks) - begin) / $(getconf CLK_TCK)))
printf 'from the packages to the first result: %d s\n' "$elapsed"
[ "$elapsed" -lt 10 ] || fail 'too long'
for deb in "$runtime" "$convert" "$search" "$remote"; do
    dpkg-deb -I "$deb" triggers | grep -qx 'activate-noawait ldconfig' ||
        fail "$deb does not trigger ldconfig"
done
for page in agentwal walcat walcheck; do
    [ -L "$root/usr/bin/$page" ] || [ "$page" = agentwal ] ||
        fail "$page is no link"
    [ -s "$root/usr/share/bash-completion/completions/$page" ] ||
        fail "no completion of $page"
    gzip -t "$root/usr/share/man/man1/$page.1.gz"
done
gzip -t "$root"/usr/share/doc/agentwal/CHANGELOG.md.gz
# Each document that help names.
LD_LIBRARY_PATH=$root/$folder "$root/usr/bin/agentwal" help --json |
    grep -o 'docs/[a-z]*\.md' | sort -u >named
[ -s named ] || fail 'help names no document'
while read -r document; do
    [ -s "$root/usr/share/doc/agentwal/$document" ] || fail "no $document"
done <named
cmp "$AGENTWAL_SOURCE/LICENSE" "$root"/usr/share/doc/agentwal/copyright
diff -r "$AGENTWAL_SOURCE/tools/example" \
    "$root"/usr/share/doc/agentwal/examples

# Programs against the development packages.
cat >program.c <<'PROGRAM'
#include <agentwal.h>
#include <agentwal/admin.h>
#include <agentwal/blob.h>
#include <agentwal/checkpoint.h>
#include <stdio.h>

int main(void)
{
    return puts(wal_version()) < 0;
}
PROGRAM
export LD_LIBRARY_PATH=$root/$folder PKG_CONFIG_PATH=$root/$folder/pkgconfig

# by_pkg_config PACKAGE SOURCE OUTPUT OPTION...: the options are those of pkg-config.
by_pkg_config() {
    local flags
    read -ra flags <<<"$(pkg-config --cflags --libs "${@:4}" "$1")"
    gcc -std=c11 -Wall -Werror "$2" -Lalone "${flags[@]}" -o "$3"
}
mkdir alone
by_pkg_config agentwal program.c by_pkg_config
[ "$(./by_pkg_config)" = "$version" ] || fail 'a program by pkg-config'
readelf -d by_pkg_config | grep -q "libagentwal.so.$series\]" ||
    fail "the program does not need libagentwal.so.$series"
! readelf -d by_pkg_config "$root/$folder/libagentwal.so" | grep 'NEEDED.*agentwal-' ||
    fail 'a program that keeps sessions needs more than libagentwal'
for part in convert search remote; do
    name=$part
    [ "$part" != convert ] || name=view
    printf '#include <agentwal/%s.h>\nint main(void) { wal_%s_close(0); }\n' \
        "$part" "$name" >"$part.c"
    by_pkg_config "agentwal-$part" "$part.c" "$part"
    "./$part" || fail "a program with agentwal-$part"
done
# Alone in its folder, which is searched first, the static library is taken.
cp "$root/$folder"/libagentwal{,-convert}.a alone
by_pkg_config agentwal program.c static --static
by_pkg_config agentwal-convert convert.c static_convert --static
for program in static static_convert; do
    env -u LD_LIBRARY_PATH ./$program || fail "$program by pkg-config"
done
cat >CMakeLists.txt <<LISTS
cmake_minimum_required(VERSION 3.22)
project(program LANGUAGES C)
find_package(agentwal $series REQUIRED COMPONENTS static convert search remote)
add_executable(by_shared program.c)
target_link_libraries(by_shared PRIVATE agentwal::agentwal)
add_executable(by_static program.c)
target_link_libraries(by_static PRIVATE agentwal::agentwal_static)
add_executable(convert convert.c)
target_link_libraries(convert PRIVATE agentwal::agentwal_convert)
add_executable(search search.c)
target_link_libraries(search PRIVATE agentwal::agentwal_search)
add_executable(remote remote.c)
target_link_libraries(remote PRIVATE agentwal::agentwal_remote)
LISTS
cmake -S . -B out -DCMAKE_PREFIX_PATH="$root/usr" >configure.log
cmake --build out >build.log
[ "$(out/by_shared)" = "$version" ] || fail 'a program by find_package'
for part in convert search remote; do
    "out/$part" || fail "a program by find_package of $part"
done
unset LD_LIBRARY_PATH
[ "$(out/by_static)" = "$version" ] || fail 'a static program by find_package'
cmake -S "$AGENTWAL_SOURCE/examples" -B examples -DCMAKE_PREFIX_PATH="$root/usr" >configure.log
cmake --build examples >build.log
export LD_LIBRARY_PATH=$root/$folder
printf 'hello\n' | examples/agent store | grep -qxF 'I wrote it down.' || fail 'examples/agent'
printf 'hello\n' | examples/shared_agent store | grep -qF 'down. (end)' ||
    fail 'examples/shared_agent'
unset LD_LIBRARY_PATH

in_root -P agentwal-all agentwal libagentwal-convert-dev "libagentwal-convert$series" \
    libagentwal-search-dev "libagentwal-search$series" \
    libagentwal-remote-dev "libagentwal-remote$series" libagentwal-dev "libagentwal$series"
left=$(find root -mindepth 1 -not -path 'root/var*')
[ -z "$left" ] || fail "left: $left"

# The archive ------------------------------------------------------------------

archive=$(echo packages/agentwal-"$version"-linux-*.tar.gz)
mkdir anywhere
tar xzf "$archive" -C anywhere
portable=$(echo "$PWD"/anywhere/agentwal-"$version"-linux-*)
! readelf -lW "$portable/bin/agentwal" | grep -q 'INTERP\|DYNAMIC' ||
    fail 'the portable program needs libraries'
for file in LICENSE README.md CHANGELOG.md share/man/man1/agentwal.1 \
    share/zsh/site-functions/_agentwal share/doc/agentwal/examples/session.jsonl \
    share/doc/agentwal/docs/tour.md; do
    [ -s "$portable/$file" ] || fail "the archive has no $file"
done
first_result "$portable/bin"
# Alone in a root: neither libraries nor /proc, /dev and /etc.
if unshare --map-root-user true 2>/dev/null || [ "$(id -u)" -eq 0 ]; then
    cp "$session" "$portable/session.jsonl"
    alone=("${as_root[@]}" chroot "$portable")
    "${alone[@]}" /bin/agentwal --store /store import /session.jsonl
    "${alone[@]}" /bin/walcheck /store
fi

# Packages of languages ------------------------------------------------------------

mkdir language
tar xzf packages/agentwal-"$version".tgz -C language
(cd language/package && node -e 'require(".").Store') || fail 'the package of Node.js'
python3 -m zipfile -e packages/agentwal-"$version"-*.whl language
(cd language && python3 -c 'import agentwal; agentwal.open') || fail 'the package of Python'

# Uninstalling -------------------------------------------------------------------

cmake --install "$tree" --prefix "$PWD/prefix" >install.log
touch prefix/include/other.h
first_result "$PWD/prefix/bin"
cmake --build "$tree" --target uninstall >uninstall.log
left=$(find prefix -not -type d)
[ "$left" = prefix/include/other.h ] || fail "left: $left"
[ -z "$(find prefix -name '*agentwal*')" ] || fail 'left: a folder'
! cmake --build "$tree" --target uninstall >uninstall.log 2>&1 ||
    fail 'uninstalled twice'
grep -q 'Nothing was installed' uninstall.log || fail 'no reason'

# A build that fails -------------------------------------------------------------

printf 'this is not C\n' >>copy/engine/base/error.c
code=0
(cd copy && tools/quickstart.sh) >output 2>errors || code=$?
[ "$code" -eq 1 ] || fail "exit code $code"
grep -q 'this is not C' errors || fail 'no end of the log'
grep -q 'the build failed; .*quickstart.log has all' errors || fail 'no path'
[ "$(wc -l <errors)" -lt 40 ] || fail 'the end of the log is long'
