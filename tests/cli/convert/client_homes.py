#!/usr/bin/env python3
"""Homes of clients whose lines do not say all of a session: adopted, listed, shown,
searched, counted, exported as they were and as another client's, followed and resumed.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

TOOLS = os.environ["WALBIN"]
ID = "11111111-2222-4333-8444-555555555555"
CHILD = "22222222-2222-4333-8444-555555555555"


def line(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


class Home:
    """A home directory with the files of one client, adopted into a store."""

    def __init__(self, work, files, **variables):
        self.home = work
        self.store = os.path.join(work, "store")
        self.files = files
        self.env = {**{key: value for key, value in os.environ.items()
                       if not key.endswith(("_HOME", "_DIR"))}, "HOME": work,
                    "XDG_DATA_HOME": "", "AGENTWAL_STORE": self.store,
                    "TZ": "UTC", **variables}
        for path, text in files.items():
            self.write(path, text)
        self.run("adopt", "--yes")

    def write(self, path, text, mode="w"):
        path = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode, encoding="utf-8") as file:
            file.write(text)

    def run(self, *arguments, code=0):
        done = subprocess.run([os.path.join(TOOLS, "agentwal"), *arguments],
                              capture_output=True, text=True, check=False,
                              env=self.env, cwd=self.home, timeout=120)
        assert done.returncode == code, (arguments, done)
        return done.stdout

    def rows(self, *arguments):
        return {row["sessionId"]: row for row in map(
            json.loads, self.run(*arguments, "--json").splitlines())}

    def sessions(self):
        return self.rows("list")

    def children(self, session):
        return set(self.rows("children", session))

    def usage(self):
        rows = list(map(json.loads, self.run("usage", "--json").splitlines()))
        return sum(row["totalTokens"] for row in rows)

    def check_source(self, folder, out="back"):
        """The files come back with their bytes."""
        self.run("export", "--dialect", "source", out)
        for path, text in self.files.items():
            if path.endswith(".jsonl") or os.path.basename(path).startswith("session-"):
                below = os.path.relpath(path, folder)
                with open(os.path.join(self.home, out, below),
                          encoding="utf-8") as file:
                    assert file.read() == text, path

    def exported(self, session, dialect="entries"):
        return self.run("export", "--dialect", dialect, "--session", session,
                        "--stdout")


def qwen_record(number, parent, kind, **more):
    name = "00000000-0000-4000-8000-%012d"
    return {"uuid": name % number, "parentUuid": name % parent if parent
            else None, "sessionId": ID, "cwd": "/srv/app", "type": kind,
            "timestamp": "2026-02-03T09:00:%02d.000Z" % number, **more}


def qwen_message(role, text):
    return {"message": {"role": role, "parts": [{"text": text}]}}


def qwen(work):
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 5,
              "cachedContentTokenCount": 4, "totalTokenCount": 15}
    main = line(
        qwen_record(1, 0, "user", **qwen_message("user", "Count in cents.")),
        qwen_record(2, 1, "assistant", model="qwen3", usageMetadata=counts,
                    **qwen_message("model", "Counted.")),
        qwen_record(3, 2, "system", subtype="custom_title",
                    systemPayload={"customTitle": "Cents"}))
    child = line(qwen_record(4, 0, "user", isSidechain=True, agentId="a1",
                             **qwen_message("user", "Look for floats.")))
    fork = main.replace(ID, CHILD).replace(
        '"type"', '"forkedFrom": {"sessionId": "%s"}, "type"' % ID)
    home = Home(work, {
        ".qwen/projects/-srv-app/chats/%s.jsonl" % ID: main,
        ".qwen/projects/-srv-app/chats/%s.jsonl" % CHILD: fork,
        ".qwen/projects/-srv-app/subagents/%s/agent-a1.jsonl" % ID: child})
    home.write(".qwen/projects/-srv-app/chats/%s.ledger.jsonl" % ID, main)
    rows = home.sessions()
    assert rows[ID]["title"] == "Cents" and rows[ID]["cwd"] == "/srv/app"
    assert home.children(ID) == {CHILD, ID + "~agent-a1"}, home.children(ID)
    shown = home.run("cat", "--text", ID)
    assert "Count in cents." in shown and "Counted." in shown, shown
    assert "Look for floats." in home.run("search", "floats")
    assert home.usage() == 15
    assert "qwen --resume " + ID in home.run("resume", ID)
    home.check_source(".qwen")
    home.exported(ID, "pi")
    home.run("export", "--dialect", "qwen", "--session", ID, "out")
    with open(os.path.join(work, "out/projects/-srv-app/chats/%s.jsonl" % ID),
              encoding="utf-8") as file:
        assert file.read() == main
    home.write(".qwen/projects/-srv-app/chats/%s.jsonl" % ID, line(
        qwen_record(5, 3, "user", **qwen_message("user", "More."))), "a")
    home.run("import", os.path.join(work, ".qwen"))
    assert home.run("cat", "--text", ID).count("More.") == 1


def cursor_line(role, text, **more):
    return {"role": role, "message": {"content": [
        {"type": "text", "text": text}]}, **more}


def cursor(work):
    folder = ".cursor/projects/srv-app/agent-transcripts/%s" % ID
    main = line(
        cursor_line("user", "<timestamp>Friday, Sep 4, 2026, 2:21 AM (UTC+8)"
                    "</timestamp>\n<user_query>\nCount cents.\n</user_query>"),
        cursor_line("assistant", "Counted."), {"type": "turn_ended"})
    child = line(cursor_line("user", "Look for floats."))
    home = Home(work, {
        folder + "/%s.jsonl" % ID: main,
        folder + "/subagents/%s.jsonl" % CHILD: child,
        ".cursor/chats/0a1b/%s/meta.json" % ID: json.dumps({
            "title": "Cents", "cwd": "/srv/app", "createdAtMs": 1788459600000,
            "blobEncryptionKey": "a secret"})})
    rows = home.sessions()
    assert rows[ID]["title"] == "Cents" and rows[ID]["cwd"] == "/srv/app"
    assert home.children(ID) == {CHILD}, home.children(ID)
    assert rows[ID]["updated"].startswith("2026-09-03T18:21"), rows[ID]
    shown = home.run("cat", "--text", ID)
    assert "Count cents." in shown and "Counted." in shown, shown
    assert home.usage() == 0
    assert "cd /srv/app && cursor-agent --resume=" + ID in home.run("resume", ID)
    home.check_source(".cursor")
    assert '"text":"Count cents."' in home.exported(ID, "pi")
    for path, _, names in os.walk(home.store):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                assert b"a secret" not in file.read(), name


def omp(work):
    path = ".omp/agent/sessions/--srv-app--/2026-02-03T09-00-00-000Z_%s.jsonl" % ID
    title = json.dumps({"type": "title", "v": 1, "title": "Cents", "pad": ""})
    title = title[:-2] + " " * (255 - len(title)) + title[-2:] + "\n"
    rest = line(
        {"type": "session", "version": 3, "id": ID, "cwd": "/srv/app",
         "timestamp": "2026-02-03T09:00:00.000Z"},
        {"type": "message", "id": "a1f03c22", "parentId": None,
         "timestamp": "2026-02-03T09:00:01.000Z", "message": {
             "role": "user", "content": "Count in cents.", "timestamp": 1}})
    home = Home(work, {path: title + rest})
    row = home.sessions()[ID]
    assert row["title"] == "Cents" and row["cwd"] == "/srv/app", row
    done = home.run("import", "--json", os.path.join(work, ".omp/agent"))
    assert "a second header" not in done and "no header" not in done, done
    assert "Count in cents." in home.run("cat", "--text", ID)
    assert "cd /srv/app && omp --resume " + ID in home.run("resume", ID)
    home.check_source(".")
    assert '"Cents"' in home.exported(ID, "claude")
    renamed = (title + rest).replace("Cents", "Coins") + line(
        {"type": "message", "id": "a1f03c23", "parentId": "a1f03c22",
         "timestamp": "2026-02-03T09:00:02.000Z", "message": {
             "role": "user", "content": "More.", "timestamp": 2}})
    home.write(path, renamed)
    home.run("import", os.path.join(work, ".omp/agent"))
    assert set(home.sessions()) == {ID}, home.sessions()
    assert home.sessions()[ID]["title"] == "Coins", home.sessions()
    home.files[path] = renamed
    home.check_source(".", "again")


def kimi(work):
    folder = ".kimi-code/sessions/wd_app_0a1b2c3d4e5f/%s" % ID
    usage = {"inputOther": 6, "output": 5, "inputCacheRead": 4}

    def event(number, kind, **more):
        return {"type": "context.append_loop_event", "time": 1770109200000 +
                number, "event": {"type": kind, **more}}

    main_text = line(
        {"type": "metadata", "protocol_version": "1.4",
         "created_at": 1770109200000},
        {"type": "context.append_message", "time": 1770109200001, "message": {
            "role": "user", "content": [
                {"type": "text", "text": "Count in cents."}]}},
        event(2, "step.begin", uuid="s"),
        event(3, "content.part", part={"type": "text", "text": "Counting."}),
        {"type": "usage.record", "model": "k", "usage": usage},
        event(4, "tool.call", toolCallId="c", name="Shell", args={"x": 1}),
        event(5, "tool.result", toolCallId="c", result={"output": "3 cents"}),
        event(6, "step.end", uuid="s", usage=usage))
    home = Home(work, {
        folder + "/agents/main/wire.jsonl": main_text,
        folder + "/agents/agent-0/wire.jsonl": main_text.replace(
            "Count in cents.", "Look for floats."),
        folder + "/state.json": json.dumps({
            "title": "Cents", "workDir": "/srv/app",
            "createdAt": "2026-02-03T09:00:00.000Z"})})
    row = home.sessions()[ID]
    assert row["title"] == "Cents" and row["cwd"] == "/srv/app", row
    assert home.children(ID) == {ID + "~agent-0"}, home.children(ID)
    shown = home.run("cat", "--text", ID)
    for text in ("Count in cents.", "Counting.", "Shell", "3 cents"):
        assert shown.count(text) == 1, (text, shown)
    assert "Look for floats." in home.run("search", "floats")
    assert home.usage() == 30, home.usage()
    assert "kimi --session " + ID in home.run("resume", ID)
    home.check_source(".kimi-code")
    assert '"3 cents"' in home.exported(ID, "pi")
    # Its own lines come back, and with them what the client finds the session by.
    home.run("export", "--dialect", "kimi", "out")
    for path in (folder + "/agents/main/wire.jsonl", folder + "/agents/agent-0/wire.jsonl"):
        with open(os.path.join(work, "out", path[11:]), encoding="utf-8") as file:
            assert file.read() == home.files[path], path
    with open(os.path.join(work, "out/session_index.jsonl"), encoding="utf-8") as file:
        row, = map(json.loads, file)
    assert row["sessionId"] == ID and row["workDir"] == "/srv/app", row
    with open(os.path.join(row["sessionDir"], "state.json"), encoding="utf-8") as file:
        state = json.load(file)
    assert state["title"] == "Cents" and state["isCustomTitle"] is True, state
    # The client went on in it, and has its own state since.
    home.write("out/" + folder[11:] + "/state.json", '{"title": "Own"}')
    home.write("out/" + folder[11:] + "/agents/main/wire.jsonl", line(
        {"type": "context.append_message", "time": 1770109200009, "message": {
            "role": "user", "content": [{"type": "text", "text": "More."}]}}), "a")
    home.run("import", os.path.join(work, "out"))
    assert home.run("cat", "--text", ID).count("More.") == 1
    home.run("export", "--dialect", "kimi", "out")
    with open(os.path.join(row["sessionDir"], "state.json"), encoding="utf-8") as file:
        assert json.load(file) == {"title": "Own"}


def droid(work):
    path = ".factory/sessions/-srv-app/%s.jsonl" % ID
    home = Home(work, {path: line(
        {"type": "session_start", "id": ID, "title": "Cents", "cwd": "/srv/app"},
        {"type": "message", "id": "m1", "timestamp": "2026-02-03T09:00:00.000Z",
         "message": {"role": "user", "content": [
             {"type": "text", "text": "Count in cents."}]}})})
    row = home.sessions()[ID]
    assert row["title"] == "Cents" and row["cwd"] == "/srv/app", row
    assert "Count in cents." in home.run("cat", "--text", ID)
    assert "Count in cents." in home.run("search", "cents")
    # Kimi Code lists the sessions of a directory by the folder that its digest names.
    prompt = "Say \"cents\", " * 20
    home.write(path.replace(ID, CHILD), line(
        {"type": "session_start", "id": CHILD, "cwd": "/srv/--The é.app/"},
        {"type": "message", "id": "m2", "message": {"role": "user", "content": [
            {"type": "text", "text": prompt}]}}))
    home.run("import", os.path.join(work, ".factory"))
    assert "titles" not in home.run("export", "--dialect", "kimi", "out")
    for session, folder, cwd, title in (
            (ID, "app", "/srv/app", "Cents"),
            (CHILD, "the-.app", "/srv/--The é.app", prompt[:200])):
        digest = hashlib.sha256(cwd.encode()).hexdigest()[:12]
        with open(os.path.join(work, "out/sessions/wd_%s_%s/%s/state.json" % (
                folder, digest, session)), encoding="utf-8") as file:
            state = json.load(file)
        assert state["title"] == title, state
        assert state["isCustomTitle"] == (title == "Cents"), state
    assert home.usage() == 0
    assert "droid --resume " + ID in home.run("resume", ID)
    home.check_source(".factory")
    assert '"Count in cents."' in home.exported(ID, "pi")


def gemini_object(session, *texts):
    """A session as versions before 0.40 wrote it: one object."""
    return json.dumps({
        "sessionId": session, "projectHash": "abc", "kind": "main",
        "startTime": "2026-02-03T09:00:00.000Z",
        "lastUpdated": "2026-02-03T09:%02d:00.000Z" % len(texts), "messages": [
            {"id": "m%d" % number, "timestamp": "2026-02-03T09:00:0%d.000Z" % number,
             "type": "gemini" if number % 2 else "user", "content": text,
             **({"tokens": {"input": 10, "output": 5}, "toolCalls": [
                 {"id": "t%d" % number, "name": "ls", "args": {"deep": {"x": [1, 2]}},
                  "status": "success", "result": []}]} if number % 2 else {})}
            for number, text in enumerate(texts)]}, indent=2)


def gemini(work):
    chats = ".gemini/tmp/app-1/chats/session-2026-02-03T09-00-"
    path = chats + ID + ".json"
    digest = hashlib.sha256(b"/srv/other").hexdigest()
    home = Home(work, {
        path: gemini_object(ID, "Count in cents.", "Counted."),
        chats + "22222222.jsonl": line(
            {"sessionId": CHILD, "projectHash": "abc", "kind": "main",
             "startTime": "2026-02-03T09:00:00.000Z", "directories": ["/srv/own"]},
            {"id": "n1", "timestamp": "2026-02-03T09:00:01.000Z", "type": "user",
             "content": "In lines."}),
        chats.replace("app-1", digest) + "1.jsonl": line(
            {"sessionId": "older", "projectHash": digest, "kind": "main",
             "startTime": "2026-02-03T09:00:00.000Z"},
            {"id": "o1", "timestamp": "2026-02-03T09:00:01.000Z", "type": "user",
             "content": "In a folder of a digest."}),
        ".gemini/projects.json": json.dumps({"projects": {
            "/srv": "app", "/srv/app": "app-1", "/srv/other": "app-2"}})})
    # What the client had before it went on in lines.
    home.write(chats + "22222222.json", gemini_object(CHILD, "In lines."))
    home.run("import", os.path.join(work, ".gemini"))
    rows = home.sessions()
    assert {key: row["cwd"] for key, row in rows.items()} == {
        ID: "/srv/app", CHILD: "/srv/own", "older": "/srv/other"}, rows
    assert rows[ID]["firstText"] == "Count in cents.", rows
    shown = home.run("cat", "--text", ID)
    for text in ("Count in cents.", "Counted.", "[call ls"):
        assert shown.count(text) == 1, (text, shown)
    assert "Counted." in home.run("search", "counted")
    assert home.usage() == 15, home.usage()
    home.check_source(".gemini")
    # Files of lines have lines.
    for dialect in ("gemini", "claude", "pi", "entries"):
        exported = home.exported(ID, dialect)
        rows = [json.loads(row) for row in exported.splitlines()]
        assert len(rows) > 2 and exported.count('"deep"') == 1, (dialect, exported)
    home.run("export", "--dialect", "gemini", "--session", ID, "out")
    with open(os.path.join(work, "out", path[8:] + "l"), encoding="utf-8") as file:
        assert file.read() == home.exported(ID, "gemini")
    # The client wrote it anew, with more, then an earlier copy of it came back.
    older, newer = home.files[path], gemini_object(ID, "Count in cents.", "Counted.", "More.")
    for text in (newer[:-40], newer, older, newer):
        home.write(path, text)
        home.run("import", os.path.join(work, ".gemini"), code=1 if text == newer[:-40] else 0)
    assert {row for row in home.sessions() if row.startswith(ID)} == {ID}, home.sessions()
    assert home.run("cat", "--text", ID).count("More.") == 1
    # One that is longer than what is read at once, with a newline at its end and without.
    for number, end in enumerate(("", "\n", "\n\n")):
        long = chats + "long%d.json" % number
        home.files[long] = gemini_object("long%d" % number, "Long.", "x" * (5 << 20)) + end
        home.write(long, home.files[long])
    home.run("import", os.path.join(work, ".gemini"))
    assert home.sessions()["long1"]["entries"] == 1
    home.files[path] = newer
    home.check_source(".gemini", "long")
    # A newer version goes on in lines: they replace the object, if they have its messages and it
    # was not used otherwise.
    for number, (session, used) in enumerate((("moved", False), ("other", False), ("used", True))):
        name = chats + "moved%d.json" % number
        home.write(name, gemini_object(session, "One.", "Two."))
        home.run("import", os.path.join(work, ".gemini"))
        if used:
            home.run("append", "--user", "Mine.", session)
        found = json.loads(gemini_object(session, "One.", "Two.", "Three."))
        messages = found.pop("messages")
        home.write(name + "l", line(found, *messages[session == "other":]))
        home.run("import", os.path.join(work, ".gemini"))
        home.run("import", os.path.join(work, ".gemini"))
        assert home.run("cat", "--text", session).count("One.") == 1
        assert (session + "~2" in home.sessions()) == (session != "moved"), home.sessions()
    assert home.run("cat", "--text", "moved").count("Three.") == 1
    # A redacted one does not come back.
    home.run("redact", "long0", "line-1")
    entries = home.sessions()["long0"]["entries"]
    home.run("import", os.path.join(work, ".gemini"))
    assert home.sessions()["long0"]["entries"] == entries, home.sessions()
    assert "Long." not in home.run("cat", "--json", "--all", "long0")
    # Neither an object nor a session.
    for number, text in enumerate((
            "{", "{\n", '{\n"sessionId": 1}', "[" * 2000, '{"a":\n' * 2000 + "1",
            gemini_object("other", "x").replace("[\n", '"y", [\n', 1),
            gemini_object("other", "x").replace('"messages"', '"messages": 1,\n"messages"', 1))):
        home.write(chats + "bad%d.json" % number, text)
    done = home.run("import", os.path.join(work, ".gemini"), code=1)
    assert home.run("cat", "--text", ID).count("More.") == 1, done
    assert {ID, CHILD} <= set(home.sessions()), home.sessions()


def claude(work):
    """Subagents have what is next to their transcripts, and are linked to calls."""
    def row(number, kind, content, **more):
        return {"type": kind, "uuid": "u%d" % number, "sessionId": ID, "cwd": "/srv/app",
                "parentUuid": "u%d" % (number - 1) if number > 1 else None,
                "timestamp": "2026-02-03T09:00:%02d.000Z" % number,
                "message": {"role": kind, "content": content}, **more}

    def call(name):
        return [{"type": "tool_use", "id": name, "name": "Agent", "input": {"prompt": "look"}}]

    def result(name):
        return [{"type": "tool_result", "tool_use_id": name, "content": "found"}]

    def side(agent):
        return line(row(1, "user", "look at " + agent, isSidechain=True, agentId=agent))
    folder = ".claude/projects/-srv-app/"
    below = folder + ID + "/subagents/"
    meta = '{"agentType":"Explore", "description":"Cents\\u00e9","toolUseId":"c1"}\n \n'
    home = Home(work, {
        folder + ID + ".jsonl": line(
            row(1, "user", "go"), row(2, "assistant", call("c1")),
            row(3, "assistant", call("c2")), row(4, "user", result("c1")),
            row(5, "user", result("c2"), toolUseResult={"agentId": "a22222"}),
            row(6, "assistant", call("c3"))),
        below + "agent-a11111.jsonl": side("a11111"), below + "agent-a11111.meta.json": meta,
        below + "agent-a22222.jsonl": side("a22222"),
        below + "agent-a33333.jsonl": side("a33333"), below + "agent-a33333.meta.json": "[1]",
        below + "agent-a44444.meta.json": "{}"})
    one, two, three = (ID + "~agent-" + name for name in ("a11111", "a22222", "a33333"))
    rows = home.rows("children", ID)
    assert {name: row["title"] for name, row in rows.items()} == {
        one: "Cents\u00e9", two: "look at a22222", three: "look at a33333"}, rows
    assert set(home.sessions()) == {ID}
    # One that is no object is left out, and one without a transcript.
    home.write(below + "agent-a22222.meta.json", '{"description":"%s"}' % ("x" * 65536))
    for count in ("3", "3"):
        assert "left out: %s other files" % count in home.run("import", work + "/.claude")
    home.write(below + "agent-a22222.meta.json", '{"description":"x"} 1')
    assert "left out: 3 other files" in home.run("import", work + "/.claude")
    os.remove(os.path.join(work, below, "agent-a22222.meta.json"))
    assert "left out: 2 other files" in home.run("import", work + "/.claude")
    # Of each call there is the session that it started; from that, the call.
    text = home.run("cat", "--text", ID).splitlines()
    calls = [at for at, line in enumerate(text) if line.startswith("[call Agent")]
    assert [text[at + 1] for at in calls] == [
        "[subagent %s]" % one, "[subagent %s]" % two, ""], text
    shown = json.loads(home.run("show", "--json", one))
    assert (shown["call"], shown["callEntryId"]) == ("c1", "u2"), shown
    assert shown["metadata"]["agentName"] == "Explore", shown
    shown = json.loads(home.run("show", "--json", two))
    assert (shown["call"], shown["callEntryId"]) == ("c2", "u3"), shown
    shown = json.loads(home.run("show", "--json", three))
    assert (shown["call"], shown["callEntryId"]) == (None, None), shown
    assert "call" not in json.loads(home.run("show", "--json", ID))
    assert "\ncalled in  u2\n" in home.run("show", one)
    # The bytes come back, as the newest import read them.
    path = os.path.join(work, below, "agent-a11111.meta.json")
    for meta in (meta, meta.replace("Explore", "Plan"), '{"toolUseId":"c1"}'):
        home.write(path, meta)
        home.run("adopt", "--yes")
        for dialect, out in (("source", "back/projects"), ("claude", "out/projects")):
            out = os.path.join(work, out, "-srv-app", ID, "subagents")
            if os.path.exists(out):
                os.remove(os.path.join(out, "agent-a11111.meta.json"))
            home.run("export", "--dialect", dialect, "--session", one,
                     os.path.join(work, out.split("/projects")[0]))
            with open(os.path.join(out, "agent-a11111.meta.json"), encoding="utf-8") as file:
                assert file.read() == meta, dialect
            with open(os.path.join(out, "agent-a11111.jsonl"), encoding="utf-8") as file:
                assert file.read() == side("a11111"), dialect
    # What another program says of a session stays.
    home.run("meta", one, "--merge", '{"agentName":null,"mine":1}')
    home.write(path, '{"toolUseId":"c3"}')
    home.run("adopt", "--yes")
    shown = json.loads(home.run("show", "--json", one))
    assert shown["metadata"]["mine"] == 1 and shown["call"] == "c1", shown
    home.check_source(".claude")


def copilot(work):
    """The session is in its folder, which has its title and directory, or in an
    older file without one, which does not count where the folder is there."""
    place = ".copilot/session-state/"

    def events(session, prompt):
        rows = [("session.start", {"sessionId": session, "version": 1}),
                ("user.message", {"content": prompt}),
                ("assistant.message", {"messageId": "m", "content": "Done."})]
        return line(*({"type": kind, "id": "e%d" % number, "data": data,
                       "parentId": "e%d" % (number - 1) if number else None,
                       "timestamp": "2026-02-03T09:00:%02d.000Z" % number}
                      for number, (kind, data) in enumerate(rows)))

    home = Home(work, {
        place + ID + "/events.jsonl": events(ID, "one\u2028line"),
        place + ID + "/workspace.yaml":
            "id: x\ncwd: '/srv/it''s'\r\nname: \"Fix \\\"it\\\"\"  \n"
            "summary: |-\n  name: no\n# cwd: no\nlist:\n- name: no\n",
        place + CHILD + ".jsonl": events(CHILD, "without a folder")})
    home.write(place + ID + ".jsonl", events(ID, "an older form"))
    home.run("import", os.path.join(work, ".copilot"))
    sessions = home.sessions()
    assert set(sessions) == {ID, CHILD}, sessions
    assert sessions[ID]["title"] == 'Fix "it"', sessions
    assert sessions[ID]["cwd"] == "/srv/it's" and sessions[ID]["entries"] == 3
    assert "older" not in home.run("cat", "--text", ID)
    home.check_source(".copilot")
    # A newer version goes on in a folder: it is the same session, at its new place.
    moved = events(CHILD, "without a folder") + line(
        {"type": "user.message", "id": "e9", "data": {"content": "More."}, "parentId": "e2",
         "timestamp": "2026-02-03T09:01:00.000Z"})
    home.files[place + CHILD + "/events.jsonl"] = moved
    del home.files[place + CHILD + ".jsonl"]
    home.write(place + CHILD + "/events.jsonl", moved)
    for _ in range(2):
        home.run("import", os.path.join(work, ".copilot"))
        assert set(home.sessions()) == {ID, CHILD}, home.sessions()
        assert home.run("cat", "--text", CHILD).count("without a folder") == 1
    assert home.run("cat", "--text", CHILD).count("More.") == 1
    home.check_source(".copilot", "moved")
    # What is no YAML of scalars says nothing, and the session is there.
    for number, (text, title) in enumerate((
            ('name: "torn', '"torn'), ("name:\n", None), (":\n::\nname", None),
            ("name: [1]\ncwd: &a b\n", None), ("name: '\n", "'"), ("'name': x\n", None),
            ("\0: \0\nname:no\n", None), ("name: '''\n", "'"), ('name: "\\x"\n', None))):
        other = "33333333-2222-4333-8444-%012d" % number
        home.write(place + other + "/workspace.yaml", text)
        home.write(place + other + "/events.jsonl", events(other, "hello"))
        home.run("import", os.path.join(work, ".copilot"))
        found = home.sessions()[other]
        assert (found["title"], found["cwd"]) == (title, None), (text, found)


def antigravity(work):
    folder = ".gemini/antigravity-cli/brain/%s/.system_generated/logs/" % ID

    def step(number, source, kind, content, **more):
        return {"step_index": number, "source": source, "type": kind, "content": content,
                "created_at": "2026-02-03T09:00:0%dZ" % number, **more}

    home = Home(work, {folder + "transcript.jsonl": line(
        step(0, "USER_EXPLICIT", "USER_INPUT", "<USER_REQUEST>\nCount in cents.\n"
             "</USER_REQUEST><ADDITIONAL_METADATA>%s</ADDITIONAL_METADATA>" % json.dumps(
                 {"cwd": '/srv/a "b"'})),
        step(1, "MODEL", "PLANNER_RESPONSE", "Counting.", tool_calls=[
            {"name": "run_command", "args": {"x": 1}}]),
        step(2, "MODEL", "RUN_COMMAND", "3 cents"))})
    home.write(folder + "transcript_full.jsonl", home.files[folder + "transcript.jsonl"])
    home.run("import", os.path.join(work, ".gemini"))
    row, = home.sessions().values()
    assert row["sessionId"] == ID and row["cwd"] == '/srv/a "b"', row
    assert row["firstText"] == "Count in cents.", row
    shown = home.run("cat", "--text", ID)
    for text in ("Count in cents.", "Counting.", "[call run_command", "3 cents"):
        assert shown.count(text) == 1, (text, shown)
    assert "Counting." in home.run("search", "counting")
    assert home.usage() == 0
    home.check_source(".gemini/antigravity-cli")
    exported = home.exported(ID, "pi")
    assert '"3 cents"' in exported and "USER_REQUEST" not in exported, exported


def codex(work):
    """What people saw is shown where they did, once: of an item, or of an event without one."""
    def row(number, kind, **payload):
        return {"timestamp": "2026-02-03T09:00:%02d.000Z" % number, "type": kind,
                "payload": payload}

    def both(number, role, text):
        item = row(number, "response_item", type="message", role=role,
                   content=[{"type": "input_text" if role == "user" else "output_text",
                             "text": text}])
        kind = "user_message" if role == "user" else "agent_message"
        return (row(number, "event_msg", type=kind, message=text), item)

    path = ".codex/sessions/2026/02/03/rollout-2026-02-03T09-00-00-" + ID + ".jsonl"
    home = Home(work, {path: line(
        row(0, "session_meta", id=ID, timestamp="2026-02-03T09:00:00.000Z", cwd="/srv/app",
            originator="cli", cli_version="0.9"),
        *both(1, "user", "One."), *reversed(both(2, "assistant", "Two.")),
        row(3, "event_msg", type="agent_message", message="Three."),
        row(4, "event_msg", type="user_message", message="Four."),
        row(5, "event_msg", type="agent_message", message="Five."))})
    texts = ["One.", "Two.", "Three.", "Four.", "Five."]
    for options in ((), ("--all",), ("--tail", "100")):
        shown = home.run("cat", "--text", ID, *options).split()
        assert [word for word in shown if word in texts] == texts, shown
    assert home.run("cat", "--text", "--tail", "1", ID).split()[-1] == "Five."
    home.run("redact", ID, json.loads(home.run("cat", "--json", ID).splitlines()[-2])["id"])
    assert "Four." not in home.run("cat", "--text", ID)


def main():
    for check in (claude, qwen, cursor, omp, kimi, droid, gemini,
                  copilot, antigravity, codex):
        with tempfile.TemporaryDirectory() as work:
            check(work)


if __name__ == "__main__":
    sys.exit(main())
