"""Imports of session files of other programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Callable, Iterator, Literal

from . import _wal
from ._handle import Closing
from ._records import ImportResult
from ._values import Path, one_of, optional_path, timeout_seconds

if TYPE_CHECKING:
    from ._store import Store

Select = Literal["clients", "all", "others"]
_SELECT = {"clients": 0, "all": _wal.IMPORT_ALL_FILES, "others": _wal.IMPORT_OTHER_FILES}

# Longest time in the library until signals are handled, in milliseconds.
SLICE_MS = 200


def import_row(dialect: str | None, exclude: Path | None,
               select: str) -> tuple[int, str | None, bytes | None]:
    """Options of an import as the extension takes them."""
    return one_of("select", _SELECT, select), dialect, optional_path("exclude", exclude)


class ImportFollow(Closing):
    """An import that goes on: Store.follow_import. One thread at a time.

    Iterating it imports everything, then what changes, and yields the result of each round that
    found something, until it is closed.
    """

    __slots__ = ("_handle", "_store")

    def __init__(self, store: Store, paths: tuple[bytes, ...],
                 row: tuple[int, str | None, bytes | None],
                 project: Callable[[str], str | None] | None) -> None:
        self._store = store
        self._handle = _wal.import_follow_open(store._handle, paths, row, project)

    def next(self, timeout: float | None = None) -> ImportResult | None:
        """Imports what is new; waits for it at most `timeout` seconds, and returns None then."""
        seconds = timeout_seconds(timeout)
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = SLICE_MS if end is None else (end - time.monotonic()) * 1000
            result = ImportResult.of(_wal.import_follow_next(
                self._handle, round(max(0, min(SLICE_MS, left)))))
            if result.sources > 0 or result.reports:
                return result
            if left <= 0:
                return None

    def __iter__(self) -> Iterator[ImportResult]:
        while True:
            result = self.next()
            if result is not None:
                yield result

    def info(self) -> dict[str, int]:
        """How changes are found: `is_scanning` is 1 when not every folder can be watched, because
        of `errno`; `folders` that are watched; `scans` of all paths."""
        return _wal.import_follow_info(self._handle)

    def close(self) -> None:
        """Stops following."""
        _wal.handle_close(self._handle)
