#!/usr/bin/env bash
# The Node.js addon and the wheel for musl load where no other C library is, and pass their cases
# of conformance: with musl 1.2.3, the oldest of the wheel's name that Debian has, by a Python that
# is built with it, and by Bun for musl, for nobody publishes a Node.js for musl but as an archive
# of a web site. Of the library of C++ Bun has what Debian's has, linked with musl.
set -euo pipefail

# shellcheck source=tools/deps.sh
. "$AGENTWAL_SOURCE/tools/deps.sh"
deps_install '
g++         deps_command g++
python3-pip deps_python pip'
target=x86_64-linux-musl
built=$AGENTWAL_BUILD/cross/$target
"$AGENTWAL_SOURCE/tools/cross.sh" --python --packages "$target" "$built"
prefix=$(sed -n 's/^AGENTWAL_CROSS_FOLDER:[A-Z]*=//p' "$built/CMakeCache.txt")/prefix

bun=$AGENTWAL_BUILD/cross/bun/package/bin/bun
if [ ! -e "$bun" ]; then
    npm pack --silent @oven/bun-linux-x64-musl@1.4.5
    mkdir -p "$AGENTWAL_BUILD/cross/bun"
    tar -xzf oven-*.tgz -C "$AGENTWAL_BUILD/cross/bun"
fi

mkdir -p root/{bin,lib,proc,dev,tmp,usr/lib/python3.11/lib-dynload,bindings,tests}
cp "$bun" "$prefix/bin/python3.11" root/bin
cp /usr/lib/x86_64-linux-musl/libc.so root/lib/ld-musl-x86_64.so.1
ln -s ld-musl-x86_64.so.1 root/lib/libc.musl-x86_64.so.1
printf '%s\n' 'char __libc_single_threaded;' 'unsigned arc4random(void) { return 4; }' \
    'int _dl_find_object(void *at, void *found) { return -1; }' >glibc.c
# shellcheck disable=SC2016  # of the shell that xargs starts
nm -D "$bun" | sed -n -e '/atexit\|finalize/d' \
    -e 's/.* [A-Za-z] \(_Z[A-Z0-9].*\|__dynamic_cast\|__cxa_.*\)$/-Wl,-u,\1/p' |
    xargs sh -c 'musl-gcc -shared -fPIC -o root/lib/libstdc++.so.6 glibc.c "$@" \
        -Wl,-soname,libstdc++.so.6 "$(g++ -print-file-name=libstdc++.a)" -lgcc_eh' sh

# The packages, as npm and pip unpack them, and what of Python is not of a processor.
"$AGENTWAL_SOURCE/bindings/node/pack.sh" --binary "$AGENTWAL_BUILD/node/agentwal.node" \
    --prebuilt "$built/release/linux-x64-musl.node" . >pack.log
tar -xzf agentwal-*.tgz -C root/bindings --transform 's,^package,node,'
/usr/bin/python3 -m pip install --quiet --no-index --no-deps --only-binary=:all: \
    --implementation cp --platform musllinux_1_2_x86_64 --target root/python "$built"/release/*.whl
(cd /usr/lib/python3.11 && find . -name '*.py' -not -path './test/*' -exec cp --parents -t \
    "$OLDPWD/root/usr/lib/python3.11" {} +)
cp "$AGENTWAL_SOURCE"/bindings/*.json root/bindings
cp -r "$AGENTWAL_SOURCE/tests/conformance" root/tests

# inside FOLDER COMMAND...
inside() {
    # shellcheck disable=SC2016  # for the shell in the namespace
    unshare --user --map-root-user --mount bash -c '
        mount --rbind /proc root/proc && mount --rbind /dev root/dev && mkdir "root$1" &&
            HOME=/tmp TMPDIR=/tmp PYTHONPATH=/python exec chroot root "${@:2}"' bash "$@"
}
for cases in conformance conformance_search; do
    inside "/bun-$cases" /bin/bun -e "process.chdir('/bun-$cases');
        process.argv[2] = '/bindings/$cases.json';
        await import('/tests/conformance/conformance.mjs')"
    inside "/python-$cases" /bin/python3.11 -B -c "import os, runpy, sys
os.chdir('/python-$cases')
sys.argv[1:] = ['/bindings/$cases.json']
runpy.run_path('/tests/conformance/conformance.py', run_name='__main__')"
done
