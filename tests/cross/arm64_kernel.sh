#!/usr/bin/env bash
# arm64_kernel.sh [PROGRAM]...: the programs of tests pass on arm64 with pages of 16 KiB: a kernel
# of Debian 13 in an emulated machine, whose files are all in memory. Without an argument, those
# whose tests meet pages, processes or the kernel's calls.
#
# An emulated processor does not reorder what a real one may.
set -euo pipefail

programs=("$@")
[ $# -gt 0 ] || programs=(unit_base test_io_posix test_worktree_posix unit_session unit_store
    unit_write unit_format golden crash)
seconds=$((${AGENTWAL_LONG:-0} ? 7200 : 1200))

fail() {
    printf 'arm64_kernel.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=tools/deps.sh
. "$AGENTWAL_SOURCE/tools/deps.sh"
deps_install '
qemu-system-arm deps_command qemu-system-aarch64
cpio            deps_command cpio'
files=$AGENTWAL_BUILD/cross/arm64-root
"$AGENTWAL_SOURCE/tests/lib/arm64_root.sh" "$files" libc6 libc-bin libstdc++6 nodejs python3 \
    busybox-static
built=$AGENTWAL_BUILD/cross/aarch64-linux-gnu
"$AGENTWAL_SOURCE/tools/cross.sh" --tests aarch64-linux-gnu "$built"
kernel=$AGENTWAL_BUILD/cross/kernel-16k
[ -e "$kernel" ] || "$AGENTWAL_SOURCE/tests/lib/arm64_root.sh" --kernel "$kernel"

# What the machine has: its first program runs the tests, each in an empty folder.
mkdir -p root/{bin,lib,usr/lib/locale,proc,sys,dev,tmp,tests}
cp "$files/bin/busybox" root/bin
cp -r "$files/lib/." root/lib
cp -r "$files/usr/lib/locale/C.utf8" root/usr/lib/locale
mkdir -p "root$AGENTWAL_SOURCE/tests" "root$built/bin"
cp -r "$AGENTWAL_SOURCE/tests/golden" "root$AGENTWAL_SOURCE/tests"
cp "$built"/bin/* "root$built/bin"
for program in "${programs[@]}"; do
    cp "$built/tests/$program" root/tests
done
cat >root/init <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin AGENTWAL_SOURCE=$AGENTWAL_SOURCE WALBIN=$built/bin AGENTWAL_BUILD=$built
export AGENTWAL_STRIDE=8 TMPDIR=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm; mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm
grep -m 1 KernelPageSize /proc/self/smaps
for program in ${programs[*]}; do
    mkdir -p /tmp/work; cd /tmp/work
    begun=\$(cut -d . -f 1 /proc/uptime)
    /tests/\$program >/tmp/log 2>&1
    echo "RESULT \$program \$? after \$((\$(cut -d . -f 1 /proc/uptime) - begun)) s"
    grep -E 'ERROR|LINE|FAILED' /tmp/log
    cd /; rm -rf /tmp/work
done
echo END
poweroff -f
INIT
chmod +x root/init
(cd root && find . | cpio --quiet -o -H newc | gzip -1) >initramfs
timeout "$seconds" qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 -m 4G -display none \
    -monitor none -serial file:console -nic none -no-reboot -kernel "$kernel" -initrd initramfs \
    -append 'console=ttyAMA0 quiet mitigations=off' </dev/null
sed -i 's/\r//' console
grep -E '^(RESULT|END)|Page|ERROR|LINE|FAILED' console || tail -30 console
grep -q 'KernelPageSize: *16 kB' console || fail 'the pages are not of 16 KiB'
grep -q '^END' console || fail 'the machine did not end'
[ "$(grep -c '^RESULT [a-z_]* 0 ' console)" = "${#programs[@]}" ] || fail 'a program failed'
