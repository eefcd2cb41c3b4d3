#!/usr/bin/env python3
"""agentwal follow: views are updated soon after the log is durable, also those
of new sessions and of many; after a kill at any point a new process continues;
after a signal it exits with code 0."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
sys.dont_write_bytecode = True
from tree_files import files_of  # noqa: E402

TOOLS = os.environ["WALBIN"]
SOON = 0.1   # seconds, where nothing else runs
LATE = 20.0  # seconds, the limit on a loaded machine


def run(*command, code=0, **options):
    done = subprocess.run([os.path.join(TOOLS, command[0]), *command[1:]],
                          capture_output=True, check=False, **options)
    assert done.returncode == code, (command, done.returncode, done.stderr)
    return done


def start(dialect, store, out):
    return subprocess.Popen(
        [os.path.join(TOOLS, "agentwal"), "--store", store, "follow",
         "--dialect", dialect, out],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def stop(follow, number=signal.SIGTERM):
    follow.send_signal(number)
    messages = follow.communicate()[1]
    assert follow.returncode == 0, (follow.returncode, messages)
    assert messages == b"", messages


class Writer:
    """agentwal append --each: acknowledges each line once it is durable."""

    def __init__(self, store, session):
        self.process = subprocess.Popen(
            [os.path.join(TOOLS, "agentwal"), "--store", store, "append",
             "--each", session],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, text, role="user"):
        entry = {"type": "message",
                 "payload": {"role": role, "content": text, "id": "m"}}
        self.process.stdin.write(json.dumps(entry).encode() + b"\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() != b""

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


def holds(path, text):
    try:
        with open(path, "rb") as file:
            return text.encode() in file.read()
    except FileNotFoundError:
        return False


def wait_for(path, text):
    """Waits until the file contains the text; returns the seconds it took."""
    begin = time.monotonic()
    while not holds(path, text):
        assert time.monotonic() - begin < LATE, (path, text)
        time.sleep(0.002)
    return time.monotonic() - begin


def path_of(dialect, store, out, session):
    done = run("agentwal", "--store", store, "path", "--dialect", dialect, out,
               session)
    return done.stdout.decode().rstrip("\n")


def expect_whole(dialect, store, out, work):
    """Waits until the views equal an export into an empty directory, and the
    follower has written its states: they get their names last."""
    with tempfile.TemporaryDirectory(dir=work) as fresh:
        run("agentwal", "--store", store, "export", "--dialect", dialect,
            fresh)
        expected = files_of(fresh)
    begin = time.monotonic()
    while files_of(out) != expected:
        assert time.monotonic() - begin < LATE, \
            sorted(k for k, v in expected.items() if files_of(out).get(k) != v)
        time.sleep(0.05)
    own = os.path.join(out, ".agentwal")
    while any(n.endswith(".tmp") for n in os.listdir(own)):
        assert time.monotonic() - begin < LATE, os.listdir(own)
        time.sleep(0.05)


def check_soon(work):
    """A session that grows, a new one, and a redacted one."""
    store, out = os.path.join(work, "s-soon"), os.path.join(work, "o-soon")
    run("agentwal", "--store", store, "init")
    run("agentwal", "--store", store, "create", "--id", "one")
    for dialect in ("entries", "pi"):
        follow = start(dialect, store, out)
        path = path_of(dialect, store, out, "one")
        writer = Writer(store, "one")
        waited = []
        for n in range(40):
            text = "%s says %d." % (dialect, n)
            writer.say(text, "user" if n % 3 else "assistant")
            waited.append(wait_for(path, text))
        waited.sort()
        print("%s: median %.1f ms, slowest %.1f ms" % (
            dialect, 1000 * waited[20], 1000 * waited[-1]))
        assert waited[20] < SOON, waited
        writer.close()
        name = "new-" + dialect
        run("agentwal", "--store", store, "create", "--id", name)
        other = Writer(store, name)
        other.say("a new session")
        other.close()
        wait_for(path_of(dialect, store, out, name), "a new session")
        expect_whole(dialect, store, out, work)
        stop(follow, signal.SIGINT if dialect == "pi" else signal.SIGTERM)
        for folder, _, names in os.walk(out, topdown=False):
            for file in names:
                os.unlink(os.path.join(folder, file))


def check_redaction(work):
    """A redaction by a fork is applied to its source's view too, and so is its end."""
    store, out = os.path.join(work, "s-red"), os.path.join(work, "o-red")
    run("agentwal", "--store", store, "init")
    run("agentwal", "--store", store, "create", "--id", "one")
    writer = Writer(store, "one")
    writer.say("a secret")
    writer.say("no secret")
    writer.close()
    listed = run("walcat", store, "one").stdout.splitlines()
    run("agentwal", "--store", store, "fork", "one", "--id", "two")
    follow = start("codex", store, out)
    for name in ("one", "two"):
        wait_for(path_of("codex", store, out, name), "a secret")
    run("agentwal", "--store", store, "redact", "two",
        json.loads(listed[0])["id"])
    expect_whole("codex", store, out, work)
    for name in ("one", "two"):
        assert not holds(path_of("codex", store, out, name), "a secret")
    run("agentwal", "--store", store, "redact", "--undo", "two",
        json.loads(listed[0])["id"])
    for name in ("one", "two"):
        wait_for(path_of("codex", store, out, name), "a secret")
    stop(follow)


