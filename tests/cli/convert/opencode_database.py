#!/usr/bin/env python3
"""Import of OpenCode's database: both versions of its tables in one file, while a
client writes, after a client that moved its files into it, from its
relatives, and with what databases have that no client wrote."""
import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests", "clients"))
sys.dont_write_bytecode = True
import made as made_sessions  # noqa: E402

TOOLS = os.environ["WALBIN"]
LIMIT = 60  # seconds for what takes milliseconds
SQLITE_LOCK = 0x40000000  # offset of the bytes that SQLite locks in a database
STEP = int(os.environ.get("AGENTWAL_STRIDE", "1"))
T0 = 1770000000000
NOW = int(time.time() * 1000) - 60000  # when the client wrote its rows
V1 = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  slug text NOT NULL, directory text NOT NULL, title text NOT NULL,
  version text NOT NULL, share_url text, cost real DEFAULT 0 NOT NULL,
  tokens_input integer DEFAULT 0 NOT NULL, revert text, model text,
  time_created integer NOT NULL, time_updated integer NOT NULL,
  time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session ON message (session_id, time_created, id);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL,
  session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX part_message ON part (message_id, id);
CREATE INDEX part_session ON part (session_id);
CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL,
  status text NOT NULL, priority text NOT NULL, position integer NOT NULL);
CREATE TABLE session_share (session_id text PRIMARY KEY, secret text NOT NULL);
"""
V2 = """
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL,
  parent_id text, fork_session_id text, slug text NOT NULL,
  directory text NOT NULL, title text, version text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL,
  type text NOT NULL, seq integer NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE UNIQUE INDEX session_message_seq ON session_message (session_id, seq);
"""
SES = "ses_%012xAAAAAAAAAAAAAA"
WORK = None


def run(*arguments, code=0, **options):
    done = subprocess.run([os.path.join(TOOLS, "agentwal"), *arguments],
                          capture_output=True, check=False, timeout=600, **options)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def rows_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def ident(kind, number):
    """An id as the client makes it: `number` is its time."""
    return "%s_%012x%014d" % (kind, (T0 + number) * 4096 % 2**48, number)


def texts_of(row):
    """The texts of a message, of the model or of the client, with its role."""
    payload = row["payload"]
    info = payload.get("info", {})
    role = payload.get("role") or info.get("role") or info["type"]
    content = payload.get("content") or payload.get("parts") or info.get("content") or \
        info.get("text") or []
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return [(role, block["text"]) for block in content if block.get("text")]


class Home:
    """A user with a client's folder, and a store."""

    def __init__(self, name, client="opencode", file="opencode.db"):
        self.home = os.path.join(WORK, name)
        self.data = os.path.join(self.home, ".local/share", client)
        self.path = os.path.join(self.data, file)
        self.store = os.path.join(self.home, "store")
        os.makedirs(self.data)
        self.environment = {**os.environ, "HOME": self.home}
        for variable in ("XDG_DATA_HOME", "OPENCODE_DB"):
            self.environment.pop(variable, None)
        self.run("init")

    def run(self, *arguments, code=0):
        return run("--store", self.store, *arguments, code=code,
                   env=self.environment)

    def imports(self, *options, code=0, path=None):
        return self.run("import", *options, path or self.data, code=code)

    def changed(self, path=None):
        """Imports, and returns how many documents changed."""
        return sum(row.get("changed", 0)
                   for row in rows_of(self.imports("--json", path=path)))

    def sessions(self):
        return {row["sessionId"]: row for row in rows_of(
            self.run("list", "--json", "--limit", "0"))}

    def documents(self, session):
        return {row["key"]: row["value"] for row in rows_of(
            self.run("doc", "scan", "--json", session))}

    def shown(self, session):
        """The texts of the messages in their order, with their roles."""
        shown = []
        for row in rows_of(self.run("cat", "--json", session)):
            shown += texts_of(row) if row["type"] == "message" else []
        return shown


class Database:
    """The client's connection."""

    def __init__(self, path, *scripts):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        for script in scripts:
            self.db.executescript(script)
        self.seq = 0

    def put(self, table, **columns):
        self.db.execute("INSERT OR REPLACE INTO %s (%s) VALUES (%s)" % (
            table, ", ".join(columns), ", ".join("?" * len(columns))),
            list(columns.values()))

    def session(self, number=1, table="session", **columns):
        name = SES % number
        self.put(table, **{**dict(
            id=name, project_id="p1", slug="s", directory="/w", title="The title",
            version="1.18.33", time_created=T0, time_updated=T0), **columns})
        return name

    def message(self, session, number, role, text, at=None, **part):
        at = T0 + number if at is None else at
        data = {"role": role, "time": {"created": at}}
        if role == "assistant":
            data.update(modelID="m", providerID="p", cost=0.5, tokens={
                "input": 10, "output": 2, "reasoning": 1,
                "cache": {"read": 3, "write": 4}})
        self.put("message", id=ident("msg", number), session_id=session,
                 time_created=at, time_updated=at, data=json.dumps(data))
        self.put("part", id=ident("prt", number), message_id=ident("msg", number),
                 session_id=session, time_created=at, time_updated=at,
                 data=json.dumps({"type": "text", "text": text, **part}))

    def second(self, session, number, kind, at=None, name=None, **data):
        """A message of version 2."""
        at = T0 + number if at is None else at
        self.seq += 1
        self.put("session_message", id=name or ident("msg", number),
                 session_id=session, type=kind, seq=self.seq, time_created=at,
                 time_updated=at, data=json.dumps({"time": {"created": at}, **data}))

    def answer(self, session, number, text, **data):
        self.second(session, number, "assistant", agent="build",
                    model={"id": "m2", "providerID": "p2", "variant": "default"},
                    content=[{"type": "text", "text": text}], **data)

    def close(self):
        self.db.close()


# --- what clients do ----------------------------------------------------------

