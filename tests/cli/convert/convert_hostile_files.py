#!/usr/bin/env python3
"""Import and export with hostile file systems: names, links, devices, files
that change while they are read, directories that cannot be read or written, ids
that escape the output directory, a full disk.
"""
import ctypes
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
sys.dont_write_bytecode = True
from tree_files import files_of  # noqa: E402

TOOLS = os.environ["WALBIN"]
DIALECTS = ("source", "pi", "claude", "codex", "rollouts", "entries", "sdk",
            "spec11", "opencode", "copilot")


def row(session, number=0):
    """A line of Claude Code; its parent has the number before."""
    parent = b'"u%d"' % (number - 1) if number > 0 else b"null"
    return (b'{"parentUuid":%s,"cwd":"/p","sessionId":"%s","type":"user",'
            b'"message":{"role":"user","content":"x"},"uuid":"u%d",'
            b'"timestamp":"2026-01-02T03:04:05.678Z"}\n' %
            (parent, session, number))


def run(tool, *arguments, code=0, **options):
    done = subprocess.run([os.path.join(TOOLS, tool), *arguments],
                          capture_output=True, check=False, **options)
    if done.returncode != code:
        sys.exit("%s %s: exit code %d, not %d\n%s" % (
            tool, arguments, done.returncode, code,
            done.stderr.decode(errors="replace")[-2000:]))
    return done


def rows_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def put(path, text):
    with open(path, "wb") as file:
        file.write(text)


def no_control(text):
    """Fails when the text contains a control character."""
    for line in text.split(b"\n"):
        for byte in line:
            assert byte >= 0x20 and byte != 0x7f, line
        line.decode()


def no_temporaries(root):
    for folder, _, names in os.walk(root):
        for name in names:
            assert not re.fullmatch(r"\.[a-z]+-\d+-\d+", name), (folder, name)
            assert not name.endswith(".tmp"), (folder, name)


def check_names(work):
    """Files of any name are imported, reported on a line each, and exported."""
    folder, store = os.path.join(work, "names"), os.path.join(work, "s-names")
    os.mkdir(folder)
    run("agentwal", "--store", store, "init")
    names = [b"two\nlines.jsonl", b"\x1b[2J\x1b]0;title\x07.jsonl", b"-rf",
             b"--json", b"\xff\xfe.jsonl", b"\xc3", b"a" * 255, b" ", b"*?[",
             b"%s%n%41", b"tab\tand\rreturn", b"\xe2\x80\xae.jsonl", b"0",
             b"con.", b"..x", b"\\..\\x", b"@latest", b"quote\"'`$(id)"]
    for number, name in enumerate(names):
        put(os.path.join(os.fsencode(folder), name),
            row(b"n%d" % number) + b"{torn")
    deep = os.fsencode(folder)
    for _ in range(12):
        deep = os.path.join(deep, b"d" * 255)
    os.makedirs(deep)
    put(os.path.join(deep, b"x.jsonl"), row(b"deep"))
    done = run("agentwal", "--store", store, "import", "--json", "--all-files",
               folder)
    assert len(rows_of(done)) == len(names) + 1, done.stderr
    done = run("agentwal", "--store", store, "import", "--verbose",
               "--all-files", folder)
    no_control(done.stdout)
    no_control(done.stderr)
    assert len(done.stdout.splitlines()) == len(names) + 2  # and a summary
    out = os.path.join(work, "o-names")
    done = run("agentwal", "--store", store, "export", "--dialect", "source",
               out)
    no_control(done.stdout)
    no_control(done.stderr)
    assert files_of(os.fsencode(folder)) == files_of(os.fsencode(out))
    run("agentwal", "--store", store, "import", "--", "-none", code=3)
    for name in (b"-rf", b"two\nlines.jsonl"):
        done = run("agentwal", "--store", os.path.abspath(store), "import",
                   "--json", "--", name, cwd=folder)
        assert rows_of(done)[0]["appended"] == 0, done.stdout


