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
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Concatenate, Generator, Iterable,
                    Iterator, Literal, Mapping, ParamSpec, TypeVar)

import agentwal

from . import _wal
from ._change import HeadMove, SessionChange, head_rows
from ._documents import DocumentChange, document_rows
from ._entries import Entries, Tail, cursor_row
from ._entry import AppendResult, options_of, rows_of
from ._errors import Closed, Forked, Invalid, wrong_type
from ._handle import Unpicklable
from ._info import SessionInfo, SessionList
from ._records import StoreInfo
from ._session import appended_row, optional_change
from ._shipping import check_ships, local_durability, sequence_to_pass
from ._submissions import Submissions, Submit, Submitted
from ._values import (UNSET, EntryId, Path, Unset, durability_of, follow_durability,
                      timeout_seconds)
from ._waiter import Waiter
from ._wal import Entry

if TYPE_CHECKING:
    from ._search import SearchRole
    from ._store import Progress
    from ._values import Durability, Time

__all__ = ["Opening", "Search", "Session", "Store", "memory", "noop", "open"]

P = ParamSpec("P")
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


def open(path: Path, *, create: bool | None = None, exclusive: bool = False,
         read_only: bool = False, strict: bool = False, network_fs: bool = False,
         pread: bool = False, queue_limit: int = 0, lock_timeout: float | None = None,
         group_align: int = 0, schema_version: int = 0) -> Opening:
    """Opens a store for the running loop; the arguments are those of agentwal.open."""
    return Opening(functools.partial(
        agentwal.open, path, create=create, exclusive=exclusive, read_only=read_only,
        strict=strict, network_fs=network_fs, pread=pread, queue_limit=queue_limit,
        lock_timeout=lock_timeout, group_align=group_align, schema_version=schema_version))


def memory(*, queue_limit: int = 0, schema_version: int = 0) -> Opening:
    """An empty store in memory, as agentwal.memory makes it."""
    return Opening(functools.partial(agentwal.memory, queue_limit=queue_limit,
                                     schema_version=schema_version))


def noop(*, queue_limit: int = 0, schema_version: int = 0) -> Opening:
    """A store with persistence off, as agentwal.noop makes it."""
    return Opening(functools.partial(agentwal.noop, queue_limit=queue_limit,
                                     schema_version=schema_version))


class Store(Unpicklable):
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

    async def run(self, function: Callable[Concatenate[agentwal.Store, P], T], *args: P.args,
                  **kwargs: P.kwargs) -> T:
        """Calls function(self.blocking, ...) in the default executor, and returns what it returns:
        `await store.run(agentwal.Store.compact, erase=True)`."""
        self._check_loop()
        return await self._loop.run_in_executor(
            None, functools.partial(function, self.blocking, *args, **kwargs))

    async def info(self) -> StoreInfo:
        """The state of the store."""
        return await self.run(agentwal.Store.info)

    async def create(self, *, id: str | None = None, cwd: Path | None = None,
                     project: str | None = None, title: str | None = None,
                     parent_id: str | None = None, source: str | None = None,
                     metadata: Mapping[str, Any] | None = None,
                     schema_version: int = 0) -> Session:
        """Creates a session, durably, as agentwal.Store.create does."""
        return Session(self, await self.run(
            agentwal.Store.create, id=id, cwd=cwd, project=project, title=title,
            parent_id=parent_id, source=source, metadata=metadata, schema_version=schema_version))

    async def session(self, id: str) -> Session:
        """Opens a session by its id. Raises NotFound, or Trashed."""
        return Session(self, await self.run(agentwal.Store.session, id))

    async def latest(self, *, cwd: Path | None = None) -> Session | None:
        """The session that was active last, of a directory or of the store, or None."""
        found = await self.run(agentwal.Store.latest, cwd=cwd)
        return None if found is None else Session(self, found)

    async def open_or_create(self, *, id: str | None = None, cwd: Path | None = None,
                             project: str | None = None, title: str | None = None,
                             parent_id: str | None = None, source: str | None = None,
                             metadata: Mapping[str, Any] | None = None,
                             schema_version: int = 0) -> tuple[Session, bool]:
        """Opens the session `id`, or without one the latest of `cwd`; creates it if there is none.
        Returns it and whether it was created."""
        session, created = await self.run(
            agentwal.Store.open_or_create, id=id, cwd=cwd, project=project, title=title,
            parent_id=parent_id, source=source, metadata=metadata, schema_version=schema_version)
        return Session(self, session), created

    async def list(self, *, cwd: Path | None = None, project: str | None = None,
                   prefix: str | None = None, source: str | None = None,
                   parent: str | None = None, after: str | None = None,
                   limit: int = 100) -> SessionList:
        """Sessions, the one with the latest entry first, at most `limit`."""
        return await self.run(agentwal.Store.list, cwd=cwd, project=project, prefix=prefix,
                              source=source, parent=parent, after=after, limit=limit)

    async def search(self, *, memory: bool = False) -> Search:
        """A full-text search over the sessions."""
        return Search(self, await self.run(agentwal.Store.search, memory=memory))

    async def sync(self) -> None:
        """Waits until everything appended before is durable."""
        await self.run(agentwal.Store.sync)

    async def flush(self) -> None:
        """Waits until everything queued before is written."""
        await self.run(agentwal.Store.flush)

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

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.close()


