#!/usr/bin/env bash
# The binary interface is what engine/abi describes, and abi.py distinguishes
# additions from changes that break programs.
set -euo pipefail

"$AGENTWAL_SOURCE/engine/abi/abi.py" check

# change FILE SED: a change of the copied sources.
change() {
    sed -i "$2" "sources/$1"
    ! cmp -s "sources/$1" "$AGENTWAL_SOURCE/$1" || fail "no change: $2"
}

# changed FILE SED: the sources with this change alone.
changed() {
    rm -rf sources
    mkdir sources
    cp -r "$AGENTWAL_SOURCE"/{CMakeLists.txt,engine,format,convert} sources/
    change "$@"
}

fail() {
    printf 'abi.sh: %s\n' "$*" >&2
    exit 1
}

# reports TEXT: check fails with that text.
reports() {
    ! AGENTWAL_SOURCE=$PWD/sources sources/engine/abi/abi.py check \
        >output 2>&1 || fail "no difference: $1"
    tr '\n' ' ' <output | grep -qF "$1" || { cat output && fail "no text: $1"; }
}

renew() {
    AGENTWAL_SOURCE=$PWD/sources sources/engine/abi/abi.py renew 2>output
}

incompatible() {
    changed "$@"
    reports 'changed incompatibly'
}

header=engine/include/agentwal.h
last='s/^    char last_id\[WAL_ID_SIZE\];.*/&\n    uint64_t extra;/'
changed $header "$last"
change $header 's/^    WAL_APPEND_EXPECT = .*/&\n    WAL_APPEND_NEW = 1u << 9,/'
# shellcheck disable=SC2016  # an address of sed
change engine/base/error.c \
    '$a WAL_API int wal_new(void);\nint wal_new(void)\n{\n    return 0;\n}'
reports 'compatible additions'
renew || fail 'additions are refused'
AGENTWAL_SOURCE=$PWD/sources sources/engine/abi/abi.py check ||
    fail 'renewed, and different'

incompatible $header 's/^    uint32_t appended;.*/    uint64_t extra;\n&/'
incompatible $header "$last; s/^    uint64_t sequence;         [^ ]/    double sequence; &/
    s/double sequence;     *uint64_t sequence;/double sequence;/"
incompatible $header 's/^    const void \*data;/&\n    uint64_t extra;/'
incompatible $header 's/WAL_APPEND_NO_WAIT = 1u << 1/WAL_APPEND_NO_WAIT = 1u << 2/'
incompatible $header 's/WAL_ENOTFOUND = -2,/WAL_ENOTFOUND = -77,/'
incompatible engine/libagentwal.map 's/^local:/local: wal_version;/'
! renew || fail 'an incompatible change is renewed within one soname'

# With another soname everything may change.
changed CMakeLists.txt 's/^  VERSION 0\.2\..*/  VERSION 0.99.0/'
reports 'changed incompatibly'
renew || fail 'a new minor version is refused'
