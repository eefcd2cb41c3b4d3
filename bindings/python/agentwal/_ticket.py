"""Appends that were submitted and not waited for."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from . import _wal
from ._entry import AppendResult
from ._errors import Error, TimedOut
from ._handle import Unpicklable
from ._shipping import SLICE_MS
from ._values import timeout_seconds

if TYPE_CHECKING:
    from ._shipping import Shipping


class Ticket(Unpicklable):
    """The outcome of an append that was submitted: `session.submit`.

    Any number of threads may use it, also after the store is closed, which completes every
    append. A ticket that is dropped while it is pending does not stop the append; its failure is
    raised by the next queued call, or by flush or close of the store. With durability "cluster" a
    close makes the append durable, and ends the wait for the remote with Closed.
    """

    __slots__ = ("_durable", "_error", "_handle", "_lock", "_result", "_shipping")

    def __init__(self, handle: _wal.Handle, shipping: Shipping | None = None) -> None:
        self._handle = handle
        # A signal handler that waits runs in the thread that holds it.
        self._lock = threading.RLock()
        self._shipping = shipping
        self._durable: AppendResult | None = None
        self._result: AppendResult | None = None
        self._error: Error | None = None

    def wait(self, timeout: float | None = None) -> AppendResult:
        """Waits, at most `timeout` seconds, until the append is as durable as was asked for.

        Raises what `append` would have raised, and TimedOut while it is pending. May be called
        again.
        """
        seconds = timeout_seconds(timeout)
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = SLICE_MS if end is None else (end - time.monotonic()) * 1000
            with self._lock:
                if self._poll(round(max(0, min(SLICE_MS, left)))):
                    break
            if left <= 0:
                raise TimedOut("the append is pending: wait again, or leave it to the store")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def done(self) -> bool:
        """Whether the outcome is known: `wait` then returns at once."""
        if not self._lock.acquire(blocking=False):
            return self._result is not None or self._error is not None
        try:
            return self._poll(0)
        finally:
            self._lock.release()

    def _poll(self, timeout_ms: int) -> bool:
        if self._result is None and self._error is None:
            try:
                self._result = self._outcome(timeout_ms)
            except Error as error:
                error.result = self._durable
                self._error = error
        return self._result is not None or self._error is not None

    def _outcome(self, timeout_ms: int) -> AppendResult | None:
        """None while it is pending."""
        if self._durable is None:
            row = _wal.ticket_wait(self._handle, timeout_ms)
            if row is None:
                return None
            self._durable, timeout_ms = AppendResult(*row), 0
        is_done = self._shipping is None or self._shipping.poll(timeout_ms)
        return self._durable if is_done else None
