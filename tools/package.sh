#!/usr/bin/env bash
# package.sh [--build TREE] [FOLDER]
#
# Builds agentwal for release and writes its packages to FOLDER, else to
# build/packages: nine for Debian and its derivatives, and an archive of the
# tools that runs on any Linux of this machine's processor.
#
# --build   the build directory, instead of build/package
#
# Installs missing build dependencies (Debian 12), as root or with sudo.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

build=
packages=
while [ $# -gt 0 ]; do
    case $1 in
    --build)
        build=$(realpath -m -- "${2:?--build needs a folder}")
        shift
        ;;
    -h | --help)
        sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    -*)
        printf 'package.sh: unknown option %s\n' "$1" >&2
        exit 2
        ;;
    *) packages=$(realpath -m -- "$1") ;;
    esac
    shift
done

deps_install "$deps_build
dpkg-dev        deps_command dpkg-shlibdeps
libsqlite3-dev  deps_library sqlite3 sqlite3.h
libcurl4-openssl-dev deps_library libcurl curl/curl.h
libexpat1-dev   deps_library expat expat.h
libmicrohttpd-dev deps_library libmicrohttpd microhttpd.h
"
: "${build:=$(deps_build_dir "$root" package)}"
: "${packages:=$(dirname "$build")/packages}"
mkdir -p "$build"
mkdir -p "$packages"

# run NAME COMMAND...: prints what the command wrote only if it fails.
run() {
    local log=$build/$1.log
    shift
    "$@" >"$log" 2>&1 || { cat "$log" >&2 && exit 1; }
}

# Under /usr the libraries are in Debian's folder of the processor.
run configure cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX=/usr
run build cmake --build "$build" -j "$(nproc)"
if grep -q 'CPACK_GENERATOR.*TGZ' "$build/CPackConfig.cmake"; then
    run portable cmake --build "$build" -j "$(nproc)" --target agentwal_portable
fi
run pack cmake -E chdir "$build" cpack -B "$packages"
rm -rf "$packages/_CPack_Packages"
find "$packages" -maxdepth 1 -type f -printf '%p %k KiB\n' | sort
