#!/usr/bin/env python3
"""agentwal on a terminal: colours, the pager, the width, texts that would
control the terminal; and none of that without a terminal."""
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import fcntl
import termios
import unicodedata

BIN = os.path.join(os.environ["WALBIN"], "agentwal")
HOSTILE = "red \x1b[31m \x07 c1 \x9b31m bidi \u202eevil\u2069 tab\tend"
ODD = "an-id-that-somebody-made-and-that-is-longer-than-twelve-characters"
WIDE = "日本語の題名がここに長く続くので切り取られるはずです、きっとそうです"


def environment(**changes):
    env = {k: v for k, v in os.environ.items()
           if k not in ("COLUMNS", "NO_COLOR", "PAGER", "LESS")}
    env.update({"TERM": "xterm", "LC_ALL": "C", "TZ": "UTC-2"} | changes)
    return {k: v for k, v in env.items() if v is not None}


def run(*arguments, stdin="", **changes):
    done = subprocess.run([BIN, *arguments], input=stdin, text=True,
                          capture_output=True, env=environment(**changes))
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def on_terminal(*arguments, columns=80, **changes):
    """What the program prints on a terminal of that size."""
    env = environment(**changes)
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(BIN, [BIN, *arguments], env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    output = b""
    while select.select([fd], [], [], 20)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.waitpid(pid, 0)
    os.close(fd)
    return output.decode()


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in text)


def lines(text):
    return text.replace("\r", "").rstrip("\n").split("\n")


def test_width():
    for columns in (60, 80, 133):
        for line in lines(on_terminal("list", COLUMNS=str(columns), PAGER="",
                                      NO_COLOR="1")):
            assert width(line) <= columns, (columns, width(line), line)
    text = run("list", COLUMNS="70")
    assert "…" in text and all(width(x) <= 70 for x in lines(text)), text
    # Without a terminal nothing is cut; columns begin at the same place.
    text = lines(run("list"))
    assert any(WIDE in line for line in text), text
    starts = {width(line[:line.index("~/w")]) for line in text[1:]
              if "~/w" in line}
    assert len(starts) == 1, text
    for columns in (40, 100):
        for line in lines(on_terminal("tree", "main-one", PAGER="",
                                      NO_COLOR="1", COLUMNS=str(columns))):
            assert width(line) <= max(columns, 48), (columns, line)


def test_colour():
    assert "\x1b[33m" in on_terminal("list", PAGER="")
    assert "\x1b" not in on_terminal("list", PAGER="", NO_COLOR="1")
    assert "\x1b[33m" in on_terminal("list", PAGER="", NO_COLOR="")
    assert "\x1b" not in on_terminal("list", PAGER="", TERM="dumb")
    assert "\x1b" not in on_terminal("list", PAGER="", TERM=None)
    assert "\x1b" not in on_terminal("list", "--no-color", PAGER="")
    text = on_terminal("tree", "main-one", PAGER="")
    assert "\x1b[32m" in text, repr(text)
    text = on_terminal("cat", "--text", "main-one", PAGER="")
    assert "\x1b[1muser\x1b[0m  \x1b[2m" in text, repr(text)
    for verb in (["list"], ["tree", "main-one"], ["show", "main-one"],
                 ["cat", "--text", "main-one"]):
        assert "\x1b" not in run(*verb), verb


def test_pager(folder):
    pager = os.path.join(folder, "pager")
    with open(pager, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho \"paged $LESS\"\ncat\n")
    os.chmod(pager, 0o755)
    for verb in (["list"], ["show", "main-one"], ["tree", "main-one"],
                 ["cat", "main-one"], ["cat", "--text", "main-one"]):
        assert "paged FRX" in on_terminal(*verb, PAGER=pager), verb
        assert "paged" not in on_terminal(*verb, "--no-pager", PAGER=pager)
        assert "paged" not in run(*verb, PAGER=pager), verb
    assert "paged" not in on_terminal("stats", PAGER=pager)
    assert "main-one" in on_terminal("list", PAGER="/no/such/pager -x")
    assert "main-one" in on_terminal("list", PAGER="cat")
    # The user ends the pager first: the rest is not an error.
    text = on_terminal("cat", "long", PAGER="head -n 1")
    assert text.count("\n") == 1 and "agentwal:" not in text, text


