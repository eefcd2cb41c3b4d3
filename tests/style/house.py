#!/usr/bin/env python3
"""Checks the house rules that can be counted.

Functions of at most 120 lines; files of code of at most 1,500, the public headers
excepted; folders of at most 40 files, test data excepted; 100 columns
elsewhere; JavaScript is indented by twos; no tabs, no blanks at a line's end;
nothing left undone; no test switched off; no path of this machine.
"""
import collections
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

FUNCTION_LINES = 120
FILE_LINES = 1500
FOLDER_FILES = 40
# The public headers: most of them is what the calls promise.
INTERFACE = ("engine/include/", "bindings/node/index.d.ts")
# Made by builds and package managers.
MADE = (".git", "__pycache__", "node_modules", "prebuilds")
SCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts")
TEXT = SCRIPT + (".c", ".h", ".cc", ".sh", ".py", ".txt", ".in", ".map", ".md",
                 ".1")
# Written so that this file does not find itself.
UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
SWITCHED_OFF = re.compile(
    r"\bskip\(|SKIP_|DISABLED|#\s*if 0\b|\{ (?:skip|only|todo): (?:true|['`])|\.only\(")


def text_files():
    for folder, folders, names in os.walk(ROOT):
        if folder == ROOT:
            folders[:] = [f for f in folders if not f.startswith("build")]
        folders[:] = sorted(f for f in folders if f not in MADE and (
            f != "build" or "bindings" not in folder))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if name.endswith(TEXT) or path == ".ci/run":
                yield path


def machine_paths():
    """The folders of this checkout and this user, where they tell a place."""
    places = {ROOT, os.path.realpath(ROOT), os.path.expanduser("~")}
    places = sorted(p for p in places if p.count("/") > 1
                    or p == "/" "root")
    return re.compile(r"(?<![\w.~-])(?:%s)(?![\w-])" %
                      "|".join(map(re.escape, places)) if places else r"(?!)")


def function_faults(path, lines):
    """In Linux style a brace in the first column opens and ends a function."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
            while start > 1 and re.match(r"[\w\s*(].*[^;}/]$",
                                         lines[start - 2].rstrip()):
                start -= 1
        elif line.rstrip() == "}" and start is not None:
            if number - start + 1 > FUNCTION_LINES:
                yield "%s:%d: a function of %d lines" % (path, start,
                                                         number - start + 1)
            start = None


def line_faults(path, lines, machine):
    is_c = path.endswith((".c", ".h"))
    is_test = (path.startswith("tests/") and path.endswith((".c", ".h", ".sh"))
               or path.endswith(".test.mjs"))
    width = 100
    for number, line in enumerate(lines, 1):
        where = "%s:%d: " % (path, number)
        if "\t" in line:
            yield where + "a tab"
        if path.endswith(SCRIPT) and re.match(r"(?:  )* [^ *]", line):
            yield where + "an odd indentation"
        if line != line.rstrip():
            yield where + "a blank at the end"
        if len(line) > width and not path.endswith((".md", ".1")):
            yield where + "%d columns" % len(line)
        if UNDONE.search(line):
            yield where + "left undone: " + line.strip()
        if is_test and SWITCHED_OFF.search(line):
            yield where + "switched off: " + line.strip()
        if machine.search(line):
            yield where + "a path of this machine: " + line.strip()


def main():
    machine = machine_paths()
    faults, count = [], 0
    folders = collections.Counter()
    for path in text_files():
        folders[os.path.dirname(path)] += 1
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            lines = file.read().split("\n")
        if lines.pop() != "":
            faults.append("%s: no newline at the end" % path)
        count += 1
        faults.extend(line_faults(path, lines, machine))
        if path.endswith((".c", ".h", ".cc")):
            faults.extend(function_faults(path, lines))
        if path.endswith(SCRIPT + (".c", ".h", ".cc")):
            if (not path.startswith("tests/") and not path.startswith(INTERFACE)
                    and len(lines) > FILE_LINES):
                faults.append("%s: %d lines" % (path, len(lines)))
    faults.extend("%s: %d files" % pair for pair in sorted(folders.items())
                  if pair[1] > FOLDER_FILES)
    for fault in faults:
        print(fault)
    print("%d files, %d faults" % (count, len(faults)))
    return 1 if faults or not count else 0


sys.exit(main())
