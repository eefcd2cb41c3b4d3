#!/usr/bin/env python3
"""Writes the tables of clients in documents from the output of `agentwal dialects --json`.

    agentwal dialects --json | docs/clients.py docs/clients.md README.md
    agentwal dialects --json | docs/clients.py --check docs/clients.md README.md

The latter fails if they differ. Each table is in one of the documents, between
`<!-- table NAME -->` and the next blank line.
"""
import json
import re
import sys

CONTRACT = ("message", "call", "result", "usage", "compaction", "title")


def code(text):
    return "`%s`" % text


def home(folder):
    return "~/" + folder["home"]


def moved_by(client):
    """What moves the folder, and what moves the sessions alone."""
    whole, alone = [], []
    for folder in client["folders"]:
        text = code(folder["variable"]) if folder["variable"] else ""
        if folder["setting"]:
            text = code(".".join(filter(None, (folder["object"], folder["setting"])))) + \
                " in `settings.json`"
        if text:
            (alone if folder["root"] else whole).append(text)
    return "; ".join(filter(None, (", ".join(whole),
                                   alone and "the sessions alone: " + ", ".join(alone))))


def resume(client):
    return code(client["resume"].replace("%s", "ID")) if client["resume"] else ""


def places(client):
    return ", ".join(code(home(f)) for f in client["folders"] if f["home"])


def sessions(client):
    return ", ".join(code("%s/%s%s" % (home(client["folders"][0]), root,
                                       "" if root.endswith(".db") else "/"))
                     for root in client["roots"])


def tables(rows):
    read = sorted(((row["name"], client) for row in rows if row["import"]
                   for client in row["clients"]), key=lambda pair: pair[1]["client"].lower())
    unread = [client for row in rows if not row["import"] for client in row["clients"]]
    def names(wanted):
        return ", ".join(c["client"] for c in wanted)

    yield "agents", ("agents", ""), [
        ("read and written", names(c for _, c in read if c["writes"])),
        ("read", names(c for _, c in read if not c["writes"]))]
    yield "programs", ("program", "dialect", "versions", "its sessions", "directory to export to",
                       "resumed by"), [
        (c["client"], code(name), c["versions"], sessions(c),
         code(home(c["folders"][0])) if c["writes"] else "none", resume(c)) for name, c in read]
    yield "files", ("program", "reads", "path of a written session, below the directory"), [
        (c["client"], c["reads"], code(c["writes"]) if c["writes"] else "none") for _, c in read]
    yield "identity", ("program", "a session is identified by", "a parent is"), [
        (c["client"], c["session"], c["parent"]) for _, c in read]
    yield "contract", ("program",) + CONTRACT, [
        (c["client"], *(c[key] for key in CONTRACT)) for _, c in read]
    yield "paths", ("client", "folder", "moved by", "sessions below the folder"), [
        (c["client"], places(c), moved_by(c),
         ", ".join(code(p) for p in c["files"] + [d + "/" for d in c["directories"]]))
        for _, c in read]
    yield "unread", ("client", "folder", "its sessions"), [
        (c["client"], places(c), ", ".join(map(code, c["unread"]))) for c in unread]
    written = [row for row in rows if row["export"] and row["carries"]]
    yield "carried", ("carried", *(row["name"] for row in written)), [
        (what, *("yes" if row["carries"][what] else "" for row in written))
        for what in written[0]["carries"]]


def line(cells):
    return "|%s\n" % "".join(" %s |" % cell.replace("|", "\\|") if cell else " |" for cell in cells)


def main():
    is_check = sys.argv[1] == "--check"
    paths = sys.argv[1 + is_check:]
    rows = [json.loads(row) for row in sys.stdin]
    pages = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            pages.append(file.read())
    texts = pages
    for name, head, cells in tables(rows):
        rule = "|---|" + (":-:|" if name == "carried" else "---|") * (len(head) - 1)
        table = (line(head) + rule + "\n" + "".join(map(line, cells))).rstrip("\n")
        place = re.compile(r"(?<=<!-- table %s -->\n).*?(?=\n\n|\n\Z)" % name, re.S)
        if sum(len(place.findall(text)) for text in texts) != 1:
            sys.exit("%s: not one table %s" % (" ".join(paths), name))
        texts = [place.sub(lambda _, table=table: table, text) for text in texts]
    for path, text, page in zip(paths, texts, pages):
        if text != page and is_check:
            sys.exit("%s is out of date: agentwal dialects --json | docs/clients.py %s" % (
                path, " ".join(paths)))
        if text != page:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


main()
