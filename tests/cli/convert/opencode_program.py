#!/usr/bin/env python3
"""OpenCode itself goes on with what is exported to it from each client, as the file that it
imports: it has every text, and an import of its database adds the new turn to the same session,
loses none, and doubles none; again when the store went on meanwhile. The model is a server of this
test.

AGENTWAL_OPENCODE  the client's program; by default that of npm, in the folder of the build, where
                   it is installed: 354 MB.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests", "clients"))
sys.dont_write_bytecode = True
from program import ANSWER, CLIENTS, Home, PROMPT, installed, serve  # noqa: E402

PACKAGE = "opencode-ai@1.18.33"
MODEL = "own/m"


class Client:
    """OpenCode, with a model of this test."""

    def __init__(self, program, home, port):
        self.program, self.home = program, home
        for variable in ("DATA", "CONFIG", "STATE", "CACHE"):
            home.env.pop("XDG_%s_HOME" % variable, None)
        home.env["OPENCODE_CONFIG_CONTENT"] = json.dumps({
            "autoupdate": False, "share": "disabled", "model": MODEL, "small_model": MODEL,
            "provider": {"own": {
                "npm": "@ai-sdk/anthropic", "name": "own", "models": {
                    "m": {"name": "m", "limit": {"context": 100000, "output": 1000}}},
                "options": {"baseURL": "http://127.0.0.1:%d/v1" % port, "apiKey": "none"}}}})
        home.env.update(OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1",
                        PWD=home.cwd)
        self.database = os.path.join(home.env["HOME"], ".local/share/opencode/opencode.db")

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.home.cwd, env=self.home.env,
                              capture_output=True, check=False, timeout=120,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (arguments, done)
        return done.stdout.decode()

    def give(self, session):
        """Exports the session, and imports it in the client; returns both of its forms."""
        text = self.home.run("export", "--stdout", "--dialect", "opencode", "--session", session)
        path = os.path.join(self.home.env["HOME"], "export.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        exported = json.loads(text)
        self.run("import", path)
        return exported, json.loads(self.run("export", exported["info"]["id"]))

    def go_on(self, session, prompt):
        assert ANSWER in self.run("run", "-s", session, "--model", MODEL, prompt)


def texts(session):
    return [(message["info"]["role"], part["text"]) for message in session["messages"]
            for part in message["parts"] if part["type"] == "text"]


def check_session(home, client, session):
    names, before = set(home.sessions()), home.shown(session)
    exported, shown = client.give(session)
    assert texts(shown) == texts(exported), (session, texts(shown), texts(exported))
    for number in range(2):
        prompt = "%s %d" % (PROMPT, number)
        client.go_on(exported["info"]["id"], prompt)
        for _ in range(2):
            home.run("import", client.database)
            after = home.shown(session)
            assert not before - after, (session, before - after)
            new = list((after - before).elements())
            assert len(new) == 2 and all(any(text in one for one in new)
                                         for text in (prompt, ANSWER)), (session, new)
            assert set(home.sessions()) == names, (names, home.sessions())
        home.run("append", "--user", "In the store", session)
        before = home.shown(session)
        client.give(session)


def check(name, program, port):
    with tempfile.TemporaryDirectory() as work:
        home = Home(work, name)
        client = Client(program, home, port)
        count = 0
        for session, row in home.sessions().items():
            if row["cwd"] == home.cwd and home.shown(session):
                check_session(home, client, session)
                count += 1
        assert count > 0, name


def main():
    program = installed("AGENTWAL_OPENCODE", PACKAGE, "opencode-*/bin/opencode")
    server = serve()
    for name in sys.argv[1:] or CLIENTS:
        check(name, program, server.server_address[1])
    server.shutdown()


main()
