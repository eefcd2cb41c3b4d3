#!/usr/bin/env python3
"""Rules of real clients that hold for a view and its client together: what a
client adds to a view is the session's, and what the log adds is the client's.
Each function states the rule, and the version in which it was seen."""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib", "kit"))
sys.dont_write_bytecode = True
from client_place import (  # noqa: E402
    CLAUDE, TIME, TOOLS, Place, claude_row, claude_session, one, pi_entry,
    read, rows_of, run, texts, uuid, write)


def head_follows_the_client(work):
    """pi 0.73 resumes at the last line. Its turn names the line before, which
    may be metadata of another client; the session goes on there all the
    same."""
    place = Place(work, claude_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    last = read(file)[-1]["id"]
    write(file, pi_entry("aaaa0001", last, "of pi"))
    assert place.import_()[0]["appended"] == 1
    place.append("of the log")
    place.export("pi")
    assert texts(file) == ["go", "gone", "of pi", "of the log"], texts(file)


def head_goes_back_with_the_client(work):
    """pi 0.73: a user who goes back in the tree and goes on resumes there."""
    place = Place(work, claude_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    first = [row for row in read(file) if row["type"] == "message"][0]["id"]
    write(file, pi_entry("aaaa0001", first, "instead"))
    place.import_()
    place.export("pi")
    assert texts(file) == ["go", "instead"], texts(file)
    write(file, pi_entry("aaaa0002", "aaaa0001", "and more"))
    place.import_()
    place.append("then")
    place.export("pi")
    assert texts(file) == ["go", "instead", "and more", "then"], texts(file)


def answer_stays_in_the_branch(work):
    """pi 0.73 names the last answer as the parent of its turn, also when the
    log goes on too: the answer is in the history of both branches."""
    place = Place(work, claude_session)
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    answer = [row for row in read(file) if row["type"] == "message"][-1]["id"]
    write(file, pi_entry("aaaa0001", answer, "of pi"))
    place.append("of the log")
    row = place.import_()[0]
    assert row["appended"] == 1 and row["damaged"] == [], row
    place.export("pi")
    # Both went on: the head stays with the log, the client's is a branch.
    assert texts(file) == ["go", "gone", "of the log"], texts(file)
    rows = {row["id"]: row for row in read(file)}
    own = rows["aaaa0001"]
    while own["type"] != "message" or own["id"] == "aaaa0001":
        own = rows[own["parentId"]]
    assert own["message"]["role"] == "assistant", own


def moved_head_is_what_the_client_follows(work):
    """pi 0.73 resumes at the last line, also where that only marks a head that
    was moved back; its turn is a branch if the log went on meanwhile."""
    place = Place(work, claude_session)
    run("agentwal", "--store", place.store, "head", place.session, "main",
        uuid(1))
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    assert texts(file) == ["go"], texts(file)
    write(file, pi_entry("aaaa0001", read(file)[-1]["id"], "of pi"))
    place.append("of the log")
    row = place.import_()[0]
    assert row["appended"] == 1 and row["damaged"] == [], row
    place.export("pi")
    assert texts(file) == ["go", "of the log"], texts(file)
    rows = {row["id"]: row for row in read(file)}
    own = rows[rows["aaaa0001"]["parentId"]]
    assert own["message"]["content"][0]["text"] == "go", own


CODEX = "22222222-2222-4222-8222-222222222222"


def codex_session(home):
    """A rollout that ends in an item of an answer: its counts never came."""
    def line(kind, **payload):
        return {"timestamp": TIME % 1, "type": kind, "payload": payload}

    def message(role, kind, text):
        return line("response_item", type="message", role=role,
                    content=[{"type": kind, "text": text}])
    write(home + "/sessions/2025/09/29/rollout-2025-09-29T10-00-01-" + CODEX +
          ".jsonl",
          line("session_meta", id=CODEX, timestamp=TIME % 1, cwd="/w",
               originator="o", cli_version="0"),
          message("user", "input_text", "go"),
          message("assistant", "output_text", "gone"))


def entries_follow_the_last_answer(work):
    """Codex 0.169 writes the counts of an answer after it; an entry that comes
    instead is a child of the answer, in every client."""
    place = Place(work, codex_session)
    place.append("then")
    place.export("pi")
    file = one(place.out + "/sessions/**/*.jsonl")
    assert texts(file) == ["go", "gone", "then"], texts(file)
    assert read(file)[-1]["message"]["role"] == "user", read(file)


def files_have_the_time_of_the_session(work):
    """Claude's SDK 0.3 and pi 0.73 sort sessions by the times of files."""
    place = Place(work, claude_session)
    run("agentwal", "--store", place.store, "export", "--dialect", "source",
        place.out)
    for dialect in ("claude", "pi"):
        place.export(dialect)
    files = glob.glob(place.out + "/**/*.jsonl", recursive=True)
    assert len(files) == 2, files
    for file in files:
        assert int(os.stat(file).st_mtime) == 1759140002, (file, os.stat(file))


def import_only_reads(work):
    """An import runs no program and writes nothing into a repository."""
    tree = work + "/tree"
    git = dict(os.environ, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b",
               GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
    subprocess.run(["git", "init", "-q", tree], check=True)
    subprocess.run(["git", "-C", tree, "commit", "-q", "--allow-empty", "-m",
                    "m"], check=True, env=git)

    def session(home):
        row = dict(claude_row(1, "user", "go"), cwd=tree)
        write(home + "/projects/-w/" + CLAUDE + ".jsonl", row)
    place = Place(work, session)
    assert not os.path.exists(tree + "/.git/opencode")
    assert place.sessions()[0]["projectId"] == tree, place.sessions()
    run("agentwal", "--store", place.store, "migrate")
    assert len(place.sessions()[0]["projectId"]) == 40, place.sessions()


def calls_are_shown(work):
    """Messages in the form of OpenAI have their calls in tool_calls."""
    place = Place(work, claude_session)
    entry = {"type": "message", "payload": {
        "role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {
                "name": "Glob", "arguments": "{\"pattern\":\"*.c\"}"}},
            {"id": "d", "type": "custom", "custom": {
                "name": "Patch", "input": "*** Begin"}}, 7]}}
    subprocess.run([os.path.join(TOOLS, "agentwal"), "--store", place.store,
                    "append", place.session],
                   input=json.dumps(entry).encode(), check=True,
                   capture_output=True)
    text = run("walcat", "--text", place.store, place.session).decode()
    assert '[call Glob {"pattern":"*.c"}]' in text, text
    assert "[call Patch *** Begin]" in text, text
    tree = run("walcat", "--tree", place.store, place.session).decode()
    assert "[call Glob" in tree, tree


