#!/usr/bin/env bash
# FIFOs, devices, directories and symbolic links in place of the files and
# directories of a store: no tool waits for them or follows them, each names
# what it found, and nothing is lost once the file is back.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

agentwal init
agentwal create --id one >"$work/id"
python3 - >"$work/entries" <<'PROGRAM'
import json
for i in range(1500):
    print(json.dumps({"id": "e%d" % i, "type": "message",
                      "payload": {"text": "x" * 900}}))
PROGRAM
split -l 300 --filter="agentwal append one" "$work/entries" >"$work/appended"
segments=("$store"/log/*.seg)
newest=log/${segments[-2]##*/}
indexes=("$store"/index/*.idx)
index=index/${indexes[0]##*/}
hurt=$work/hurt
entry='{"type":"message","payload":1}'

# place KIND NAME: puts something else in place of a file or directory.
place() {
    rm -rf "$hurt" "$work/other" "$work/away"
    cp -r "$store" "$hurt"
    mv "$hurt/$2" "$work/other"
    case $1 in
        fifo) mkfifo "$hurt/$2" ;;
        link) ln -s "$work/other" "$hurt/$2" ;;
        dangling) ln -s "$work/away" "$hurt/$2" ;;
        directory) mkdir "$hurt/$2" ;;
        file) : >"$hurt/$2" ;;
        device) mknod "$hurt/$2" c 1 5 2>"$work/stderr" || mkfifo "$hurt/$2" ;;
    esac
}
# back NAME: puts the file back, and checks that nothing was lost or followed.
back() {
    [ ! -e "$work/away" ] || fail "a dangling link was followed"
    rm -rf "${hurt:?}/$1"
    mv "$work/other" "$hurt/$1"
    code 0 walcheck "$hurt"
    same 1500 "$(walcat "$hurt" one | wc -l)" "entries after $1 is back"
}
# run COMMAND...: it must end within 20 seconds; its exit code is in $got.
run() {
    got=0
    timeout 20 "$@" >"$work/stdout" 2>"$work/stderr" <"$work/entry" || got=$?
    [ "$got" != 124 ] || fail "waits: $*"
}
# says TEXT: the last command reported it.
says() {
    cat "$work/stdout" "$work/stderr" | grep -q "$1" ||
        fail "no \"$1\": $(cat "$work/stdout" "$work/stderr")"
}
echo "$entry" >"$work/entry"

declare -A text=(
    [fifo]='a FIFO, a socket or a device' [device]='a FIFO, a socket or a device'
    [link]='a symbolic link' [dangling]='a symbolic link'
    [directory]='a directory' [file]='a file'
)
for kind in fifo device link dangling directory; do
    for name in LOCK MANIFEST "$newest" log/0000000000000001.seg; do
        place $kind "$name"
        run agentwal --store "$hurt" append one
        [ "$got" -ne 0 ] || fail "append with a $kind as $name"
        says "${text[$kind]}"
        run walcheck "$hurt"
        same 1 "$got" "walcheck with a $kind as $name: $(cat "$work/stdout")"
        says "$name: .*${text[$kind]}"
        run walcheck --salvage "$work/out" "$hurt"
        rm -rf "$work/out"
        run walcat --frames "$hurt"
        case $name in log/*) says "${text[$kind]}" ;; esac
        back "$name"
    done
done
for kind in fifo device link dangling file; do
    for name in log index; do
        place $kind "$name"
        run agentwal --store "$hurt" append one
        [ "$got" -ne 0 ] || fail "append with a $kind as $name"
        says "${text[$kind]} is in place of the directory"
        run walcheck "$hurt"
        same 1 "$got" "walcheck with a $kind as $name"
        says "$name: .*cannot be read"
        run walcheck --salvage "$work/out" "$hurt"
        rm -rf "$work/out"
        run walcat --frames "$hurt"
        back "$name"
    done
done

# A derived file is built again; what is in its place is not followed.
for kind in fifo device link dangling directory; do
    for name in "$index" index/catalogue; do
        place $kind "$name"
        cp "$work/other" "$work/kept"
        run walcheck "$hurt"
        same 0 "$got" "walcheck with a $kind as $name"
        says "note: $name: .*${text[$kind]}"
        run agentwal --store "$hurt" append one
        same 0 "$got" "append with a $kind as $name"
        cmp "$work/other" "$work/kept" || fail "the target of a $kind was written"
        [ ! -e "$work/away" ] || fail "a dangling link was followed"
        same 1501 "$(walcat "$hurt" one | wc -l)" "entries with a $kind as $name"
    done
done

# The store itself may be named by a link, and a segment that is an operand.
ln -s "$store" "$work/named"
code 0 walcheck "$work/named"
ln -s "${segments[0]}" "$work/segment"
code 0 walcat --frames "$work/segment"

# A directory that others may write to.
for mode in 777 1777 757; do
    mkdir "$work/shared$mode"
    chmod $mode "$work/shared$mode"
    code 0 agentwal --store "$work/shared$mode" init
    grep -q 'warning: other users may write' "$work/stderr" || fail "mode $mode"
done
for mode in 700 755; do
    mkdir "$work/own$mode"
    chmod $mode "$work/own$mode"
    code 0 agentwal --store "$work/own$mode" init
    same "agentwal: $work/own$mode: created this store" "$(cat "$work/stderr")" \
        "a warning for mode $mode"
done
