# shellcheck shell=bash
# deps.sh - sourced by scripts: how they end, the packages that a build needs, and a
# build directory.

# usage: prints the comment at the head of the script.
usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
}

# quit CODE MESSAGE
quit() {
    printf '%s: %s\n' "${0##*/}" "$2" >&2
    exit "$1"
}

# PACKAGE PROBE...: the package is installed if the probe succeeds.
deps_build="
cmake           deps_cmake
ninja-build     deps_generator
gcc             deps_command gcc
libc6-dev       deps_header stdio.h
liblz4-dev      deps_library liblz4 lz4.h
zlib1g-dev      deps_library zlib zlib.h
libzstd-dev     deps_library libzstd zstd.h
libssl-dev      deps_library libcrypto openssl/evp.h
"

# shellcheck disable=SC2034  # used by scripts that source this file
deps_test="$deps_build
ninja-build         deps_command ninja
pkg-config          deps_command pkg-config
g++                 deps_command g++
clang-14            deps_command clang-14
libclang-rt-14-dev  deps_sanitizer
clang-format-14     deps_command clang-format-14
clang-tidy-14       deps_command clang-tidy-14
libcmocka-dev       deps_library cmocka cmocka.h
libjansson-dev      deps_library jansson jansson.h
libdeflate-dev      deps_library libdeflate libdeflate.h
libsqlite3-dev      deps_library sqlite3 sqlite3.h
libcurl4-openssl-dev deps_library libcurl curl/curl.h
libexpat1-dev       deps_library expat expat.h
radosgw             deps_command radosgw
ceph-mon            deps_command ceph-mon
ceph-osd            deps_command ceph-osd
ceph-common         deps_command ceph
libmicrohttpd-dev   deps_library libmicrohttpd microhttpd.h
libbenchmark-dev    deps_header benchmark/benchmark.h
python3             deps_command python3
curl                deps_command curl
python3-dev         deps_header python3.11/Python.h
python3-build       deps_python build
python3-wheel       deps_python wheel
python3-setuptools  deps_python setuptools
python3-installer   deps_python installer
python3-pytest      deps_python pytest
python3-mypy        deps_python mypy
shellcheck          deps_command shellcheck
zstd                deps_command zstd
strace              deps_command strace
git                 deps_command git
doxygen             deps_command doxygen
abigail-tools       deps_command abidiff
chromium            deps_command chromium
dpkg-dev            deps_command dpkg-shlibdeps
binutils            deps_command objdump
lintian             deps_command lintian
nodejs              deps_node
npm                 deps_command npm
"

# shellcheck disable=SC2034
deps_long="
libfuse3-dev        deps_library fuse3 fuse3/fuse.h
xfsprogs            deps_command mkfs.xfs
btrfs-progs         deps_command mkfs.btrfs
f2fs-tools          deps_command mkfs.f2fs
"

deps_command() {
    command -v "$1" >/dev/null 2>&1
}

deps_generator() {
    deps_command ninja || deps_command make
}

# deps_library MODULE HEADER: pkg-config is asked first, which knows libraries
# in other places, but it may not be installed.
deps_library() {
    pkg-config --exists "$1" 2>/dev/null || deps_header "$2"
}

deps_header() {
    [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]
}

# A module of the system's Python, which may not be the first in PATH.
deps_python() {
    (cd / && /usr/bin/python3 -c "import $1" 2>/dev/null)
}

deps_cmake() {
    local version
    version=$(cmake --version 2>/dev/null | awk 'NR == 1 { print $3 }') &&
        [ -n "$version" ] &&
        printf '3.22\n%s\n' "$version" | sort -V -C
}

deps_node() {
    node -e 'const [major, minor] = process.versions.node.split(".");
        process.exit(major > 18 || (major == 18 && minor >= 17) ? 0 : 1);' \
        2>/dev/null
}

deps_sanitizer() {
    local dir
    dir=$(clang-14 -print-resource-dir 2>/dev/null) &&
        [ -n "$(find "$dir/lib" -name 'libclang_rt.asan*.a' 2>/dev/null)" ]
}

# deps_missing LIST: prints the packages of the list that are not installed.
deps_missing() {
    local package probe
    while read -r package probe; do
        if [ -n "$package" ] && ! $probe; then
            printf '%s\n' "$package"
        fi
    done <<<"$1" | sort -u
}

# deps_install LIST: installs missing packages; on failure prints their names
# and exits with 3.
deps_install() {
    local missing=() as_root=() left=()
    mapfile -t missing < <(deps_missing "$1")
    if [ "${#missing[@]}" -eq 0 ]; then
        return
    fi

    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo)
        [ -t 0 ] || as_root+=(-n)
    fi
    if ! deps_command apt-get; then
        deps_give_up "they are not found, and apt-get is not there" "${missing[@]}"
    fi
    if [ "${#as_root[@]}" -ne 0 ] &&
        ! { deps_command sudo && "${as_root[@]}" true; }; then
        deps_give_up "installing needs root or sudo" "${missing[@]}"
    fi

    printf 'Installing with apt-get: %s\n' "${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get
        -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    "${apt[@]}" update ||
        deps_give_up "apt-get update failed" "${missing[@]}"
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" \
        >/dev/null ||
        deps_give_up "apt-get install failed" "${missing[@]}"
    hash -r

    mapfile -t left < <(deps_missing "$1")
    if [ "${#left[@]}" -ne 0 ]; then
        deps_give_up "they are installed but not found" "${left[@]}"
    fi
}

# deps_give_up REASON PACKAGE...
deps_give_up() {
    local reason=$1 column=1 command='apt-get install' names=() name
    shift
    if ! deps_command apt-get; then
        if deps_command dnf; then
            column=2 command='dnf install'
        elif deps_command pacman; then
            column=3 command='pacman -S'
        elif deps_command apk; then
            column=4 command='apk add'
        elif deps_command brew; then
            column=5 command='brew install'
        fi
    fi
    for name; do
        mapfile -t -O "${#names[@]}" names < <(awk -v debian="$name" -v column="$column" \
            '$1 == debian { found = 1; if ($column != "-") print $column }
             END { if (!found) print debian }' "${BASH_SOURCE[0]%/*}/packages.txt")
    done
    printf '%s: missing packages: %s\n' "${0##*/}" "${names[*]}" >&2
    printf '%s: %s; try: %s %s\n' "${0##*/}" "$reason" "$command" "${names[*]}" >&2
    exit 3
}

# deps_build_dir ROOT NAME: prints a build directory: build/NAME if this user
# owns it and can write to it, else one in the user's cache, else a new temporary
# one. A directory that was configured for other sources is emptied.
deps_build_dir() {
    local root=$1 name=$2 dir key source
    key=$(printf '%s' "$root" | cksum | cut -d ' ' -f 1)
    for dir in "$root/build/$name" \
        "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/agentwal-build/$key/$name"; do
        if deps_usable "$dir"; then
            source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' \
                "$dir/CMakeCache.txt" 2>/dev/null) || true
            if [ -n "$source" ] && [ "$source" != "$root" ]; then
                rm -rf "$dir" && mkdir -p "$dir"
            fi
            printf '%s\n' "$dir"
            return
        fi
    done
    mktemp -d "${TMPDIR:-/tmp}/agentwal-build.XXXXXX"
}

# A directory that another user created is not used, not even by root.
deps_usable() {
    mkdir -p "$1" 2>/dev/null && [ -O "$1" ] && [ -w "$1" ]
}
