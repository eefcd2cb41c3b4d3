#!/usr/bin/env python3
"""Randomly damaged files and trees (AGENTWAL_SEED sets the seed, which is
printed; AGENTWAL_LONG tries many more): an export has the same bytes, a second
import adds nothing, and an export as any dialect is detected as that dialect
and imported without a fault.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
sys.dont_write_bytecode = True
from tree_files import files_of  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "..", "..", "golden", "model")
TOOLS = os.environ["WALBIN"]
FILES, FILES_LONG = 60, 1500
TREES, TREES_LONG = 6, 150
TEXTS = [b"null", b"[]", b"{}", b'"x"', b"1e999", b'"\\ud800"', b"\r", b"\n",
         b"\xff", b"\0" * 512, b"{", b"]", b'"', b"\xef\xbb\xbf", b" ",
         b'"00000001"', b'"type"', b'"session"', b'"id"', b"-", b"\\",
         b'{"type":"session","version":3,"id":"pi"}\n', b"\n\n",
         b'"2026-01-02T03:04:05.678Z"', b"[" * 600]


class Chance:
    """Only random() gives the same numbers in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, limit):
        return int(self.random() * limit)

    def pick(self, items):
        return items[self.below(len(items))]


def damage(chance, text):
    for _ in range(1 + chance.below(5)):
        at = chance.below(len(text) + 1)
        to = min(len(text), at + 1 + chance.below(chance.pick([2, 40, 2000])))
        kind = chance.below(7)
        if kind == 0 and at < len(text):
            flipped = text[at] ^ 1 << chance.below(8)
            text = text[:at] + bytes([flipped]) + text[at + 1:]
        elif kind == 1:
            text = text[:at] + text[to:]
        elif kind == 2:
            text = text[:at] + chance.pick(TEXTS) + text[at:]
        elif kind == 3:
            text = text[:at] + chance.pick(TEXTS) + text[to:]
        elif kind == 4:
            there = chance.below(len(text) + 1)
            text = text[:there] + text[at:to] + text[there:]
        elif kind == 5:
            lines = text.split(b"\n")
            line = lines.pop(chance.below(len(lines)))
            lines.insert(chance.below(len(lines) + 1), line)
            text = b"\n".join(lines)
        elif chance.below(4) == 0:
            text = text[:at]
    return text


def make(chance, folder, count):
    """Damaged copies of the files with every feature."""
    sound = [text for name, text in sorted(files_of(MODEL).items())
             if "/" not in name]
    os.makedirs(folder)
    for number in range(count):
        text = damage(chance, chance.pick(sound))
        if chance.below(8) == 0:
            text += chance.pick(sound)
        with open(os.path.join(folder, "%d.jsonl" % number), "wb") as file:
            file.write(text)


def make_trees(chance, folder, count):
    trees = [name for name in sorted(os.listdir(MODEL))
             if os.path.isdir(os.path.join(MODEL, name))]
    for number in range(count):
        tree = os.path.join(folder, "tree%d" % number)
        shutil.copytree(os.path.join(MODEL, chance.pick(trees)), tree)
        paths = sorted(files_of(tree))
        for _ in range(1 + chance.below(4)):
            path = os.path.join(tree, chance.pick(paths))
            if os.path.exists(path) and chance.below(4) == 0:
                os.unlink(path)
            elif os.path.exists(path):
                with open(path, "rb") as file:
                    text = file.read()
                with open(path, "wb") as file:
                    file.write(damage(chance, text))


def run(tool, *arguments):
    done = subprocess.run([os.path.join(TOOLS, tool), *arguments],
                          capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit("%s %s: exit code %d\n%s" % (
            tool, arguments, done.returncode,
            done.stderr.decode(errors="replace")[-2000:]))
    return [json.loads(line) for line in done.stdout.splitlines()] \
        if "--json" in arguments else []


def keep(folder):
    """Keeps the failed input."""
    place = os.path.join(os.environ.get("AGENTWAL_BUILD", "."),
                         "failed-convert_mutated")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    return place


def check_source(work, folder, store):
    everything = ("import", "--json", "--all-files", folder)
    run("agentwal", "--store", store, *everything)
    again = run("agentwal", "--store", store, *everything)
    for row in again:
        assert row.get("appended", 0) + row.get("changed", 0) == 0, row
    out = os.path.join(work, "out")
    run("agentwal", "--store", store, "export", "--json", "--dialect",
        "source", out)
    before, after = files_of(folder), files_of(out)
    assert before.keys() == after.keys(), before.keys() ^ after.keys()
    for name, text in before.items():
        assert text == after[name], name
    run("walcheck", store)


def check_dialect(work, dialect, store):
    out = os.path.join(work, dialect)
    again = os.path.join(work, "s-" + dialect)
    # Also the sessions that are in no view of all sessions.
    listed = run("agentwal", "--store", store, "list", "--json")
    export = ("export", "--json", "--dialect", dialect, out)
    for row in listed:
        export += ("--session", row["sessionId"])
    rows = run("agentwal", "--store", store, *export)
    assert len(rows) == len(listed), (len(rows), len(listed))
    paths = [row["path"] for row in rows]
    assert len(paths) == len(set(paths)), "two sessions of one path"
    for row in run("agentwal", "--store", store, *export):
        assert row["added"] == 0, row
    run("agentwal", "--store", again, "init")
    for row in run("agentwal", "--store", again, "import", "--json", out):
        if os.path.basename(row["path"]) == "session_index.jsonl":
            continue  # Codex's names of sessions, which is no session
        # A line is exported with its imported bytes where it can be.
        assert all(d["reason"] in ("a key occurs twice",
                                   "a second header")
                   for d in row["damaged"]), row
        assert row["dialect"] == dialect or row["lines"] == 0, row


def main():
    seed = int(os.environ.get("AGENTWAL_SEED") or 1)
    is_long = os.environ.get("AGENTWAL_LONG")
    chance = Chance(seed)
    print("AGENTWAL_SEED=%d" % seed)
    with tempfile.TemporaryDirectory() as work:
        folder, store = os.path.join(work, "in"), os.path.join(work, "store")
        make(chance, folder, FILES_LONG if is_long else FILES)
        make_trees(chance, folder, TREES_LONG if is_long else TREES)
        run("agentwal", "--store", store, "init")
        try:
            check_source(work, folder, store)
            for row in run("agentwal", "dialects", "--json"):
                if row["export"] and row["name"] != "source":
                    check_dialect(work, row["name"], store)
        except (AssertionError, SystemExit, ValueError):
            print("kept:", keep(folder), file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
