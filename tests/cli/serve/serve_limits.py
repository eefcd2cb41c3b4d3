#!/usr/bin/env python3
"""agentwal serve: bad requests, slow clients, limits, damage, and hostile
content."""
import glob
import json
import os
import re
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib/serve"))
from client import Server, fail, same  # pylint: disable=wrong-import-position

API = "/api/v1"
MIB = 1 << 20


def status_of(answer):
    match = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    return int(match.group(1)) if match else None


def post(*headers):
    return ("POST /session HTTP/1.1\r\nHost: x\r\n"
            "Content-Type: application/json\r\n" +
            "".join(header + "\r\n" for header in headers) + "\r\n").encode()


def check_framing(server):
    chunked = "Transfer-Encoding: chunked"
    for headers in (("Content-Length: 2", chunked),
                    (chunked, "Content-Length: 5"),
                    ("Content-Length: 2", "Content-Length: 3"),
                    ("Content-Length: 2", "Content-Length: 2"),
                    ("Content-Length: -1",), ("Content-Length: +2",),
                    ("Content-Length: 2x",), ("Transfer-Encoding: gzip",),
                    ("Transfer-Encoding: gzip, chunked",),
                    (chunked, chunked)):
        answer = server.raw(post(*headers) + b"2\r\n{}\r\n0\r\n\r\n", 3)
        same(400, status_of(answer), "framing %r" % (headers,))
        if b"HTTP/1.1 2" in answer:
            fail("%r was answered: %r" % (headers, answer))
    smuggled = b"GET /api/v1/info HTTP/1.1\r\nHost: x\r\n\r\n"
    for header in ("Content-Length : %d" % len(smuggled), "X Y: 1",
                   "Transfer-Encoding : chunked", "X: \0", "X: 1\r\n folded",
                   "X: 1\nY: 1", "X:  1"):
        answer = server.raw(post(header) + smuggled, 3)
        same((400, 1), (status_of(answer), answer.count(b"HTTP/1.1")),
             "the header %r" % header)
    answer = server.raw(post(chunked, "Connection: close") +
                        b"2\r\n{}\r\n0\r\n\r\n")
    same(200, status_of(answer), "a chunked body")


def check_sizes(server):
    for headers in (("Content-Length: %d" % (32 * MIB + 1),),
                    ("Content-Length: 99999999999999999999",)):
        same(413, status_of(server.raw(post(*headers), 3)), "a big body")
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    answer = server.raw(post("Transfer-Encoding: chunked",
                             "Connection: close") + 33 * chunk +
                        b"0\r\n\r\n", 30)
    same(413, status_of(answer), "a big chunked body")
    for size in (17000, 60000, 1000000):
        try:
            answer = server.raw(b"GET /api/v1/info HTTP/1.1\r\nHost: x\r\nX: " +
                                b"a" * size + b"\r\n\r\n", 3)
        except (BrokenPipeError, ConnectionResetError):
            continue
        if status_of(answer) not in (431, None):
            fail("a head of %d bytes: %r" % (size, answer[:60]))
    same(431, status_of(server.raw(
        b"GET /api/v1/info HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 17000 +
        b"\r\n\r\n", 3)), "a head of 17,000 bytes")
    for count in (1, 127, 128, 700, 5000):
        answer = server.raw(b"GET /api/v1/info?" + b"a&" * count +
                            b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        same(200 if count < 128 else 414, status_of(answer),
             "%d parameters" % count)
    for body in (b"", b"[]", b"{", b"\xff", b'{"title":1}{}'):
        answer = server.request("POST", "/session/none/message", body,
                                {"Content-Type": "application/json"})
        same(400, answer.status, "the body %r" % body)
    server.create("--id", "archived")
    answer = server.request("PATCH", "/session/archived",
                            b'{"time":{"archived":%s}}' % (b"1" * 65),
                            {"Content-Type": "application/json"})
    same(400, answer.status, "a number of 65 digits")
    for url in ("\\u002c", "data:,", "dat,", ""):
        answer = server.request(
            "POST", "/session/archived/message",
            ('{"parts":[{"type":"file","mime":"image/png","url":"%s"}]}' %
             url).encode(), {"Content-Type": "application/json"})
        same(200, answer.status, "a file at %r" % url)


def check_methods(server):
    for path, expected in (("/api/v1/info", "GET, HEAD"), ("/", "GET, HEAD"),
                           ("/session", "GET, HEAD, POST"),
                           ("/session/x", "GET, HEAD, PATCH, DELETE")):
        answer = server.request("PUT", path, b"{}",
                                {"Content-Type": "application/json"})
        same((405, expected), (answer.status, answer.headers["Allow"]), path)


def check_bodies(server):
    """Bodies that do not end take a bounded memory."""
    socks = []
    for _ in range(6):
        sock = connect(server)
        sock.sendall(post("Content-Length: %d" % (31 * MIB)))
        sock.sendall(b"x" * (30 * MIB))
        socks.append(sock)
    statuses = []
    for sock in socks:
        sock.sendall(b"x" * MIB)
        sock.settimeout(30)
        statuses.append(status_of(sock.recv(4096)))
        sock.close()
    same({400, 503}, set(statuses), "bodies at the same time")
    same(400, server.request("POST", "/session", b"x" * MIB, {
        "Content-Type": "application/json"}).status, "a body after them")


def check_unread(server):
    """Exports that nobody reads keep out only exports."""
    server.create("--id", "long")
    server.append("long", *({"role": "user", "content": "z" * 3 * MIB},) * 2)
    path = API + "/sessions/long/export?dialect=entries"
    socks = []
    for _ in range(33):
        sock = connect(server)
        sock.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path).encode())
        sock.settimeout(30)
        socks.append((sock, status_of(sock.recv(100))))
    same([200] * 32 + [503], sorted(status for _, status in socks), "exports")
    server.get(API + "/projects")
    server.get(API + "/search?q=nothing")
    same(200, server.request("POST", "/session", {}).status, "a change")
    for sock, _ in socks:
        sock.close()


