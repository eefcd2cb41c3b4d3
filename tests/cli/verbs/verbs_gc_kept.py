#!/usr/bin/env python3
"""agentwal gc, delete and redact with --erase name the process that keeps an old
file, and end with 1; without such a process with 0. gc alone names it, and ends with 0."""
import json
import mmap
import os
import subprocess
import sys
import tempfile

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")


def run(*words, lines=None):
    done = subprocess.run([AGENTWAL, *words], input=lines, capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def expect(code, done):
    if done[0] != code:
        sys.exit("verbs_gc_kept.py: exit %d instead of %d: %s%s" % (done[0], code, *done[1:]))
    return done


def add(entry):
    row = {"id": entry, "type": "message", "payload": {"role": "user", "content": entry}}
    expect(0, run("append", "s", lines=json.dumps(row) + "\n"))


def keep(directory):
    """Maps the segments that there are, as a process with a slice of each does."""
    kept = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".seg"):
            with open(os.path.join(directory, name), "rb") as file:
                kept.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    return kept


def expect_named(done):
    text = "process %d still has" % os.getpid()
    if text not in done[1] + done[2]:
        sys.exit("verbs_gc_kept.py: no %r in %s%s" % (text, *done[1:]))


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("AGENTWAL_SCRATCH")) as directory:
        os.environ["AGENTWAL_STORE"] = os.path.join(directory, "store")
        log = os.path.join(directory, "store", "log")
        expect(0, run("create", "--id", "s"))
        for number, words in enumerate((["gc", "--erase"], ["redact", "s", "e1", "--erase"],
                                        ["delete", "s", "--erase"])):
            add("e%d" % number)
            kept = keep(log)
            done = expect(1, run(*words))
            expect_named(done)
            for each in kept:
                each.close()
        expect(0, run("gc", "--erase"))
        expect(0, run("create", "--id", "s"))
        add("e")
        kept = keep(log)
        expect_named(expect(0, run("gc")))
        add("f")
        done = expect(1, run("--json", "gc", "--erase"))
        readers = json.loads(done[1])["readers"]
        if [reader["process"] for reader in readers] != [os.getpid()]:
            sys.exit("verbs_gc_kept.py: readers %r" % readers)


main()
