#!/usr/bin/env python3
"""Runs the commands that documents show and compares what they print.

A page is one shell session in an empty folder; CONTRIBUTING.md is one in a copy
of the sources. Of a page:
- An indented block that begins with `$ ` is a transcript: commands, each with
  its output, standard error included. A command that ends with a backslash
  continues on the next line. Of the output, blank lines at the end do not
  count, and a line `...` is any lines.
- A fenced block ```jsonl NAME is the file NAME.
- A fenced block ```c consists of consecutive lines of an example.

Ids of version 7, times, and sizes are compared by their place only.
Arguments: the pages to check instead of docs/*.md and PAGES.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("WALBIN") or os.path.join(ROOT, "build", "bin")

PAGES = ["CHANGELOG.md", "SECURITY.md"]
# It builds, which takes a minute: tests/packaging/contributing.sh.
IN_SOURCES = "CONTRIBUTING.md"

ID = re.compile(r"\b01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-"
                r"[0-9a-f]{12}\b")
RULES = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), "TIME"),
    (re.compile(r'("newBytes":)\d+'), r"\1SIZE"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"(?<=\S) {2,}"), "  "),
    (re.compile(r" +$"), ""),
]


def normal(lines, ids):
    """The lines with each id replaced by the rank of its first appearance."""
    def rank(match):
        return "ID%d" % ids.setdefault(match.group(), len(ids))

    for line in lines:
        line = ID.sub(rank, line)
        for pattern, instead in RULES:
            line = pattern.sub(instead, line)
        yield line


def matches(shown, printed):
    """Whether the printed lines are the shown ones; `...` is any lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(matches(shown[1:], printed[at:])
                   for at in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and \
        matches(shown[1:], printed[1:])


def blocks(text):
    """Yields (line number, kind, name, lines) of the blocks of a page."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = re.match(r"```(\w*) ?(\S*)$", lines[at])
        if fence:
            end = lines.index("```", at + 1)
            yield at + 1, fence.group(1), fence.group(2), lines[at + 1:end]
            at = end + 1
        elif lines[at].startswith("    $ "):
            end = at
            while end < len(lines) and re.match(r"    |$", lines[end]):
                end += 1
            while not lines[end - 1]:
                end -= 1
            yield at + 1, "transcript", "", [l[4:] for l in lines[at:end]]
            at = end
        else:
            at += 1


def steps(number, lines):
    """Yields (line number, command, shown output) of a transcript."""
    at = 0
    while at < len(lines):
        first, command = at, lines[at][2:]
        while command.endswith("\\") and at + 1 < len(lines):
            at += 1
            command += "\n" + lines[at]
        at += 1
        begin = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        shown = "\n".join(lines[begin:at]).rstrip("\n")
        yield number + first, command, shown.splitlines()


def copy_sources(folder):
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"],
        check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if os.path.isfile(os.path.join(ROOT, name)):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), path)


def run(page_steps, folder):
    """Runs the commands in one shell; returns the output of each."""
    mark = "\x1e"
    script = "".join("%s\nprintf '%s'\n" % (command, mark)
                     for _, command, _ in page_steps)
    environment = dict(os.environ, PATH=BIN + ":" + os.environ["PATH"],
                       HOME=folder, TZ="UTC", LC_ALL="C.UTF-8", COLUMNS="80")
    done = subprocess.run(["bash", "-c", script], cwd=folder,
                          env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=1200)
    return [part.rstrip("\n").splitlines()
            for part in done.stdout.decode().split(mark)[:len(page_steps)]]


def check_page(path, examples):
    """Returns the faults of a page and the number of things checked."""
    faults, page_steps, count = [], [], 0
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory() as folder:
        if os.path.basename(path) == IN_SOURCES:
            copy_sources(folder)
        for number, kind, name, lines in blocks(text):
            if kind == "transcript":
                page_steps += steps(number, lines)
            elif kind == "jsonl" and name:
                with open(os.path.join(folder, name), "w",
                          encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in lines))
            elif kind == "c":
                count += 1
                part = " ".join(" ".join(lines).split())
                if not any(part in example for example in examples):
                    faults.append("%s:%d: not in an example" % (path, number))
        outputs = run(page_steps, folder) if page_steps else []
    if len(outputs) < len(page_steps):
        faults.append("%s: the shell ended early" % path)
    shown_ids, printed_ids = {}, {}
    for (number, command, shown), printed in zip(page_steps, outputs):
        count += 1
        shown = list(normal(shown, shown_ids))
        printed = list(normal(printed, printed_ids))
        if not matches(shown, printed):
            faults.append("%s:%d: $ %s\nshown:\n  %s\nprinted:\n  %s" % (
                path, number, command, "\n  ".join(shown),
                "\n  ".join(printed)))
    return faults, count


def main():
    examples = []
    for path in glob.glob(os.path.join(ROOT, "examples", "*.c")):
        with open(path, encoding="utf-8") as file:
            examples.append(" ".join(file.read().split()))
    pages = sys.argv[1:] or sorted(
        glob.glob(os.path.join(ROOT, "docs", "*.md"))) + [
            os.path.join(ROOT, name) for name in PAGES]
    faults, count = [], 0
    for path in pages:
        found, checked = check_page(path, examples)
        faults += found
        count += checked
    print("\n".join(faults + ["%d checked, %d faults" % (count, len(faults))]))
    return 1 if faults or not count else 0


sys.exit(main())
