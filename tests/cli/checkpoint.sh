#!/usr/bin/env bash
# agentwal checkpoint, checkpoints, checkpoint-show, -diff, -delete,
# checkpointing and rewind; checkpoints in the output of show and stats.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/cli.sh"
export AGENTWAL_STORE=$store

tree=$(realpath "$work")/tree
mkdir -p "$tree/src"
agentwal init
agentwal create --id s --cwd "$tree" >/dev/null
cd "$tree"

# names SESSION ID: the files of a checkpoint, sorted, as kind:path.
names() {
    agentwal checkpoint-show --json "$1" "$2" | python3 -c '
import json, sys
print(*("%s:%s" % (row["kind"], row["path"])
        for row in map(json.loads, sys.stdin)))'
}
# every: all files of the work tree with their contents, to compare states.
every() {
    (cd "$tree" && find . -type f -exec sha256sum {} + &&
        find . -printf '%p %m %y %l\n') | sort
}

# Without checkpoints the output does not mention them.
agentwal show --json s | json '"changes" not in rows[0]'
agentwal stats --json | json '
    rows[0]["checkpoints"] == [] and rows[0]["packSegments"] == 0'
same "" "$(agentwal checkpoints --json s)" "checkpoints of a new session"

# Files of every kind; relative, absolute, and from a list.
printf 'a\nb\nc\n' >a.txt
printf '#!/bin/sh\n' >run.sh
chmod 755 run.sh
printf 'deep\n' >src/deep.c
: >empty
printf '\0\1' >binary
ln -s a.txt link
odd=$'odd\n\xff'
printf 'odd\n' >"$odd"
printf 'dash\n' >-dash
agentwal checkpoint --json s one a.txt run.sh "$tree/src/deep.c" empty binary \
    link none "$odd" -- -dash >"$work/result"
json 'rows[0]["checkpointId"] == "one" and rows[0]["files"] == 9
    and rows[0]["bytes"] == 6 + 10 + 5 + 2 + 5 + 4 + 5
    and rows[0]["newBlobs"] == 8 and rows[0]["newBytes"] > 0' "$work/result"
agentwal checkpoint-show --json s one | json '
    {r["path"]: (r["kind"], r.get("mode"), r["size"]) for r in rows} == {
    "-dash": ("file", "0644", 5), "a.txt": ("file", "0644", 6),
    "binary": ("file", "0644", 2), "empty": ("file", "0644", 0),
    "link": ("symlink", None, 5), "none": ("absent", None, 0),
    "odd\n\ufffd": ("file", "0644", 4), "run.sh": ("file", "0755", 10),
    "src/deep.c": ("file", "0644", 5)}
    and [r["pathHex"] for r in rows if "pathHex" in r] == ["6f64640aff"]'
agentwal checkpoint-show --json s one >"$work/result"
same "$(sha256sum <a.txt | cut -d' ' -f1)" \
    "$(sed -n 's/.*"a.txt".*"hash":"\([0-9a-f]*\)".*/\1/p' "$work/result")" \
    "the hash of a file"
agentwal checkpoint-show s one | grep -q 'odd\\x0a\\xff$' ||
    fail "an odd name as text"

# Relative names: the current directory, or the root when that is given or the
# current directory is not below it.
(cd src && agentwal checkpoint s below deep.c >/dev/null)
same file:src/deep.c "$(names s below)" "a name in a directory"
(cd src && agentwal checkpoint s above --root .. deep.c >/dev/null)
same absent:deep.c "$(names s above)" "a name below --root"
(cd / && agentwal checkpoint s away src/deep.c >/dev/null)
same file:src/deep.c "$(names s away)" "a name from elsewhere"
ln -s "$tree" "$work/alias"
(cd "$work/alias/src" && agentwal checkpoint s alias deep.c >/dev/null)
same file:src/deep.c "$(names s alias)" "a name through an alias"

# Through a link to a directory, also to the current one; a file with two names once.
ln -s src linked
agentwal checkpoint s through linked/deep.c src/deep.c >/dev/null
(cd linked && agentwal checkpoint s through none.c >/dev/null)
same "file:src/deep.c absent:src/none.c" "$(names s through)" "names through a link"
rm linked

# Lists of names.
printf 'a.txt\n\nnone\n' >"$work/list"
agentwal checkpoint s lines --files-from "$work/list" run.sh >/dev/null
same "file:a.txt absent:none file:run.sh" "$(names s lines)" "names in lines"
printf '%s\0' "$odd" a.txt |
    agentwal checkpoint s zeros --files-from - -0 >/dev/null
