#!/usr/bin/env python3
"""Each row of the last table of docs/integrating.md names a test that exists.

The last column of a row names tests: functions of the C tests, or scripts of
tests/cli, in backquotes; `model` is the test that the text before the table names.
"""
import glob
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


MODEL = "test_differential__engine_and_reference_agree"


def known_tests():
    found = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "**", "*.c"),
                          recursive=True):
        with open(path, encoding="utf-8") as file:
            found |= {"test_" + name for name in re.findall(
                r"^(?:TEST|TEST_WITH|[A-Z]+_TEST)\((\w+)", file.read(), re.M)}
    for kind in ("*.sh", "*.py"):
        for path in glob.glob(os.path.join(ROOT, "tests", "cli", "**", kind),
                              recursive=True):
            found.add(os.path.relpath(path, ROOT))
    return found | ({"model"} if MODEL in found else set())


def known_calls():
    found = set()
    for path in glob.glob(os.path.join(ROOT, "*", "include", "**", "*.h"),
                          recursive=True):
        with open(path, encoding="utf-8") as file:
            found |= set(re.findall(r"\b(?:wal|WAL)_\w+", file.read()))
    return found


def rows():
    path = os.path.join(ROOT, "docs", "integrating.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = text[text.index("## From another session store"):]
    for line in text.split("\n"):
        if line.startswith("|") and not re.match(r"\|[-| ]+\|$", line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[-1] != "test":
                yield line, cells


def main():
    tests, calls, faults, count = known_tests(), known_calls(), [], 0
    for line, cells in rows():
        count += 1
        named = re.findall(r"`([^`]+)`", cells[-1])
        if len(cells) != 3 or not named:
            faults.append("no test: %s" % line)
        faults += ["no such test: %s" % name for name in named
                   if name not in tests]
        faults += ["no such call: %s" % name
                   for name in re.findall(r"`((?:wal|WAL)_\w+)", cells[1])
                   if name not in calls]
    for fault in faults:
        print(fault)
    if count < 50:
        print("only %d rows" % count)
    sys.exit(bool(faults) or count < 50)


main()
