#!/usr/bin/env bash
# arm64_root.sh FOLDER PACKAGE...: unpacks packages of Debian for arm64, with what they depend on,
# in the folder: the files of a system for tests/lib/emulated.sh. Nothing of this system changes.
set -euo pipefail

folder=$(realpath -m -- "$1")
shift
apt=$folder.apt
mkdir -p "$folder" "$apt"/lists/partial "$apt"/archives/partial
: >"$apt/status"
printf 'deb [signed-by=%s] http://deb.debian.org/debian bookworm main\n' \
    /usr/share/keyrings/debian-archive-keyring.gpg >"$apt/sources.list"
get=(apt-get -qq -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State=$apt" -o "Dir::State::Lists=$apt/lists" -o "Dir::State::status=$apt/status"
    -o "Dir::Cache=$apt" -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o APT::Install-Recommends=0 -o APT::Sandbox::User=root -o Debug::NoLocking=1)
[ -n "$(find "$apt/lists" -name '*_Packages*')" ] || "${get[@]}" update
"${get[@]}" -y --download-only install "$@" >/dev/null
for package in "$apt"/archives/*.deb; do
    [ -e "$package.unpacked" ] || { dpkg -x "$package" "$folder" && touch "$package.unpacked"; }
done
# Links to /... are of the folder.
find "$folder" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$folder$(readlink "$link")" "$link"
done
