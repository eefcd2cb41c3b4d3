#!/usr/bin/env bash
# docs/images/demo.svg shows what the commands of docs/images/demo.txt print, and
# the images are well-formed.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"

images=$AGENTWAL_SOURCE/docs/images
"$images/record.py" "$WALBIN" >"$work/demo.svg"
diff "$images/demo.svg" "$work/demo.svg" >&2 ||
    fail "demo.svg is out of date: run docs/images/record.py"
for image in "$images"/*.svg; do
    python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' \
        "$image" || fail "$image is not well-formed"
done

# A command that fails, or that prints something else, is noticed.
mkdir -p "$work/docs/images" "$work/tools"
cp "$images/record.py" "$work/docs/images"
cp -r "$AGENTWAL_SOURCE/tools/example" "$work/tools"
echo 'agentwal show nothing' >"$work/docs/images/demo.txt"
code 1 "$work/docs/images/record.py" "$WALBIN"
sed 's/ list$/ list --limit 1/' "$images/demo.txt" >"$work/docs/images/demo.txt"
"$work/docs/images/record.py" "$WALBIN" >"$work/other.svg"
! cmp -s "$work/other.svg" "$images/demo.svg" ||
    fail "another output gives the same recording"
