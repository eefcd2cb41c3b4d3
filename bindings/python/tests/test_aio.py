"""agentwal.aio: appends in flight, cancellation, closing, loops, forks, following."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import textwrap
import threading
import weakref

import pytest

import agentwal
from agentwal import aio
from agentwal.claude import AgentwalSessionStore
from agentwal.openai_agents import AgentwalSession
from test_processes import SUBINTERPRETERS, in_child


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


def test_commit__expects_the_sequence(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s")
            before = (await session.info()).last_sequence
            await session.append({"n": 1})
            for durability in "durable", "written":
                with pytest.raises(agentwal.Conflict) as caught:
                    await session.commit(entries=[{"n": 2}], expect_sequence=before,
                                         durability=durability)
                assert caught.value.expectation == "sequence"
            await session.commit(entries=[{"n": 2}],
                                 expect_sequence=(await session.info()).last_sequence)

    run(main())


def test_append__64_in_flight_keep_their_order(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s")
            futures = [session.append({"n": number}) for number in range(64)]
            results = await asyncio.gather(*futures)
            assert [result.appended for result in results] == [1] * 64
            assert [entry.payload["n"] async for entry in session] == list(range(64))
            assert await session.count() == 64

    run(main())


def test_append__that_waits_and_finds_no_memory_fails_alone(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s")
            await session.append({"n": 0})
            answers = [agentwal.Busy("the queue is full"), MemoryError()]

            def submit():
                raise answers.pop(0)

            submissions = store._submissions
            without = submissions.add(submit, 0)
            later = session.append({"n": 1})
            with pytest.raises(MemoryError):
                await without
            assert (await later).appended == 1

    run(main())


def test_append__takes_no_thread(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create()
            before = threading.active_count()
            seen = set()
            for _ in range(20):
                futures = [session.append({"n": 1}) for _ in range(64)]
                seen.add(threading.active_count())
                await asyncio.gather(*futures)
            assert seen == {before}

    run(main())


def test_append__full_queue_does_not_block_the_loop(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store", queue_limit=4) as store:
            session = await store.create()
            futures = [session.append({"n": number}) for number in range(500)]
            queued = [session.append({"n": number}, durability="queued")
                      for number in range(500, 600)]
            await asyncio.gather(*futures, *queued)
            await store.flush()
            assert [entry.payload["n"] async for entry in session] == list(range(600))

    run(main())


def test_append__durabilities_are_mixed(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create()
            kinds = ("durable", "written", "queued")
            futures = [session.append(number, durability=kinds[number % 3])
                       for number in range(90)]
            results = await asyncio.gather(*futures)
            assert all(result.last_id for result in results)
            await store.sync()
            assert [entry.payload async for entry in session] == list(range(90))

    run(main())


def test_append__many_and_commit(tmp_path):
    async def main():
        async with aio.memory() as store:
            session = await store.create()
            assert (await session.append_many([1, 2, 3])).appended == 3
            await session.commit(entries=[4], heads=[agentwal.HeadMove(None, name="x")],
                                 documents=[agentwal.DocumentChange("key", {"a": 1})])
            assert (await session.run(lambda s: s.documents.get("key").value)) == {"a": 1}
            with pytest.raises(agentwal.Invalid):
                session.commit(expect_version=1)

    run(main())


def test_append__failures_are_raised_by_their_future(tmp_path):
    async def main():
        async with aio.memory() as store:
            session = await store.create()
            first = session.append({"n": 1}, id="a")
            same = session.append({"n": 1}, id="a")
            other = session.append({"n": 2}, id="a")
            conflict = session.append({"n": 3}, expect_tail="nothing")
            last = session.append({"n": 4})
            assert (await first).appended == 1 and (await same).duplicates == 1
            with pytest.raises(agentwal.Exists):
                await other
            with pytest.raises(agentwal.Conflict) as caught:
                await conflict
            assert caught.value.actual == "a"
            assert (await last).appended == 1

    run(main())


def test_append__wrong_arguments_are_raised_by_the_call(tmp_path):
    async def main():
        async with aio.memory() as store:
            session = await store.create()
            for payload, kind in ((float("nan"), agentwal.BadJSON),
                                  (object(), agentwal.InvalidType),
                                  ({"a": b"\xff"}, agentwal.InvalidType)):
                with pytest.raises(kind):
                    session.append(payload)
            with pytest.raises(agentwal.Invalid):
                session.append({}, durability="soon")
            with pytest.raises(agentwal.BadJSON):
                await session.append(text=b"\xff")
            with pytest.raises(agentwal.InvalidType):
                session.append_many("text")
            assert await session.count() == 0

    run(main())
    with pytest.raises(agentwal.InvalidType):
        asyncio.run(wrapped("path"))


async def wrapped(thing):
    return aio.Store(thing)


# ------------------------------------------------------- cancellation ---

def test_cancel__the_append_happens_as_a_whole_and_others_go_on(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store", queue_limit=8) as store:
            session = await store.create(id="s")
            futures = [session.append({"n": number}, id="e%d" % number)
                       for number in range(200)]
            for future in futures[::2]:
                future.cancel()
            results = await asyncio.gather(*futures, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])
            assert all(result.appended == 1 for result in results[1::2])
            again = await asyncio.gather(*(session.append({"n": number}, id="e%d" % number)
                                           for number in range(200)))
            assert all(result.appended + result.duplicates == 1 for result in again)
            numbers = sorted([entry.payload["n"] async for entry in session.entries(mode="all")])
            assert numbers == list(range(200))

    run(main())


def test_cancel__leaks_nothing(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create()
            references = []
            for _ in range(50):
                future = session.append({"n": 1})
                references.append(weakref.ref(future))
                future.cancel()
            del future
            await session.append({"last": True})
            await asyncio.sleep(0)
            gc.collect()
            assert [reference() for reference in references] == [None] * 50

    run(main())


def test_cancel__of_a_task_that_appends_and_of_opening(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s")

            async def append():
                while True:
                    await session.append({"n": 1})

            tasks = [asyncio.create_task(append()) for _ in range(16)]
            await asyncio.sleep(0.02)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await session.append({"after": True})
        opening = asyncio.create_task(aio.open(tmp_path / "other")._open())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    run(main())
    with agentwal.open(tmp_path / "store") as store:
        assert store.session("s")[-1].payload == {"after": True}
    # Without a handle that was left open nothing waits for the lock.
    with agentwal.open(tmp_path / "other", lock_timeout=1):
        pass


def test_cancel__of_close_completes_it(tmp_path):
    async def main():
        store = await aio.open(tmp_path / "store")
        session = await store.create(id="s")
        futures = [session.append({"n": number}) for number in range(100)]
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await store.close()
        assert all([(await future).appended == 1 for future in futures])

    run(main())
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) == 100


# ------------------------------------------------------------ closing ---

def test_close__with_appends_pending_completes_them(tmp_path):
    async def main():
        store = await aio.open(tmp_path / "store", queue_limit=16)
        session = await store.create(id="s")
        futures = [session.append({"n": number}) for number in range(300)]
        await store.close()
        await store.close()
        assert [future.result().appended for future in futures] == [1] * 300
        assert not store.is_open
        for call in (lambda: session.append({}), lambda: session.append_many([1]),
                     lambda: session.commit(entries=[1])):
            with pytest.raises(agentwal.Closed):
                call()
        for call in (store.info, store.create, store.list, store.flush, session.info,
                     session.head, session.count):
            with pytest.raises(agentwal.Closed):
                await call()
        with pytest.raises(agentwal.Closed):
            await anext(session.entries())
        with pytest.raises(agentwal.Closed):
            await anext(store.follow())

    run(main())
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) == 300


def test_close__without_an_append_and_by_the_blocking_store(tmp_path):
    async def main():
        store = await aio.open(tmp_path / "store")
        assert "store" in repr(store) and store.is_open
        await store.close()
        assert "closed" in repr(store)
        store = await aio.open(tmp_path / "store")
        session = await store.create()
        pending = [session.append({"n": 1}) for _ in range(10)]
        store.blocking.close()
        await store.close()
        assert [future.result().appended for future in pending] == [1] * 10

    run(main())


def test_close__ends_those_that_follow(tmp_path):
    async def main():
        store = await aio.open(tmp_path / "store")
        session = await store.create()

        async def follow(source):
            async for _ in source:
                pass

        tasks = [asyncio.create_task(follow(source)) for source in
                 (session.follow(), store.follow(), store.follow(durability="durable"))]
        await asyncio.sleep(0.05)
        await store.close()
        for task in tasks:
            with pytest.raises(agentwal.Closed):
                await task

    run(main())


# -------------------------------------------------------------- loops ---

def test_loops__two_threads_each_have_a_store(tmp_path):
    def work(number):
        async def main():
            async with aio.open(tmp_path / "store") as store:
                session, _ = await store.open_or_create(id="s")
                await asyncio.gather(*(session.append([number, n]) for n in range(100)))

        run(main())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with agentwal.open(tmp_path / "store") as store:
        found = [tuple(entry.payload) for entry in store.session("s").entries(mode="all")]
    assert sorted(found) == [(number, n) for number in range(2) for n in range(100)]


def test_loops__another_one_is_refused(tmp_path):
    async def main():
        async with aio.memory() as store:
            session = await store.create()
            refused = []

            async def use():
                for call in (lambda: session.append({}), lambda: session.commit(entries=[1])):
                    with pytest.raises(agentwal.Invalid, match="another event loop"):
                        call()
                for call in (store.info, store.close):
                    with pytest.raises(agentwal.Invalid, match="another event loop"):
                        await call()
                refused.append(True)

            def no_loop():
                with pytest.raises(agentwal.Invalid, match="another event loop"):
                    session.append({})
                asyncio.run(use())

            await asyncio.get_running_loop().run_in_executor(None, no_loop)
            assert refused == [True] and await session.count() == 0

    run(main())


def test_loops__closed_with_appends_pending(tmp_path):
    loop = asyncio.new_event_loop()
    store = loop.run_until_complete(aio.open(tmp_path / "store")._open())
    session = loop.run_until_complete(store.create(id="s"))

    async def submit():
        return [session.append({"n": number}) for number in range(50)]

    futures = loop.run_until_complete(submit())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    with pytest.raises(agentwal.Invalid, match="another event loop"):
        session.append({})
    asyncio.run(store.close())
    del futures
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) == 50


@pytest.mark.parametrize("queue_limit", [0, 2])
def test_fork__the_child_is_refused(tmp_path, queue_limit):
    async def main():
        async with aio.open(tmp_path / "store", queue_limit=queue_limit) as store:
            session = await store.create(id="s")
            pending = [session.append({"n": number}) for number in range(20)]

            def child():
                with pytest.raises(agentwal.Forked):
                    session.append({})

                async def in_loop():
                    with pytest.raises(agentwal.Forked):
                        session.append({})
                    for call in (store.info, store.close, session.info):
                        with pytest.raises(agentwal.Forked):
                            await call()
                    async with aio.open(tmp_path / "store") as own:
                        await (await own.session("s")).append({"by": "child"})

                asyncio.run(in_loop())

            in_child(child)
            await asyncio.gather(*pending)
            await session.append({"after": os.getpid()})
            assert await session.count() == 22

    run(main())


# ------------------------------------------------ reading, the executor ---

def test_follow__entries_as_they_are_appended(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s")
            await session.append(0)

            async def write():
                for number in range(1, 20):
                    await session.append(number)
                    await asyncio.sleep(0.001)

            task = asyncio.create_task(write())
            found = []
            async for entry in session.follow("start", timeout=30):
                found.append(entry.payload)
                if len(found) == 20:
                    break
            assert found == list(range(20))
            await task
            assert [entry async for entry in session.follow(timeout=0.01)] == []
            assert [number async for number in store.follow(timeout=0.01)] == []
            newest = [number async for number in store.follow(0, timeout=0.01)]
            assert len(newest) == 1 and newest[0] >= 20

    run(main())


def test_follow__many_share_a_thread_that_ends(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s")
            waiting = [asyncio.create_task(anext(session.follow())) for _ in range(50)]
            while sum(len(each._waiting) for each in store._waiters.values()) < 50:
                await asyncio.sleep(0.001)
            [thread] = [thread for thread in threading.enumerate()
                        if thread.name == "agentwal-follow"]
            await session.append({"n": 1})
            entries = await asyncio.gather(*waiting)
            assert [entry.payload for entry in entries] == [{"n": 1}] * 50
            await asyncio.to_thread(thread.join)

    run(main())


def test_follow__what_the_thread_found_is_not_overtaken(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = store.blocking.create(id="s")
            last = store.blocking.info().last_sequence
            woken = []
            first = store._wait(last, agentwal._wal.WRITTEN)
            first.add_done_callback(lambda _: woken.append(1))
            session.append({"n": 1})
            for thread in threading.enumerate():
                if thread.name == "agentwal-follow":
                    thread.join(30)  # It found the entry; the loop does not know yet.
            second = store._wait(last, agentwal._wal.WRITTEN)
            second.add_done_callback(lambda _: woken.append(2))
            await asyncio.gather(first, second)
            assert woken == [1, 2]

    run(main())


def test_run__calls_of_the_blocking_objects(tmp_path):
    async def main():
        async with aio.open(tmp_path / "store") as store:
            session = await store.create(id="s", title="T", cwd=tmp_path)
            first = (await session.append({"n": 1})).last_id
            assert (await session.info()).title == "T"
            assert await session.head() == first
            assert (await session.entry(first)).payload == {"n": 1}
            fork = await session.fork(at=first, id="f")
            assert await fork.move_head(None) == first and await fork.head() is None
            await session.run(agentwal.Session.redact, first, "reason")
            with pytest.raises(agentwal.Redacted):
                await session.entry(first)
            assert (await store.run(agentwal.Store.compact, dry_run=True)) is not None
            assert [info.id for info in await store.list(prefix="f")] == ["f"]
            assert (await store.latest(cwd=tmp_path)).id in ("s", "f")
            assert (await store.info()).sessions == 2
            with pytest.raises(agentwal.NotFound):
                await store.session("unknown")
            await fork.close()
            with pytest.raises(agentwal.Closed):
                fork.append({})
        async with aio.noop() as store:
            assert (await (await store.create()).append({})).appended == 1
        with pytest.raises(agentwal.NotAStore):
            await aio.open(tmp_path / "none", create=False)

    run(main())


# -------------------------------------- pickling, the end, subinterpreters ---

def test_pickle__is_refused_with_a_sentence():
    async def main():
        async with aio.memory() as store:
            session = await store.create()
            for thing in (store, session, AgentwalSessionStore(store.blocking),
                          AgentwalSession(store.blocking)):
                for refuse in (pickle.dumps, copy.copy, copy.deepcopy):
                    with pytest.raises(agentwal.InvalidType, match="cannot be pickled"):
                        refuse(thing)

    run(main())


LEFT_OPEN = textwrap.dedent("""
    import asyncio, sys
    from agentwal import aio
    from agentwal.claude import AgentwalSessionStore
    from agentwal.openai_agents import AgentwalSession

    async def main():
        global store, session, claude, openai, futures
        store = await aio.open(sys.argv[1])
        session = await store.create(id="s")
        futures = [session.append({"n": number}) for number in range(100)]
        claude = AgentwalSessionStore(sys.argv[1])
        await claude.append({"project_key": "p", "session_id": "c"}, [{"type": "x"}])
        openai = AgentwalSession(sys.argv[1], session_id="o")
        await openai.add_items([{"role": "user"}])
        asyncio.create_task(anext(session.follow()))
        await asyncio.sleep(0.02)
        END

    asyncio.run(main())
