#!/usr/bin/env bash
# The build adapts to what a machine has, or reports what is missing: without
# the libraries of the tests, without a library of the engine, without
# pkg-config, and as a part of another project.
set -euo pipefail

fail() {
    cat configure.log >&2
    printf 'configure.sh: %s\n' "$*" >&2
    exit 1
}

# Paths of the cache of compilations, where there is one.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# A prefix of links to the development files of some libraries; the system's
# places of headers and libraries are ignored.
multiarch=$(gcc -print-multiarch)
include=$(dirname "$(echo '#include <zlib.h>' | gcc -E - |
    sed -n 's/^# 1 "\(.*zlib\.h\)".*/\1/p')")
ignored="$include;/usr/include;/usr/include/$multiarch;/usr/local/include"

# with PREFIX LIBRARY HEADER...
with() {
    local prefix=$1 library=$2 header
    shift 2
    mkdir -p "$prefix/include" "$prefix/lib"
    for header in "$@"; do
        ln -s "$include/$header" "$prefix/include/"
    done
    ln -s "$(gcc -print-file-name="lib$library.so")" "$prefix/lib/"
}
for prefix in base no_lz4 all; do
    with $prefix z zlib.h zconf.h
    with $prefix crypto openssl
    with $prefix zstd zstd.h
    [ $prefix = no_lz4 ] || with $prefix lz4 lz4.h
done
with all cmocka cmocka.h
with all jansson jansson.h
for library in z crypto zstd lz4 cmocka jansson; do
    folder=$(dirname "$(realpath "$(gcc -print-file-name="lib$library.so")")")
    ignored+=";$folder;${folder#/usr}"
done

# configure PREFIX OPTION...: with what the prefix has; the output is in
# configure.log. What is known of the compilers stays from the call before.
configure() {
    local prefix=$PWD/$1
    shift
    rm -f out/CMakeCache.txt out/tests/CTestTestfile.cmake
    cmake -S "$AGENTWAL_SOURCE" -B out -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_IGNORE_PATH="$ignored" -DAGENTWAL_BENCH=OFF "$@" \
        >configure.log 2>&1
}

# reports TEXT: whether the output has it; CMake wraps lines.
reports() {
    tr -s ' \n' '  ' <configure.log | grep -qF -- "$1" || fail "no text: $1"
}

# tests_are WORD: the tests are built, or not.
tests_are() {
    local got=out
    grep -q 'add_test' out/tests/CTestTestfile.cmake 2>/dev/null && got=in
    [ "$got" = "$1" ] || fail "the tests are $got"
}

# Without the libraries of the tests.
configure base || fail 'base packages do not suffice'
tests_are out
reports 'No libdeflate (Debian: libdeflate-dev)'
reports 'Search is left out for lack of: sqlite3 (Debian: libsqlite3-dev)'
reports 'Remotes are left out for lack of: curl (Debian: libcurl4-openssl-dev), '\
'expat (Debian: libexpat1-dev)'
reports 'The server is left out for lack of: microhttpd (Debian: libmicrohttpd-dev)'
! configure base -DAGENTWAL_TESTS=ON || fail 'AGENTWAL_TESTS=ON succeeds'
reports "AGENTWAL_TESTS=ON needs what was not found: cmocka \
(Debian: libcmocka-dev), jansson (Debian: libjansson-dev)"

# With them, also without pkg-config.
configure all || fail 'all libraries are there'
tests_are out
configure all -DAGENTWAL_TESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON || fail 'no pkg-config'
tests_are in

# Without the archive of SQLite, which the packages for languages carry.
cmake -S "$AGENTWAL_SOURCE" -B out_archive -G Ninja -DAGENTWAL_BENCH=OFF \
    -DAGENTWAL_NODE=ON -DAGENTWAL_PYTHON=ON -DAGENTWAL_STATIC_sqlite3=OFF \
    >configure.log 2>&1 || fail 'no libsqlite3.a'
