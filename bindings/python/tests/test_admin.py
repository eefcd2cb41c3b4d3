"""Opening, compaction, backup, transfer, salvage, damage."""

from __future__ import annotations

import math
import os
import signal
import threading
from pathlib import Path

import pytest

import agentwal


def fill(store, sessions=3, entries=40, size=2000):
    made = []
    for number in range(sessions):
        session = store.create(id="s%d" % number)
        session.append_many(({"n": n, "text": "%d" % n * size} for n in range(entries)),
                            durability="queued")
        made.append(session)
    store.sync()
    return made


def test_open__kinds_of_stores(tmp_path):
    path = tmp_path / "store"
    with pytest.raises(agentwal.NotAStore) as caught:
        agentwal.open(path, create=False)
    assert caught.value.code == "WAL_ENOTSTORE"
    with agentwal.open(path) as store:
        assert store.is_open and store.path == str(path) and "closed" not in repr(store)
        store.create(id="a").append({"n": 1})
        with pytest.raises(agentwal.Exists):
            agentwal.open(os.fsencode(path), exclusive=True)
        with agentwal.open(str(path)) as other:
            assert len(other.session("a")) == 1
    assert not store.is_open and "closed" in repr(store)
    with agentwal.open(path, read_only=True) as store:
        assert len(store.session("a")) == 1
        with pytest.raises(agentwal.ReadOnly):
            store.create()
    with agentwal.open(path, pread=True, strict=True) as store:
        assert [e.payload for e in store.session("a")] == [{"n": 1}]
    with agentwal.noop() as store:
        store.create(id="x").append({"n": 1})
    with agentwal.memory() as store:
        store.create().append({"n": 1})
        assert store.path == "" and len(store.list()) == 1


def test_info__of_a_store(disk_store):
    [session] = fill(disk_store, sessions=1)
    info = disk_store.info()
    assert info.status is None and info.queue_status is None and info.tail == "clean"
    assert info.sessions == 1 and info.last_sequence == session[-1].sequence
    assert len(info.uuid) == 36 and info.log_bytes > 80000


def test_compact__gives_space_back_and_reports(disk_store):
    sessions = fill(disk_store, sessions=4, entries=600, size=1000)
    sessions[0].delete()
    sessions[1].trash()
    dry = disk_store.compact(dry_run=True)
    spaces = {space.id: space for space in dry.sessions}
    assert spaces["s0"].deleted and spaces["s0"].reclaimable_bytes > 0
    assert spaces["s2"].own_bytes > 600000 and dry.dead_bytes > 0
    seen = []
    result = disk_store.compact(empty_trash=True, rate=math.inf,
                                on_progress=lambda done, total: seen.append((done, total)))
    assert result.rewritten > 0 and result.bytes_after < result.bytes_before
    assert result.refusals == () and result.refused == 0 and result.sessions == ()
    assert seen and seen[-1][0] == seen[-1][1]
    assert len(disk_store.session("s2")) == 600 and disk_store.list(trash=True) == []
    for wrong in ({"rate": "x"}, {"rate": 0}, {"rate": math.nan}, {"dead_percent": -1},
                  {"max_bytes": "x"}, {"on_progress": 5}, {"erase": True, "keep_deltas": True}):
        with pytest.raises(agentwal.Invalid):
            disk_store.compact(**wrong)


def test_compact__exception_of_a_function_stops_it(disk_store):
    class Stop(Exception):
        pass

    def progress(done, total):
        raise Stop(done, total)

    sessions = fill(disk_store, sessions=4, entries=600, size=1000)
    sessions[0].delete()
    with pytest.raises(Stop):
        disk_store.compact(on_progress=progress)
    assert len(sessions[1]) == 600
    disk_store.compact(rate=math.inf)
    assert len(sessions[1]) == 600


def test_backup__interrupt_stops_it(disk_store, tmp_path):
    fill(disk_store, sessions=3, entries=600, size=1000)
    seen = []

    def interrupt(done, total):
        seen.append(done)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        disk_store.backup(tmp_path / "copy", on_progress=interrupt)
    assert seen
    result = disk_store.backup(tmp_path / "copy")
    assert result.segments > 0 and result.last_sequence == disk_store.info().last_sequence
    assert disk_store.backup(tmp_path / "copy").copied <= 1
    with agentwal.open(tmp_path / "copy", read_only=True) as copy:
        assert len(copy.session("s2")) == 600


def test_import__interrupt_of_the_library_stops_it(disk_store, tmp_path):
    path = tmp_path / "lines.jsonl"
    line = '{"type":"user","text":"%s"}\n' % ("x" * 500)
    path.write_text(line * 60000)
    timer = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        result = disk_store.import_files(path, select="all")
        # It returned before: an interrupt that is handled afterwards is none of it.
        assert result.appended < 60000
    timer.join()
    assert sum(info.entries for info in disk_store.list()) < 60000