def version_1():
    """Rows with their ids are the objects of the files."""
    home = Home("version_1")
    db = Database(home.path, V1)
    ses = db.session(model='{"id":"m"}', cost=3.5)
    db.message(ses, 1, "user", "go")
    db.message(ses, 2, "assistant", "gone")
    db.put("todo", session_id=ses, content="x", status="pending", priority="low",
           position=0)
    db.put("session_share", session_id=ses, secret="hidden")
    assert home.changed() == 6
    assert home.shown(ses) == [("user", "go"), ("assistant", "gone")]
    found = home.documents(ses)
    assert found["part/%s/%s.json" % (ident("msg", 1), ident("prt", 1))] == {
        "id": ident("prt", 1), "messageID": ident("msg", 1), "sessionID": ses,
        "type": "text", "text": "go"}, found
    assert found["todo/%s.json" % ses] == [
        {"content": "x", "status": "pending", "priority": "low"}], found
    assert found["session/p1/%s.json" % ses] == {
        "id": ses, "slug": "s", "version": "1.18.33", "projectID": "p1",
        "directory": "/w", "title": "The title", "model": {"id": "m"},
        "time": {"created": T0, "updated": T0}}, found
    assert "hidden" not in json.dumps(found)
    assert home.sessions()[ses]["title"] == "The title"
    usage, = rows_of(home.run("usage", "--json"))
    assert [usage[key] for key in ("requests", "inputTokens", "totalTokens", "cost")] == [
        1, 10, 20, 0.5], usage
    # While the client has it open, what it has written is imported.
    assert os.path.getsize(home.path + "-wal") > 0
    assert home.changed() == 0
    db.message(ses, 3, "user", "more")
    db.put("session", id=ses, project_id="p2", slug="s", directory="/w",
           title="Another", version="1.18.33", time_created=T0, time_updated=T0 + 9)
    assert home.changed() == 3
    assert [text for _, text in home.shown(ses)] == ["go", "gone", "more"]
    assert home.sessions()[ses]["title"] == "Another"
    assert [key for key in home.documents(ses) if key.startswith("session/")] == [
        "session/p2/%s.json" % ses]
    db.close()
    before = sorted(os.listdir(home.data))
    assert before == ["opencode.db"], before
    assert home.changed() == 0
    assert sorted(os.listdir(home.data)) == before, "made files"


def subagents():
    """A session with a parent is a part of that one's work; a fork is none."""
    home = Home("subagents")
    db = Database(home.path, V1, V2)
    top = db.session(5)
    below = db.session(1, parent_id=top)
    fork = db.session(2, "session_v2", fork_session_id=top, title=None)
    db.message(below, 1, "user", "look")
    home.imports()
    metadata = {name: json.loads(home.run("show", "--json", name).stdout)
                for name in (top, below, fork)}
    assert metadata[below]["parentId"] == top and metadata[fork]["parentId"] == top
    assert metadata[below]["metadata"].get("subagent") is True, metadata[below]
    assert "subagent" not in metadata[fork]["metadata"], metadata[fork]
    assert "subagent" not in metadata[top]["metadata"]


class GoneOn:
    """A session of the store that the client imported, as `opencode import` does: under the ids of
    the file, and leaving the rows that are there."""

    def __init__(self, name, session="one"):
        self.home = Home(name)
        self.db = Database(self.home.path, V1, "ALTER TABLE session ADD COLUMN metadata text")
        self.session, self.client, self.at = session, None, 0

    def make(self):
        home = self.home
        home.run("create", "--id", "one", "--cwd", "/w", "--title", "The title")
        self.append(("user", "Count in cents."), ("assistant", "Cents."))

    def append(self, *turns, **members):
        for role, text in turns:
            run("--store", self.home.store, "append", self.session, env=self.home.environment,
                input=json.dumps({**members, "type": "message", "payload": {
                    "role": role, "content": [{"type": "text", "text": text}]}}).encode())

    def export(self):
        return json.loads(self.home.run("export", "--dialect", "opencode", "--session",
                                        self.session, "--stdout").stdout)

    def give(self, db=None, file=None):
        """Exports the session, and imports it in the client."""
        file, db = file or self.export(), db or self.db
        info = file["info"]
        self.client = info["id"]
        db.db.execute(
            "INSERT OR IGNORE INTO session (id, project_id, slug, directory, title, version, "
            "metadata, time_created, time_updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (info["id"], info["projectID"], info["slug"], info["directory"], info["title"],
             info["version"], json.dumps(info["metadata"]) if "metadata" in info else None,
             info["time"]["created"], NOW))
        for message in file["messages"]:
            data = dict(message["info"])
            name, time_created = data.pop("id"), data["time"]["created"]
            data.pop("sessionID")
            db.db.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?, ?)", (
                name, self.client, time_created, NOW, json.dumps(data)))
            for part in message["parts"]:
                data = {key: value for key, value in part.items()
                        if key not in ("id", "sessionID", "messageID")}
                db.db.execute("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?, ?, ?)", (
                    part["id"], name, self.client, NOW, NOW, json.dumps(data)))

    def tick(self):
        """The client's clock, which gives each message another time."""
        self.at = max(int(time.time() * 1000), self.at + 1)
        return self.at

    def go_on(self, *texts, db=None, role="user", updated=NOW):
        """The client's own messages: after all others."""
        db = db or self.db
        for text in texts:
            at = self.tick()
            data = {"role": role, "time": {"created": at}}
            if role == "assistant":
                data["time"]["completed"] = at
            name = "msg_%012x%014d" % (at * 4096 % 2**48, at)
            db.db.execute("BEGIN")
            db.put("message", id=name, session_id=self.client, time_created=at,
                   time_updated=updated, data=json.dumps(data))
            for number, part in enumerate(({"type": "step-start"},
                                           {"type": "text", "text": text})):
                db.put("part", id="prt%d%s" % (number, name[5:]), message_id=name,
                       session_id=self.client, time_created=NOW, time_updated=updated,
                       data=json.dumps(part))
            db.db.execute("COMMIT")
        return name

    def imports(self, *wanted, new, sessions=("one",)):
        """An import adds that many entries, and a second one none; these texts are shown."""
        before = self.count()
        self.home.imports()
        assert self.count() - before == new, (self.count(), before)
        assert self.home.changed() == 0
        shown = [text for _, text in self.home.shown(self.session)]
        assert not wanted or shown == list(wanted), shown
        assert set(self.home.sessions()) == set(sessions), self.home.sessions()

    def count(self):
        return self.home.sessions()[self.session]["entries"]

    def tree(self):
        """The texts of all messages, each with that of its parent."""
        rows = rows_of(self.home.run("cat", "--json", "--all", self.session))
        texts = {row["id"]: texts_of(row)[0][1] for row in rows if row["type"] == "message"}
        return {texts[row["id"]]: texts.get(row.get("parentId")) for row in rows
                if row["id"] in texts}


