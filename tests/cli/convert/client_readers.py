#!/usr/bin/env python3
"""What a person saw in a client is what agentwal shows and exports: the readers of tests/clients,
each written from its client's rules alone, read the client's files, and the same texts, calls,
results and images, as multisets, are in `agentwal cat --text`, and in the exports to Claude Code,
Codex, pi and OpenCode.

The sessions are made; those of AGENTWAL_FIXTURES come on top. KNOWN says what differs and why.

client_readers.py [CLIENT FOLDER]   compares that folder only, and prints each difference
"""
import collections
import importlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ["AGENTWAL_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "clients"))
sys.dont_write_bytecode = True
import made  # noqa: E402
import shown  # noqa: E402

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
FIXTURES = os.environ.get("AGENTWAL_FIXTURES")
CLIENTS = ("claude", "codex", "pi", "omp", "opencode", "opencode_database", "qwen", "cursor",
           "copilot", "gemini", "kimi", "droid", "antigravity")
TARGETS = ("claude", "codex", "pi", "opencode")
# Files of AGENTWAL_FIXTURES with records that no version writes. In others ids are struck out.
MADE_UP = ("codex/stage0/schema_drift.jsonl", "codex/stage0/large.jsonl",
           "copilot/schema_drift.jsonl", "copilot/large.jsonl", "gemini/schema_drift.json")
COMPARED = ("user", "assistant", "call", "result", "image")
HEADER = re.compile(r"^(?:\S+|\[[^\]\n]+\])  \d{4}-\d\d-\d\d \d\d:\d\d$", re.M)


def reader(client):
    return importlib.import_module(client)


def run(store, *arguments):
    done = subprocess.run([AGENTWAL, "--store", store, *arguments], check=False,
                          capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode in (0, 1), (arguments, done)
    return done.stdout.decode("utf-8", "replace")


def squeezed(text):
    """Without white space, and without what a terminal does not get as it is."""
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return "".join(c for c in text if not c.isspace() and c.isprintable() and c != "\ufffd")


def comparable(item):
    kind, value, _ = item
    if kind == "call":
        value = value[0] + json.dumps(shown.arguments(value[1]), sort_keys=True)
    return kind, squeezed(value)


def multiset(items):
    return collections.Counter(item for item in map(comparable, items) if item[1])


def is_shown(item):
    return item[2] and item[0] in COMPARED


def printed(item):
    """An item as cat --text has it: its beginning at least."""
    kind, value, _ = item
    if kind == "call":
        return squeezed("[call " + value[0])
    return squeezed(value if kind != "image" else "")


def has_lines(text, part):
    """Whether lines of the text that follow each other are the part."""
    lines = [squeezed(line) for line in text.split("\n")]
    ends = {0, *itertools.accumulate(map(len, lines))}
    text = "".join(lines)
    at = text.find(part)
    while at >= 0 and not {at, at + len(part)} <= ends:
        at = text.find(part, at + 1)
    return at >= 0


def cat_differences(text, items):
    """Items that are not in a conversation, long ones that are in it more often, and those that
    no person saw and that are there as a person's words."""
    words = [words for name, words in zip(HEADER.findall(text), HEADER.split(text)[1:])
             if name.startswith("user ")]
    hidden = {printed(item) for item in items if not item[2] and item[0] in ("user", "note")} - \
        {printed(item) for item in items if item[2]}
    for part in sorted(hidden - {""}):
        if any(has_lines(said, part) for said in words):
            yield "has", part, 1
    text = "\0".join(squeezed(part) for part in HEADER.split(text))
    wanted = collections.Counter(printed(item) for item in items)
    needed = collections.Counter(printed(item) for item in items if is_shown(item))
    parts = [part for part in sorted(wanted, key=len, reverse=True) if part]
    for part in parts:
        if text.count(part) < needed[part]:
            yield "lacks", part, needed[part] - text.count(part)
        text = text.replace(part, "\1", wanted[part])
    for part in parts:
        if len(part) >= 300 and part in text:  # longer than what is shown of a call
            yield "has", part, text.count(part)


def compare(items, there, others):
    """Items that are not in an export, and those that are only there: of the others, which are of
    other branches or not shown, it may have any, but not as a person's words what none saw."""
    before, after = multiset(filter(is_shown, items)), multiset(filter(is_shown, there))
    seen = {comparable(item)[1] for item in others if item[2]}
    texts = seen | {comparable(item)[1] for item in others}
    for item in sorted((before - after) + (after - before)):
        if before[item] > after[item]:
            yield "lacks", item, before[item] - after[item]
        elif item[1] not in (seen if item[0] == "user" else texts):
            yield "has", item, after[item] - before[item]


def rows_of(text):
    return [row for row in map(json.loads, text.splitlines()) if "sessionId" in row]


def exported(store, names, dialect, out):
    """What a person sees in that client, by the ids of the sessions."""
    named = [word for name in sorted(names) for word in ("--session", name)]
    rows = rows_of(run(store, "export", "--json", "--dialect", dialect, *named, out))
    found = {os.path.realpath(session.path) if session.path else session.id: session
             for session in reader(dialect).sessions(out)}
    # OpenCode's sessions are several files, of which one has the id as its name.
    keys = {row["sessionId"]: (os.path.realpath(row["path"]),
                               os.path.basename(row["path"]).removesuffix(".json"))
            for row in rows}
    return {name: found[key] for name, either in keys.items() for key in either if key in found}


def check(client, folder):
    """Yields (session, where, difference)."""
    with tempfile.TemporaryDirectory() as work:
        store = os.path.join(work, "store")
        run(store, "init")
        files, names = {}, set()
        for row in rows_of(run(store, "import", "--json", "--all-files", folder)):
            names.add(row["sessionId"])
            files.setdefault(os.path.realpath(row.get("path") or ""), row["sessionId"])
        exports = {dialect: exported(store, names, dialect, os.path.join(work, dialect))
                   for dialect in TARGETS}
        for session in reader(client).sessions(folder):
            if any(item[1] == "[trimmed for fixture]" for item in session.all) or \
                    (session.path or "").endswith(MADE_UP):
                continue
            name = files.get(os.path.realpath(session.path or ""), session.id)
            where = os.path.relpath(session.path, folder) if session.path else session.id
            for way, items, options in (("cat --all", session.all, ["--all"]),
                                        ("cat", session.live, [])):
                for found in cat_differences(run(store, "cat", "--text", name, *options), items):
                    yield where, way, found
            for dialect, sessions in exports.items():
                there = sessions.get(name, shown.Session(name, None, [], []))
                items = session.all if {client, dialect} <= {"claude", "pi"} else session.live
                others = list(session.all)
                for item in filter(is_shown, items):
                    others.remove(item)
                for found in compare(items, there.all, others):
                    yield where, dialect, found


# What differs, and why: (client, where it is shown, "lacks" or "has", pattern of what, reason). A
# client of None is any, a place is a prefix.
KNOWN = [
    (None, "opencode", "has", r"call .*\{\}$", "a result without its call gets one"),
    (None, "pi", "lacks", r"image ", "no place for an image by its address"),
    (None, "pi", ".*", r"(user|result) .*image:", "its address is in the text"),
    (None, "pi", "lacks", r"result Done\.Twice\.", "as before"),
    (None, "opencode", "lacks", r"image ", "no place for an image of a failed result"),
    ("pi", "(claude|codex|opencode)", "lacks", r"(call bash\"|result (ab|total0)$)",
     "a command of a person is context that the client does not show"),
    ("codex", "(claude|pi|opencode)", "lacks", r"call web_search",
     "a search at the provider has no result: it stays a line of Codex"),
    ("claude", "pi", "has", r"user <command-contents>", "a tag that no version writes"),
    ("copilot", ".*", "has", r"(user (one|two)$|image f862)", "what an export to Copilot keeps"),
    (None, "cat", "lacks", r"\{\"", "a result that is an object has no text"),
]


def reason_of(client, way, found):
    what = found[1] if isinstance(found[1], str) else " ".join(found[1])
    for who, where, how, pattern, reason in KNOWN:
        if who in (None, "pi" if client == "omp" else client) and \
                re.match(where + "( |$)", way) and re.match(how, found[0]) and \
                re.match(pattern, what):
            return reason
    return None


def main():
    faults = count = 0
    if len(sys.argv) > 1:
        places = [(sys.argv[1], sys.argv[2])]
    else:
        work = tempfile.TemporaryDirectory()
        places = []
        for client in CLIENTS:
            folder = os.path.join(work.name, client)
            getattr(made, client)(folder)
            golden = os.path.join(SOURCE, "tests", "golden", "model", client)
            for path in (golden, golden + ".jsonl"):
                if os.path.exists(path):
                    shutil.copytree(path, os.path.join(folder, "storage-golden")) \
                        if os.path.isdir(path) else shutil.copy(path, folder)
            places.append((client, folder))
        places += [(client, place) for client in CLIENTS if FIXTURES for place in (
            os.path.join(FIXTURES, *folder, client) for folder in ((), ("other",), (
                "other", "registry"))) if os.path.isdir(place)]
    for client, folder in places:
        for where, way, found in check(client, folder):
            reason = reason_of(client, way, found)
            count += 1
            faults += reason is None
            if reason is None or len(sys.argv) > 1:
                print("%s %s: %s %s %d times %.160r%s" % (
                    client, where, way, found[0], found[2], found[1],
                    " (%s)" % reason if reason else ""))
    print("%d differences, %d without a reason" % (count, faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
