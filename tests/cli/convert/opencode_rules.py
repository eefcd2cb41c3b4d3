#!/usr/bin/env python3
"""Rules of OpenCode, whose sessions are documents, that hold for a view and its
client together. Each function states the rule, and the version in which it was
seen."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib", "kit"))
sys.dont_write_bytecode = True
from client_place import (  # noqa: E402
    SES, TOOLS, Place, claude_session, message_id, one, opencode_message,
    opencode_session, opencode_texts, pi_entry, read, rows_of, run, texts,
    write)


def entries_follow_the_documents(work):
    """An OpenCode session has no entries in the log; what is appended goes on
    after its last message, in every client."""
    place = Place(work, opencode_session)
    place.append("then")
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    assert texts(file) == ["go", "gone", "then"], texts(file)
    place.export("opencode")
    assert opencode_texts(place.out)[1] == ["go", "gone", "then"]


def documents_are_shown(work):
    """An OpenCode session has its messages in documents; people and programs
    see them as entries, with what was appended after them."""
    place = Place(work, opencode_session)

    def cat(*options):
        rows = rows_of(run("walcat", *options, place.store, place.session))
        return [row for row in rows if row["type"] == "message"]

    def shown(*options):
        content = [row["payload"]["content"] for row in cat(*options)]
        return [text if isinstance(text, str) else text[0]["text"]
                for text in content]
    assert shown() == ["go", "gone"], shown()
    assert [row["id"] for row in cat()] == [message_id(1), message_id(2)]
    place.append("then")
    assert shown() == shown("--all") == ["go", "gone", "then"], shown()
    rows = rows_of(run("walcat", place.store, place.session))
    assert rows[0].get("parentId") is None, rows
    for above, row in zip(rows, rows[1:]):
        assert row["parentId"] == above["id"], rows
    for count in range(len(rows) + 2):
        last = rows_of(run("walcat", "--tail", str(count), place.store,
                           place.session))
        assert last == rows[max(0, len(rows) - count):], (count, last)
        last = shown("--type", "message", "--tail", str(count))
        assert last == ["go", "gone", "then"][max(0, 3 - count):], last
    assert shown("--stream", "1") == []
    assert shown("--up-to", rows[-1]["id"]) == ["go", "gone", "then"]
    text = run("walcat", "--text", place.store, place.session).decode()
    assert text.index("go\n") < text.index("gone\n") < text.index("then\n")
    tree = run("walcat", "--tree", place.store, place.session).decode()
    lines = [line for line in tree.splitlines() if "message" in line]
    assert [line.split(":", 1)[1].split()[0] for line in lines] == \
        ["go", "gone", "then"], tree
    assert "<- main" in lines[2] and not lines[2].startswith((" ", "├", "└"))

    # What a compaction keeps begins after the documents.
    place.append("next")
    entry = {"type": "compaction", "payload": {
        "summary": "the gist", "firstKeptEntryId": rows_of(run(
            "walcat", "--tail", "1", place.store, place.session))[0]["id"]}}
    subprocess.run([os.path.join(TOOLS, "agentwal"), "--store", place.store,
                    "append", place.session],
                   input=json.dumps(entry).encode(), check=True,
                   capture_output=True)
    assert shown("--since-compaction") == ["next"]
    text = run("walcat", "--text", place.store, place.session).decode()

    # A fork has the documents too.
    run("agentwal", "--store", place.store, "fork", place.session, "--id",
        "the-fork")
    fork = run("walcat", "--text", place.store, "the-fork").decode()
    assert fork == text, fork

    # A branch that goes on before the last message shows no later one.
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    first = [row for row in read(file) if row["type"] == "message"][0]["id"]
    write(file, pi_entry("aaaa0001", first, "instead"))
    place.import_()
    rows = rows_of(run("walcat", "--all", place.store, place.session))
    assert rows[-1]["parentId"] == message_id(1), rows
    run("agentwal", "--store", place.store, "head", place.session, "main",
        rows[-1]["id"])
    rows = rows_of(run("walcat", place.store, place.session))
    assert [row["id"] for row in rows if "content" in row["payload"]] == \
        [message_id(1)], rows
    assert rows[-1]["parentId"] == message_id(1), rows


def compactions_of_the_client_are_known(work):
    """OpenCode 1.0 compacts by a part of a message of the user, and a summary
    as its answer."""
    def session(home):
        storage = home + "/storage"
        opencode_session(home)
        opencode_message(storage, SES, 3, "user", "")
        part = one(storage + "/part/" + message_id(3) + "/*")
        with open(part, "w", encoding="utf-8") as file:
            json.dump({"id": message_id(3).replace("msg_", "prt_"),
                       "sessionID": SES, "messageID": message_id(3),
                       "type": "compaction", "auto": True}, file)
        opencode_message(storage, SES, 4, "assistant", "gist", summary=True)
        opencode_message(storage, SES, 5, "user", "more")
    place = Place(work, session)
    place.append("then")

    def cat(*options):
        return [row["payload"].get("summary") or row["payload"]["content"]
                for row in rows_of(run("walcat", *options, place.store,
                                       place.session))]
    gist = [{"type": "text", "text": "more"}]
    assert cat("--since-compaction") == ["gist", gist, "then"]
    assert cat("--since-compaction", "--tail", "2") == [gist, "then"]
    assert len(cat()) == 5


def client_follows_the_documents(work):
    """pi 0.73 going on in a view of an OpenCode session: its turn's parent is
    a message that is no entry; the history stays whole."""
    place = Place(work, opencode_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    write(file, pi_entry("aaaa0001", read(file)[-1]["id"], "of pi"))
    row = place.import_()[0]
    assert row["appended"] == 1 and row["damaged"] == [], row
    place.export("pi")
    assert texts(file) == ["go", "gone", "of pi"], texts(file)
    first = [row for row in read(file) if row["type"] == "message"][0]["id"]
    write(file, pi_entry("aaaa0002", first, "instead"))
    place.import_()
    place.export("pi")
    assert texts(file) == ["go", "instead"], texts(file)


def titles_are_carried(work):
    """pi 0.73 shows the name of session_info; Codex 0.169 that of
    session_index.jsonl, which the client writes too."""
    place = Place(work, opencode_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    assert [row["name"] for row in read(file)
            if row["type"] == "session_info"] == ["Its title"]
    index = place.out + "/session_index.jsonl"
    with open(index, "w", encoding="utf-8") as rows:
        rows.write('{"id":"other","thread_name":"Other"}')  # no newline
    for _ in range(2):
        place.export("codex")
        names = [row["thread_name"] for row in read(index)]
        assert names == ["Other", "Its title"], names


def storage_is_one_file_on_standard_output(work):
    """OpenCode 1.18 reads no storage; it imports {info, messages}."""
    place = Place(work, claude_session)
    text = run("agentwal", "--store", place.store, "export", "--dialect",
               "opencode", "--session", place.session, "--stdout")
    session = json.loads(text)
    assert [m["info"]["role"] for m in session["messages"]] == \
        ["user", "assistant"]
    for message in session["messages"]:
        assert message["info"]["sessionID"] == session["info"]["id"]
        for part in message["parts"]:
            assert part["messageID"] == message["info"]["id"]
    file = work + "/export.json"
    with open(file, "wb") as export:
        export.write(text)
    row = place.import_(file)[0]
    assert row["sessionId"] == place.session and row["appended"] == 0, row
    place.store = work + "/other"
    run("agentwal", "--store", place.store, "init")
    row = place.import_(file)[0]
    assert row["sessionId"] == session["info"]["id"], row


def bytes_of_documents_are_reported(work):
    """A view of OpenCode consists of documents, which have no lines."""
    place = Place(work, claude_session)
    out = ["agentwal", "--store", place.store, "export", "--dialect", "opencode", place.out]
    for session in ([], ["--session", place.session]):
        text = run(*out[:-1], *session, place.out + str(len(session))).decode()
        assert re.search(r", \d[\d.]* k?B written$|, \d+ bytes written$", text, re.M), text
        text = run(*out[:-1], *session, place.out + str(len(session))).decode()
        assert ", 0 lines added\n" in text, text


# What OpenCode 1.18 refuses a file without.
REQUIRED = {"session": {"id", "slug", "version", "title", "time"},
            "user": {"id", "sessionID", "time", "agent", "model"},
            "assistant": {"id", "sessionID", "time", "parentID", "modelID", "providerID", "mode",
                          "agent", "path", "cost", "tokens"}}


def one_file_has_what_older_versions_did_not_write(work):
    """OpenCode 0.1 wrote neither a slug nor agents, nor the parents of answers."""
    home = work + "/home"
    made = {"time": {"created": 1767323045000, "updated": 1767323045000}}
    write(home + "/storage/session/global/" + SES + ".json",
          {"id": SES, "version": "0.1.0", "title": "Old", "directory": "/p", **made})
    for number, role in enumerate(("user", "assistant")):
        write("%s/storage/message/%s/%s.json" % (home, SES, message_id(number)),
              {"id": message_id(number), "sessionID": SES, "role": role, "mode": "plan", **made})
        os.makedirs(home + "/storage/part/" + message_id(number))
        opencode_parts(home, number, {"type": "text", "text": role},
                       *[{"type": "step-finish", "cost": 1}] * number)
    place = Place(work, lambda _: home)
    session = json.loads(run("agentwal", "--store", place.store, "export", "--dialect",
                             "opencode", "--session", SES, "--stdout"))
    user, answer = session["messages"]
    assert REQUIRED["session"] <= set(session["info"]), session
    assert REQUIRED["user"] <= set(user["info"]), user
    assert REQUIRED["assistant"] <= set(answer["info"]), answer
    assert answer["info"]["parentID"] == user["info"]["id"], answer
    assert answer["info"]["mode"] == "plan" and session["info"]["version"] == "0.1.0"
    assert "reason" not in answer["parts"][0] and answer["parts"][1]["reason"] == "stop", answer


def client_goes_on_in_documents(work):
    """OpenCode 1.0 writes its turns as new documents, and a rename into the
    session's. Both are the session's, and no export writes over them before
    they are imported. A message that is being written waits."""
    place = Place(work, claude_session)
    place.export("opencode")
    session, shown = opencode_texts(place.out)
    assert shown == ["go", "gone"]
    storage = place.out + "/storage"
    project = one(storage + "/project/*.json")
    path = one(storage + "/session/*/*.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(session, title="Renamed"), file, indent=2)
    with open(project, "w", encoding="utf-8") as file:
        file.write('{"id":"global","worktree":"/","mine":true}')
    before = open(path, "rb").read()
    place.export("opencode", code=1)
    place.append("of the log")
    place.export("opencode", code=1)
    assert open(path, "rb").read() == before
    number = 99999
    last = sorted(os.listdir(storage + "/message/" + session["id"]))[-1]
    assert message_id(number) > last[:-5]
    opencode_message(storage, session["id"], number - 1, "user", "of the user")
    opencode_message(storage, session["id"], number, "assistant", "half")
    row = place.import_()[0]
    assert row["appended"] == 1 and row["sessionId"] == place.session, row
    assert [row["title"] for row in place.sessions()] == ["Renamed"]
    opencode_message(storage, session["id"], number, "assistant", "whole",
                     time={"created": 1767323146000, "completed": 1})
    assert place.import_()[0]["appended"] == 1
    assert place.import_()[0]["appended"] == 0
    assert len(place.sessions()) == 1
    assert '"mine":true' in open(project, encoding="utf-8").read()


def client_renames_and_goes_on_in_documents(work):
    """The same, when the log did not go on: the head follows, the title is the
    client's, and both are in every view."""
    place = Place(work, claude_session)
    place.export("opencode")
    session, _ = opencode_texts(place.out)
    storage = place.out + "/storage"
    with open(one(storage + "/session/*/*.json"), "w",
              encoding="utf-8") as file:
        json.dump(dict(session, title="Renamed"), file)
    opencode_message(storage, session["id"], 99998, "user", "of the user")
    opencode_message(storage, session["id"], 99999, "assistant", "answered",
                     time={"created": 1767323146000, "completed": 1})
    assert place.import_()[0]["appended"] == 2
    assert place.sessions()[0]["title"] == "Renamed"
    place.append("of the log")
    place.export("opencode")
    session, shown = opencode_texts(place.out)
    assert session["title"] == "Renamed", session
    assert shown == ["go", "gone", "of the user", "answered", "of the log"]
    place.export("pi")
    assert texts(one(place.out + "/sessions/**/*.jsonl")) == shown
    text = run("walcat", "--text", place.store, place.session).decode()
    assert "answered" in text, text