def check_garbage(server):
    for data in (b"\r\n\r\n", b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n",
                 b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                 b"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /%00%ff/../.. HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /api/v1/sessions?limit=%00&cursor=%ff HTTP/1.1\r\n"
                 b"Host: x\r\n\r\n",
                 b"GET /api/v1/sessions/\xff\xfe/entries HTTP/1.1\r\n"
                 b"Host: x\r\n\r\n"):
        answer = server.raw(data, 1)
        if status_of(answer) == 200:
            fail("%r was answered: %r" % (data, answer[:80]))
    server.get(API + "/info")


def check_hostile(server):
    """Any bytes in a session give valid JSON."""
    path = os.path.join(server.folder, "hostile.jsonl")
    big = json.dumps({"role": "user", "content": "y" * 10 * MIB})
    with open(path, "wb") as file:
        file.write(b'{"type":"user","message":{"role":"user","content":'
                   b'"</script><img src=x onerror=alert(1)>"}}\n'
                   b"\xff\xfe not JSON \x00\x1b[31m\n"
                   b'{"a":"\\ud800"}\n{"role":"user","content":"\\ud83d"}\n' +
                   b"[" * 5000 + b"\n" + b'{"role":' + b"1" * 400 + b"}\n" +
                   b'{"message":{"role":"user","content":[{"type":"text",'
                   b'"text":"\\u0000\\u202e\\u2028"},7,null,[],{}]}}\n' +
                   big.encode() + b"\n")
    server.run("import", "--dialect", "lines", path)
    session = server.get(API + "/sessions?limit=1")["sessions"][0]["id"]
    part = server.request("GET", API + "/sessions/%s/entries" % session)
    same(200, part.status, "hostile entries")
    for byte in (b"\x00", b"\x1b", b"\xff", b"\xe2\x80\xae"):
        if byte in part.body:
            fail("the byte %r in an answer" % byte)
    entries = part.json()["entries"]
    same(8, len(entries), "hostile lines")
    if not any(entry["damaged"] for entry in entries):
        fail("no line is damaged")
    long = max(entries, key=lambda entry: entry["bytes"])
    same((True, 10 * MIB), (long["parts"][0]["cut"], long["parts"][0]["bytes"]),
         "a line of 10 MiB")
    whole = server.get(API + "/sessions/%s/entries/%s" % (session, long["id"]))
    same(10 * MIB, len(whole["parts"][0]["text"]), "all of it")
    for entry in entries:
        server.get(API + "/sessions/%s/entries/%s" % (session, entry["id"]))
    same(8, len(server.get(API + "/sessions/%s/tree" % session)["nodes"]),
         "nodes")
    server.get(API + "/sessions/%s/usage" % session)


def check_part(server):
    """A part of a branch has at most 16 MiB of payloads, also after a number."""
    server.create("--id", "parts")
    for _ in range(3):
        server.append("parts", *({"role": "user", "content": "z" * 3 * MIB}
                                 for _ in range(3)))
    after, sizes = 0, []
    while not sizes or sizes[-1]:
        part = server.get(API + "/sessions/parts/entries?limit=1000&after=%d" %
                          after)["entries"]
        sizes.append(len(part))
        if sum(entry["bytes"] for entry in part) > 16 * MIB:
            fail("a part of %d entries of 3 MiB" % len(part))
        after = part[-1]["sequence"] if part else after
    same([5, 4, 0], sizes, "entries of the parts")