def test_hostile():
    for text in (on_terminal("list", PAGER="", NO_COLOR="1"),
                 run("list"), run("show", "main-one"),
                 run("tree", "main-one"), run("cat", "--text", "main-one")):
        for character in "\x1b\x07\x9b\u202e\u2069":
            assert character not in text, (character, text)
        assert "\\x1b[31m" in text, text
    text = run("show", "main-one", "--json")
    assert all(ord(c) >= 0x20 and c not in "\x9b\u202e" for c in text[:-1])
    assert json.loads(text)["title"] == HOSTILE
    # The payload is escaped too, which changes no value.
    for text in (on_terminal("cat", "main-one", PAGER=""),
                 run("cat", "main-one")):
        assert not any(c in text for c in "\x1b\x9b\u202e\u2069"), text
        assert json.loads(lines(text)[0])["payload"]["content"] == HOSTILE


def test_times():
    run("create", "--id", "recent")
    assert "  now  " in [line for line in run("list").split("\n") if "recent" in line][0]
    shown = [line.split()[1:] for line in run("show", "main-one").split("\n")
             if line.startswith("created")][0]
    stamp = json.loads(run("show", "main-one", "--json"))["created"]
    assert stamp.endswith("Z"), stamp
    hour = (int(stamp[11:13]) + 2) % 24  # the local zone is UTC+2
    assert shown[1] == "%02d:%s" % (hour, stamp[14:16]), (shown, stamp)


def test_nothing_found():
    for options, expected in (((), "nothing found; --deep looks into the results of tools, too"),
                              (("--deep",), "nothing found")):
        text = on_terminal("search", *options, "no-such-word", PAGER="")
        assert lines(text) == ["agentwal: " + expected], text


def test_source(folder):
    """Of a long path the terminal shows the end."""
    path = "sessions/--a-long-name-of-a-directory--/2026-02-03T09-00-00-000Z_from-client.jsonl"
    file = os.path.join(folder, "home/.pi/agent", path)
    os.makedirs(os.path.dirname(file))
    with open(file, "w", encoding="utf-8") as out:
        for row in ({"type": "session", "version": 3, "id": "from-client", "cwd": "/srv"},
                    {"type": "message", "id": "m1", "parentId": None,
                     "message": {"role": "user", "content": "/mode fast"}},
                    {"type": "message", "id": "m2", "parentId": "m1",
                     "message": {"role": "user", "content": "begin"}}):
            out.write(json.dumps({**row, "timestamp": "2026-02-03T23:30:00.000Z"}) + "\n")
    run("import", os.path.join(folder, "home"))
    for text, is_whole in ((on_terminal("show", "from-client", PAGER="", NO_COLOR="1"), False),
                           (run("show", "from-client"), True)):
        [source] = [line for line in lines(text) if line.startswith("source ")]
        assert source.startswith("source     pi ") and source.endswith("_from-client.jsonl"), text
        assert width(source) == 80 or is_whole and source.endswith(path), text
        assert "begins     begin" in lines(text), text
    # The local zone is UTC+2.
    assert "2026-02-04 01:30" in run("cat", "--text", "from-client")