def gone_on_with():
    """What the client adds to an exported session is added to that, once."""
    made = GoneOn("gone_on_with")
    made.make()
    made.give()
    made.imports("Count in cents.", "Cents.", new=0)
    made.go_on("In the client.")
    answer = made.go_on("Being written.", role="assistant")
    done = made.db.db.execute("SELECT data FROM message WHERE id = ?", (answer,)).fetchone()[0]
    made.db.db.execute("UPDATE message SET data = ? WHERE id = ?", (
        json.dumps({"role": "assistant", "time": {"created": made.at}}), answer))
    made.imports("Count in cents.", "Cents.", "In the client.", new=1)
    made.db.db.execute("UPDATE message SET data = ? WHERE id = ?", (done, answer))
    first = ("Count in cents.", "Cents.", "In the client.", "Being written.")
    made.imports(*first, new=1)
    assert b"[step" not in made.home.run("cat", "--text", "one").stdout
    # A prompt gets its parts after it.
    prompt = made.go_on("Being sent.", updated=int(time.time() * 1000) + 600000)
    made.imports(*first, new=0)
    made.db.db.execute("UPDATE message SET time_updated = ? WHERE id = ?", (NOW, prompt))
    made.db.db.execute("UPDATE part SET time_updated = ? WHERE message_id = ?", (NOW, prompt))
    first = (*first, "Being sent.")
    made.imports(*first, new=1)
    # In the store, in the client again.
    made.append(("user", "In the store."))
    made.give()
    made.go_on("Again.")
    made.imports(*first, "In the store.", "Again.", new=1)
    # In both: a branch, on which the client goes on.
    made.append(("user", "Meanwhile here."))
    made.go_on("Meanwhile there.")
    main = (*first, "In the store.", "Again.", "Meanwhile here.")
    made.imports(*main, new=1)
    made.go_on("And there.")
    made.imports(*main, new=1)
    found = made.tree()
    assert found["Meanwhile there."] == found["Meanwhile here."] == "Again.", found
    assert found["And there."] == "Meanwhile there.", found
    # On another branch than the exported one.
    rows = rows_of(made.home.run("cat", "--json", "--all", "one"))
    made.home.run("head", "one", "main", rows[0]["id"])
    made.append(("user", "Anew."))
    made.imports("Count in cents.", "Anew.", new=0)
    # What the store hides stays hidden.
    for row in rows[1], rows[2]:
        made.home.run("redact", "one", row["id"])
    made.imports("Count in cents.", "Anew.", new=0)
    assert b"In the client." not in made.home.run("cat", "--json", "--all", "one").stdout
    made.db.close()


def gone_on_with_in_version_2():
    """Its own messages are added; those that it copied are those of version 1."""
    made = GoneOn("on_in_version_2")
    made.make()
    made.give()
    made.db.db.executescript(V2)
    for number, message in enumerate(made.export()["messages"]):
        made.db.second(made.client, number, message["info"]["role"],
                       name=message["info"]["id"][:16] + "A" * 14, text="a copy")
    at = made.tick()
    made.db.second(made.client, at, "user", at=at, text="In version 2.")
    made.db.answer(made.client, at + 1, "Done.", at=at + 1, time={
        "created": at + 1, "completed": at + 2})
    made.db.answer(made.client, at + 2, "Being written.", at=at + 2)
    made.imports(new=2)
    shown = made.home.run("cat", "--text", "one").stdout
    assert [text for text in (b"Cents.", b"In version 2.", b"Done.") if text in shown] == [
        b"Cents.", b"In version 2.", b"Done."], shown
    texts = [part["text"] for message in made.export()["messages"] for part in message["parts"]]
    assert texts == ["Count in cents.", "Cents.", "In version 2.", "Done."], texts
    made.db.close()


def edited_title():
    made = GoneOn("edited_title")
    made.make()
    made.give()
    made.db.db.execute("UPDATE session SET title = 'Of the client'")
    made.imports(new=0)
    assert made.home.sessions()["one"]["title"] == "Of the client"
    made.home.run("title", "one", "Of the store")
    made.imports(new=0)
    assert made.home.sessions()["one"]["title"] == "Of the store"
    made.db.close()


def exported_and_not_there():
    """A mark that another session has, names none, or is none: the client's session is one of its
    own, a child of the one that it names; so is one of a session that was deleted."""
    made = GoneOn("not_there")
    made.make()
    made.give()
    mark = made.export()["info"]["metadata"]
    made.go_on("In the client.")
    marks = [mark, {"agentwal": "one"}, {**mark, "agentwal": "none", "agentwalAs": SES % 3},
             {**mark, "agentwal": 7}, {**mark, "agentwalAs": 7}, [], "{", None]
    names = [made.db.session(at + 1, metadata=one if isinstance(one, str) else json.dumps(one))
             for at, one in enumerate(marks)]
    made.imports(new=1, sessions=["one", *names])
    found = made.home.sessions()
    assert [found[name]["parentId"] for name in names] == [
        "one", "one", None, None, "one", None, None, None], found
    assert json.loads(made.home.run("show", "--json", names[0]).stdout)["metadata"].get(
        "subagent") is None
    # Another store has all of its turns.
    store = made.home.store
    made.home.store = os.path.join(made.home.home, "other")
    made.home.run("init")
    made.home.imports()
    assert [text for _, text in made.home.shown(made.client)] == [
        "Count in cents.", "Cents.", "In the client."]
    # So has one with another session of that id.
    made.home.store = os.path.join(made.home.home, "third")
    made.home.run("init")
    made.home.run("append", "--create", "--user", "Of this store.", "one")
    made.home.imports()
    assert [text for _, text in made.home.shown(made.client)] == [
        "Count in cents.", "Cents.", "In the client."]
    assert [text for _, text in made.home.shown("one")] == ["Of this store."]
    made.home.store = store
    made.db.close()
    made = GoneOn("deleted")
    made.make()
    made.give()
    made.go_on("In the client.")
    fork = made.db.session(5, metadata=json.dumps(made.export()["info"]["metadata"]))
    made.home.run("delete", "one")
    assert b"trash" in made.home.imports().stdout
    assert list(made.home.sessions()) == [fork]
    made.home.run("undelete", "one")
    made.home.run("delete", "--erase", "one")
    made.home.imports()
    assert [text for _, text in made.home.shown(made.client)] == [
        "Count in cents.", "Cents.", "In the client."]
    made.db.close()


