#!/usr/bin/env python3
"""agentwal resume: the picker, its keys and its filter, what it prints and runs,
and that it leaves the terminal as it was; the table without a terminal."""
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib/pty"))
from terminal import (BIN, HOSTILE, LEAVE, Terminal,  # noqa: E402
                      environment, run)


def message(session, text, role="user"):
    run("append", session, stdin=json.dumps(
        {"type": "message", "payload": {"role": role, "content": text}}))


def make_store(folder):
    run("create", "--id", "alpha-1", "--title", "Fix the PARSER", "--cwd",
        folder)
    message("alpha-1", "the parser crashes")
    message("alpha-1", "it is fixed", "assistant")
    run("create", "--id", "beta-2", "--title", "Ärger mit Docs", "--cwd", "/b c",
        "--project", "proj9")
    message("beta-2", "write documents")
    run("create", "--id", "gamma-3", "--title", HOSTILE)
    message("gamma-3", HOSTILE)


def pick(keys, code, *arguments, wait=""):
    """What the picker prints on standard output after the keys."""
    read, write = os.pipe()
    terminal = Terminal([BIN, "resume", *arguments], environment(),
                        output=write)
    os.close(write)
    terminal.wait_for("evil" if not arguments else "> ")
    terminal.wait_for("\u2500")  # the preview is drawn
    for key in keys:
        terminal.type(key)
        time.sleep(0.05)
    got = terminal.finish()
    assert got == code, (keys, got, terminal.text)
    assert LEAVE in terminal.text, repr(terminal.text)
    with os.fdopen(read) as file:
        return file.read()


def test_pick():
    cat = "agentwal cat --text %s\n"
    assert pick(["\r"], 0) == cat % "gamma-3"
    assert pick(["\x1b[B", "\r"], 0) == cat % "beta-2"
    assert pick(["\x0e", "\n", "\x1b[A", "\x10", "\x0b", "\x0a", "\r"],
                0) == cat % "beta-2"
    assert pick(["\x1b[6~", "\r"], 0) == cat % "alpha-1"
    assert pick(["\x1b[6~", "\x1b[5~", "\r"], 0) == cat % "gamma-3"
    # Words in any order and case, of several texts; then without them.
    assert pick(["crashes parser", "\r"], 0) == cat % "alpha-1"
    assert pick(["ÄRGER", "\r"], 0) == cat % "beta-2"
    assert pick(["proj9 /b", "\r"], 0) == cat % "beta-2"
    assert pick(["nothing", "\r", "\x15", "\r"], 0) == cat % "gamma-3"
    assert pick(["alphx", "\x7f", "\r"], 0) == cat % "alpha-1"
    assert pick(["alpha beta", "\x17", "\r"], 0) == cat % "alpha-1"
    assert pick(["\r"], 0, "PARSER", "alpha") == cat % "alpha-1"
    for keys in ("\x1b", "\x03"):
        assert pick([keys], 130) == "", keys


def test_screen(folder):
    terminal = Terminal([BIN, "resume"], environment())
    drawn = terminal.wait_for("Fix the PARSER")
    assert "\\x1b[31m" in drawn, repr(drawn)
    for bad in ("\x1b[31m", "\x07", "\x9b", "\u202e"):
        assert bad not in drawn, (bad, drawn)
    terminal.type("alpha")
    terminal.wait_for("assistant: it is fixed")
    terminal.resize(20, 60)
    terminal.wait_for("1/4")
    terminal.type("\r")
    assert terminal.finish() == 0
    assert terminal.text.endswith("agentwal cat --text alpha-1\r\n")
    # Every way to end restores the terminal.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                   signal.SIGSEGV):
        terminal = Terminal([BIN, "resume"], environment())
        terminal.wait_for("\u2500")
        os.kill(terminal.pid, number)
        assert terminal.finish() == -number
        assert LEAVE in terminal.text, repr(terminal.text)
    # --run: the command of the client; without the picker where it is named.
    client = os.path.join(folder, "claude")
    with open(client, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho \"in $PWD: $*\"\n")
    os.chmod(client, 0o755)
    env = environment() | {"PATH": folder + ":" + os.environ["PATH"]}
    terminal = Terminal([BIN, "resume", "--run", "imported"], env)
    assert terminal.finish() == 0, terminal.text
    assert "in /tmp: --resume imported-4\r\n" in terminal.text, terminal.text
    # It reads the store that the option named.
    os.symlink(BIN, os.path.join(folder, "agentwal"))
    env["AGENTWAL_STORE"] = os.path.join(folder, "none")
    terminal = Terminal([BIN, "--store", os.environ["AGENTWAL_STORE"], "resume",
                         "--run", "alpha"], env)
    terminal.wait_for("\u2500")
    terminal.type("\r")
    assert terminal.finish() == 0, terminal.text
    assert "the parser crashes" in terminal.text.split(LEAVE)[-1], terminal.text