def check_changed(work):
    """Lines added by another program are reported once, and stay."""
    store, out = os.path.join(work, "s-own"), os.path.join(work, "o-own")
    run("agentwal", "--store", store, "init")
    run("agentwal", "--store", store, "create", "--id", "one")
    follow = start("entries", store, out)
    writer = Writer(store, "one")
    writer.say("first")
    path = path_of("entries", store, out, "one")
    wait_for(path, "first")
    time.sleep(0.3)
    with open(path, "ab") as file:
        file.write(b'{"mine":true}\n')
    for n in range(3):
        writer.say("second %d" % n)
        time.sleep(0.2)
    writer.close()
    follow.send_signal(signal.SIGTERM)
    messages = follow.communicate()[1]
    assert follow.returncode == 0, messages
    assert messages.count(b"import it first") == 1, messages
    assert holds(path, '{"mine":true}\n') and not holds(path, "second")


def check_many(work):
    """More growing sessions than are held open."""
    store, out = os.path.join(work, "s-many"), os.path.join(work, "o-many")
    folder = os.path.join(work, "many")
    run("agentwal", "--store", store, "init")
    os.mkdir(folder)
    follow = start("claude", store, out)
    for turn in range(3):
        for n in range(150):
            with open(os.path.join(folder, "%d.jsonl" % n), "a",
                      encoding="utf-8") as file:
                uuid = "%08x-0000-4000-8000-%012x" % (n, turn + 1)
                file.write(json.dumps({
                    "parentUuid": None if turn == 0 else
                    "%08x-0000-4000-8000-%012x" % (n, turn),
                    "sessionId": "%08x-0000-4000-8000-000000000000" % n,
                    "cwd": "/p", "type": "user", "uuid": uuid,
                    "timestamp": "2026-01-02T03:04:05.000Z",
                    "message": {"role": "user", "content": "turn %d" % turn},
                }) + "\n")
        run("agentwal", "--store", store, "import", folder)
        expect_whole("claude", store, out, work)
    stop(follow)


def check_killed(work):
    """Killed at any point during concurrent writes, and started again."""
    seed = int(os.environ.get("AGENTWAL_SEED", time.time_ns() & 0xFFFFFFFF))
    kills = 200 if "AGENTWAL_LONG" in os.environ else 25
    print("AGENTWAL_SEED=%d" % seed)
    chance = random.Random(seed)
    store = os.path.join(work, "s-kill")
    run("agentwal", "--store", store, "init")
    for name in ("one", "two"):
        run("agentwal", "--store", store, "create", "--id", name)
    writers = [Writer(store, name) for name in ("one", "two")]
    for dialect in ("entries", "pi", "codex", "spec11"):
        out = os.path.join(work, "o-kill-" + dialect)
        for n in range(kills):
            follow = start(dialect, store, out)
            end = time.monotonic() + chance.random() * 0.12
            while time.monotonic() < end:
                chance.choice(writers).say(
                    "%s %d" % (dialect, n),
                    chance.choice(("user", "assistant")))
            follow.kill()
            follow.communicate()
        follow = start(dialect, store, out)
        chance.choice(writers).say("the last")
        expect_whole(dialect, store, out, work)
        stop(follow)
    for writer in writers:
        writer.close()


def check_refused(work):
    store = os.path.join(work, "s-refused")
    run("agentwal", "--store", store, "init")
    run("agentwal", "--store", store, "follow", "o", code=2)
    run("agentwal", "--store", store, "follow", "--dialect", "source", "o",
        code=2)
    run("agentwal", "--store", store, "follow", "--dialect", "lines", "o",
        code=2)
    run("agentwal", "--store", store + "-none", "follow", "--dialect", "pi",
        "o", code=3)


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        check_refused(work)
        check_soon(work)
        check_redaction(work)
        check_changed(work)
        check_many(work)
        check_killed(work)


sys.exit(main())
