"""What the parts of an adapter share: its store, its options and what it counts."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._errors import Closed, Forked, wrong_type
from .._library import open as open_store
from .._store import Store
from .._values import LOCAL_DURABILITIES, Path, one_of
from ._summary import Fold, find_fold

if TYPE_CHECKING:
    from typing import Literal

    from .._values import LocalDurability


@dataclass
class Stats:
    """What an adapter did."""

    appended: int = 0
    """Entries that append() wrote."""
    duplicates: int = 0
    """Entries that were there already, with the same content."""
    ignored: int = 0
    """Entries left out because their uuid is that of an entry with other content."""
    retries: int = 0
    """Batches that were made again because another process was faster."""
    unreadable: int = 0
    """Lines that load() left out because they are no JSON objects, and damaged entries."""


class Owner:
    """Used by any number of threads."""

    def __init__(self, store: Store | Path, durability: LocalDurability, fold: Fold | None,
                 damaged: Literal["raise", "skip"]) -> None:
        one_of("durability", LOCAL_DURABILITIES, durability)
        self.skips_damage = one_of("damaged", {"raise": 0, "skip": 1}, damaged) == 1
        self.durability: LocalDurability = durability
        self.stats = Stats()
        self._fold = fold
        self._lock = threading.Lock()
        self._store = store if isinstance(store, Store) else None
        self._path = None if isinstance(store, Store) else store
        if self._path is not None and not isinstance(self._path, (str, bytes, os.PathLike)):
            raise wrong_type("store", "a Store or the path of one", store)
        self._pid = os.getpid()
        self._is_closed = False

    def check(self) -> None:
        """Raises Forked in a child of fork(), and Closed after close()."""
        if os.getpid() != self._pid:
            raise Forked("the adapter is that of the parent process: make one in this process")
        if self._is_closed:
            raise Closed("the session store was closed")

    def open(self) -> Store:
        """The store; opened by the first call that needs it."""
        self.check()
        with self._lock:
            if self._store is None:
                assert self._path is not None
                self._store = open_store(self._path)
            return self._store

    def fold(self) -> Fold | None:
        """The SDK's fold_session_summary, or None without the SDK."""
        return find_fold() if self._fold is None else self._fold

    def count(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self.stats, name, getattr(self.stats, name) + count)

    def close(self) -> None:
        """Closes the store if this opened it."""
        with self._lock:
            self._is_closed = True
            if self._path is not None and self._store is not None:
                self._store.close()