def add_imported(folder):
    path = os.path.join(folder, ".claude/projects/-tmp/imported-4.jsonl")
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({
            "parentUuid": None, "isSidechain": False, "type": "user",
            "cwd": "/tmp", "sessionId": "imported-4", "uuid": "u-1",
            "message": {"role": "user", "content": "go on"},
            "timestamp": "2026-02-03T09:00:00.000Z"}) + "\n")
    run("import", folder + "/.claude")


def test_hostile(folder):
    """What a client wrote does not become an option or a key of a terminal."""
    for number, cwd in enumerate(("/x\x1b[201~\x03touch bad\n", "-P", "/it's",
                                  "/\u202e")):
        path = os.path.join(folder, "h/.claude/projects/-x/hostile-%d.jsonl" % number)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({
                "parentUuid": None, "isSidechain": False, "type": "user",
                "cwd": cwd, "sessionId": "hostile-%d" % number, "uuid": "h-1",
                "message": {"role": "user", "content": "hostile words"},
                "timestamp": "2026-02-03T08:00:00.000Z"}) + "\n")
    run("import", folder + "/h/.claude")
    rows = {row["sessionId"]: row["command"] for row in map(
        json.loads, run("resume", "--json", "hostile", "words").splitlines())}
    claude = "claude --resume hostile-%d"
    assert rows == {
        "hostile-0": claude % 0,
        "hostile-1": "cd -- '-P' && " + claude % 1,
        "hostile-2": "cd '/it'\\''s' && " + claude % 2,
        "hostile-3": claude % 3}, rows
    run("create", "--id=--follow")
    command = json.loads(run("resume", "--json", "--", "--follow"))["command"]
    assert command == "agentwal cat --text -- '--follow'", command
    subprocess.run([BIN, *shlex.split(command)[1:]], check=True,
                   env=environment(), stdout=subprocess.DEVNULL, timeout=60)


def test_preview():
    """What has no text leaves its place to messages."""
    run("create", "--id", "delta-4")
    message("delta-4", "the last words")
    for _ in range(20):
        run("append", "delta-4", stdin=json.dumps({"type": "cost", "payload": {"sum": 1}}))
    terminal = Terminal([BIN, "resume", "delta"], environment())
    terminal.wait_for("user: the last words")
    terminal.type("\x03")
    assert terminal.finish() == 130, terminal.text
    run("delete", "delta-4")


def test_table():
    rows = [json.loads(line) for line in run("resume", "--json").splitlines()]
    assert [row["sessionId"] for row in rows] == ["gamma-3", "beta-2",
                                                  "alpha-1"], rows
    assert rows[1]["command"] == "agentwal cat --text beta-2", rows
    text = run("resume", "--limit", "2")
    assert text.split()[:4] == ["SESSION", "UPDATED", "TITLE", "COMMAND"], text
    assert len(text.splitlines()) == 3 and "\x1b" not in text, text
    assert "beta-2" in run("resume", "docs", "WRITE", "proj9")
    assert run("resume", "docs", "parser", code=1) == ""
    assert "alpha-1" not in run("resume", "--project", "proj9")
    run("resume", "--run", code=2)
    # The command is one that a shell takes.
    command = json.loads(run("resume", "--json", "alpha"))["command"]
    done = subprocess.run([BIN, *shlex.split(command)[1:]], check=True,
                          capture_output=True, text=True, env=environment())
    assert "the parser crashes" in done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, AGENTWAL_STORE=folder + "/store")
        make_store(folder)
        test_table()
        test_pick()
        add_imported(folder)
        run("delete", "gamma-3")
        run("create", "--id", "gamma-3x", "--title", HOSTILE)
        test_screen(folder)
        test_hostile(folder)
        test_preview()
    return 0


sys.exit(main())
