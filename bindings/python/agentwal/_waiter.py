"""Waiting for records in an event loop: one thread for all that follow a store."""

from __future__ import annotations

import asyncio
import threading

from . import _wal
from ._errors import Error
from ._shipping import SLICE_MS
from ._store import Store


class Waiter:
    """Wakes futures of one event loop when any process wrote a record.

    The thread runs while a future waits, and looks for new ones every SLICE_MS. What it finds
    is woken in the thread of the loop, in the order of waiting, before what is found later.
    """

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop, durability: int) -> None:
        self._store = store
        self._loop = loop
        self._durability = durability
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, asyncio.Future[int]]] = []
        self._found: list[tuple[asyncio.Future[int], int, Error | None]] = []
        self._is_running = False

    def wait(self, sequence: int) -> asyncio.Future[int]:
        """A future of the newest record's number, which is after `sequence`."""
        future: asyncio.Future[int] = self._loop.create_future()
        newest = _wal.store_wait(self._store._handle, sequence, self._durability, 0)
        if newest is not None:
            self._find(newest, None)  # First what waited before.
            self._wake()
            future.set_result(newest)
            return future
        with self._lock:
            self._waiting.append((sequence, future))
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="agentwal-follow", daemon=True).start()
        return future

    def end(self, error: Error) -> None:
        """Fails what waits, in the thread of the loop."""
        self._find(None, error)
        self._wake()

    def _run(self) -> None:
        while (sequence := self._first_sequence()) is not None:
            newest: int | None = None
            error: Error | None = None
            try:
                newest = _wal.store_wait(self._store._handle, sequence, self._durability, SLICE_MS)
            except Error as raised:
                error = raised
            if newest is None and error is None:
                continue
            self._find(newest, error)
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # The loop was closed: nothing waits any more.
                self._find(None, None)

    def _first_sequence(self) -> int | None:
        """The sequence to wait after; None: nothing waits, and the thread ends."""
        with self._lock:
            self._waiting = [pair for pair in self._waiting if not pair[1].done()]
            if self._waiting and not self._loop.is_closed():
                return min(sequence for sequence, _ in self._waiting)
            self._is_running = False
            return None

    def _find(self, newest: int | None, error: Error | None) -> None:
        """Takes out what waits for a record up to `newest`; None: everything."""
        with self._lock:
            self._found += [(future, newest or 0, error) for sequence, future in self._waiting
                            if newest is None or sequence < newest]
            self._waiting = [] if newest is None else [
                pair for pair in self._waiting if pair[0] >= newest]

    def _wake(self) -> None:
        """Ends the futures that were found, in the thread of the loop."""
        with self._lock:
            found, self._found = self._found, []
        for future, newest, error in found:
            if future.done():
                continue
            if error is None:
                future.set_result(newest)
            else:
                future.set_exception(error)
