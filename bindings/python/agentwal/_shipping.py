"""The durability "cluster": what is durable is waited for until the remote has it too.

An append is made durable, and then the newest durable record is waited for, in slices of
SLICE_MS, so that signals are handled and a store can be closed meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from . import _wal
from ._entry import AppendResult
from ._errors import Error

if TYPE_CHECKING:
    from ._store import Store

# Longest time in the library until signals are handled, in milliseconds.
SLICE_MS = 100

# No record has a higher sequence number, so that only whether a process ships is looked at.
_LAST_SEQUENCE = 2**64 - 1


def check_ships(store: Store) -> None:
    """Raises RemoteFailed when no process ships the store."""
    _wal.store_wait(store._handle, _LAST_SEQUENCE, _wal.CLUSTER, 0)


def local_durability(durability: int) -> int:
    """What an append is submitted with, before the remote is waited for."""
    return _wal.DURABLE if durability == _wal.CLUSTER else durability


def sequence_to_pass(store: Store) -> int | None:
    """What is durable by now is stored once the remote has a record after this number. None: the
    store keeps nothing, and there is nothing to wait for."""
    newest = _wal.store_wait(store._handle, 0, _wal.DURABLE, 0)
    return None if newest is None else newest - 1


class Shipping:
    """One append: made before it, and polled after it is durable. One thread at a time."""

    __slots__ = ("_after", "_store")

    def __init__(self, store: Store) -> None:
        """Raises RemoteFailed when no process ships the store."""
        check_ships(store)
        self._store = store
        self._after: int | None = None

    def poll(self, timeout_ms: int) -> bool:
        """Whether the remote has it; raises what the process that ships reports meanwhile."""
        if self._after is None:
            self._after = sequence_to_pass(self._store)
        return self._after is None or _wal.store_wait(
            self._store._handle, self._after, _wal.CLUSTER, timeout_ms) is not None


def append_shipped(store: Store, append: Callable[[], tuple[int, int, int, str]]) -> AppendResult:
    """Calls `append`, which is durable when it returns, and waits until the remote has it."""
    shipping = Shipping(store)
    result = AppendResult(*append())
    try:
        while not shipping.poll(SLICE_MS):
            pass
    except Error as error:
        error.result = result
        raise
    return result
