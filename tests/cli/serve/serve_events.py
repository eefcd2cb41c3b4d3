#!/usr/bin/env python3
"""agentwal serve: the stream of events is exact: nothing is missed or sent
twice, across connections, servers, and processes that write."""
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib/serve"))
from client import AGENTWAL, Server, fail, same  # pylint: disable=wrong-import-position

WRITERS = 3
BATCHES = 20


class Events:
    """A connection to /events that reads events one by one."""

    def __init__(self, server, query="", last=None):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(server.place["socket"])
        head = "GET /api/v1/events%s HTTP/1.1\r\nHost: x\r\n" % query
        if last is not None:
            head += "Last-Event-ID: %d\r\n" % last
        self.sock.sendall((head + "\r\n").encode())
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        for line in iter(self.file.readline, b"\r\n"):
            name, value = line.decode().split(":", 1)
            self.headers[name.lower()] = value.strip()
        self.buffer = b""

    def chunk(self):
        size = int(self.file.readline(), 16)
        data = self.file.read(size)
        self.file.readline()
        if size == 0:
            raise EOFError
        return data

    def next(self):
        """The next event: its id or None, its name, its data."""
        while True:
            while b"\n\n" not in self.buffer:
                self.buffer += self.chunk()
            block, self.buffer = self.buffer.split(b"\n\n", 1)
            fields = dict(line.split(": ", 1) for line in
                          block.decode().split("\n") if ": " in line)
            if "event" in fields:
                return (int(fields["id"]) if "id" in fields else None,
                        fields["event"], json.loads(fields["data"]))

    def close(self):
        self.file.close()
        self.sock.close()


def check_kinds(server):
    server.create("--id", "kinds")
    server.create("--id", "other")
    events = Events(server)
    same((200, "text/event-stream"),
         (events.status, events.headers["content-type"]), "head")
    name, data = events.next()[1:]
    same(("hello", server.get("/api/v1/info")["sequence"]),
         (name, data["sequence"]), "hello")
    narrow = Events(server, "?session=other")
    same("hello", narrow.next()[1], "hello of one session")
    entry = server.append("kinds", {"role": "user", "content": "live"})
    server.run("head", "kinds", "alt", entry)
    server.run("meta", "kinds", "--merge", '{"a":1}')
    server.run("doc", "put", "kinds", "key", text="1")
    path = os.path.join(server.folder, "file")
    with open(path, "w", encoding="ascii") as file:
        file.write("x")
    server.run("checkpoint", "kinds", "cp", "--root", server.folder, path)
    server.append("other", {"role": "user", "content": "other"})
    server.run("delete", "kinds")
    expected = ["entry", "head", "session", "document", "checkpoint", "entry",
                "deleted"]
    got = [events.next() for _ in expected]
    same(expected, [event[1] for event in got], "kinds")
    numbers = [event[0] for event in got]
    same(sorted(set(numbers)), numbers, "ids ascend")
    same({"sessionId": "kinds", "entry": dict(got[0][2]["entry"], id=entry)},
         got[0][2], "an entry")
    same("live", got[0][2]["entry"]["parts"][0]["text"], "its text")
    same({"sessionId": "kinds", "name": "alt", "entryId": entry}, got[1][2],
         "a head")
    same("kinds", got[2][2]["id"], "a session")
    same("key", got[3][2]["key"], "a document")
    same({"sessionId": "kinds", "id": "cp"}, got[4][2], "a checkpoint")
    same({"sessionId": "kinds"}, got[6][2], "a deleted session")
    only = narrow.next()
    same((got[5][0], "other"), (only[0], only[2]["sessionId"]),
         "events of one session")
    events.close()
    narrow.close()
    # The same from the log, but for what is deleted since.
    server.stop()
    server.start()
    again = Events(server, "?after=%d" % (numbers[0] - 1))
    again.next()
    same([numbers[5], numbers[6]], [again.next()[0], again.next()[0]],
         "from the log")
    again.close()
    same(404, Events(server, "?session=none").status, "an unknown session")
    same(400, Events(server, "?after=x").status, "no position")
    for last in ("x", "", "-1", "1x", str(1 << 63), "9" * 30):
        answer = server.raw(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n"
                            b"Last-Event-ID: %s\r\n\r\n" % last.encode(), 2)
        same(b"400", answer[9:12], "Last-Event-ID: " + last)


