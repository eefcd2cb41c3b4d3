#!/usr/bin/env python3
"""Holds the language to the terms of SPEC.md, 12.

1. The words that these replaced are found nowhere.
2. No two types, and no two functions, of the library share a name.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TEXT = (".c", ".h", ".cc", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".py",
        ".txt", ".in", ".map", ".md", ".1")
# Data, and this list.
LEFT_OUT = ("tests/fuzz/corpus/", "tests/style/words.py", "docs/bench/")

# Each pattern with the words to use instead.
BANNED = [
    (r"told|tells", "reports, returns, detects, contains"),
    (r"(?<!write-)(?<!write_)behind", "after, write-behind"),
    (r"stands?|stood", "is, means, remains"),
    (r"lies|lay(?!out)", "is"),
    (r"beside|besides", "next to, concurrently with, in addition to"),
    (r"so (?:many|much|few)", "N, the number"),
    (r"of (?:its|their|his) own", "separate, private"),
    (r"of what it is", "the type"),
    (r"(?<=[.] )Who(?:ever)? [a-z]+|(?<=^)Who(?:ever)? [a-z]+",
     "a subject: the process that, the caller that"),
    (r"whoever", "the caller that, any process that"),
    (r"crowds?|crowded", "contention, sync waiters"),
    (r"twins?", "repeat, copy"),
    (r"unbegun", "uninitialised"),
    (r"distrusts?|distrusted", "invalidate"),
    (r"halving", "binary search"),
    (r"spares?|sparing", "preallocated segment"),
    (r"the door|doors?", "open lock"),
    (r"bells?|rung", "wait word"),
    (r"patience", "spin budget"),
    (r"hurry|hurries", "rotation waiting"),
    (r"lingers?", "retained"),
    (r"outrun", "stale read"),
]

TYPE = re.compile(r"^(?:struct|enum|union) (wal__?\w+) \{", re.M)
FUNCTION = re.compile(r"^(?!static)[a-z][\w *\n]*?\b(wal__?\w+)\([^;{]*\)\n\{",
                      re.M)
# With the letters of which a match has some, for to look for these is fast.
RULES = [(re.compile(r"(?<![\w-])(?:%s)(?![\w])" % words, re.I | re.M), instead,
          re.findall("[a-z]{3,}", re.sub(r"\(\?:[^)]*\)\?|[a-z]\?", "", words.lower())))
         for words, instead in BANNED]


def files():
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
        check=True, capture_output=True, text=True).stdout.split("\n")
    for name in names:
        if (name.endswith(TEXT) and not name.startswith(LEFT_OUT)
                and os.path.isfile(os.path.join(ROOT, name))):
            yield name


def word_faults(path, text):
    # An identifier is its words.
    text = re.sub(r"(?<=[a-z0-9])_+(?=[a-z0-9])", " ", text, flags=re.I)
    lower = text.lower()
    for pattern, instead, letters in RULES:
        if not any(part in lower for part in letters):
            continue
        for match in pattern.finditer(text):
            yield "%s:%d: %r; use: %s" % (
                path, text.count("\n", 0, match.start()) + 1, match.group(),
                instead)


def main():
    faults, count = [], 0
    types = collections.defaultdict(list)
    functions = collections.defaultdict(list)
    only = tuple(sys.argv[1:])
    for path in files():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        count += 1
        # Each of two systems has its functions; one is compiled.
        if (path.startswith(("engine/", "format/", "convert/"))
                and not path.startswith("engine/base/darwin/")):
            for name in TYPE.findall(text):
                types[name].append(path)
            for name in FUNCTION.findall(text):
                functions[name].append(path)
        if not only or path.startswith(only):
            faults.extend(word_faults(path, text))
    for kind, names in (("type", types), ("function", functions)):
        for name, places in sorted(names.items()):
            # One file may define it for each of two processors.
            if len(set(places)) > 1:
                faults.append("%s %s: %s" % (kind, name, ", ".join(places)))
    for fault in faults:
        print(fault)
    print("%d files, %d faults" % (count, len(faults)))
    return 1 if faults or not count else 0


sys.exit(main())
