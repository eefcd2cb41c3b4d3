#!/usr/bin/env python3
"""agentwal init --encrypt, encrypt and keys: every way to name a key, the keys
that are refused and why, the terminal that does not show a passphrase, and
that nothing secret is printed but a recovery code, once."""
import base64
import ctypes
import json
import os
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../lib/pty"))
from terminal import BIN, Terminal, environment  # noqa: E402

WORD = "confidential-word"
SECRET = "a secret that a command prints"
PASSPHRASE = "correct horse battery"
printed = []  # everything that a program printed


def agentwal(*arguments, stdin="", code=0, why=None, **variables):
    """Runs it; the result is what it prints. `why`: a text of the error."""
    env = {k: v for k, v in environment().items()
           if not k.startswith("AGENTWAL_KEY")} | variables
    done = subprocess.run([BIN, *arguments], input=stdin, text=True,
                          capture_output=True, env=env, check=False,
                          start_new_session=True)
    printed.append(done.stdout + done.stderr)
    assert done.returncode == code, (arguments, done)
    assert why is None or why in done.stderr, (why, done.stderr)
    return done.stdout


def cat(store, *options, **more):
    return agentwal("--store", store, "cat", "s", "--text", *options, **more)


def fill(store, *options, **more):
    agentwal("--store", store, "create", "--id", "s", *options, **more)
    agentwal("--store", store, "append", "s", "--user", WORD, *options, **more)


def code_of(text):
    """The recovery code that init prints."""
    lines = [line for line in text.splitlines() if "Recovery code: " in line]
    assert len(lines) == 1, text
    code = lines[0].split(": ")[1]
    assert len(code.replace("-", "")) == 32, code
    return code


def holds(folder, text):
    """The files below a folder that have the text."""
    return [os.path.join(top, name)
            for top, _, names in os.walk(folder) for name in names
            if text.encode() in open(os.path.join(top, name), "rb").read()]


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def key_file():
    agentwal("--store", "plain", "init")
    agentwal("--store", "none", "init", "--key-file", "k", code=2,
             why="--encrypt: is needed")
    agentwal("--store", "none", "init", "--encrypt", "--key-file", "no/k",
             code=3, why="cannot be made")
    assert not os.path.exists("none")
    code = code_of(agentwal("--store", "file", "init", "--encrypt",
                            "--key-file", "k"))
    assert stat.S_IMODE(os.stat("k").st_mode) == 0o600
    assert len(base64.b64decode(open("k", encoding="ascii").read())) == 32
    fill("file", "--key-file", "k")
    assert WORD in cat("file", "--key-file", "k")
    assert WORD in cat("file", AGENTWAL_KEY_FILE="k")
    assert not holds("file", WORD)
    # The plain store needs none, and refuses one.
    agentwal("--store", "plain", "list", AGENTWAL_KEY_FILE="k")
    agentwal("--store", "plain", "list", "--key-file", "k", code=1,
             why="not encrypted")
    agentwal("--store", "none", "create", "--key-file", "k", code=1,
             why="agentwal init --encrypt")
    assert not os.path.exists("none")
    # Another store with the same key file; its keys are others.
    agentwal("--store", "other", "init", "--encrypt", "--key-file", "k")
    assert "WAL_EEXISTS" in agentwal(
        "--store", "other", "init", "--encrypt", "--key-file", "k2", "--json",
        code=1) + printed[-1]
    assert not os.path.exists("k2")
    return code


def refused_keys():
    text = open("k", encoding="ascii").read()
    cat("file", code=1, why="--key-file, --key-command, --key-keyring")
    cat("file", "--key-file", "absent", code=1, why="No such file")
    cat("file", "--key-file", ".", code=1, why="Is a directory")
    write("bad", "")
    cat("file", "--key-file", "bad", code=1, why="it is empty")
    write("bad", text[:10])
    cat("file", "--key-file", "bad", code=1, why="has 10 bytes")
    write("bad", text[:30])
    cat("file", "--key-file", "bad", code=1, why="none of those")
    write("bad", "x" * 5000)
    cat("file", "--key-file", "bad", code=1, why="longer than 4096")
    write("bad", text, mode=0o644)
    cat("file", "--key-file", "bad", why="other users may read this key")
    cat("file", "--passphrase-fd", "0", stdin=text, code=1,
        why="this passphrase is none of those")
    cat("file", "--passphrase-fd", "0", code=1, why="it is empty")
    cat("file", "--passphrase-fd", "77", code=1, why="Bad file descriptor")
    cat("file", "--passphrase-fd", "x", code=2, why="is not a number")
    cat("file", "--key-file", "k", "--key-command", "cat k", code=2,
        why="more than one")
    cat("file", code=2, why="more than one", AGENTWAL_KEY_FILE="k",
        AGENTWAL_KEY_COMMAND="cat k")
    os.rename("file/KEYS", "KEYS")
    cat("file", "--key-file", "k", code=1, why="is gone")
    write("file/KEYS", "")
    cat("file", "--key-file", "k", code=1, why="is not valid")
    os.replace("KEYS", "file/KEYS")
    error = json.loads(subprocess.run(
        [BIN, "--store", "file", "cat", "s", "--json"], capture_output=True,
        text=True, check=False, start_new_session=True).stderr)["error"]
    assert error["status"] == "WAL_EKEY" and error["exitCode"] == 1, error


