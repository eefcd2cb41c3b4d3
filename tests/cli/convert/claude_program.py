#!/usr/bin/env python3
"""Claude Code itself goes on with what is exported to it from each client: its model gets every
text since the last compaction, and an import of what it wrote adds the new turn, loses none, and
doubles none. The model is a server of this test.

AGENTWAL_CLAUDE  the client's program; by default that of npm, in the folder of the build, where
                 it is installed: 384 MB.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests", "clients"))
sys.dont_write_bytecode = True
import claude  # noqa: E402
from program import ANSWER, CLIENTS, Home, PROMPT, installed, requests, serve  # noqa: E402

PACKAGE = "@anthropic-ai/claude-code@2.1.332"
# What the client writes by itself when it goes on.
NOTICES = re.compile(r"No response requested\.$|Session model .* could not be restored")


def squeezed(text):
    return re.sub(r"\s+", "", text)


def texts(items):
    """The texts that the model is to get. Commands it gets in tags."""
    for kind, value, shown in items:
        if kind in ("user", "assistant") and shown and not value.startswith("/"):
            yield squeezed(value)


def read(path):
    """The items of an exported session since the last compaction; none before a client's."""
    with open(path, encoding="utf-8") as file:
        rows = file.readlines()
    begin = max((at for at, row in enumerate(rows) if '"isCompactSummary":true' in row),
                default=0)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as rest:
        rest.write("".join(rows[begin:]))
        rest.flush()
        return [item for found in claude.sessions(rest.name) for item in found.live]


def check_request(session, items):
    asked = next(one for one in reversed(requests) if PROMPT in json.dumps(one["messages"][-3:]))
    got = squeezed("\0".join(
        block if isinstance(block, str) else block.get("text") or ""
        for message in asked["messages"]
        for block in ([message["content"]] if isinstance(message["content"], str)
                      else message["content"])))
    for text in texts(items):
        assert text in got, (session, text, got)


def check(client, client_program, port):
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "claude")
        home = Home(work, client, CLAUDE_CONFIG_DIR=folder, IS_SANDBOX="1",
                    ANTHROPIC_API_KEY="none", ANTHROPIC_BASE_URL="http://127.0.0.1:%d" % port,
                    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
        home.env.pop("CLAUDECODE", None)
        os.makedirs(folder)
        sessions = [name for name, row in home.sessions().items() if row["cwd"] == home.cwd]
        count = 0
        for session in sessions:
            before = home.shown(session)
            exported = home.run("export", "--dialect", "claude", "--session", session, folder)
            path = exported.partition(": session")[0]
            items = read(path) if path.endswith(".jsonl") else []
            if not any(texts(items)):
                continue
            count += 1
            done = subprocess.run(
                [client_program, "--resume", os.path.basename(path)[:-len(".jsonl")], "-p", PROMPT],
                cwd=home.cwd, env=home.env, capture_output=True, check=False, timeout=120,
                stdin=subprocess.DEVNULL)
            assert done.returncode == 0 and ANSWER.encode() in done.stdout, (session, done)
            check_request(session, items)
            names = set(home.sessions())
            home.run("import", folder)
            after = home.shown(session)
            assert not before - after, (client, session, before - after)
            new = [text for text in after - before if not NOTICES.match(text)]
            assert sorted(new) == sorted([PROMPT, ANSWER]), (client, session, new)
            assert set(home.sessions()) == names, (names, home.sessions())
        assert count > 0, client


def main():
    client_program = installed("AGENTWAL_CLAUDE", PACKAGE,
                               "@anthropic-ai/claude-code-*/claude")
    server = serve()
    for client in sys.argv[1:] or CLIENTS:
        check(client, client_program, server.server_address[1])
    server.shutdown()


main()
