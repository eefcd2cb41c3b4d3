#!/usr/bin/env bash
# Import and export of OpenCode: parts that change in place are versions of
# documents, its client's exports are sessions, and hostile or incomplete
# storages are reported, affect no other session, and are exported with the same
# bytes.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

in=$work/in
storage=$in/storage
part=$storage/part/msg_b7ca99458000AAAAAAAAAAAAAA
made=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../golden/model/opencode" && pwd)
mkdir "$in"
cp -R "$made/storage" "$in"
chmod -R u+w "$in"
id=ses_7fffffffffffAAAAAAAAAAAAAA

# import CHANGED: imports the storage, of which CHANGED documents are new.
import() {
    code 0 agentwal --store "$store" import --json "$in"
    json "sum(r['changed'] for r in rows) == $1" "$work/stdout"
    code 0 agentwal --store "$store" export --dialect source "$work/out"
    diff -r -x .agentwal "$in" "$work/out"
}
agentwal --store "$store" init
import "$(find "$in" -type f | wc -l)"
import 0

# A streamed part: each import of a new state adds a version.
text=$part/prt_b7ca99458003AAAAAAAAAAAAAA.json
key=part/msg_b7ca99458000AAAAAAAAAAAAAA/${text##*/}
for words in a 'a b' 'a b c' 'a b c'; do
    printf '{"id":"prt_b7ca99458003AAAAAAAAAAAAAA","messageID":%s,%s}' \
        '"msg_b7ca99458000AAAAAAAAAAAAAA"' "\"type\":\"text\",\"text\":\"$words\"" \
        >"$text"
    import "$([ "$words" = "$(cat "$work/words" 2>/dev/null)" ] && echo 0 || echo 1)"
    printf '%s' "$words" >"$work/words"
done
same 4 "$(agentwal --store "$store" doc scan --history --json "$id" "$key" | wc -l)" versions
agentwal --store "$store" doc get "$id" "$key" >"$work/newest"
grep -q '"a b c"' "$work/newest" || fail "not the newest version: $(cat "$work/newest")"
same 1 "$(agentwal --store "$store" list --json | wc -l)" sessions
# A tool that completes, and a part that is torn and then restored.
sed -i 's/"status":"running",/"status":"completed","output":"done",/' \
    "$part/prt_b7ca99458009AAAAAAAAAAAAAA.json"
import 1
printf '{"id":' >"$text"
code 0 agentwal --store "$store" import --verbose "$in"
grep -q "prt_b7ca99458003AAAAAAAAAAAAAA.json: byte 6: not JSON" "$work/stderr" ||
    fail "not reported: $(cat "$work/stderr")"
import 0
cp "$work/newest" "$text"
import 1

# The view has each part once, in its last state.
code 0 agentwal --store "$store" export --dialect pi "$work/pi"
view=$(find "$work/pi" -name '*.jsonl')
same 1 "$(grep -c '"a b c"' "$view")" "texts in the view"
same 1 "$(grep -c '"done"' "$view")" "results in the view"

# The events of real sessions, replayed into a storage that is imported after
# each: every imported state is kept, and none twice.
streams=${AGENTWAL_FIXTURES:-/nowhere}/opencode/event-streams
for stream in "$streams"/*.jsonl; do
    [ -e "$stream" ] || continue
    live=$work/live-$(basename "$stream" .jsonl)
    agentwal --store "$live-store" init
    for until in 5 10 15 20 25 40 100; do
        python3 - "$stream" "$live/storage" "$until" <<'PY'
import itertools, json, os, sys
stream, root, until = sys.argv[1:]
for line in itertools.islice(open(stream), int(until)):
    event = json.loads(line)["event"]
    for name, key, above in [("session", "info", "projectID"),
            ("message", "info", "sessionID"), ("part", "part", "messageID")]:
        info = event["properties"].get(key)
        if info and above in info and (name != "session" or "title" in info):
            path = "/".join([root, name, info[above], info["id"] + ".json"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            json.dump(info, open(path, "w"))
PY
        code 0 agentwal --store "$live-store" import "$live"
        code 0 agentwal --store "$live-store" export --dialect source "$live-out"
        diff -r -x .agentwal "$live" "$live-out"
    done
    same 1 "$(agentwal --store "$live-store" list --json | wc -l)" "sessions of $stream"
    id_live=$(agentwal --store "$live-store" list --json | field sessionId)
    agentwal --store "$live-store" doc scan --json --history "$id_live" |
        json 'len(set(json.dumps((r["key"], r["value"])) for r in rows))
            == len(rows)'
    agentwal --store "$live-store" doc scan --json "$id_live" |
        json "len(rows) == $(find "$live" -type f | wc -l)"
done

# A client's export: one file, any layout and indentation.
python3 - "$storage" "$work/exported" <<'PY'
import glob, json, os, sys
storage, out = sys.argv[1:]
load = lambda path: json.load(open(path))
info = load(glob.glob(storage + "/session/*/*.json")[0])
messages = [{"info": load(path), "parts": [load(part) for part in sorted(
    glob.glob(storage + "/part/" + os.path.basename(path)[:-5] + "/*"))]}
    for path in sorted(glob.glob(storage + "/message/*/*.json"))]
os.mkdir(out)
with open(out + "/one.json", "w") as file:
    json.dump({"info": info, "messages": messages}, file,
              separators=(",", ":"))
info["id"] = "ses_6fffffffffffAAAAAAAAAAAAAA"
os.mkdir(out + "/sub")
with open(out + "/sub/two.json", "w") as file:
    json.dump({"info": info, "messages": messages}, file, indent=2)
    file.write("\n")
PY
exported=$work/exported-store
agentwal --store "$exported" init
for again in 2 0; do
    code 0 agentwal --store "$exported" import --json "$work/exported"
    json "sum(r['changed'] for r in rows) == $again and len(rows) == 2 and
        all(r['dialect'] == 'opencode' for r in rows)" "$work/stdout"
done
code 0 agentwal --store "$exported" import --json "$work/exported/one.json"
code 0 agentwal --store "$exported" export --dialect source "$work/exported-out"
diff -r -x .agentwal "$work/exported" "$work/exported-out"
agentwal --store "$exported" show --json "$id" |
    json 'rows[0]["title"] == "A title" and rows[0]["cwd"] == "/home/u/p"'
for dialect in pi claude sdk; do
    code 0 agentwal --store "$store" export --dialect "$dialect" --session "$id" \
        "$work/a-$dialect"
    code 0 agentwal --store "$exported" export --dialect "$dialect" --session "$id" \
        "$work/b-$dialect"
    diff -r -x .agentwal "$work/a-$dialect" "$work/b-$dialect"
done
printf '{"info":{"id":7},"messages":[]}' >"$work/other.json"
code 0 agentwal --store "$exported" import --json --dialect opencode "$work/other.json"
json 'rows[0]["dialect"] != "opencode" or "lines" in rows[0]' "$work/stdout"

# Hostile names and ids; ids that differ from the names.
evil=$work/evil
python3 - "$evil" <<'PY'
import json, os, sys
root = os.fsencode(sys.argv[1]) + b"/storage/"
def put(path, data):
    path = root + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes)
                   else json.dumps(data, separators=(",", ":")).encode())