def test_interrupt():
    """An export that waits for its reader is interrupted."""
    done = subprocess.Popen([BIN, "export", "--dialect", "entries", "--session", "long",
                             "--stdout"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=environment(), preexec_fn=lambda: signal.signal(
                                signal.SIGINT, signal.SIG_DFL))
    os.read(done.stdout.fileno(), 1)
    done.send_signal(signal.SIGINT)
    assert done.stderr.read() == b"agentwal: interrupted: run it again to go on\n"
    assert done.wait() == -signal.SIGINT, done.returncode


# Verbs that print a table, and columns that it has and has not.
TABLES = (
    (["list"], "SESSION UPDATED ENTRIES CLIENT DIRECTORY TITLE", ""),
    (["list", "--client", "pi"], "SESSION DIRECTORY TITLE", "CLIENT"),
    (["list", "--title", "odd", "--since", "1h"], "SESSION TITLE", "CLIENT"),
    (["usage"], "DAY REQS INPUT OUTPUT CACHE-R TOTAL COST", "REASON SESSION"),
    (["usage", "--by", "model"], "MODEL REQS TOTAL COST", "REASON"),
    (["usage", "--by", "project"], "PROJECT REQS TOTAL COST", ""),
    (["usage", "--by", "session"], "SESSION TITLE REQS TOTAL COST", "REASON"),
    (["projects"], "DIRECTORY SESSIONS UPDATED NEWEST PROJECT", "ENTRIES"),
    (["stats"], "CHECKPOINTS FILES SIZE TITLE", "SHARED"),
    (["checkpoints", ODD], "CHECKPOINT CREATED FILES SIZE ROOT", ""),
    (["retain", "--keep-last", "1"], "SESSION UPDATED SIZE TITLE", "RULE"),
)


def head_of(text, heads):
    """The last line of heads."""
    return [line for line in lines(text) if heads.split()[0] in line.split()][-1].split()


def test_tables(folder):
    work = os.path.join(folder, "work")
    example = os.path.join(os.environ["AGENTWAL_SOURCE"], "tools/example/session.jsonl")
    message = {"role": "assistant", "model": "claude-sonnet-4-5-with-a-long-name", "content": "x",
               "usage": {"input": 12, "output": 59598986, "cacheRead": 4000,
                         "totalTokens": 59602998, "cost": {"total": 0.004}}}
    run("create", "--id", ODD, "--title", "The odd one, with a title that is long enough to be cut "
        "on a terminal of a hundred columns, and even on one that is wider", "--cwd", work)
    run("append", ODD, stdin=json.dumps({"type": "message", "payload": message}))
    run("import", example)
    for name in ("first", "a-checkpoint-whose-id-is-longer-than-others"):
        with open(os.path.join(work, name), "w", encoding="utf-8") as file:
            file.write("content of a file\n" * 400)
        run("checkpoint", ODD, name, "--root", work, os.path.join(work, name))
    for verb, heads, absent in TABLES:
        for columns in (80, 100, 133):
            text = run(*verb, COLUMNS=str(columns))
            rows = lines(text)
            assert all(width(row) <= columns for row in rows), (verb, columns, text)
            assert not any(row != row.rstrip() for row in rows), (verb, columns, text)
            shown = head_of(text, heads)
            assert set(heads.split()) <= set(shown), (verb, columns, text)
            assert not set(absent.split()) & set(shown), (verb, columns, text)
    # One long id widens no column, is cut at its beginning, and is accepted so.
    text = run("list", COLUMNS="80")
    cut = [row.split()[0] for row in lines(text) if row.startswith("…")]
    assert cut == ["…" + ODD[-11:]], text
    assert lines(text)[0].index("UPDATED") == 14, text
    run("show", "--", cut[0][1:])
    assert ODD in run("list", COLUMNS="300") and ODD in run("list")
    # A fork is of the client of what it was forked from.
    run("fork", "--id", "forked", "0199")
    assert json.loads(run("show", "forked", "--json"))["client"] == "pi"
    assert "forked" in run("list", "--client", "pi")
    # Numbers and costs have units; what is computed is marked.
    row = [row for row in lines(run("usage", "--by", "model", COLUMNS="80")) if "-name" in row][0]
    assert row.split()[1:] == ["1", "12", "59.5M", "4.0k", "59.6M", "<$0.01"], row
    # A title stays where there is room for little.
    text = run("usage", "--by", "session", COLUMNS="80")
    assert "The odd one, with a" in text and "CACHE-W" not in text, text
    # The heads are printed once, whatever the number of pages.
    entry = json.dumps({"type": "message", "payload": {"role": "user", "content": "x"}})
    for i in range(103):
        run("append", "--create", "many-%03d" % i, stdin=entry)
    rows = lines(run("list", COLUMNS="80"))
    assert len(rows) == len(run("list", "--json").splitlines()) + 1 > 104, len(rows)
    assert sum(row.startswith("SESSION") for row in rows) == 1
    for i in range(103):
        run("delete", "many-%03d" % i)


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = os.path.join(folder, "work")
        os.mkdir(work)
        os.environ.update(HOME=folder, AGENTWAL_STORE=folder + "/store")
        run("create", "--id", "main-one", "--title", HOSTILE, "--cwd", work)
        run("create", "--id", "wide", "--title", WIDE, "--cwd", work)
        payload = {"role": "user", "content": HOSTILE}
        line = json.dumps({"type": "message", "payload": payload},
                          ensure_ascii=False)
        run("append", "main-one", stdin=line)
        run("append", "--create", "long", stdin=(line + "\n") * 3000)
        test_width()
        test_colour()
        test_pager(folder)
        test_hostile()
        test_times()
        test_nothing_found()
        test_source(folder)
        test_interrupt()
        test_tables(folder)
    return 0


sys.exit(main())
