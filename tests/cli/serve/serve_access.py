#!/usr/bin/env python3
"""agentwal serve: who may connect to a port, and to a Unix socket."""
import fcntl
import http.client
import os
import re
import resource
import socket
import stat
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib/serve"))
from client import AGENTWAL, Server, fail, same  # pylint: disable=wrong-import-position

INFO = "/api/v1/info"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def status(server, expected, what, method="GET", path=INFO, **options):
    answer = server.request(method, path, **options)
    same(expected, answer.status, what)
    for name in answer.headers:
        if name.lower().startswith("access-control"):
            fail("%s: the header %s" % (what, name))
    if expected >= 400 and "json" in answer.headers["Content-Type"]:
        if set(answer.json()["error"]) != {"status", "text"}:
            fail("%s: %r" % (what, answer.body))
    return answer


def host(name, extra=b"", path=b"/api/v1/info"):
    return b"GET %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n" % (
        path, name, extra)


def check_host(server):
    bearer = b"Authorization: Bearer %s\r\n" % server.token.encode()
    port = b":%d" % server.port
    for name in (b"127.0.0.1" + port, b"localhost" + port, b"[::1]" + port):
        if not server.raw(host(name, bearer)).startswith(b"HTTP/1.1 200 "):
            fail("Host: %r was refused" % name)
    for name in (b"evil.example" + port, b"localhost", b"127.0.0.1:1",
                 b"localhost.evil.example" + port, b"LOCALHOST" + port,
                 b"localhost" + port + b".evil.example", b"127.0.0.2" + port,
                 b"127.0.0.1" + port + b"0", b"", b"localhost" + port + b"/"):
        if not server.raw(host(name, bearer)).startswith(b"HTTP/1.1 421 "):
            fail("Host: %r was not refused" % name)
    twice = b"Host: evil.example\r\n" + bearer
    if server.raw(host(b"localhost" + port, twice))[9:12] not in (b"421",
                                                                  b"400"):
        fail("two hosts were not refused")
    if server.raw(b"GET /api/v1/info HTTP/1.0\r\n%s\r\n" % bearer)[9:12] != (
            b"421"):
        fail("a request without a host was not refused")


def check_origin(server):
    own = "http://127.0.0.1:%d" % server.port
    status(server, 200, "own origin", headers={"Origin": own})
    for origin in ("http://evil.example", "null", own + ".evil.example",
                   "https://127.0.0.1:%d" % server.port, own + "/", "",
                   "http://127.0.0.1"):
        status(server, 403, "Origin: " + origin, headers={"Origin": origin})
    port = b":%d" % server.port
    bearer = b"Authorization: Bearer %s\r\n" % server.token.encode()
    name = b"localhost" + port
    for name, extra in ((name + b"\0.evil.example", bearer),
                        (name, bearer[:-2] + b"\0x\r\n"),
                        (name, bearer + b"Origin\0: x\r\n")):
        answer = server.raw(host(name, extra))
        same(b"400", answer[9:12], "a NUL in %r" % (name + extra))
    for site, expected in (("same-origin", 200), ("none", 200),
                           ("cross-site", 403), ("same-site", 403)):
        status(server, expected, site, headers={"Sec-Fetch-Site": site})
    status(server, 403, "another page's picture", path="/",
           headers={"Sec-Fetch-Site": "cross-site",
                    "Sec-Fetch-Mode": "no-cors"})
    status(server, 200, "a link of another page", path="/",
           headers={"Sec-Fetch-Site": "cross-site",
                    "Sec-Fetch-Mode": "navigate"})


def check_token(server):
    status(server, 200, "the token")
    answer = status(server, 401, "no token", token=False)
    same("Bearer", answer.headers["WWW-Authenticate"], "WWW-Authenticate")
    for wrong in (server.token[:-1], server.token + "0", "0" * 64, "",
                  server.token.upper() + "x"):
        status(server, 401, "a wrong token", token=False,
               headers={"Authorization": "Bearer " + wrong})
    status(server, 401, "Basic", token=False,
           headers={"Authorization": "Basic " + server.token})
    page = status(server, 401, "a browser", token=False, path="/",
                  headers={"Accept": "text/html"})
    if b"agentwal serve" not in page.body:
        fail("the page of 401 does not say what to do")
    mode = stat.S_IMODE(os.stat(server.place["tokenFile"]).st_mode)
    same(0o600, mode, "mode of the token's file")
    same(64, len(server.token), "digits of the token")


