#!/usr/bin/env python3
"""agentwal secrets, search --secrets, import --redact-secrets, export and bundle
--no-secrets, and files of rules: what is found, hidden, redacted and left, and that
no secret is printed."""
import json
import os
import subprocess
import sys
import tempfile

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")

# Joined here so that no scanner of repositories takes them for real ones.
TOKEN = "gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a"
KEY = "sk-" + "ant-api03-Zx9Qw8Er7Ty6Ui5Op4As"
WORD = "q8Zr2Lx0"
SECRETS = [TOKEN, KEY, WORD, "hunter2x17", "ghostpw99"]
RANDOM = "aB3dE5fG7hJ9kL2mN4pQ6rS8"


def fail(text):
    sys.exit("find_secrets.py: " + text)


class Store:
    def __init__(self, folder, name="store"):
        self.folder = folder
        self.environment = dict(os.environ, HOME=folder, TZ="UTC",
                                AGENTWAL_STORE=os.path.join(folder, name))

    def run(self, *arguments, code=0, text=None):
        done = subprocess.run([AGENTWAL, *arguments], capture_output=True, text=True, input=text,
                              env=self.environment, check=False, cwd=self.folder)
        if done.returncode != code:
            fail("agentwal %s: exit %d, not %d: %s" % (" ".join(arguments), done.returncode, code,
                                                      done.stdout + done.stderr))
        if arguments[0] in ("secrets", "search", "import", "export", "bundle"):
            for secret in SECRETS:
                if secret in done.stdout + done.stderr:
                    fail("%s prints a secret" % " ".join(arguments))
        return done

    def append(self, session, entries, *options):
        self.run("append", session, *options, text="".join(json.dumps(e) + "\n" for e in entries))

    def hits(self, *arguments, code=1, verb=("secrets",)):
        lines = [json.loads(line) for line in
                 self.run(*verb, "--json", *arguments, code=code).stdout.splitlines()]
        return lines[:-1], lines[-1]["summary"]

    def has_bytes(self, text):
        for root, _, names in os.walk(self.environment["AGENTWAL_STORE"]):
            for name in names:
                with open(os.path.join(root, name), "rb") as file:
                    if text.encode() in file.read():
                        return True
        return False


def say(name, text, **more):
    return {"id": name, "type": "message", "payload": {"role": "user", "content": text}, **more}


def make(store):
    store.run("create", "--id", "one", "--cwd", "/srv/one", "--title", "with " + TOKEN)
    store.append("one", [
        say("a1", "before"), say("a2", "use %s or %s" % (TOKEN, TOKEN)),
        say("a3", "x", meta={"api_key": KEY}),
        say("a5", "it is \"%s\" then" % RANDOM)])
    store.append("one", [say("a4", "{\"env\":{\"DEPLOY_TOKEN\":\"%s\"}}" % WORD)],
                 "--stream", "1")
    store.run("doc", "put", "one", "plan", text=json.dumps({"password": "hunter2x17"}))
    store.run("create", "--id", "two", "--cwd", "/srv/two")
    store.append("two", [say("b1", "DB_PASS=ghostpw99"), say("b2", "after")])
    store.run("fork", "two", "--id", "fork")
    store.run("delete", "two")


def check_found(store):
    hits, summary = store.hits()
    found = sorted((hit["sessionId"], hit.get("entryId") or hit.get("document") or "",
                    hit["secret"], hit["mask"]) for hit in hits)
    if found != [
            ("one", "", "GitHub token", "ghp_... (40)"),
            ("one", "a2", "GitHub token", "ghp_... (40)"),
            ("one", "a3", "Anthropic key", "sk-a... (33)"),
            ("one", "a4", "value of a secret variable", "q8... (8)"),
            ("one", "plan", "value of a secret variable", "hu... (10)"),
            ("two", "b1", "value of a secret variable", "gh... (9)")]:
        fail("found: %r" % found)
    if summary["secrets"] != 6 or summary["possible"] != 1 or summary["redacted"] != 0:
        fail("summary: %r" % summary)
    if [hit["deleted"] for hit in hits if hit["sessionId"] == "two"] != [True]:
        fail("of a session in the trash: %r" % hits)
    hits, _ = store.hits("--possible", "one")
    if [hit["entryId"] for hit in hits if hit["secret"] == "possible"] != ["a5"] or len(hits) != 6:
        fail("possible: %r" % hits)
    for arguments, count in ((("--session", "one"), 5), (("--cwd", "/srv/one"), 5), ((), 6)):
        hits, _ = store.hits(*arguments, code=0, verb=("search", "--secrets"))
        if len(hits) != count:
            fail("search --secrets %r: %r" % (arguments, hits))
    store.run("search", "--secrets", "--cwd", "/srv/none", code=1)
    store.run("search", "--secrets", "word", code=2)
    if "6 secrets, 1 possible" not in store.run("secrets", code=1).stdout:
        fail("the sentence for people")


