"""Threads: appends of many, closing meanwhile, one handle in two threads, the interpreter's
lock."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

import agentwal
from conftest import SANITIZED

THREADS = 64
APPENDS = 100 if SANITIZED else 1000


def run_threads(count, target):
    """Runs target(number) in threads; returns what they raised."""
    errors = []

    def run(number):
        try:
            target(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_append__64_threads_of_1000(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create()

        def append(number):
            own = session if number % 2 == 0 else store.session(session.id)
            for n in range(APPENDS):
                own.append([number, n], durability="written" if n % 100 else "durable")

        assert run_threads(THREADS, append) == []
        found = {number: [] for number in range(THREADS)}
        for entry in session:
            found[entry.payload[0]].append(entry.payload[1])
        assert all(numbers == list(range(APPENDS)) for numbers in found.values())
        assert store.info().syncs < THREADS * APPENDS


def test_expect_tail__of_two_threads_one_wins_each_time(store):
    session = store.create()
    wins = []

    def append(number):
        own = store.session(session.id)
        while len(session) < 200:
            try:
                own.append({"by": number}, expect_tail=own.head(), durability="written")
                wins.append(number)
            except agentwal.Conflict as error:
                assert error.actual and error.expectation == "tail"

    assert run_threads(4, append) == []
    assert len(wins) == len(session)
    assert [e.depth for e in session] == list(range(len(session)))


def test_one_session__slices_are_not_mixed_up(store):
    """Calls whose results hold until the next call of the same function: these are so large that
    copying them takes time, and are in memory that the next call frees."""
    session = store.create(id="s", title="x" * 100)
    texts = [letter * 400000 for letter in "abcd"]
    for text in texts:
        session.append(text, id=text[0], durability="queued")
        session.documents.put(text[0], text)
    store.flush()
    end = time.monotonic() + 2

    def read(number):
        for text in itertools.cycle(texts[number % 4:] + texts[:number % 4]):
            if time.monotonic() > end:
                return
            if number < 4:
                assert session.entry(text[0]).payload_bytes == b'"%s"' % text.encode()
            elif number < 8:
                assert session.documents.get(text[0]).value == text
            else:
                assert session.info().title == "x" * 100

    assert run_threads(9, read) == []


def test_close__while_other_threads_call(tmp_path):
    for _ in range(5):
        store = agentwal.open(tmp_path / "store")
        session = store.create()
        session.append_many(range(500))
        started = threading.Barrier(9)

        def work(number, store=store, session=session, started=started):
            own = store.session(session.id)
            started.wait()
            with pytest.raises(agentwal.Closed):
                while True:
                    if number % 4 == 0:
                        own.append({"n": 1}, durability="written")
                    elif number % 4 == 1:
                        list(own)
                    elif number % 4 == 2:
                        store.session(own.id).info()
                    else:
                        next(own.follow())

        closer = threading.Timer(0.05, store.close)
        workers = threading.Thread(target=lambda: results.append(run_threads(8, work)))
        results = []
        workers.start()
        started.wait()
        closer.start()
        workers.join()
        closer.join()
        assert results == [[]] and not store.is_open


def test_close__by_many_threads_at_once(tmp_path):
    store = agentwal.open(tmp_path / "store")
    store.create().append_many(range(1000), durability="queued")
    assert run_threads(8, lambda number: store.close()) == []
    with agentwal.open(tmp_path / "store") as store:
        assert store.list()[0].entries == 1000


def test_close__handles_dropped_meanwhile(tmp_path):
    for _ in range(10):
        store = agentwal.open(tmp_path / "store")
        session = store.create()
        for n in range(200):
            session.submit({"n": n})
        handles = [store.session(session.id) for _ in range(200)]
        handles += [iter(session) for _ in range(200)]
        del session
        dropper = threading.Thread(target=handles.clear)
        dropper.start()
        store.close()
        dropper.join()


def test_ticket__of_many_threads(session):
    ticket = session.submit({"n": 1})
    results = []
    assert run_threads(16, lambda number: results.append(ticket.wait(10))) == []
    assert len(results) == 16 and len(set(results)) == 1


def test_ticket__waited_for_while_the_store_is_closed(tmp_path):
    store = agentwal.open(tmp_path / "store")
    session = store.create()
    tickets = [session.submit({"n": n}) for n in range(200)]
    closer = threading.Thread(target=store.close)
    closer.start()
    assert all(ticket.wait(30).appended == 1 for ticket in tickets)
    closer.join()


def test_iterator__shared_by_threads_loses_nothing(session):
    session.append_many(range(5000))
    iterator = iter(session)
    found, busy = [], []

    def take(number):
        while True:
            try:
                entry = next(iterator, None)
            except agentwal.Busy as error:
                busy.append(error)
                continue
            if entry is None:
                return
            found.append(entry.payload)

    assert run_threads(4, take) == []
    assert sorted(found) == list(range(5000))


def test_submit__full_queue_is_busy(tmp_path):
    with agentwal.open(tmp_path / "store", queue_limit=1) as store:
        session = store.create()
        tickets, refused = [], 0
        while refused == 0 and len(tickets) < 10000:
            try:
                tickets.append(session.submit({"n": 1}, durability="queued", block=False))
            except agentwal.Busy as error:
                assert error.code == "WAL_EBUSY"
                refused += 1
        assert refused == 1 and tickets
        store.flush()
        assert len(session) == len(tickets)


def test_ticket__that_is_pending(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create()
        pending = 0
        while pending == 0:
            ticket = session.submit({"n": 1})
            try:
                ticket.wait(0)
            except agentwal.TimedOut as error:
                assert isinstance(error, TimeoutError) and error.code == "WAL_EBUSY"
                pending += 1
        assert ticket.wait(10).appended == 1


def test_interpreter_lock__is_released_while_a_call_waits(store):
    """Another thread runs while one waits in the library, and ends that wait."""
    session = store.create()
    found = []
    waiting = threading.Thread(
        target=lambda: found.append(next(session.follow(timeout=60), None)))
    waiting.start()
    for _ in range(50):
        time.sleep(0.001)
    session.append(1, id="last")
    waiting.join()
    assert found[0].id == "last"