def session(name, **more):
    put(b"session/p/" + name + b".json", dict({"projectID": "p",
        "directory": "/d", "title": "t", "time": {"created": 1}}, **more))
def message(path, **more):
    put(b"message/" + path + b".json", dict({"role": "user"}, **more))
def part(path, **more):
    put(b"part/" + path + b".json", dict({"type": "text", "text": "x"}, **more))
session(b"ses_a", id="ses_a")
message(b"ses_a/msg_1", id="msg_1", sessionID="ses_a")
part(b"msg_1/prt_1", id="prt_1", messageID="msg_1")
for number, name in enumerate([b"new\nline", b"\x01\x1b[2J", b"\xff\xfe",
        b"l" * 250, b"a%2Fb%00", b"..."]):
    message(b"ses_a/" + name, id="msg_%d" % (2 + number), sessionID="ses_a")
    part(b"msg_1/" + name, id="prt_%d" % (2 + number), messageID="msg_1")
message(b"ses_a/noid", role="user")
message(b"\xffdir\n/m", id="m", sessionID="ses_q")
part(b"\n/\xff", text="y")
part(b"q" * 255 + b"/" + b"r" * 250, text="z")
part(b"/".join([b"d" * 200] * 8) + b"/x", messageID="msg_1")
for name, id in [(b"up", "../../up"), (b"abs", "/etc/x"), (b"nl", "a\nb"),
        (b"nul", "a\0b"), (b"slashes", "x//y"), (b"long", "L" * 5000),
        (b"longer", "M" * 3000), (b"long-ish", "N" * 300), (b"empty", ""),
        (b"dots", ".."), (b"twice", "ses_a"), (b"number", 7)]:
    session(name, id=id)
put(b"session/p/bad.json", b'{"id":"ses_bad","time":{},"projectID":"\xff"}')
put(b"session/p/half.json", b'{"id":"\\ud800x","time":{},"projectID":"p"}')
message(b"ses_gone/msg_9", id="msg_9", sessionID="ses_gone")
part(b"msg_gone/prt_9", id="prt_9", messageID="msg_gone")
part(b"msg_1/other", id="prt_z", messageID="msg_zz")
os.symlink("/etc/passwd", root + b"message/ses_a/link.json")
os.mkfifo(root + b"message/ses_a/fifo.json")
PY
evils=$work/evil-store
agentwal --store "$evils" init
code 0 agentwal --store "$evils" import --json --all-files "$evil"
cp "$work/stdout" "$work/first"
json "sum(r['documents'] for r in rows) == $(find "$evil" -type f -printf x | wc -c)" \
    "$work/first"
