#!/usr/bin/env python3
"""Counts of changed lines (engine/files/numstat.h) equal those of git.

Usage: line_diff_git.py [--write | PAIRS [SEED]]

Pairs of contents are generated from a seed. Without arguments, the counts of
the pairs of the first seed must equal those of git 2.39 in line_diff_git.txt
(--write replaces them with those of the installed git). Where git is installed,
further pairs are compared with it: those of AGENTWAL_SEED, or of the seed 1,
and files of the source and their versions; more of them with AGENTWAL_LONG. git
up to 2.49 counts some frequent lines as changed even with --minimal, git from
2.50 on does not: the installed one is compared with the function that matches
its version.
"""
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("AGENTWAL_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(HERE)))
TABLE = os.path.join(HERE, "line_diff_git.txt")
TABLE_SEED, TABLE_PAIRS = 20240611, 300
PAIRS, PAIRS_LONG = 500, 20000
LEAST_FROM = (2, 50)


class Chance:
    """Only random() gives the same numbers in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, limit):
        return int(self.random() * limit)

    def pick(self, items):
        return items[self.below(len(items))]

    def one_in(self, number):
        return self.below(number) == 0


# Contents --------------------------------------------------------------------

FREQUENT = [b"", b"}", b"    }", b"{", b"    return 0;", b"    break;",
            b"#endif", b"/*", b" */", b"end"]


def few(chance):
    letters = 1 + chance.below(6)
    return [b"%d" % chance.below(letters) for _ in range(chance.below(60))]


def code(chance):
    """Unique lines among frequent ones."""
    share = 1 + chance.below(6)
    frequent = FREQUENT[:1 + chance.below(len(FREQUENT))]
    return [chance.pick(frequent) if chance.one_in(share)
            else b"    call_%d();" % chance.below(100000)
            for _ in range(chance.below(chance.pick([20, 100, 400])))]


def medium(chance):
    kinds = 10 + chance.below(100)
    return [b"line %d" % chance.below(kinds) for _ in range(chance.below(300))]


def part(chance, lines):
    start = chance.below(len(lines) + 1)
    size = chance.below(min(len(lines) - start, chance.pick([3, 20, 200])) + 1)
    return start, start + size


def edited(chance, lines, make):
    """After edits that delete, insert, move, repeat or rewrite lines."""
    lines = list(lines)
    for _ in range(chance.below(chance.pick([2, 6, 30]))):
        start, end = part(chance, lines)
        taken = lines[start:end]
        way = chance.below(6)
        if way == 0:
            del lines[start:end]
        elif way == 1:
            lines[start:start] = make(chance)[:1 + chance.below(30)]
        elif way == 2:
            del lines[start:end]
            at = chance.below(len(lines) + 1)
            lines[at:at] = taken
        elif way == 3:
            at = chance.below(len(lines) + 1)
            lines[at:at] = taken
        elif way == 4:
            lines[start:end] = [line if line in FREQUENT else line + b" //"
                                for line in taken]
        else:
            lines[start:end] = make(chance)[:end - start]
    return lines


def text(chance, lines):
    end = b"\r\n" if chance.one_in(8) else b"\n"
    content = b"".join(line + end for line in lines)
    return content[:-1] if chance.one_in(6) else content


def odd_pair(chance):
    """Empty and absent contents, long lines, zero bytes near the limit."""
    content = text(chance, code(chance))
    way = chance.below(5)
    if way == 0:
        return None, content
    if way == 1:
        return content, None
    if way == 2:
        return b"", content
    if way == 3:
        size = 7990 + chance.below(20)
        return content, b"a\n" * (size // 2) + b"a" * (size % 2) + b"\0b\n"
    long_line = b"x" * chance.below(100000)
    return content + long_line + b"\n", long_line + b"y\n" + content


def made_pair(chance):
    if chance.one_in(12):
        return odd_pair(chance)
    make = chance.pick([few, code, medium])
    before = make(chance)
    if chance.one_in(6):
        after = make(chance)
    elif chance.one_in(10):
        after = sorted(before, key=lambda line: (chance.random(), line))
    else:
        after = edited(chance, before, make)
    if chance.one_in(2):
        before, after = after, before
    return text(chance, before), text(chance, after)


def made_pairs(seed, count):
    chance = Chance(seed)
    return [made_pair(chance) for _ in range(count)]


# Files of the source ---------------------------------------------------------

def source_files():
    for folder in ("format", "engine", "tools", "tests/unit"):
        for place, folders, names in os.walk(os.path.join(SOURCE, folder)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    with open(os.path.join(place, name), "rb") as file:
                        yield file.read()


def source_pairs(seed, count):
    """A file and another one, or the same after edits."""
    chance = Chance(seed)
    files = [file.split(b"\n") for file in source_files()]
    for _ in range(count):
        before = chance.pick(files)
        after = chance.pick(files)
        if not chance.one_in(4):
            after = edited(chance, before, lambda c: c.pick(files))
        yield b"\n".join(before), b"\n".join(after)


def blob_versions(environment):
    """The versions of each path, oldest first, where there is a history."""
    log = subprocess.run(
        ["git", "-C", SOURCE, "log", "--reverse", "--raw", "--no-abbrev",
         "--no-renames", "--format="], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, check=False).stdout.decode()
    names = {}
    for line in log.splitlines():
        fields, path = line.split("\t", 1)
        blob = fields.split()[3]
        if not re.fullmatch("0+", blob):
            names.setdefault(path, []).append(blob)
    wanted = sorted({blob for blobs in names.values() for blob in blobs})
    out = subprocess.run(["git", "-C", SOURCE, "cat-file", "--batch"],
                         input="".join(b + "\n" for b in wanted).encode(),
                         stdout=subprocess.PIPE, check=True,
                         env=environment).stdout if wanted else b""
    contents, at = {}, 0
    for blob in wanted:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        contents[blob] = out[end + 1:end + 1 + size]
        at = end + 1 + size + 1
    return [[contents[b] for b in blobs] for _, blobs in sorted(names.items())]


def history_pairs(environment, seed, count):
    chance = Chance(seed)
    paths = [v for v in blob_versions(environment) if len(v) > 1]
    pairs = [pair for v in paths for pair in zip(v, v[1:])]
    chosen = [chance.pick(pairs) for _ in range(count)] if pairs else []
    for _ in range(count if pairs else 0):
        versions = chance.pick(paths)
        chosen.append((chance.pick(versions), chance.pick(versions)))
    # git does not list equal files, binary or not.
    return [(before, after) for before, after in chosen if before != after]


# Answers ---------------------------------------------------------------------

def build():
    """Builds the counting program with this build's compiler and library."""
    build_dir = os.environ["AGENTWAL_BUILD"]
    with open(os.path.join(build_dir, "CMakeCache.txt"),
              encoding="utf-8") as file:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
    flags = {"address": ["-fsanitize=address,undefined"],
             "thread": ["-fsanitize=thread"]}
    subprocess.run(
        [cache["CMAKE_C_COMPILER"], "-std=c11", "-O2", "-Wall", "-Wextra",
         "-Werror", *flags.get(cache.get("AGENTWAL_SANITIZE"), []),
         "-I", SOURCE, "-I", os.path.join(SOURCE, "engine/include"),
         os.path.join(HERE, "line_diff_git.c"), "-o", "line_diff",
         os.path.join(build_dir, "lib/libagentwal.a")], check=True)


def our_answers(pairs):
    """The expected counts of git for each pair, and the minimal ones."""
    given = b"".join(b"%d %d\n%s%s" % (len(a or b""), len(b or b""), a or b"",
                                       b or b"") for a, b in pairs)
    out = subprocess.run(["./line_diff"], input=given, check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    rows = [tuple(line.split()) for line in out.splitlines()]
    assert len(rows) == len(pairs), "some pairs were not counted"
    return [row[:2] for row in rows], [row[2:] for row in rows]


def git_environment():
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("GIT_")}
    environment.update(GIT_CONFIG_NOSYSTEM="1", GIT_ATTR_NOSYSTEM="1",
                       GIT_CONFIG_GLOBAL=os.devnull)
    return environment


def git_answers(environment, pairs):
    """The counts of git, for the pairs as the files of two commits."""
    shutil.rmtree("pairs.git", ignore_errors=True)
    subprocess.run(["git", "init", "-q", "--bare", "pairs.git"], check=True,
                   env=environment)
    stream = []
    for side, branch in enumerate((b"before", b"after")):
        stream.append(b"commit refs/heads/%s\ncommitter a <a@b> %d +0000\n"
                      b"data 0\n" % (branch, side))
        for i, pair in enumerate(pairs):
            if pair[side] is not None:
                stream.append(b"M 100644 inline %d\ndata %d\n%s\n" %
                              (i, len(pair[side]), pair[side]))
    git = ["git", "--git-dir=pairs.git"]
    subprocess.run(git + ["fast-import", "--quiet"], input=b"".join(stream),
                   check=True, env=environment)
    out = subprocess.run(
        git + ["diff", "--numstat", "--minimal", "--no-renames", "before",
               "after"], check=True, env=environment,
        stdout=subprocess.PIPE).stdout.decode()
    answers = [("0", "0")] * len(pairs)
    for line in out.splitlines():
        insertions, deletions, name = line.split("\t")
        answers[int(name)] = insertions, deletions
    return answers


def git_version():
    try:
        out = subprocess.run(["git", "version"], stdout=subprocess.PIPE,
                             check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return None
    return tuple(map(int, re.search(r"(\d+)\.(\d+)", out).groups()))


# Comparing -------------------------------------------------------------------

def compare(what, pairs, ours, expected):
    wrong = [i for i in range(len(pairs)) if ours[i] != expected[i]]
    for i in wrong[:5]:
        print("%s, pair %d: %s instead of %s" % (what, i, ours[i], expected[i]))
    if wrong:
        for name, content in zip(("before", "after"), pairs[wrong[0]]):
            path = os.path.join(os.environ["AGENTWAL_BUILD"],
                                "line_diff_" + name)
            with open(path, "wb") as file:
                file.write(content or b"")
            print("the first one's: " + path)
        sys.exit("%s: %d of %d pairs are wrong" % (what, len(wrong),
                                                   len(pairs)))


def compare_with_git(what, environment, version, pairs):
    like_git, least = our_answers(pairs)
    compare(what, pairs, least if version >= LEAST_FROM else like_git,
            git_answers(environment, pairs))
    print("%s: %d pairs as git %d.%d; %d have smaller least numbers" %
          (what, len(pairs), *version,
           sum(a != b for a, b in zip(like_git, least))))


def main():
    arguments = sys.argv[1:]
    count = PAIRS_LONG if os.environ.get("AGENTWAL_LONG") else PAIRS
    seed = int(os.environ.get("AGENTWAL_SEED", "1"), 0)
    environment = git_environment()
    version = git_version()
    table_pairs = made_pairs(TABLE_SEED, TABLE_PAIRS)

    if arguments[:1] == ["--write"]:
        with open(TABLE, "w", encoding="ascii") as file:
            for row in git_answers(environment, table_pairs):
                print(*row, file=file)
        return
    if arguments:
        count, seed = int(arguments[0]), int((arguments + [seed])[1])
    print("seed %d" % seed, flush=True)
    build()
    with open(TABLE, encoding="ascii") as file:
        table = [tuple(line.split()) for line in file]
    compare("table", table_pairs, our_answers(table_pairs)[0], table)
    if version is None:
        return
    compare_with_git("made", environment, version, made_pairs(seed, count))
    compare_with_git("source", environment, version,
                     list(source_pairs(seed, count // 5)))
    compare_with_git("history", environment, version,
                     history_pairs(environment, seed, count // 10))


if __name__ == "__main__":
    main()