same "file:a.txt file:odd
$(printf '\357\277\275')" "$(names s zeros)" "names ended by zeros"
agentwal checkpoint --json s list --files-from /dev/null | json '
    rows[0]["files"] == 0'
same "$(agentwal checkpoints --json s | field version)" \
    "$(agentwal checkpoints --json s | head -n 1 | field version)" "json"

# Adding files: the first state of each path is kept.
printf 'changed\n' >src/deep.c
printf 'new\n' >src/new.c
agentwal checkpoint --json s below src/deep.c src/new.c | json '
    rows[0]["files"] == 2 and rows[0]["bytes"] == 9'
agentwal checkpoint-diff s below above >/dev/null
same "file:src/deep.c file:src/new.c" "$(names s below)" "files that were added"

# Listing, in the order of creation, and deleting.
agentwal checkpoints --json s | json '
    [r["checkpointId"] for r in rows] == ["one", "below", "above", "away",
    "alias", "through", "lines", "zeros", "list"]
    and all(set(r) >= {"root", "created", "files", "bytes", "newBlobs",
    "newBytes", "version"} for r in rows)'
agentwal checkpoints s | grep -q "^one  .*  9  .*  $tree\$" ||
    fail "the table of checkpoints"
for id in below above away alias through lines zeros list; do
    code 0 agentwal checkpoint-delete s "$id"
done
code 1 agentwal checkpoint-delete s below
agentwal checkpoints --json s | json '
    [r["checkpointId"] for r in rows] == ["one"]'

# Differences; changed lines are counted as git counts them.
printf 'a\nB\nc\nd\n' >a.txt
printf 'deep\nmore\n' >src/deep.c
printf '\1\0\1' >binary
chmod 700 run.sh
rm empty
ln -sf run.sh link
printf 'made\n' >none
agentwal checkpoint s two a.txt src/deep.c binary run.sh empty link \
    none other >/dev/null
agentwal checkpoint-diff --json s one two >"$work/result"
json '{r["path"]: (r["before"], r["after"], r["insertions"], r["deletions"],
    r["binary"]) for r in rows} == {
    "a.txt": ("file", "file", 2, 1, False),
    "binary": ("file", "file", 0, 0, True),
    "empty": ("file", "absent", 0, 0, False),
    "link": ("symlink", "symlink", 1, 1, False),
    "none": ("absent", "file", 1, 0, False),
    "run.sh": ("file", "file", 0, 0, False),
    "src/deep.c": ("file", "file", 1, 0, False)}' "$work/result"
json '[(r["modeBefore"], r["modeAfter"]) for r in rows if r["path"] == "run.sh"]
    == [("0755", "0700")]' "$work/result"
agentwal checkpoint-diff s one two >"$work/result"
grep -q '^ *2  *1  a.txt$' "$work/result" || fail "a line of a difference"
grep -q '^ *-  *-  binary$' "$work/result" || fail "a binary difference"
grep -q 'run.sh  (mode 0755 to 0700)$' "$work/result" || fail "a mode"
grep -q 'none  (new)$' "$work/result" || fail "a kind"
grep -q '^7 files, +5 -2$' "$work/result" || fail "the totals"
same "$(agentwal checkpoint-diff s one two)" \
    "$(agentwal checkpoint-diff s one)" "the difference to the disk"
agentwal checkpoint-diff s one two --patch >"$work/patch"
same "$(cat "$work/patch")" "$(agentwal checkpoint-diff s one -p)" "the patch to the disk"
same 7 "$(grep -c '^diff --git a/' "$work/patch")" "files of a patch"
grep -A 1 '^diff --git a/run.sh b/run.sh$' "$work/patch" | grep -q '^old mode 100755$' ||
    fail "the modes of a patch: $(cat "$work/patch")"
same $'--- a/src/deep.c\n+++ b/src/deep.c\n@@ -1,1 +1,2 @@\n deep\n+more' \
    "$(sed -n '\,^--- a/src/deep.c,,$p' "$work/patch")" "the lines of a patch"
grep -A 3 '^new file mode 100' "$work/patch" | grep -q '^--- /dev/null$' || fail "a new file"
same "" "$(agentwal checkpoint-diff s two --patch)" "no patch"
same "" "$(agentwal checkpoint-diff --json s two)" "no difference"
agentwal show --json s | json '
    rows[0]["changes"] == {"additions": 5, "deletions": 2, "files": 7}'