python3 - "$work/first" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
reported = {}
for row in rows:
    for damage in row["damaged"]:
        path = damage.get("path") or damage.get("pathBytes") or str(damage)
        reported.setdefault(path.split("/storage/")[-1], []).append(
            (damage.get("offset"), damage["reason"]))
def expect(path, offset, words):
    found = reported.get(path, [])
    if not any(o == offset and words in r for o, r in found):
        sys.exit("%r at %r: %r, not in %r" % (path, offset, words, found))
name = "the id is not the file's name"
expect("message/ses_a/new\nline.json", 20, name)
expect("message/ses_a/noid.json", None, "has no id")
expect("message/ses_gone/msg_9.json", None, "own file is missing")
expect("part/msg_gone/prt_9.json", None, "its message is missing")
expect("part/msg_1/other.json", 31, name)
expect("part/msg_1/other.json", 51, "the message's id is not the folder's")
expect("session/p/bad.json", 39, "not JSON")
expect("session/p/half.json", 6, name)
expect("/".join(["part"] + ["d" * 200] * 8 + ["x.json"]), None, "too long")
for path in ["up", "abs", "nl", "nul", "slashes", "long", "dots", "twice"]:
    expect("session/p/%s.json" % path, 72, name)
assert "session/p/ses_a.json" not in reported, reported["session/p/ses_a.json"]
assert "message/ses_a/msg_1.json" not in reported
assert "part/msg_1/prt_1.json" not in reported
PY
same "" "$(LC_ALL=C grep -P '[\x00-\x09\x0b-\x1f\x7f]' "$work/first")" \
    "bytes that a terminal takes"
code 0 agentwal --store "$evils" import --json --all-files "$evil"
json 'all(r["changed"] == 0 for r in rows)' "$work/stdout"
code 0 agentwal --store "$evils" export --dialect source "$work/evil-out"
rm "$evil/storage/message/ses_a/link.json" "$evil/storage/message/ses_a/fifo.json"
diff -r -x .agentwal "$evil" "$work/evil-out"
mkdir "$work/views"
name_all "$evils"
for dialect in sdk spec11 opencode pi claude codex rollouts entries; do
    code 0 agentwal --store "$evils" export --json --dialect "$dialect" \
        "${named[@]}" "$work/views/$dialect"
    json 'len(set(r["path"] for r in rows)) == len(rows)' "$work/stdout"
done
same 8 "$(find "$work/views" -mindepth 1 -maxdepth 1 | wc -l)" "views"
same "" "$(find "$work" -maxdepth 2 -name 'up*')" "files outside the views"

# Half of the files are missing: the others are converted.
half=$work/half
cp -R "$made" "$half"
chmod -R u+w "$half"
find "$half" -type f | sort | awk 'NR % 2 == 0' | xargs -d '\n' rm
rm -f "$half/storage/session/global/"*
halves=$work/half-store
agentwal --store "$halves" init
code 0 agentwal --store "$halves" import --verbose "$half"
grep -q "the session's own file is missing" "$work/stderr" ||
    fail "not reported: $(cat "$work/stderr")"
code 0 agentwal --store "$halves" export --dialect source "$work/half-out"
find "$half" -type d -empty -delete
diff -r -x .agentwal "$half" "$work/half-out"
name_all "$halves"
code 0 agentwal --store "$halves" export --dialect claude "${named[@]}" \
    "$work/half-view"
grep -rq '"type":"assistant"' "$work/half-view" || fail "an empty view"

# sdk: no metadata, and an id that differs from the directory's name.
mkdir -p "$work/sdk/lone" "$work/sdk/named"
printf '{"uuid":"u","timestamp":"2026-01-02T03:04:05Z","role":"user",%s\n%s' \
    '"content":"a"}' '{"uuid":"torn' | tee "$work/sdk/lone/messages.jsonl" \
    >"$work/sdk/named/messages.jsonl"
printf '{"session_id":"other","created_at":"2026-01-02T03:04:05Z"}' \
    >"$work/sdk/named/metadata.json"
agentwal --store "$work/sdk-store" init
code 0 agentwal --store "$work/sdk-store" import --verbose "$work/sdk"
for words in 'lone/metadata.json: is missing' \
    "named/metadata.json: byte 14: the id is not the directory's name" \
    'lone/messages.jsonl.*line 2'; do
    grep -q "$words" "$work/stderr" "$work/stdout" ||
        fail "not reported: $words; but $(cat "$work/stdout" "$work/stderr")"
done
code 0 agentwal --store "$work/sdk-store" export --dialect source "$work/sdk-out"
diff -r -x .agentwal "$work/sdk" "$work/sdk-out"
for each in "$store" "$exported" "$evils" "$halves"; do
    walcheck "$each" >"$work/checked"
done