def commands():
    agentwal("--store", "command", "init", "--encrypt", "--no-recovery-code",
             "--key-command", "echo '%s'" % SECRET)
    fill("command", AGENTWAL_KEY_COMMAND="printf '%s'" % SECRET)
    assert WORD in cat("command", "--key-command",
                       "cat >/dev/null; echo '%s'" % SECRET)
    for command, why in (
            ("echo '%s'; echo more" % SECRET, "more than one line"),
            ("true", "it printed nothing"), ("echo", "it printed nothing"),
            ("echo '%s'; exit 3" % SECRET, "exit code 3"),
            ("kill -9 $$", "signal 9"), ("no-such-program", "exit code 127"),
            ("cat /dev/zero", "printed too much"),
            ("echo wrong, but long enough", "none of those")):
        cat("command", "--key-command", command, code=1, why=why)
    # This one has half a minute: meanwhile the other tests run.
    return time.monotonic(), subprocess.Popen(
        [BIN, "--store", "command", "cat", "s", "--key-command", "sleep 1000"],
        stderr=subprocess.PIPE, text=True)


def hanging(begin, hangs):
    error = hangs.communicate()[1]
    assert hangs.returncode == 1 and "did not end in time" in error, error
    assert time.monotonic() - begin >= 29


def keyring():
    cat("file", "--key-keyring", "agentwal-test-absent", code=1,
        why="the keyring has no such key")
    library = ctypes.CDLL(None, use_errno=True)
    ring = -4  # of the user
    name = b"agentwal-test-%d" % os.getpid()
    key = library.syscall(248 if os.uname().machine == "x86_64" else 217,
                          b"user", name, SECRET.encode(), len(SECRET), ring)
    if key < 0:  # a container without keyrings
        cat("command", "--key-keyring", name.decode(), code=1,
            why="the keyring has no such key")
        return
    try:
        cat("command", "--key-keyring", name.decode())
    finally:
        library.syscall(250 if os.uname().machine == "x86_64" else 219,
                        9, key, ring, 0, 0)  # KEYCTL_UNLINK


def codes(code):
    def with_code(text, **more):
        return cat("file", "--recovery-code", "--passphrase-fd", "0",
                   stdin=text, **more)

    assert WORD in with_code(code)
    assert WORD in with_code(code.replace("-", " ").lower() + "\n")
    with_code(code[:-1], code=1, why="32 letters")
    with_code(code + "A", code=1, why="32 letters")
    with_code("?" + code[1:], code=1, why="32 letters")
    with_code(("B" if code[0] == "A" else "A") + code[1:], code=1,
              why="none of those")
    with_code("", code=1, why="32 letters")
    agentwal("--store", "none", "init", "--encrypt", "--recovery-code", code=2,
             why="in addition to another key")
    printed[:] = [text for text in printed if code not in text]


def keys(code):
    def command(*arguments, **more):
        return agentwal("--store", "file", "keys", *arguments, **more)

    rows = [json.loads(line) for line in command("--json").splitlines()]
    assert [(row["id"], row["kind"], row["label"]) for row in rows] == [
        (1, "secret", "key file"), (2, "secret", "recovery code")], rows
    agentwal("--store", "plain", "keys", code=1, why="not encrypted")
    agentwal("--store", "none", "keys", code=3, why="there is no store")
    command("add", "--new-passphrase-fd", "0", code=1, why="a key opens it")
    command("add", "--key-file", "k", code=2, why="--new-key-file")
    command("added", code=2, why="no such command")
    command("rotate", "--new-recovery-code", code=2, why="takes no new key")
    command("remove", "--key-file", "k", code=2, why="too few")
    command("remove", "x", "--key-file", "k", code=2, why="is not a number")
    command("remove", "9", "--key-file", "k", code=1, why="no key 9")
    command("add", "--key-file", "k", "--label", "l" * 33,
            "--new-passphrase-fd", "0", stdin=PASSPHRASE, code=2, why="label")
    command("add", "--key-file", "k", "--label", "mine",
            "--new-passphrase-fd", "0", stdin=PASSPHRASE)
    assert WORD in cat("file", "--passphrase-fd", "0", stdin=PASSPHRASE)
    again = code_of(command("add", "--key-file", "k", "--new-recovery-code"))
    assert again != code
    command("remove", "1", "--passphrase-fd", "0", stdin=PASSPHRASE)
    cat("file", "--key-file", "k", code=1, why="none of those")
    assert WORD in cat("file", "--recovery-code", "--passphrase-fd", "0",
                       stdin=again)
    command("add", "--new-key-file", "k3", "--passphrase-fd", "0",
            stdin=PASSPHRASE)
    assert os.path.exists("k3")
    for key_id in ("2", "3", "4"):
        command("remove", key_id, "--key-file", "k3")
    command("remove", "5", "--key-file", "k3", code=2, why="last key")
    command("rotate", "--key-file", "k3")
    agentwal("--store", "file", "append", "s", "--user", WORD, "--key-file",
             "k3")
    agentwal("--store", "file", "gc", "--key-file", "k3")
    assert cat("file", "--key-file", "k3").count(WORD) == 2
    printed[:] = [text for text in printed if again not in text]