def two_copies():
    """Two databases in which the same file was imported: two branches."""
    made = GoneOn("two_copies")
    made.make()
    made.give()
    other = Database(os.path.join(made.home.data, "other.db"), V1,
                     "ALTER TABLE session ADD COLUMN metadata text")
    made.give(db=other)
    made.go_on("Here.", "On.")
    made.go_on("There.", db=other)
    made.imports(new=3)
    found = made.tree()
    assert found["Here."] == found["There."] == "Cents." and found["On."] == "Here.", found
    made.db.close()
    other.close()


def own_session_gone_on_with():
    """A session of the client, which the store went on with, and then the client."""
    made = GoneOn("own")
    made.client = made.session = made.db.session()
    made.db.message(made.client, 1, "user", "First.")
    made.home.imports()
    made.append(("user", "In the store."))
    made.db.message(made.client, 2, "assistant", "Second.")
    made.home.imports()
    made.give()
    made.go_on("In the client.", "On.")
    shown = ("First.", "Second.", "In the store.", "In the client.", "On.")
    made.imports(*shown, new=2, sessions=[made.client])
    # Its fork has other ids of messages.
    own, made.session = made.session, "forked"
    made.home.run("fork", "--id", "forked", own)
    made.append(("user", "In the fork."))
    made.give()
    made.imports(*shown, "In the fork.", new=0, sessions=[own, "forked"])
    made.go_on("There.")
    made.imports(*shown, "In the fork.", "There.", new=1, sessions=[own, "forked"])
    made.db.close()


def exported_file_comes_back():
    """What `opencode export` writes of it, and again what it writes of a session of a file."""
    made = GoneOn("file_comes_back")
    made.make()
    file = made.export()
    path = os.path.join(made.home.home, "back.json")

    def back(text):
        at = made.tick()
        name = "msg_%012x%014d" % (at * 4096 % 2**48, at)
        file["messages"].append({"info": {
            "id": name, "sessionID": file["info"]["id"], "role": "user",
            "time": {"created": at}}, "parts": [{
                "id": name.replace("msg", "prt"), "sessionID": file["info"]["id"],
                "messageID": name, "type": "text", "text": text}]})
        with open(path, "w", encoding="utf-8") as out:
            json.dump(file, out, indent=2)
        made.home.imports(path=path)
        assert made.home.changed(path=path) == 0
        return [text for _, text in made.home.shown(made.session)]

    assert back("In the client.") == ["Count in cents.", "Cents.", "In the client."]
    assert set(made.home.sessions()) == {"one"}
    made.session = file["info"]["id"] = SES % 1
    del file["info"]["metadata"]
    shown = back("Other.")
    made.append(("user", "In the store."))
    file = made.export()
    assert back("And back.") == [*shown, "In the store.", "And back."]
    assert set(made.home.sessions()) == {"one", SES % 1}
    made.db.close()


def exported_of_each_client():
    """Whatever the client was, and however its messages are joined: all are known."""
    for client in ("claude", "codex", "pi", "opencode", "qwen", "gemini", "copilot", "kimi",
                   "droid", "opencode_database"):
        gone = GoneOn("each_" + client)
        source = os.path.join(gone.home.home, "source")
        getattr(made_sessions, client)(source)
        gone.home.run("import", "--all-files", source)
        before = {}
        for gone.session, row in gone.home.sessions().items():
            if gone.export()["messages"]:
                before[gone.session] = row["entries"]
                gone.give()
        gone.home.imports()
        names = set(gone.home.sessions())
        for gone.session, entries in before.items():
            assert gone.count() == entries, (client, gone.session)
        for gone.session in before:
            shown = gone.home.run("cat", "--text", gone.session).stdout
            gone.give()
            gone.go_on("In the client.")
            gone.home.imports()
            now = gone.home.run("cat", "--text", gone.session).stdout
            assert now.startswith(shown) and now.endswith(b"\nIn the client.\n\n") and (
                now.count(b"\n") - shown.count(b"\n") == 3), (client, shown, now)
        assert set(gone.home.sessions()) == names
        gone.db.close()


