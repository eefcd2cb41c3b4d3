#!/usr/bin/env bash
# One version everywhere: in the project, the tools, the library, its soname and
# symbols, what pkg-config and find_package report, and the list of changes.
set -euo pipefail

fail() {
    printf 'version.sh: %s\n' "$*" >&2
    exit 1
}

# same GOT EXPECTED WHAT
same() {
    [ "$1" = "$2" ] || fail "$3 is '$1', not '$2'"
}

cd "$AGENTWAL_SOURCE"
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
major=${version%%.*} minor=${version#*.}
minor=${minor%%.*}
series=$major
[ "$major" -ne 0 ] || series=$major.$minor
same "$(wc -w <<<"$version")" 1 'the number of versions in CMakeLists.txt'

for tool in agentwal walcat walcheck; do
    same "$("$WALBIN/$tool" --version)" "$tool $version" "$tool --version"
done
same "$(sed -n 's/^#define AGENTWAL_VERSION "\(.*\)"/\1/p' engine/base/error.c)" \
    "$version" 'the version that engine/base/error.c falls back to'
same "$(sed -n 's/^version = "\(.*\)"/\1/p' bindings/python/pyproject.toml)" \
    "$version" 'the version of the Python package'

library=$AGENTWAL_BUILD/lib/libagentwal.so
same "$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')" \
    "libagentwal.so.$series" 'the soname'
same "$(readelf -p .dynstr "$library" | grep -o 'AGENTWAL_[0-9.]*' | sort -u)" \
    "AGENTWAL_$series" 'the version of the symbols'
grep -q "soname='libagentwal.so.$series'" engine/abi/libagentwal.abi ||
    fail 'engine/abi describes another soname: run engine/abi/abi.py renew'

for file in package.json package-lock.json; do
    same "$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "bindings/node/$file")" \
        "$version" "the version of bindings/node/$file"
done

same "$(PKG_CONFIG_PATH=$AGENTWAL_BUILD pkg-config --modversion agentwal)" \
    "$version" 'the version that pkg-config reports'

# find_package takes this minor version alone.
cat >"$TMPDIR/accepts.cmake" <<'SCRIPT'
include("${FILE}")
if(NOT PACKAGE_VERSION_COMPATIBLE)
  message(FATAL_ERROR "not compatible")
endif()
SCRIPT
accepts() {
    cmake "-DFILE=$AGENTWAL_BUILD/agentwalConfigVersion.cmake" \
        "-DPACKAGE_FIND_VERSION=$1" "-DPACKAGE_FIND_VERSION_MAJOR=${1%%.*}" \
        "-DPACKAGE_FIND_VERSION_MINOR=${1##*.}" -P "$TMPDIR/accepts.cmake" \
        >/dev/null 2>&1
}
accepts "$major.$minor" || fail "find_package refuses $major.$minor"
for other in "$major.$((minor + 1))" "$((major + 1)).$minor" 0.1; do
    ! accepts "$other" || fail "find_package accepts $other"
done

same "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -1)" "$version" \
    'the newest version of CHANGELOG.md'
