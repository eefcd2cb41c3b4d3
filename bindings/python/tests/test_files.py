"""Checkpoints of files, rewinds, views, exports and imports."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

import agentwal
from agentwal import FileState

EXAMPLE = Path(__file__).resolve().parents[3] / "tools" / "example" / "session.jsonl"


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.txt").write_text("b\n")
    os.symlink("a.txt", root / "link")
    return root


def test_checkpoint__and_rewind(disk_store, tree):
    session = disk_store.create(cwd=tree)
    entry = session.append({"n": 1}).last_id
    info = session.checkpoints.create(["a.txt", "link", "new.txt"], id="before")
    assert (info.id, info.root, info.files, info.entry_id) == ("before", str(tree), 3, entry)
    session.append({"n": 2})
    (tree / "a.txt").write_text("one\nthree\nfour\n")
    (tree / "new.txt").write_text("new\n")
    (tree / "link").unlink()
    diff = session.checkpoints.diff("before")
    assert (diff.files, diff.insertions, diff.deletions) == (3, 3, 2)
    assert [change.path for change in diff.changes] == ["a.txt", "link", "new.txt"]
    assert session.rewind("before", dry_run=True).files_changed == 3
    assert (tree / "new.txt").exists()
    result = session.rewind("before", head=True)
    assert result.can_rewind and result.code is None and result.files_changed == 3
    assert (tree / "a.txt").read_text() == "one\ntwo\n" and not (tree / "new.txt").exists()
    assert os.readlink(tree / "link") == "a.txt" and session.head() == entry
    assert result.new_head == entry != result.previous_head
    assert session.rewind(result.undo).can_rewind
    assert (tree / "new.txt").read_text() == "new\n"


def test_checkpoint__list_get_and_delete(disk_store, tree):
    session = disk_store.create()
    session.checkpoints.create(tree / "a.txt", id="one", root=tree, entry=None)
    session.checkpoints.create([b"b.txt"], id="two", root=os.fsencode(tree))
    assert [info.id for info in session.checkpoints.list()] == ["one", "two"]
    [state] = session.checkpoints.files("one")
    assert state.path == "a.txt" and state.kind == "file" and state.size == 8
    assert disk_store.blobs.get(state.digest) == b"one\ntwo\n"
    assert session.checkpoints.get("one").entry_id is None
    assert session.checkpoints.get("missing") is None
    session.checkpoints.delete("one")
    assert session.checkpoints.get("one") is None
    with pytest.raises(agentwal.NotFound):
        session.checkpoints.files("one")
    with pytest.raises(agentwal.Invalid):
        session.checkpoints.create("a.txt")
    with pytest.raises(agentwal.OutsideRoot):
        session.checkpoints.create("../x", root=tree)
    with pytest.raises(agentwal.InvalidType):
        session.checkpoints.create([5], root=tree)


def test_checkpoint__paths_that_cannot_be_recorded(disk_store, tree):
    os.mkfifo(tree / "pipe")
    session = disk_store.create(cwd=tree)
    info = session.checkpoints.create(["pipe", "a.txt", "../x"], id="c")
    assert info.files == 1 and [state.path for state in session.checkpoints.files("c")] == ["a.txt"]
    assert [(issue.path, issue.code, issue.reason) for issue in info.unrecorded] == [
        ("../x", "WAL_EOUTSIDE", 'the path contains ".."'),
        ("pipe", "WAL_ENOTFILE", "is a device, socket or pipe")]
    assert session.checkpoints.get("c").unrecorded == ()
    with pytest.raises(agentwal.NotAFile):
        session.checkpoints.create(["a.txt", "pipe"], id="none", all_or_none=True)
    assert session.checkpoints.get("none") is None


def test_checkpoint__names_that_are_no_utf8(disk_store, tree):
    name = b"caf\xe9.txt"
    (Path(os.fsdecode(os.fsencode(tree) + b"/" + name))).write_text("x")
    session = disk_store.create(cwd=tree)
    session.checkpoints.create([name], id="c")
    [state] = session.checkpoints.files("c")
    assert os.fsencode(state.path) == name


def test_checkpoint__import_and_switch_off(disk_store, tree):
    session = disk_store.create(cwd=tree)
    digest = disk_store.blobs.put(b"imported\n")
    files = [FileState("x.txt", digest=digest, mode=0o755), FileState("gone", "absent")]
    info = session.checkpoints.import_files(files, id="i")
    assert info.files == 2
    states = {state.path: state for state in session.checkpoints.files("i")}
    assert states["x.txt"].mode == 0o755 and states["gone"].digest is None
    for wrong in ([FileState("x", "socket")], ["x"], [FileState("x", digest="zz")]):
        with pytest.raises(agentwal.Invalid):
            session.checkpoints.import_files(wrong)
    with pytest.raises(agentwal.NotFound):
        session.checkpoints.import_files([FileState("x", digest="0" * 64)])
    session.checkpoints.set_enabled(False)
    assert session.checkpoints.create("a.txt") is None
    result = session.rewind("i")
    assert not result.can_rewind and result.code == "WAL_ENOTFOUND" and result.error


def test_session_diff__first_and_last_state(disk_store, tree):
    session = disk_store.create(cwd=tree)
    session.checkpoints.create("a.txt")
    (tree / "a.txt").write_text("one\ntwo\nthree\n")
    session.checkpoints.create("a.txt")
    diff = session.diff()
    assert diff.insertions == 1 and diff.changes[0].content_changed
    assert not diff.changes[0].mode_changed and diff.changes[0].kind_after == "file"


def test_rewind__refuses_what_others_changed(disk_store, tree):
    session = disk_store.create(cwd=tree)
    session.checkpoints.create("a.txt", id="before")
    (tree / "a.txt").write_text("mine\n")
    session.checkpoints.create("a.txt", id="mine")
    (tree / "a.txt").write_text("theirs\n")
    result = session.rewind("before", expected="mine")
    assert not result.can_rewind and result.code == "WAL_ECHANGED"
    assert result.changed_elsewhere == 1 and result.changes[-1].changed_elsewhere
    assert session.rewind("before", expected="mine", force=True).can_rewind


# --------------------------------------------------------------- imports ---

def test_import__and_export_as_the_same_bytes(disk_store):
    result = disk_store.import_files(EXAMPLE)
    [report] = result.reports
    assert (result.sources, result.sessions, result.failed) == (1, 1, 0)
    assert report.kind == "file" and report.dialect == "pi" and report.error is None
    assert report.appended == result.appended > 0 and report.issues == ()
    session = disk_store.session(report.session_id)
    export = session.export(dialect="pi")
    assert export.data == EXAMPLE.read_bytes() and isinstance(export.losses, dict)
    again = disk_store.import_files([EXAMPLE])
    assert again.appended == 0 and again.duplicates == result.appended
    with pytest.raises(agentwal.NotFound):
        session.export(dialect="missing")


def test_import__of_folders(disk_store, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(EXAMPLE.read_bytes())
    (folder / "notes.txt").write_text("no session")
    scan = agentwal.scan_import(folder, select="all")
    assert scan.sources == 2 and set(scan.left_out) >= {"credentials", "settings"}
    seen = []
    result = disk_store.import_files([folder], select="all", on_progress=lambda *n: seen.append(n),
                                     project=lambda directory: "project of " + directory)
    assert result.sources == 2 and seen
    [info] = [info for info in disk_store.list() if info.cwd]
    assert info.project == "project of " + info.cwd
    with pytest.raises(agentwal.Invalid):
        disk_store.import_files(folder, select="some")
    with pytest.raises(agentwal.NotFound):
        disk_store.import_files(folder, dialect="missing")
    missing = disk_store.import_files(tmp_path / "missing")
    assert missing.failed == 1 and isinstance(missing.reports[0].error, agentwal.NotFound)


def test_import__exception_of_a_function_stops_it(disk_store):
    class Stop(Exception):
        pass

    def raise_stop(*arguments):
        raise Stop

    for functions in ({"project": raise_stop}, {"on_progress": raise_stop}):
        with pytest.raises(Stop):
            disk_store.import_files(EXAMPLE, **functions)
    for functions in ({"project": lambda directory: 5}, {"project": 5}, {"on_progress": "x"},
                      {"project": lambda directory: "x" * 100000}):
        with pytest.raises(agentwal.Invalid):
            disk_store.import_files(EXAMPLE, **functions)
    assert disk_store.import_files(EXAMPLE, project=lambda directory: None).failed == 0


def test_import__follow(disk_store, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "a.jsonl"
    lines = EXAMPLE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]))
    with disk_store.follow_import(folder, select="all") as followed:
        first = followed.next(10)
        assert first is not None and first.appended == 5
        assert followed.next(0) is None
        with path.open("ab") as file:
            file.write(b"".join(lines[5:]))
        second = next(iter(followed))
        assert second.appended == len(lines) - 5
        info = followed.info()
        assert info["folders"] >= 1 or info["is_scanning"]
    with pytest.raises(agentwal.Closed):
        followed.next(0)
    with pytest.raises(agentwal.Invalid):
        disk_store.follow_import(folder, project=5).next(0)


def test_import__follow_from_another_thread_is_busy(disk_store, tmp_path):
    followed = disk_store.follow_import(tmp_path)
    followed.next(0)
    waiter = threading.Thread(target=followed.next, args=(0.8,))
    waiter.start()
    outcomes = set()
    while waiter.is_alive():
        try:
            followed.info()
        except agentwal.Busy:
            outcomes.add("busy")
    waiter.join()
    assert "busy" in outcomes


# ----------------------------------------------------------------- views ---

def test_view__is_written_and_read_back(disk_store, tmp_path):
    root = tmp_path / "view"
    session = disk_store.create(cwd="/srv/app")
    session.append({"role": "user", "content": "Hello"})
    with session.view(dialect="claude", root=root) as view:
        result = view.flush()
        path = Path(view.path())
        assert result.replaced and result.lines == 1 and path.is_file()
        assert b"Hello" in path.read_bytes() and isinstance(view.losses(), dict)
        line = json.loads(path.read_bytes().splitlines()[-1])
        line.update(uuid="11111111-2222-3333-4444-555555555555", parentUuid=line["uuid"])
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        assert disk_store.find_view(path).session == session.id
        imported = view.import_changes()
        assert imported.appended == 1 and len(session) == 2 and view.issues() == []
    [info] = disk_store.views()
    assert (info.session, info.dialect, Path(info.root)) == (session.id, "claude", root)
    assert disk_store.update_view(info).entries == 2
    assert disk_store.views(stale=True) == []
    session.delete()
    [stale] = disk_store.views(stale=True)
    assert stale.deleted
    disk_store.update_view(stale)
    assert not path.exists()
    assert disk_store.find_view(path) is None


def test_view__wrong_arguments(disk_store, tmp_path):
    session = disk_store.create()
    with pytest.raises(agentwal.NotFound):
        session.view(dialect="missing", root=tmp_path)
    with pytest.raises(agentwal.Invalid):
        session.view(dialect="claude", root="")
    with pytest.raises(agentwal.InvalidType):
        session.view(dialect="claude", root=5)
    with pytest.raises(agentwal.InvalidType):
        disk_store.update_view("x")
    with pytest.raises(agentwal.NotFound):
        disk_store.add_view_root("claude", tmp_path / "missing")
    disk_store.add_view_root("claude", tmp_path)
    assert disk_store.views() == []
    with session.view(dialect="codex", root=tmp_path) as view:
        with pytest.raises(agentwal.Invalid):
            view.path("x")


def test_library__dialects_and_clients(monkeypatch, tmp_path):
    assert "claude" in agentwal.view_dialects() and "codex" in agentwal.import_dialects()
    monkeypatch.setenv("HOME", str(tmp_path))
    clients = agentwal.import_clients()
    assert {"Claude Code", "Codex"} <= {client.name for client in clients}
    assert any(str(client.folder).startswith(str(tmp_path)) for client in clients)
    monkeypatch.delenv("HOME")
    assert ("Claude Code", None) in {(client.name, client.folder)
                                     for client in agentwal.import_clients()}
    shutil.rmtree(tmp_path)
