#!/usr/bin/env bash
# Files of Codex that go on from a line of another file: a fork is a fork at that line, a
# thread that was reverted one session with a branch for each file, whichever of them is
# imported first. What a file goes on from may be missing, too short, or the file itself.
set -euo pipefail
# shellcheck source=tests/lib/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../lib/cli.sh"

export HOME=$work/home
unset CODEX_HOME
home=$HOME/.codex
day=sessions/2026/11/20

# uuid NAME: ids are named by a letter or two.
uuid() {
    printf '019fb000-0000-7000-8000-%012x' "$((16#$1))"
}
# name SECOND THREAD [FILE]: the path of a rollout below the client's folder.
name() {
    printf '%s/rollout-2026-11-20T09-00-%02d-%s%s.jsonl' "$day" "$1" "$(uuid "$2")" \
        "${3:+_$(uuid "$3")}"
}
# rollout SECOND THREAD BASE:END|- TEXT...: a header and messages, with ordinals from END on.
rollout() {
    python3 -ISc '
import json, sys
second, thread, base, *texts = sys.argv[1:]
ordinal = 0
def line(kind, **payload):
    global ordinal
    print(json.dumps({"timestamp": "2026-11-20T09:00:%02d.%03dZ" % (int(second), ordinal),
                      "ordinal": ordinal, "type": kind, "payload": payload},
                     separators=(",", ":")))
    ordinal += 1
links = {}
if base != "-":
    file, end = base.split(":")
    ordinal = int(end)
    links["history_base"] = {"thread_id": file, "end_ordinal_exclusive": ordinal,
                             "end_byte_offset": None}
    if file != thread:
        links["forked_from_id"] = file
line("session_meta", id=thread, timestamp="2026-11-20T09:00:00.000Z", cwd="/srv/app",
     originator="codex-tui", cli_version="0.169.0", source="cli", history_mode="paginated", **links)
for text in texts:
    is_user = text.endswith("?")
    line("response_item", type="message", role="user" if is_user else "assistant",
         content=[{"type": "input_text" if is_user else "output_text", "text": text}])
' "$1" "$(uuid "$2")" "$3" "${@:4}"
}
# put SECOND THREAD FILE|- BASE|- END TEXT...: adds a rollout to the client's folder.
put() {
    local path
    path=$home/$(name "$1" "$2" "${3#-}")
    mkdir -p "$(dirname "$path")"
    if [ "$4" = - ]; then
        rollout "$1" "$2" - "${@:6}" >"$path"
    else
        rollout "$1" "$2" "$(uuid "$4"):$5" "${@:6}" >"$path"
    fi
}
# A thread a, its fork b, a after a revert, and a fork c of b.
put_all() {
    rm -rf "$home"
    put 1 a - - 0 'one?' 'One.' 'two?' 'Two.'
    put 5 b - a 3 'fork?' 'Fork.'
    put 8 a cc a 3 'two again?' 'Two again.'
    put 9 c - b 5 'deeper?' 'Deeper.'
}
begin() {
    rm -rf "$store"
    agentwal --store "$store" init 2>/dev/null
}
# give PATH...: imports; the result is in $work/stdout, warnings are in $work/stderr.
give() {
    code 0 agentwal --store "$store" import -v "$@"
}
# texts THREAD TEXT...: the messages on the branch of the session's head.
texts() {
    local session
    session=$(uuid "$1")
    shift
    agentwal --store "$store" cat --text "$session" | grep -E '[?.]$' >"$work/texts"
    diff <(printf '%s\n' "$@") "$work/texts" >&2 || fail "texts of $session: ${label-}"
}
# back: an export gives each file back.
back() {
    rm -rf "$work/out"
    agentwal --store "$store" export --dialect source "$work/out" >/dev/null
    diff -r "$home" "$work/out" || fail "the export differs: $*"
    code 0 walcheck "$store"
}
# all: the sessions of put_all, whole.
all() {
    label=$*
    same 3 "$(agentwal --store "$store" list --json | wc -l)" "sessions: $*"
    texts a 'one?' 'One.' 'two again?' 'Two again.'
    texts b 'one?' 'One.' 'fork?' 'Fork.'
    texts c 'one?' 'One.' 'fork?' 'deeper?' 'Deeper.'
    agentwal --store "$store" list --json | json '{r["sessionId"][-1]: (r["parentId"] or "-")[-1]
        for r in rows} == {"a": "-", "b": "a", "c": "b"}'
    agentwal --store "$store" tree "$(uuid a)" >"$work/tree"
    grep -q 'Two\.' "$work/tree" || fail "the branch before the revert is lost: $*"
    back "$@"
    give --json "$home"
    json 'all(r["appended"] == 0 and r["damaged"] == [] for r in rows)' "$work/stdout"
}

