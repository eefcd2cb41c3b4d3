"""Appends that an event loop waits for, by the completion descriptor of their store."""

from __future__ import annotations

import asyncio
import collections
import os
from typing import Any, Callable, Deque, Union

from . import _wal
from ._entry import AppendResult
from ._errors import Busy, Closed, Error, copy_error

RETRY_SECONDS = 0.001

Submitted = Union[_wal.Handle, tuple[int, int, int, str]]
Submit = Callable[[], Submitted]
"""Submits without blocking, and returns the ticket, or of what is only queued the result; raises
Busy while the queue of the store is full."""
Ship = Callable[[], "asyncio.Future[int] | None"]
"""Waits until the remote has what is durable by now; None: there is nothing to wait for."""


class Submissions:
    """The appends of one store and one event loop, in the order of the calls.

    Used by the thread of the loop alone. What finds the queue of the store full waits here, and
    all later appends after it. Tickets of one durability complete in their order, so that only
    the first one of each is asked. Those of "cluster" complete when they are durable, and are
    shipped then.
    """

    def __init__(self, store: _wal.Handle, loop: asyncio.AbstractEventLoop, ship: Ship) -> None:
        self._store = store
        self._loop = loop
        self._ship = ship
        self._pid = os.getpid()
        self._pending: dict[int, Deque[tuple[_wal.Handle, asyncio.Future[AppendResult]]]] = {}
        self._waiting: Deque[tuple[Submit, int, asyncio.Future[AppendResult]]] = (
            collections.deque())
        self._retry: asyncio.TimerHandle | None = None
        self._descriptor = -1
        self._is_closed = False
        self._drained: asyncio.Future[None] | None = None

    def add(self, submit: Submit, durability: int) -> asyncio.Future[AppendResult]:
        """Submits an append. Raises what submitting it raises, but for Busy."""
        if self._is_closed:
            raise Closed("the store was closed")
        if self._descriptor < 0:
            self._descriptor = _wal.completion_fd(self._store, _wal.COMPLETION_EVENTFD)
            self._loop.add_reader(self._descriptor, self._completed)
        future: asyncio.Future[AppendResult] = self._loop.create_future()
        if self._waiting:
            if not _wal.is_open(self._store) or os.getpid() != self._pid:
                submit()  # Raises Closed or Forked.
            self._waiting.append((submit, durability, future))
            return future
        try:
            self._submitted(submit(), durability, future)
        except Busy:
            self._waiting.append((submit, durability, future))
            self._retry_later()
        return future

    def _submitted(self, ticket: Submitted, durability: int,
                   future: asyncio.Future[AppendResult]) -> None:
        if isinstance(ticket, tuple):
            future.set_result(AppendResult(*ticket))
            return
        pending = self._pending.setdefault(durability, collections.deque())
        pending.append((ticket, future))

    def _retry_later(self) -> None:
        # The queue may be full of what other threads submitted, whose end is not signalled here.
        if self._retry is None:
            self._retry = self._loop.call_later(RETRY_SECONDS, self._submit_waiting)

    def _submit_waiting(self) -> None:
        self._retry = None
        while self._waiting:
            submit, durability, future = self._waiting[0]
            if not future.done():
                try:
                    self._submitted(submit(), durability, future)
                except Busy:
                    self._retry_later()
                    return
                except (Error, MemoryError) as error:
                    future.set_exception(error)
            self._waiting.popleft()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _completed(self) -> None:
        """The descriptor is readable."""
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            pass
        self._settle()
        if self._waiting:
            self._submit_waiting()

    def _settle(self) -> None:
        for durability, pending in self._pending.items():
            while pending and self._settle_first(*pending[0], durability):
                pending.popleft()

    def _settle_first(self, ticket: _wal.Handle, future: asyncio.Future[AppendResult],
                      durability: int) -> bool:
        """False: it is pending. A future that was cancelled is left alone."""
        result: tuple[Any, ...] | None
        try:
            result = _wal.ticket_wait(ticket, 0)
        except Error as error:
            if not future.done():
                future.set_exception(error)
            return True
        if result is None:
            return False
        if future.done():
            return True
        if durability == _wal.CLUSTER:
            self._settle_shipped(AppendResult(*result), future)
        else:
            future.set_result(AppendResult(*result))
        return True

    def _settle_shipped(self, result: AppendResult, future: asyncio.Future[AppendResult]) -> None:
        """Settles the future of an append that is durable once the remote has it."""
        def settle(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                if isinstance(error, Error):
                    error = copy_error(error)
                    error.result = result
                future.set_exception(error)

        try:
            shipped = self._ship()
        except Error as error:
            settle(error)
            return
        if shipped is None:
            settle(None)
            return
        waiting = shipped
        waiting.add_done_callback(
            lambda done: None if done.cancelled() else settle(done.exception()))
        future.add_done_callback(lambda done: waiting.cancel())

    async def drain(self) -> None:
        """Refuses further appends; returns when all are submitted."""
        self._is_closed = True
        if self._waiting:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    def detach(self) -> None:
        """Stops listening, before the store closes the descriptor."""
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._descriptor >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        self._descriptor = -1

    def settle_all(self) -> None:
        """Settles what is left, after the store was closed, which completed every append."""
        if self._loop.is_closed():
            self._pending.clear()
            return
        self._settle()
        for pending in self._pending.values():
            for _, future in pending:
                if not future.done():
                    future.set_exception(Closed("the store was closed"))
            pending.clear()
