#!/usr/bin/env python3
"""agentwal serve: memory does not grow with the length of a session, with a client
that does not read, or with one that reads the whole log."""
import json
import os
import re
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib/serve"))
from client import Server, fail, same  # pylint: disable=wrong-import-position

API = "/api/v1"
ENTRIES = 10000
SIZE = 10000
LIMIT_KB = 16 << 10  # of RssAnon: without the mapped pages of the store's files


class Peak:
    """The most anonymous memory that the server has meanwhile."""

    def __init__(self, server):
        self.pid = server.process.pid
        self.kb = 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.ends.wait(0.005):
            with open("/proc/%d/status" % self.pid, encoding="ascii") as file:
                found = re.search(r"RssAnon:\s+(\d+)", file.read())
            self.kb = max(self.kb, int(found.group(1)))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.ends.set()
        self.thread.join()
        if kind is None and self.kb > LIMIT_KB:
            fail("%d kB of memory" % self.kb)


def send(server, path):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(60)
    sock.connect(server.place["socket"])
    sock.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" %
                 path.encode())
    return sock


def read_all(sock, until=None):
    total = 0
    tail = b""
    while piece := sock.recv(1 << 20):
        total += len(piece)
        tail = (tail + piece)[-200000:]
        if until is not None and until in tail:
            break
    sock.close()
    return total


with Server() as main:
    main.create("--id", "long")
    line = json.dumps({"type": "message", "payload": {
        "role": "user", "content": "x" * SIZE}}) + "\n"
    for _ in range(10):
        main.run("append", "long", text=line * (ENTRIES // 10))
    main.stop()
    main.start()
    with Peak(main):
        for dialect in ("entries", "claude", "pi"):
            got = read_all(send(main, API + "/sessions/long/export?dialect=" +
                                dialect))
            if got < ENTRIES * SIZE:
                fail("%d bytes of an export" % got)
    with Peak(main):
        if read_all(send(main, API + "/sessions/long/tree")) < ENTRIES * 100:
            fail("a short tree")
    with Peak(main):
        # Clients that ask for the log and do not read it.
        waiting = [send(main, API + "/events?after=0") for _ in range(20)]
        last = main.get(API + "/info")["sequence"]
        got = read_all(send(main, API + "/events?after=0"),
                       b"\nid: %d\n" % last)
        if got < ENTRIES * SIZE:
            fail("%d bytes of events" % got)
        for one in waiting:
            one.close()
    with Peak(main):
        waiting = [send(main, API + "/sessions/long/export") for _ in range(10)]
        same(1, main.get(API + "/info")["sessions"], "sessions")
    # The end of the server does not wait for those that do not read.
    began = time.monotonic()
    path = main.place["socket"]
    main.stop()
    if time.monotonic() - began > 8 or os.path.exists(path):
        fail("the end of the server")
    for one in waiting:
        one.close()
    main.start()
