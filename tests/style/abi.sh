#!/usr/bin/env bash
# The binary interface is what engine/abi describes, and abi.py distinguishes
# additions from changes that break programs: of small libraries, which it
# compiles in no time.
set -euo pipefail

"$AGENTWAL_SOURCE/engine/abi/abi.py" check

fail() {
    printf 'abi.sh: %s\n' "$*" >&2
    exit 1
}

abi() {
    AGENTWAL_SOURCE=$PWD/sources sources/engine/abi/abi.py "$1" >output 2>&1
}

mkdir -p small/{engine,convert}/include/agentwal small/engine/abi
cp "$AGENTWAL_SOURCE"/engine/abi/{abi.py,compatible.suppr} small/engine/abi/
cp "$AGENTWAL_SOURCE/engine/libagentwal.map" small/engine/
cp "$AGENTWAL_SOURCE/convert/libagentwal-convert.map" small/convert/
echo 'project(small VERSION 0.2.0)' >small/CMakeLists.txt
cat >small/engine/include/agentwal.h <<'HEADER'
#pragma once
#include <stddef.h>
#include <stdint.h>
#define WAL_API __attribute__((visibility("default")))
enum wal_status { WAL_OK = 0, WAL_ENOTFOUND = -2 };
enum wal_append_flags { WAL_APPEND_NO_WAIT = 1u << 1, WAL_APPEND_EXPECT = 1u << 8 };
struct wal_slice {
    const void *data;
    size_t size;
};
struct wal_append_result {
    uint32_t struct_size;
    uint32_t appended;
    uint64_t sequence;
    char last_id[65];
};
WAL_API enum wal_status wal_append(struct wal_slice id, struct wal_append_result *result);
WAL_API const char *wal_version(void);
HEADER
cat >small/engine/all.c <<'SOURCE'
#include <agentwal.h>

enum wal_status wal_append(struct wal_slice id, struct wal_append_result *result)
{
    return id.size > 0 && result != NULL ? WAL_OK : WAL_ENOTFOUND;
}

const char *wal_version(void)
{
    return "0.2.0";
}
SOURCE
cat >small/convert/include/agentwal/view.h <<'HEADER'
#include <agentwal.h>
WAL_API int wal_view_close(struct wal_slice *slice);
HEADER
cat >small/convert/all.c <<'SOURCE'
#include <agentwal/view.h>

int wal_view_close(struct wal_slice *slice)
{
    return slice == NULL;
}
SOURCE
cp -r small sources
abi renew || fail 'nothing is described'
abi check || fail 'described, and different'
cp sources/engine/abi/* small/engine/abi/

# change FILE SED: a change of the copied sources.
change() {
    sed -i "$2" "sources/$1"
    ! cmp -s "sources/$1" "small/$1" || fail "no change: $2"
}

# changed FILE SED: the sources with this change alone.
changed() {
    rm -rf sources
    cp -r small sources
    change "$@"
}

# reports TEXT: check fails with that text.
reports() {
    ! abi check || fail "no difference: $1"
    tr '\n' ' ' <output | grep -qF "$1" || { cat output && fail "no text: $1"; }
}

incompatible() {
    changed "$@"
    reports 'changed incompatibly'
}

header=engine/include/agentwal.h
last='s/^    char last_id.*/&\n    uint64_t extra;/'
changed $header "$last"
change $header 's/WAL_APPEND_EXPECT = 1u << 8/&, WAL_APPEND_NEW = 1u << 9/'
change $header 's/^WAL_API const char .*/&\nWAL_API int wal_new(void);/'
# shellcheck disable=SC2016  # an address of sed
change engine/all.c '$a int wal_new(void)\n{\n    return 0;\n}'
reports 'compatible additions'
abi renew || fail 'additions are refused'
abi check || fail 'renewed, and different'

incompatible $header 's/^    uint32_t appended;/    uint64_t extra;\n&/'
incompatible $header "$last; s/uint64_t sequence;/double sequence;/"
incompatible $header 's/^    const void \*data;/&\n    uint64_t extra;/'
incompatible $header 's/WAL_APPEND_NO_WAIT = 1u << 1/WAL_APPEND_NO_WAIT = 1u << 2/'
incompatible $header 's/WAL_ENOTFOUND = -2 /WAL_ENOTFOUND = -77 /'
changed convert/include/agentwal/view.h 's/slice);/slice, int more);/'
change convert/all.c 's/slice)/slice, int more)/; s/== NULL/== NULL \&\& more/'
reports 'changed incompatibly'
incompatible engine/libagentwal.map 's/^local:/local: wal_version;/'
! abi renew || fail 'an incompatible change is renewed within one soname'

# With another soname everything may change.
changed CMakeLists.txt 's/VERSION 0\.2\..*/VERSION 0.99.0)/'
reports 'changed incompatibly'
abi renew || fail 'a new minor version is refused'
abi check || fail 'renewed with a new minor version, and different'