# In one import, one by one in any order, and with the originals in a folder that comes later.
put_all
begin
give "$home"
grep -q '^3 sessions, 14 new entries' "$work/stdout" || fail "$(cat "$work/stdout")"
[ ! -s "$work/stderr" ] || fail "$(cat "$work/stderr")"
all 'at once'
one=$(name 1 a) two=$(name 5 b) three=$(name 8 a cc) four=$(name 9 c)
for order in "$one $two $three $four" "$four $three $two $one" "$three $one $four $two"; do
    begin
    for path in $order $order; do
        code 0 agentwal --store "$store" import "$home/$path"
    done
    # Sessions that were partial are made anew when their files are imported again.
    give "$home"
    all "$order"
done
begin
mkdir -p "$home/archived_sessions"
mv "$home/$two" "$home/$four" "$home/$three" "$home/archived_sessions/"
give "$home"
[ ! -s "$work/stderr" ] || fail "$(cat "$work/stderr")"
all 'archived'

# The files grow, also the one before the revert, which keeps the head on the other.
for path in "$one" "archived_sessions/${two##*/}" "archived_sessions/${three##*/}"; do
    printf '{"timestamp":"2026-11-20T09:01:00.000Z","type":"event_msg","payload":{"type":"x"}}\n' \
        >>"$home/$path"
    give --json "$home"
    json 'sum(r["appended"] for r in rows) == 1' "$work/stdout"
    all "grown: $path"
done
# Compressed, and without the last newline.
zstd -q --rm "$home/archived_sessions/${three##*/}"
give --json "$home"
json 'all(r["appended"] == 0 for r in rows)' "$work/stdout"
zstd -dq --rm "$home/archived_sessions/${three##*/}.zst"
printf '{"timestamp":"2026-11-20T09:01:01.000Z","type":"event_msg","payl' \
    >>"$home/archived_sessions/${three##*/}"
give "$home"
back 'cut'
printf 'oad":{"type":"x"}}\n' >>"$home/archived_sessions/${three##*/}"
give "$home"
all 'completed'
agentwal --store "$store" gc >/dev/null
back 'after gc'
# The first line of a file is redacted: its other lines stay those of the file.
agentwal --store "$store" redact "$(uuid a)" "$(uuid cc):line-1" >/dev/null
give --json "$home"
json 'all(r["appended"] == 0 for r in rows)' "$work/stdout"
texts a 'one?' 'One.' 'two again?' 'Two again.'

# Exports to other clients have all of it once, and nothing is lost with the pointers.
put_all
begin
give "$home"
for dialect in claude pi codex entries; do
    for thread in a b c; do
        agentwal --store "$store" export --dialect "$dialect" --stdout \
            --session "$(uuid "$thread")" >"$work/exported"
        for text in 'one?' 'One.'; do
            grep -qF "\"$text\"" "$work/exported" || fail "$dialect, $thread: no $text"
        done
    done
    ! grep -q '"two?"' "$work/exported" || fail "$dialect: what was reverted"
done

# A file without what it goes on from: its lines, a mark, and a warning by name.
begin
rm "$home/$one" "$home/$three"
give "$home"
grep -q "it goes on from line 3 of $(uuid a), which was not found" "$work/stderr" ||
    fail "$(cat "$work/stderr")"
texts b 'fork?' 'Fork.'
texts c 'fork?' 'deeper?' 'Deeper.'
agentwal --store "$store" show --json "$(uuid b)" |
    json "rows[0]['metadata']['partial'] == '$(uuid a)'"
code 0 agentwal --store "$store" import "$home"
grep -q "its session lacks the beginning: it goes on .* $(uuid a), which was not found" \
    "$work/stderr" || fail "no second warning: $(cat "$work/stderr")"
! grep -q 'odd' "$work/stderr" || fail 'a line that its client wrote so is odd'
back 'without the original'

