"""Full-text search over the sessions of a store."""

from __future__ import annotations

import datetime
import functools
import operator
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Literal, TypeVar

from . import _wal
from ._errors import Invalid, wrong_type
from ._handle import Closing
from ._info import time_of
from ._record import Record
from ._records import SearchUpdate
from ._values import Path, Time, flags_of, items_of, milliseconds, one_of, path_text

if TYPE_CHECKING:
    from ._store import Progress, Store

T = TypeVar("T")

SearchRole = Literal["user", "assistant", "tool", "title", "summary", "result"]

_ROLES = {"user": _wal.SEARCH_USER, "assistant": _wal.SEARCH_ASSISTANT, "tool": _wal.SEARCH_TOOL,
          "title": _wal.SEARCH_TITLE, "summary": _wal.SEARCH_SUMMARY,
          "result": _wal.SEARCH_RESULT}
_ROLE_NAMES = {code: name for name, code in _ROLES.items()}


class SearchHit(Record):
    """A place where a search found its words."""

    entry_id: str | None
    """None: the title of the session."""
    role: str
    """Part of a conversation: "user", "assistant", "tool" (a call), "title", "summary" or
    "result" (of a tool)."""
    time_ms: int
    """Milliseconds since 1970; 0: none is known."""
    timestamp: str
    """As the entry has it."""
    sequence: int
    tool: str | None
    """Name of the tool of a call."""
    snippet: str
    """One line around the first match."""
    matches: tuple[tuple[int, int], ...]
    """Start and end of each match in the snippet."""
    score: float
    """Higher is better."""

    @property
    def time(self) -> datetime.datetime | None:
        return time_of(self.time_ms) if self.time_ms else None


class SearchSession(Record):
    """A session with what a search found in it."""

    session_id: str
    title: str
    """Or its first text."""
    cwd: str
    project_id: str
    updated_ms: int
    """Milliseconds since 1970."""
    matches: int
    """Records that have all words; of a phrase, they may be elsewhere in the record."""
    hits: tuple[SearchHit, ...]
    """The best first."""

    @property
    def updated(self) -> datetime.datetime:
        return time_of(self.updated_ms)


def _hit(row: dict[str, Any]) -> SearchHit:
    return SearchHit(entry_id=row["entry_id"], role=_ROLE_NAMES[row["role"]],
                     time_ms=row["time_ms"], timestamp=row["timestamp"],
                     sequence=row["sequence"], tool=row["tool"], snippet=row["snippet"],
                     matches=tuple(row["matches"]), score=row["score"])


def _sessions(rows: List[dict[str, Any]]) -> List[SearchSession]:
    groups: dict[int, List[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["rank"], []).append(row)
    return [SearchSession(session_id=group[0]["session_id"], title=group[0]["title"],
                          cwd=group[0]["cwd"], project_id=group[0]["project"],
                          updated_ms=group[0]["session_updated_ms"],
                          matches=group[0]["session_hits"], hits=tuple(map(_hit, group)))
            for group in groups.values()]


def _role_set(roles: Iterable[SearchRole]) -> int:
    given = items_of("roles", "an iterable of roles", roles)
    return functools.reduce(operator.or_, (one_of("roles", _ROLES, role) for role in given), 0)


def _limit(name: str, value: int) -> int:
    """0 would be the default of the library."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, "a number", value)
    if value < 1:
        raise Invalid("%s: a number from 1 on is needed, not %r" % (name, value))
    return value


class Search(Closing):
    """A full-text search: Store.search returns it.

    It keeps an index of the log, which a call of find() brings up to date. A context manager that
    closes it. Calls of several threads are made one after the other.
    """

    __slots__ = ("_handle", "_lock", "_store")

    def __init__(self, store: Store, memory: bool) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._handle = _wal.search_open(store._handle, _wal.SEARCH_MEMORY if memory else 0)

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        if os.getpid() != self._store._pid:
            return function(self._handle, *args)  # raises Forked; the lock may be held for good
        with self._lock:
            return function(self._handle, *args)

    def find(self, text: str, *, project: str | None = None, cwd: Path | None = None,
             session: str | None = None, tool: str | None = None,
             roles: Iterable[SearchRole] = (), since: Time | None = None,
             until: Time | None = None, limit: int = 20, hits: int = 3, snippet: int = 80,
             deep: bool = False, substring: bool = False, update: bool = True,
             on_progress: Progress | None = None) -> List[SearchSession]:
        """Finds the records that have all words of the text; the best session is first.

        text: words, "a phrase", begin*, -without; with `substring` taken literally, inside words
        too, and the newest is first. project, cwd, session: of sessions. tool: name of the tool
        that is called. roles: none: all. since, until: times of entries, from and before. limit:
        of sessions. hits: of each session. snippet: characters on each side of a match. deep:
        search results of tools too. update: False: use the index as it is. on_progress: with
        bytes that are indexed. Raises Invalid for a text without a word, and NotFound or Trashed
        for `session`.
        """
        if not isinstance(text, str):
            raise wrong_type("text", "a str", text)
        flags = flags_of((deep, _wal.SEARCH_DEEP), (substring, _wal.SEARCH_SUBSTRING),
                         (not update, _wal.SEARCH_NO_UPDATE))
        query = (flags, text, project, path_text("cwd", cwd), session, tool,
                 milliseconds("since", since), milliseconds("until", until), _role_set(roles),
                 _limit("limit", limit), _limit("hits", hits), _limit("snippet", snippet))
        return _sessions(self._call(_wal.search_find, query, on_progress))

    def update(self, *, deep: bool = False, on_progress: Progress | None = None) -> SearchUpdate:
        """Brings the index up to date, as find() does; with `deep` that of tools' results too."""
        flags = _wal.SEARCH_UPDATE_DEEP if deep else 0
        return SearchUpdate(**self._call(_wal.search_update, flags, on_progress))

    def close(self) -> None:
        """Frees the search, once no call of another thread uses it; files of the index remain."""
        _wal.handle_close(self._handle)
