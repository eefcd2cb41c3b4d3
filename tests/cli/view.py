#!/usr/bin/env python3
"""agentwal view: what the file has, and what it must not have: secrets of each
known form, redacted entries, matches of --redact, results, paths."""
import html.parser
import json
import os
import random as random_module
import re
import resource
import subprocess
import sys
import tempfile

AGENTWAL = os.path.join(os.environ["WALBIN"], "agentwal")
CWD = "/home/ada/src/invoice"

# Joined here so that no scanner of repositories takes them for real ones.
JWT = ".".join(("ey" + "JhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0",
                "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"))
PRIVATE = ("-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEAsecretbody\n"
           "-----END RSA " + "PRIVATE KEY-----")
# kind, a text with the secret, the secret
SECRETS = [
    ("Anthropic key", "use %s now", "sk-" + "ant-api03-Zx9Qw8Er7Ty6Ui5Op4As"),
    ("OpenAI key", "(%s)", "sk-" + "proj-4fGh7JkL0pQw3ErTy6UiAa"),
    ("GitHub token", "token %s.", "gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("GitHub token", "%s", "gh" + "o_16C7e42F292c6912E7710c838347Ae178B4b"),
    ("GitHub token", "<%s>",
     "github" + "_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789"),
    ("AWS key", "%s", "AK" + "IAIOSFODNN7EXAMPLE"),
    ("Slack token", "%s", "xo" + "xb-123456789012-abcdefGHIJKL"),
    ("Google key", "?key=%s", "AI" + "zaSyA1234567890abcdefghijklmnopqrstu"),
    ("JSON web token", "cookie is %s", JWT),
    ("private key", "%s\nafter it", PRIVATE),
    ("authorization", "Authorization: Bearer %s", "opaque7value9here1"),
    ("authorization", "-H 'authorization: Basic %s'", "YWRhOmxvdmVsYWNl"),
    ("authorization", "{\\\"Authorization\\\": \\\"token %s\\\"}", "abc123def456"),
    ("authorization", "then Bearer %s was sent", "Zq3vT8xW2mN5bK7pL9"),
    ("password in a URL", "postgres://ada:%s@db.example/invoices", "Lovelace!1815"),
    ("value of a secret variable", "export GITLAB_TOKEN=%s", "glpat-secretpart"),
    ("value of a secret variable", "DB_KEY=%s cargo run", "correcthorse"),
    ("value of a secret variable", "SECRET='%s'", "battery staple"),
    ("value of a secret variable", "api_key: \"%s\"", "s3cr3tvalue"),
    ("value of a secret variable", "\"client_secret\":\"%s\"", "qwertzuiop"),
    # After an escape of JSON in a text, of a URL, of a terminal.
    ("Anthropic key", "{\"out\":\"found\\n%s\"}", "sk-" + "ant-api03-Ab9Qw8Er7Ty6Ui5Op4As"),
    ("GitHub token", "a\\u003c%s", "gh" + "p_26C7e42F292c6912E7710c838347Ae178B4a"),
    ("AWS key", "k%%3D%s", "AK" + "IAIOSFODNN8EXAMPLE"),
    ("Slack token", "\x1b[01;31m%s\x1b[m", "xo" + "xb-223456789012-abcdefGHIJKL"),
    ("Slack token", "\\u001b[31m%s", "xo" + "xb-323456789012-abcdefGHIJKL"),
    ("value of a secret variable", "DB_KEY\x1b[m\x1b[K=%s", "correctmare"),
    ("value of a secret variable", "?access_token%%3D%s&b", "a1b2c3d4e5f6"),
    # Quotes and backslashes in a value.
    ("value of a secret variable", "\"password\": \"%s\", \"a\"", "it's-mine 7"),
    ("value of a secret variable", "\"password\": \"%s\"}", "Ab12\\u0026cd\\\"EFGH"),
    ("value of a secret variable", "{\\\"password\\\": \\\"%s\\\"}", "Ab13\\\\\\\"cdEFGHI"),
    # The whole value, also where a shell joins it or it has punctuation.
    ("value of a secret variable", "PASSWORD=abc1%s && make", ",COMMAREST"),
    ("value of a secret variable", "PASSWORD=abc1%s", ";SEMIREST"),
    ("value of a secret variable", "PASSWORD=abc1%s", "&AMPREST"),
    ("value of a secret variable", "PASSWORD=abc1%s make", "\\ BLANKREST"),
    ("value of a secret variable", "PASSWORD='it%s'", "'\"'\"'sQUOTEREST"),
    ("value of a secret variable", "PASSWORD='it%s'", "'\\''sESCAPEREST"),
    ("value of a secret variable", "\"c\":\"PASSWORD='it%s'\"", "'\\\"'\\\"'sJSONREST"),
    ("password in a URL", "redis://ada:%s@cache.example/0", "ab/cd/SLASHREST"),
    ("authorization", "> Authorization: Digest u=\"ada\", %s\n",
     "response=\"6629fae49393a053\""),
    # Its end is missing; before it is a mention.
    ("private key", "%s", PRIVATE.split("\n", maxsplit=1)[0] + "\\n" + "MIIEowIBAAKCAQEA" * 4),
    ("private key", "in -----BEGIN RSA " + "PRIVATE KEY-----\n%s", PRIVATE),
    ("private key", "%s", PRIVATE.replace("RSA", "PGP").replace("KEY-", "KEY BLOCK-")),
]
KEPT = ["api_key = os.environ[\"API_KEY\"]", "TOKEN=$TOKEN make", "https://example.org/a:b",
        "const token = scanner.next();", "sk-loading-spinner-container-large",
        "the key: press Enter", "passwd='', acct='whose'", "PASSWORD=\"\" make whole",
        "{\\\"password\\\":\\\"\\\",\\\"name\\\":\\\"adaname\\\"}",
        "looks for -----BEGIN RSA " + "PRIVATE KEY----- in a file, and for more",
        "-----BEGIN " + "PRIVATE KEY-----, -----BEGIN EC " + "PRIVATE KEY----- and so on",
        "http://localhost:4873/@scope/package", "?token=$T&user=adauser",
        "git@github.com:ada/invoice.git"]
HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>",
           "\u202egnp.exe", "\u001b[31mred\u001b[0m \u0007", "\u2028\u2029", "&lt;b&gt;"]


