#!/usr/bin/env python3
"""The command that resumes a session is one that shells read as it is meant,
whatever its directory and its id are; and the client that it names has the
session: its file is as it was, with what the store has more."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
PI = "3c9f1a52-6f0e-4c0a-9d55-%012d"

# What a directory contains, and how a shell is given it.
WORDS = [
    ("/srv/app", "/srv/app"),
    ("/srv/a b", "'/srv/a b'"),
    ("/srv/it's", r"'/srv/it'\''s'"),
    ("/srv/a\\b", r"'/srv/a'\\'b'"),
    ("/srv/a\\'b", r"'/srv/a'\\''\''b'"),
    ("/srv/a'\\b", r"'/srv/a'\'''\\'b'"),
    ("/srv/\\\\'';touch PWN;#", r"'/srv/'\\''\\''\'''\'';touch PWN;#'"),
    ("/srv/x\\';touch PWN;#", r"'/srv/x'\\''\'';touch PWN;#'"),
    ("/srv/$(touch PWN)`touch PWN`", "'/srv/$(touch PWN)`touch PWN`'"),
    ("/srv/(touch PWN);{a,b}*?[a]!1", "'/srv/(touch PWN);{a,b}*?[a]!1'"),
    ("/srv/\\", r"'/srv/'\\''"),
    ("=srv", "'=srv'"),
]


def fail(text):
    sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), text))


def run(*arguments, text=None):
    done = subprocess.run([AGENTWAL, *arguments], input=text, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        fail("agentwal %s: %s" % (arguments, done.stderr))
    return done.stdout


def write_session(folder, number, cwd):
    path = os.path.join(folder, "%d.jsonl" % number)
    time = "2026-01-01T00:00:00.000Z"
    rows = [{"type": "session", "version": 3, "id": PI % number,
             "timestamp": time, "cwd": cwd},
            {"type": "message", "id": "m1", "parentId": None, "timestamp": time,
             "message": {"role": "user", "content": "word%d" % number,
                         "timestamp": 1767225600000}}]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def check_shell(shell, command, cwd, folder):
    """Runs the command with functions in place of cd and of the client."""
    functions = {
        "fish": "function cd; printf '%s' $argv >cd; end; function pi; end; ",
    }.get(shell, "cd() { printf '%s' \"$@\" >cd; }; pi() { :; }; ")
    subprocess.run([shell, "-c", functions + command], cwd=folder, check=False,
                   stderr=subprocess.DEVNULL)
    with open(os.path.join(folder, "cd"), encoding="utf-8") as file:
        got = file.read()
    if got != cwd:
        fail("%s reads %r of %s" % (shell, got, command))
    if os.path.exists(os.path.join(folder, "PWN")):
        fail("%s ran a part of the directory in %s" % (shell, command))


CLAUDE = "5b1c7c1e-0d2f-4a3b-8c4d-5e6f708192a3"


def claude_lines(texts):
    """Lines of a transcript, one after the other."""
    lines, parent = [], None
    for number, text in enumerate(texts):
        uuid = "00000000-0000-4000-8000-%012d" % number
        lines.append(json.dumps({
            "type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": CLAUDE,
            "cwd": "/srv/gone", "gitBranch": "main",
            "timestamp": "2026-01-01T00:00:%02d.000Z" % number,
            "message": {"role": "user", "content": text}}) + "\n")
        parent = uuid
    return "".join(lines)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def resumes(arguments, command, notes=(), code=0):
    """What `agentwal resume` prints, alone, and its notes."""
    done = subprocess.run([AGENTWAL, *arguments], text=True, capture_output=True,
                          check=False, stdin=subprocess.DEVNULL)
    if (done.returncode != code or done.stdout != command or
            any(note not in done.stderr for note in notes)):
        fail("%s: %r, %r, %d" % (arguments, done.stdout, done.stderr, done.returncode))
    return done.stderr


def check_clients(folder):
    """A file that its client deleted, one that lacks entries of the store,
    another client, a fork, a file that the client wrote anew."""
    home = os.path.join(folder, "home")
    os.environ["HOME"] = home
    os.environ["AGENTWAL_STORE"] = store = os.path.join(folder, "clients")
    path = os.path.join(home, ".claude", "projects", "-srv-gone", CLAUDE + ".jsonl")
    first = claude_lines(["find the leak", "and the fix"])
    here = "cd /srv/gone && claude --resume %s\n"
    write(path, first)
    run("import", os.path.join(home, ".claude"))
    before = os.stat(path).st_mtime_ns
    resumes(["resume", CLAUDE[-7:]], here % CLAUDE, ["/srv/gone: the session's directory is gone"])
    if os.stat(path).st_mtime_ns != before:
        fail("a complete file was written")
    os.remove(path)
    resumes(["resume", "leak"], here % CLAUDE, ["2 lines added"])
    if read(path) != first:
        fail("the file is not as it was: " + read(path))
    run("append", CLAUDE, text='{"type":"message","payload":'
        '{"role":"user","content":"from the store"}}\n')
    resumes(["resume", CLAUDE], here % CLAUDE, ["1 line added"])
    if not read(path).startswith(first) or "from the store" not in read(path):
        fail("the file lacks the entry of the store: " + read(path))
    if "added" in resumes(["resume", CLAUDE], here % CLAUDE):
        fail("lines were added twice")
    with open(path, "a", encoding="utf-8") as file:
        file.write(claude_lines(["0", "1", "2", "goes on"]).splitlines(True)[3])
    resumes(["resume", CLAUDE], here % CLAUDE, ["its client went on with it"])

    resumes(["resume", CLAUDE, "--in", "pi"], "cd /srv/gone && pi --session %s\n" % CLAUDE,
            [".pi/agent/sessions/", "4 lines added"])
    resumes(["resume", CLAUDE, "--in", "codex"], "cd /srv/gone && codex resume %s\n" % CLAUDE,
            [".codex/sessions/2026/01/01/", "left out: "])
    run("fork", CLAUDE, "--id", "my-fork")
    command = resumes_id(["resume", "my-fork"])
    if not os.path.exists(os.path.join(os.path.dirname(path), command + ".jsonl")):
        fail("the fork has no file " + command)
    resumes(["resume", CLAUDE, "--in", "lines"], "", ["'lines' is none of claude, codex, pi"], 2)

    write(path, claude_lines(["another beginning", "of the file"]))
    run("import", os.path.join(home, ".claude"))
    resumes(["resume", CLAUDE + "~2"], here % CLAUDE)
    resumes(["resume", CLAUDE], "", ["resume \"$(agentwal fork %s)\"" % CLAUDE], 1)

    run("create", "--id", "native")
    resumes(["resume", "native"], "agentwal cat --text native\n")
    del os.environ["AGENTWAL_STORE"]
    os.environ["PATH"] = os.path.dirname(AGENTWAL) + ":" + os.environ["PATH"]
    resumes(["--store", store, "resume", "native"],
            "agentwal --store %s cat --text native\n" % store)
    resumes(["--store", store, "resume", "--run"], "", ["several sessions"], 2)
    resumes(["--store", store, "resume", "--run", "native"], "")
    check_store(folder, store, path)


def check_store(folder, store, path):
    """A client that is run uses the store, whatever its directory; a printed
    command is of the store, whatever its name."""
    odd = os.path.join(folder, "a 'store'; touch PWN")
    os.rename(store, odd)
    write(os.path.join(folder, "bin", "pi"), "#!/bin/sh\necho \"$AGENTWAL_STORE\"\n")
    os.chmod(os.path.join(folder, "bin", "pi"), 0o700)
    os.environ["PATH"] = os.path.join(folder, "bin") + ":" + os.environ["PATH"]
    write_session(folder, 77, folder)
    os.chdir(folder)
    run("--store", odd, "import", "77.jsonl")
    resumes(["--store", os.path.basename(odd), "resume", "--run", "--in", "pi", PI % 77],
            odd + "\n")
    lines = run("--store", odd, "delete", "native", PI % 77).splitlines()
    subprocess.run(["sh", "-c", lines[-1][len("undo: "):]], check=True)
    run("--store", odd, "show", "native")
    resumes(["--store", odd, "resume", "native"],
            "agentwal --store '%s' cat --text native\n" % odd.replace("'", r"'\''"))
    for line in run("--store", odd, "list", "--json").splitlines():
        if json.loads(line)["sessionId"] == CLAUDE:
            write(path, claude_lines(["another beginning"]))
            notes = resumes(["--store", odd, "resume", CLAUDE], "", ["to continue a copy: "], 1)
            command = notes.rstrip().partition("to continue a copy: ")[2]
            subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    if os.path.exists("PWN"):
        fail("a part of the store's name was run")


def check_open_file(folder):
    """A client that has its file open appends to it after the file was completed."""
    os.environ["HOME"] = home = os.path.join(folder, "droid")
    os.environ["AGENTWAL_STORE"] = os.path.join(folder, "droid store")
    path = os.path.join(home, ".factory", "sessions", "3b0f6e0a.jsonl")
    lines = [json.dumps(row) + "\n" for row in (
        {"type": "session_start", "id": "3b0f6e0a", "title": "t", "cwd": folder},
        {"type": "message", "id": "m1", "timestamp": "2026-01-01T00:00:00.000Z",
         "message": {"role": "user", "content": [{"type": "text", "text": "one"}]}},
        {"type": "message", "id": "m2", "timestamp": "2026-01-01T00:00:01.000Z",
         "message": {"role": "user", "content": [{"type": "text", "text": "two"}]}})]
    write(path, "".join(lines))
    run("import", os.path.join(home, ".factory"))
    write(path, lines[0])
    with open(path, "a", encoding="utf-8") as client:
        resumes(["resume", "3b0f6e0a"], "cd %s && droid --resume 3b0f6e0a\n" % folder,
                ["2 lines added"])
        client.write("goes on\n")
    if read(path) != "".join(lines) + "goes on\n":
        fail("the line of the client is lost: " + read(path))
    # A file that another program creates while it is written stays.
    os.remove(path)
    done = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fsync",
         "-e", "inject=fsync:delay_enter=2000000", AGENTWAL, "resume", "3b0f6e0a"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while done.poll() is None and not any(
            name.startswith(".agentwal") for name in os.listdir(os.path.dirname(path))):
        time.sleep(0.01)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write("of the client\n")
        done.wait()
        if read(path) != "of the client\n":
            fail("the file of the client is lost: " + read(path))
    except FileExistsError:
        done.wait()


def resumes_id(arguments):
    """The last word of the command."""
    return run(*arguments).split()[-1]


def main():
    folder = tempfile.mkdtemp(prefix="resume")
    os.environ["AGENTWAL_STORE"] = os.path.join(folder, "store")
    os.environ["HOME"] = folder
    shells = [name for name in ("sh", "bash", "zsh", "fish")
              if shutil.which(name) is not None]
    sessions = os.path.join(folder, "sessions")
    os.mkdir(sessions)
    for number, (cwd, _) in enumerate(WORDS):
        write_session(sessions, number, cwd)
    run("import", sessions)
    for number, (cwd, word) in enumerate(WORDS):
        line = run("search", "--json", "word%d" % number)
        command = json.loads(line)["resume"]
        wanted = "cd %s && pi --session %s" % (word, PI % number)
        if command != wanted:
            fail("%r: %s instead of %s" % (cwd, command, wanted))
        for shell in shells:
            check_shell(shell, command, cwd, folder)
    run("create", "--id", "a\\'b")
    run("append", "a\\'b", text='{"type":"message","payload":'
        '{"role":"user","content":"quoted"}}\n')
    command = json.loads(run("search", "--json", "quoted"))["resume"]
    if command != r"agentwal cat --text 'a'\\''\''b'":
        fail("an id: " + command)
    check_clients(folder)
    check_open_file(folder)
    shutil.rmtree(folder)


main()