def forks_are_listed(work):
    """OpenCode 1.0 lists no session with a parentID: its own forks have none."""
    place = Place(work, opencode_session)
    run("agentwal", "--store", place.store, "fork", place.session, "--id",
        "the-fork")
    run("agentwal", "--store", place.store, "export", "--dialect", "opencode",
        "--session", "the-fork", place.out)
    session = json.load(open(one(place.out + "/storage/session/*/*.json"),
                             encoding="utf-8"))
    assert "parentID" not in session and session["id"] != SES, session


def check_ids(out):
    """Ids of the storage are unique, and references agree with the names."""
    seen = set()
    for path in glob.glob(out + "/storage/*/*/*.json"):
        kind, folder, name = path[:-5].split("/")[-3:]
        value = json.load(open(path, encoding="utf-8"))
        assert value["id"] == name and name not in seen, path
        seen.add(name)
        if kind == "message":
            assert value["sessionID"] == folder, path
        elif kind == "part":
            assert value["messageID"] == folder, path
            assert os.path.exists("%s/storage/message/%s/%s.json" % (
                out, value["sessionID"], folder)), path


def no_two_sessions_share_an_id(work):
    """OpenCode 1.2 moves messages and parts into tables by their ids, and finds
    parts by the id of the message alone: no two sessions share an id."""
    place = Place(work, opencode_session)
    pending = {"id": message_id(4).replace("msg_", "prt_"), "type": "tool",
               "sessionID": SES, "messageID": message_id(3), "callID": "c",
               "tool": "t", "state": {"status": "running", "input": {}}}
    opencode_message(place.home + "/storage", SES, 3, "assistant", "calls")
    with open(place.home + "/storage/part/" + message_id(3) + "/" +
              pending["id"] + ".json", "w", encoding="utf-8") as file:
        json.dump(pending, file)
    place.import_(place.home)
    run("agentwal", "--store", place.store, "fork", place.session, "--id",
        "the-fork")
    for fork in ("the-fork", place.session, "the-fork"):
        run("agentwal", "--store", place.store, "export", "--dialect",
            "opencode", "--session", fork, place.out)
    check_ids(place.out)
    assert len(glob.glob(place.out + "/storage/message/*/*.json")) == 6
    assert len(glob.glob(place.out + "/storage/part/*/*.json")) == 8
    for path in glob.glob(place.out + "/storage/message/*/*.json"):
        value = json.load(open(path, encoding="utf-8"))
        above = os.path.join(os.path.dirname(path), "%s.json")
        if value.get("parentID"):
            assert os.path.exists(above % value["parentID"]), value


