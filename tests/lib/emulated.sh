#!/usr/bin/env bash
# emulated.sh COMMAND...: runs it where programs of arm64 are run by qemu-user-static: in a
# namespace with its own table of formats, so that the system's stays as it is (Linux 6.7).
# QEMU_LD_PREFIX names the files of an arm64 system.
set -euo pipefail

# ELF, 64 bits, little-endian, a program or a library, AArch64; the emulator is opened now, for
# any root.
format=':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
format+=':\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
format+=':/usr/bin/qemu-aarch64-static:POCF'

# shellcheck disable=SC2016  # for the shell in the namespace
unshare --user --mount bash -c '
    until [ "$(id -u)" = 0 ]; do sleep 0.05; done
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    printf "%s" "$1" >/proc/sys/fs/binfmt_misc/register
    shift
    exec "$@"' bash "$format" "$@" <&0 &
# All users are in it, where this one may say so; else this one as root.
until [ "$(readlink "/proc/$!/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do
    sleep 0.05
done
if [ "$(id -u)" -eq 0 ]; then
    echo '0 0 65536' | tee "/proc/$!/gid_map" >"/proc/$!/uid_map"
else
    echo deny >"/proc/$!/setgroups"
    echo "0 $(id -g) 1" >"/proc/$!/gid_map"
    echo "0 $(id -u) 1" >"/proc/$!/uid_map"
fi
trap 'kill $!' TERM INT
wait $!