agentwal show s | grep -q '^changes  *7 files, +5 -2$' ||
    fail "the changes of a session"

# Storage costs.
agentwal stats --json | json '
    rows[0]["packSegments"] == 1 and rows[0]["packBytes"] > 4096
    and rows[0]["packDiskBytes"] >= rows[0]["packBytes"]
    and [(c["sessionId"], c["checkpoints"], c["files"])
         for c in rows[0]["checkpoints"]] == [("s", 2, 17)]
    and all(c["bytes"] > 0 and c["newBlobs"] > 0 and c["newBytes"] > 0
            for c in rows[0]["checkpoints"])'
agentwal stats | grep -q '^s  *2  *17 ' || fail "storage costs as text"

# A dry run changes nothing and prints the same.
every >"$work/two"
agentwal rewind --json s one --dry-run >"$work/dry"
json 'rows[0]["canRewind"] is True and "error" not in rows[0]
    and rows[0]["filesChanged"] == ["a.txt", "binary", "empty", "link", "none",
    "run.sh", "src/deep.c"] and rows[0]["insertions"] == 2
    and rows[0]["deletions"] == 5 and "undoCheckpoint" not in rows[0]
    and "changedElsewhere" not in rows[0]
    and len(rows[0]["changes"]) == 7' "$work/dry"
every | cmp - "$work/two" || fail "a dry run changed files"

# A rewind, and its undo.
agentwal rewind --json s one --expect two >"$work/result"
undo=$(field undoCheckpoint "$work/result")
python3 - "$work/dry" "$work/result" <<'PY' || fail "the output of a dry run differs"
import json, sys
dry, done = (json.loads(next(open(p))) for p in sys.argv[1:])
done.pop("undoCheckpoint")
sys.exit(dry != done)
PY
same "$(printf 'a\nb\nc')" "$(cat a.txt)" "a file that was rewound"
same a.txt "$(readlink link)" "a link that was rewound"
[ ! -e none ] || fail "a file absent from the checkpoint exists"
[ -e empty ] || fail "an empty file is missing"
[ ! -s empty ] || fail "an empty file has content"
same 755 "$(stat -c %a run.sh)" "a mode"
agentwal checkpoint-diff --json s one | cmp - /dev/null ||
    fail "the restored state differs"
agentwal rewind --json s one | json 'rows == [{"canRewind": True,
    "filesChanged": [], "insertions": 0, "deletions": 0, "changes": []}]'
agentwal rewind --json s "$undo" | json 'rows[0]["canRewind"] is True'
every | cmp - "$work/two" || fail "undoing a rewind"

# Files changed by another program.
printf 'theirs\n' >a.txt
every >"$work/theirs"
code 1 agentwal rewind --json s one --expect two
json 'rows[0]["canRewind"] is False and len(rows[0]["error"]) > 0
    and rows[0]["changedElsewhere"] == ["a.txt"]' "$work/stdout"
grep -q -- --force "$work/stderr" || fail "no hint for --force"
code 1 agentwal rewind s one --expect two --dry-run
every | cmp - "$work/theirs" || fail "a refused rewind changed files"
agentwal rewind --json s one --expect two --force | json '
    rows[0]["canRewind"] is True and rows[0]["changedElsewhere"] == ["a.txt"]'
same "$(printf 'a\nb\nc')" "$(cat a.txt)" "a rewind by force"

# Another root.
mkdir "$work/copy"
agentwal rewind --json s one --root "$work/copy" | json '
    rows[0]["canRewind"] is True and len(rows[0]["filesChanged"]) == 8'
same "$(cat a.txt)" "$(cat "$work/copy/a.txt")" "a rewind elsewhere"
same "$(cat "$odd")" "$(cat "$work/copy/$odd")" "an odd name elsewhere"

# A fork has the checkpoints of its source, and later ones of itself.
agentwal fork s --id f >/dev/null
agentwal checkpoint f own a.txt >/dev/null
code 0 agentwal checkpoint-delete s two
agentwal checkpoints --json f | json '
    {"one", "two", "own"} <= {r["checkpointId"] for r in rows}'
code 1 agentwal checkpoint-show s own
code 1 agentwal checkpoint-show s two
agentwal rewind --json f two --dry-run | json 'rows[0]["canRewind"] is True'

