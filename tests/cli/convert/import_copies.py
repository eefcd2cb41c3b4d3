#!/usr/bin/env python3
"""A session imported from a copy of another session's file (SPEC.md 5.17) is
exported like the same file in a store without the original; in the dialect of
the file, with the bytes of the file.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "..", "..", "golden", "model")
MAKER = os.path.join(HERE, "..", "..", "lib", "session_copy.py")
TOOLS = os.environ["WALBIN"]
DIALECTS = ["claude", "codex", "pi", "entries"]
NAMES = {"claude": b"11111111-2222-4333-8444-555555555555",
         "codex": b"019b2ea4-aaaa-4bbb-8ccc-58208e1f0001", "pi": b"s-1"}
FROM = {"claude": (1, b'{', b'{"forkedFrom":{"sessionId":"%s"},'),
        "codex": (0, b'"forked_from_id":"' + NAMES["codex"][:-1] + b'0"',
                  b'"forked_from_id":"%s"'),
        "pi": (0, b'{', b'{"parentSession":"%s",')}


def run(tool, *arguments):
    done = subprocess.run([os.path.join(TOOLS, tool), *arguments],
                          capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit("%s %s: exit code %d\n%s" % (
            tool, arguments, done.returncode, done.stderr.decode()[-2000:]))
    return [json.loads(line) for line in done.stdout.splitlines()] \
        if "--json" in arguments else []


def make(*arguments):
    subprocess.run([sys.executable, MAKER, *arguments], check=True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


class Pair:
    """A store with a copy and its original, and one with only the copy."""

    def __init__(self, work):
        self.work = work
        self.original = os.path.join(work, "in", "a.jsonl")
        self.file = os.path.join(work, "in", "b.jsonl")
        self.stores = [os.path.join(work, name) for name in ("both", "alone")]
        self.ids = [None, None]
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(os.path.join(work, "in"))
        for store in self.stores:
            run("agentwal", "--store", store, "init")

    def give(self):
        """Imports the copy; returns how many lines it shares."""
        run("agentwal", "--store", self.stores[0], "import", self.original)
        for i, store in enumerate(self.stores):
            row, = run("agentwal", "--store", store, "import", "--json",
                       self.file)
            self.ids[i] = row["sessionId"]
            shared = row["shared"] if i == 0 else shared
        return shared

    def written(self, i, dialect):
        out = os.path.join(self.work, "%d-%s" % (i, dialect))
        rows = run("agentwal", "--store", self.stores[i], "export", "--json",
                   "--dialect", dialect, out)
        row, = [r for r in rows if r["sessionId"] == self.ids[i]]
        again = run("agentwal", "--store", self.stores[i], "export", "--json",
                    "--dialect", dialect, out)
        assert all(r["added"] == 0 for r in again), again
        return read(os.path.join(out, row["path"])), row

    def check(self, keeps=None, redacts=False):
        """Compares the exports of both; in the dialect `keeps`, with the file.
        After a redaction the losses are not compared."""
        for dialect in DIALECTS:
            got, row = self.written(0, dialect)
            expected, alone = self.written(1, dialect)
            assert redacts or row["losses"] == alone["losses"], (row, alone)
            if dialect == keeps:
                assert got == expected == read(self.file), dialect
            got, expected = plain(got), plain(expected)
            for number, lines in enumerate(zip(got, expected)):
                assert lines[0] == lines[1], (dialect, number, lines)
            assert len(got) == len(expected), (dialect, got, expected)


def plain(text):
    """Rows without the session's id, with entry ids replaced by their number,
    and without times of an import."""
    rows = [json.loads(line) for line in text.splitlines()]
    names = {}
    for row in rows:
        for key in ("uuid", "id"):
            if isinstance(row.get(key), str):
                names.setdefault(row[key], "#%d" % len(names))
    return [shown(row, names, ()) for row in rows
            if row.get("type") not in ("session", "session_meta",
                                       "session_header")]


def shown(value, names, path):
    if isinstance(value, dict):
        return {key: shown(member, names, path + (key,))
                for key, member in value.items() if key != "sessionId"}
    if isinstance(value, list):
        return [shown(member, names, path) for member in value]
    if isinstance(value, str) and not value.startswith("2026-01-0") and \
            re.fullmatch(r"2\d\d\d-\d\d-\d\dT[0-9:.]*Z", value):
        return "now"
    if isinstance(value, str) and path[-1] in ("thread_id", "turn_id", "id",
                                                 "targetEntryId"):
        return names.get(value, "id")
    return names.get(value, value) if isinstance(value, str) else value


def check_model(work, style, is_named):
    """A copy of which 24 lines are the same and one is different."""
    lines = read(os.path.join(MODEL, style + ".jsonl")).splitlines(True)
    pair = Pair(work)
    write(pair.original, b"".join(lines))
    copy = lines[:24]
    last = len(copy) - 5
    copy[last] = copy[last].replace(b"a", b"b")
    if is_named:
        own = NAMES[style][:-1] + b"9"
        copy = [line.replace(NAMES[style], own) for line in copy]
        at, old, new = FROM[style]
        copy[at] = copy[at].replace(old, new % NAMES[style], 1)
    write(pair.file, b"".join(copy))
    assert pair.give() > 10 or not is_named
    pair.check()


def begin(work, style, lines, more):
    pair = Pair(work)
    make("make", style, "20000", "1", pair.original)
    make("copy", style, "2", pair.original, pair.file, str(lines))
    if more:
        make("more", style, "3", pair.file, str(more))
    assert pair.give() >= lines - 2
    return pair


def check_grown(work, style):
    pair = begin(work, style, 20, 0)
    pair.check(style)
    make("copy", style, "2", pair.original, pair.file)
    assert pair.give() > 24
    pair.check(style)
    make("more", style, "4", pair.file, "5")
    pair.give()
    pair.check(style)
    # A copy of the copy.
    pair.original, pair.file = pair.file, pair.file[:-7] + "c.jsonl"
    make("copy", style, "5", pair.original, pair.file)
    pair.give()
    pair.check(style)


def find_entry(pair, style):
    """The ids of one line's entry in the original and in the store that has only
    the copy, and its text."""
    at = 12
    while style == "claude" and b'"uuid"' not in read(pair.file).splitlines()[at]:
        at += 1
    row = json.loads(read(pair.file).splitlines()[at])
    text = row["payload"]["content"][0]["text"] if style == "codex" else \
        row["message"]["content"]
    if style == "codex":
        return ["line-%d" % at, "line-%d" % (at + 1)], text
    key = "uuid" if style == "claude" else "id"
    original = json.loads(read(pair.original).splitlines()[at])
    return [original[key], row[key]], text


def check_large(work, style):
    """A line that is stored as a blob."""
    pair = Pair(work)
    make("make", style, "20000", "1", pair.original)
    lines = read(pair.original).splitlines(True)
    at = max(i for i, line in enumerate(lines) if b'"user"' in line)
    key = b'"content":"' if style != "codex" else b'"text":"'
    lines[at] = lines[at].replace(key, key + 400000 * b"x", 1)
    write(pair.original, b"".join(lines))
    make("copy", style, "2", pair.original, pair.file)
    make("more", style, "3", pair.file, "2")
    assert pair.give() > 20
    pair.check(style)


def check_redacted(work, style):
    pair = begin(work, style, 22, 4)
    entries, text = find_entry(pair, style)
    for i, store in enumerate(pair.stores):
        run("agentwal", "--store", store, "redact", pair.ids[i], entries[i])
    pair.check(redacts=True)
    for dialect in DIALECTS:
        assert text.encode() not in pair.written(0, dialect)[0], dialect


def check_head(work, style):
    pair = begin(work, style, 22, 4)
    entries, _ = find_entry(pair, style)
    for i, store in enumerate(pair.stores):
        run("agentwal", "--store", store, "head", pair.ids[i], "main",
            entries[i])
    pair.check()


def main():
    with tempfile.TemporaryDirectory() as work:
        work = os.path.join(work, "w")
        for style in NAMES:
            for is_named in (False, True):
                check_model(work, style, is_named)
            check_grown(work, style)
            check_large(work, style)
            check_redacted(work, style)
            check_head(work, style)


if __name__ == "__main__":
    main()