class Search(Unpicklable):
    """A full-text search of a store of this loop. `blocking` is the agentwal.Search."""

    def __init__(self, store: Store, search: agentwal.Search) -> None:
        """Called by the store."""
        self.store = store
        self.blocking = search

    async def find(self, text: str, *, project: str | None = None, cwd: Path | None = None,
                   session: str | None = None, tool: str | None = None,
                   roles: Iterable[SearchRole] = (), since: Time | None = None,
                   until: Time | None = None, limit: int = 20, hits: int = 3, snippet: int = 80,
                   deep: bool = False, substring: bool = False, update: bool = True,
                   on_progress: Progress | None = None) -> list[agentwal.SearchSession]:
        """As agentwal.Search.find; on_progress is called in a thread of the executor."""
        find = functools.partial(
            self.blocking.find, text, project=project, cwd=cwd, session=session, tool=tool,
            roles=roles, since=since, until=until, limit=limit, hits=hits, snippet=snippet,
            deep=deep, substring=substring, update=update, on_progress=on_progress)
        return await self.store.run(lambda store: find())

    async def update(self, *, deep: bool = False,
                     on_progress: Progress | None = None) -> agentwal.SearchUpdate:
        """As agentwal.Search.update; on_progress is called in a thread of the executor."""
        return await self.store.run(
            lambda store: self.blocking.update(deep=deep, on_progress=on_progress))

    async def close(self) -> None:
        """Frees the search, once no call uses it; otherwise that happens when it is collected."""
        self.blocking.close()

    async def __aenter__(self) -> Search:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.close()


class Session(Unpicklable):
    """A session of a store of this loop. `blocking` is the agentwal.Session, for calls that
    block."""

    def __init__(self, store: Store, session: agentwal.Session) -> None:
        """Called by the store."""
        self.store = store
        self.blocking = session

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
        iterator = await self._run(lambda: iter(found))
        while entries := await self._run(lambda: _take(iterator)):
            for entry in entries:
                yield entry

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self.entries()

    async def entry(self, id: str) -> Entry | None:
        """One entry on any branch, or None. Raises Redacted."""
        return await self.run(agentwal.Session.entry, id)

    async def count(self) -> int:
        """Entries of the branch of the head `main`."""
        return await self._run(lambda: len(Entries(self.blocking, cursor_row())))

    async def follow(self, after: Literal["tail", "start"] | int = "tail", *,
                     durability: Literal["durable", "written"] = "written",
                     deltas: bool = False, redacted: bool = False, stream: int = 0,
                     timeout: float | None = None) -> AsyncIterator[Entry]:
        """Yields entries as they are appended by any process, in log order. Ends after `timeout`
        seconds without one; when the store is closed it raises Closed."""
        kind, seconds = follow_durability(durability), timeout_seconds(timeout)
        row = cursor_row(mode="all", durable=kind == _wal.DURABLE, deltas=deltas,
                         redacted=redacted)
        tail = await self._run(lambda: Tail(self.blocking, row[1], stream, after))
        handle = self.store.blocking._handle
        end = None if seconds is None else self.store._loop.time() + seconds
        while True:
            newest = _wal.store_wait(handle, 0, kind, 0) or 0
            unread = tail.read()
            while entries := await self._run(lambda: _take(unread)):
                for entry in entries:
                    yield entry
                end = None if seconds is None else self.store._loop.time() + seconds
            left = None if end is None else max(0.0, end - self.store._loop.time())
            try:
                await asyncio.wait_for(self.store._wait(newest, kind), left)
            except asyncio.TimeoutError:
                return

    # ----------------------------------------------------- the executor ---

    async def _run(self, function: Callable[[], T]) -> T:
        return await self.store.run(lambda store: function())

    async def run(self, function: Callable[Concatenate[agentwal.Session, P], T], *args: P.args,
                  **kwargs: P.kwargs) -> T:
        """Calls function(self.blocking, ...) in the default executor, and returns what it returns:
        `await session.run(agentwal.Session.redact, entry)`."""
        return await self._run(functools.partial(function, self.blocking, *args, **kwargs))

    async def info(self) -> SessionInfo:
        """The session as it is now. Raises NotFound when it is deleted."""
        return await self.run(agentwal.Session.info)

    async def head(self, name: str = "main", *, stream: int = 0) -> str | None:
        """Entry id of a head, or None."""
        return await self.run(agentwal.Session.head, name, stream=stream)

    async def move_head(self, entry: EntryId | None, *, name: str = "main", stream: int = 0,
                        note: str | None = None,
                        expect: EntryId | None | Unset = UNSET) -> str | None:
        """Moves, creates or removes a head, durably; returns the entry id that it had."""
        return await self.run(agentwal.Session.move_head, entry, name=name, stream=stream,
                              note=note, expect=expect)

    async def fork(self, at: EntryId | None = None, *, id: str | None = None,
                   title: str | None = None) -> Session:
        """Creates a session that shares the branch up to and including `at`."""
        return Session(self.store, await self.run(agentwal.Session.fork, at, id=id, title=title))

    async def close(self) -> None:
        """Frees the handle; otherwise that happens when it is collected."""
        self.blocking.close()


def _take(entries: Iterator[Entry]) -> list[Entry]:
    return list(itertools.islice(entries, READ_AT_ONCE))