for package in 'Node.js addon' 'Python extension'; do
    reports "The $package is built without full-text search for lack of \
libsqlite3.a. On Debian or Ubuntu: apt-get install libsqlite3-dev"
done
cmake --build out_archive --target \
    bindings/node/CMakeFiles/agentwal_node.dir/native/search/missing.c.o \
    bindings/python/CMakeFiles/agentwal_python.dir/src/search/missing.c.o \
    >build.log || { tail -20 build.log && exit 1; }

# Without one of the engine's, and without all of them.
! configure no_lz4 || fail 'succeeds without lz4'
reports "agentwal needs libraries that were not found: lz4 (Debian: \
liblz4-dev). On Debian or Ubuntu: apt-get install liblz4-dev"
! grep -q 'zlib\|libcrypto' configure.log || fail 'reports more than lz4'
mkdir none
! configure none || fail 'succeeds without libraries'
reports "not found: lz4 (Debian: liblz4-dev), zlib (Debian: zlib1g-dev), \
libcrypto (Debian: libssl-dev), zstd (Debian: libzstd-dev). On Debian or \
Ubuntu: apt-get install liblz4-dev zlib1g-dev libssl-dev libzstd-dev"

# On another system, its own command and names; those of scripts too.
! configure no_lz4 -DAGENTWAL_INSTALLER=/usr/bin/dnf || fail 'succeeds without lz4'
reports 'lz4 (Debian: liblz4-dev). On this system: dnf install lz4-devel'
! configure none -DAGENTWAL_INSTALLER=/sbin/apk || fail 'succeeds without libraries'
reports 'On this system: apk add lz4-dev zlib-dev openssl-dev zstd-dev'
mkdir fedora
ln -s "$(command -v awk)" "$(command -v bash)" fedora
ln -s bash fedora/dnf
# shellcheck disable=SC2016  # for the other shell
! PATH=$PWD/fedora bash -c '. "$1"; deps_give_up "they are missing" libssl-dev gcc' \
    "$PWD/name" "$AGENTWAL_SOURCE/tools/deps.sh" 2>configure.log || fail 'gives no error'
reports 'name: they are missing; try: dnf install openssl-devel gcc'

# For a processor of 32 bits, and for a big-endian one.
one_archive=-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY # no program can be linked
rm -rf out
! configure base -DCMAKE_C_FLAGS=-m32 $one_archive || fail '32 bits suffice'
reports 'agentwal needs a processor of 64 bits, and a compiler for one'
rm -rf out
! configure base -DCMAKE_C_COMPILER=clang-14 $one_archive \
    -DCMAKE_C_COMPILER_TARGET=powerpc64-linux-gnu || fail 'big-endian suffices'
reports 'agentwal needs a little-endian processor'
rm -rf out

# Part of another project, which links either library and has no tests.
mkdir parent
cat >parent/CMakeLists.txt <<LISTS
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C)
add_subdirectory("$AGENTWAL_SOURCE" agentwal)
add_executable(by_shared program.c)
target_link_libraries(by_shared PRIVATE agentwal::agentwal)
add_executable(by_static program.c)
target_link_libraries(by_static PRIVATE agentwal::agentwal_static)
LISTS
cat >parent/program.c <<'PROGRAM'
#include <agentwal.h>
#include <stdio.h>

int main(void)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_store *store = NULL;

    options.flags = WAL_OPEN_CREATE;
    if (wal_open("store", &options, &store, &error) != WAL_OK ||
        wal_close(store, &error) != WAL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return puts(wal_version()) < 0;
}
PROGRAM
cmake -S parent -B out_parent -G Ninja -DCMAKE_C_FLAGS=-O0 \
    >configure.log 2>&1 || fail 'not as a part of another project'
! grep -q '^CMAKE_BUILD_TYPE:.*=.' out_parent/CMakeCache.txt ||
    fail 'the type of the build of the other project is changed'
[ ! -e out_parent/agentwal/tests ] || fail 'another project gets the tests'
cmake --build out_parent --target by_shared by_static >build.log ||
    { tail -20 build.log && exit 1; }
out_parent/by_shared
out_parent/by_static