def check_without(store):
    done = store.run("bundle", "--no-secrets", "one", "one.bundle")
    if "hidden: GitHub token, 3 places" not in done.stderr:
        fail("a bundle: " + done.stderr)
    other = Store(store.folder, "other")
    other.run("import", "one.bundle")
    other.hits(code=0)
    hidden = other.run("cat", "one", "--all").stdout
    for entry in ("a1", "a2", "a3", "a5"):
        if '"id":"%s"' % entry not in hidden:
            fail("an entry that is not in the bundle: " + hidden)
    if hidden.count("[GitHub token hidden]") != 2 or RANDOM not in hidden:
        fail("what is hidden in a bundle: " + hidden)
    if "refused" not in store.run("import", "one.bundle", code=1).stdout:
        fail("a bundle without secrets goes on from what has them")
    for again in (False, True):
        done = store.run("export", "--dialect", "claude", "--no-secrets", "out", "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if {"what": "GitHub token", "count": 3} not in lines[-1]["hidden"] or \
                (lines[0]["added"] == 0) != again:
            fail("an export: %r" % lines)
    for root, _, names in os.walk(os.path.join(store.folder, "out")):
        for name in names:
            with open(os.path.join(root, name), encoding="utf-8") as file:
                if any(secret in file.read() for secret in SECRETS):
                    fail("a secret is in " + name)


def check_redacted(store):
    store.run("secrets", "--erase", code=2)
    store.run("secrets", "--views", code=2)
    _, summary = store.hits("--redact", code=1)
    if summary["redacted"] != 4:
        fail("redacted: %r" % summary)
    hits, _ = store.hits()
    if [hit.get("document", "") for hit in hits] != ["plan", ""]:
        fail("what no redaction reaches: %r" % hits)
    if "GitHub token" not in store.run("cat", "--redacted", "one").stdout or \
            "ghostpw99" in store.run("cat", "fork").stdout:
        fail("the reason, and what a fork sees of a session in the trash")
    store.run("title", "one", "another")
    store.append("one", [say("a9", "and %s again" % KEY)])
    done = store.run("secrets", "--redact", "--erase", code=1)
    if "1 entry redacted" not in done.stdout or "documents" not in done.stderr:
        fail("a document: " + done.stdout + done.stderr)
    for secret in SECRETS:
        if store.has_bytes(secret) != (secret == "hunter2x17"):
            fail("erased, and still in the store: " + secret)
    store.run("delete", "one", "--erase")
    store.hits(code=0)
    if store.has_bytes("hunter2x17"):
        fail("a document of a session that was erased")


def check_import(folder):
    path = os.path.join(folder, "line.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for at, text in enumerate(("use " + TOKEN, "fine")):
            file.write(json.dumps({
                "type": "user", "uuid": "l%d" % at, "parentUuid": "l0" if at else None,
                "sessionId": "line", "cwd": "/srv", "timestamp": "2026-02-03T09:00:0%dZ" % at,
                "message": {"role": "user", "content": text}}) + "\n")
    store = Store(folder, "imported")
    store.run("create", "--id", "old")
    store.append("old", [say("o1", "of before: " + KEY)])
    store.run("import", "--redact-secrets", "--follow", path, code=2)
    if "redacted 1 entry" not in store.run("import", "--redact-secrets", path).stderr:
        fail("an import does not say what it redacted")
    text = store.run("cat", "line", "--all").stdout
    if TOKEN in text or "fine" not in text:
        fail("an import: " + text)
    if "redacted" in store.run("import", "--redact-secrets", path).stderr or \
            KEY not in store.run("cat", "old").stdout:
        fail("an import redacts what is not new")


def check_rules(store):
    def with_rules(text, code, *more):
        path = os.path.join(store.folder, "rules.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return store.run("secrets", "--rules", path, *more, code=code)

    store.append("fork", [say("r1", "acme_0123456789abcdef and %s" % TOKEN)])
    rule = {"name": "Acme key", "begins": ["acme_"], "then": "[0-9a-f]{16}"}
    done = with_rules(json.dumps({"rules": [rule]}), 1)
    if "Acme key      acme... (21)" not in done.stdout or "2 secrets" not in done.stdout:
        fail("a rule is added: " + done.stdout)
    rule["name"] = "GitHub token"
    done = with_rules(json.dumps({"rules": [rule]}), 1)
    if "1 secret\n" not in done.stdout or "acme... (21)" not in done.stdout:
        fail("a rule is replaced: " + done.stdout)
    for change, why in (({"then": "("}, "then"), ({"then": "(a)\\1"}, "no reference"),
                        ({"begins": ["a"]}, "2 to 128"), ({"begins": []}, "a rule has"),
                        ({"kind": "none"}, "no kind"), ({"group": 5}, "0 to 4"),
                        ({"other": 1}, "other"), ({"name": 7}, "no text")):
        done = with_rules(json.dumps({"rules": [dict(rule, **change)]}), 2)
        if why not in done.stderr or "line 1" not in done.stderr:
            fail("a wrong rule, %r: %s" % (change, done.stderr))
    for text in ("{", "[]", "{\"rules\":7}", "{\"rules\":[7]}"):
        with_rules(text, 2)
    store.run("secrets", "--rules", "none.json", code=3)


def main():
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        make(store)
        for check in (check_found, check_without, check_redacted, check_rules):
            check(store)
        check_import(folder)


main()