def subagents_are_next_to_their_session(work):
    """Claude's SDK 0.3 lists subagents in the folder of the session that
    started them, whatever directory they worked in; OpenCode 1.0 shows sessions
    with a parentID below their parent; other clients have no place for them,
    and none for what no client wrote."""
    home, store = work + "/home/.claude", work + "/store"
    claude_session(home)
    write(home + "/projects/-w/" + CLAUDE + "/subagents/agent-abc.jsonl",
          dict(claude_row(3, "user", "sub"), isSidechain=True, cwd="/other",
               agentId="abc"))
    write(work + "/notes.jsonl", {"type": "note", "role": "user",
                                  "content": "not a session"})
    run("agentwal", "--store", store, "init")
    run("agentwal", "--store", store, "import", home, work + "/notes.jsonl")
    for dialect, expected in (("claude", 2), ("pi", 1), ("codex", 1)):
        out = work + "/" + dialect
        run("agentwal", "--store", store, "export", "--dialect", dialect, out)
        files = glob.glob(out + "/**/*.jsonl", recursive=True)
        assert len(files) == expected, files
    assert os.path.exists(work + "/claude/projects/-w/" + CLAUDE +
                          "/subagents/agent-abc.jsonl")
    out = work + "/opencode"
    run("agentwal", "--store", store, "export", "--dialect", "opencode", out)
    sessions = [json.load(open(path, encoding="utf-8")) for path in
                glob.glob(out + "/storage/session/*/*.json")]
    assert len(sessions) == 2, sessions
    parents = [row for row in sessions if "parentID" not in row]
    assert len(parents) == 1, sessions
    assert [row["parentID"] for row in sessions if "parentID" in row] == \
        [parents[0]["id"]], sessions


