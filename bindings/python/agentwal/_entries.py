"""Reading and following entries."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Iterator, List

from . import _wal
from ._errors import Invalid
from ._handle import Unpicklable
from ._shipping import SLICE_MS
from ._values import flags_of, one_of

if TYPE_CHECKING:
    from ._session import Session
    from ._store import Store
    from ._wal import Entry, EntryIterator

CursorRow = tuple[int, int, int, "str | None", int, "str | None", int]

_MODES = {"branch": _wal.ENTRY_CURSOR_BRANCH, "all": _wal.ENTRY_CURSOR_ALL}


def cursor_row(mode: str = "branch", stream: int = 0, up_to: str | None = None,
               head: str | None = None, skip: int = 0, last: int | None = None,
               since_compaction: bool = False, durable: bool = False, deltas: bool = False,
               redacted: bool = False, out_of_line: bool = False) -> CursorRow:
    """Options of a cursor as the extension takes them."""
    if last is not None and (not isinstance(last, int) or last < 1):
        raise Invalid("last: a number from 1 on is needed, not %r" % (last,))
    flags = flags_of((since_compaction, _wal.ENTRY_CURSOR_SINCE_COMPACTION),
                     (durable, _wal.ENTRY_CURSOR_DURABLE), (deltas, _wal.ENTRY_CURSOR_DELTAS),
                     (redacted, _wal.ENTRY_CURSOR_REDACTED),
                     (out_of_line, _wal.ENTRY_CURSOR_OUT_OF_LINE))
    return one_of("mode", _MODES, mode), flags, stream, up_to, skip, head, last or 0


class Entries(Unpicklable):
    """Entries of a session, read anew, as they are then, each time it is iterated.

    An entry that is damaged raises Corrupt; the next call of next() on the iterator goes on after
    it.
    """

    __slots__ = ("_row", "_session")

    def __init__(self, session: Session, row: CursorRow) -> None:
        self._session = session
        self._row = row

    def __iter__(self) -> EntryIterator:
        return _wal.entries(self._session._handle, self._row, 0, self._session)

    def __len__(self) -> int:
        return iter(self).remaining()

    def __bool__(self) -> bool:
        return True

    def first(self) -> Entry | None:
        """The first of them, or None."""
        return next(iter(self), None)

    def to_list(self) -> List[Entry]:
        """All of them."""
        return list(iter(self))


def entry_at(session: Session, index: int) -> Entry:
    """An entry of the branch of the head `main` by its position."""
    if index >= 0:
        entries = Entries(session, cursor_row(skip=index))
    else:
        entries = Entries(session, cursor_row(last=-index))
    found = iter(entries)
    if index < 0 and found.remaining() < -index:
        raise IndexError("the branch has fewer than %d entries" % -index)
    for entry in found:
        return entry
    raise IndexError("the branch has no entry %d" % index)


def entries_of_slice(session: Session, positions: slice) -> List[Entry]:
    """Entries of the branch of the head `main` by their positions."""
    start, stop, step = positions.start, positions.stop, positions.step
    if step is None and stop is None and start is not None and start.__index__() < 0:
        return list(Entries(session, cursor_row(last=-start.__index__())))
    count = len(Entries(session, cursor_row()))
    first, end, step = positions.indices(count)
    wanted = range(first, end, step)
    if not wanted:
        return []
    low, high = min(wanted[0], wanted[-1]), max(wanted[0], wanted[-1])
    entries = Entries(session, cursor_row(skip=low))
    found = list(itertools.islice(entries, 0, high - low + 1, abs(step)))
    return found if step > 0 else found[::-1]


def wait_for_records(store: Store, sequence: int, durability: int,
                     end: float | None) -> int | None:
    """Waits for a record after `sequence`; returns the newest, or None at the time `end`."""
    while True:
        left = SLICE_MS if end is None else (end - time.monotonic()) * 1000
        newest = _wal.store_wait(store._handle, sequence, durability,
                                 round(max(0, min(SLICE_MS, left))))
        if newest is not None or left <= 0:
            return newest


class Tail:
    """Reads what is new in a session, again and again.

    Entries in log order only grow at their end, but for a compaction, which drops deltas, and
    redactions: then it reads from the start, and leaves out what was passed by its sequence.
    """

    def __init__(self, session: Session, flags: int, stream: int, after: str | int) -> None:
        self._session = session
        self._flags = flags
        self._stream = stream
        self._seen = 0
        self._last_sequence = 0
        self._passed = 0
        if after == "tail":
            self._pass_all()
        elif isinstance(after, int) and not isinstance(after, bool) and after >= 0:
            self._passed = after
        elif after != "start":
            raise Invalid('after: "tail", "start" or a sequence number is needed, not %r' %
                          (after,))

    def _open(self, skip: int, passed: int) -> EntryIterator:
        row = (_wal.ENTRY_CURSOR_ALL, self._flags, self._stream, None, skip, None, 0)
        return _wal.entries(self._session._handle, row, passed, self._session)

    def _sequence_at(self, position: int) -> int:
        entry = next(self._open(position, 0), None)
        return 0 if entry is None else entry.sequence

    def _pass_all(self) -> None:
        self._seen = self._open(0, 0).remaining()
        if self._seen > 0:
            self._last_sequence = self._sequence_at(self._seen - 1)
        self._passed = self._last_sequence

    def read(self) -> Iterator[Entry]:
        if self._seen > 0 and self._sequence_at(self._seen - 1) != self._last_sequence:
            self._seen = 0
        entries = self._open(self._seen, self._passed)
        seen = self._seen + entries.remaining()
        for entry in entries:
            self._passed = entry.sequence
            yield entry
        if seen > 0 and seen != self._seen:
            # What is at this position by now may be later than what was read.
            last = self._sequence_at(seen - 1)
            if 0 < last <= self._passed:
                self._seen, self._last_sequence = seen, last


def follow(session: Session, after: str | int, durability: int, deltas: bool, redacted: bool,
           stream: int, timeout: float | None) -> Iterator[Entry]:
    durable = durability == _wal.DURABLE
    row = cursor_row(mode="all", durable=durable, deltas=deltas, redacted=redacted)
    tail = Tail(session, row[1], stream, after)

    def entries() -> Iterator[Entry]:
        store = session.store
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            newest = _wal.store_wait(store._handle, 0, durability, 0) or 0
            for entry in tail.read():
                yield entry
                end = None if timeout is None else time.monotonic() + timeout
            if wait_for_records(store, newest, durability, end) is None:
                return

    return entries()
