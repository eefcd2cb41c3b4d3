#!/usr/bin/env python3
"""Rules of real clients that hold for a view and its client together: what a
client adds to a view is the session's, and what the log adds is the client's.
Each function states the rule, and the version in which it was seen."""
import glob
import json
import os
import subprocess
import tempfile

TOOLS = os.environ["WALBIN"]
CLAUDE = "11111111-1111-4111-8111-111111111111"
TIME = "2025-09-29T10:00:0%d.000Z"


def run(*command, code=0):
    done = subprocess.run([os.path.join(TOOLS, command[0]), *command[1:]],
                          capture_output=True, check=False)
    assert done.returncode == code, (command, done.returncode, done.stderr)
    return done.stdout


def rows_of(output):
    return [json.loads(line) for line in output.splitlines()]


def write(path, *rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def uuid(number):
    return "00000000-0000-4000-8000-%012d" % number


def claude_row(number, role, text, parent=None):
    content = text if role == "user" else [{"type": "text", "text": text}]
    return {"parentUuid": uuid(parent) if parent else None,
            "isSidechain": False, "cwd": "/w", "sessionId": CLAUDE,
            "type": role, "uuid": uuid(number), "timestamp": TIME % number,
            "message": {"role": role, "content": content, "id": "m%d" % number,
                        "model": "claude-x", "type": "message"}}


def claude_session(home):
    """A transcript as today's CLI leaves it: it ends in rows of metadata."""
    write(home + "/projects/-w/" + CLAUDE + ".jsonl",
          claude_row(1, "user", "go"), claude_row(2, "assistant", "gone", 1),
          {"type": "last-prompt", "lastPrompt": "go", "leafUuid": uuid(2),
           "sessionId": CLAUDE})


def pi_entry(name, parent, text, role="user"):
    return {"type": "message", "id": name, "parentId": parent,
            "timestamp": "2026-03-01T00:00:00.000Z",
            "message": {"role": role, "timestamp": 1,
                        "content": [{"type": "text", "text": text}]}}


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def one(pattern):
    found = glob.glob(pattern, recursive=True)
    assert len(found) == 1, (pattern, found)
    return found[0]


def texts(path):
    """The texts of a pi file from its root to its leaf, the last line."""
    rows = {row["id"]: row for row in read(path)}
    at, shown = read(path)[-1], []
    while at is not None:
        content = at.get("message", {}).get("content", [])
        shown += [block["text"] for block in content if "text" in block][::-1]
        at = rows.get(at.get("parentId"))
    return shown[::-1]


class Place:
    """A store with a session, and a folder of views."""

    def __init__(self, work, make):
        self.store = work + "/store"
        self.home = work + "/home"
        self.out = work + "/out"
        run("walctl", "init", self.store)
        make(self.home)
        row = self.import_(self.home)[0]
        self.session = row["sessionId"]

    def import_(self, path=None, code=0):
        return rows_of(run("walconv", "import", "--json", self.store,
                           path or self.out, code=code))

    def export(self, dialect, code=0):
        return rows_of(run("walconv", "export", "--json", "--dialect", dialect,
                           "--session", self.session, self.store, self.out,
                           code=code))

    def append(self, text):
        entry = {"type": "message", "payload": {"role": "user",
                                                "content": text}}
        subprocess.run([os.path.join(TOOLS, "walctl"), "append", self.store,
                        self.session], input=json.dumps(entry).encode(),
                       check=True, capture_output=True)

    def sessions(self):
        rows = rows_of(run("walctl", "list", "--json", self.store))
        return [row for row in rows if not row["sessionId"].startswith("files-")]


# ------------------------------------------------------------------- pi ----

def head_follows_the_client(work):
    """pi 0.73 resumes at the last line. Its turn names the line before, which
    may be metadata of another client; the session goes on there all the
    same."""
    place = Place(work, claude_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    last = read(file)[-1]["id"]
    write(file, pi_entry("aaaa0001", last, "of pi"))
    assert place.import_()[0]["appended"] == 1
    place.append("of the log")
    place.export("pi")
    assert texts(file) == ["go", "gone", "of pi", "of the log"], texts(file)


def head_goes_back_with_the_client(work):
    """pi 0.73: a user who goes back in the tree and goes on resumes there."""
    place = Place(work, claude_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    first = [row for row in read(file) if row["type"] == "message"][0]["id"]
    write(file, pi_entry("aaaa0001", first, "instead"))
    place.import_()
    place.export("pi")
    assert texts(file) == ["go", "instead"], texts(file)
    write(file, pi_entry("aaaa0002", "aaaa0001", "and more"))
    place.import_()
    place.append("then")
    place.export("pi")
    assert texts(file) == ["go", "instead", "and more", "then"], texts(file)


def answer_stays_in_the_branch(work):
    """pi 0.73 names the last answer as the parent of its turn, also when the
    log goes on too: the answer is in the history of both branches."""
    place = Place(work, claude_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    answer = [row for row in read(file) if row["type"] == "message"][-1]["id"]
    write(file, pi_entry("aaaa0001", answer, "of pi"))
    place.append("of the log")
    row = place.import_()[0]
    assert row["appended"] == 1 and row["damaged"] == [], row
    place.export("pi")
    # Both went on: the head stays with the log, the client's is a branch.
    assert texts(file) == ["go", "gone", "of the log"], texts(file)
    rows = {row["id"]: row for row in read(file)}
    own = rows["aaaa0001"]
    while own["type"] != "message" or own["id"] == "aaaa0001":
        own = rows[own["parentId"]]
    assert own["message"]["role"] == "assistant", own


def moved_head_is_what_the_client_follows(work):
    """pi 0.73 resumes at the last line, also where that only marks a head that
    was moved back; its turn is a branch if the log went on meanwhile."""
    place = Place(work, claude_session)
    run("walctl", "head", place.store, place.session, "main", uuid(1))
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    assert texts(file) == ["go"], texts(file)
    write(file, pi_entry("aaaa0001", read(file)[-1]["id"], "of pi"))
    place.append("of the log")
    row = place.import_()[0]
    assert row["appended"] == 1 and row["damaged"] == [], row
    place.export("pi")
    assert texts(file) == ["go", "of the log"], texts(file)
    rows = {row["id"]: row for row in read(file)}
    own = rows[rows["aaaa0001"]["parentId"]]
    assert own["message"]["content"][0]["text"] == "go", own


CODEX = "22222222-2222-4222-8222-222222222222"


def codex_session(home):
    """A rollout that ends in an item of an answer: its counts never came."""
    def line(kind, **payload):
        return {"timestamp": TIME % 1, "type": kind, "payload": payload}

    def message(role, kind, text):
        return line("response_item", type="message", role=role,
                    content=[{"type": kind, "text": text}])
    write(home + "/sessions/2025/09/29/rollout-2025-09-29T10-00-01-" + CODEX +
          ".jsonl",
          line("session_meta", id=CODEX, timestamp=TIME % 1, cwd="/w",
               originator="o", cli_version="0"),
          message("user", "input_text", "go"),
          message("assistant", "output_text", "gone"))


def entries_follow_the_last_answer(work):
    """Codex 0.169 writes the counts of an answer after it; an entry that comes
    instead is a child of the answer, in every client."""
    place = Place(work, codex_session)
    place.append("then")
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    assert texts(file) == ["go", "gone", "then"], texts(file)
    assert read(file)[-1]["message"]["role"] == "user", read(file)


def files_have_the_time_of_the_session(work):
    """Claude's SDK 0.3 and pi 0.73 sort sessions by the times of files."""
    place = Place(work, claude_session)
    run("walconv", "export", "--dialect", "source", place.store, place.out)
    for dialect in ("claude", "pi"):
        place.export(dialect)
    files = glob.glob(place.out + "/**/*.jsonl", recursive=True)
    assert len(files) == 2, files
    for file in files:
        assert int(os.stat(file).st_mtime) == 1759140002, (file, os.stat(file))


# ------------------------------------------------------------- OpenCode ----

SES = "ses_7fffffffffffAAAAAAAAAAAAAA"


def message_id(number):
    return "msg_b7ca990%05dAAAAAAAAAAAAAA" % number


def opencode_message(storage, session, number, role, text, **more):
    name = message_id(number)
    info = {"id": name, "sessionID": session, "role": role,
            "time": {"created": 1767323046000 + number}, **more}
    if role == "user":
        info.update(agent="build", model={"providerID": "p", "modelID": "m"})
    part = {"id": name.replace("msg_", "prt_"), "sessionID": session,
            "messageID": name, "type": "text", "text": text}
    for kind, folder, value in (("message", session, info),
                                ("part", name, part)):
        path = os.path.join(storage, kind, folder, value["id"] + ".json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)


def opencode_session(home):
    path = home + "/storage/session/p1/" + SES + ".json"
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"id": SES, "projectID": "p1", "directory": "/w",
                   "version": "1.0.0", "slug": "s", "title": "Its title",
                   "time": {"created": 1767323045000,
                            "updated": 1767323054000}}, file)
    opencode_message(home + "/storage", SES, 1, "user", "go")
    opencode_message(home + "/storage", SES, 2, "assistant", "gone",
                     finish="stop")


def opencode_texts(out):
    session = json.load(open(one(out + "/storage/session/*/*.json"),
                             encoding="utf-8"))
    shown = []
    folder = out + "/storage/message/" + session["id"] + "/*.json"
    for path in sorted(glob.glob(folder)):
        name = os.path.basename(path)[:-5]
        for part in sorted(glob.glob(out + "/storage/part/" + name + "/*")):
            shown.append(json.load(open(part, encoding="utf-8")).get("text"))
    return session, shown


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
    text = run("walconv", "export", "--dialect", "opencode", "--session",
               place.session, "--stdout", place.store)
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
    assert row["sessionId"] == session["info"]["id"], row


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


# --------------------------------------------------------------- import ----

def import_only_reads(work):
    """An import runs no program and writes nothing into a repository."""
    tree = work + "/tree"
    git = dict(os.environ, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b",
               GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
    subprocess.run(["git", "init", "-q", tree], check=True)
    subprocess.run(["git", "-C", tree, "commit", "-q", "--allow-empty", "-m",
                    "m"], check=True, env=git)

    def session(home):
        row = dict(claude_row(1, "user", "go"), cwd=tree)
        write(home + "/projects/-w/" + CLAUDE + ".jsonl", row)
    place = Place(work, session)
    assert not os.path.exists(tree + "/.git/opencode")
    assert place.sessions()[0]["projectId"] == tree, place.sessions()
    run("walctl", "migrate", place.store)
    assert len(place.sessions()[0]["projectId"]) == 40, place.sessions()


def calls_are_shown(work):
    """Messages in the form of OpenAI have their calls in tool_calls."""
    place = Place(work, claude_session)
    entry = {"type": "message", "payload": {
        "role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {
                "name": "Glob", "arguments": "{\"pattern\":\"*.c\"}"}},
            {"id": "d", "type": "custom", "custom": {
                "name": "Patch", "input": "*** Begin"}}, 7]}}
    subprocess.run([os.path.join(TOOLS, "walctl"), "append", place.store,
                    place.session], input=json.dumps(entry).encode(),
                   check=True, capture_output=True)
    text = run("walcat", "--text", place.store, place.session).decode()
    assert '[call Glob {"pattern":"*.c"}]' in text, text
    assert "[call Patch *** Begin]" in text, text
    tree = run("walcat", "--tree", place.store, place.session).decode()
    assert "[call Glob" in tree, tree


def subagents_are_next_to_their_session(work):
    """Claude's SDK 0.3 lists subagents in the folder of the session that
    started them, whatever directory they worked in; no other client shows
    them, nor what no client wrote."""
    home, store = work + "/home/.claude", work + "/store"
    claude_session(home)
    write(home + "/projects/-w/" + CLAUDE + "/subagents/agent-abc.jsonl",
          dict(claude_row(3, "user", "sub"), isSidechain=True, cwd="/other",
               agentId="abc"))
    write(work + "/notes.jsonl", {"type": "note", "role": "user",
                                  "content": "not a session"})
    run("agentwal", "--store", store, "init")
    run("agentwal", "--store", store, "import", home, work + "/notes.jsonl")
    for dialect, expected in (("claude", 2), ("pi", 1), ("codex", 1)):
        out = work + "/" + dialect
        run("agentwal", "--store", store, "export", "--dialect", dialect, out)
        files = glob.glob(out + "/**/*.jsonl", recursive=True)
        assert len(files) == expected, files
    assert os.path.exists(work + "/claude/projects/-w/" + CLAUDE +
                          "/subagents/agent-abc.jsonl")


def main():
    for rule in (subagents_are_next_to_their_session,
                 head_follows_the_client, head_goes_back_with_the_client,
                 answer_stays_in_the_branch,
                 moved_head_is_what_the_client_follows,
                 entries_follow_the_last_answer,
                 files_have_the_time_of_the_session,
                 entries_follow_the_documents, client_follows_the_documents,
                 titles_are_carried, storage_is_one_file_on_standard_output,
                 client_goes_on_in_documents,
                 client_renames_and_goes_on_in_documents, import_only_reads,
                 calls_are_shown):
        with tempfile.TemporaryDirectory() as work:
            rule(work)
            print(rule.__name__)


main()