def no_two_summaries_share_an_id(work):
    """The same for what has no id in the log: two sessions of one second, each
    with a summary."""
    def sessions(home):
        for number in range(2):
            write("%s/sessions/--w--/%d.jsonl" % (home, number),
                  {"type": "session", "version": 3, "id": "pi%d" % number,
                   "timestamp": "2026-03-01T00:00:00.000Z", "cwd": "/w"},
                  pi_entry("aaaa0001", None, "go"),
                  {"type": "compaction", "id": "aaaa0002", "tokensBefore": 9,
                   "parentId": "aaaa0001", "summary": "the gist",
                   "timestamp": "2026-03-01T00:00:00.000Z",
                   "firstKeptEntryId": "aaaa0001"})
    place = Place(work, sessions)
    run("agentwal", "--store", place.store, "export", "--dialect", "opencode",
        place.out)
    check_ids(place.out)
    assert len(glob.glob(place.out + "/storage/message/*/*.json")) == 6


def own_documents_keep_their_bytes(work):
    """OpenCode 1.0 to 1.2 undo by the steps, snapshots and patches in their
    parts; a session goes on after them, and they stay as they are."""
    def session(home):
        opencode_session(home)
        folder = home + "/storage/part/" + message_id(2)
        for number, kind in enumerate(("step-start", "patch", "step-finish")):
            name = "prt_b7ca99%06dAAAAAAAAAAAAAA" % number
            with open(folder + "/" + name + ".json", "w",
                      encoding="utf-8") as file:
                json.dump({"id": name, "sessionID": SES, "type": kind,
                           "messageID": message_id(2), "snapshot": "abc",
                           "hash": "abc", "files": [], "reason": "stop",
                           "cost": 0.5}, file, indent=3)
    place = Place(work, session)
    for goes_on in (False, True):
        if goes_on:
            place.append("then")
        place.export("opencode")
        for kind in ("message", "part"):
            folder = "/storage/" + kind
            for path in glob.glob(place.home + folder + "/*/*.json"):
                copy = place.out + path[len(place.home):]
                assert open(path, "rb").read() == open(copy, "rb").read(), copy
    assert opencode_texts(place.out)[1][-1] == "then"