# Many of them are counted in one line.
rm -rf "$home"
for thread in {20..31}; do
    put 5 "$thread" - a 3 'fork?'
done
begin
code 0 agentwal --store "$store" import "$home"
same 10 "$(grep -c 'lacks the beginning' "$work/stderr")" 'sessions that are named'
grep -q ': 12 files go on from others that were not found; -v lists them$' "$work/stderr" ||
    fail "$(cat "$work/stderr")"

# Too short; then it has the line.
rm -rf "$home"
put 1 a - - 0 'one?' 'One.'
put 5 b - a 4 'fork?' 'Fork.'
begin
give "$home"
grep -q "it goes on from line 4 of $(uuid a), which has fewer lines" "$work/stderr" ||
    fail "$(cat "$work/stderr")"
put 1 a - - 0 'one?' 'One.' 'two?' 'Two.'
give "$home"
texts b 'one?' 'One.' 'two?' 'fork?' 'Fork.'
back 'longer'
! grep -q partial <(agentwal --store "$store" show --json "$(uuid b)") || fail 'still partial'

# Circles: of a file with itself, and of two.
rm -rf "$home"
put 1 a - a 2 'one?'
put 2 b - c 2 'two?'
put 3 c - b 3 'three?'
begin
for _ in 1 2 3; do
    give "$home"
    grep -q "it goes on from line 2 of $(uuid a)" "$work/stderr" || fail 'a is not named'
    grep -q "it goes on from line 2 of $(uuid c)" "$work/stderr" || fail 'b is not named'
    same 3 "$(agentwal --store "$store" list --json | wc -l)" 'sessions'
    back 'circles'
done
texts a 'one?'

# What is no pointer.
number=0
for base in '"x"' '[]' '{}' 'null' '{"thread_id":7,"end_ordinal_exclusive":1}' \
    '{"thread_id":"a\u0000b","end_ordinal_exclusive":1}' \
    '{"thread_id":"","end_ordinal_exclusive":1}' \
    "{\"thread_id\":\"$(uuid a)\",\"end_ordinal_exclusive\":-1}" \
    "{\"thread_id\":\"$(uuid a)\",\"end_ordinal_exclusive\":1e99}" \
    "{\"thread_id\":\"$(uuid a)\",\"end_ordinal_exclusive\":9223372036854775807}" \
    "{\"thread_id\":\"$(uuid a)\",\"end_ordinal_exclusive\":0}" \
    '{"thread_id":"../../etc/passwd","end_ordinal_exclusive":3}' \
    '{"thread_id":"\ud800","end_ordinal_exclusive":3}'; do
    number=$((number + 1))
    rm -rf "$home"
    put 1 a - - 0 'one?' 'One.'
    put 2 b - a 3 'two?'
    python3 -IS -c '
import re, sys
path, base = sys.argv[1:]
text = open(path).read()
open(path, "w").write(re.sub(r"\"history_base\":\{[^}]*\}", lambda _: "\"history_base\":" + base,
                             text))' "$home/$(name 2 b)" "$base"
    begin
    code 0 agentwal --store "$store" import "$home"
    texts b 'two?'
    back "$base"
done

