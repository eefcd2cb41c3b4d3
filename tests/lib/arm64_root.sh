#!/usr/bin/env bash
# arm64_root.sh FOLDER PACKAGE...: unpacks packages of Debian for arm64, with what they depend on,
# in the folder: the files of a system for tests/lib/emulated.sh. Nothing of this system changes.
# arm64_root.sh --kernel FILE: a kernel with pages of 16 KiB, which Debian 13 has.
set -euo pipefail

suite=bookworm
if [ "$1" = --kernel ]; then
    suite=trixie
    shift
fi
folder=$(realpath -m -- "$1")
shift
apt=$folder.apt
mkdir -p "$apt"/lists/partial "$apt"/archives/partial
: >"$apt/status"
printf 'deb [signed-by=%s] http://deb.debian.org/debian %s main\n' \
    /usr/share/keyrings/debian-archive-keyring.gpg "$suite" >"$apt/sources.list"
get=(apt-get -qq -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State=$apt" -o "Dir::State::Lists=$apt/lists" -o "Dir::State::status=$apt/status"
    -o "Dir::Cache=$apt" -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o APT::Install-Recommends=0 -o APT::Sandbox::User=root -o Debug::NoLocking=1)
[ -n "$(find "$apt/lists" -name '*_Packages*')" ] || "${get[@]}" update
if [ "$suite" = trixie ]; then
    name=$(apt-cache "${get[@]:2}" pkgnames linux-image-6 | grep -- '-16k$' | sort -V | tail -1)
    (cd "$apt" && "${get[@]}" download "$name")
    dpkg-deb --fsys-tarfile "$apt/$name"_*.deb |
        tar -xO --wildcards './boot/vmlinuz-*' >"$folder.new"
    mv "$folder.new" "$folder"
    exit
fi
mkdir -p "$folder"
"${get[@]}" -y --download-only install "$@" >/dev/null
for package in "$apt"/archives/*.deb; do
    [ -e "$package.unpacked" ] || { dpkg -x "$package" "$folder" && touch "$package.unpacked"; }
done
# Links to /... are of the folder.
find "$folder" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$folder$(readlink "$link")" "$link"
done
