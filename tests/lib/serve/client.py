"""A running agentwal serve, and requests to it, for the tests of the server."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")


def fail(text):
    sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), text))


def same(expected, got, what):
    if expected != got:
        fail("%s: expected %r, got %r" % (what, expected, got))


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Server:
    """A server of a store in a new folder, on a socket or, with port, a port with a token."""

    def __init__(self, *options, store=None, port=False):
        self.folder = tempfile.mkdtemp(prefix="serve")
        self.store = store or os.path.join(self.folder, "store")
        self.runtime = os.path.join(self.folder, "run")
        os.mkdir(self.runtime, 0o700)
        self.environment = dict(os.environ, HOME=self.folder, AGENTWAL_STORE=self.store)
        if not os.path.exists(self.store):
            self.run("init")
        self.options = (["--token-file", os.path.join(self.runtime, "token")] if port else
                        ["--socket", os.path.join(self.runtime, "serve.sock")]) + list(options)
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [AGENTWAL, "serve", "--json", *self.options], env=self.environment,
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            fail("the server did not start")
        self.place = json.loads(line)
        self.port = self.token = None
        if "url" in self.place:
            self.port = int(re.search(r":(\d+)/", self.place["url"]).group(1))
            with open(self.place["tokenFile"], encoding="ascii") as file:
                self.token = file.read().strip()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        same(0, code, "the exit code of the server")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        elif self.process.poll() is None:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *arguments, text=None, code=0):
        """Runs agentwal on the store."""
        done = subprocess.run([AGENTWAL, *arguments], env=self.environment,
                              input=text, capture_output=True, text=True,
                              check=False)
        if done.returncode != code:
            fail("agentwal %s: %d: %s" % (" ".join(arguments), done.returncode,
                                          done.stderr))
        return done.stdout

    def erase(self, *arguments):
        """Runs agentwal, and then gc --erase until no other process has an old file: one that
        gets little time on a busy machine is named when the wait for it is over."""
        end = time.monotonic() + 60
        while True:
            done = subprocess.run([AGENTWAL, *arguments], env=self.environment,
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            if "of old files" not in done.stderr or time.monotonic() > end:
                fail("agentwal %s: %s" % (" ".join(arguments), done.stderr))
            arguments = ("gc", "--erase")

    def create(self, *options):
        return self.run("create", *options).strip()

    def append(self, session, *payloads, kind="message"):
        """Appends entries; returns the id of the last one."""
        lines = "".join(json.dumps({"type": kind, "payload": payload}) + "\n"
                        for payload in payloads)
        return json.loads(self.run("append", "--json", session,
                                   text=lines))["lastAppendedEntryId"]

    def connect(self, timeout=60):
        if self.port is None:
            return UnixConnection(self.place["socket"], timeout)
        return http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=timeout)

    def request(self, method, path, body=None, headers=None, token=True):
        headers = dict(headers or {})
        if self.token and token:
            headers["Authorization"] = "Bearer " + self.token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def get(self, path, status=200):
        answer = self.request("GET", path)
        if answer.status != status:
            fail("GET %s: %d: %r" % (path, answer.status, answer.body[:500]))
        return answer.json()

    def raw(self, data, timeout=10):
        """Sends bytes and returns all that comes back."""
        if self.port is None:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout)
            sock.connect(self.place["socket"])
        else:
            sock = socket.create_connection(("127.0.0.1", self.port), timeout)
        with sock:
            sock.sendall(data)
            answer = b""
            try:
                while True:
                    piece = sock.recv(65536)
                    if not piece:
                        break
                    answer += piece
            except (socket.timeout, ConnectionResetError):
                pass
            return answer
