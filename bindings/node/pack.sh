#!/usr/bin/env bash
# pack.sh [--binary FILE] [--prebuilt FILE]... [FOLDER]
#
# Makes the npm package, agentwal-VERSION.tgz, in a folder (default: the current
# one). It has the binary for this system, without symbols, which build.sh
# makes, or FILE, and the licenses of what is linked into that; and those of other
# systems, which have their names, as linux-arm64-musl.node. It installs without a compiler
# and without a network.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
binary=
prebuilt=()
while [[ "${1:-}" == --* ]]; do
    case $1 in
    --binary) binary=$(realpath -e "${2:?--binary needs a file}") ;;
    --prebuilt) prebuilt+=("$(realpath -e "${2:?--prebuilt needs a file}")") ;;
    *)
        printf 'pack.sh: unknown option %s\n' "$1" >&2
        exit 2
        ;;
    esac
    shift 2
done
folder=$(realpath -e "${1:-.}")

if [ -z "$binary" ]; then
    "$here/build.sh"
    binary=$here/build/agentwal.node
fi
cd "$here"
mkdir -p prebuilds
rm -f prebuilds/*.node
objcopy --strip-all "$binary" "prebuilds/linux-$(node -p process.arch).node"
[ "${#prebuilt[@]}" -eq 0 ] || cp "${prebuilt[@]}" prebuilds
python3 ../generate.py declarations native/interface.txt records.d.ts
cp ../../LICENSE LICENSE
for library in libssl-dev liblz4-dev zlib1g-dev libzstd-dev libdeflate-dev libsqlite3-dev; do
    printf 'The binary contains code of %s:\n\n' "${library%-dev}"
    cat "/usr/share/doc/$library/copyright"
    printf '\n\n'
done >NOTICE

# What is packed: with the headers of the library, and without links that lead
# out of the package.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
node -p 'require("./package.json").files.join("\n")' |
    xargs cp -r --parents -t "$stage" package.json README.md
cp -r ../../engine/include "$stage/docs/include"
cp ../../convert/include/agentwal/*.h "$stage/docs/include/agentwal"
# shellcheck disable=SC2016  # Markdown
sed -i -E -e 's#\]\(\.\./\.\./LICENSE\)#](LICENSE)#g' \
    -e 's#\[([^]]*)\]\((\.\./){2}([^)]*)\)#\1 (`\3` of the sources)#g' \
    "$stage/README.md"
# shellcheck disable=SC2016  # Markdown
sed -i -E 's#\[([^]]*)\]\((\.\./){3}([^)]*)\)#\1 (`\3` of the sources)#g' \
    "$stage"/docs/*.md
(cd "$stage" && npm pack --silent --pack-destination "$folder")