# thread SECOND THREAD BASE:END|- QUESTION...: a thread as Codex 0.171 writes one. After the header
# each question is a turn of ten lines, with a call: its counts follow the answer, and its result
# comes before the event with them.
thread() {
    local path
    path=$home/$(name "$1" "$2")
    mkdir -p "$(dirname "$path")"
    python3 -ISc '
import json, sys
second, thread, base, *questions = sys.argv[1:]
ordinal, rows = 0, []
def line(kind, **payload):
    global ordinal
    rows.append({"timestamp": "2026-11-20T09:00:%02d.%03dZ" % (int(second), ordinal),
                 "ordinal": ordinal, "type": kind, "payload": payload})
    ordinal += 1
def item(kind, text_type, text):
    line("event_msg", type="item_completed", thread_id=thread, turn_id=turn, item={
        "type": kind, "id": "%s %d" % (thread, ordinal), "content": [
            {"type": text_type, "text": text}]})
def message(role, text_type, text):
    line("response_item", type="message", role=role, content=[{"type": text_type, "text": text}])
links = {}
if base != "-":
    file, end = base.split(":")
    ordinal = int(end)
    links = {"forked_from_id": file, "history_base": {
        "thread_id": file, "end_ordinal_exclusive": ordinal, "end_byte_offset": None}}
line("session_meta", id=thread, timestamp="2026-11-20T09:00:00.000Z", cwd="/srv/app",
     originator="codex-tui", cli_version="0.171.0", source="cli", history_mode="paginated", **links)
for question in questions:
    turn, answer = "%s %s" % (thread, question), question[:-1].capitalize() + "."
    counts = {"input_tokens": 100 + ordinal, "cached_input_tokens": 10, "output_tokens": 7}
    line("event_msg", type="task_started", turn_id=turn)
    message("user", "input_text", question)
    item("UserMessage", "text", question)
    item("AgentMessage", "Text", answer)
    message("assistant", "output_text", answer)
    line("response_item", type="function_call", name="ls", arguments="{}", call_id=turn)
    line("token_usage_record", thread_id=thread, turn_id=turn, usage=counts)
    line("response_item", type="function_call_output", call_id=turn, output="Output")
    line("event_msg", type="token_count", info={"last_token_usage": counts})
    line("event_msg", type="task_complete", turn_id=turn)
sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)
' "$1" "$(uuid "$2")" "$3" "${@:4}" >"$path"
}
# drawn THREAD TEXT...: what Codex draws of the exported thread below $work/view.
drawn() {
    PYTHONPATH=$(dirname "${BASH_SOURCE[0]}")/../../lib python3 -Bc '
import sys, clients
path = sys.argv[1]
shown = clients.codex({path[path.index("sessions/"):]: open(path, "rb").read()})
drawn = [text for what, text in shown if what in ("user", "assistant")]
assert drawn == sys.argv[2:], drawn
' "$(echo "$work/view/$day"/*"$(uuid "$1").jsonl")" "${@:2}" || fail "not drawn of $1"
}
export_thread() {
    code 0 agentwal --store "$store" export --dialect codex --session "$(uuid "$1")" "$work/view"
}
# counts DIALECT PATTERN: the counts of input of the answers in an export of thread b.
counts() {
    agentwal --store "$store" export --dialect "$1" --stdout --session "$(uuid b)" 2>/dev/null |
        grep -oE "$2" | grep -oE '[1-9][0-9]*' | paste -sd' '
}

# A fork in another folder is a whole paginated thread, and what another client went on with has
# turns too.
rm -rf "$home"
thread 1 a - 'one?' 'two?'
thread 5 b "$(uuid a):11" 'fork?'
begin
give "$home"
same '91 102' "$(counts pi '"usage":[{]"input":[0-9]+')" 'counts of pi'
same '91 102' "$(counts claude '"input_tokens":[0-9]+,"cache_read')" 'counts of Claude Code'
for thread in a b; do
    export_thread $thread
