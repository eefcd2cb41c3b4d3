"""Processes: fork, kill -9, two writers, following another process, subinterpreters."""

from __future__ import annotations

import multiprocessing
import os
import signal
import textwrap
import threading
import time

import pytest

import agentwal
from conftest import LONG


def in_child(run):
    """The exit status of a child of fork that runs a function: 0, or 1 and what it raised."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text


def test_fork__handles_raise_forked_in_the_child(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create(id="s")
        session.append({"n": 1})
        entry, iterator, ticket = session[0], iter(session), session.submit({"n": 2})
        ticket.wait()

        def child():
            for call in (store.info, store.close, store.create, lambda: session.append({}),
                         lambda: list(session), session.info, lambda: next(iterator),
                         iterator.remaining, store.sync, lambda: session.documents.get("x"),
                         lambda: store.blobs.put(b"x")):
                with pytest.raises(agentwal.Forked) as caught:
                    call()
                assert caught.value.code == "WAL_EFORKED"
            assert entry.payload == {"n": 1} and not store.is_open
            assert ticket.wait(0).appended == 1
            with store:
                pass
            session.close()
            with agentwal.open(tmp_path / "store") as own:
                own.session("s").append({"by": "child"})

        in_child(child)
        assert session[-1].payload == {"by": "child"}
        session.append({"n": 3})


def test_fork__while_other_threads_call(tmp_path):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create()
        stop = threading.Event()

        def append():
            while not stop.is_set():
                session.append({"n": 1}, durability="written")
                session.info()

        threads = [threading.Thread(target=append) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                def child():
                    for call in (session.info, lambda: session.append({}), store.close):
                        with pytest.raises(agentwal.Forked):
                            call()

                in_child(child)
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_fork__child_that_ends_in_order_leaves_the_store_alone(tmp_path, run_python):
    program = textwrap.dedent("""
        import agentwal, os, sys
        store = agentwal.open(sys.argv[1])
        session = store.create(id="s")
        ticket = session.submit({"n": 1})
        child = os.fork()
        if child == 0:
            del ticket
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        session.append({"n": 2})
        store.close()
    """)
    done = run_python(program, tmp_path / "store", options=("-W", "ignore::DeprecationWarning"))
    assert done.stderr == ""
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) == 2


def append_in_process(path, number):
    with agentwal.open(path) as store:
        for n in range(20):
            store.session("s").append([number, n])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing__each_process_opens_the_store(tmp_path, method):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create(id="s")
        context = multiprocessing.get_context(method)
        processes = [context.Process(target=append_in_process, args=(tmp_path / "store", number))
                     for number in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
        assert len(session) == 60


CONTENDER = textwrap.dedent("""
    import agentwal, sys
    wins = conflicts = 0
    with agentwal.open(sys.argv[1]) as store:
        session = store.session("s")
        print("ready", flush=True)
        sys.stdin.readline()
        while len(session) < 150:
            tail = session.head()
            try:
                session.append({"by": sys.argv[2]}, expect_tail=tail)
                wins += 1
            except agentwal.Conflict as error:
                assert error.actual != tail
                conflicts += 1
    print(wins, conflicts)
""")


def test_expect_tail__of_two_processes(tmp_path, start_python):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create(id="s")
        processes = [start_python(CONTENDER, tmp_path / "store", name) for name in "ab"]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        wins = [int(process.communicate(timeout=60)[0].split()[0]) for process in processes]
        assert sum(wins) == len(session) and len(session) in (150, 151)
        assert [entry.depth for entry in session] == list(range(len(session)))


APPENDER = textwrap.dedent("""
    import agentwal, sys
    with agentwal.open(sys.argv[1]) as store:
        session, _ = store.open_or_create(id="s")
        number = len(session)
        while True:
            session.append({"n": number, "text": "x" * (number % 3000)})
            print(number, flush=True)
            number += 1
""")


def test_kill__acknowledged_entries_remain(tmp_path, start_python):
    acknowledged = -1
    for round_ in range(40 if LONG else 6):
        process = start_python(APPENDER, tmp_path / "store")
        process.stdout.readline()
        time.sleep(0.02 * (round_ + 1) % 0.15)
        process.send_signal(signal.SIGKILL)
        lines = process.communicate()[0].split("\n")
        acknowledged = max([acknowledged] + [int(line) for line in lines[:-1] if line])
        with agentwal.open(tmp_path / "store") as store:
            numbers = [entry.payload["n"] for entry in store.session("s")]
            assert store.info().tail in ("clean", "torn")
        assert numbers == list(range(len(numbers))) and len(numbers) > acknowledged


def test_follow__another_process(tmp_path, start_python):
    with agentwal.open(tmp_path / "store") as store:
        session = store.create(id="s")
        followed = session.follow("start", timeout=30)
        start_python(APPENDER, tmp_path / "store")
        for number in range(20):
            assert next(followed).payload["n"] == number


def test_lock__holder_of_a_session(tmp_path, start_python):
    program = textwrap.dedent("""
        import agentwal, os, sys
        with agentwal.open(sys.argv[1]) as store:
            session = store.session("s")
            session.claim()
            print(os.getpid(), flush=True)
            sys.stdin.readline()
    """)
    with agentwal.open(tmp_path / "store") as store:
        session = store.create(id="s")
        process = start_python(program, tmp_path / "store")
        holder = int(process.stdout.readline())
        with pytest.raises(agentwal.Claimed) as caught:
            session.claim()
        assert caught.value.holder == holder == process.pid
        assert [claim.process_id for claim in store.claims()] == [holder]
        process.kill()
        process.wait()
        session.claim()


IN_SUBINTERPRETER = textwrap.dedent("""
    import sys
    sys.path[:] = {path}
    import agentwal
    with agentwal.open({store}) as store:
        session = store.session("s")
        for number in range(20):
            session.append({{"number": number}})
            list(session)
        try:
            session.append(float("nan"))
        except agentwal.BadJSON:
            pass
    left_open = agentwal.open({store}).session("s")
""")

SUBINTERPRETERS = textwrap.dedent("""
    import sys, threading
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    import agentwal
    program = sys.argv[2].format(path=repr(sys.path), store=repr(sys.argv[1]))

    def run():
        # By one thread: Python 3.11 waits for the thread that imported threading.
        own = interpreters.create()
        interpreters.run_string(own, program)
        interpreters.destroy(own)

    with agentwal.open(sys.argv[1]) as store:
        session = store.create(id="s")
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(session) == 60, len(session)
        session.append({"after": True})
""")


def test_subinterpreters__each_has_its_own_module(tmp_path, run_python):
    done = run_python(SUBINTERPRETERS, tmp_path / "store", IN_SUBINTERPRETER)
    assert done.stderr == "", done.stderr


def test_fork__iterator_of_the_parent_gives_the_child_nothing(store):
    session = store.create(id="s")
    session.append_many({"n": n} for n in range(20))
    entries = iter(session)
    next(entries)

    def child():
        with pytest.raises(agentwal.Forked):
            next(entries)

    in_child(child)
    assert len(list(entries)) == 19
