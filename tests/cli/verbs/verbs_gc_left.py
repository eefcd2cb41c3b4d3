#!/usr/bin/env python3
"""A redacted first message whose beginning, or a replaced SESSION record, the index of a later
segment has: agentwal check finds no damage while that is not rewritten, and erasing with
--max-bytes says what it left."""
import json
import os
import random
import subprocess
import sys
import tempfile

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
SECRET = "FIRST-TEXT-4711"


def run(code, *words, lines=None):
    done = subprocess.run([AGENTWAL, *words], input=lines, capture_output=True, text=True,
                          check=False)
    if done.returncode != code:
        sys.exit("verbs_gc_left.py: %r ends with %d instead of %d: %s%s" % (
            words, done.returncode, code, done.stdout, done.stderr))
    return done.stdout + done.stderr


def add(first, count, size):
    """Appends messages; the first of all begins with SECRET."""
    number = random.Random(first)
    rows = []
    for i in range(first, first + count):
        text = (SECRET if i == 0 else "") + "".join(
            number.choice("0123456789abcdefghijklmnopqrstuvwxyz") for _ in range(size))
        rows.append(json.dumps({"id": "e%d" % i, "type": "message",
                                "payload": {"role": "user", "content": text}}) + "\n")
    run(0, "append", "s", lines="".join(rows))


def holds_secret(directory):
    for path, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                if SECRET.encode() in file.read():
                    return True
    return False


def begin(directory, name, *options):
    os.environ["AGENTWAL_STORE"] = os.path.join(directory, name)
    run(0, "create", "--id", "s", *options)
    return os.environ["AGENTWAL_STORE"]


def rewrite_the_first_only(directory):
    """Two rewritten segments: of the first much is dead, of the second nothing."""
    store = begin(directory, "rewritten")
    add(0, 8, 150000)
    run(0, "gc")
    add(8, 3, 150000)
    run(0, "gc", "--max-bytes", "2097152")
    for i in range(4):
        run(0, "redact", "s", "e%d" % i)
    run(0, "check")
    run(0, "gc")
    run(0, "check")
    run(0, "gc", "--erase")
    run(0, "check")
    if holds_secret(store):
        sys.exit("verbs_gc_left.py: the text is still there")


def erase_up_to_the_second():
    text = run(1, "gc", "--erase", "--max-bytes", "70000")
    if "beyond the limit of bytes" not in text or "0000000000000002.seg" not in text:
        sys.exit("verbs_gc_left.py: it is not named: " + text)
    run(0, "check")
    run(0, "gc", "--erase")


def leave_a_replaced_record(directory):
    """The index of the second segment, which the limit leaves, has the texts of the first SESSION
    record, which a later one replaces."""
    begin(directory, "replaced", "--title", "a title")
    add(1, 1, 10)
    run(0, "gc")
    add(2, 1, 10)
    run(0, "gc", "--max-bytes", "1")
    run(0, "meta", "s", "--merge", '{"reviewed": true}')
    erase_up_to_the_second()
    run(0, "check")


def leave_one_by_the_limit(directory):
    """Two segments, of which the limit leaves the second, never rewritten."""
    store = begin(directory, "limited")
    add(0, 1, 10)
    run(0, "gc")
    add(1, 1, 10)
    run(0, "gc", "--max-bytes", "1")
    run(0, "redact", "s", "e0")
    run(0, "check")
    erase_up_to_the_second()
    run(0, "check")
    if holds_secret(store):
        sys.exit("verbs_gc_left.py: the text is still there")


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("AGENTWAL_SCRATCH")) as directory:
        rewrite_the_first_only(directory)
        leave_one_by_the_limit(directory)
        leave_a_replaced_record(directory)


main()
