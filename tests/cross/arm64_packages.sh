#!/usr/bin/env bash
# The packages of tools/cross.sh for arm64 are installed by apt in a system of Debian, whose
# programs an emulator runs: the quickstart and a search pass there, both bindings pass their cases
# of conformance, from the files of their packages alone, and removed they leave nothing.
set -euo pipefail

fail() {
    printf 'arm64_packages.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=tools/deps.sh
. "$AGENTWAL_SOURCE/tools/deps.sh"
deps_install '
qemu-user-static deps_command qemu-aarch64-static
mmdebstrap       deps_command mmdebstrap
python3-pip      deps_python pip'
emulated=$AGENTWAL_SOURCE/tests/lib/emulated.sh
built=$AGENTWAL_BUILD/cross/aarch64-linux-gnu
"$AGENTWAL_SOURCE/tools/cross.sh" --tests --packages aarch64-linux-gnu "$built"

# The system, which is kept, and so is the list of its files. It is made, and used, by root.
system=$AGENTWAL_BUILD/cross/arm64-system
if [ ! -e "$system.list" ]; then
    rm -rf "$system"
    "$emulated" mmdebstrap --quiet --mode=root --architectures=arm64 --variant=apt \
        --include=nodejs,python3 --skip=cleanup/apt/lists bookworm "$system" \
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
http://deb.debian.org/debian bookworm main" >system.log 2>&1 || { cat system.log && exit 1; }
    (cd "$system" && find etc usr -not -type d | sort) >system.list
    mv system.list "$system.list"
fi
inside() {
    # shellcheck disable=SC2016  # for the shell in the namespace
    "$emulated" bash -c 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" &&
        exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv \
            LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' "$system" "$@"
}
apt() {
    inside apt-get -qq -y -o APT::Sandbox::User=root -o APT::Install-Recommends=0 "$@" \
        >apt.log 2>&1 || { cat apt.log && fail "apt-get $*"; }
}

rm -rf "$system/srv"
mkdir "$system/srv"
apt update
cp "$built"/release/*.deb "$system/srv"
debs=("$system"/srv/*.deb)
apt install --reinstall "${debs[@]#"$system"}"

# What a newcomer does. quickstart.sh needs no part of the sources but tools.
version=$("$WALBIN/agentwal" --version)
[ "$(inside agentwal --version)" = "$version" ] || fail "the program is not $version"
cp -r "$AGENTWAL_SOURCE/tools" "$system/srv"
inside /srv/tools/quickstart.sh --bin /usr/bin --store /srv/store >output ||
    { cat output && fail 'quickstart.sh failed'; }
for command in list 'search cent' stats check; do
    # shellcheck disable=SC2086  # words
    inside agentwal --store /srv/store $command >output
    [ -s output ] || fail "agentwal $command prints nothing"
done

# The bindings, of what pip and npm unpack; pip knows the name of the system.
/usr/bin/python3 -m pip install --quiet --no-index --no-deps --only-binary=:all: \
    --implementation cp --platform manylinux_2_28_aarch64 --target "$system/srv/python" \
    "$built"/release/*.whl
mkdir -p "$system"/srv/{bindings,tests,conformance{,_search}-{node,python}}
"$AGENTWAL_SOURCE/bindings/node/pack.sh" --binary "$AGENTWAL_BUILD/node/agentwal.node" \
    --prebuilt "$built/release/linux-arm64.node" . >pack.log
tar -xzf agentwal-*.tgz -C "$system/srv/bindings" --transform 's,^package,node,'
cp "$AGENTWAL_SOURCE"/bindings/*.json "$system/srv/bindings"
cp -r "$AGENTWAL_SOURCE/tests/conformance" "$system/srv/tests"
for cases in conformance conformance_search; do
    inside env -C "/srv/$cases-node" node /srv/tests/conformance/conformance.mjs \
        "/srv/bindings/$cases.json"
    inside env -C "/srv/$cases-python" PYTHONPATH=/srv/python python3 -B \
        /srv/tests/conformance/conformance.py "/srv/bindings/$cases.json"
done

# shellcheck disable=SC2046  # words
apt purge --autoremove $(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Package; done)
(cd "$system" && find etc usr -not -type d | sort) | diff "$system.list" - ||
    fail 'the packages leave files'
