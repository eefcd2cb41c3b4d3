#!/usr/bin/env python3
"""agentwal follow: an entry wakes it, so that the line is in the view within 100 ms after the
entry was acknowledged as durable. Each entry is appended when the line before is there, where a
process that looks at intervals takes a whole one. Other load on the machine delays many lines: a
quarter of them must be there in time.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

TOOLS = os.environ["WALBIN"]
APPENDS = 50
SOON = 0.1   # seconds
LATE = 20.0


def tool(name):
    return os.path.join(TOOLS, name)


def run(*command):
    return subprocess.run([tool(command[0]), *command[1:]], check=True,
                          stdout=subprocess.PIPE).stdout.decode()


def holds(path, text):
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            return text in file.read()
    except FileNotFoundError:
        return False


def measure(writer, path):
    waited = []
    for n in range(APPENDS):
        text = b"entry %d." % n
        writer.stdin.write(b'{"type":"message","payload":{"role":"user",'
                           b'"content":"%s"}}\n' % text)
        writer.stdin.flush()
        assert writer.stdout.readline() != b""
        begin = time.monotonic()
        while not holds(path, text):
            assert time.monotonic() - begin < LATE, text
            time.sleep(0.0005)
        waited.append(time.monotonic() - begin)
    return waited


def check(work, dialect):
    store, out = os.path.join(work, dialect), os.path.join(work, dialect + "-o")
    run("agentwal", "--store", store, "init")
    run("agentwal", "--store", store, "create", "--id", "one")
    follow = subprocess.Popen(
        [tool("agentwal"), "--store", store, "follow", "--dialect", dialect,
         out], stdout=subprocess.DEVNULL)
    writer = subprocess.Popen(
        [tool("agentwal"), "--store", store, "append", "--each", "one"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    path = run("agentwal", "--store", store, "path", "--dialect", dialect, out,
               "one").rstrip("\n")
    waited = sorted(measure(writer, path))
    quarter = waited[APPENDS // 4]
    print("%s: %.1f ms at most of a quarter, median %.1f ms, maximum %.1f ms" % (
        dialect, 1000 * quarter, 1000 * statistics.median(waited), 1000 * waited[-1]))
    writer.stdin.close()
    assert writer.wait() == 0
    follow.terminate()
    assert follow.wait() == 0
    assert quarter < SOON, waited


def main():
    with tempfile.TemporaryDirectory() as work:
        for dialect in ("entries", "pi", "claude", "codex"):
            check(work, dialect)


sys.exit(main())
