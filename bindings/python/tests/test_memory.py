"""Memory: appends, reads, handles, errors and views in a loop take no more at the end."""

from __future__ import annotations

import gc
import os
import textwrap
import tracemalloc

import pytest

import agentwal
from conftest import LONG, SANITIZED

ENTRIES = 1000000 if LONG else 20000


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def private():
    """Resident bytes without maps of files."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
    return resident()


def grown(step, warm=3, rounds=6):
    """Bytes by which a step that is repeated lets Python's and all memory grow."""
    for _ in range(warm):
        step()
    gc.collect()
    tracemalloc.start()
    step()
    gc.collect()
    before, all_before = tracemalloc.get_traced_memory()[0], private()
    for _ in range(rounds):
        step()
    gc.collect()
    after, all_after = tracemalloc.get_traced_memory()[0], private()
    tracemalloc.stop()
    return after - before, all_after - all_before


def test_entries__appended_and_read(tmp_path):
    """Indexes of the library grow by some bytes for each entry: they are bounded."""
    with agentwal.open(tmp_path / "store") as store:
        session = store.create()
        payload = {"text": "x" * 500}
        session.append_many([payload] * 1000, durability="queued")
        before = private()
        for start in range(0, ENTRIES, 1000):
            for _ in range(500):
                session.append(payload, durability="written")
            session.append_many([payload] * 500, durability="queued")
        store.flush()
        count = 0
        for entry in session:
            assert entry.payload_size == 511
            count += 1
        assert count == ENTRIES + 1000
        assert SANITIZED or private() - before < 32 * 2 ** 20 + ENTRIES * 64


def steps(store, session):
    def read():
        for entry in session:
            entry.payload, entry.meta, entry.text, entry.payload_bytes, entry.payload_view

    def handles():
        for _ in range(100):
            with store.session(session.id) as own:
                own.info()
                next(iter(own))
                own[-3:]
                own.heads()
                own.documents.list()
        store.list()
        list(store.sessions())
        store.info()

    def errors():
        for call in (lambda: session.append(float("nan")), lambda: session.append({}, id=5),
                     lambda: session.append({"n": 2}, id="e0"), lambda: store.session("missing"),
                     lambda: session.append({}, expect_tail="x"), lambda: session.append("\ud800",
                                                                                         id="e0"),
                     lambda: session.update(lambda now: 1 / 0),
                     lambda: session.update(lambda now: {"title": 5}),
                     lambda: session.entries(up_to="missing").first(),
                     lambda: store.compact(on_progress=5)):
            for _ in range(50):
                with pytest.raises((agentwal.Error, ZeroDivisionError)):
                    call()

    def tickets():
        made = [session.submit({"n": 0, "text": ""}, id="e0", meta={"m": 0}) for _ in range(200)]
        for ticket in made:
            ticket.wait()
        for _ in range(200):
            session.submit({"n": 0, "text": ""}, id="e0", meta={"m": 0})
        store.sync()

    def cycles():
        for _ in range(200):
            entry, iterator = session[0], iter(session)
            entry.payload["self"] = [entry, iterator]

    return {"read": read, "handles": handles, "errors": errors, "tickets": tickets,
            "cycles": cycles}


@pytest.mark.parametrize("name", ["read", "handles", "errors", "tickets", "cycles"])
def test_loop__takes_no_more(store, session, name):
    session.append_many(agentwal.NewEntry({"n": n, "text": "x" * 3000 * (n > 0)}, id="e%d" % n,
                                          meta={"m": n}) for n in range(500))
    session.documents.put("key", {"a": 1})
    python, everything = grown(steps(store, session)[name])
    assert python < 20000
    assert SANITIZED or everything < 3 * 2 ** 20


def test_stores__opened_and_closed(tmp_path):
    def step():
        for _ in range(3):
            with agentwal.open(tmp_path / "store") as store:
                session, _ = store.open_or_create(id="s")
                session.append({"n": 0}, id="e0")
                list(session)

    python, everything = grown(step, rounds=10)
    assert python < 20000 and (SANITIZED or everything < 3 * 2 ** 20)
    assert len(os.listdir("/proc/self/fd")) < 64


def test_progress__function_stays_the_callers_without_memory(run_python):
    """Each allocation of a call fails in turn; the lists of unused lists are emptied before."""
    program = textwrap.dedent("""
        import _testcapi, sys, agentwal
        from agentwal import _wal

        store = agentwal.memory()
        failed = 0

        def progress(done, total):
            pass

        kept = [progress] * 100
        before = sys.getrefcount(progress)
        for number in range(1, 60):
            hold = [[] for _ in range(200)]
            _testcapi.set_nomemory(number, number + 1)
            try:
                _wal.store_compact(store._handle, (0, 0, 0, 0), progress)
            except MemoryError:
                failed += 1
            finally:
                _testcapi.remove_mem_hooks()
        assert failed > 2 and sys.getrefcount(progress) == before, (
            failed, sys.getrefcount(progress) - before)
    """)
    run_python(program)