def version_2():
    """Messages of version 2 are shown as its client shows them."""
    home = Home("version_2")
    db = Database(home.path, V2)
    ses = db.session(1, "session_v2")
    image = "iVBORw0KGgo="
    db.second(ses, 1, "user", text="go", files=[
        {"data": image, "mime": "image/png", "source": {"type": "inline"}}],
        agents=[{"name": "plan"}])
    db.second(ses, 2, "model-switched", model={"id": "m2", "providerID": "p2"})
    db.second(ses, 3, "assistant", agent="build", finish="tool-calls",
              model={"id": "m2", "providerID": "p2"}, cost=0.25,
              tokens={"input": 7, "output": 8, "reasoning": 0,
                      "cache": {"read": 0, "write": 0}},
              content=[
                  {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "so"},
                  {"type": "tool", "id": "c1", "name": "shell", "time": {
                      "created": T0, "completed": T0 + 5}, "state": {
                      "status": "completed", "input": {"command": "ls"}, "content": [
                          {"type": "text", "text": "a file"},
                          {"type": "file", "mime": "image/png",
                           "uri": "data:image/png;base64," + image}]}},
                  {"type": "tool", "id": "c2", "name": "read", "time": {"created": T0},
                   "state": {"status": "error", "input": {}, "error": {
                       "type": "tool.execution", "message": "no such file"}}},
                  {"type": "tool", "id": "c3", "name": "edit", "time": {"created": T0},
                   "state": {"status": "streaming", "input": "{\"a"}}])
    db.second(ses, 4, "shell", shellID="sh1", command="pwd", status="exited", exit=0,
              output={"output": "/w", "cursor": 2, "size": 2, "truncated": False})
    db.second(ses, 5, "synthetic", text="a note", description="d")
    db.second(ses, 6, "system", text="tools changed")
    db.second(ses, 7, "skill", skill="k", name="K", text="how to")
    db.second(ses, 8, "compaction", status="completed", reason="auto",
              summary="the gist", recent="[User]: go")
    db.second(ses, 9, "idle", outcome="succeeded")
    db.second(ses, 10, "agent-switched", agent="plan")
    db.second(ses, 11, "later-kind", text="of a later version")
    db.answer(ses, 12, "gone", error={"type": "aborted", "message": "stopped"})
    assert home.changed() == 13
    shown = home.shown(ses)
    texts = [text for _, text in shown]
    assert texts == ["go", "so", "a file", "no such file", "/w", "a note",
                     "tools changed", "how to", "gone"], shown
    rows = rows_of(home.run("cat", "--json", ses))
    everything = json.dumps(rows)
    assert '"the gist"' in everything and '"hm"' in everything
    assert everything.count(image) == 2, everything
    assert '"of a later version"' in everything
    calls = [block["name"] for row in rows if row["type"] == "message"
             for block in row["payload"]["content"] if block.get("type") == "toolCall"]
    assert calls == ["shell", "read", "edit", "shell"], calls
    usage, = rows_of(home.run("usage", "--json"))
    assert (usage["inputTokens"], usage["outputTokens"], usage["cost"]) == (7, 8, 0.25)
    # Every dialect takes it, and OpenCode's export is of the first version.
    for dialect in ("pi", "claude", "codex", "entries"):
        out = os.path.join(home.home, dialect)
        home.run("export", "--dialect", dialect, "--session", ses, out)
        text = "".join(open(os.path.join(folder, name), encoding="utf-8").read()
                       for folder, _, names in os.walk(out) for name in names)
        for wanted in ("no such file", "a file", "the gist", "gone", "pwd"):
            assert wanted in text, (dialect, wanted)
    made = json.loads(home.run("export", "--stdout", "--dialect", "opencode",
                               "--session", ses).stdout)
    kinds = {part["type"] for message in made["messages"] for part in message["parts"]}
    assert {"text", "tool", "reasoning", "file"} <= kinds <= {
        "text", "tool", "reasoning", "file", "step-start", "step-finish",
        "compaction"}, kinds
    assert all("role" in message["info"] for message in made["messages"])


def imported_by_version_1():
    """A session of version 2 that was exported, and that version 1 imported, has
    the messages that it had, with one compaction, and those that version 1 added."""
    home = Home("imported_by_version_1")
    db = Database(home.path, V2)
    ses = db.session(1, "session_v2")
    db.second(ses, 1, "user", text="go")
    db.answer(ses, 2, "so")
    db.second(ses, 3, "compaction", status="completed", reason="auto",
              summary="the gist", recent="[User]: go")
    db.second(ses, 4, "user", text="later")
    db.answer(ses, 5, "done")
    db.close()
    home.imports()
    made = json.loads(home.run("export", "--stdout", "--dialect", "opencode",
                               "--session", ses).stdout)
    os.remove(home.path)
    first = Database(home.path, V1)
    assert made["info"]["id"] == first.session()
    for message in made["messages"]:
        info = message["info"]
        at = info["time"]["created"]
        columns = {"session_id": ses, "time_created": at, "time_updated": at}
        first.put("message", id=info["id"], data=json.dumps(
            {key: value for key, value in info.items() if key not in ("id", "sessionID")}),
                  **columns)
        for part in message["parts"]:
            first.put("part", id=part["id"], message_id=info["id"], data=json.dumps(
                {key: value for key, value in part.items()
                 if key not in ("id", "sessionID", "messageID")}), **columns)
    first.message(ses, 9, "user", "more")
    home.imports()
    assert [text for _, text in home.shown(ses)] == ["go", "so", "later", "done", "more"]
    compactions = [row for row in rows_of(home.run("cat", "--json", ses))
                   if "the gist" in json.dumps(row)]
    assert len(compactions) == 1, compactions
    assert home.changed() == 0


def both_versions():
    """A session that version 2 copied, and in which both went on; one that
    version 2 has not copied; one that only it has."""
    home = Home("both_versions")
    db = Database(home.path, V1)
    ses, later = db.session(1), SES % 2
    db.message(ses, 1, "user", "one")
    db.message(ses, 2, "assistant", "two")
    home.imports()
    db.db.executescript(V2)
    db.session(1, "session_v2")
    # The copies, one of them of a part: with the time of its message in its id.
    db.second(ses, 1, "user", text="one")
    db.second(ses, 1, "synthetic", text="said to the model",
              name=ident("msg", 1)[:16] + "z" * 14)
    db.answer(ses, 2, "two")
    assert home.changed() == 0
    db.message(ses, 5, "user", "five, of version 1")
    db.second(ses, 4, "user", text="four, of version 2")
    db.answer(ses, 6, "six, of version 2")
    db.session(2)
    db.message(later, 7, "user", "later")
    db.session(3, "session_v2")
    db.second(SES % 3, 8, "user", text="new")
    home.imports()
    assert [text for _, text in home.shown(ses)] == [
        "one", "two", "four, of version 2", "five, of version 1", "six, of version 2"]
    assert home.shown(later) == [("user", "later")]
    assert home.shown(SES % 3) == [("user", "new")]
    assert len(home.sessions()) == 3
    assert home.changed() == 0


def times():
    """A session is as old as the client's last change of it."""
    home = Home("times")
    db = Database(home.path, V1)
    names = [db.session(number) for number in (1, 2)]
    for number, name in enumerate(names, 1):
        db.message(name, number, "user", "go")
    home.imports()
    db.session(1, time_updated=T0 + 5000)
    db.message(names[0], 3, "user", "on", at=T0 + 4000)
    assert home.changed() == 3  # the session, the message and its part
    assert home.changed() == 0
    found = home.sessions()
    assert list(found) == names, found
    assert found[names[0]]["updated"] == "2026-02-02T02:40:05.000Z", found
    assert [row["entries"] for row in found.values()] == [0, 0]
    assert home.shown(names[0]) == [("user", "go"), ("user", "on")]
    assert home.run("latest").stdout.decode().strip() == names[0]
    db.close()


def order():
    """Messages are in the order of their times, although ids begin anew."""
    home = Home("order")
    db = Database(home.path, V1)
    ses = db.session()
    for number, text in ((5, "a"), (6, "b"), (1, "c"), (7, "d"), (2, "e")):
        db.message(ses, number, "user", text, at=T0 + ord(text))
    home.imports()
    assert "".join(text for _, text in home.shown(ses)) == "abcde"
    db.message(ses, 3, "user", "f", at=T0 + ord("f"))
    home.imports()
    assert "".join(text for _, text in home.shown(ses)) == "abcdef"