def opencode_parts(home, number, *parts):
    """Replaces the parts of a message; each has the next id."""
    folder = home + "/storage/part/" + message_id(number)
    for path in glob.glob(folder + "/*.json"):
        os.remove(path)
    for at, part in enumerate(parts):
        name = "prt_b7ca990%05dAAAAAAAAAAAAAA" % (100 * number + at)
        part = {"id": name, "messageID": message_id(number),
                "sessionID": SES, **part}
        with open(folder + "/" + name + ".json", "w", encoding="utf-8") as file:
            json.dump(part, file, indent=2)
            file.write("\n")


def whole_session(home):
    """What OpenCode 1.0 leaves of a session that was interrupted, compacted
    and undone: calls without a result, an abort, marks of compactions and
    summaries without one, patches alone, todo/ and session_diff/."""
    opencode_session(home)
    storage = home + "/storage"
    named = {"parentID": message_id(1)}
    tool = {"type": "tool", "tool": "bash", "metadata": {"openai": {"x": 1}}}
    opencode_message(storage, SES, 3, "assistant", "", **named)
    opencode_parts(home, 3, {"type": "step-start", "snapshot": "abc"},
                   {**tool, "callID": "c1",
                    "state": {"status": "pending", "input": {}, "raw": "{"}},
                   {**tool, "callID": "c2",
                    "state": {"status": "running", "input": {"command": "ls"},
                              "title": "ls", "time": {"start": 5}}})
    opencode_message(storage, SES, 4, "assistant", "", cost=0.25, error={
        "name": "MessageAbortedError", "data": {"message": "Aborted by me."}})
    opencode_parts(home, 4)
    opencode_message(storage, SES, 5, "assistant", "", parentID=message_id(4))
    opencode_parts(home, 5, {"type": "patch", "hash": "abc", "files": ["a"]})
    for number in (6, 7, 9, 10, 13):
        opencode_message(storage, SES, number, "user", "")
        opencode_parts(home, number, {"type": "compaction", "auto": True})
    for number, parent in ((8, 7), (11, 10), (12, 99)):
        opencode_message(storage, SES, number, "assistant", "gist",
                         summary=True, cost=0.5, finish="stop", mode="x",
                         tokens={"input": 9}, parentID=message_id(parent))
    for kind, value in (("todo", [{"content": "it", "status": "pending"}]),
                        ("session_diff", [{"file": "a", "additions": 1}])):
        os.makedirs(storage + "/" + kind)
        with open(storage + "/" + kind + "/" + SES + ".json", "w",
                  encoding="utf-8") as file:
            json.dump(value, file, indent=2)


