#!/usr/bin/env python3
"""The command that resumes a session is one that shells read as it is meant,
whatever its directory and its id are."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

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
    shutil.rmtree(folder)


main()