def moved_from_files():
    """The client moved its files into the database, and left them there."""
    home = Home("moved")
    ses = SES % 1

    def put(path, value, **layout):
        path = os.path.join(home.data, "storage", path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, **layout)

    put("session/p1/%s.json" % ses, {
        "id": ses, "slug": "s", "version": "1.18.33", "projectID": "p1",
        "directory": "/w", "title": "The title",
        "time": {"created": T0, "updated": T0}}, indent=2)
    for number, role in ((1, "user"), (2, "assistant")):
        put("message/%s/%s.json" % (ses, ident("msg", number)), {
            "id": ident("msg", number), "sessionID": ses, "role": role,
            "time": {"created": T0 + number}}, indent=2)
        put("part/%s/%s.json" % (ident("msg", number), ident("prt", number)), {
            "id": ident("prt", number), "sessionID": ses,
            "messageID": ident("msg", number), "type": "text", "text": role},
            indent=2)
    assert home.changed() == 5
    db = Database(home.path, V1)
    db.session()
    db.message(ses, 1, "user", "user")
    db.message(ses, 2, "assistant", "assistant")
    db.put("message", id=ident("msg", 2), session_id=ses, time_created=T0 + 2,
           time_updated=T0, data=json.dumps({"role": "assistant",
                                             "time": {"created": T0 + 2}}))
    assert home.changed() == 0, home.documents(ses)
    db.session(title="Gone on", time_updated=T0 + 3)
    db.message(ses, 3, "user", "three")
    assert home.changed() == 3
    assert home.changed() == 0, "the files are older"
    assert list(home.sessions()) == [ses]
    assert home.sessions()[ses]["title"] == "Gone on"
    assert [text for _, text in home.shown(ses)] == ["user", "assistant", "three"]
    db.close()
    # A copy of the database elsewhere is the same session.
    copy = os.path.join(home.home, "copy.db")
    shutil.copy(home.path, copy)
    assert home.changed(copy) == 0 and list(home.sessions()) == [ses]


def relatives():
    """Clients of the same origin."""
    for client, file in (("kilo", "kilo.db"), ("mimocode", "mimocode.db"),
                         ("opencode", "opencode-next.db")):
        home = Home("relative-" + file, client, file)
        db = Database(home.path, V1)
        db.db.execute("ALTER TABLE message ADD COLUMN agent_id text")
        ses = db.session()
        db.message(ses, 1, "user", "go")
        db.db.execute("UPDATE message SET agent_id = 'main'")
        # A database that has nothing of it.
        other = sqlite3.connect(os.path.join(home.data, "cache.db"))
        other.executescript("CREATE TABLE entry (k, v); INSERT INTO entry VALUES (1, 2)")
        other.close()
        done = home.run("adopt", "--yes").stdout.decode()
        assert "1 session" in done and "left out: 1 database" in done, done
        assert home.shown(ses) == [("user", "go")]
        message = home.documents(ses)["message/%s/%s.json" % (ses, ident("msg", 1))]
        assert message["agent_id"] == "main", message
        db.close()


def places():
    """The variables that move the database."""
    home = Home("places")
    elsewhere = os.path.join(home.home, "xdg")
    os.makedirs(os.path.join(elsewhere, "opencode"))
    db = Database(os.path.join(elsewhere, "opencode/mine.db"), V1)
    db.message(db.session(1), 1, "user", "relative")
    far = os.path.join(home.home, "far.db")
    other = Database(far, V1)
    other.message(other.session(2), 2, "user", "absolute")
    home.environment["XDG_DATA_HOME"] = elsewhere
    home.environment["OPENCODE_DB"] = "mine.db"
    assert "1 session" in home.run("adopt", "--yes").stdout.decode()
    assert home.shown(SES % 1) == [("user", "relative")]
    home.environment["OPENCODE_DB"] = far
    assert "far.db" in home.run("adopt", "--yes").stdout.decode()
    assert home.shown(SES % 2) == [("user", "absolute")]
    home.environment["OPENCODE_DB"] = ":memory:"
    assert "memory" not in home.run("adopt", "--yes").stdout.decode()
    db.close()
    other.close()


def follow():
    """What a client writes to its log is imported while it writes."""
    gone = GoneOn("follow")
    gone.make()
    gone.give()
    home, db = gone.home, gone.db
    db.db.executescript(V2)
    ses = db.session()
    db.message(ses, 1, "user", "first")
    with open(os.path.join(home.home, "errors"), "w+b") as errors, subprocess.Popen(
            [os.path.join(TOOLS, "agentwal"), "--store", home.store, "import",
             "--follow", home.data], env=home.environment,
            stdout=subprocess.DEVNULL, stderr=errors) as process:
        def wait(*wanted, session=ses):
            until = time.monotonic() + LIMIT
            while session not in home.sessions() or \
                    [text for _, text in home.shown(session)] != list(wanted):
                assert time.monotonic() < until, (home.shown(session), wanted, open(
                    errors.name, "rb").read())
                time.sleep(0.05)
        try:
            wait("first")
            now = int(time.time() * 1000)
            db.message(ses, 2, "assistant", "begun", at=now)
            wait("first", "begun")
            # A part that grows in place.
            db.db.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = ?",
                          (json.dumps({"type": "text", "text": "begun and done"}),
                           now + 5, ident("prt", 2)))
            wait("first", "begun and done")
            db.second(ses, 3, "user", at=now + 9, text="of version 2")
            db.session(1, "session_v2", time_updated=now + 9)
            wait("first", "begun and done", "of version 2")
            # A turn of an exported session, whose other messages were not changed.
            gone.go_on("In the client.", updated=now + 9)
            gone.go_on("Done.", updated=now + 9, role="assistant")
            wait("Count in cents.", "Cents.", "In the client.", "Done.", session="one")
        finally:
            process.terminate()
            process.wait(60)
    assert home.changed() == 0
    db.close()


# --- what no client wrote -------------------------------------------------------

def failed(home, *texts, sessions=(), path=None, code=1):
    """The import ends with this code and these texts, and the sessions are there."""
    done = home.imports(code=code, path=path)
    for text in texts:
        assert text in done.stderr.decode(), done.stderr
    assert set(sessions) <= set(home.sessions()), home.sessions()
    return done