# A rewind and its undo move the head.
code 1 agentwal rewind f one --head
grep -q 'linked with no entry' "$work/stderr" || fail "a head without a link"
for id in h1 h2; do
    echo "{\"id\":\"$id\",\"type\":\"note\",\"payload\":1}" |
        agentwal append f >"$work/result"
    [ "$id" = h2 ] || agentwal checkpoint f linked a.txt >"$work/result"
done
agentwal checkpoints --json f | json '
    [(r["checkpointId"], r["entryId"]) for r in rows][-1] == ("linked", "h1")
    and rows[0]["entryId"] is None'
agentwal rewind --json f linked --head >"$work/result"
json 'rows[0]["previousHead"] == "h2" and rows[0]["newHead"] == "h1"
    and rows[0]["filesChanged"] == []' "$work/result"
same h1 "$(agentwal head f main)" "the head"
agentwal rewind --json f "$(field undoCheckpoint "$work/result")" --head |
    json 'rows[0]["newHead"] == "h2"'
same h2 "$(agentwal head f main)" "the head after undoing"

# Off and on.
code 0 agentwal checkpointing f off
agentwal checkpoint --json f off a.txt | json '
    rows[0]["checkpointId"] is None and rows[0]["checkpointing"] is False'
code 0 agentwal checkpoint f off a.txt
grep -q 'checkpoints are off' "$work/stderr" || fail "no report that checkpoints are off"
code 1 agentwal rewind --json f one
json 'rows[0]["canRewind"] is False' "$work/stdout"
code 0 agentwal checkpointing f on
code 1 agentwal checkpoint-show f off
agentwal checkpoint --json f off a.txt | json 'rows[0]["files"] == 1'

# Paths that cannot be recorded: the others are, unless all are to be; a rewind leaves them alone.
mkdir folder
mkfifo fifo
code 1 agentwal checkpoint --json s part fifo a.txt ../x
json '(rows[0]["files"], [(r["path"], r["status"]) for r in rows[0]["unrecorded"]])
    == (1, [("../x", "WAL_EOUTSIDE"), ("fifo", "WAL_ENOTFILE")])' "$work/stdout"
code 1 agentwal checkpoint s part fifo a.txt ../x folder
grep -q '^checkpoint part: 1 file, ' "$work/stdout" || fail "a checkpoint in part"
sed 's/; to record.*//' "$work/stderr" >"$work/result"
same 'agentwal: folder: is a directory
agentwal: ../x: not recorded: the path contains ".."
agentwal: fifo: not recorded: is a device, socket or pipe' "$(cat "$work/result")" "the others"
rm fifo
printf 'a file now\n' >fifo
printf 'changed\n' >a.txt
agentwal rewind --json s part | json 'rows[0]["filesChanged"] == ["a.txt"]'
same "a file now" "$(cat fifo)" "a file that was not recorded"
code 0 agentwal checkpoint-delete s part
rm fifo
mkfifo fifo
for unrecorded in fifo folder; do
    code 1 agentwal checkpoint s part a.txt "$unrecorded" --all-or-none
    code 1 agentwal checkpoint s part "$unrecorded"
    code 1 agentwal checkpoint-show s part
done
rm -r fifo folder

# Invalid input creates no checkpoint, and the error names the file.
# refused CODE TEXT ARGUMENT...: agentwal checkpoint with a new id fails with the
# exit code and the text.
refused() {
    local expected=$1 text=$2
    shift 2
    code "$expected" agentwal checkpoint s bad "$@"
    grep -qF -- "$text" "$work/stderr" ||
        fail "the message is: $(cat "$work/stderr")"
    [ ! -s "$work/stdout" ] || fail "output of a refused command"
    code 1 agentwal checkpoint-show s bad
}
refused 1 'agentwal: src: ' a.txt src --all-or-none
refused 1 'agentwal: ../a.txt: ' ../a.txt
refused 1 'agentwal: /etc/passwd: ' /etc/passwd
refused 1 "agentwal: $tree: " "$tree"
ln -s / through
refused 1 "agentwal: through$tree/src/deep.c: " "through$tree/src/deep.c"
rm through
mkfifo pipe
refused 1 'agentwal: pipe: ' pipe
refused 2 'agentwal: bad: ' ''
refused 2 'no file given'
refused 2 -0 -0 a.txt
refused 3 "$work/none" --files-from "$work/none"
refused 3 "$work" --files-from "$work"
refused 1 'no-such-root: ' --root "$work/no-such-root" a.txt
# The capabilities of root are dropped.
printf 'secret\n' >secret
chmod 000 secret
limited=()
if [ -r secret ]; then
    limited=(setpriv --bounding-set=-all --inh-caps=-all)
