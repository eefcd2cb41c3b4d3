#!/usr/bin/env bash
# tools/quickstart.sh with a file, a folder, plain text, an empty file, and what
# it cannot read; and what tools/deps.sh finds missing.
# shellcheck source=tests/lib/cli.sh
. "$AGENTWAL_SOURCE/tests/lib/cli.sh"

quickstart=$AGENTWAL_SOURCE/tools/quickstart.sh
example=$AGENTWAL_SOURCE/tools/example/session.jsonl
unset AGENTWAL_STORE NO_COLOR
export HOME=$work
cd "$work"

# run CODE NAME ARGUMENT...: in an empty folder NAME.
run() {
    local expected=$1
    mkdir "$2"
    cd "$2"
    shift 2
    code "$expected" "$quickstart" --bin "$WALBIN" "$@"
    cd "$work"
}

# shows TEXT...: standard output has each.
shows() {
    local text
    for text; do
        grep -qF -- "$text" stdout || { cat stdout && fail "no text: $text"; }
    done
}

refuses() {
    grep -qF -- "$1" stderr || { cat stderr && fail "no text: $1"; }
    [ ! -s stdout ] || fail "prints something: $1"
}

headings='Import Tree Export Fork Rewind Check'
# whole: every part was shown, and nothing went wrong.
whole() {
    local heading
    for heading in $headings 'Go on'; do
        grep -qx "$heading" stdout || { cat stdout && fail "no $heading"; }
    done
    [ ! -s stderr ] || { cat stderr && fail 'prints to standard error'; }
    [ "$(wc -l <stdout)" -lt 100 ] || fail 'is long'
}

# The example, then a file with another name and a space.
run 0 example
whole
shows 'user: Decimal everywhere then.' 'files exported: 1; different' \
    'restored 1 file' 'sound: 2 sessions' "export PATH='$WALBIN':\$PATH" \
    "The store is $work/example/quickstart-store."
! grep -q $'\e' stdout || fail 'escapes into a file'
cp "$example" 'my session.jsonl'
run 0 file '../my session.jsonl'
whole
shows 'my session.jsonl' '1 session, 13 new entries, 0 known'

# The commands to continue with work as they are printed.
sed -n '/^Go on/,/agentwal help/s/^    //p' stdout >commands
same 5 "$(wc -l <commands)" 'the commands to continue with'
(cd / && PATH=/usr/bin:/bin bash -euo pipefail "$work/commands") >printed
grep -q 'One cent off' printed || fail 'no list of the sessions'
grep -q 'written to the fork' printed || fail 'no tree of the fork'

# It is made anew, unless it is not a store; a named one has to be new.
(cd file && "$quickstart" --bin "$WALBIN" >/dev/null) || fail 'a second time'
same 2 "$(agentwal --store file/quickstart-store list --json | wc -l)" 'the sessions'
mkdir -p other/quickstart-store
touch other/quickstart-store/precious
(cd other && code 2 "$quickstart" --bin "$WALBIN")
refuses 'exists, and is no store'
[ -e other/quickstart-store/precious ] || fail 'removed a file'
run 0 named --store "$work/kept"
shows "The store is $work/kept."
walcheck kept >/dev/null
run 2 again --store "$work/kept"
refuses 'exists; name a new folder'

# A folder with several sessions below it.
mkdir -p sessions/deeper
sed 's/0199d1c4-7a30/0199d1c4-7a31/' "$example" >sessions/deeper/other.jsonl
cp "$example" sessions/
run 0 folder "$work/sessions"
whole
shows 'files exported: 2; different' 'sound: 3 sessions'
mkdir nothing
run 1 nothing_in "$work/nothing"
grep -q 'nothing: has no session files' stderr || fail 'an empty folder'

# Plain text, and an empty file.
printf 'hello\nworld\n' >plain.txt
run 0 plain ../plain.txt
whole
: >empty.jsonl
run 2 empty ../empty.jsonl
refuses 'empty.jsonl: is empty'

# What cannot be read, and wrong arguments.
run 2 missing /nowhere/session.jsonl
refuses '/nowhere/session.jsonl: no such file or folder'
if [ "$(id -u)" -ne 0 ]; then
    cp "$example" secret.jsonl
    chmod 0 secret.jsonl
    run 2 unreadable "$work/secret.jsonl"
    refuses 'cannot be read'
fi
run 2 option --nope
refuses 'unknown option --nope'
run 2 no_folder --store
refuses '--store needs a folder'
code 2 "$quickstart" --bin "$work"
refuses 'has no agentwal'

# What is missing: nothing for lack of pkg-config alone, which a build does not
# need; of ninja and make one is enough.
mkdir path
for program in cmake gcc awk sort cat; do
    ln -s "$(command -v "$program")" path/
done
# missing LIST: the packages that are missing on that path.
missing() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    PATH=$work/path "$BASH" -c '. "$0"; deps_missing "${!1}"' \
        "$AGENTWAL_SOURCE/tools/deps.sh" "$1" | tr '\n' ' '
}
same 'ninja-build ' "$(missing deps_build)" 'missing without a generator'
ln -s "$(command -v ninja)" path/
same '' "$(missing deps_build)" 'missing without pkg-config'
case " $(missing deps_test)" in
*' lib'[lz]* | *' zlib'* | *libcmocka*) fail 'libraries without pkg-config' ;;
*' pkg-config '*) ;;
*) fail 'pkg-config is not missing for tests' ;;
esac
printf '#!/bin/sh\necho cmake version 3.21.4\n' >old
rm path/cmake
install -m 755 old path/cmake
same 'cmake ' "$(missing deps_build)" 'an old cmake'
printf '#!/bin/sh\necho cmake version 3.22.1\n' >path/cmake
same '' "$(missing deps_build)" 'cmake 3.22'