def locked():
    home = Home("locked")
    db = Database(home.path, V1)
    ses = db.session()
    db.db.execute("PRAGMA journal_mode = DELETE")
    db.db.execute("BEGIN EXCLUSIVE")
    db.db.execute("UPDATE session SET title = 'x'")
    failed(home, "locked the database")
    failed(home, "locked the database", path=home.path, code=3)
    db.db.execute("COMMIT")
    home.imports()
    assert list(home.sessions()) == [ses]
    db.close()
    # A follow tries it again by itself: the end of a lock is no change of a file.
    home = Home("locked_follow")
    db = Database(home.path, V1)
    db.db.execute("PRAGMA journal_mode = DELETE")
    ses = db.session()
    db.close()
    with open(home.path, "r+b") as held, open(home.path + "-journal", "wb"):
        fcntl.lockf(held, fcntl.LOCK_EX, 512, SQLITE_LOCK)
        with subprocess.Popen(
                [os.path.join(TOOLS, "agentwal"), "--store", home.store, "import",
                 "--follow", home.data], env=home.environment, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL) as process:
            try:
                time.sleep(5)  # longer than two tries
                assert home.sessions() == {}
                fcntl.lockf(held, fcntl.LOCK_UN, 512, SQLITE_LOCK)
                until = time.monotonic() + LIMIT
                while list(home.sessions()) != [ses]:
                    assert time.monotonic() < until
                    time.sleep(0.05)
            finally:
                process.terminate()
                process.wait(60)


def half_migrated():
    # The tables are there, and empty.
    home = Home("empty_tables")
    db = Database(home.path, V1, V2)
    ses = db.session()
    db.message(ses, 1, "user", "go")
    home.imports()
    assert home.shown(ses) == [("user", "go")]
    # The sessions are copied, their messages are not.
    db.session(1, "session_v2")
    assert home.changed() == 0
    db.db.execute("DROP TABLE session_message")
    db.session(2, "session_v2")
    db.message(ses, 2, "user", "on")
    failed(home, "no table session_message", sessions=[ses, SES % 2])
    assert len(home.shown(ses)) == 2
    db.close()


def another_schema():
    home = Home("fewer_columns")
    db = Database(home.path, "CREATE TABLE session (id text, directory text);"
                  "CREATE TABLE message (id text, session_id text, data text);"
                  "CREATE TABLE part (id text, message_id text, data text)")
    db.put("session", id="s1", directory="/w")
    for name, role in (("a", "user"), ("b", "assistant")):
        db.put("message", id=name, session_id="s1", data=json.dumps({"role": role}))
        db.put("part", id="p" + name, message_id=name,
               data=json.dumps({"type": "text", "text": role}))
    home.imports()
    assert home.shown("s1") == [("user", "user"), ("assistant", "assistant")]
    db.close()
    home = Home("renamed_column")
    db = Database(home.path, V1, V2)
    db.session()
    db.session(2, "session_v2")
    db.second(SES % 2, 1, "user", text="go")
    db.db.execute("ALTER TABLE message RENAME COLUMN data TO body")
    failed(home, "table message has no column data", sessions=[SES % 1, SES % 2])
    assert home.shown(SES % 2) == [("user", "go")]
    db.db.execute("ALTER TABLE session_message RENAME COLUMN data TO body")
    failed(home, "another version")
    db.close()
    home = Home("views")
    db = Database(home.path, "CREATE VIEW session AS WITH RECURSIVE n(id) AS (SELECT 1 "
                  "UNION ALL SELECT id + 1 FROM n) SELECT id FROM n;")
    failed(home, "no table of sessions that is read")
    db.close()
    # Of a database that a client keeps its sessions in; another one is left out, as is one that
    # was not used yet.
    home = Home("other_tables")
    db = Database(home.path, "CREATE TABLE sessions (id text, body text)")
    failed(home, "no table of sessions that is read")
    os.rename(home.path, os.path.join(os.path.dirname(home.path), "cache.db"))
    assert b"left out: 1 database" in home.imports().stdout
    Database(home.path, "VACUUM").close()
    assert b"left out: 2 databases" in home.imports().stdout
    db.close()


def damaged():
    home = Home("damaged")
    db = Database(home.path, V1)
    for number in range(1, 60):
        ses = db.session(number)
        db.message(ses, number, "user", "text %d " % number + "x" * 3000)
    db.close()
    whole = open(home.path, "rb").read()
    pages = len(whole) // 4096
    for page in range(2, pages, 7 * STEP):
        with open(home.path, "wb") as file:
            file.write(whole[:page * 4096] + b"\x93" * 4096 + whole[page * 4096 + 4096:])
        done = run("--store", home.store, "import", home.data, env=home.environment,
                   code=home_code(home))
        assert b"Sanitizer" not in done.stderr
    for text in (whole[:2 * 4096 + 100], b"\0" * 4096, b"SQLite", b"x"):
        with open(home.path, "wb") as file:
            file.write(text)
        failed(home, "damaged")
    with open(home.path, "wb"):
        pass
    assert b"left out: 1 database" in home.imports().stdout
    with open(home.path, "wb") as file:
        file.write(whole)
    home.imports()
    assert len(home.sessions()) == 59
    for number in (1, 30, 59):
        assert home.shown(SES % number)[0][1].startswith("text %d " % number)
    # A damaged page hides its own sessions only.
    other = Home("damaged_page")
    place = whole.find(b"text 30 xxx") // 4096
    with open(other.path, "wb") as file:
        file.write(whole[:place * 4096] + b"\x93" * 4096 + whole[place * 4096 + 4096:])
    failed(other, "damaged")
    assert len(other.sessions()) > 40, len(other.sessions())


def home_code(home):
    """What an import of it ends with now: a damaged page may be one of an index."""
    done = subprocess.run([os.path.join(TOOLS, "agentwal"), "--store", home.store,
                           "import", home.data], capture_output=True, check=False,
                          env=home.environment, timeout=600)
    assert done.returncode in (0, 1), done
    assert done.returncode == 0 or b"damaged" in done.stderr, done.stderr
    return done.returncode


