#!/usr/bin/env python3
"""agentwal serve: sessions, projects, parts of branches, trees, heads, exports,
contents, checkpoints, usage and search."""
import hashlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/lib/serve"))
from client import Server, fail, same  # pylint: disable=wrong-import-position

API = "/api/v1"
GOLDEN = os.path.join(os.environ["AGENTWAL_SOURCE"], "tests/golden/model")


def ids(part):
    return [entry["id"] for entry in part["entries"]]


def fill(server, session, count):
    lines = "".join(json.dumps({
        "id": "%s%d" % (session[0], n), "type": "message",
        "payload": {"role": "user", "content": "message %d" % n}}) + "\n"
        for n in range(count))
    server.run("append", session, text=lines)


def check_subagents(server):
    """Lists leave subagents out; calls have them, and they have their calls."""
    def row(number, kind, content, **more):
        return json.dumps({"type": kind, "uuid": "e%d" % number, "sessionId": "starter",
                           "parentUuid": None, "cwd": "/srv/app",
                           "timestamp": "2026-02-03T09:00:00.000Z",
                           "message": {"role": kind, "content": content}, **more}) + "\n"
    folder = os.path.join(server.folder, "claude-home", ".claude", "projects", "-srv-app")
    below = os.path.join(folder, "starter", "subagents")
    os.makedirs(below)
    calls = [{"type": "tool_use", "id": name, "name": "Agent", "input": {}}
             for name in ("c1", "c2")]
    for path, text in (
            (os.path.join(folder, "starter.jsonl"), row(1, "assistant", calls)),
            (os.path.join(folder, "copy.jsonl"), row(1, "user", "copied").replace(
                '"sessionId": "starter"', '"sessionId": "copy"', 1).replace(
                '"cwd"', '"forkedFrom": {"sessionId": "starter"}, "cwd"', 1)),
            (os.path.join(below, "agent-a1.jsonl"),
             row(1, "user", "look", isSidechain=True, agentId="a1")),
            (os.path.join(below, "agent-a1.meta.json"),
             '{"description":"Of below","agentType":"Explore","toolUseId":"c1"}'),
            (os.path.join(below, "agent-a2.jsonl"),
             row(1, "user", "look", isSidechain=True, agentId="a2"))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    server.run("import", os.path.join(server.folder, "claude-home", ".claude"))
    below, unknown = "starter~agent-a1", "starter~agent-a2"

    def listed(query=""):
        return {session["id"] for session in
                server.get(API + "/sessions?" + query)["sessions"]}
    same({below, unknown}, listed("limit=1000&subagents=1") - listed("limit=1000"), "lists")
    same({"copy", below, unknown}, listed("parent=starter"), "children")
    server.get(API + "/sessions?subagents=2", 400)
    expected = {"id": below, "title": "Of below", "agent": "Explore"}
    entry = server.get(API + "/sessions/starter/entries")["entries"][0]
    same([expected, None], [part.get("subagent") for part in entry["parts"]], "of calls")
    entry = server.get(API + "/sessions/starter/entries/e1")
    same([expected, None], [part.get("subagent") for part in entry["parts"]], "of one entry")
    same({"sessionId": "starter", "agent": "Explore", "call": "c1", "entryId": "e1"},
         server.get(API + "/sessions/" + below)["startedBy"], "the call")
    same({"sessionId": "starter", "agent": None, "call": None, "entryId": None},
         server.get(API + "/sessions/" + unknown)["startedBy"], "no call")
    for name in ("starter", "copy"):
        session = server.get(API + "/sessions/" + name)
        same((False, None), (session["subagent"], session.get("startedBy")), name)


def check_lists(server):
    for n in range(7):
        server.create("--id", "list%d" % n, "--cwd", "/srv/p%d" % (n % 2),
                      "--title", "Title Number %d" % n)
    info = server.get(API + "/info")
    same(7, info["sessions"], "sessions")
    same(server.store, info["store"], "store")
    same(False, info["writable"], "writable")
    seen, cursor = [], ""
    while cursor is not None:
        part = server.get(API + "/sessions?limit=3" + (
            "&cursor=" + cursor if cursor else ""))
        seen += [session["id"] for session in part["sessions"]]
        cursor = part["next"]
    listed = [json.loads(line)["sessionId"] for line in
              server.run("list", "--json").splitlines()]
    same(listed, seen, "pages of sessions")
    same(3, len(server.get(API + "/sessions?cwd=/srv/p1")["sessions"]), "cwd")
    same(["list3"], [s["id"] for s in server.get(
        API + "/sessions?title=NUMBER%203")["sessions"]], "title")
    part = server.get(API + "/sessions?title=number&limit=2")
    same(2, len(part["sessions"]), "title and limit")
    rest = server.get(API + "/sessions?title=number&cursor=" + part["next"])
    same(5, len(rest["sessions"]), "after title and limit")
    for query in ("limit=0", "limit=1001", "limit=x", "limit=", "cursor=x",
                  "limit=-1", "limit=1e2"):
        server.get(API + "/sessions?" + query, 400)
    session = server.get(API + "/sessions/list3")
    same("Title Number 3", session["title"], "title")
    same({"id", "number", "title", "text", "cwd", "projectId", "client",
          "parentId", "created", "updated", "entries", "bytes", "sequence",
          "head", "damaged", "resume", "subagent"}, set(session), "members of a session")
    same("WAL_ENOTFOUND", server.get(API + "/sessions/list", 404)["error"][
        "status"], "a short id")
    server.get(API + "/sessions/" + "x" * 300, 404)
    server.get(API + "/sessions/%00", 404)
    server.get(API + "/sessions/%zz", 400)
    server.get(API + "/" + "/".join("abcdefghij"), 400)
    server.get(API + "/nothing", 404)
    projects = server.get(API + "/projects")["projects"]
    same(7, sum(p["sessions"] for p in projects), "sessions of projects")


def check_ids(server):
    """Ids are percent-encoded in paths."""
    name = "a/b c?%é"
    server.create("--id", name)
    same(name, server.get(API + "/sessions/a%2Fb%20c%3F%25%C3%A9")["id"], "id")


def check_branch(server):
    server.create("--id", "branch")
    fill(server, "branch", 25)
    path = API + "/sessions/branch/entries"
    everything = ["b%d" % n for n in range(25)]
    seen, before = [], ""
    while before is not None:
        part = server.get(path + "?limit=10" + before)
        seen = ids(part) + seen
        before = part["before"] and "&before=" + part["before"]
    same(everything, seen, "parts from the end")
    same(list(range(25)), [e["depth"] for e in server.get(path)["entries"]],
         "depths")
    same(["b3", "b4"], ids(server.get(path + "?leaf=b4&limit=2")), "leaf")
    same([], ids(server.get(path + "?before=b0")), "before a root")
    sequence = server.get(path + "/b20")["sequence"]
    same(["b21", "b22"], ids(server.get(path + "?after=%d&limit=2" % sequence)),
         "after")
    same(everything, ids(server.get(path + "?after=0&limit=100")), "after 0")
    same([], ids(server.get(path + "?after=999999")), "after the end")
    server.run("head", "branch", "side", "b5")
    same(["b5"], ids(server.get(path + "?head=side&limit=1")), "head")
    heads = server.get(API + "/sessions/branch/heads")["heads"]
    same({"main": "b24", "side": "b5"},
         {head["name"]: head["entryId"] for head in heads}, "heads")
    for query in ("leaf=none", "before=none", "head=none"):
        server.get(path + "?" + query, 404)
    server.get(path + "/none", 404)
    server.get(path + "?limit=1001", 400)
    tree = server.get(API + "/sessions/branch/tree")
    same(everything, [node["id"] for node in tree["nodes"]], "nodes")
    same(heads, tree["heads"], "heads of the tree")
    same("message 7", tree["nodes"][7]["text"], "text of a node")
    server.create("--id", "calls")
    for values, text in (({"n": 1, "command": "git \"log\""}, "[run] git \"log\""),
                         ('{"path":"a\\tb"}', "[run] a\tb"), ("*** Begin", "[run] *** Begin"),
                         ({"n": 1}, "[run]"), (None, "[run]"), ([1], "[run]")):
        server.append("calls", {"role": "assistant", "content": [
            {"type": "toolCall", "id": "c", "name": "run", "arguments": values}]})
        same(text, server.get(API + "/sessions/calls/tree")["nodes"][-1]["text"], "text of a call")


def check_parts(server):
    server.create("--id", "parts")
    long = "ä" * 20000
    server.append("parts", {"role": "user", "content": long}, {
        "role": "assistant", "model": "m", "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "yes"},
            {"type": "toolCall", "id": "c", "name": "read",
             "arguments": {"path": "x"}}]},
        {"role": "toolResult", "toolCallId": "c", "isError": True,
         "content": "no"})
    server.run("append", "parts", text=json.dumps({
        "id": "secret", "type": "message",
        "payload": {"role": "user", "content": "hidden"}}) + "\n")
    server.run("redact", "parts", "secret")
    entries = server.get(API + "/sessions/parts/entries")["entries"]
    first = entries[0]["parts"][0]
    same((True, 40000, 16384), (first["cut"], first["bytes"],
                                len(first["text"].encode())), "a cut text")
    same(["thinking", "text", "call"], [p["kind"] for p in entries[1]["parts"]],
         "kinds")
    same({"path": "x"}, entries[1]["parts"][2]["arguments"], "arguments")
    same("m", entries[1]["model"], "model")
    result = entries[2]["parts"][0]
    same(("tool", "result", "c", True, "no"),
         (entries[2]["role"], result["kind"], result["id"], result["error"],
          result["text"]), "a result")
    same((True, []), (entries[3]["redacted"], entries[3]["parts"]), "redacted")
    whole = server.get(API + "/sessions/parts/entries/" + entries[0]["id"])
    same(long, whole["parts"][0]["text"], "the whole text")
    same({"role": "user", "content": long}, whole["payload"], "payload")
    hidden = server.request("GET", API + "/sessions/parts/entries/secret")
    if b"hidden" in hidden.body:
        fail("a redacted text was answered")


