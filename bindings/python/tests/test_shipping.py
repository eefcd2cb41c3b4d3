"""durability="cluster": appends that wait until the remote has them, with a process that ships."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import agentwal
from agentwal import aio
from agentwal.claude import AgentwalSessionStore

BUILD = Path(os.environ.get("AGENTWAL_BUILD")
             or Path(__file__).resolve().parents[3] / "build" / "gcc")
TOOL = Path(os.environ.get("WALBIN") or BUILD / "bin") / "agentwal"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def agentwal_tool(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=120)
    if "built without libcurl" in done.stderr:
        pytest.skip("the tool has no remotes")
    assert done.returncode == 0, done.stderr
    return done.stdout


class Remote:
    """A remote in a directory, and a process that ships the store to it."""

    def __init__(self, path):
        self.path = path
        self.store = path / "store"
        self.bucket = path / "bucket"
        self.process = None
        self.bucket.mkdir()
        agentwal_tool("--store", self.store, "create", "--id", "s")
        agentwal_tool("--store", self.store, "remote", "add", self.url)

    @property
    def url(self):
        return "file://%s" % self.bucket

    def start(self):
        self.process = subprocess.Popen(
            [TOOL, "--store", self.store, "remote", "push", "--follow"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        assert self.process.stdout.readline().startswith("shipping to ")

    def stop(self):
        """It ships, and stores nothing: all its threads are stopped on return."""
        self.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: set(self._thread_states()) == {"T"})

    def _thread_states(self):
        for stat in Path("/proc/%d/task" % self.process.pid).glob("*/stat"):
            yield stat.read_text().rpartition(")")[2].split()[0]

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def pull(self, *options):
        """The payloads that another machine gets."""
        copy = self.path / "copy"
        agentwal_tool("remote", "pull", *options, self.url, copy)
        with agentwal.open(copy, read_only=True) as store:
            return [entry.payload for entry in store.session("s")]


@pytest.fixture
def remote(tmp_path):
    made = Remote(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def session(remote):
    with agentwal.open(remote.store) as store:
        yield store.session("s")


@pytest.fixture
def shipped(remote):
    remote.start()
    return remote


def payloads(session):
    return [entry.payload for entry in session]


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class Call(threading.Thread):
    """A call in another thread, which has an outcome in the end."""

    def __init__(self, function, *arguments, **options):
        super().__init__(daemon=True)
        self.result = self.error = None
        self._call = lambda: function(*arguments, **options)
        self.start()

    def run(self):
        try:
            self.result = self._call()
        except agentwal.Error as error:
            self.error = error

    def end(self):
        self.join(30)
        assert not self.is_alive()
        return self


def append_waiting(session, payload):
    """An append that is durable, and waits for the remote."""
    call = Call(session.append, payload, durability="cluster")
    wait_for(lambda: payload in payloads(session))
    time.sleep(0.3)  # until it waits: only later failures are its own
    assert call.is_alive()
    return call


def test_append__without_a_shipping_process_writes_nothing(session):
    for call in (lambda: session.append(1, durability="cluster"),
                 lambda: session.append_many([1, 2], durability="cluster"),
                 lambda: session.commit(entries=[1], durability="cluster"),
                 lambda: session.commit(change=agentwal.SessionChange(title="new"),
                                        durability="cluster"),
                 lambda: session.submit(1, durability="cluster"),
                 lambda: session.submit_many([1, 2], durability="cluster"),
                 lambda: session.submit_commit(entries=[1], durability="cluster")):
        with pytest.raises(agentwal.RemoteFailed, match="no process ships") as raised:
            call()
        assert raised.value.code == "WAL_EREMOTE"
        assert raised.value.result is None
    assert payloads(session) == []
    assert session.info().title != "new"


def test_append__in_memory_is_refused():
    with agentwal.memory() as store:
        session = store.create()
        with pytest.raises(agentwal.RemoteFailed):
            session.append(1, durability="cluster")
        assert payloads(session) == []


def test_append__in_a_store_that_keeps_nothing():
    async def main():
        async with aio.noop() as store:
            session = await store.create()
            assert (await session.append(1, durability="cluster")).appended == 1

    with agentwal.noop() as store:
        session = store.create()
        assert session.append(1, durability="cluster").appended == 1
        assert session.submit(2, durability="cluster").wait().appended == 1
    asyncio.run(main())


def test_append__each_call_returns_once_the_remote_has_it(shipped, session):
    assert session.append(1, durability="cluster").appended == 1
    assert shipped.pull() == [1]
    assert session.append_many([2, 3], durability="cluster").appended == 2
    assert shipped.pull() == [1, 2, 3]
    session.commit(entries=[4], documents=[agentwal.DocumentChange("k", 4)],
                   change=agentwal.SessionChange(title="new"), durability="cluster")
    assert shipped.pull() == [1, 2, 3, 4]
    assert session.submit(5, durability="cluster").wait(30).appended == 1
    session.submit_many([6], durability="cluster").wait(30)
    session.submit_commit(entries=[7], durability="cluster").wait(30)
    assert shipped.pull() == list(range(1, 8))
    assert session.info().title == "new"


def test_append__what_exists_waits_too(shipped, session):
    shipped.stop()
    session.append(1, id="a", timestamp="t")
    call = Call(session.append, 1, id="a", timestamp="t", durability="cluster")
    time.sleep(0.2)
    assert call.is_alive()
    shipped.go_on()
    assert call.end().result.duplicates == 1
    assert shipped.pull() == [1]


def test_append__shipping_process_is_killed_while_one_waits(shipped, session):
    shipped.stop()
    call = append_waiting(session, 1)
    ticket = session.submit(2, durability="cluster")
    assert not ticket.done()
    with pytest.raises(agentwal.TimedOut):
        ticket.wait(0.2)
    shipped.kill()
    assert call.end().error.code == "WAL_EREMOTE"
    assert call.error.result.appended == 1
    with pytest.raises(agentwal.RemoteFailed) as raised:
        ticket.wait(30)
    assert raised.value.result.appended == 1
    assert ticket.done()
    assert payloads(session) == [1, 2]
    with pytest.raises(agentwal.RemoteFailed):
        session.append(3, durability="cluster")
    shipped.start()
    session.append(4, durability="cluster")
    assert shipped.pull() == [1, 2, 4]


def test_append__remote_fails_while_one_waits(shipped, session):
    shipped.stop()
    call = append_waiting(session, 1)
    away = shipped.bucket.with_name("away")
    shipped.bucket.rename(away)
    shipped.go_on()
    assert "it is durable here" in str(call.end().error)
    assert call.error.result.appended == 1
    away.rename(shipped.bucket)
    session.append(2, durability="cluster")
    assert shipped.pull() == [1, 2]


def test_append__another_writer_takes_over_while_one_waits(shipped, session):
    session.append(0, durability="cluster")
    shipped.stop()
    assert shipped.pull("--take-over") == [0]
    call = append_waiting(session, 1)
    shipped.go_on()
    # Fenced, but where it looked again only after the process had ended.
    assert isinstance(call.end().error, (agentwal.Fenced, agentwal.RemoteFailed))
    assert call.error.result.appended == 1
    assert payloads(session) == [0, 1]


def test_append__store_is_closed_while_one_waits(shipped, session):
    shipped.stop()
    call = append_waiting(session, 1)
    ticket = session.submit(2, durability="cluster")
    start = time.monotonic()
    session.store.close()
    assert time.monotonic() - start < 60
    assert isinstance(call.end().error, agentwal.Closed)
    assert call.error.result.appended == 1
    with pytest.raises(agentwal.Closed) as raised:
        ticket.wait(30)
    assert raised.value.result.appended == 1
    with agentwal.open(shipped.store) as store:
        assert payloads(store.session("s")) == [1, 2]


def test_append__ctrl_c_ends_the_wait(shipped, start_python):
    shipped.stop()
    process = start_python(
        "import agentwal, sys\n"
        "session = agentwal.open(sys.argv[1]).session('s')\n"
        "print('ready', flush=True)\n"
        "try: session.append(1, durability='cluster')\n"
        "except KeyboardInterrupt: print('ended', flush=True)\n", shipped.store)
    assert process.stdout.readline() == "ready\n"
    with agentwal.open(shipped.store) as store:
        wait_for(lambda: payloads(store.session("s")) == [1])
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "ended\n"


def test_follow__is_not_of_this_durability(session):
    with pytest.raises(agentwal.Invalid):
        next(iter(session.follow(durability="cluster")))


def test_claude__is_not_of_this_durability(tmp_path):
    with pytest.raises(agentwal.Invalid):
        AgentwalSessionStore(tmp_path / "store", durability="cluster")


# ------------------------------------------------------------- asyncio ---


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


def test_aio__without_a_shipping_process_writes_nothing(remote):
    async def main():
        async with aio.open(remote.store) as store:
            session = await store.session("s")
            for call in (lambda: session.append(1, durability="cluster"),
                         lambda: session.append_many([1, 2], durability="cluster"),
                         lambda: session.commit(entries=[1], durability="cluster")):
                with pytest.raises(agentwal.RemoteFailed) as raised:
                    await call()
                assert raised.value.result is None
            assert await session.count() == 0

    run(main())


def test_aio__in_flight_keep_their_order_and_take_one_thread(shipped):
    async def main():
        async with aio.open(shipped.store, queue_limit=4) as store:
            session = await store.session("s")
            threads = threading.active_count()
            done = []
            futures = [session.append(number, durability="cluster") for number in range(100)]
            futures.append(session.append_many([100, 101], durability="cluster"))
            futures.append(session.commit(entries=[102], durability="cluster"))
            for number, future in enumerate(futures):
                future.add_done_callback(lambda _, number=number: done.append(number))
            await futures[0]
            assert threading.active_count() <= threads + 1
            results = await asyncio.gather(*futures)
            assert [result.appended for result in results] == [1] * 100 + [2, 1]
            assert done == list(range(102))
            assert shipped.pull() == list(range(103))

    run(main())


def test_aio__shipping_process_is_killed_while_some_wait(shipped):
    async def main():
        async with aio.open(shipped.store) as store:
            session = await store.session("s")
            shipped.stop()
            futures = [session.append(number, durability="cluster") for number in range(5)]
            await session.append(5)
            futures[2].cancel()
            await asyncio.sleep(0.2)
            assert [future.done() for future in futures] == [False, False, True, False, False]
            shipped.kill()
            outcomes = await asyncio.gather(*futures, return_exceptions=True)
            for number in (0, 1, 3, 4):
                assert isinstance(outcomes[number], agentwal.RemoteFailed)
                assert outcomes[number].result.appended == 1
            assert len({outcome.result.last_id for outcome in outcomes
                        if isinstance(outcome, agentwal.Error)}) == 4
            assert await session.count() == 6

    run(main())


def test_aio__store_is_closed_while_some_wait(shipped):
    async def main():
        async with aio.open(shipped.store) as store:
            session = await store.session("s")
            shipped.stop()
            waiting = session.append(1, durability="cluster")
            await session.append(2)
            await asyncio.sleep(0.2)
            last = session.append(3, durability="cluster")
            assert not waiting.done()
        for future in (waiting, last):
            assert future.done()
            assert isinstance(future.exception(), agentwal.Closed)
            assert future.exception().result.appended == 1

    run(main())
    shipped.kill()
    with agentwal.open(shipped.store) as store:
        assert payloads(store.session("s")) == [1, 2, 3]
