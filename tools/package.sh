#!/usr/bin/env bash
# package.sh [--build TREE] [--cross] [FOLDER]
#
# Builds agentwal for release and writes its packages to FOLDER, else to
# build/packages: ten for Debian and its derivatives, of which agentwal is the
# command line and agentwal-all needs all others; an archive of the tools that
# runs on any Linux of this machine's processor; and the packages of Node.js and
# Python. Says each step; all take three minutes on 2 cores.
#
# --build   the build directory, instead of build/package
# --cross   also what tools/cross.sh makes for arm64, musl and macOS; the package of Node.js
#           has the binaries of all
#
# Installs missing build dependencies (Debian 12), as root or with sudo.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

build=
packages=
targets=()
while [ $# -gt 0 ]; do
    case $1 in
    --build)
        build=$(realpath -m -- "${2:?--build needs a folder}")
        shift
        ;;
    --cross)
        targets=(aarch64-linux-gnu x86_64-linux-musl aarch64-linux-musl aarch64-macos x86_64-macos)
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) quit 2 "unknown option $1 (see --help)" ;;
    *) packages=$(realpath -m -- "$1") ;;
    esac
    shift
done

deps_install "$deps_build
dpkg-dev        deps_command dpkg-shlibdeps
binutils        deps_command objcopy
libdeflate-dev  deps_library libdeflate libdeflate.h
libsqlite3-dev  deps_library sqlite3 sqlite3.h
libcurl4-openssl-dev deps_library libcurl curl/curl.h
libexpat1-dev   deps_library expat expat.h
libmicrohttpd-dev deps_library libmicrohttpd microhttpd.h
nodejs          deps_node
npm             deps_command npm
python3-dev     deps_header python3.11/Python.h
python3-build   deps_python build
python3-wheel   deps_python wheel
python3-setuptools deps_python setuptools
"
: "${build:=$(deps_build_dir "$root" package)}"
: "${packages:=$(dirname "$build")/packages}"
mkdir -p "$build"
mkdir -p "$packages"

# step NAME SENTENCE COMMAND...: prints the sentence, and what the command wrote only
# if it fails.
step() {
    local log=$build/$1.log
    printf '%s ...\n' "$2"
    shift 2
    "$@" >"$log" 2>&1 || { cat "$log" >&2 && exit 1; }
}

# The headers of the addon are one of its packages for development.
headers() {
    [ -e /usr/include/node/node_api.h ] ||
        [ -e "$root/bindings/node/node_modules/node-api-headers" ] ||
        (cd "$root/bindings/node" && npm ci --no-progress)
}

# The wheel, of a copy of its sources.
wheel() {
    rm -rf "$build/wheel"
    cp -r "$root/bindings/python" "$build/wheel"
    objcopy --strip-unneeded "$build/python/agentwal/_wal.abi3.so" "$build/_wal.abi3.so"
    AGENTWAL_SOURCE=$root AGENTWAL_PREBUILT=$build/_wal.abi3.so \
        /usr/bin/python3 -m build --no-isolation --wheel --outdir "$packages" "$build/wheel"
}

# Under /usr the libraries are in Debian's folder of the processor.
step headers 'Looking for the headers of Node.js' headers
step configure "Configuring in $build" \
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
    -DAGENTWAL_NODE=ON -DAGENTWAL_PYTHON=ON
step build 'Building, which takes two minutes the first time' \
    cmake --build "$build" -j "$(nproc)"
if grep -q 'CPACK_GENERATOR.*TGZ' "$build/CPackConfig.cmake"; then
    step portable 'Linking the program that needs no libraries' \
        cmake --build "$build" -j "$(nproc)" --target agentwal_portable
fi
step pack 'Making the packages of Debian, and the archive' \
    cmake -E chdir "$build" cpack -B "$packages"
rm -rf "$packages/_CPack_Packages"
prebuilt=()
for target in "${targets[@]}"; do
    step "$target" "Building for $target" \
        "$root/tools/cross.sh" --packages "$target" "$build/cross/$target"
    find "$build/cross/$target/release" -type f -not -name '*.node' -exec cp -t "$packages" {} +
    prebuilt+=(--prebuilt "$build/cross/$target/release"/*.node)
done
step npm 'Making the package of Node.js' \
    "$root/bindings/node/pack.sh" --binary "$build/node/agentwal.node" "${prebuilt[@]}" "$packages"
step wheel 'Making the package of Python' wheel
find "$packages" -maxdepth 1 -type f -printf '%p %k KiB\n' | sort
printf 'To install the command line: apt install %s\n' "$packages"/agentwal_*.deb
printf 'To install everything for C: apt install %s/*.deb\n' "$packages"
