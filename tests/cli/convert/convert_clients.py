#!/usr/bin/env python3
"""Sessions of every dialect, exported as every other dialect, are accepted by
that dialect's client (tests/lib/clients.py) and show the same conversation: of
each session one dialect in AGENTWAL_STRIDE, and its own.

The sessions are those of tests/golden/model and, where AGENTWAL_FIXTURES names
a directory, all in it; of these the ones that their own client accepts. Without
AGENTWAL_LONG those that are made are written as one dialect in three, and those
of the directory as one in six.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib"))
sys.dont_write_bytecode = True
import clients  # noqa: E402
from tree_files import files_of  # noqa: E402

TOOLS = os.environ["WALBIN"]
STRIDE = int(os.environ.get("AGENTWAL_STRIDE", "1"))
IS_LONG = bool(os.environ.get("AGENTWAL_LONG"))
MODEL = os.path.join(HERE, "..", "..", "golden", "model")


def run(tool, *arguments):
    done = subprocess.run([os.path.join(TOOLS, tool), *arguments],
                          capture_output=True, check=False)
    if done.returncode > 1:
        sys.exit("%s %s: exit code %d\n%s" % (
            tool, arguments, done.returncode, done.stderr.decode()[-2000:]))
    return [json.loads(line) for line in done.stdout.splitlines()]


def export(store, session, dialect):
    with tempfile.TemporaryDirectory() as out:
        rows = run("agentwal", "--store", store, "export", "--json",
                   "--dialect", dialect, "--session", session, out)
        return files_of(out), rows[0] if rows else None


def show(dialect, files):
    """The conversation, or the reason why the client rejects it."""
    try:
        return clients.CLIENTS[dialect](files), None
    except (clients.Refused, KeyError, TypeError, AttributeError) as error:
        return None, "%s: %s" % (type(error).__name__, str(error)[:400])


def sample(own, number, stride):
    """The dialects that the session of this number is written as."""
    return [dialect for i, dialect in enumerate(clients.CLIENTS)
            if dialect == own or (i + number) % stride == 0]


def check(store, session, number, own, path, must, stride):
    """Writes a session as other dialects; returns the faults."""
    before, refused = show(own, export(store, session, own)[0]) \
        if own in clients.CLIENTS else (None, None)  # it is not written
    if refused and must:
        yield "%s as %s: %s" % (path, own, refused)
    for dialect in sample(own, number, stride):
        files, row = export(store, session, dialect)
        after, refused = show(dialect, files)
        if refused and (dialect != own or must):
            yield "%s (%s) as %s: %s" % (path, own, dialect, refused)
        elif before is not None and after is not None:
            misses = clients.misses_any_result if dialect == "opencode" \
                else clients.misses
            missing = misses(before, after)
            if missing:
                yield "%s (%s) as %s lacks %s" % (path, own, dialect, missing)
        if row is None or row["dialect"] != dialect:
            yield "%s as %s: no report" % (path, dialect)


def check_all(source, must, stride=STRIDE):
    faults, count = [], 0
    with tempfile.TemporaryDirectory() as work:
        store = os.path.join(work, "store")
        run("agentwal", "--store", store, "init", "--json")
        seen = set()
        for row in run("agentwal", "--store", store, "import", "--json",
                       source):
            if row["sessionId"] in seen or row["dialect"] == "lines" or \
                    row.get("lines") == 0:
                continue
            seen.add(row["sessionId"])
            count += 1
            faults += check(store, row["sessionId"], count, row["dialect"],
                            os.path.relpath(row["path"], source), must, stride)
    for fault in faults:
        print(fault, file=sys.stderr)
    print("%d sessions of %s, %d faults" % (count, source, len(faults)))
    return faults


def put(path, *rows, **options):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, **options) + "\n")


def copy_spaced(source, target):
    """The same JSON with white space wherever the grammar allows it."""
    for path, text in files_of(source).items():
        target_path = os.path.join(target, path)
        if path.endswith(".jsonl"):
            put(target_path, *[json.loads(line)
                               for line in text.splitlines()],
                separators=(" ,  ", " :\t"))
        else:
            put(target_path, json.loads(text), indent=2)


def codex_line(kind, second, **payload):
    return {"timestamp": "2026-01-02T03:04:%02d.000Z" % second, "type": kind,
            "payload": payload}


def make_codex(path):
    """Arguments of all spellings; results of none, before, and twice."""
    name = "019b2ea4-0000-4000-8000-58208e1f0001"
    rows = [codex_line("session_meta", 0, id=name, cwd="/p", cli_version="1",
                       timestamp="2026-01-02T03:04:00.000Z",
                       originator="x")]
    spellings = ['{\n  "a": 1,\n  "b": [ 1,\t2 ]\n}\n', "5", "", '"x"',
                 "[1, 2]", "null", "not JSON\n", "{}", " {} "]
    for second, text in enumerate(spellings, 1):
        call = "call_%d" % second
        rows += [
            codex_line("event_msg", second, type="user_message",
                       message="go %d" % second),
            codex_line("response_item", second, type="message", role="user",
                       content=[{"type": "input_text",
                                 "text": "go %d" % second}]),
            codex_line("response_item", second, type="function_call",
                       name="tool", arguments=text, call_id=call),
            codex_line("response_item", second, call_id=call,
                       type="function_call_output", output="out %d" % second),
        ]
    rows += [codex_line("response_item", 20, type="function_call_output",
                        call_id="call_1", output="again"),
             codex_line("response_item", 21, type="function_call_output",
                        call_id="call_none", output="of no call")]
    put(path, *rows)


def pi_line(number, parent, message, **more):
    message.setdefault("timestamp", 1767323040000 + number)
    return {"type": "message", "id": "%08x" % number, "parentId": parent,
            "timestamp": "2026-01-02T03:04:05.%03dZ" % (number % 1000),
            "message": message, **more}


def pi_session(name, texts, **header):
    rows = [{"type": "session", "version": 3, "id": name, "cwd": "/p",
             "timestamp": "2026-01-02T03:04:05.000Z", **header}]
    parent = None
    for number, (role, text) in enumerate(texts, 1):
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        if role == "assistant":
            message.update(api="a", provider="p", model="m", usage={},
                           stopReason="stop")
        rows.append(pi_line(number, parent, message))
        parent = "%08x" % number
    return rows


def make_pi(folder):
    """Sizes and shapes that clients handle badly."""
    long = "word " * 40000
    user, answer = ("user", "a prompt"), ("assistant", "an answer")
    for name, rows in {
            "none": [], "one": [user], "answers": [answer, answer],
            "empty-texts": [("user", ""), ("assistant", ""), user],
            "long-first": [("user", long), answer],
            "long-last": [user, ("assistant", long)],
            "long-both": [("assistant", long), user, ("assistant", long)],
            "separators": [("user", "a\u2028b\u2029c\u0085d"), answer],
            "controls": [("user", "".join(map(chr, range(32)))), answer],
            "many": [user, answer] * 2000}.items():
        put(os.path.join(folder, name + ".jsonl"), *pi_session(name, rows))
    put(os.path.join(folder, "odd-times.jsonl"), *[
        {**row, "timestamp": time} for row, time in zip(
            pi_session("odd-times", [user, answer] * 4),
            ["", "yesterday", "0000-00-00T00:00:00Z", "9999-12-31T23:59:60Z",
             "2026-01-02", "2026-01-02T03:04:05+14:00", "1900-01-01T00:00:00Z",
             "\u0000"])])
    put(os.path.join(folder, "odd-place.jsonl"), *pi_session(
        "../odd/../place\n", [user, answer], cwd="C:\\x\ty/../z\n"))


def made(folder):
    copy_spaced(MODEL, os.path.join(folder, "spaced"))
    make_codex(os.path.join(folder, "codex.jsonl"))
    make_pi(folder)


def main():
    faults = check_all(MODEL, True)
    with tempfile.TemporaryDirectory() as folder:
        made(folder)
        faults += check_all(folder, False, STRIDE if IS_LONG else 3 * STRIDE)
    fixtures = os.environ.get("AGENTWAL_FIXTURES")
    if fixtures:
        faults += check_all(fixtures, False, STRIDE if IS_LONG else 6 * STRIDE)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