def fail(text):
    sys.exit("view.py: " + text)


class Page(html.parser.HTMLParser):
    """The elements of a page, and the text of its data."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.data, self.policy, self.is_data = [], "", "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        self.is_data = attributes.get("id") == "data"
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        for name in attributes:
            if name.startswith("on") or name == "style":
                fail("the page has an attribute %s" % name)

    def handle_endtag(self, tag):
        if tag == "script":
            self.is_data = False

    def handle_data(self, data):
        if self.is_data:
            self.data += data


class Store:
    def __init__(self, folder):
        self.environment = dict(os.environ, AGENTWAL_STORE=os.path.join(folder, "store"),
                                HOME=folder, TZ="UTC")

    def run(self, *arguments, code=0, text=None):
        done = subprocess.run([AGENTWAL, *arguments], capture_output=True, text=True, input=text,
                              env=self.environment, check=False)
        if done.returncode != code:
            fail("agentwal %s: exit %d, not %d: %s" % (" ".join(arguments), done.returncode, code,
                                                      done.stderr))
        return done

    def append(self, session, entries):
        self.run("append", session, text="".join(json.dumps(e) + "\n" for e in entries))

    def view(self, *arguments, code=0):
        done = self.run("view", *arguments, code=code)
        page = Page(done.stdout)
        return json.loads(page.data), done, page


def user(name, text, **more):
    entry = {"type": "message", "payload": {"role": "user", "content": text}, **more}
    return entry if name is None else {"id": name, **entry}


def parts_of(data):
    return {entry["id"]: entry["parts"] for entry in data["entries"]}


def check_whole(store):
    store.run("create", "--id", "whole", "--cwd", CWD, "--title", "Cents")
    store.append("whole", [
        user("u1", "Fix it", timestamp="2026-11-23T09:00:00.000Z"),
        {"id": "a1", "type": "message", "payload": {
            "role": "assistant", "model": "sonnet", "usage": {"input": 10, "output": 5},
            "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I do."},
                        {"type": "toolCall", "id": "c1", "name": "read",
                         "arguments": {"path": CWD + "/tax.py"}}]}},
        {"id": "r1", "type": "message", "payload": {
            "role": "tool", "toolCallId": "c1", "isError": True,
            "content": [{"type": "text", "text": "no file"},
                        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]}},
        user("b1", "Another way", parentId="u1"),
    ])
    store.run("head", "whole", "main", "r1")
    store.run("head", "whole", "other", "b1")
    data, done, page = store.view("whole")
    if done.stderr:
        fail("a message without a secret: " + done.stderr)
    if page.tags.count("script") != 2 or page.tags.count("style") != 1:
        fail("scripts and styles: %r" % page.tags)
    for part in ("default-src 'none'", "script-src 'sha256-", "style-src 'sha256-"):
        if part not in page.policy:
            fail("the policy: " + page.policy)
    if "unsafe" in page.policy or "connect-src" in page.policy:
        fail("the policy permits too much: " + page.policy)
    parts = parts_of(data)
    if [part["kind"] for part in parts["a1"]] != ["thinking", "text", "call"]:
        fail("parts: %r" % parts["a1"])
    if parts["a1"][2]["arguments"] != {"path": CWD + "/tax.py"} or parts["a1"][2]["id"] != "c1":
        fail("a call: %r" % parts["a1"][2])
    if parts["r1"][0] != {"kind": "result", "id": "c1", "text": "no file", "error": True}:
        fail("a result: %r" % parts["r1"])
    if parts["r1"][1]["data"] != "iVBORw0KGgo=" or len(parts["r1"]) != 2:
        fail("an image: %r" % parts["r1"])
    heads = {head["name"]: head["entryId"] for head in data["heads"]}
    if heads != {"main": "r1", "other": "b1"}:
        fail("heads: %r" % heads)
    if data["usage"]["turns"][0]["entryId"] != "a1" or data["entries"][0]["time"] != 1795424400000:
        fail("usage or time: %r" % data["usage"])


def check_secrets(store):
    store.run("create", "--id", "secrets", "--cwd", CWD)
    entries = []
    for at, (_, text, secret) in enumerate(SECRETS):
        said = text % secret
        entries.append(user("u%d" % at, said))
        entries.append({"id": "a%d" % at, "type": "message", "payload": {
            "role": "assistant", "content": [
                {"type": "thinking", "thinking": said}, {"type": "text", "text": said},
                {"type": "tool_use", "id": "c%d" % at, "name": "bash",
                 "input": {"command": said, "list": [{"deep": said}]}}]}})
        entries.append({"id": "r%d" % at, "type": "message", "payload": {
            "role": "user", "content": [{"type": "tool_result", "tool_use_id": "c%d" % at,
                                         "content": [{"type": "text", "text": said}]}]}})
    entries += [user("k%d" % at, text) for at, text in enumerate(KEPT)]
    entries.append({"id": "keys", "type": "message", "payload": {
        "role": "assistant", "content": [
            {"type": "tool_use", "id": "x", "name": "http", "input": {
                "headers": {"Authorization": "Zq1", "x-api-key": "plainword"},
                "env": {"GITLAB_TOKEN": "plainword2"}, "max_tokens": 4,
                "password": 18151815, "phone": 5551234}}]}})
    entries.append({"id": "type", "type": "of " + SECRETS[0][2], "payload": {}})
    entries.append({"id": "long", "type": "message", "payload": {
        "role": "user", "content": "x" * ((1 << 20) - 12) + " " + SECRETS[0][2]}})
    store.append("secrets", entries)
    data, done, _ = store.view("secrets")
    for kind, text, secret in SECRETS:
        if secret in done.stdout or json.dumps(secret)[1:-1] in done.stdout:
            fail("%s is in the page: %s" % (kind, text))
        if not re.search(r"^agentwal: hidden: %s, \d+ place" % re.escape(kind), done.stderr,
                         re.M):
            fail("%s is not reported: %s" % (kind, done.stderr))
    if SECRETS[0][2][:12] in done.stdout:
        fail("the beginning of a secret where a text is cut")
    kept = [part["text"] for name, parts in parts_of(data).items() if name[0] == "k"
            for part in parts if part["kind"] == "text"]
    if kept != KEPT:
        fail("hidden without a cause: %r" % [k for k in kept if k not in KEPT])
    values = parts_of(data)["keys"][0]["arguments"]
    if "plainword" in json.dumps(values) or values["headers"]["Authorization"] == "Zq1" or \
            values["max_tokens"] != 4 or "1815" in str(values["password"]) or \
            values["phone"] != 5551234:
        fail("values of keys: %r" % values)
    values = parts_of(store.view("secrets", "--redact", "555[0-9]*")[0])["keys"][0]["arguments"]
    if values["phone"] != "[match of --redact hidden]":
        fail("a number that matches --redact: %r" % values)
    if data["struck"] < 5 * len(SECRETS):
        fail("counted: %r" % data["struck"])


def check_redacted(store):
    store.run("create", "--id", "redacted", "--cwd", CWD)
    store.append("redacted", [user("e1", "before"), user("e2", "a hidden word"),
                              user("e3", "after"), user("e4", "a hidden end")])
    store.run("redact", "redacted", "e2", "--reason", "unspeakable")
    store.run("redact", "redacted", "e4")
    data, done, _ = store.view("redacted")
    for text in ("hidden", "unspeakable", "redactedBy"):
        if text in done.stdout.split('id="data">')[1].split("</script>")[0]:
            fail("%s of a redacted entry is in the page" % text)
    by_id = {entry["id"]: entry for entry in data["entries"]}
    if "e2" in by_id or by_id["e3"]["parentId"] != "e1":
        fail("entries without the redacted one: %r" % data["entries"])
    if data["heads"][0]["entryId"] not in by_id:
        fail("a head on nothing: %r" % data["heads"])


def check_options(store):
    data, done, _ = store.view("whole", "--no-tool-results")
    parts = parts_of(data)["r1"]
    if "no file" in done.stdout or "iVBORw" in done.stdout or parts[0]["kind"] != "result":
        fail("--no-tool-results: %r" % parts)
    store.run("create", "--id", "acme", "--cwd", CWD)
    store.append("acme", [user(
        "p1", "Acme Corp. and acme corp\nat %s/src/tax.py, /home/ada/.ssh/id, /etc/app/x.conf, "
        "C:\\Users\\ada\\x.txt, file:///home/ada/z, and/or, https://example.org/a/b // c" % CWD)])
    _, done, _ = store.view("acme", "--redact", "[Aa]cme [Cc]orp", "--redact", "co[n]f")
    if re.search("acme corp", done.stdout, re.I) or "x.conf" in done.stdout:
        fail("--redact")
    # In the entry, and in the first text of the session.
    if "match of --redact, 6 places" not in done.stderr:
        fail("the count of --redact: " + done.stderr)
    data, done, _ = store.view("acme", "--no-paths")
    text = parts_of(data)["p1"][0]["text"]
    if "/home/" in done.stdout or "Users" in json.dumps(data) or "/etc/" in done.stdout:
        fail("--no-paths: " + text)
    for kept in ("./src/tax.py", "\u2026/id,", "and/or", "https://example.org/a/b // c"):
        if kept not in text:
            fail("--no-paths has not %r: %s" % (kept, text))
    hidden = ("/home/alice", "/Users/alice", "-I/home/alice/x", "\\/home\\/alice\\/x",
              "?p=%2Fhome%2Falice%2Fx", "C:\\Users\\alice", "C:\\\\Users\\\\alice",
              "x -home-alice-work y", "~alice/x", "//home/alice/x", "\\\\host\\alice\\x",
              "/home/bob/.claude/projects/-home-alice-work")
    kept = ("~/x", "~5/10", "a // b", "s/\\n\\t/x", "not -home-", "up/down", "\\n\\n")
    store.run("create", "--id", "forms", "--cwd", CWD)
    store.append("forms", [user("f%d" % at, "see %s ok" % form)
                           for at, form in enumerate(hidden + kept)])
    parts = parts_of(store.view("forms", "--no-paths")[0])
    for at, form in enumerate(hidden + kept):
        text = parts["f%d" % at][0]["text"]
        if not text.startswith("see ") or not text.endswith(" ok") or "alice" in text or \
                (form in kept and form not in text):
            fail("--no-paths: %r is %r" % (form, text))
    store.run("view", "acme", "--redact", "(", code=2)
    store.run("view", code=2)
    store.run("view", "none", code=1)
    store.run("view", "acme", "more", code=2)


def check_hostile(store):
    store.run("create", "--id", "hostile", "--cwd", CWD, "--title", HOSTILE[0])
    store.append("hostile", [user("h%d" % at, text) for at, text in enumerate(HOSTILE)] + [
        {"id": "x" + HOSTILE[0], "type": HOSTILE[0], "payload": 7},
        {"id": "deep", "type": "message", "payload": {"role": "assistant", "content": [
            {"type": HOSTILE[2], "name": HOSTILE[0], "input": {HOSTILE[0]: HOSTILE[0]}}]}}])
    data, done, page = store.view("hostile")
    body = done.stdout.split('id="data">')[1].split("</script>")[0]
    if "<" in body or page.tags.count("script") != 2 or "img" in page.tags:
        fail("markup of a session is in the page")
    texts = [parts_of(data)["h%d" % at][0]["text"] for at in range(len(HOSTILE))]
    if texts != HOSTILE:
        fail("texts changed: %r" % texts)


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check_time(store):
    """Texts of 1 MB with the beginnings of many secrets, none of which is one."""
    store.run("create", "--id", "slow", "--cwd", CWD)
    for text in ("authorization:$x ", "api_key=(", "api_key=x.", "sk-", "eyJaaaaaaaaaaaa-",
                 "://a:b", "-----BEGIN -", "TOKEN=$ ", "TOKEN='", "/a=", "bearer "):
        store.append("slow", [user(None, text * (1000000 // len(text)))])
    begin = processor_time()
    store.view("slow", "--no-paths")
    if processor_time() - begin > 60:
        fail("it took %.1f s" % (processor_time() - begin))


def apply(before, patch):
    """The lines that a patch makes of the lines before it."""
    result, at, lines = [], 0, patch.split("\n")[:-1]
    for number, line in enumerate(lines):
        newline = "" if lines[number + 1:number + 2] == ["\\ No newline at end of file"] else "\n"
        if line.startswith("@@"):
            start, count = re.match(r"@@ -(\d+),(\d+) ", line).groups()
            start = int(start) - (1 if int(count) > 0 else 0)
            result += before[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:] + newline)
        elif line[0] in " -":
            if before[at] != line[1:] + newline:
                fail("a patch has %r, the file %r" % (line, before[at]))
            if line[0] == " ":
                result.append(before[at])
            at += 1
    return "".join(result + before[at:])


def change(random, text):
    """A text with some lines replaced, removed and added."""
    lines = text.splitlines(True)
    for _ in range(random.randrange(6)):
        at = random.randrange(len(lines) + 1)
        lines[at:at + random.randrange(4)] = ["new %d\n" % random.randrange(5)
                                              for _ in range(random.randrange(4))]
    text = "".join(lines)
    return text[:-1] if random.random() < 0.2 else text


def check_patches(store):
    random = random_module.Random(7)
    root = os.path.join(store.environment["HOME"], "files")
    os.mkdir(root)
    store.run("create", "--id", "patches", "--cwd", root)
    before, after = {}, {}
    for at in range(60):
        name = "f%d" % at
        before[name] = "".join("line %d\n" % random.randrange(9)
                               for _ in range(random.randrange(40)))
        after[name] = change(random, before[name])
    before["large"] = "".join("a%d\n" % at for at in range(3000))
    after["large"] = "first\n" + "".join("b%d\n" % at for at in range(3000))
    for name, texts in (("one", before), ("two", after)):
        for path, text in texts.items():
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        store.run("checkpoint", "patches", name, *sorted(texts))
    data, _, _ = store.view("patches")
    files = {file["path"]: file for file in data["diffs"][0]["files"]}
    if sorted(files) != sorted(name for name in after if before[name] != after[name]):
        fail("files that changed: %r" % sorted(files))
    for name, file in files.items():
        if apply(before[name].splitlines(True), file["patch"]) != after[name]:
            fail("the patch of %s: %r" % (name, file["patch"]))
        added = len(re.findall(r"^\+", file["patch"], re.M))
        removed = len(re.findall(r"^-", file["patch"], re.M))
        if name != "large" and (added, removed) != (file["added"], file["removed"]):
            fail("a patch of %s that is not minimal: +%d -%d, not +%d -%d" % (
                name, added, removed, file["added"], file["removed"]))


def check_damage(store):
    store.run("create", "--id", "damage", "--cwd", CWD)
    store.append("damage", [user("d%d" % at, "word%d " % at * 300) for at in range(3)])
    folder = store.environment["AGENTWAL_STORE"]
    found = False
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                content = file.read()
            at = content.find(b"word1 word1 word1")
            if at >= 0 and not found:
                with open(path, "r+b") as file:
                    file.seek(at + 6)
                    file.write(b"WORD2")
                found = True
    if not found:
        fail("the text to damage is not in the store")
    data, done, _ = store.view("damage", code=1)
    ids = [entry["id"] for entry in data["entries"]]
    if "d0" not in ids or "d2" not in ids or "WORD2" in done.stdout or data["damaged"] != 1:
        fail("damage: %r, damaged %r" % (ids, data["damaged"]))
    if "left out" not in done.stderr:
        fail("damage is not reported: " + done.stderr)


def check_file(store):
    """A file is read without a store; that of a session is the session."""
    folder = store.environment["HOME"]
    path = os.path.join(folder, "line.jsonl")
    elsewhere = os.path.join(folder, "else")
    os.mkdir(elsewhere)

    def write(where, text):
        with open(where, "w", encoding="utf-8") as file:
            for at, role in enumerate(("user", "assistant")):
                file.write(json.dumps({
                    "type": role, "uuid": "l%d" % at, "parentUuid": "l0" if at else None,
                    "sessionId": "line", "cwd": CWD, "timestamp": "2026-02-03T09:00:0%dZ" % at,
                    "message": {"role": role, "content": text + " " + role}}) + "\n")

    write(path, "first")
    write(os.path.join(elsewhere, "line.jsonl"), "second")
    without = Store(os.path.join(folder, "without"))
    for one, has_session in ((without, False), (store, False), (store, True)):
        if has_session:
            one.run("import", path)
            one.append("line", [user("l2", "added to the session")])
        data, _, _ = one.view(path)
        texts = [part["text"] for entry in data["entries"] for part in entry["parts"]]
        added = ["added to the session"] if has_session else []
        if texts != ["first user", "first assistant"] + added:
            fail("the page of a file: %r" % texts)
        for verb in (("cat", "--text"), ("tree",)):
            if ("added" in one.run(*verb, path).stdout) != has_session:
                fail("%s of a file" % verb[0])
        # Another file with the name of one that was imported.
        if "second user" not in one.run("cat", os.path.join(elsewhere, "line.jsonl")).stdout:
            fail("a file with the name of another one")
    if os.path.exists(without.environment["AGENTWAL_STORE"]):
        fail("a store was made")
    if "no such session" not in store.run("cat", os.path.join(folder, "none.jsonl"),
                                          code=1).stderr:
        fail("a file that is not there")
    without.run("cat", os.path.join(folder, "none.jsonl"), code=3)


def main():
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        for check in (check_whole, check_secrets, check_redacted, check_options, check_hostile,
                      check_patches, check_time, check_file, check_damage):
            check(store)


main()