def content():
    fill("full")
    assert holds("full", WORD)
    agentwal("--store", "none", "encrypt", "--key-file", "k3", code=3,
             why="there is no store")
    user = subprocess.Popen([BIN, "--store", "full", "append", "s", "--each"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    user.stdin.write(b'{"type":"message","payload":{}}\n')
    user.stdin.flush()
    assert user.stdout.readline()
    agentwal("--store", "full", "encrypt", "--key-file", "k3", code=3,
             why="other processes have the store open")
    user.communicate()
    code_of(agentwal("--store", "full", "encrypt", "--key-file", "k3"))
    printed.pop()
    assert not holds("full", WORD)
    assert WORD in cat("full", "--key-file", "k3")
    agentwal("--store", "full", "encrypt", "--key-file", "k3", code=1,
             why="encrypted already")


def copies():
    """A store that a verb makes from an encrypted one is encrypted too."""
    agentwal("--store", "full", "retain", "--keep-last", "0", "--all",
             "--archive", "archive", "--apply", "--key-file", "k3")
    assert not holds("archive", WORD)
    cat("archive", code=1, why="a key opens it")
    assert WORD in cat("archive", "--key-file", "k3")
    agentwal("--store", "plain", "merge", "archive", "--key-file", "k3",
             code=1, why="not encrypted")
    agentwal("--store", "plain", "merge", "archive", AGENTWAL_KEY_FILE="k3")
    assert WORD in cat("plain")


def terminal():
    env = environment()

    def answer(answers, *arguments, code=0):
        screen = Terminal([BIN, *arguments], env)
        for question, text in answers:
            screen.wait_for(question + ": ")
            time.sleep(0.05)
            screen.type(text)
        got = screen.finish()
        assert got == code, (got, screen.text)
        assert PASSPHRASE not in screen.text
        return screen.text

    right = PASSPHRASE + "\n"
    text = answer((("Passphrase", right), ("Again", "other\n")),
                  "--store", "asked", "init", "--encrypt", code=1)
    assert "the two are not the same" in text, text
    answer((("Passphrase", "\x03"),), "--store", "asked", "init", "--encrypt",
           code=-2)
    assert not os.path.exists("asked")
    code_of(answer((("Passphrase", right), ("Again", right)),
                   "--store", "asked", "init", "--encrypt"))
    answer((("Passphrase", right),), "--store", "asked", "create", "--id", "s")
    text = answer((("Passphrase", "wrong\n"),), "--store", "asked", "list",
                  code=1)
    assert "this passphrase is none of those" in text, text
    agentwal("--store", "asked", "list", code=1, why="a key opens it")
    agentwal("--store", "none", "init", "--encrypt", code=1,
             why="there is no terminal")
    assert not os.path.exists("none")


def memory():
    """A process that has a key writes no core file, and its key into none."""
    follower = subprocess.Popen(
        [BIN, "--store", "command", "cat", "s", "--follow", "--all",
         "--key-command", "echo '%s'" % SECRET], stdout=subprocess.PIPE)
    try:
        assert follower.stdout.readline()
        place = "/proc/%d/" % follower.pid
        limits = open(place + "limits", encoding="ascii").read()
        core = [line for line in limits.splitlines() if "core file" in line]
        assert core[0].split()[4:6] == ["0", "0"], core
        flags = [line.split()[1:] for line in open(place + "smaps",
                                                  encoding="ascii")
                 if line.startswith("VmFlags:")]
        assert sum("dd" in line for line in flags) >= 2, flags
    finally:
        follower.kill()
        follower.wait()


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        code = key_file()
        refused_keys()
        hangs = commands()
        keyring()
        codes(code)
        keys(code)
        content()
        copies()
        terminal()
        memory()
        hanging(*hangs)
        for text in printed:
            assert SECRET not in text and PASSPHRASE not in text, text
            for path in ("k", "k3"):
                assert open(path, encoding="ascii").read().strip() not in text


main()