def files_of(storage):
    """The files of a storage without those of the client itself."""
    return {path[len(storage) + 1:]: open(path, "rb").read() for path in
            glob.glob(storage + "/**/*.json", recursive=True)
            if not path.startswith(storage + "/project/")}


def own_session_keeps_its_files(work):
    """OpenCode 1.0 gets the session back that it wrote, file by file: what it
    undoes, what it shows of an abort, what a compaction cost."""
    place = Place(work, whole_session)
    ours, theirs = place.out + "/storage", place.home + "/storage"
    assert place.export("opencode")[0]["losses"] == []
    before = files_of(theirs)
    assert files_of(ours) == before, [
        path for path in {**before, **files_of(ours)}
        if before.get(path) != files_of(ours).get(path)]
    times = {path: os.stat(ours + "/" + path).st_mtime_ns for path in before}
    states = {path: os.stat(path).st_ino for path in
              glob.glob(place.out + "/.agentwal/opencode-*.json")}
    place.export("opencode")
    for path in before:  # the same content in other files
        os.rename(ours + "/" + path, ours + "/moved")
        with open(ours + "/" + path, "wb") as file:
            file.write(before[path])
        os.utime(ours + "/" + path, ns=(times[path], times[path]))
        os.remove(ours + "/moved")
    place.export("opencode")
    assert len(states) == 1 and states == {
        path: os.stat(path).st_ino for path in states}
    assert times == {path: os.stat(ours + "/" + path).st_mtime_ns
                     for path in before}
    rows = [row for row in place.import_()
            if not row["sessionId"].startswith("files-")]  # project/
    assert [row["appended"] for row in rows] == [0], rows
    # It goes on: a message is new, and the others stay.
    place.append("then")
    place.export("opencode")
    after = files_of(ours)
    assert {path: after[path] for path in before} == before
    assert len(after) == len(before) + 2, set(after) - set(before)
    assert "then" in opencode_texts(place.out)[1][-1]
    # What the client changes next to the session stays.
    todo = ours + "/todo/" + SES + ".json"
    with open(todo, "w", encoding="utf-8") as file:
        file.write("[]")
    place.append("more")
    place.export("opencode")
    assert open(todo, encoding="utf-8").read() == "[]"