def check_kinds(work):
    """A pipe, socket or device is reported when it is an argument, and skipped
    below a directory; the import does not block on it."""
    folder, store = os.path.join(work, "kinds"), os.path.join(work, "s-kinds")
    os.mkdir(folder)
    run("agentwal", "--store", store, "init")
    put(os.path.join(folder, "good.jsonl"), row(b"good"))
    os.mkfifo(os.path.join(folder, "fifo.jsonl"))
    one = socket.socket(socket.AF_UNIX)
    place = os.getcwd()
    os.chdir(folder)
    one.bind("socket.jsonl")
    os.chdir(place)
    for name, target in (("loop", "loop"), ("ring1", "ring2"),
                         ("ring2", "ring1"), ("up", ".."), ("dev", "/dev/zero"),
                         ("gone", "nowhere"), ("self.jsonl", "good.jsonl")):
        os.symlink(target, os.path.join(folder, name))
    done = run("agentwal", "--store", store, "import", "--json", folder,
               timeout=60)
    assert [os.path.basename(r["path"]) for r in rows_of(done)] == \
        ["good.jsonl"], done.stdout
    for name in ("fifo.jsonl", "socket.jsonl", "loop", "ring1", "dev", "gone"):
        done = run("agentwal", "--store", store, "import",
                   os.path.join(folder, name), code=3, timeout=60)
        assert os.path.join(folder, name).encode() in done.stderr
    run("agentwal", "--store", store, "import", "/dev/null", code=3)
    run("agentwal", "--store", store, "import", "", code=3)
    run("agentwal", "--store", store, "import",
        os.path.join(folder, "good.jsonl", "x"), code=3)
    # A link that is an argument is followed.
    done = run("agentwal", "--store", store, "import", "--json",
               os.path.join(folder, "self.jsonl"))
    assert rows_of(done)[0]["lines"] == 1
    one.close()


def check_many(work):
    """An unreadable file does not affect 10,000 others."""
    folder, store = os.path.join(work, "many"), os.path.join(work, "s-many")
    os.mkdir(folder)
    run("agentwal", "--store", store, "init")
    count = 10000 if os.environ.get("AGENTWAL_LONG") else 1500
    for n in range(count):
        put(os.path.join(folder, "%d.jsonl" % n),
            row(b"m%d" % n))
    done = run("agentwal", "--store", store, "import", "--json", folder)
    assert sum(r["appended"] for r in rows_of(done)) == count
    done = run("agentwal", "--store", store, "import", "--json", folder)
    assert all(r["appended"] == 0 for r in rows_of(done))
    out = os.path.join(work, "o-many")
    run("agentwal", "--store", store, "export", "--dialect", "source", out)
    assert files_of(os.fsencode(folder)) == files_of(os.fsencode(out))


