#!/usr/bin/env bash
# An installed agentwal can be built against: with pkg-config, shared and
# static, and with find_package. A program that only keeps sessions needs
# libagentwal alone; one that converts them libagentwal-convert too.
set -euo pipefail

export DESTDIR=
prefix=$PWD/prefix
cmake --install "$AGENTWAL_BUILD" --prefix "$prefix" >install.log
package=$(dirname "$(find "$prefix" -name agentwal.pc)")
export PKG_CONFIG_PATH=$package
export LD_LIBRARY_PATH=$package/..

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

cat >convert.c <<'PROGRAM'
#include <agentwal/convert.h>
#include <agentwal/import.h>
#include <stdio.h>

int main(void)
{
    return puts(wal_version()) < 0 || puts(wal_view_dialect(0)) < 0 ||
           puts(wal_import_left_out_name(0)) < 0;
}
PROGRAM

read -ra flags <<<"$(pkg-config --cflags --libs agentwal)"
gcc -std=c11 -Wall -Werror program.c "${flags[@]}" -o shared
./shared
! readelf -d shared | grep 'agentwal-' || exit 1
! readelf -d "$package/../libagentwal.so" | grep 'NEEDED.*agentwal' || exit 1
read -ra flags <<<"$(pkg-config --cflags --libs agentwal-convert)"
gcc -std=c11 -Wall -Werror convert.c "${flags[@]}" -o convert
./convert

# Alone in its folder, which is searched first, the static library is taken.
mkdir alone
cp "$package"/../libagentwal{,-convert}.a alone
read -ra flags <<<"$(pkg-config --cflags --libs --static agentwal)"
gcc -std=c11 -Wall -Werror program.c -Lalone "${flags[@]}" -o static
env -u LD_LIBRARY_PATH ./static
read -ra flags <<<"$(pkg-config --cflags --libs --static agentwal-convert)"
gcc -std=c11 -Wall -Werror convert.c -Lalone "${flags[@]}" -o static_convert
env -u LD_LIBRARY_PATH ./static_convert

cat >CMakeLists.txt <<'LISTS'
cmake_minimum_required(VERSION 3.22)
project(program LANGUAGES C)
find_package(agentwal 0.2 REQUIRED COMPONENTS static convert)
add_executable(by_shared program.c)
target_link_libraries(by_shared PRIVATE agentwal::agentwal)
add_executable(by_static program.c)
target_link_libraries(by_static PRIVATE agentwal::agentwal_static)
add_executable(converts convert.c)
target_link_libraries(converts PRIVATE agentwal::agentwal_convert)
LISTS
cmake -S . -B out -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >configure.log
cmake --build out >build.log
out/by_shared
out/by_static
out/converts

cmake -S "$AGENTWAL_SOURCE/examples" -B examples -G Ninja \
    -DCMAKE_PREFIX_PATH="$prefix" >configure.log
cmake --build examples >build.log
printf 'hello\n' | examples/agent store | grep -qxF 'I wrote it down.'
printf 'hello\n' | examples/shared_agent store | grep -qF 'down. (end)'