def check_link(server):
    link = server.place["open"]
    path = link[link.index("/?"):]
    status(server, 401, "a wrong key", path="/?key=" + "0" * 64, token=False)
    status(server, 401, "the key at another path", token=False,
           path=INFO + path[1:])
    same(401, server.request("HEAD", path, token=False).status,
         "HEAD of the link")
    first = status(server, 200, "the link", path=path, token=False)
    answer = status(server, 200, "the link, whose cookie did not come back",
                    path=path, token=False,
                    headers={"Sec-Fetch-Site": "cross-site",
                             "Sec-Fetch-Mode": "navigate"})
    if b'content="0; url=/"' not in answer.body:
        fail("the link does not go on: %r" % answer.body)
    parts = [part.strip() for part in answer.headers["Set-Cookie"].split(";")]
    same({"HttpOnly", "SameSite=Strict", "Path=/"}, set(parts[1:]), "cookie")
    cookie = {"Cookie": "other=1; " + parts[0]}
    old = first.headers["Set-Cookie"].split(";")[0]
    status(server, 401, "the cookie of the answer before", token=False,
           headers={"Cookie": old})
    status(server, 200, "the cookie", token=False, headers=cookie)
    status(server, 401, "the link again", path=path, token=False)
    name = parts[0].split("=")[0]
    status(server, 401, "a wrong cookie", token=False,
           headers={"Cookie": name + "=" + "0" * 64})
    status(server, 401, "the token as a cookie", token=False,
           headers={"Cookie": name + "=" + server.token})
    status(server, 403, "a cookie and a foreign origin", token=False,
           headers=dict(cookie, Origin="http://evil.example"))
    return cookie


def check_changes(server, cookie):
    """The server is read-only."""
    for method in ("POST", "PATCH", "DELETE", "PUT"):
        status(server, 405, method, method, "/session", body={})
    status(server, 405, "TRACE", "TRACE")
    status(server, 403, "a change with a cookie and no origin", "POST",
           "/session", body={}, token=False, headers=cookie)
    own = "http://127.0.0.1:%d" % server.port
    status(server, 405, "a change with a cookie and an origin", "POST",
           "/session", body={}, token=False, headers=dict(cookie, Origin=own))


def check_link_time():
    with Server("--link-time", "1", port=True) as server:
        link = server.place["open"]
        path = link[link.index("/?"):]
        until = time.monotonic() + 30
        while server.request("GET", path, token=False).status != 401:
            if time.monotonic() > until:
                fail("the link is valid after its time")
            time.sleep(0.2)


def check_headers(server):
    for path in (INFO, "/api/v1/none", "/"):
        answer = server.request("GET", path)
        for name, value in HEADERS.items():
            same(value, answer.headers[name], "%s of %s" % (name, path))
        if "default-src 'none'" not in answer.headers[
                "Content-Security-Policy"]:
            fail("no policy for " + path)


def refused(server, advice, *options):
    """A server that cannot listen says what to do."""
    done = subprocess.run([AGENTWAL, "serve", *options], capture_output=True,
                          env=server.environment, text=True, check=False,
                          timeout=30)
    same(3, done.returncode, "the exit code of a second server")
    if advice not in done.stderr:
        fail("no advice: " + done.stderr)


def check_port():
    with Server(port=True) as server:
        refused(server, "without --port a free port is taken", "--port",
                str(server.port))
        if not os.path.exists(server.place["tokenFile"]):
            fail("a server that could not listen removed the token")
        check_host(server)
        check_origin(server)
        check_token(server)
        check_changes(server, check_link(server))
        check_headers(server)
        if socket.has_ipv6:
            connection = http.client.HTTPConnection("::1", server.port)
            connection.request("GET", INFO, headers={
                "Authorization": "Bearer " + server.token})
            same(200, connection.getresponse().status, "::1")
            connection.close()
        token_file = server.place["tokenFile"]
        server.stop()
        if os.path.exists(token_file):
            fail("the token's file remains")
        old = server.token
        server.start()
        if server.token == old:
            fail("the token is that of the server before")
        path = token_file
        os.link(path, path + ".old")
        os.unlink(path)
        with open(path, "w", encoding="ascii") as file:
            file.write("of another server")
        server.stop()
        if not os.path.exists(path):
            fail("the server removed the token of another one")
        check_token_file(server, path)
        server.start()


