#!/usr/bin/env bash
# release.sh [--tag] [--cross] [FOLDER]
#
# Makes a release of the present commit in FOLDER, which must be new, else in
# build/release: clones it, makes all packages in the clone with tools/package.sh,
# and adds the archive of the sources and SHA256SUMS. Needs a work tree without
# changes, and a section of the version in CHANGELOG.md.
#
# --tag     then tag the commit as vVERSION
# --cross   also the packages of other systems (tools/package.sh)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tools/deps.sh
. "$root/tools/deps.sh"

with_tag=
options=()
folder=$root/build/release
while [ $# -gt 0 ]; do
    case $1 in
    --tag) with_tag=1 ;;
    --cross) options+=("$1") ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) quit 2 "unknown option $1 (see --help)" ;;
    *) folder=$(realpath -m -- "$1") ;;
    esac
    shift
done

version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' "$root/CMakeLists.txt")
tag=v$version
git -C "$root" diff-index --quiet HEAD -- || quit 1 'the work tree has changes: commit them'
grep -qx "## $version" "$root/CHANGELOG.md" || quit 1 "CHANGELOG.md has no section $version"
! git -C "$root" rev-parse -q --verify "refs/tags/$tag" >/dev/null ||
    [ "$(git -C "$root" rev-parse "$tag^{commit}")" = "$(git -C "$root" rev-parse HEAD)" ] ||
    quit 1 "$tag is another commit"
[ ! -e "$folder" ] || quit 1 "$folder: exists; name a new folder"

work=$(mktemp -d "${TMPDIR:-/tmp}/agentwal-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
printf 'Cloning %s of %s ...\n' "$(git -C "$root" rev-parse --short HEAD)" "$root"
git clone -q "$root" "$work/agentwal"
git -C "$work/agentwal" -c advice.detachedHead=false checkout -q \
    "$(git -C "$root" rev-parse HEAD)"
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
"$work/agentwal/tools/package.sh" --build "$work/build" "${options[@]}" "$folder"
git -C "$root" archive --prefix="agentwal-$version/" HEAD |
    gzip -9n >"$folder/agentwal-$version-source.tar.gz"
(cd "$folder" && find . -type f -printf '%P\n' | sort | xargs sha256sum >"$work/sums" &&
    mv "$work/sums" SHA256SUMS)
if [ -n "$with_tag" ]; then
    git -C "$root" tag -f -a -m "agentwal $version" "$tag" >/dev/null
    printf 'Tagged as %s.\n' "$tag"
else
    printf 'Not tagged: git tag -a -m "agentwal %s" %s\n' "$version" "$tag"
fi
printf 'The release is in %s.\n' "$folder"
