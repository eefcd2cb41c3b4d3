#!/usr/bin/env bash
# The Node.js addon for musl, also on arm64, which is emulated, and the wheel load where no other C
# library is, and pass their cases of conformance: with musl 1.2.3, the oldest of the wheel's name
# that Debian has, by a Python that is built with it, and by Bun for musl, for nobody publishes a
# Node.js for musl but on a web site. Of the library of C++ Bun has what Debian's has, linked with
# musl.
set -euo pipefail

# shellcheck source=tools/deps.sh
. "$AGENTWAL_SOURCE/tools/deps.sh"
deps_install '
g++              deps_command g++
qemu-user-static deps_command qemu-aarch64-static
python3-pip      deps_python pip'
arm64=$AGENTWAL_BUILD/cross/arm64-root
"$AGENTWAL_SOURCE/tests/lib/arm64_root.sh" "$arm64" musl libstdc++-12-dev

# make_root TARGET PROCESSOR LIBC LIBSTDC++: root/, with Bun for a processor by npm's name, and the
# package of Node.js as npm unpacks it.
make_root() {
    local built=$AGENTWAL_BUILD/cross/$1 bun=$AGENTWAL_BUILD/cross/bun-$2
    local loader=ld-musl-${1%%-*}.so.1
    "$AGENTWAL_SOURCE/tools/cross.sh" --packages ${python:+"$python"} "$1" "$built"
    if [ ! -e "$bun" ]; then
        npm pack --silent "@oven/bun-linux-$2-musl@1.4.5"
        tar -xzf "oven-bun-linux-$2-musl-1.4.5.tgz" package/bin/bun
        mv package/bin/bun "$bun"
    fi
    rm -rf root
    mkdir -p root/{bin,lib,proc,dev,tmp,bindings,tests}
    cp "$bun" root/bin/bun
    cp "$3" "root/lib/$loader"
    ln -s "$loader" "root/lib/libc.musl-${1%%-*}.so.1"
    printf '%s\n' 'char __libc_single_threaded;' 'unsigned arc4random(void) { return 4; }' >glibc.c
    cache=$(sed -n 's/^AGENTWAL_CROSS_FOLDER:[A-Z]*=//p' "$built/CMakeCache.txt")
    # shellcheck disable=SC2016  # of the shell that xargs starts
    nm -D "$bun" | sed -n -e '/atexit\|finalize/d' \
        -e 's/.* [A-Za-z] \(_Z[A-Z0-9].*\|__dynamic_cast\|__cxa_.*\)$/-Wl,-u,\1/p' |
        xargs sh -c '"$0" -shared -o root/lib/libstdc++.so.6 glibc.c "$@" -lunwind \
            -Wl,-soname,libstdc++.so.6' "$cache/bin/cc" "$4"
    "$AGENTWAL_SOURCE/bindings/node/pack.sh" --binary "$AGENTWAL_BUILD/node/agentwal.node" \
        --prebuilt "$built"/release/*.node . >pack.log
    tar -xzf agentwal-*.tgz -C root/bindings --transform 's,^package,node,'
    cp "$AGENTWAL_SOURCE"/bindings/*.json root/bindings
    cp -r "$AGENTWAL_SOURCE/tests/conformance" root/tests
}

# inside FOLDER COMMAND...
inside() {
    # shellcheck disable=SC2016  # for the shell in the namespace
    "${namespace[@]}" bash -c '
        mount --rbind /proc root/proc && mount --rbind /dev root/dev && mkdir "root$1" &&
            HOME=/tmp TMPDIR=/tmp PYTHONPATH=/python exec chroot root "${@:2}"' bash "$@"
}

by_bun() {
    inside "/bun-$1" /bin/bun -e "process.chdir('/bun-$1');
        process.argv[2] = '/bindings/$1.json';
        await import('/tests/conformance/conformance.mjs')"
}

by_python() {
    inside "/python-$1" /bin/python3.11 -B -c "import os, runpy, sys
os.chdir('/python-$1')
sys.argv[1:] = ['/bindings/$1.json']
runpy.run_path('/tests/conformance/conformance.py', run_name='__main__')"
}

namespace=("$AGENTWAL_SOURCE/tests/lib/emulated.sh")
make_root aarch64-linux-musl aarch64 "$arm64/lib/aarch64-linux-musl/libc.so" \
    "$arm64/usr/lib/gcc/aarch64-linux-gnu/12/libstdc++.a"
by_bun conformance
by_bun conformance_search

python=--python
namespace=(unshare --user --map-root-user --mount)
make_root x86_64-linux-musl x64 /usr/lib/x86_64-linux-musl/libc.so \
    "$(g++ -print-file-name=libstdc++.a)"
cp "$cache/prefix/bin/python3.11" root/bin
/usr/bin/python3 -m pip install --quiet --no-index --no-deps --only-binary=:all: \
    --implementation cp --platform musllinux_1_2_x86_64 --target root/python \
    "$AGENTWAL_BUILD"/cross/x86_64-linux-musl/release/*.whl
# What of Python is not of a processor.
mkdir -p root/usr/lib/python3.11/lib-dynload
(cd /usr/lib/python3.11 && find . -name '*.py' -not -path './test/*' -exec cp --parents -t \
    "$OLDPWD/root/usr/lib/python3.11" {} +)
for cases in conformance conformance_search; do
    by_bun "$cases"
    by_python "$cases"
done