def subagents_name_their_session(work):
    """pi 0.73 shows a session below the one whose file its header names in
    parentSession, an absolute path; Codex 0.169 one whose source is a subagent
    below the thread that spawned it. Clients that cannot name it lose it."""
    home, store = work + "/home/.claude", work + "/store"
    claude_session(home)
    agent = {"isSidechain": True, "cwd": "/other", "agentId": "abc"}
    write(home + "/projects/-w/" + CLAUDE + "/subagents/agent-abc.jsonl",
          dict(claude_row(3, "user", "sub"), **agent),
          dict(claude_row(4, "assistant", "done", 3), **agent))
    agentwal = ("agentwal", "--store", store)
    run(*agentwal, "init")
    run(*agentwal, "import", home)
    names = (CLAUDE, CLAUDE + "~agent-abc")

    def export(dialect, name):
        """Exports to a relative path; returns the file and the losses."""
        row = rows_of(run(*agentwal, "export", "--json", "--dialect", dialect,
                          "--session", name, os.path.relpath(work + "/out")))[0]
        return (os.path.realpath(row["path"]),
                [loss for loss in row["losses"]
                 if loss["what"] == "parent session"])

    for dialect in ("pi", "codex"):
        above, below = [export(dialect, name) for name in names]
        assert above[1] == below[1] == [], (above, below)
        headers = [read(path)[0] for path in (above[0], below[0])]
        if dialect == "pi":
            assert "parentSession" not in headers[0], headers
            assert headers[1]["parentSession"] == above[0], headers
        else:
            meta = [header["payload"] for header in headers]
            assert meta[0]["source"] == "cli", meta
            assert meta[1]["source"] == {"subagent": {"thread_spawn": {
                "parent_thread_id": meta[0]["id"], "depth": 1}}}, meta
            assert "forked_from_id" not in meta[1], meta
        # It is the same file the next time, and brings nothing new.
        before = open(below[0], "rb").read()
        export(dialect, names[1])
        assert open(below[0], "rb").read() == before
    rows = rows_of(run(*agentwal, "import", "--json", work + "/out"))
    assert sum(row["appended"] for row in rows) == 0, rows
    # The client goes on from an entry of the view, which is known.
    path = export("pi", names[1])[0]
    first = [row for row in read(path) if row["type"] == "message"][0]["id"]
    write(path, pi_entry("aaaa0001", first, "instead"))
    rows = rows_of(run(*agentwal, "import", "--json", path))
    assert [row["damaged"] for row in rows] == [[]], rows
    export("pi", names[1])
    assert texts(path) == ["sub", "instead"], texts(path)
    for dialect in ("rollouts", "entries", "sdk", "spec11"):
        assert export(dialect, names[0])[1] == [], dialect
        assert export(dialect, names[1])[1] == [
            {"what": "parent session", "count": 1}], dialect
    for dialect in ("claude", "opencode"):
        assert export(dialect, names[1])[1] == [], dialect


def history_row(kind, **backups):
    """A snapshot of Claude's file checkpoints; each backup is of a file."""
    names = {path: {"backupFileName": name, "version": 1,
                    "backupTime": TIME % 1} for path, name in backups.items()}
    return {"type": kind, "messageId": uuid(1), "isSnapshotUpdate": False,
            "snapshot": {"messageId": uuid(1), "timestamp": TIME % 1,
                         "trackedFileBackups": names}}


def history_of(folder):
    """The backups below a folder: name and bytes."""
    return {path[len(folder) + 1:]: open(path, "rb").read() for path in
            glob.glob(folder + "/**/*", recursive=True) if os.path.isfile(path)}


