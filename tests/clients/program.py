"""A client's own program going on with a session that was exported to it: the server that it takes
for its model, and a user of another client who goes to it."""
import collections
import glob
import http.server
import json
import os
import re
import subprocess
import threading

import made

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
CLIENTS = ("claude", "codex", "pi", "opencode", "qwen", "gemini", "copilot", "kimi", "droid")
PROMPT, ANSWER = "Now go on", "I do."
requests = []


class Model(http.server.BaseHTTPRequestHandler):
    """Answers each request with the same text."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):  # pylint: disable=invalid-name
        """Codex asks for a socket, and does without."""
        self.send_error(426)

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
        if self.path.endswith("/responses"):  # the interface of OpenAI; else Anthropic's
            events = ({"type": "response.created", "response": {"id": message["id"]}},
                      {"type": "response.output_item.done", "item": {
                          **message, "content": [{"type": "output_text", "text": ANSWER}]}},
                      {"type": "response.completed", "response": {
                          "id": message["id"], "usage": {**message["usage"], "total_tokens": 2}}})
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
    """A user of one client who goes to another one. `env`: of that one's program."""

    def __init__(self, work, client, **env):
        self.cwd = os.path.join(work, "app")
        os.makedirs(self.cwd)
        self.env = {**os.environ, "HOME": work, "AGENTWAL_STORE": os.path.join(work, "store"),
                    **env}
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


def serve():
    """Begins to answer as a model; returns the server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def installed(variable, package, pattern):
    """The program that the variable names, or that of npm, which is installed in the folder of the
    build."""
    if os.environ.get(variable):
        return os.environ[variable]
    folder = os.path.join(os.environ["AGENTWAL_BUILD"], package.strip("@").partition("@")[0].
                          rpartition("/")[2])
    pattern = os.path.join(folder, "node_modules", pattern)
    if not glob.glob(pattern):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, package],
                       check=True)
    return sorted(glob.glob(pattern))[0]