def check_documents(server):
    """Messages that were imported as documents are entries."""
    server.run("import", os.path.join(GOLDEN, "opencode"))
    session = next(s for s in server.get(API + "/sessions")["sessions"]
                   if s["client"] == "opencode")["id"]
    path = API + "/sessions/%s" % session
    whole = ids(server.get(path + "/entries?limit=1000"))
    shown = [json.loads(line)["id"] for line in
             server.run("cat", session).splitlines()]
    same(shown, whole, "messages of documents")
    part = server.get(path + "/entries?limit=2")
    same(whole[-2:], ids(part), "the last ones")
    same(whole[-4:-2], ids(server.get(
        path + "/entries?limit=2&before=" + part["before"])), "those before")
    same(whole[1], server.get(path + "/entries/" + whole[1])["id"], "one")
    same(whole, [n["id"] for n in server.get(path + "/tree")["nodes"]], "tree")


def check_content(server):
    for dialect in ("entries", "claude", "pi", "opencode"):
        answer = server.request("GET", API + "/sessions/branch/export?dialect="
                                + dialect)
        same(server.run("export", "--stdout", "--dialect", dialect,
                        "--session", "branch").strip(),
             answer.body.decode().strip(), "export " + dialect)
    server.get(API + "/sessions/branch/export?dialect=none", 404)
    server.get(API + "/sessions/none/export", 404)
    big = json.dumps({"role": "user", "content": "x" * 300000})
    server.create("--id", "big")
    server.run("append", "big", text='{"id":"big","type":"message","payload":%s}'
               "\n" % big)
    digest = hashlib.sha256(big.encode()).hexdigest()
    answer = server.request("GET", API + "/blobs/" + digest)
    same((200, big), (answer.status, answer.body.decode()), "a content")
    same("application/octet-stream", answer.headers["Content-Type"], "type")
    same(str(len(big)), answer.headers["Content-Length"], "length")
    if "sandbox" not in answer.headers["Content-Security-Policy"]:
        fail("a content without sandbox")
    server.get(API + "/blobs/" + "0" * 64, 404)
    server.get(API + "/blobs/..%2F..%2Fetc%2Fpasswd", 404)