def rewinding_finds_its_backups(work):
    """Claude's CLI 2.0 rewinds files from the backups that the transcript's
    snapshots name, in file-history/SESSION next to projects/: "backup missing"
    without them. They are written with the view, or their number is reported."""
    home, store = work + "/home/.claude", work + "/store"
    backups = {CLAUDE + "/aaaa@v1": b"int main;\nno newline",
               CLAUDE + "/aaaa@v2": bytes(range(256)),
               CLAUDE + "/bbbb@v1": b"",
               CLAUDE + "/cccc@v1": b'{"type":"session","id":"x"}\n'}
    write(home + "/projects/-w/" + CLAUDE + ".jsonl",
          claude_row(1, "user", "go"),
          history_row("file-history-snapshot", a="aaaa@v1", new=None),
          history_row("file-history-snapshot", a="aaaa@v2", b="bbbb@v1",
                      c="cccc@v1"),
          history_row("file-history-delta", a="aaaa@v2", d="lost@v1",
                      e="../../../outside", f="/etc/passwd", g="..", h=""))
    for name, data in backups.items():
        os.makedirs(home + "/file-history/" + CLAUDE, exist_ok=True)
        with open(home + "/file-history/" + name, "wb") as file:
            file.write(data)
    agentwal = ("agentwal", "--store", store)
    run(*agentwal, "init")

    def export(out, *more):
        rows = rows_of(run(*agentwal, "export", "--json", "--dialect",
                           "claude", *more, out))
        return [loss["count"] for row in rows for loss in row["losses"]
                if loss["what"] == "file backups"]

    # The import without --all-files leaves them out; what the folder has
    # already is not lost.
    run(*agentwal, "import", home)
    assert export(work + "/without") == [9], export(work + "/without")
    assert not os.path.exists(work + "/without/file-history")
    assert export(home) == [5], export(home)
    assert history_of(home + "/file-history") == backups
    # A later import brings them, and the next export writes them.
    run(*agentwal, "import", "--all-files", home)
    out = work + "/without"
    assert export(out) == [5]
    assert history_of(out + "/file-history") == backups
    # No file is restored that is older than its backup, so that must be old.
    assert {int(os.stat(out + "/file-history/" + path).st_mtime)
            for path in backups} == {1759140001}
    assert not os.path.exists(work + "/outside")
    before = {path: os.stat(path).st_mtime_ns for path in
              glob.glob(out + "/**/*", recursive=True)}
    assert export(out) == [5]
    assert before == {path: os.stat(path).st_mtime_ns for path in before}
    for all_files in ((), ("--all-files",)):
        rows = rows_of(run(*agentwal, "import", "--json", *all_files, out))
        assert sum(row["appended"] for row in rows) == 0, rows
    # A fork has the rows of its branch; the snapshots are on none.
    run(*agentwal, "fork", CLAUDE, "--id", "the-fork")
    assert export(work + "/fork", "--session", "the-fork") == []
    assert not os.path.exists(work + "/fork/file-history")
    # What somebody else wrote there stays, and is reported.
    path = out + "/file-history/" + CLAUDE + "/aaaa@v1"
    with open(path, "wb") as file:
        file.write(b"other")
    run(*agentwal, "export", "--dialect", "claude", "--session", CLAUDE, out,
        code=1)
    assert open(path, "rb").read() == b"other"
    # Nothing can be next to standard output.
    done = subprocess.run([os.path.join(TOOLS, "agentwal"), "--store", store,
                           "export", "--dialect", "claude", "--session", CLAUDE,
                           "--stdout"], capture_output=True, check=True)
    assert b"lost: 9 file backups" in done.stderr, done.stderr


def main():
    for rule in (subagents_are_next_to_their_session,
                 subagents_name_their_session, rewinding_finds_its_backups,
                 head_follows_the_client, head_goes_back_with_the_client,
                 answer_stays_in_the_branch,
                 moved_head_is_what_the_client_follows,
                 entries_follow_the_last_answer,
                 files_have_the_time_of_the_session, import_only_reads,
                 calls_are_shown):
        with tempfile.TemporaryDirectory() as work:
            rule(work)
            print(rule.__name__)


main()