def check_change(work):
    """A file that is truncated or replaced while it is read affects no other,
    and the next import completes it."""
    folder, store = os.path.join(work, "moving"), os.path.join(work, "s-mov")
    os.mkdir(folder)
    run("agentwal", "--store", store, "init")
    moving = os.path.join(folder, "b.jsonl")
    whole = b"".join(
        b'{"uuid":"v%d","type":"user","sessionId":"mv","text":"%s"}\n' %
        (n, b"w" * 2000) for n in range(3000))
    put(os.path.join(folder, "a.jsonl"), row(b"a"))
    put(os.path.join(folder, "c.jsonl"), row(b"c"))
    for turn in range(8):
        put(moving, whole)
        with subprocess.Popen(
                [os.path.join(TOOLS, "agentwal"), "--store", store, "import",
                 "--all-files", folder],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                process.wait(0.002 * (turn + 1))
            except subprocess.TimeoutExpired:
                pass
            if turn % 2 == 0:
                os.truncate(moving, len(whole) // 3 + turn)
            else:
                put(moving + ".new", whole[:len(whole) // 2])
                os.rename(moving + ".new", moving)
            messages = process.stderr.read()
        assert process.returncode in (0, 1), (process.returncode, messages)
    put(moving, whole)
    run("agentwal", "--store", store, "import", folder)
    run("walcheck", store)
    done = run("agentwal", "--store", store, "export", "--dialect", "source",
               "--json", os.path.join(work, "o-mov"))
    moved = os.fsencode(os.path.join(work, "o-mov"))
    texts = [t for n, t in files_of(moved).items()
             if n.endswith(b"b.jsonl")]
    assert whole in texts
    # A partly read version is a prefix of the file.
    assert all(whole.startswith(text) for text in texts), done.stdout


def check_targets(work):
    """An export writes nothing outside its directory, overwrites nothing, and
    leaves no partial file."""
    folder, store = os.path.join(work, "in"), os.path.join(work, "s-out")
    os.mkdir(folder)
    run("agentwal", "--store", store, "init")
    long = "l" * 3000
    hostile = [("../../../../tmp/x", "/p"), ("/etc/x", "../../.."),
               ("a/b", "/a/../../.."), ("..", ".."), (".", "."),
               ("x" * 250, "/" + long), ("new\nline", "/p\n/q"),
               ("\u202e", "/\u202e"), ("nul", "/nul"), ("-", "-"),
               ("%2e%2e%2f", "C:\\x\\..\\.."), ("sp ace", "")]
    for number, (name, cwd) in enumerate(hostile):
        text = json.loads(row(b"x"))
        text.update(sessionId=name, cwd=cwd)
        put(os.path.join(folder, "%d.jsonl" % number),
            json.dumps(text).encode() + b"\n")
    run("agentwal", "--store", store, "import", folder)
    for number, (name, cwd) in enumerate(hostile):
        run("agentwal", "--store", store, "create", "--cwd", cwd or "/",
            "--title", name, "--id", "made-%d" % number)
        run("agentwal", "--store", store, "append", "made-%d" % number,
            input=json.dumps(
                {"type": "message", "id": "../" + name[:200],
                 "payload": {"role": "user", "content": name}}).encode())
    run("agentwal", "--store", store, "create", "--id", "../../../up")
    run("agentwal", "--store", store, "append", "../../../up",
        input=json.dumps(
            {"type": "message",
             "payload": {"role": "user", "content": "x"}}).encode())
    before = sorted(os.listdir(work))
    for dialect in DIALECTS:
        out = os.path.join(work, "jail", dialect)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        done = run("agentwal", "--store", store, "export", "--json",
                   "--dialect", dialect, out)
        rows = rows_of(done)
        paths = [r["path"] for r in rows if r["path"] is not None]
        assert len(paths) == len(set(paths)), (dialect, "two of one path")
        for path in paths:
            assert os.path.realpath(path).startswith(
                os.path.realpath(out) + "/"), path
            assert os.path.exists(path), (dialect, path)
        if dialect != "source":
            assert len(rows) == 2 * len(hostile) + 1, (dialect, len(rows))
        no_control(done.stderr)
        done = run("agentwal", "--store", store, "export", "--dialect",
                   dialect, out)
        no_control(done.stdout)
        no_temporaries(out)
    assert sorted(os.listdir(work)) == sorted(before + ["jail"])
    assert sorted(os.listdir(os.path.join(work, "jail"))) == sorted(DIALECTS)
    return store


def check_taken(work, store):
    """Output directories that are files or links, or without permission."""
    for dialect in DIALECTS:
        place = os.path.join(work, "file-" + dialect)
        put(place, b"mine")
        done = run("agentwal", "--store", store, "export", "--dialect",
                   dialect, place, code=3)
        assert place.encode() in done.stderr
        done = run("agentwal", "--store", store, "export", "--dialect",
                   dialect, os.path.join(place, "below"), code=3)
        with open(place, "rb") as file:
            assert file.read() == b"mine"
        # Links below it, at each depth of what the dialect writes.
        first = os.path.join(work, "jail", dialect)
        for folder, folders, names in sorted(os.walk(first))[:6]:
            for name in sorted(folders)[:2] + sorted(names)[:2]:
                below = os.path.relpath(os.path.join(folder, name), first)
                check_link(work, store, dialect, below)


def check_link(work, store, dialect, below):
    with tempfile.TemporaryDirectory(dir=work) as place:
        outside, out = os.path.join(place, "outside"), os.path.join(place, "o")
        os.mkdir(outside)
        put(os.path.join(place, "victim"), b"mine")
        for target in (outside, os.path.join(place, "victim"),
                       os.path.join(place, "to be made")):
            os.makedirs(os.path.dirname(os.path.join(out, below)),
                        exist_ok=True)
            if os.path.islink(os.path.join(out, below)):
                os.unlink(os.path.join(out, below))
            elif os.path.exists(os.path.join(out, below)):
                continue
            os.symlink(target, os.path.join(out, below))
            subprocess.run([os.path.join(TOOLS, "agentwal"), "--store", store,
                            "export", "--dialect", dialect, out],
                           capture_output=True, check=False)
            assert os.listdir(outside) == [], (dialect, below)
            assert sorted(os.listdir(place)) == ["o", "outside", "victim"], \
                (dialect, below, target)
            with open(os.path.join(place, "victim"), "rb") as file:
                assert file.read() == b"mine", (dialect, below)
            no_temporaries(out)


def check_room(work, store):
    """A full disk is reported and leaves no partial file; the next export is
    complete."""
    folder = os.path.join(work, "big")
    os.mkdir(folder)
    put(os.path.join(folder, "big.jsonl"), b"".join(
        row(b"big", n) for n in range(3000)))
    run("agentwal", "--store", store, "import", folder)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    for dialect in DIALECTS:
        if dialect == "opencode":
            continue  # many small documents
        out = os.path.join(work, "room-" + dialect)
        done = run("agentwal", "--store", store, "export", "--dialect",
                   dialect, "--session", "big", out, code=3, preexec_fn=limit)
        assert b"File too large" in done.stderr, (dialect, done.stderr)
        no_temporaries(out)
        for text in files_of(os.fsencode(out)).values():
            assert text == b"" or len(text) < 100000, dialect
        run("agentwal", "--store", store, "export", "--dialect", dialect,
            "--session", "big", out)
        fresh = os.path.join(work, "fresh-" + dialect)
        run("agentwal", "--store", store, "export", "--dialect", dialect,
            "--session", "big", fresh)
        assert files_of(os.fsencode(out)) == files_of(os.fsencode(fresh)), dialect
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [os.path.join(TOOLS, "agentwal"), "--store", store, "export",
             "--stdout", "--dialect", "pi", "--session", "big"], stdout=full,
            stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3, done.stderr


def drop_capabilities():
    """Drops the capabilities that bypass permissions."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # DAC_OVERRIDE, DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def check_rights(work):
    """Directories without permission to read or to write."""
    folder, store = os.path.join(work, "shut"), os.path.join(work, "s-shut")
    out = os.path.join(work, "o-shut")
    os.mkdir(folder)
    for name in ("a.jsonl", "b.jsonl"):
        put(os.path.join(folder, name), row(name[:1].encode()))
    os.mkdir(os.path.join(folder, "closed"))
    put(os.path.join(folder, "closed", "c.jsonl"), row(b"c"))
    os.chmod(os.path.join(folder, "a.jsonl"), 0)
    os.chmod(os.path.join(folder, "closed"), 0)
    os.mkdir(out, 0o555)
    run("agentwal", "--store", store, "init")
    done = run("agentwal", "--store", store, "import", "--json", folder,
               code=1, preexec_fn=drop_capabilities)
    assert [r["sessionId"] for r in rows_of(done)] == ["b"], done.stdout
    assert done.stderr.count(b"Permission denied") == 2, done.stderr
    for dialect in DIALECTS:
        done = run("agentwal", "--store", store, "export", "--dialect",
                   dialect, out, code=3, preexec_fn=drop_capabilities)
        assert b"Permission denied" in done.stderr, done.stderr
        assert os.listdir(out) == [], dialect
    os.chmod(os.path.join(folder, "closed"), 0o700)


def main():
    with tempfile.TemporaryDirectory() as work:
        check_names(work)
        check_kinds(work)
        check_many(work)
        check_change(work)
        check_rights(work)
        store = check_targets(work)
        check_taken(work, store)
        check_room(work, store)


if __name__ == "__main__":
    main()
