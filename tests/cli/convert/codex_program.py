#!/usr/bin/env python3
"""Codex itself goes on with what is exported to it from each client, in a folder where it has
threads already: it draws every turn, its model gets them, and an import of what it wrote adds the
new turn, loses none, and doubles none. The same for forks of threads that it wrote itself, which go
on from lines of these. The model is a server of this test.

AGENTWAL_CODEX  the client's program; by default that of npm, in the folder of the build, where it
                is installed: 424 MB.
"""
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests", "clients"))
sys.dont_write_bytecode = True
import codex  # noqa: E402
from program import ANSWER, CLIENTS, Home, PROMPT, installed, requests, serve  # noqa: E402

PACKAGE = "@openai/codex@0.171.0"
CONFIG = """model = "m"
approval_policy = "never"
sandbox_mode = "read-only"
openai_base_url = "http://127.0.0.1:PORT/v1"
"""


def squeezed(text):
    return re.sub(r"\s+", "", text)


class Client:
    """Codex as a server of its protocol."""

    def __init__(self, program, home):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, "app-server"], cwd=home.cwd, env=home.env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.messages, self.count = queue.Queue(), 0
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        self.call("initialize", clientInfo={"name": "test", "version": "1"},
                  capabilities={"experimentalApi": True})
        self.send(method="initialized")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))

    def send(self, **message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def wait(self, wanted):
        message = {}
        while not wanted(message):
            message = self.messages.get(timeout=120)
            assert "error" not in message, message
        return message

    def call(self, method, **params):
        self.count += 1
        self.send(id=self.count, method=method, params=params)
        return self.wait(lambda message: message.get("id") == self.count and
                         "method" not in message)["result"]

    def go_on(self, thread):
        self.call("turn/start", threadId=thread, input=[{"type": "text", "text": PROMPT}])
        turn = self.wait(lambda message: message.get("method") == "turn/completed")
        assert turn["params"]["turn"]["status"] == "completed", turn

    def drawn(self, thread):
        """The texts of the turns; opens the thread first."""
        self.call("thread/resume", threadId=thread)
        read = self.call("thread/read", threadId=thread, includeTurns=True)["thread"]
        return ["".join(block.get("text", "") for block in item["content"])
                if item["type"] == "userMessage" else item["text"]
                for turn in read["turns"] for item in turn["items"]
                if item["type"] in ("userMessage", "agentMessage")]


class User(Home):
    """One who goes to Codex, and has a thread there."""

    def __init__(self, work, client, program, port):
        self.folder = os.path.join(work, "codex")
        super().__init__(work, client, CODEX_HOME=self.folder)
        self.program = program
        os.makedirs(self.folder)
        with open(os.path.join(self.folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG.replace("PORT", str(port)))
        with open(os.path.join(self.folder, "auth.json"), "w", encoding="utf-8") as file:
            json.dump({"OPENAI_API_KEY": "none"}, file)
        with Client(program, self) as there:
            self.thread = there.call("thread/start", cwd=self.cwd)["thread"]["id"]
            there.go_on(self.thread)
            there.go_on(self.thread)

    def give(self, session):
        """Exports the session; the file, and what a person is to see of it."""
        exported = self.run("export", "--dialect", "codex", "--session", session, self.folder)
        path = exported.partition(": session")[0]
        if not path.endswith(".jsonl"):
            return None, []
        found = next((one for one in codex.sessions(self.folder) if one.path == path), None)
        return path, [value for kind, value, shown in (found.live if found else ())
                      if kind in ("user", "assistant") and shown]

    def check(self, session, path, texts):
        """Codex draws the texts and goes on, and an import has the new turn."""
        before, thread = self.shown(session), path[-42:-len(".jsonl")]
        with Client(self.program, self) as there:
            drawn = there.drawn(thread)
            assert squeezed("".join(drawn)) == squeezed("".join(texts)), (session, drawn, texts)
            there.go_on(thread)
        asked = squeezed(json.dumps(requests[-1]["input"], ensure_ascii=False))
        with open(path, encoding="utf-8") as file:
            has_compacted = '"type":"compacted"' in file.read()
        for text in texts if not has_compacted else ():
            assert squeezed(json.dumps(text, ensure_ascii=False)[1:-1]) in asked, (
                session, text, asked)
        names = set(self.sessions())
        for _ in range(2):
            self.run("import", self.folder)
            after = self.shown(session)
            assert not before - after, (session, before - after)
            assert sorted((after - before).elements()) == sorted([PROMPT, ANSWER]), (
                session, after - before)
            assert set(self.sessions()) == names, (names, self.sessions())


def check(client, program, port):
    with tempfile.TemporaryDirectory() as work:
        user = User(work, client, program, port)
        count = 0
        user.run("import", user.folder)
        for session, row in user.sessions().items():
            if row["cwd"] != user.cwd or session == user.thread:
                continue
            path, texts = user.give(session)
            if texts:
                user.check(session, path, texts)
                count += 1
        assert count > 0, client


def check_forks(program, port):
    """Forks of a thread, of which one is of its first turn, and one of a fork; and forks that Codex
    makes of these."""
    with tempfile.TemporaryDirectory() as work:
        user = User(work, "codex", program, port)
        user.run("import", user.folder)
        ends = [json.loads(line)["id"] for line in
                user.run("cat", "--json", user.thread).splitlines() if '"task_complete"' in line]
        of, turns = user.thread, 1
        for at in (("--at", ends[0]), (), ()):
            fork = user.run("fork", of, *at).strip()
            user.run("append", "--user", "In the store", fork)
            path, texts = user.give(fork)
            with open(path, encoding="utf-8") as file:
                assert "history_base" in json.loads(file.readline())["payload"], path
            assert texts == [PROMPT, ANSWER] * turns + ["In the store"], texts
            user.check(fork, path, texts)
            turns += 1
            for thread in (fork,) if at else (fork, of):
                with Client(program, user) as there:
                    last = there.call("thread/fork", threadId=thread)["thread"]["id"]
                    there.go_on(last)
                user.run("import", user.folder)
                assert user.shown(last) - user.shown(thread) == Counter([PROMPT, ANSWER]), thread
                assert not user.shown(thread) - user.shown(last), thread
            of = of if at else last


def main():
    program = installed("AGENTWAL_CODEX", PACKAGE, "@openai/codex-*/vendor/*/bin/codex")
    server = serve()
    for client in sys.argv[1:] or (one for one in CLIENTS if one != "codex"):
        check(client, program, server.server_address[1])
    check_forks(program, server.server_address[1])
    server.shutdown()


main()
