#!/usr/bin/env python3
"""Claude Code itself goes on with what is exported to it from each client: its model gets every
text since the last compaction, and an import of what it wrote adds the new turn, loses none, and
doubles none. The model is a server of this test.

AGENTWAL_CLAUDE  the client's program; by default that of npm, in the folder of the build, where
                 it is installed: 384 MB.
"""
import collections
import glob
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests", "clients"))
sys.dont_write_bytecode = True
import claude  # noqa: E402
import made  # noqa: E402

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
PACKAGE = "@anthropic-ai/claude-code@2.1.332"
CLIENTS = ("claude", "codex", "pi", "opencode", "qwen", "gemini", "copilot", "kimi", "droid")
PROMPT, ANSWER = "Now go on", "I do."
# What the client writes by itself when it goes on.
NOTICES = re.compile(r"No response requested\.$|Session model .* could not be restored")
requests = []


class Model(http.server.BaseHTTPRequestHandler):
    """Answers each request with the same text."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):  # pylint: disable=invalid-name
        size = int(self.headers.get("Content-Length") or 0)
        asked = json.loads(self.rfile.read(size) or b"{}")
        requests.append(asked)
        message = {"id": "msg_%d" % len(requests), "type": "message", "role": "assistant",
                   "model": asked.get("model"), "content": [], "stop_reason": None,
                   "usage": {"input_tokens": 1, "output_tokens": 1}}
        events = (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0,
             "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0,
             "delta": {"type": "text_delta", "text": ANSWER}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
             "usage": {"output_tokens": 1}},
            {"type": "message_stop"})
        body = "".join("event: %s\ndata: %s\n\n" % (one["type"], json.dumps(one))
                       for one in events).encode()
        if not asked.get("stream"):
            body = json.dumps({**message, "stop_reason": "end_turn",
                               "content": [{"type": "text", "text": ANSWER}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if asked.get("stream")
                         else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Home:
    """A user of one client who goes to Claude Code."""

    def __init__(self, work, client, port):
        self.home = work
        self.cwd = os.path.join(work, "app")
        self.claude = os.path.join(work, "claude")
        os.makedirs(self.cwd)
        os.makedirs(self.claude)
        self.env = {**os.environ, "HOME": work, "AGENTWAL_STORE": os.path.join(work, "store"),
                    "CLAUDE_CONFIG_DIR": self.claude, "ANTHROPIC_API_KEY": "none",
                    "ANTHROPIC_BASE_URL": "http://127.0.0.1:%d" % port, "IS_SANDBOX": "1",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        self.env.pop("CLAUDECODE", None)
        source = os.path.join(work, "source")
        getattr(made, client)(source)
        folder = re.sub("[^A-Za-z0-9]", "-", self.cwd)
        for place, folders, names in os.walk(source):
            for name in names:
                with open(os.path.join(place, name), "r+", encoding="utf-8") as file:
                    text = re.sub('"cwd": ?"/[^"]*"', '"cwd":"%s"' % self.cwd,
                                  file.read()).replace("/srv/app", self.cwd)
                    file.seek(0)
                    file.write(text)
            if client == "claude" and "-srv-app" in folders:
                os.rename(os.path.join(place, "-srv-app"), os.path.join(place, folder))
                folders[:] = [folder]
        self.run("import", "--all-files", source)

    def run(self, *arguments):
        done = subprocess.run([AGENTWAL, *arguments], env=self.env, capture_output=True,
                              check=False, stdin=subprocess.DEVNULL)
        assert done.returncode in (0, 1), (arguments, done)
        return done.stdout.decode("utf-8", "replace")

    def sessions(self):
        return {row["sessionId"]: row for row in
                map(json.loads, self.run("list", "--json", "--limit", "0").splitlines())}

    def shown(self, session):
        """The turns; notes of the client before are on no branch of Claude Code's."""
        parts = re.split(r"\n\n(?=\S+  \d{4}-\d\d-|\[)", self.run("cat", "--text", session))
        return collections.Counter(part.partition("\n")[2].strip() for part in parts
                                   if part.startswith(("user", "assistant", "tool")))


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


def program():
    if os.environ.get("AGENTWAL_CLAUDE"):
        return os.environ["AGENTWAL_CLAUDE"]
    folder = os.path.join(os.environ["AGENTWAL_BUILD"], "claude-code")
    pattern = os.path.join(folder, "node_modules", "@anthropic-ai", "claude-code-*", "claude")
    if not glob.glob(pattern):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, PACKAGE],
                       check=True)
    return glob.glob(pattern)[0]


def check(client, client_program, port):
    with tempfile.TemporaryDirectory() as work:
        home = Home(work, client, port)
        sessions = [name for name, row in home.sessions().items() if row["cwd"] == home.cwd]
        count = 0
        for session in sessions:
            before = home.shown(session)
            exported = home.run("export", "--dialect", "claude", "--session", session,
                                home.claude)
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
            home.run("import", home.claude)
            after = home.shown(session)
            assert not before - after, (client, session, before - after)
            new = [text for text in after - before if not NOTICES.match(text)]
            assert sorted(new) == sorted([PROMPT, ANSWER]), (client, session, new)
            assert set(home.sessions()) == names, (names, home.sessions())
        assert count > 0, client


def main():
    client_program = program()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for client in sys.argv[1:] or CLIENTS:
        check(client, client_program, server.server_address[1])
    server.shutdown()


main()