def write(server, number, written):
    """Appends batches, each by another process."""
    session = server.create("--id", "w%d" % number)
    for batch in range(BATCHES):
        lines = "".join(json.dumps({
            "id": "w%d-%d-%d" % (number, batch, n), "type": "message",
            "payload": {"role": "user", "content": "x" * (n * 50)}}) + "\n"
            for n in range(1 + batch % 5))
        subprocess.run([AGENTWAL, "append", session], input=lines, text=True,
                       env=server.environment, check=True,
                       stdout=subprocess.DEVNULL)
        written.extend(json.loads(line)["id"] for line in lines.splitlines())


def check_exact(server, other):
    """A client that comes back again and again, to either server, while
    processes write and one server is killed, sees each entry once."""
    start = server.get("/api/v1/info")["sequence"]
    written = []
    threads = [threading.Thread(target=write, args=(server, n, written))
               for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    expected = WRITERS * sum(1 + batch % 5 for batch in range(BATCHES))
    rng = random.Random(7)
    last, seen, rounds = start, [], 0
    until = time.monotonic() + 120
    while len(seen) < expected and time.monotonic() < until:
        rounds += 1
        if rounds % 7 == 0:
            other.process.kill()
            other.process.wait()
            other.process.stdout.close()
            other.start()
        events = Events(rng.choice((server, other)), "", last)
        same("hello", events.next()[1], "hello")
        for _ in range(rng.randrange(1, 20)):
            if len(seen) == expected:
                break
            number, name, data = events.next()
            if number <= last:
                fail("event %d after %d" % (number, last))
            last = number
            if name == "entry":
                seen.append(data["entry"]["id"])
        events.close()
    for thread in threads:
        thread.join()
    same(expected, len(seen), "entries seen")
    same(sorted(written), sorted(seen), "each entry once")
    # A second reading of the log gives the same order.
    events = Events(other, "?after=%d" % start)
    again = []
    while len(again) < expected:
        name, data = events.next()[1:]
        if name == "entry":
            again.append(data["entry"]["id"])
    same(seen, again, "the order of the log")
    events.close()


def check_erased(server):
    """Sessions that are deleted for good, also new ones."""
    server.create("--id", "erased1")
    events = Events(server)
    events.next()
    server.create("--id", "erased2")
    # The stream may begin before erased1: other processes write.
    while True:
        kind, data = events.next()[1:]
        same("session", kind, "a new session")
        if data["id"] == "erased2":
            break
    for name in ("erased2", "erased1"):
        server.erase("delete", "--erase", name)
        seen = []
        while ("deleted", {"sessionId": name}) not in seen:
            number, kind, data = events.next()
            if kind != "deleted":
                fail("an event %s after an erasure" % kind)
            seen.append((kind, data))
    events.close()


def read_until(events, name, data):
    """Reads up to an event with these members; returns all of what came."""
    seen = []
    while True:
        event = events.next()
        seen.append(event)
        if event[1] == name and data.items() <= event[2].items():
            return seen


def in_memory(server, text):
    """How often a text is in the memory of the server that no file has. With a
    sanitizer, which keeps what was freed and maps terabytes, 0."""
    found = 0
    with open("/proc/%d/maps" % server.process.pid, encoding="ascii") as maps, \
            open("/proc/%d/mem" % server.process.pid, "rb") as memory:
        for line in maps:
            fields = line.split()
            if fields[1][:2] != "rw" or (len(fields) > 5 and
                                         fields[5].startswith("/")):
                continue
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            if end - begin > 1 << 40:
                return 0
            try:
                memory.seek(begin)
                found += memory.read(end - begin).count(text.encode())
            except OSError:
                continue
    return found


def check_undone(server, session, live, fork, canary):
    """An entry that is shown again is sent to clients of every session; then it
    is redacted again."""
    server.run("redact", "--undo", session, "a")
    for events in (live, fork):
        found = events.next()
        while canary not in json.dumps(found):
            found = events.next()
        same((None, "entry", "a", False),
             (found[0], found[1], found[2]["entry"]["id"], found[2]["entry"]["redacted"]),
             "the entry that is shown again")
        same(("session", session), (lambda one: (one[1], one[2]["id"]))(events.next()),
             "its session")
    server.erase("redact", session, "a")
    for events in (live, fork):
        read_until(events, "entry", {"sessionId": session})
        read_until(events, "entry", {"sessionId": session})


def check_hidden(server):
    """What was redacted or deleted is in no event that is sent later, and no
    event of it is kept."""
    ways = (("redact", "a"), ("redact", "a", "--erase"), ("delete",),
            ("delete", "--erase"))
    for number, way in enumerate(ways):
        session, canary = "hidden%d" % number, "canary%dsecret" % number
        start = server.get("/api/v1/info")["sequence"]
        server.create("--id", session)
        server.run("append", session, text='{"id":"a","type":"message",'
                   '"payload":{"role":"user","content":"%s"}}\n' % canary)
        server.run("fork", session, "--id", session + "-fork")
        live = Events(server, "?after=%d" % start)
        fork = Events(server, "?session=%s-fork" % session)
        old = read_until(live, "session", {"id": session + "-fork"})
        if canary not in json.dumps(old):
            fail("no event has the text")
        server.erase(way[0], session, *way[1:])
        if way[0] == "redact":
            events = read_until(live, "entry", {"sessionId": session})
            same((None, True, "a"), (events[-1][0],
                                     events[-1][2]["entry"]["redacted"],
                                     events[-1][2]["entry"]["id"]),
                 "the entry that was redacted")
            last = read_until(live, "entry", {"sessionId": session})
            same(["session", "entry"], [event[1] for event in last],
                 "the session and the redaction")
            same("(redacted)", last[0][2]["text"], "the text of the session")
            read_until(fork, "entry", {"sessionId": session})
            if len(way) == 2:
                check_undone(server, session, live, fork, canary)
        else:
            read_until(live, "deleted", {"sessionId": session})
        server.erase("gc", "--erase")
        for query, last in (("?after=%d" % start, None), ("", start)):
            again = Events(server, query, last)
            events = read_until(again, "session", {"text": None, "parentId": None,
                                                   "id": server.create()})
            # The fork of a session that was deleted has the entry itself.
            if way[0] == "redact" and canary in json.dumps(events):
                fail("%s: sent again after %s" % (canary, way))
            again.close()
        live.close()
        fork.close()
        until = time.monotonic() + 60
        event = '"kind":"text","text":"' + canary
        while in_memory(server, event) > 0:
            if time.monotonic() > until:
                fail("%s: %d events in the memory after %s" %
                     (canary, in_memory(server, event), way))
            time.sleep(0.2)


def check_above(server):
    """The number of an event that this log does not have is that of its end."""
    end = server.get("/api/v1/info")["sequence"]
    events = Events(server, "", end + 1000)
    same(end, events.next()[2]["sequence"], "hello above the end")
    server.create("--id", "above")
    same("above", events.next()[2]["id"], "an event after it")
    events.close()


def check_segments(server):
    """The events of several segments of the log come in its order, whole, also
    from the middle and through a slow client."""
    start = server.get("/api/v1/info")["sequence"]
    server.create("--id", "long")
    text = "z" * 200000
    for _ in range(5):
        server.append("long", *[{"role": "user", "content": text}] * 50)
    segments = len(os.listdir(os.path.join(server.store, "log")))
    if segments < 2:
        fail("one segment of the log")
    events = Events(server, "?after=%d" % start)
    events.next()
    numbers = []
    for _ in range(251):
        numbers.append(events.next()[0])
        if len(numbers) % 50 == 0:
            time.sleep(0.1)
    events.close()
    same(sorted(set(numbers)), numbers, "ids of several segments")
    same(251, len(numbers), "events of several segments")
    events = Events(server, "", numbers[100])
    events.next()
    same(numbers[101:], [events.next()[0] for _ in numbers[101:]],
         "from the middle")
    events.close()


def check_narrow(server):
    """A client of one session passes what the log has of others, while the
    server answers, and then gets its events."""
    quiet = server.create("--id", "quiet")
    loud = server.create("--id", "loud")
    before = server.get("/api/v1/info")["sequence"]
    server.stop()  # it has no newest events then
    lines = '{"type":"n","payload":{"a":1}}\n' * 20000
    for _ in range(5):
        server.run("append", "--durability", "written", loud, text=lines)
    server.start()
    narrow = [Events(server, "?session=%s&after=%d" % (quiet, before))
              for _ in range(4)]
    for events in narrow:
        same("hello", events.next()[1], "hello of a quiet session")
    server.get("/api/v1/info")
    server.append(quiet, {"role": "user", "content": "at last"})
    for events in narrow:
        same("entry", events.next()[1], "the event of a quiet session")
        events.close()


def check_end(server):
    """The end of the server ends the stream."""
    events = Events(server)
    events.next()
    began = time.monotonic()
    server.stop()
    try:
        events.next()
        fail("an event after the end")
    except EOFError:
        pass
    events.close()
    if time.monotonic() - began > 60:
        fail("the server took long to end")
    server.start()


with Server() as main:
    check_kinds(main)
    with Server("--socket", os.path.join(main.folder, "b.sock"),
                store=main.store) as second:
        check_exact(main, second)
    check_erased(main)
    check_hidden(main)
    check_above(main)
    check_segments(main)
    check_narrow(main)
    check_end(main)