def check_checkpoints(server):
    folder = os.path.join(server.folder, "work")
    os.mkdir(folder)
    path = os.path.join(folder, "file")
    for name, text in (("c1", "a\nb\n"), ("c2", "a\nc\n")):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        server.run("checkpoint", "branch", name, "--root", folder, path)
    url = API + "/sessions/branch"
    same(["c2", "c1"], [c["id"] for c in
                        server.get(url + "/checkpoints")["checkpoints"]],
         "checkpoints")
    for query in ("", "?after=c2", "?before=c1", "?before=c1&after=c2"):
        files = server.get(url + "/diff" + query)["files"]
        same([("file", "modified", 1, 1)],
             [(f["path"], f["change"], f["added"], f["removed"])
              for f in files], "diff " + query)
        if "-b\n+c\n" not in files[0]["patch"]:
            fail("a patch: %r" % files[0]["patch"])
    same([], server.get(url + "/diff?after=c1")["files"], "before the first")
    server.get(url + "/diff?before=none", 404)


def check_sums(server):
    for by in ("day", "model", "project", "client", "session"):
        same([json.loads(line) for line in server.run(
            "usage", "--by", by, "--json").splitlines()],
             server.get(API + "/usage?by=" + by)["usage"], "usage by " + by)
    server.get(API + "/usage?by=hour", 400)
    # Totals are kept, but not for long.
    server.append("parts", {"role": "assistant", "model": "later", "content": "x",
                            "usage": {"input": 7, "output": 1}})
    end = time.monotonic() + 60
    while "later" not in [row["model"] for row in
                          server.get(API + "/usage?by=model")["usage"]]:
        if time.monotonic() > end:
            fail("totals are not read again")
        time.sleep(0.1)
    turns = server.get(API + "/sessions/parts/usage")
    same({"turns", "models"}, set(turns), "usage of a session")
    answer = server.request("GET", API + "/search?q=message")
    if server.get(API + "/info")["search"]:
        same([json.loads(line) for line in server.run(
            "search", "--json", "message").splitlines()],
             answer.json()["sessions"], "search")
        server.get(API + "/search?q=", 400)
        server.get(API + "/search", 400)
    else:
        same(501, answer.status, "search of a build without it")


def check_page(server):
    page = server.request("GET", "/")
    same((200, "text/html; charset=utf-8"),
         (page.status, page.headers["Content-Type"]), "the page")
    policy = page.headers["Content-Security-Policy"]
    for part in ("default-src 'none'", "script-src 'sha256-",
                 "style-src 'sha256-", "connect-src 'self'",
                 "frame-ancestors 'none'", "base-uri 'none'",
                 "form-action 'none'"):
        if part not in policy:
            fail("the policy of the page has no " + part)
    head = server.request("HEAD", "/")
    same((200, b"", str(len(page.body))),
         (head.status, head.body, head.headers["Content-Length"]), "HEAD")


with Server() as main:
    check_lists(main)
    check_ids(main)
    check_branch(main)
    check_parts(main)
    check_documents(main)
    check_content(main)
    check_checkpoints(main)
    check_sums(main)
    check_page(main)
    check_subagents(main)
