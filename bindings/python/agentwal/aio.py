"""agentwal.aio: stores in asyncio.

    async with agentwal.aio.open("store") as store:
        session = await store.create(title="Example")
        await session.append({"role": "user", "content": "Hello"})
        async for entry in session:
            print(entry.payload)

Appends take no thread: Session.append, append_many and commit submit when they are called, in the
order of the calls, and return futures, which the completion descriptor of the store settles; with
durability "cluster" one thread waits for all of them until the remote has them. What reads, and
what seldom happens, runs in the default executor of the loop.

Cancellation: an append that is cancelled may happen or not; it is either there as a whole or not
at all, and appends after it are not affected. With an id it can be sent again: what exists with
the same content is counted as a duplicate. A call that runs in the executor goes on. close()
completes everything, also when it is cancelled.
Loops: a Store belongs to the loop that opened it; each loop and each process opens its own.
Threads: all calls are those of the loop's thread. Errors: those of agentwal.

For trio and anyio, call the objects of agentwal by anyio.to_thread.run_sync.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import threading
from types import TracebackType
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Concatenate, Coroutine, Generator,
                    Generic, Iterable, Iterator, Literal, Mapping, ParamSpec, TypeVar)

import agentwal

from . import _wal
from ._change import HeadMove, SessionChange, head_rows
from ._documents import DocumentChange, document_rows
from ._entries import Entries, Tail, cursor_row
from ._entry import AppendResult, options_of, rows_of
from ._errors import Closed, Forked, Invalid, wrong_type
from ._handle import AsyncClosing, Unpicklable
from ._session import appended_row, optional_change
from ._shipping import check_ships, local_durability, sequence_to_pass
from ._submissions import Submissions, Submit, Submitted
from ._values import (UNSET, EntryId, Unset, durability_of, follow_durability,
                      timeout_seconds)
from ._waiter import Waiter
from ._wal import Entry

if TYPE_CHECKING:
    from ._values import Durability

__all__ = ["Opening", "Search", "Session", "Store", "memory", "noop", "open"]

P = ParamSpec("P")
B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")

READ_AT_ONCE = 256


class Opening:
    """A store that is being opened: await it, or use it in `async with`, which closes it."""

    def __init__(self, open_store: Callable[[], agentwal.Store]) -> None:
        self._open_store = open_store
        self._store: Store | None = None

    async def _open(self) -> Store:
        loop = asyncio.get_running_loop()
        opening = loop.run_in_executor(None, self._open_store)
        try:
            return Store(await asyncio.shield(opening))
        except asyncio.CancelledError:
            # The thread goes on: nobody would close what it opens.
            opening.add_done_callback(_close_opened)
            raise

    def __await__(self) -> Generator[Any, None, Store]:
        return self._open().__await__()

    async def __aenter__(self) -> Store:
        self._store = await self._open()
        return self._store

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        traceback: TracebackType | None) -> None:
        if self._store is not None:
            await self._store.close()


def _close_opened(opening: asyncio.Future[agentwal.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _opening(function: Callable[P, agentwal.Store]) -> Callable[P, Opening]:
    """A function of agentwal that opens a store, for the running loop."""

    @functools.wraps(function)
    def opening(*args: P.args, **kwargs: P.kwargs) -> Opening:
        return Opening(functools.partial(function, *args, **kwargs))

    return opening


open = _opening(agentwal.open)
memory = _opening(agentwal.memory)
noop = _opening(agentwal.noop)


class _Object(Unpicklable, Generic[B]):
    """An object of a loop. `blocking` is that of agentwal, for calls that block."""

    blocking: B

    def _owner(self) -> Store:
        raise NotImplementedError

    async def run(self, function: Callable[Concatenate[B, P], T], *args: P.args,
                  **kwargs: P.kwargs) -> T:
        """Calls function(self.blocking, ...) in the default executor, and returns what it returns:
        `await store.run(agentwal.Store.compact, erase=True)`."""
        return await self._owner()._run(
            functools.partial(function, self.blocking, *args, **kwargs))


def _method(function: Callable[Concatenate[B, P], T]
            ) -> Callable[Concatenate[_Object[B], P], Coroutine[Any, Any, T]]:
    """A method of agentwal, run in the executor."""

    @functools.wraps(function)
    async def method(self: _Object[B], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(function, *args, **kwargs)

    return method


def _opening_method(function: Callable[Concatenate[B, P], T], opened: Callable[[Store, T], R]
                    ) -> Callable[Concatenate[_Object[B], P], Coroutine[Any, Any, R]]:
    """The same of a method that returns an object of the store."""

    @functools.wraps(function)
    async def method(self: _Object[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return opened(self._owner(), await self.run(function, *args, **kwargs))

    return method


class _Part(_Object[B]):
    """An object of a store."""

    def __init__(self, store: Store, blocking: B) -> None:
        """Called by the store."""
        self.store = store
        self.blocking = blocking

    def _owner(self) -> Store:
        return self.store


class Search(_Part[agentwal.Search], AsyncClosing):
    """A full-text search of a store of this loop. `blocking` is the agentwal.Search. What is given
    as on_progress is called in a thread of the executor."""

    find = _method(agentwal.Search.find)
    update = _method(agentwal.Search.update)

    async def close(self) -> None:
        """Frees the search, once no call uses it; otherwise that happens when it is collected."""
        self.blocking.close()


class Session(_Part[agentwal.Session]):
    """A session of a store of this loop. `blocking` is the agentwal.Session, for calls that
    block."""

    @property
    def id(self) -> str:
        return self.blocking.id

    def __repr__(self) -> str:
        return "<agentwal.aio.Session %s>" % self.blocking.id

    # ---------------------------------------------------------- writing ---

    def append(self, payload: Any = UNSET, /, *, text: str | bytes | None = None,
               line: str | bytes | None = None, id: str | None = None,
               parent_id: EntryId | None | Unset = UNSET, type: str = "message",
               timestamp: str | None = None, run_id: str | None = None, stream: int = 0,
               meta: Mapping[str, Any] | None = None, move_head: bool | None = None,
               durability: Durability = "durable",
               expect_tail: EntryId | None | Unset = UNSET) -> asyncio.Future[AppendResult]:
        """Appends one entry; the future is done when it is as durable as `durability` says.

        The arguments are those of agentwal.Session.append. The entry is copied and submitted by
        the call, which raises what is wrong with the arguments; the future raises the rest. It
        need not be awaited: close() completes it. With "cluster" the call raises RemoteFailed when
        no process ships the store, and a close makes the entry durable, and ends the wait for the
        remote with Closed.
        """
        row = appended_row(payload, text, line, id, parent_id, type, timestamp, run_id, stream,
                           meta, move_head)
        return self._append((row,), durability, expect_tail)

    def append_many(self, entries: Iterable[Any], *, durability: Durability = "durable",
                    expect_tail: EntryId | None | Unset = UNSET) -> asyncio.Future[AppendResult]:
        """Appends payloads, or NewEntry objects, in their order, all or none."""
        return self._append(rows_of(entries), durability, expect_tail)

    def _append(self, rows: tuple[Any, ...], durability: Durability,
                expect_tail: EntryId | None | Unset) -> asyncio.Future[AppendResult]:
        kind = durability_of(durability)
        call: Callable[..., Any] = _wal.append if kind == _wal.QUEUED else _wal.submit
        return self._submit(functools.partial(call, self.blocking._handle, rows, options_of(
            local_durability(kind), expect_tail, False)), kind)

    def commit(self, *, entries: Iterable[Any] = (), documents: Iterable[DocumentChange] = (),
               heads: Iterable[HeadMove] = (), change: SessionChange | None = None,
               expect_version: int | None = None, expect_sequence: int | None = None,
               durability: Durability = "durable",
               expect_tail: EntryId | None | Unset = UNSET) -> asyncio.Future[AppendResult]:
        """Appends entries, puts documents, moves heads and changes texts, all or nothing; a change
        needs `expect_version`."""
        kind = durability_of(durability)
        call: Callable[..., Any] = _wal.commit if kind == _wal.QUEUED else _wal.submit_commit
        return self._submit(functools.partial(
            call, self.blocking._handle, rows_of(entries), document_rows(documents),
            head_rows(heads), optional_change(change, expect_version, expect_sequence),
            options_of(local_durability(kind), expect_tail, False)), kind)

    def _submit(self, submit: Submit, durability: int) -> asyncio.Future[AppendResult]:
        self.store._check_loop_fast()
        if durability == _wal.CLUSTER:
            submit = self._shipped(submit)
        return self.store._submissions.add(submit, durability)

    def _shipped(self, submit: Submit) -> Submit:
        def check_and_submit() -> Submitted:
            check_ships(self.store.blocking)
            return submit()

        return check_and_submit

    # ---------------------------------------------------------- reading ---

    async def entries(self, *, mode: Literal["branch", "all"] = "branch", stream: int = 0,
                      up_to: EntryId | None = None, head: str | None = None, skip: int = 0,
                      last: int | None = None, since_compaction: bool = False,
                      durable: bool = False, deltas: bool = False, redacted: bool = False,
                      out_of_line: bool = False) -> AsyncIterator[Entry]:
        """Yields the entries as they are now; the arguments are those of
        agentwal.Session.entries."""
        found = self.blocking.entries(
            mode=mode, stream=stream, up_to=up_to, head=head, skip=skip, last=last,
            since_compaction=since_compaction, durable=durable, deltas=deltas,
            redacted=redacted, out_of_line=out_of_line)
        iterator = await self.store._run(lambda: iter(found))
        while entries := await self.store._run(lambda: _take(iterator)):
            for entry in entries:
                yield entry

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self.entries()

    entry = _method(agentwal.Session.entry)

    async def count(self) -> int:
        """Entries of the branch of the head `main`."""
        return await self.store._run(lambda: len(Entries(self.blocking, cursor_row())))

    async def follow(self, after: Literal["tail", "start"] | int = "tail", *,
                     durability: Literal["durable", "written"] = "written",
                     deltas: bool = False, redacted: bool = False, stream: int = 0,
                     timeout: float | None = None) -> AsyncIterator[Entry]:
        """Yields entries as they are appended by any process, in log order. Ends after `timeout`
        seconds without one; when the store is closed it raises Closed."""
        kind, seconds = follow_durability(durability), timeout_seconds(timeout)
        row = cursor_row(mode="all", durable=kind == _wal.DURABLE, deltas=deltas,
                         redacted=redacted)
        tail = await self.store._run(lambda: Tail(self.blocking, row[1], stream, after))
        handle = self.store.blocking._handle
        end = None if seconds is None else self.store._loop.time() + seconds
        while True:
            newest = _wal.store_wait(handle, 0, kind, 0) or 0
            unread = tail.read()
            while entries := await self.store._run(lambda: _take(unread)):
                for entry in entries:
                    yield entry
                end = None if seconds is None else self.store._loop.time() + seconds
            left = None if end is None else max(0.0, end - self.store._loop.time())
            try:
                await asyncio.wait_for(self.store._wait(newest, kind), left)
            except asyncio.TimeoutError:
                return

    # ----------------------------------------------------- the executor ---

    info = _method(agentwal.Session.info)
    head = _method(agentwal.Session.head)
    move_head = _method(agentwal.Session.move_head)
    fork = _opening_method(agentwal.Session.fork, lambda store, fork: Session(store, fork))

    async def close(self) -> None:
        """Frees the handle; otherwise that happens when it is collected."""
        self.blocking.close()


def _take(entries: Iterator[Entry]) -> list[Entry]:
    return list(itertools.islice(entries, READ_AT_ONCE))


def _optional_session(store: Store, session: agentwal.Session | None) -> Session | None:
    return None if session is None else Session(store, session)


def _session_created(store: Store, found: tuple[agentwal.Session, bool]) -> tuple[Session, bool]:
    return Session(store, found[0]), found[1]


class Store(_Object[agentwal.Store], AsyncClosing):
    """A store of one event loop. `blocking` is the agentwal.Store, for calls that block."""

    def __init__(self, store: agentwal.Store) -> None:
        """Takes over a store that is open, for the running loop. Close this one, not `blocking`."""
        if not isinstance(store, agentwal.Store):
            raise wrong_type("store", "an agentwal.Store", store)
        self.blocking = store
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._submissions = Submissions(store._handle, self._loop, self._ship)
        self._waiters: dict[int, Waiter] = {}
        self._closing: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return "<agentwal.aio.Store %r%s>" % (self.blocking.path,
                                              "" if self.is_open else ", closed")

    @property
    def is_open(self) -> bool:
        """Whether calls on it are possible."""
        return self._closing is None and self.blocking.is_open

    def _check_loop(self) -> None:
        try:
            is_own = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own = False
        if not is_own:
            if os.getpid() != self._pid:
                raise Forked("the store is that of the parent process: open it again in this one")
            raise Invalid("the store belongs to another event loop: each loop opens its own")
        if self._closing is not None:
            raise Closed("the store was closed")

    def _check_loop_fast(self) -> None:
        """The same without a system call, for what raises Forked itself."""
        if (threading.get_ident() != self._thread or not self._loop.is_running()
                or self._closing is not None):
            self._check_loop()

    def _owner(self) -> Store:
        return self

    async def _run(self, function: Callable[[], T]) -> T:
        self._check_loop()
        return await self._loop.run_in_executor(None, function)

    info = _method(agentwal.Store.info)
    create = _opening_method(agentwal.Store.create, Session)
    session = _opening_method(agentwal.Store.session, Session)
    latest = _opening_method(agentwal.Store.latest, _optional_session)
    open_or_create = _opening_method(agentwal.Store.open_or_create, _session_created)
    list = _method(agentwal.Store.list)
    search = _opening_method(agentwal.Store.search, Search)
    sync = _method(agentwal.Store.sync)
    flush = _method(agentwal.Store.flush)

    def _ship(self) -> asyncio.Future[int] | None:
        after = sequence_to_pass(self.blocking)
        return None if after is None else self._wait_newest(after, _wal.CLUSTER)

    def _wait(self, sequence: int, durability: int) -> asyncio.Future[int]:
        self._check_loop()
        return self._wait_newest(sequence, durability)

    def _wait_newest(self, sequence: int, durability: int) -> asyncio.Future[int]:
        if durability not in self._waiters:
            self._waiters[durability] = Waiter(self.blocking, self._loop, durability)
        return self._waiters[durability].wait(sequence)

    async def follow(self, after: int | None = None, *,
                     durability: Literal["durable", "written"] = "written",
                     timeout: float | None = None) -> AsyncIterator[int]:
        """Yields the number of the newest record each time that any process wrote one after
        `after` (None: now). Ends after `timeout` seconds without one."""
        kind, seconds = follow_durability(durability), timeout_seconds(timeout)
        self._check_loop()
        newest = after if after is not None else (
            _wal.store_wait(self.blocking._handle, 0, kind, 0) or 0)
        while True:
            try:
                newest = await asyncio.wait_for(self._wait(newest, kind), seconds)
            except asyncio.TimeoutError:
                return
            yield newest

    async def close(self) -> None:
        """Completes every append and closes the store; may be repeated.

        A close that is cancelled goes on. When the loop of the store was closed before, another
        one may close it; futures of the closed loop are then never settled.
        """
        if os.getpid() != self._pid:
            raise Forked("the store is that of the parent process: open it again in this one")
        running = asyncio.get_running_loop()
        if running is not self._loop:
            if not self._loop.is_closed():
                raise Invalid("the store belongs to another event loop, which is to close it")
            self._submissions.detach()
            await running.run_in_executor(None, self.blocking.close)
            return
        if self._closing is None or self._closing.cancelled():
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._submissions.drain()
        self._submissions.detach()
        try:
            await self._loop.run_in_executor(None, self.blocking.close)
        finally:
            for waiter in self._waiters.values():
                waiter.end(Closed("the store was closed"))
            self._submissions.settle_all()
