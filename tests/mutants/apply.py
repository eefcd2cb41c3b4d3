#!/usr/bin/env python3
"""apply.py SOURCE FOLDER: copies the tree SOURCE to FOLDER with all mutants.

A mutant is a file NN-name.patch in a folder of this one. Its lines before the
first '---' describe the bug, and the line 'tests: NAME...' among them names the
tests that find it. A hunk is found by its text, which must be in the file once;
its line numbers are not used, so a patch stays right while its place stays the
same.

A file of FOLDER that is the same already is left alone, so the next build
compiles only what changed.
"""
import glob
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = '#include "tests/mutants/mutant.h"\n#line 1\n'


class Mutant:
    """A patch: number, name, description, tests and hunks by file."""

    def __init__(self, path):
        self.name = os.path.basename(path)[:-len(".patch")]
        self.number = int(self.name.split("-")[0])
        with open(path, encoding="utf-8") as file:
            head, _, body = file.read().partition("\n--- ")
        lines = head.split("\n")
        tests = [line for line in lines if line.startswith("tests:")]
        self.tests = tests[0].split()[1:] if len(tests) == 1 else []
        self.description = " ".join(
            line for line in lines if not line.startswith("tests:")).strip()
        self.hunks = list(hunks("--- " + body if body else ""))


def hunks(body):
    """Yields (path, old text, new text) for each hunk of a unified diff."""
    path, old, new = None, [], []
    for line in body.split("\n") + ["@@"]:
        if line.startswith("@@") or line.startswith("--- "):
            if old or new:
                yield path, "".join(old), "".join(new)
            old, new = [], []
        elif line.startswith("+++ "):
            path = re.sub(r"^b/", "", line[4:].split("\t")[0])
        elif line[:1] in (" ", "-", "+") and path:
            if line[0] != "+":
                old.append(line[1:] + "\n")
            if line[0] != "-":
                new.append(line[1:] + "\n")


def mutants(folder=HERE):
    """Returns all mutants, by number."""
    found = [Mutant(path)
             for path in glob.glob(os.path.join(folder, "*", "*.patch"))]
    return sorted(found, key=lambda mutant: mutant.number)


def patched(source, chosen):
    """Applies 'chosen' in order. Returns the new texts by path, and faults."""
    texts, faults = {}, []
    for mutant in chosen:
        for path, old, new in mutant.hunks:
            full = os.path.join(source, path)
            if path not in texts:
                if not os.path.isfile(full):
                    faults.append("%s: no file %s" % (mutant.name, path))
                    continue
                with open(full, encoding="utf-8") as file:
                    texts[path] = file.read()
            count = texts[path].count(old)
            if count != 1:
                faults.append("%s: a hunk of %s is there %d times" %
                              (mutant.name, path, count))
                continue
            texts[path] = texts[path].replace(old, new)
    return {path: HEADER + text for path, text in texts.items()}, faults


def put(path, data, source):
    """Writes a file that differs, with the mode of 'source'."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    shutil.copymode(source, path)


def copy(source, target, texts):
    """Makes 'target' a copy of 'source', 'texts' in place of its files."""
    kept = set()
    for folder, folders, names in os.walk(source):
        inside = os.path.relpath(folder, source)
        folders[:] = [name for name in folders
                      if name not in (".git", "__pycache__") and
                      not (inside == "." and name.startswith("build"))]
        for name in names:
            path = os.path.normpath(os.path.join(inside, name))
            full = os.path.join(folder, name)
            if path == ".git" or not os.path.isfile(full):
                continue
            kept.add(path)
            if path in texts:
                data = texts[path].encode()
            else:
                with open(full, "rb") as file:
                    data = file.read()
            put(os.path.join(target, path), data, full)
    for folder, _, names in os.walk(target):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, target) not in kept:
                os.remove(path)


def main():
    source, target = sys.argv[1:]
    texts, faults = patched(source, mutants())
    if faults:
        sys.exit("\n".join(faults))
    copy(source, target, texts)


if __name__ == "__main__":
    main()