def check_damage(server):
    """A damaged record is counted, and the others are answered."""
    server.create("--id", "damaged")
    for n in range(5):
        server.append("damaged", {"role": "user", "content": "MARK%d" % n * 20})
    server.stop()
    files = glob.glob(os.path.join(server.store, "**", "*"), recursive=True)
    done = False
    for name in files:
        if not os.path.isfile(name):
            continue
        with open(name, "r+b") as file:
            data = file.read()
            at = data.find(b"MARK2MARK2")
            if at >= 0:
                file.seek(at)
                file.write(b"XXXX")
                done = True
    if not done:
        fail("no record to damage")
    server.start()
    part = server.get(API + "/sessions/damaged/entries")
    texts = [entry["parts"][0]["text"][:5] for entry in part["entries"]]
    same((["MARK0", "MARK1", "MARK3", "MARK4"], 1), (texts, part["damaged"]),
         "a damaged session")
    tree = server.get(API + "/sessions/damaged/tree")
    same((4, 1), (len(tree["nodes"]), tree["damaged"]), "a damaged tree")
    server.get(API + "/sessions")


def connect(server):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(server.place["socket"])
    return sock


def is_closed(sock, seconds):
    sock.settimeout(seconds)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
    except socket.timeout:
        return False


def check_slow():
    """A client that sends slowly, or nothing, is closed; events are not."""
    with Server("--idle", "1") as server:
        silent, slow, events = (connect(server) for _ in range(3))
        slow.sendall(b"GET /api/v1/info HTT")
        events.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        events.recv(4096)
        began = time.monotonic()
        closed = False
        while not closed and time.monotonic() - began < 15:
            try:
                slow.sendall(b"P")
            except (BrokenPipeError, ConnectionResetError):
                closed = True
            time.sleep(0.2)
        if not closed:
            fail("a slow sender is not closed")
        if not is_closed(silent, 10):
            fail("a silent connection is not closed")
        server.create("--id", "x")
        events.settimeout(10)
        answer = b""
        while b"event: session" not in answer:
            part = events.recv(65536)
            if not part:
                fail("the events of an idle stream: %r" % answer)
            answer += part
        for sock in (silent, slow, events):
            sock.close()


def check_connections():
    """Above the limit connections are refused, and later ones are not."""
    with Server() as server:
        socks = [connect(server) for _ in range(300)]
        time.sleep(1)
        open_count = 0
        for sock in socks:
            try:
                sock.sendall(b"GET /api/v1/info HTTP/1.1\r\nHost: x\r\n\r\n")
                sock.settimeout(10)
                open_count += sock.recv(4096).startswith(b"HTTP/1.1 200")
            except (BrokenPipeError, ConnectionResetError):
                pass
        same(256, open_count, "connections")
        for sock in socks:
            sock.close()
        until = time.monotonic() + 20
        while True:
            try:
                server.get(API + "/info")
                break
            except ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
    with Server("--connections", "3") as server:
        socks = [connect(server) for _ in range(3)]
        for sock in socks:
            sock.sendall(b"GET /api/v1/info HTTP/1.1\r\nHost: x\r\n\r\n")
            sock.recv(4096)
        if not is_closed(connect(server), 5):
            fail("--connections 3: a fourth one")
        for sock in socks:
            sock.close()
    with Server(port=True) as server:
        check_strangers(server)
    with Server("--connections", "2", port=True) as server:
        bearer = "Authorization: Bearer %s\r\n" % server.token
        head = "GET %s/info HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (
            API, server.port, bearer)
        socks = []
        for expected in (200, 200, 503):
            sock = socket.create_connection(("127.0.0.1", server.port), 30)
            sock.sendall(head.encode())
            same(expected, status_of(sock.recv(4096)), "--connections 2")
            socks.append(sock)
        socks[0].close()
        until = time.monotonic() + 20
        while server.request("GET", API + "/info").status != 200:
            if time.monotonic() > until:
                fail("a connection after another one has ended")
            time.sleep(0.1)
        for sock in socks[1:]:
            sock.close()


def check_strangers(server):
    """Connections without the token do not keep those with it out."""
    def open_one(text=b""):
        sock = socket.create_connection(("127.0.0.1", server.port), 30)
        sock.sendall(text)
        return sock
    head = b"GET /api/v1/info HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port
    known = open_one(head + b"Authorization: Bearer %s\r\n\r\n" %
                     server.token.encode())
    same(200, status_of(known.recv(4096)), "the token")
    began = time.monotonic()
    socks = [open_one(head if n % 2 else b"") for n in range(300)]
    for _ in range(20):
        server.get(API + "/info")
    if not is_closed(socks[0], 5):
        fail("the first of 300 strangers is not closed")
    refused = open_one(head + b"\r\n")
    refused.recv(4096)
    while not is_closed(refused, 1):  # which keeps asking without a token
        if time.monotonic() - began > 40:
            fail("a stranger is not closed")
        try:
            refused.sendall(head + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            break
    for sock in socks:
        if not is_closed(sock, 30):
            fail("a stranger is open after its time")
        sock.close()
    known.sendall(head + b"Authorization: Bearer %s\r\n\r\n" %
                  server.token.encode())
    same(200, status_of(known.recv(4096)), "the token, later")


with Server("--write") as main:
    check_framing(main)
    check_sizes(main)
    check_garbage(main)
    check_methods(main)
    check_bodies(main)
    check_unread(main)
    check_hostile(main)
    check_part(main)
    check_damage(main)
check_slow()
check_connections()