def check_token_file(server, path):
    """Only the token of a server that has ended is replaced."""
    for text in ("of another server", "", "0" * 64, "0" * 65,
                 "x" * 64 + "\n", "0" * 64 + "\n\n"):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        refused(server, "is not a token", "--token-file", path)
        with open(path, encoding="ascii") as file:
            same(text, file.read(), "a file that is not a token")
    os.unlink(path)
    os.symlink("/dev/null", path)
    refused(server, "is not a token", "--token-file", path)
    os.unlink(path)
    server.start()
    refused(server, "is the token of another server", "--token-file", path)
    server.process.kill()
    server.process.wait()
    server.process.stdout.close()
    old = server.token
    server.start()  # over the token that was left
    if server.token == old:
        fail("the token of the server that was killed")
    server.stop()


def read_link(terminal):
    """Reads from a terminal to the end of a link's line."""
    text = ""
    while not re.search(r"key=[0-9a-f]{64}\r?\n", text):
        text += os.read(terminal, 4096).decode()
    return re.search(r"http://127.0.0.1:(\d+)(/\?key=[0-9a-f]{64})", text).groups()


def get(port, path, cookie=""):
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    connection.close()
    return answer.status, (answer.headers["Set-Cookie"] or "").split(";")[0]


def check_terminal():
    """Without an option, and with nowhere to write but the store, a link for a browser; Enter
    prints another one, and the one before is void."""
    with Server() as server:
        outer, inner = os.openpty()
        environment = dict(server.environment, XDG_RUNTIME_DIR="/nowhere", HOME="/nowhere")
        process = subprocess.Popen(
            [AGENTWAL, "serve"], env=environment, stdin=inner, stdout=inner,
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
        os.close(inner)
        port, first = read_link(outer)
        code, cookie = get(port, first)
        same((200, 200), (code, get(port, INFO, cookie)[0]), "the link and its cookie")
        same(401, get(port, first)[0], "the link again")
        os.write(outer, b"\n")
        port, second = read_link(outer)
        same((401, 200), (get(port, first)[0], get(port, INFO, cookie)[0]),
             "the first link and its cookie after another link was printed")
        code, other = get(port, second)
        same((200, 200), (code, get(port, INFO, other)[0]), "the second link")
        process.terminate()
        same(0, process.wait(timeout=60), "the exit code of a server at a terminal")
        os.close(outer)


def check_prepared():
    """What the store has is indexed before a browser searches."""
    with Server(port=True) as server:
        server.append(server.create(), {"role": "user", "content": "words"})
        server.run("gc")  # ends the segment: only then its index is a file
        server.stop()
        server.start()
        index = os.path.join(server.store, "index")
        end = time.monotonic() + 60
        while server.get(INFO)["search"] and not any(
                name.endswith(".fts") for name in os.listdir(index)):
            if time.monotonic() > end:
                fail("the index of a search is not made before it")
            time.sleep(0.05)


def check_write():
    with Server("--write", port=True) as server:
        status(server, 415, "no type", "POST", "/session", body=b"{}")
        status(server, 415, "a form", "POST", "/session", body=b"{}",
               headers={"Content-Type": "text/plain"})
        status(server, 200, "JSON", "POST", "/session", body=b"{}",
               headers={"Content-Type": "application/json; charset=utf-8"})
        status(server, 401, "no token", "POST", "/session", body={},
               token=False)


def check_socket():
    with Server() as server:
        path = server.place["socket"]
        same(0o600, stat.S_IMODE(os.stat(path).st_mode), "mode of the socket")
        status(server, 200, "the socket")
        status(server, 405, "a change", "POST", "/session", body={})
        refused(server, "--socket PATH names another", "--socket", path)
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()
        server.start()  # over the file that was left
        status(server, 200, "the socket again")
        other = os.path.join(server.folder, "other.sock")
        server.stop()
        if os.path.exists(path):
            fail("the socket remains")
        server.options += ["--socket", other]
        server.start()
        same(other, server.place["socket"], "--socket")
        server.stop()
        with open(other, "w", encoding="ascii"):
            pass
        refused(server, "is not a socket", "--socket", other)
        same(0, os.stat(other).st_size, "the file in the way")
        os.unlink(other)
        for options in (["--port", "65536"], ["--port", "x"],
                        ["--open", "--socket", "x"],
                        ["--port", "0", "--socket", "x"], ["more"],
                        ["--connections", "0"], ["--idle", "0"],
                        ["--link-time", "0"], ["--link-time", "9", "--socket", "x"],
                        ["--token-file", "x", "--socket", "x"],
                        ["--socket", ""], ["--token-file", ""],
                        ["--socket", "x" * 200]):
            server.run("serve", *options, code=2)
        server.start()
        os.unlink(other)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(other)
            server.stop()
            if not os.path.exists(other):
                fail("the server removed the socket of another one")
        os.unlink(other)
        server.start()


def check_users():
    """A process of another user gets no answer, whatever the socket's mode."""
    if os.geteuid() != 0:
        return
    with Server("--write") as server:
        path = os.path.join("/tmp", os.path.basename(server.folder) + ".sock")
        server.stop()
        server.options += ["--socket", path]
        server.start()
        os.chmod(path, 0o777)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(path)
            sock.sendall(b"POST /session HTTP/1.0\r\nHost: x\r\n"
                         b"Content-Type: application/json\r\n"
                         b"Content-Length: 2\r\n\r\n{}")
            os._exit(0 if sock.recv(99)[9:12] == b"403" else 1)
        same(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
             "another user")
        same(0, server.get(INFO)["sessions"], "sessions of another user")


def check_turns():
    """Servers that start at the same time at one path take turns."""
    with Server() as server:
        server.stop()
        folder = os.path.join(server.folder, "turns")
        os.mkdir(folder, 0o700)
        path = os.path.join(folder, "socket")
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = subprocess.Popen([AGENTWAL, "serve", "--socket", path],
                                 env=server.environment, stdout=subprocess.PIPE)
        time.sleep(1)
        if os.path.exists(path):
            first.kill()  # ctest waits for all that have its output
            fail("a server did not wait for its turn")
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
        if not first.stdout.readline():
            fail("a server did not get its turn")
        all_of = [first] + [subprocess.Popen(
            [AGENTWAL, "serve", "--socket", path], env=server.environment,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for _ in range(6)]
        codes = [process.wait(timeout=60) for process in all_of[1:]]
        same([3] * 6, codes, "servers at the path of another one")
        first.kill()
        first.wait()
        all_of += [subprocess.Popen(
            [AGENTWAL, "serve", "--socket", path], env=server.environment,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for _ in range(6)]
        started = [process for process in all_of[7:]
                   if process.stdout.readline()]
        same(1, len(started), "servers at one path")
        for process in started:
            process.terminate()
        for process in all_of:
            process.wait(timeout=60)
            process.stdout.close()
        server.start()


def check_start():
    """With too few descriptors it does not start, and reports that."""
    with Server() as server:
        server.stop()
        for files in range(12, 40):
            process = subprocess.Popen(
                [AGENTWAL, "serve", *server.options], env=server.environment,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                preexec_fn=lambda n=files: resource.setrlimit(
                    resource.RLIMIT_NOFILE, (n, n)))
            has_started = process.stdout.readline() != b""
            process.terminate()
            same(0 if has_started else 3, process.wait(timeout=30),
                 "the exit code with %d files" % files)
            process.stdout.close()
            if os.path.exists(server.place["socket"]):
                fail("the socket remains")
        server.start()


check_port()
check_link_time()
check_terminal()
check_prepared()
check_write()
check_socket()
check_users()
check_turns()
check_start()