""")


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "session.itself = futures; return",
                                 "asyncio.get_running_loop().stop()"])
def test_exit__with_everything_open(tmp_path, run_python, end):
    done = run_python(LEFT_OPEN.replace("END", end), tmp_path / "store", check=False)
    assert done.returncode == (1 if "stop" in end else 0), done.stderr
    assert "Fatal" not in done.stderr
    with agentwal.open(tmp_path / "store") as store:
        assert len(store.session("s")) == 100 and store.info().tail == "clean"
        assert len(store.session("c").entries(mode="all")) == 1
        assert len(store.session("openai/o")) == 1


def test_exit__with_coroutines_that_were_never_awaited(run_python):
    program = "from agentwal import aio\nopening = aio.open('store')\ncoroutine = opening._open()"
    done = run_python(program)
    assert "never awaited" in done.stderr and "Error" not in done.stderr


def test_modules__are_imported_by_their_first_use(run_python):
    run_python("import agentwal; agentwal.aio.open; agentwal.claude; agentwal.openai_agents\n"
               "assert not hasattr(agentwal, 'other')")


# asyncio of Python 3.11 itself does not work in several subinterpreters at a time.
IN_SUBINTERPRETER = textwrap.dedent("""
    import sys
    sys.path[:] = {path}
    import agentwal.aio, agentwal.claude, agentwal.openai_agents
    with agentwal.open({store}) as store:
        for n in range(20):
            store.session("s").append({{"n": n}})
    try:
        agentwal.aio.Store(agentwal.memory())
    except RuntimeError:  # no loop runs
        pass
""")


def test_subinterpreters__import_the_modules(tmp_path, run_python):
    done = run_python(SUBINTERPRETERS, tmp_path / "store", IN_SUBINTERPRETER,
                      options=("-W", "ignore::ResourceWarning"))
    assert done.stderr == "", done.stderr
