#!/usr/bin/env python3
"""agentwal follow with faults: output that is removed, blocked, changed by
another program or too large; a store that is renamed and restored; short-lived
and killed writers; deleted sessions. Each fault is reported once, other views
are updated, and an idle process uses no processor time.
"""
import json
import os
import resource
import shutil
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
LATE = 30.0  # seconds, the limit on a loaded machine
LONG = "AGENTWAL_LONG" in os.environ


def run(*command, code=0, **options):
    done = subprocess.run([os.path.join(TOOLS, command[0]), *command[1:]],
                          capture_output=True, check=False, **options)
    assert done.returncode == code, (command, done.returncode, done.stderr)
    return done.stdout


class Follow:
    def __init__(self, dialect, store, out, **options):
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [os.path.join(TOOLS, "agentwal"), "--store", store, "follow",
             "--dialect", dialect, out], stdout=subprocess.DEVNULL,
            stderr=self.stderr, **options)

    def messages(self):
        self.stderr.seek(0)
        return self.stderr.read().splitlines()

    def wait_for(self, condition, what):
        begin = time.monotonic()
        while not condition():
            assert self.process.poll() is None, self.messages()
            assert time.monotonic() - begin < LATE, (what, self.messages())
            time.sleep(0.005)

    def seconds_used(self):
        with open("/proc/%d/stat" % self.process.pid, "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def expect_idle(self):
        """Fails when the process spins."""
        used, begin = self.seconds_used(), time.monotonic()
        time.sleep(2)
        used = self.seconds_used() - used
        assert used < 0.25 * (time.monotonic() - begin), used

    def catches(self, number):
        """Whether it got as far as to handle the signal."""
        with open("/proc/%d/status" % self.process.pid) as file:
            caught = next(l for l in file if l.startswith("SigCgt:"))
        return int(caught.split()[1], 16) >> (number - 1) & 1 == 1

    def stop(self, lines=0, number=signal.SIGTERM):
        self.wait_for(lambda: self.catches(number), "a handler")
        self.process.send_signal(number)
        self.process.wait(LATE)
        assert self.process.returncode == 0, self.process.returncode
        assert len(self.messages()) == lines, self.messages()


def is_sanitized():
    with open(os.path.join(TOOLS, "agentwal"), "rb") as file:
        return b"__asan_init" in file.read()


def append(store, session, *texts):
    rows = [json.dumps({"type": "message",
                        "payload": {"role": "user", "content": text}})
            for text in texts]
    run("agentwal", "--store", store, "append", session,
        input="\n".join(rows).encode() + b"\n")


def holds(path, text):
    try:
        with open(path, "rb") as file:
            return text.encode() in file.read()
    except (FileNotFoundError, NotADirectoryError):
        return False


def path_of(dialect, store, out, session):
    return run("agentwal", "--store", store, "path", "--dialect", dialect, out,
               session).decode().rstrip("\n")


def expect_whole(follow, dialect, store, out):
    """Waits until the views equal an export into an empty directory."""
    with tempfile.TemporaryDirectory() as fresh:
        run("agentwal", "--store", store, "export", "--dialect", dialect,
            fresh)
        expected = files_of(fresh)
    follow.wait_for(lambda: files_of(out) == expected, "all of it")


def make(work, name, *sessions):
    store = os.path.join(work, name)
    run("agentwal", "--store", store, "init")
    for session in sessions:
        run("agentwal", "--store", store, "create", "--id", session)
        append(store, session, "the first")
    return store, os.path.join(work, name + "-out")


def make_many(work, store, count, turn):
    """Adds a line to each of `count` sessions of Claude Code."""
    folder = os.path.join(work, "many")
    os.makedirs(folder, exist_ok=True)
    for n in range(count):
        uuid = "%08x-0000-4000-8000-%012x"
        with open(os.path.join(folder, "%d.jsonl" % n), "a",
                  encoding="utf-8") as file:
            file.write(json.dumps({
                "parentUuid": uuid % (n, turn) if turn > 0 else None,
                "sessionId": uuid % (n, 0), "cwd": "/p", "type": "user",
                "uuid": uuid % (n, turn + 1),
                "timestamp": "2026-01-02T03:04:05.000Z",
                "message": {"role": "user", "content": "turn %d" % turn},
            }) + "\n")
    run("agentwal", "--store", store, "import", folder)


def check_output(work):
    """Removed output is written again. A file in place of the directory is
    reported once; without it the view is written, also without a new record."""
    store, out = make(work, "output", "one")
    out = os.path.join(out, "made", "below")  # neither of them exists
    path = path_of("pi", store, out, "one")
    follow = Follow("pi", store, out)
    follow.wait_for(lambda: holds(path, "the first"), "parents")
    shutil.rmtree(os.path.dirname(out))
    append(store, "one", "the second")
    follow.wait_for(lambda: holds(path, "the second"), "another root")
    shutil.rmtree(os.path.dirname(out))
    with open(os.path.dirname(out), "wb"):
        pass
    append(store, "one", "the third")
    append(store, "one", "the fourth")
    follow.wait_for(follow.messages, "a complaint")
    follow.expect_idle()
    assert follow.messages()[0].startswith(b"agentwal: " + out.encode()), \
        follow.messages()
    os.unlink(os.path.dirname(out))
    follow.wait_for(lambda: holds(path, "the fourth"), "another try")
    expect_whole(follow, "pi", store, out)
    follow.expect_idle()
    follow.stop(1)


def no_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def check_room(work):
    """A file that reached the size limit is reported once; others are updated;
    when the limit is lifted it is written, also without a new record."""
    store, out = make(work, "room", "large", "small")
    follow = Follow("pi", store, out, preexec_fn=no_room)
    large = path_of("pi", store, out, "large")
    small = path_of("pi", store, out, "small")
    append(store, "large", "x" * 4000)
    follow.wait_for(follow.messages, "a complaint")
    for n in range(3):
        append(store, "small", "small %d" % n)
        append(store, "large", "large %d" % n)
        follow.wait_for(lambda: holds(small, "small %d" % n), "the other one")
    assert not holds(large, "large 2")
    resource.prlimit(follow.process.pid, resource.RLIMIT_FSIZE,
                     (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    follow.wait_for(lambda: holds(large, "large 2"), "room")
    expect_whole(follow, "pi", store, out)
    follow.stop(1)


def check_changed(work):
    """A file with lines of another program is reported once and not changed,
    also after 100 other views were written and its view was closed."""
    store, out = make(work, "changed", "mine")
    make_many(work, store, 100, 0)
    follow = Follow("claude", store, out)
    path = path_of("claude", store, out, "mine")
    follow.wait_for(lambda: holds(path, "the first"), "the view")
    expect_whole(follow, "claude", store, out)
    with open(path, "ab") as file:
        file.write(b'{"mine":true}\n')
    with open(path, "rb") as file:
        before = file.read()
    for turn in (1, 2):
        append(store, "mine", "second")
        make_many(work, store, 100, turn)
        other = path_of("claude", store, out,
                        "00000063-0000-4000-8000-000000000000")
        follow.wait_for(lambda: holds(other, "turn %d" % turn), "the others")
    follow.wait_for(follow.messages, "a complaint")
    follow.expect_idle()
    with open(path, "rb") as file:
        assert file.read() == before
    assert follow.messages()[0].startswith(b"agentwal: " + path.encode()), \
        follow.messages()
    follow.stop(1)


def check_writers(work):
    """The appends of each short-lived writer arrive, with and without another
    writer; a killed writer does not stop the process."""
    store, out = make(work, "writers", "one")
    path = path_of("entries", store, out, "one")
    for turn in range(3):
        follow = Follow("entries", store, out)
        time.sleep(0.3 * turn)
        for n in range(5):
            text = "for a moment %d %d." % (turn, n)
            append(store, "one", text)
            follow.wait_for(lambda: holds(path, text), text)
        for n in range(3):
            text = "and killed %d %d." % (turn, n)
            writer = subprocess.Popen(
                [os.path.join(TOOLS, "agentwal"), "--store", store, "append",
                 "--each", "one"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            writer.stdin.write(json.dumps(
                {"type": "message", "payload": {
                    "role": "user", "content": text}}).encode() + b"\n")
            writer.stdin.flush()
            assert writer.stdout.readline() != b""
            follow.wait_for(lambda: holds(path, text), text)
            writer.kill()
            writer.communicate()
        expect_whole(follow, "entries", store, out)
        follow.stop(number=signal.SIGINT)


def check_store(work):
    """A renamed store is reported once, and followed when it is restored."""
    store, out = make(work, "gone", "one")
    follow = Follow("entries", store, out)
    path = path_of("entries", store, out, "one")
    follow.wait_for(lambda: holds(path, "the first"), "the view")
    os.rename(store, store + "-away")
    follow.wait_for(follow.messages, "a complaint")
    follow.expect_idle()
    os.rename(store + "-away", store)
    append(store, "one", "the second")
    follow.wait_for(lambda: holds(path, "the second"), "the store")
    expect_whole(follow, "entries", store, out)
    follow.process.send_signal(signal.SIGTERM)
    assert follow.process.wait(LATE) == 0
    assert len(follow.messages()) <= 2, follow.messages()


def check_deleted(work):
    """The files of a deleted session stay, without a message."""
    store, out = make(work, "deleted", "one", "two")
    follow = Follow("entries", store, out)
    one = path_of("entries", store, out, "one")
    two = path_of("entries", store, out, "two")
    follow.wait_for(lambda: holds(one, "the first"), "one")
    append(store, "one", "the last")
    run("agentwal", "--store", store, "delete", "one")
    append(store, "two", "goes on")
    follow.wait_for(lambda: holds(two, "goes on"), "two")
    assert holds(one, "the first")
    run("agentwal", "--store", store, "create", "--id", "three")
    append(store, "three", "is new")
    three = path_of("entries", store, out, "three")
    follow.wait_for(lambda: holds(three, "is new"), "three")
    follow.stop()
    assert not temporary_files(out), temporary_files(out)


def temporary_files(out):
    """The temporary files of views. The folder may not exist yet."""
    return {name for _, _, names in os.walk(os.path.join(out, ".agentwal"))
            for name in names if name.endswith(".tmp")}


def check_many(work):
    """Terminated and killed during its first pass over many sessions, it
    continues; its memory is bounded by the number of open views."""
    count = 10000 if LONG else 300
    store, out = make(work, "many-store", "one")
    shutil.rmtree(os.path.join(work, "many"), ignore_errors=True)
    begin = time.monotonic()
    make_many(work, store, count, 0)
    print("%d sessions imported in %.1f s" % (
        count, time.monotonic() - begin))
    for n in range(6):
        # The next flush of its view removes what a killed flush left: not the
        # process that stops before it gets to that view.
        left = temporary_files(out)
        follow = Follow("claude", store, out)
        time.sleep(0.05 * n)
        if n % 2 == 0:
            follow.process.kill()
            follow.process.wait()
        else:
            follow.stop()
            assert temporary_files(out) <= left, temporary_files(out) - left
    follow = Follow("claude", store, out)
    begin = time.monotonic()
    append(store, "one", "while it looks")
    path = path_of("claude", store, out, "one")
    follow.wait_for(lambda: holds(path, "while it looks"), "the newest")
    soon = time.monotonic() - begin
    last = path_of("claude", store, out, "00000000-0000-4000-8000-000000000000")
    follow.wait_for(lambda: holds(last, "turn 0"), "the oldest")
    print("the newest after %.3f s, the oldest after %.1f s" % (
        soon, time.monotonic() - begin))
    with open("/proc/%d/status" % follow.process.pid, "rb") as file:
        anonymous = [int(row.split()[1]) for row in file
                     if row.startswith(b"RssAnon")][0]
    print("%d KiB of anonymous memory" % anonymous)
    assert anonymous < 64 * 1024 or is_sanitized(), anonymous
    expect_whole(follow, "claude", store, out)
    follow.expect_idle()
    follow.stop()


def check_refused(work):
    store, _ = make(work, "refused")
    run("agentwal", "--store", store, "follow", "o", code=2)
    run("agentwal", "--store", store, "follow", "--dialect", "source", "o",
        code=2)
    run("agentwal", "--store", store, "follow", "--dialect", "lines", "o",
        code=2)
    run("agentwal", "--store", store, "follow", "--dialect", "pi", code=2)
    run("agentwal", "--store", store + "-none", "follow", "--dialect", "pi",
        "o", code=3)
    run("agentwal", "--store", store, "follow", "--dialect", "pi", __file__,
        code=3)


CHECKS = (check_refused, check_output, check_room, check_changed, check_writers,
          check_store, check_deleted, check_many)


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for check in CHECKS:
            if len(sys.argv) < 2 or check.__name__ in sys.argv[1:]:
                check(work)


sys.exit(main())