def test_merge__and_bundles(disk_store, tmp_path):
    fill(disk_store)
    disk_store.documents.put("d", 1)
    with agentwal.open(tmp_path / "other") as other:
        result = other.merge(disk_store, sessions=["s1"])
        assert result.created == 1 and [r.session_id for r in result.reports] == ["s1"]
        assert result.reports[0].kind == "created" and result.reports[0].error is None
        other.session("s1").append({"n": "there"})
        other.create(id="s2").append({"n": "other"})
        seen = []
        result = other.merge(disk_store, on_progress=lambda *n: seen.append(n))
        assert (result.created, result.refused, result.unchanged) == (1, 1, 1)
        [refused] = [r for r in result.reports if r.kind == "refused"]
        assert refused.session_id == "s2" and isinstance(refused.error, agentwal.Error)
        assert other.documents.get("d").value == 1 and seen
        with pytest.raises(agentwal.NotFound) as caught:
            other.merge(disk_store, sessions=["missing"])
        assert caught.value.actual == "missing"
        with pytest.raises(agentwal.Invalid):
            other.merge(other)
        for wrong in ("s1", [5], 5):
            with pytest.raises(TypeError):
                other.merge(disk_store, sessions=wrong)
        with pytest.raises(agentwal.InvalidType):
            other.merge("store")


def test_merge__keeps_both(disk_store, tmp_path):
    disk_store.create(id="s").append({"n": 1})
    with agentwal.open(tmp_path / "other") as other:
        other.merge(disk_store)
        disk_store.session("s").append({"n": "here"})
        there = other.session("s")
        there.append({"n": "there"})
        result = other.merge(disk_store, keep_both=True, branch_name="host")
        [report] = result.reports
        assert (result.refused, result.branched) == (0, 1)
        assert (report.kind, report.branch_id, report.entries) == ("branched", "s@host", 1)
        assert [entry.payload["n"] for entry in there.entries()] == [1, "there"]
        branch = other.session("s@host")
        assert [entry.payload["n"] for entry in branch.entries()] == [1, "here"]
        assert branch.info().is_fork and not branch.info().is_moved
        disk_store.write_bundle(tmp_path / "both.bundle")
        result = other.read_bundle(tmp_path / "both.bundle", keep_both=True, branch_name="host")
        assert (result.unchanged, result.reports[0].branch_id) == (1, "s@host")
        with pytest.raises(agentwal.TooBig):
            other.merge(disk_store, keep_both=True, branch_name="x" * 300)
        with pytest.raises(TypeError):
            other.merge(disk_store, keep_both=True, branch_name=5)


def test_bundle__written_and_read(disk_store, tmp_path):
    fill(disk_store)
    path = tmp_path / "sessions.bundle"
    result = disk_store.write_bundle(path, sessions=("s0", "s1"))
    assert result.created == 2 and result.bytes == path.stat().st_size
    assert agentwal.is_bundle(path) and not agentwal.is_bundle(__file__)
    with pytest.raises(agentwal.Exists):
        disk_store.write_bundle(path)
    with agentwal.memory() as other:
        result = other.read_bundle(path, sessions=["s1"], directory=tmp_path)
        assert result.created == 1 and len(other.session("s1")) == 40
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with agentwal.memory() as other:
        with pytest.raises(agentwal.Corrupt):
            other.read_bundle(tmp_path / "damaged")
        assert other.list() == []


def damage(path: Path, marker: bytes) -> None:
    """Flips a byte of the payload that has the marker."""
    for file in filter(Path.is_file, path.rglob("*")):
        data = bytearray(file.read_bytes())
        place = data.find(marker)
        if place >= 0:
            data[place] ^= 0x20
            file.write_bytes(data)
            return
    raise AssertionError("no file has the marker")


def test_damage__is_raised_where_it_is_and_iteration_goes_on(tmp_path):
    path = tmp_path / "store"
    with agentwal.open(path) as store:
        session = store.create(id="s")
        for number in range(100):
            session.append({"n": number, "text": "m%04d" % number}, durability="written")
    damage(path, b"m0050")
    with agentwal.open(path, read_only=True) as store:
        numbers, errors = [], []
        iterator = iter(store.session("s"))
        while True:
            try:
                numbers.append(next(iterator).payload["n"])
            except agentwal.Corrupt as error:
                errors.append(error)
            except StopIteration:
                break
        assert len(errors) == 1 and numbers == [n for n in range(100) if n != 50]
        assert errors[0].file and errors[0].offset > 0 and isinstance(errors[0], agentwal.Damaged)
    seen = []
    result = agentwal.salvage(path, tmp_path / "sound", on_progress=lambda *n: seen.append(n))
    assert result.losses > 0 and result.reports and seen
    assert result.reports[0].kind in {"range", "entry"}
    with agentwal.open(tmp_path / "sound") as store:
        assert len(store.session("s")) == 99
    with pytest.raises(agentwal.Exists):
        agentwal.salvage(path, tmp_path / "sound")


def test_migrate__of_a_store_that_has_the_version(tmp_path):
    agentwal.open(tmp_path / "store").close()
    result = agentwal.migrate(tmp_path / "store")
    assert result.from_version == result.to_version and result.sessions == 0
    with pytest.raises(agentwal.NotAStore):
        agentwal.migrate(tmp_path / "missing")


def test_errors__are_all_reachable_and_pickle():
    import pickle
    from agentwal import _errors
    codes = set()
    for status, (code, kind) in _errors.STATUSES.items():
        error = _errors.make_error(status, "text", 5, 7, 4, 9, "file", "actual")
        assert type(error) is kind and error.code == code and str(error) == "text"
        copy = pickle.loads(pickle.dumps(error))
        assert vars(copy) == vars(error) and str(copy) == "text"
        assert getattr(agentwal, kind.__name__) is kind
        codes.add(code)
    assert len(codes) == 37 == -min(_errors.STATUSES)
    assert _errors.make_error(-99, "text").code == "WAL_E99"


def test_interrupt__of_a_wait(store):
    session = store.create()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(session.follow())
    timer.join()
    session.append({"n": 1})
