#!/usr/bin/env python3
"""agentwal watch and cat --follow of all sessions: each entry once and in order
while many processes write, also to new sessions, begin segments and compact;
the filters; documents; hostile texts; the screen and its end."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib/pty"))
from terminal import (BIN, HOSTILE, LEAVE, Terminal,  # noqa: E402
                      environment, run)

WRITERS = 4
ENTRIES = 60
LARGE = 150 * 1024  # an entry of this size is kept in a segment of 32 MiB


def line(text, role="user", **members):
    return json.dumps({"type": "message", "payload":
                       {"role": role, "content": text}} | members) + "\n"


class Follower:
    """A process that follows; its output goes to a file."""
    processes = []

    def __init__(self, name, *arguments, program=BIN):
        self.path = name
        with open(name, "wb") as output:
            self.process = subprocess.Popen([program, *arguments],
                                            stdout=output, env=environment())
        self.processes.append(self.process)
        time.sleep(1.0)  # it looks for what comes from now on

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.text():
            assert time.monotonic() < end, (text, self.text()[-2000:])
            assert self.process.poll() is None, self.process.returncode
            time.sleep(0.05)

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        assert self.process.wait(timeout=20) == 0
        return self.text().splitlines()


def entries_of(rows):
    """The entry ids by session, in order."""
    found = {}
    for row in map(json.loads, rows):
        if "entry" in row:
            found.setdefault(row["sessionId"], []).append(row["entry"]["id"])
    return found


def erase():
    """True: all is erased. A follower that reads an old file for seconds, or gets
    no time on a busy machine, is named."""
    done = subprocess.run([BIN, "gc", "--erase"], env=environment(),
                          capture_output=True, text=True)
    assert done.returncode == 0 or (done.returncode == 1 and
                                    "of old files" in done.stderr), done
    return done.returncode == 0


def erase_next_to(followers):
    """Followers that wait keep no old file, and go on with the next entry."""
    time.sleep(0.5)
    run("delete", "writer-0")
    end = time.monotonic() + 60
    while not erase():
        assert time.monotonic() < end
    for follower in followers:
        path = "/proc/%d/maps" % follower.process.pid
        with open(path, encoding="utf-8") as maps:
            old = [row for row in maps if row.endswith(".seg (deleted)\n")]
        assert not old, (follower.path, old)
    run("append", "last", stdin=line("after it", id="last-2"))
    for follower in followers:
        follower.wait_for('"last-2"')


def test_writers(folder):
    followers = [
        Follower(folder + "/watch", "watch", "--json"),
        Follower(folder + "/cat", "cat", "--follow", "--json"),
        Follower(folder + "/walcat", "--follow", "--json", os.environ["AGENTWAL_STORE"],
                 program=os.path.join(os.environ["WALBIN"], "walcat"))]
    source = random.Random(7)
    large = "".join(source.choices("abcdefghijklmnop", k=LARGE))
    writers = []
    for number in range(WRITERS):
        name = "writer-%d" % number
        writers.append(subprocess.Popen(
            [BIN, "append", "--create", name, "--each", "--json"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            env=environment()))
    for index in range(ENTRIES):
        for number, writer in enumerate(writers):
            writer.stdin.write(line(large if index % 2 else "short",
                                    id="%d-%d" % (number, index)))
            writer.stdin.flush()
        if index % 20 == 19:
            run("create", "--id", "dead-%d" % index)
            run("delete", "dead-%d" % index)
            erase()
    for writer in writers:
        writer.stdin.close()
        assert writer.wait() == 0
    run("append", "--create", "last", stdin=line("the end", id="last-1"))
    expected = {"writer-%d" % n: ["%d-%d" % (n, i) for i in range(ENTRIES)]
                for n in range(WRITERS)} | {"last": ["last-1", "last-2"]}
    for follower in followers:
        follower.wait_for('"last-1"')
    erase_next_to(followers)
    for follower in followers:
        rows = follower.end()
        assert entries_of(rows) == expected, follower.path
        # As cat prints an entry.
        row = [r for r in map(json.loads, rows)
               if r["entry"]["id"] == "1-2"][0]
        shown = [r for r in map(json.loads, run(
            "cat", "--json", "writer-1").splitlines()) if r["id"] == "1-2"][0]
        assert row["entry"] == shown, (row, shown)
        assert shown["parentId"] == "1-1"


def test_filters(folder):
    # The session names its directory through a link; a path that is there is stored without it.
    run("create", "--id", "here-1", "--cwd", folder + "/link", "--project", "p1")
    os.symlink(folder, folder + "/link")
    run("create", "--id", "there-2", "--cwd", "/else", "--title", HOSTILE)
    run("append", "here-1", stdin=line("old", id="old-1",
                                       timestamp="2020-01-01T00:00:00.000Z"))
    run("append", "here-1", stdin=line("recent", id="recent-1"))
    followers = {
        "session": Follower(folder + "/1", "watch", "--json", "--session",
                            "here-1", "--session", "last"),
        "project": Follower(folder + "/2", "watch", "--json", "--project",
                            "p1"),
        "cwd": Follower(folder + "/3", "watch", "--json", "--cwd", folder),
        "since": Follower(folder + "/4", "watch", "--json", "--cwd", folder,
                          "--since", "1h"),
        "people": Follower(folder + "/5", "watch", "--session", "there-2",
                           "--session", "here-1"),
    }
    run("append", "there-2", stdin=line(HOSTILE, id="t-1"))
    run("append", "here-1", stdin=line("new", id="h-1"))
    run("doc", "put", "here-1", "a key", stdin='{"x":1}')
    run("append", "here-1", stdin=line("end", id="h-2"))
    for name, follower in followers.items():
        follower.wait_for("end" if name == "people" else '"h-2"')
    for name in ("session", "project", "cwd"):
        rows = followers[name].end(signal.SIGTERM)
        assert entries_of(rows) == {"here-1": ["h-1", "h-2"]}, (name, rows)
        document = json.loads(rows[1])["document"]
        assert document["key"] == "a key" and document["value"] == {"x": 1}
    rows = followers["since"].end()
    assert entries_of(rows) == {"here-1": ["recent-1", "h-1", "h-2"]}, rows
    text = "\n".join(followers["people"].end())
    assert len(text.splitlines()) == 4 and "user: new" in text, text
    assert "document a key" in text and "\\x1b[31m" in text, text
    for bad in ("\x1b", "\x07", "\x9b", "\u202e", "\u2069"):
        assert bad not in text, (bad, text)
    # A session that takes the id of a deleted one.
    follower = Follower(folder + "/6", "watch", "--json")
    run("append", "here-1", stdin=line("before", id="again-1"))
    follower.wait_for('"again-1"')
    subprocess.run([os.path.join(os.environ["AGENTWAL_BUILD"], "tests",
                                 "delete_session"),
                    os.environ["AGENTWAL_STORE"], "here-1"], check=True)
    run("create", "--id", "here-1", "--cwd", folder, "--title", "second")
    run("append", "here-1", stdin=line("end", id="again-2"))
    follower.wait_for('"again-2"')
    assert entries_of(follower.end()) == {"here-1": ["again-1", "again-2"]}
    run("watch", "--session", "nobody-at-all", code=1)
    run("watch", "--since", "yesterday-ish", code=2)


def test_screen():
    terminal = Terminal([BIN, "watch", "--session", "here-1", "--session",
                         "there-2", "--since", "1h"], environment())
    drawn = terminal.wait_for("user: end")
    assert "SESSION" in drawn and "PROCESS" in drawn, drawn
    run("append", "there-2", stdin=line(HOSTILE + " again"))
    drawn = terminal.wait_for("again")
    assert "\\x1b[31m" in drawn, repr(drawn)
    for bad in ("\x1b[31m", "\x07", "\x9b", "\u202e"):
        assert bad not in drawn, (bad, drawn)
    writer = subprocess.Popen(
        [BIN, "append", "here-1", "--each", "--json"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True, env=environment())
    writer.stdin.write(line("counted"))
    writer.stdin.flush()
    terminal.wait_for("user: counted")
    writer.stdin.close()
    assert writer.wait() == 0
    terminal.resize(10, 50)
    terminal.wait_for("user: counted")
    terminal.type("q")
    assert terminal.finish() == 0 and LEAVE in terminal.text
    for keys in ("\x03", "\x1b"):
        terminal = Terminal([BIN, "watch"], environment())
        terminal.wait_for("SESSION")
        terminal.type(keys)
        assert terminal.finish() == 0 and LEAVE in terminal.text
    terminal = Terminal([BIN, "watch", "--session", "here-1"], environment())
    terminal.wait_for("user: counted")
    terminal.type("\r")
    assert terminal.finish() == 0
    assert "agentwal cat --text here-1" in terminal.text, terminal.text
    for number in (signal.SIGTERM, signal.SIGINT):
        terminal = Terminal([BIN, "watch"], environment())
        terminal.wait_for("SESSION")
        os.kill(terminal.pid, number)
        assert terminal.finish() == -number
        assert LEAVE in terminal.text
    terminal = Terminal([BIN, "watch", "--plain"], environment())
    time.sleep(1)
    run("append", "here-1", stdin=line("a plain line"))
    terminal.wait_for("a plain line")
    terminal.type("\x03")
    assert terminal.finish() == 0 and LEAVE not in terminal.text


def test_claims():
    run("create", "--id", "claimed-1", "--title", "Mine")
    library = os.path.join(os.environ["AGENTWAL_BUILD"],
                           "lib/libagentwal.so")
    lib = os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib")
    claimer = subprocess.Popen(
        ["bash", "-c", 'library=$1; . "$0/asan.sh"; exec python3 '
         '"$0/pty/claim.py" "$@"', lib, library, os.environ["AGENTWAL_STORE"],
         "claimed-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert claimer.stdout.readline() == "claimed\n"
    terminal = Terminal([BIN, "watch", "--session", "claimed-1"],
                        environment())
    drawn = terminal.wait_for("Mine")
    assert "python3 %d " % claimer.pid in drawn, drawn
    claimer.stdin.close()
    assert claimer.wait() == 0
    drawn = terminal.wait_for("Mine")
    while "python3" in drawn:
        drawn = terminal.wait_for("Mine")
    terminal.type("q")
    assert terminal.finish() == 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, AGENTWAL_STORE=folder + "/store")
        run("init")
        test_writers(folder)
        test_filters(folder)
        test_screen()
        test_claims()
    return 0


try:
    sys.exit(main())
finally:  # one that is left would keep the output of the test open
    for process in Follower.processes:
        process.kill()