done
drawn a 'one?' 'One.' 'two?' 'Two.'
drawn b 'one?' 'One.' 'fork?' 'Fork.'
head -1 "$work/view/$day"/*"$(uuid b).jsonl" >"$work/header"
json "rows[0]['payload']['forked_from_id'] == '$(uuid a)' and rows[0]['ordinal'] == 0" \
    "$work/header"
# Another client goes on with the thread, with an image and a call; then Codex does.
agentwal --store "$store" export --dialect pi --session "$(uuid b)" "$work/pi" >/dev/null
python3 -ISc '
import json, sys
path = sys.argv[1]
last = json.loads(open(path).readlines()[-1])["id"]
usage = {"input": 5, "output": 6, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 11,
         "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}
image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
def text(text):
    return {"type": "text", "text": text}
def answer(stop, *content):
    return {"role": "assistant", "api": "a", "provider": "p", "model": "m", "usage": usage,
            "stopReason": stop, "content": content}
messages = [
    {"role": "user", "content": [text("look?"), image]},
    answer("toolUse", {"type": "thinking", "thinking": "Hm"}, text("I call."),
           {"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}),
    {"role": "toolResult", "toolCallId": "c", "toolName": "ls", "isError": False,
     "content": [text("a.txt")]},
    answer("stop", text("Looked.")),
    {"role": "user", "content": [image]},
    answer("stop", text("An image."))]
with open(path, "a") as file:
    for number, message in enumerate(messages):
        row = {"type": "message", "id": "%08x" % (0xabc0 + number), "parentId": last,
               "timestamp": "2026-11-20T10:00:%02d.000Z" % number,
               "message": dict(message, timestamp=1795168800000 + number)}
        last = row["id"]
        file.write(json.dumps(row) + "\n")
' "$(echo "$work/pi"/sessions/*/*.jsonl)"
give "$work/pi"
went_on=('one?' 'One.' 'fork?' 'Fork.' 'look?' 'I call.' 'Looked.' 'An image.')
export_thread b
drawn b "${went_on[@]}"
path=$(echo "$work/view/$day"/*"$(uuid b).jsonl")
json '[[b["type"] for b in r["payload"]["item"]["content"]] for r in rows
    if r["payload"].get("item", {}).get("type") == "UserMessage"][-2:] == [
        ["text", "image"], ["text", "image"]]' "$path"
json '[r["payload"]["item"]["summary_text"] for r in rows
    if r["payload"].get("item", {}).get("type") == "Reasoning"] == [["Hm"]]' "$path"
json 'sum(r["payload"].get("type") == "task_started" for r in rows) ==
      sum(r["payload"].get("type") == "task_complete" for r in rows) == 4' "$path"
python3 -ISc '
import json, sys
path, thread = sys.argv[1:]
ordinal = json.loads(open(path).readlines()[-1])["ordinal"]
with open(path, "a") as file:
    for kind, payload in (
            ("event_msg", {"type": "task_started", "turn_id": "last"}),
            ("response_item", {"type": "message", "role": "user",
                               "content": [{"type": "input_text", "text": "more?"}]}),
            ("event_msg", {"type": "item_completed", "thread_id": thread, "turn_id": "last",
                           "item": {"type": "UserMessage", "id": "u", "content": [
                               {"type": "text", "text": "more?"}]}}),
            ("event_msg", {"type": "task_complete", "turn_id": "last"})):
        ordinal += 1
        file.write(json.dumps({"timestamp": "2026-11-20T11:00:00.000Z", "ordinal": ordinal,
                               "type": kind, "payload": payload}) + "\n")
' "$path" "$(uuid b)"
give --json "$work/view"
json 'sum(r["appended"] for r in rows) == 4' "$work/stdout"
went_on+=('more?')
drawn b "${went_on[@]}"
texts b 'one?' 'One.' 'fork?' 'Fork.' 'look?' 'I call.' 'Looked.' 'An image.' 'more?'
for _ in 1 2; do
    rm -rf "$work/view"
    export_thread b
    drawn b "${went_on[@]}"
done
give --json "$work/view"
json 'sum(r["appended"] for r in rows) == 0' "$work/stdout"

# In the folder of the thread that it was forked from, a fork has its own lines, and names that
# thread's file. pointed FORK FILE LINES TEXT...: so it is, and an import finds the texts.
pointed() {
    local session=$1 file=$2 lines=$3
    shift 3
    PYTHONPATH=$(dirname "${BASH_SOURCE[0]}")/../../lib python3 -Bc '
import json, sys, clients
path, base, lines, *texts = sys.argv[1:]
with open(path, "rb") as file:
    rows = file.readlines()
with open(base, "rb") as file:
    before = file.readlines()[:int(lines)]
header = json.loads(rows[0])
assert header["payload"]["history_base"] == {
    "thread_id": base[-42:-6], "end_ordinal_exclusive": header["ordinal"],
    "end_byte_offset": sum(map(len, before))}, header
assert header["ordinal"] == json.loads(before[-1])["ordinal"] + 1, header
header["ordinal"] = json.loads(before[0])["ordinal"]
shown = clients.codex({path[path.index("sessions/"):]: b"".join(
    [json.dumps(header).encode() + b"\n", *before[1:], *rows[1:]])})
drawn = [text for what, text in shown if what in ("user", "assistant")]
assert drawn == texts, drawn
' "$(echo "$home/$day"/*"$session.jsonl")" "$file" "$lines" "$@" || fail "${label-}: $session"
}
# whole FOLDER FORK: it has all lines.
whole() {
    ! head -1 "$(echo "$1/$day"/*"$2.jsonl")" | grep -q history_base || fail "a pointer: ${label-}"
    code 0 grep -c '"one?"' "$(echo "$1/$day"/*"$2.jsonl")"
}
# fork THREAD LINE|-: makes a fork with a turn; its id is in $fork.
fork() {
    if [ "$2" = - ]; then
        fork=$(agentwal --store "$store" fork "$1")
    else
        fork=$(agentwal --store "$store" fork "$1" --at "$2")
    fi
    go_on "$fork" 'mine?' 'Mine.'
}
go_on() {
    agentwal --store "$store" append "$1" --user "$2" >/dev/null 2>&1
    printf '{"type":"message","payload":{"role":"assistant","content":[%s]}}\n' \
        "{\"type\":\"text\",\"text\":\"$3\"}" |
        agentwal --store "$store" append "$1" >/dev/null 2>&1
}
put_out() {
    code "${2-0}" agentwal --store "$store" export --dialect codex --session "$1" "${3-$home}"
}
day=sessions/2026/11/20
begin_in_place() {
    rm -rf "$home" "$work/view"
    thread 1 a - 'one?' 'two?'
    thread 5 b "$(uuid a):11" 'fork?'
    begin
    give "$home"
}
begin_in_place
a=$home/$(name 1 a) b=$home/$(name 5 b)
sum=$(sha256sum "$a")
fork "$(uuid a)" line-11
put_out "$fork"
label='in place' pointed "$fork" "$a" 11 'one?' 'One.' 'mine?' 'Mine.'
put_out "$fork"
go_on "$fork" 'more?' 'More.'
put_out "$fork"
pointed "$fork" "$a" 11 'one?' 'One.' 'mine?' 'Mine.' 'more?' 'More.'
same "$sum" "$(sha256sum "$a")" 'the file of the thread'
# Codex goes on with it, and then this store again; another store gets the same.
path=$(echo "$home/$day"/*"$fork.jsonl")
python3 -ISc '
import json, sys
path, thread = sys.argv[1:]
ordinal = json.loads(open(path).readlines()[-1])["ordinal"]
with open(path, "a") as file:
    for kind, payload in (
            ("event_msg", {"type": "task_started", "turn_id": "last"}),
            ("response_item", {"type": "message", "role": "user",
                               "content": [{"type": "input_text", "text": "last?"}]}),
            ("event_msg", {"type": "item_completed", "thread_id": thread, "turn_id": "last",
                           "item": {"type": "UserMessage", "id": "u", "content": [
                               {"type": "text", "text": "last?"}]}}),
            ("event_msg", {"type": "task_complete", "turn_id": "last"})):
        ordinal += 1
        file.write(json.dumps({"timestamp": "2026-11-20T11:00:00.000Z", "ordinal": ordinal,
                               "type": kind, "payload": payload}) + "\n")
' "$path" "$fork"
give --json "$home"
json 'sum(r["appended"] for r in rows) == 4' "$work/stdout"
go_on "$fork" 'end?' 'End.'
put_out "$fork"
went_on=('one?' 'One.' 'mine?' 'Mine.' 'more?' 'More.' 'last?' 'end?' 'End.')
pointed "$fork" "$a" 11 "${went_on[@]}"
agentwal --store "$store" cat --text "$fork" | grep -E '[?.]$' >"$work/texts"
diff <(printf '%s\n' "${went_on[@]}") "$work/texts" || fail 'texts of the fork'
agentwal --store "$work/second" import "$home" >/dev/null 2>&1
agentwal --store "$work/second" cat --text "$fork" | grep -E '[?.]$' >"$work/texts"
diff <(printf '%s\n' "${went_on[@]}") "$work/texts" || fail 'texts of the fork in a second store'
same 3 "$(agentwal --store "$work/second" list --json | wc -l)" 'sessions in a second store'
agentwal --store "$work/second" show --json "$fork" |
    json "rows[0]['parentId'] == '$(uuid a)' and 'partial' not in rows[0]['metadata']"
# A fork of Codex of that fork is one of the session, at the end of a turn that Codex added.
end=$(($(grep -o '"ordinal": *[0-9]*' "$path" | tail -1 | grep -o '[0-9]*$') + 1))
last=$(grep -n '"last"' "$path" | tail -1 | cut -d: -f1)
at=$(sed -n "${last}p" "$path" | grep -o '"ordinal": *[0-9]*' | grep -o '[0-9]*$')
[ "$at" -lt "$end" ] || fail 'no line after those of Codex'
thread 12 d "$fork:$((at + 1))" 'branch?'
give "$home"
[ ! -s "$work/stderr" ] || fail "$(cat "$work/stderr")"
texts d 'one?' 'One.' 'mine?' 'Mine.' 'more?' 'More.' 'last?' 'branch?' 'Branch.'
agentwal --store "$store" show --json "$(uuid d)" | json "rows[0]['parentId'] == '$fork'"
rm "$(echo "$home/$day"/*"$(uuid d).jsonl")"
# It stays so without the file. In another folder it is whole.
mv "$a" "$work/a"
go_on "$fork" 'without?' 'Without.'
put_out "$fork"
mv "$work/a" "$a"
pointed "$fork" "$a" 11 "${went_on[@]}" 'without?' 'Without.'
label='another folder' put_out "$fork" 0 "$work/view"
whole "$work/view" "$fork"
# The head is on a branch without that line.
agentwal --store "$store" head "$fork" main line-6 >/dev/null
go_on "$fork" 'before?' 'Before.'
label='before the fork point' put_out "$fork"
whole "$home" "$fork"

# A fork that Codex made goes on in its file, and a fork of that one names that file.
begin_in_place
head -1 "$b" >"$work/header"
fork "$(uuid b)" -
label='of a fork' put_out "$fork"
pointed "$fork" "$b" 11 'fork?' 'Fork.' 'mine?' 'Mine.'
go_on "$(uuid b)" 'added?' 'Added.'
put_out "$(uuid b)"
cmp "$work/header" <(head -1 "$b") || fail 'the header of a fork of Codex'
same 0 "$(grep -c '"one?"' "$b" || :)" 'lines of the first thread'
grep -q '"Added\."' "$b" || fail 'the fork of Codex does not go on'
agentwal --store "$work/third" import "$home" >/dev/null 2>&1
agentwal --store "$work/third" cat --text "$fork" | grep -E '[?.]$' >"$work/texts"
diff <(printf '%s\n' 'one?' 'One.' 'fork?' 'Fork.' 'mine?' 'Mine.') "$work/texts" ||
    fail 'texts of a fork of a fork'

# Whole: the thread's file was exported, differs, is too short, or is not there.
begin_in_place
put_out "$(uuid a)" 0 "$work/view"
fork "$(uuid a)" line-11
label='exported' put_out "$fork" 0 "$work/view"
whole "$work/view" "$fork"
for change in '3s/one/ONE/' '11d' d; do
    begin_in_place
    fork "$(uuid a)" line-11
    sed -i "$change" "$a"
    label=$change put_out "$fork"
    whole "$home" "$fork"
done
begin_in_place
fork "$(uuid a)" line-11
rm "$a"
label='removed' put_out "$fork"
whole "$home" "$fork"
# What was written whole stays so.
thread 1 a - 'one?' 'two?'
go_on "$fork" 'more?' 'More.'
label='written whole' put_out "$fork"
whole "$home" "$fork"
# Entries of the store before the fork point are in no file of Codex.
begin_in_place
go_on "$(uuid a)" 'here?' 'Here.'
fork "$(uuid a)" -
label='entries of the store' put_out "$fork"
whole "$home" "$fork"

# Counts that come after the event of the answer are those of the answer.
rm -rf "$home"
put 1 a - - 0 'one?' 'One.'
python3 -ISc '
import json, sys
def event(ordinal, **payload):
    print(json.dumps({"timestamp": "2026-11-20T09:00:02.000Z", "ordinal": ordinal,
                      "type": "event_msg", "payload": payload}))
def item(ordinal, kind, text_kind, text):
    event(ordinal, type="item_completed",
          item={"type": kind, "id": kind, "content": [{"type": text_kind, "text": text}]})
item(3, "AgentMessage", "Text", "One.")
event(4, type="token_count", info={"last_token_usage": {
    "input_tokens": 12, "cached_input_tokens": 2, "output_tokens": 5}})
item(5, "UserMessage", "text", "only shown?")
' >>"$home/$(name 1 a)"
begin
give "$home"
agentwal --store "$store" export --dialect pi --stdout --session "$(uuid a)" >"$work/exported"
json '[(r["message"]["role"], r["message"]["content"][0]["text"]) for r in rows
    if r["type"] == "message"] == [("user", "one?"), ("assistant", "One."),
    ("user", "only shown?")] and [r["message"]["usage"]["input"] for r in rows
    if r["type"] == "message" and r["message"]["role"] == "assistant"] == [10]' "$work/exported"