fi
code 3 "${limited[@]}" agentwal checkpoint s bad a.txt secret --all-or-none
grep -q '^agentwal: secret: .*Permission denied' "$work/stderr" ||
    fail "no reason for an unreadable file: $(cat "$work/stderr")"
code 1 agentwal checkpoint-show s bad
rm -f secret
long=$(printf '%0256d' 0)
code 2 agentwal checkpoint s "$long" a.txt
code 2 agentwal checkpoint s '' a.txt
code 2 agentwal checkpoint s
code 2 agentwal checkpoint-show s
code 2 agentwal checkpoint-show s ''
code 2 agentwal checkpoint-diff s one two three
code 2 agentwal checkpoint-diff s one ''
code 2 agentwal checkpointing s maybe
code 2 agentwal checkpointing s
code 2 agentwal rewind s one two
code 2 agentwal rewind s one --expect ''
code 1 agentwal checkpoint none id a.txt
code 1 agentwal checkpoint-diff s one none
code 1 agentwal checkpoint-diff s none one
code 1 agentwal rewind --json s none
json 'rows[0]["canRewind"] is False and "none" in rows[0]["error"]
    and rows[0]["filesChanged"] == []' "$work/stdout"
code 1 agentwal rewind s one --expect none
same "" "$(agentwal checkpoint-diff --json s one)" "files after bad input"

# A file that cannot be replaced: the rewind changes no file.
printf 'a\n' >a.txt
rm run.sh
mkdir run.sh
every >"$work/before"
code 1 agentwal rewind --json s one
json 'rows[0]["canRewind"] is False and "run.sh" in rows[0]["error"]' \
    "$work/stdout"
every | cmp - "$work/before" || fail "a rewind that failed changed files"
rmdir run.sh

# A directory without write permission: the same.
printf 'else\n' >src/deep.c
chmod 500 src
every >"$work/before"
code 1 "${limited[@]}" agentwal rewind --json s one
json 'rows[0]["canRewind"] is False and "src/deep.c" in rows[0]["error"]' \
    "$work/stdout"
every | cmp - "$work/before" || fail "a rewind without permission changed files"
chmod 700 src

# A damaged blob: no file is changed, and the error names the blob and the file.
agentwal checkpoint-show --json s one >"$work/result"
hash=$(sed -n 's/.*"src\/deep.c".*"hash":"\([0-9a-f]*\)".*/\1/p' "$work/result")
printf 'else\n' >src/deep.c
python3 - "$store" "$hash" <<'PY'
import glob, sys
for path in glob.glob(sys.argv[1] + "/pack/*.seg"):
    data = open(path, "rb").read()
    at = data.find(bytes.fromhex(sys.argv[2]) + (5).to_bytes(4, "little"))
    if at >= 0:
        with open(path, "r+b") as file:
            file.seek(at + 40)
            file.write(b"\xff")
        sys.exit(0)
sys.exit("no such blob")
PY
every >"$work/before"
code 1 agentwal rewind --json s one
json "rows[0]['canRewind'] is False and 'src/deep.c' in rows[0]['error']
    and '$hash' in rows[0]['error']" "$work/stdout"
every | cmp - "$work/before" || fail "a rewind to a damaged blob changed files"
code 1 agentwal checkpoint-diff s one
code 1 agentwal show s
grep -q '^session  *s$' "$work/stdout" || fail "no session of the damaged blob"

# git applies a patch, whatever the names and the kinds of files are.
mkdir "$work/patched"
(
    cd "$work/patched"
    git init -q
    names=("a b" $'q"uote\\' $'line\n+++ b\toff' kind gone.txt new.txt)
    printf '1\n2\n3' | tee "${names[@]:0:5}" >/dev/null
    agentwal create --id patched --cwd "$PWD" >/dev/null
    agentwal checkpoint patched before -- "${names[@]}" >/dev/null
    cp -a . "$work/applied"
    printf '1\n2\nthree\n' | tee "${names[@]:0:3}" new.txt >/dev/null
    rm gone.txt kind
    ln -s new.txt kind
    agentwal checkpoint-diff patched before --patch >"$work/patch"
    git -C "$work/applied" apply "$work/patch"
)
same "" "$(diff -r --no-dereference -x .git "$work/patched" "$work/applied" 2>&1)" \
    "a patch that git applied"