def late_result_is_in_its_call(work):
    """OpenCode 1.0 has one part for a call and its result: a result that comes
    later changes the state of the call's part, and nothing else."""
    place = Place(work, whole_session)
    place.export("opencode")
    entry = {"type": "message", "payload": {
        "role": "tool", "tool_call_id": "c2",
        "content": [{"type": "text", "text": "a.c"}]}}
    subprocess.run([os.path.join(TOOLS, "agentwal"), "--store", place.store,
                    "append", place.session],
                   input=json.dumps(entry).encode(), check=True,
                   capture_output=True)
    place.export("opencode")
    before = files_of(place.home + "/storage")
    after = files_of(place.out + "/storage")
    changed = [path for path in after if after[path] != before.get(path)]
    assert len(changed) == 1 and len(after) == len(before), changed
    old, new = [json.loads(files[changed[0]]) for files in (before, after)]
    assert new["state"]["status"] == "completed", new
    assert new["state"]["output"] == "a.c", new
    assert new["state"]["input"] == old["state"]["input"], new
    assert {**old, "state": 0} == {**new, "state": 0}, (old, new)


def compaction_in_the_view_stays(work):
    """OpenCode 1.0 compacts a view that it goes on in: its two messages are
    taken in, and are in the view as it wrote them."""
    place = Place(work, claude_session)
    place.export("opencode")
    storage = place.out + "/storage"
    session = os.path.basename(one(storage + "/session/*/*.json"))[:-5]
    for name, info, part in (
            ("msg_fffffffff001AAAAAAAAAAAAAA",
             {"role": "user", "agent": "build"},
             {"type": "compaction", "auto": False}),
            ("msg_fffffffff002AAAAAAAAAAAAAA",
             {"role": "assistant", "summary": True, "cost": 0.5,
              "time": {"created": 1767323047000, "completed": 1767323048000},
              "parentID": "msg_fffffffff001AAAAAAAAAAAAAA", "finish": "stop"},
             {"type": "text", "text": "the gist"})):
        info = {"id": name, "sessionID": session,
                "time": {"created": 1767323047000}, **info}
        part = {"id": name.replace("msg_", "prt_"), "sessionID": session,
                "messageID": name, **part}
        for kind, folder, value in (("message", session, info),
                                    ("part", name, part)):
            path = "/".join((storage, kind, folder, value["id"] + ".json"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value, file, separators=(",", ":"))
    before = files_of(storage)
    assert place.import_()[0]["appended"] == 2
    place.append("then")
    place.export("opencode")
    after = files_of(storage)
    assert all(before[path] == after.get(path) for path in before
               if "/session/" not in "/" + path), set(before) ^ set(after)
    assert sum(row["appended"] for row in place.import_()) == 0
    place.export("pi")
    rows = read(one(place.out + "/sessions/**/*.jsonl"))
    assert [row["summary"] for row in rows if row["type"] == "compaction"] == \
        ["the gist"], rows


def branch_inside_a_message_is_kept(work):
    """pi 0.73 goes back to a call, before its result, in a session of OpenCode:
    what it adds there is in every view."""
    def session(home):
        opencode_session(home)
        opencode_message(home + "/storage", SES, 3, "assistant", "")
        opencode_parts(home, 3, {
            "type": "tool", "tool": "bash", "callID": "c1",
            "state": {"status": "completed", "input": {}, "output": "a.c",
                      "title": "", "metadata": {}, "time": {"start": 5,
                                                            "end": 6}}})
    place = Place(work, session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    call = [row["id"] for row in read(file) if row["type"] == "message"][-2]
    write(file, pi_entry("aaaa0001", call, "instead"))
    assert sum(row["appended"] for row in place.import_()) == 1
    place.export("opencode")
    assert "instead" in opencode_texts(place.out)[1]


def main():
    for rule in (entries_follow_the_documents, documents_are_shown,
                 compactions_of_the_client_are_known,
                 client_follows_the_documents, titles_are_carried,
                 storage_is_one_file_on_standard_output,
                 one_file_has_what_older_versions_did_not_write,
                 bytes_of_documents_are_reported,
                 client_goes_on_in_documents,
                 client_renames_and_goes_on_in_documents, forks_are_listed,
                 no_two_sessions_share_an_id,
                 no_two_summaries_share_an_id, own_documents_keep_their_bytes,
                 own_session_keeps_its_files, late_result_is_in_its_call,
                 compaction_in_the_view_stays,
                 branch_inside_a_message_is_kept):
        with tempfile.TemporaryDirectory() as work:
            rule(work)
            print(rule.__name__)


main()