def odd_rows():
    home = Home("odd_rows")
    db = Database(home.path, V1, V2)
    ses = db.session()
    db.message(ses, 1, "user", "go")
    # Without its session, without its message, without an id, with any id.
    db.message("ses_lost", 2, "user", "of no session")
    db.put("part", id=ident("prt", 3), message_id="msg_lost", session_id=ses,
           time_created=1, time_updated=1, data='{"type":"text","text":"of no message"}')
    for number, name in enumerate(("../../x", "a/b", "\x00", "", "x" * 5000, ".", "é",
                                   b"\xff\xfe", None, 7)):
        db.put("message", id=name, session_id=ses, time_created=T0 + 100 + number,
               time_updated=T0, data='{"role":"user","time":{"created":%d}}' % (
                   T0 + 100 + number))
    hostile = ["../../up", "a//b", "x" * 5000, "\x00"]
    for name in hostile:
        db.session(id=name)
        db.put("message", id="m" + name, session_id=name, time_created=T0,
               time_updated=T0, data='{"role":"user"}')
    # Data that is no object, no JSON, deep, with its ids, and of any type.
    datas = ["[1,2]", "7", "null", '"text"', "", "{", "{}", '{"role":"user"',
             '{"id":"other","role":"user","role":"assistant"}', '{"a":"\\ud800"}',
             "[" * 5000, '{"a":' * 5000, b"\xff\x00{", 12, 1.5, b"", "{}\x00{}",
             '{"role":7,"time":[],"content":{}}']
    for number, data in enumerate(datas):
        db.put("message", id=ident("msg", 200 + number), session_id=ses,
               time_created=T0 + 200, time_updated=T0, data=data)
        db.put("session_message", id=ident("msg", 300 + number), session_id=ses,
               type="assistant", seq=number, time_created=T0, time_updated=T0, data=data)
        db.put("part", id=ident("prt", 400 + number), message_id=ident("msg", 1),
               session_id=ses, time_created=1, time_updated=1, data=data)
    for number, content in enumerate((7, [7], [{"type": 7}], [{"type": "tool"}], {}, [
            {"type": "tool", "state": {"status": "completed", "content": 7}}], [
            {"type": "tool", "state": {"status": "error", "error": 7, "content": [
                {"type": "file", "mime": "image/png", "uri": ""}]}}])):
        db.second(ses, 500 + number, "assistant", content=content, model=7)
    done = home.imports("-v")
    text = done.stderr.decode()
    assert "not a JSON object" in text and "not JSON" in text, text
    assert "its message is missing" in text and "its session is missing" in text, text
    assert home.shown("ses_lost") == [("user", "of no session")]
    assert ("user", "go") in home.shown(ses)
    assert len(home.sessions()) == 2 + len(hostile), home.sessions().keys()
    assert home.changed() == 0
    out = os.path.join(home.home, "out")
    home.run("export", "--dialect", "source", out)
    inside = [os.path.join(folder, name) for folder, _, names in os.walk(home.home)
              for name in names if not folder.startswith((home.store, home.data))]
    assert all(path.startswith(out) for path in inside), inside
    stored = b"".join(open(path, "rb").read() for path in inside)
    for data in ("[1,2]", '{"role":"user"', "[" * 5000, b"\xff\x00{"):
        assert (data if isinstance(data, bytes) else data.encode()) in stored, data
    for dialect in ("pi", "claude", "codex", "opencode"):
        home.run("export", "--dialect", dialect, "--session", ses,
                 os.path.join(home.home, dialect))
    db.close()


def read_only_folder():
    """A log without its index in a folder that cannot be written to."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        return
    home = Home("read_only")
    db = Database(home.path, V1)
    db.message(db.session(), 1, "user", "go")
    live = os.path.join(home.home, "copy")
    os.makedirs(live)
    for suffix in ("", "-wal"):
        shutil.copy(home.path + suffix, os.path.join(live, "opencode.db" + suffix))
    db.close()
    os.chmod(WORK, 0o755)
    os.chmod(live, 0o555)
    store = os.path.join(WORK, "nobody")
    os.makedirs(store, mode=0o777)
    os.chmod(store, 0o777)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
               os.path.join(TOOLS, "agentwal"), "--store", os.path.join(store, "s"),
               "import", os.path.join(live, "opencode.db")]
    done = subprocess.run(command, capture_output=True, check=False,
                          env={**home.environment, "HOME": store})
    if b"Permission denied" in done.stderr:
        return  # that user reaches neither the program nor the folder
    assert done.returncode == 3 and b"has a log (-wal" in done.stderr, done
    # Without a log it can be read there.
    os.remove(os.path.join(live, "opencode.db-wal"))
    shutil.copy(home.path, os.path.join(live, "opencode.db"))
    done = subprocess.run(command, capture_output=True, check=False,
                          env={**home.environment, "HOME": store})
    assert done.returncode == 0, done


def many_subagents():
    """Memory does not grow with the sessions."""
    home = Home("many")
    db = Database(home.path, V1)
    top = db.session(0)
    count = 20000 // STEP
    db.db.execute("BEGIN")
    for number in range(1, count):
        db.message(db.session(number, parent_id=top), number, "user", "t%d" % number)
    db.db.execute("COMMIT")
    db.close()
    script = ("import resource, subprocess, sys; "
              "code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); "
              "sys.exit(code)")
    done = subprocess.run([sys.executable, "-c", script,
                           os.path.join(TOOLS, "agentwal"), "--store", home.store,
                           "import", home.data], capture_output=True, check=True,
                          env=home.environment)
    assert len(rows_of(home.imports("--json"))) == count
    if STEP == 1:
        assert int(done.stdout) < 200000, done.stdout
    assert home.changed() == 0


TESTS = (version_1, subagents, gone_on_with, gone_on_with_in_version_2, edited_title,
         exported_and_not_there, two_copies, own_session_gone_on_with, exported_file_comes_back,
         exported_of_each_client, times, version_2, imported_by_version_1, both_versions, order,
         moved_from_files, relatives, places, follow, locked, half_migrated, another_schema,
         damaged, odd_rows, read_only_folder, many_subagents)


def main():
    global WORK
    if b"built without SQLite" in subprocess.run(
            [os.path.join(TOOLS, "agentwal"), "index"], capture_output=True,
            check=False).stderr:
        return
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as WORK:
        for test in TESTS:
            if not wanted or test.__name__ in wanted:
                test()


main()
