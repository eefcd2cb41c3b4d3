#!/usr/bin/env python3
"""A redacted first message whose beginning, or a replaced SESSION record, the index of a later
segment has, or of which only the message is left: agentwal check finds no damage while the rest is
not rewritten, and erasing with --max-bytes says what it left."""
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


def erase_but_for(segment, limit):
    text = run(1, "gc", "--erase", "--max-bytes", limit)
    if "beyond the limit of bytes" not in text or segment not in text:
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
    erase_but_for("0000000000000002.seg", "70000")
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
    erase_but_for("0000000000000002.seg", "70000")
    run(0, "check")
    if holds_secret(store):
        sys.exit("verbs_gc_left.py: the text is still there")


def leave_the_message(directory):
    """The limit leaves the first segment, with the message. The index of the second is made anew
    without its beginning; the REDACT is in a later one."""
    store = begin(directory, "message")
    add(0, 12, 50000)
    run(0, "gc")
    add(12, 1, 10)
    run(0, "gc", "--max-bytes", "140000")
    add(13, 12, 50000)
    run(0, "redact", "s", "e0")
    erase_but_for("0000000000000001.seg", "140000")
    run(0, "check")
    if holds_secret(store):
        sys.exit("verbs_gc_left.py: the text is still there")


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("AGENTWAL_SCRATCH")) as directory:
        rewrite_the_first_only(directory)
        leave_one_by_the_limit(directory)
        leave_a_replaced_record(directory)
        leave_the_message(directory)


main()
