#!/usr/bin/env python3
"""The size and the order of the documents.

1. README.md has at most 900 words, with the pages of docs/ 33,000, SPEC.md at most
   3,200 lines.
2. docs/README.md links each page of docs/ once, and says what it answers.
3. The program is named `agentwal VERB`. Its other names are in
   docs/stability.md, and those of before in CHANGELOG.md.
4. The ratios that README.md quotes are those of docs/bench/results.json.
5. The first two fenced blocks of README.md are the command that builds and shows the
   main job, which tests/packaging/release.sh runs in a copy of the sources, and the
   command that passes the tests, which .ci/run runs.
6. docs/tour.md has twelve tasks of at most three commands each.
"""
import glob
import json
import os
import re
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README_WORDS, DOCUMENTS_WORDS, SPEC_LINES = 900, 33000, 3200
FIRST = ["tools/quickstart.sh\n", "tests/run.sh\n"]
TASKS, TASK_COMMANDS = 12, 3
OTHER_NAMES = re.compile(r"\b(?:walctl|walcat|walcheck|walconv)\b(?!_|\.\w)")
NAMES_OF_NOW = {"docs/stability.md": {"walcat", "walcheck"}}
RATIO = "durable append, %d threads, mixed, to the best peer as it is used"


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def sizes():
    words = len(read("README.md").split())
    if words > README_WORDS:
        yield "README.md has %d words" % words
    words += sum(len(read(path).split()) for path in documents())
    if words > DOCUMENTS_WORDS:
        yield "README.md and docs/ have %d words" % words
    lines = read("SPEC.md").count("\n")
    if lines > SPEC_LINES:
        yield "SPEC.md has %d lines" % lines


def documents():
    return glob.glob(os.path.join(ROOT, "docs", "*.md"))


def index():
    page = read("docs", "README.md")
    links = re.findall(r"^\| \[[^]]*\]\(([\w/-]+\.md)\) \| .*\? \|$", page,
                       re.M)
    pages = [os.path.relpath(path, os.path.join(ROOT, "docs"))
             for path in documents()]
    for name in sorted(set(pages) - {"README.md"}):
        if links.count(name) != 1:
            yield "docs/README.md: %d rows of %s" % (links.count(name), name)


def other_names():
    for path in sorted(glob.glob(os.path.join(ROOT, "*.md")) +
                       documents() +
                       glob.glob(os.path.join(ROOT, "examples", "*.md"))):
        name = os.path.relpath(path, ROOT)
        if name == "CHANGELOG.md":
            continue
        for number, line in enumerate(read(name).split("\n"), 1):
            for word in OTHER_NAMES.findall(line):
                if word in NAMES_OF_NOW.get(name, ()):
                    continue
                yield "%s:%d: %s; use: agentwal VERB" % (name, number, word)


def ratios():
    text = " ".join(read("README.md").split())
    quoted = re.search(r"With 16 threads agentwal acknowledges ([\d.]+) times "
                       r".* and ([\d.]+) times with 64", text)
    if not quoted:
        yield "README.md quotes no ratios"
        return
    rows = {row["question"]: row["ratio"]
            for row in json.loads(read("docs", "bench", "results.json"))["rows"]}
    for threads, shown in zip((16, 64), quoted.groups()):
        measured = "%.1f" % rows[RATIO % threads]
        if shown != measured:
            yield "README.md: %s with %d threads, measured: %s" % (
                shown, threads, measured)


def first_commands():
    first = re.findall(r"^```\w*\n(.*?)^```$", read("README.md"), re.M | re.S)[:2]
    if first != FIRST:
        yield "README.md begins with the commands %s" % first
    for command, test in zip(FIRST, (("tests", "packaging", "release.sh"), (".ci", "run"))):
        if command.rstrip() not in read(*test):
            yield "%s does not run %s" % (os.path.join(*test), command.rstrip())


def tasks():
    _, *parts = read("docs", "tour.md").split("\n## ")
    counts = [(part.split("\n")[0], len(re.findall(r"^    \$ ", part, re.M)))
              for part in parts]
    found = [count for _, count in counts if count]
    if len(found) != TASKS:
        yield "docs/tour.md: %d tasks" % len(found)
    for name, count in counts:
        if count > TASK_COMMANDS:
            yield "docs/tour.md: %s: %d commands" % (name, count)


def main():
    faults = [*sizes(), *index(), *other_names(), *ratios(), *first_commands(), *tasks()]
    print("\n".join(faults + ["%d faults" % len(faults)]))
    return 1 if faults else 0


sys.exit(main())
