"""Stores."""

from __future__ import annotations

import atexit
import os
import time
import warnings
import weakref
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, List, Literal, Mapping

from . import _wal
from ._blobs import Blobs
from ._documents import Documents
from ._entries import wait_for_records
from ._errors import Error, Forked, Invalid, wrong_type
from ._handle import Closing
from ._imports import ImportFollow, Select, import_row
from ._info import SessionInfo, SessionList
from ._records import (BackupResult, Claim, CompactResult, ImportResult, StoreInfo, TransferResult,
                       ViewFlushResult, ViewInfo)
from ._search import Search
from ._session import Session
from ._values import (Path, Paths, Time, flags_of, follow_durability, items_of, milliseconds,
                      optional_path, path_bytes, path_list, path_text, session_row, timeout_seconds)
from ._views import view_row

Progress = Callable[[int, int], object]
"""Called with what is done and the total, at most some times a second; an exception that it
raises stops the call, and what was done remains."""


class Store(Closing):
    """A store: sessions in one crash-safe log. agentwal.open returns it.

    A context manager that closes it. Any number of threads and processes may use one store. A
    child of os.fork() opens its own: calls on this one raise Forked there.
    """

    __slots__ = ("__weakref__", "_handle", "_is_closed", "_pid", "path")

    path: str
    """As it was given; of a store in memory "":"""

    def __init__(self, handle: _wal.Handle, path: str) -> None:
        """Called by agentwal.open."""
        if not isinstance(handle, _wal.Handle):
            raise wrong_type("Store", "agentwal.open", handle)
        self._handle = handle
        self._is_closed = False  # not only begun to close
        self._pid = os.getpid()
        self.path = path
        _open_stores.add(self)

    def __repr__(self) -> str:
        return "<agentwal.Store %r%s>" % (self.path, "" if self.is_open else ", closed")

    @property
    def is_open(self) -> bool:
        """Whether calls on it are possible; False also in a child of os.fork()."""
        return os.getpid() == self._pid and _wal.is_open(self._handle)

    def info(self) -> StoreInfo:
        """The state of the store."""
        return StoreInfo.of(_wal.store_info(self._handle))

    # --------------------------------------------------------- sessions ---

    def create(self, *, id: str | None = None, cwd: Path | None = None, project: str | None = None,
               title: str | None = None, parent_id: str | None = None, source: str | None = None,
               metadata: Mapping[str, Any] | None = None, schema_version: int = 0,
               created: Time | None = None) -> Session:
        """Creates a session, durably. id: 1 to 255 bytes; None: a UUIDv7. Raises Exists when it is
        taken. source: where it was imported from; it never changes."""
        row = session_row(id, cwd, project, title, parent_id, source, metadata, schema_version,
                          created)
        return Session(self, _wal.session_create(self._handle, row))

    def session(self, id: str) -> Session:
        """Opens a session by its id. Raises NotFound, or Trashed."""
        return Session(self, _wal.session_open(self._handle, id))

    def latest(self, *, cwd: Path | None = None) -> Session | None:
        """The session that was active last, of a directory or of the store; None if there is
        none."""
        handle = _wal.session_open_latest(self._handle, path_text("cwd", cwd))
        return None if handle is None else Session(self, handle)

    def open_or_create(self, *, id: str | None = None, cwd: Path | None = None,
                       project: str | None = None, title: str | None = None,
                       parent_id: str | None = None, source: str | None = None,
                       metadata: Mapping[str, Any] | None = None, schema_version: int = 0,
                       created: Time | None = None) -> tuple[Session, bool]:
        """Opens the session `id`, or without one the latest of `cwd`; creates it if there is none.
        Returns it and whether it was created. Callers that do this at the same time, in any
        process, get the same session."""
        row = session_row(id, cwd, project, title, parent_id, source, metadata, schema_version,
                          created)
        handle, created_now = _wal.session_open_or_create(self._handle, row)
        return Session(self, handle), created_now

    def list(self, *, cwd: Path | None = None, project: str | None = None,
             prefix: str | None = None, source: str | None = None, parent: str | None = None,
             lineage_of: str | None = None, trash: bool = False, after: str | None = None,
             changed_after: Time | None = None, recorded_after: int = 0,
             limit: int = 100) -> SessionList:
        """Sessions, the one with the latest entry first, at most `limit`.

        `next` of the result is the position for `after`. prefix: of ids. parent: children of this
        session. lineage_of: its ancestors, nearest first, without the other filters. trash: the
        sessions in the trash. recorded_after: those with records after a sequence number.
        """
        flags = flags_of((lineage_of is not None, _wal.SESSION_CURSOR_LINEAGE),
                         (trash, _wal.SESSION_CURSOR_TRASH))
        options = (flags, path_text("cwd", cwd), project, prefix, source, parent, lineage_of, after,
                   milliseconds("changed_after", changed_after), recorded_after)
        if not isinstance(limit, int) or limit < 1:
            raise Invalid("limit: a number from 1 on is needed, not %r" % (limit,))
        rows, position = _wal.session_list(self._handle, options, limit)
        result = SessionList(map(SessionInfo.of, rows))
        result.next = position
        return result

    def sessions(self, *, cwd: Path | None = None, project: str | None = None,
                 prefix: str | None = None, source: str | None = None, parent: str | None = None,
                 lineage_of: str | None = None, trash: bool = False,
                 changed_after: Time | None = None,
                 recorded_after: int = 0) -> Iterator[SessionInfo]:
        """Sessions as list() finds them, without a limit; they are read a few at a time."""
        after: str | None = None
        while True:
            page = self.list(cwd=cwd, project=project, prefix=prefix, source=source, parent=parent,
                             lineage_of=lineage_of, trash=trash, after=after,
                             changed_after=changed_after, recorded_after=recorded_after)
            yield from page
            if page.next is None:
                return
            after = page.next

    def search(self, *, memory: bool = False) -> Search:
        """A full-text search over the sessions. memory: keep the index in memory, as it is also
        kept for a store without files and where the store cannot be written."""
        return Search(self, memory)

    def undelete(self, id: str) -> None:
        """Takes a session out of the trash, durably."""
        _wal.session_undelete(self._handle, id)

    def claims(self) -> List[Claim]:
        """Sessions that are claimed now."""
        return [Claim(**row) for row in _wal.claims(self._handle)]

    @property
    def documents(self) -> Documents:
        """Documents of the store."""
        return Documents(self._handle, self)

    @property
    def blobs(self) -> Blobs:
        """Content by its SHA-256."""
        return Blobs(self)

    def accept_damage(self) -> None:
        """Permits writes to the store's documents after damage lost some."""
        _wal.store_accept_damage(self._handle)

    # ------------------------------------------------- waiting, closing ---

    def follow(self, after: int | None = None, *,
               durability: Literal["durable", "written"] = "written",
               timeout: float | None = None) -> Iterator[int]:
        """Yields the sequence number of the newest record each time that any process wrote one
        after `after` (None: now). The iteration ends after `timeout` seconds without one."""
        kind, seconds = follow_durability(durability), timeout_seconds(timeout)
        newest = _wal.store_wait(self._handle, 0, kind, 0) or 0 if after is None else after

        def records(newest: int) -> Iterator[int]:
            while True:
                end = None if seconds is None else time.monotonic() + seconds
                found = wait_for_records(self, newest, kind, end)
                if found is None:
                    return
                yield found
                newest = found

        return records(newest)

    def completion_fd(self) -> int:
        """A descriptor that becomes readable when a submitted append completes: an eventfd, for
        event loops. Read its 8 bytes, then ask the tickets. Closed by close()."""
        return _wal.completion_fd(self._handle, _wal.COMPLETION_EVENTFD)

    def sync(self) -> None:
        """Waits until all is durable that is queued here, and that any process has written."""
        _wal.store_sync(self._handle)

    def flush(self) -> None:
        """Waits until everything queued on this handle before is written."""
        _wal.store_flush(self._handle)

    def close(self) -> None:
        """Completes every append, waits for calls of other threads, and closes the store. Appends
        that wait for the remote are durable then, and raise Closed.

        Closed also when it raises what could not be made durable. Calls on what came from the
        store raise Closed then; entries that were read remain. May be repeated.
        """
        try:
            while not _wal.store_close(self._handle):
                pass
        except Error:
            self._is_closed = True
            raise
        self._is_closed = True

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if os.getpid() == self._pid:
            self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn,
                _getpid: Callable[[], int] = os.getpid) -> None:
        try:
            if _getpid() != self._pid or self._is_closed:
                return
        except AttributeError:  # __init__ failed
            return
        _warn("unclosed store %r" % self.path, ResourceWarning, source=self)
        try:
            self.close()
        except Error as error:
            _warn("the store %r was not closed in order: %s" % (self.path, error), RuntimeWarning)

    # --------------------------------------------------- administration ---

    def compact(self, *, erase: bool = False, dry_run: bool = False, empty_trash: bool = False,
                keep_deltas: bool = False, dead_percent: int = 0, max_bytes: int = 0,
                rate: float | None = None,
                on_progress: Progress | None = None) -> CompactResult:
        """Gives back the space of what is dead, and compresses what is live.

        erase: leave no byte of what was deleted or redacted. dry_run: report what would be done.
        dead_percent: of a segment's records, from which it is rewritten again; 0: 20. max_bytes:
        of segments to rewrite; 0: all. rate: bytes in a second, at most; None: 64 MiB; math.inf:
        no limit.
        """
        flags = flags_of((erase, _wal.STORE_COMPACT_ERASE), (dry_run, _wal.STORE_COMPACT_DRY_RUN),
                         (empty_trash, _wal.STORE_COMPACT_EMPTY_TRASH),
                         (keep_deltas, _wal.STORE_COMPACT_KEEP_DELTAS))
        options = (flags, dead_percent, max_bytes, _rate(rate))
        return CompactResult.of(_wal.store_compact(self._handle, options, on_progress))

    def backup(self, path: Path, *, on_progress: Progress | None = None) -> BackupResult:
        """Copies the store to a directory while it is in use; later calls copy what is new."""
        return BackupResult(**_wal.store_backup(self._handle, path_bytes("path", path),
                                                on_progress))

    def merge(self, source: Store, *, sessions: Iterable[str] | None = None,
              keep_both: bool = False, branch_name: str = "",
              on_progress: Progress | None = None) -> TransferResult:
        """Takes sessions (None: all) of another open store into this one.

        keep_both: a session that both stores went on with is not refused: that of `source` becomes
        a fork, "ID@NAME". branch_name: NAME; empty: the first 8 digits of the id of `source`.
        """
        if not isinstance(source, Store):
            raise wrong_type("source", "a Store", source)
        return TransferResult.of(_wal.store_merge(
            source._handle, self._handle,
            _transfer_row(sessions, None, keep_both, branch_name), on_progress))

    def write_bundle(self, path: Path, *, sessions: Iterable[str] | None = None,
                     directory: Path | None = None,
                     on_progress: Progress | None = None) -> TransferResult:
        """Writes sessions (None: all) to a bundle, one file that must not exist. directory: where
        a temporary store is made; None: next to it."""
        return TransferResult.of(_wal.bundle_write(
            self._handle, path_bytes("path", path),
            _transfer_row(sessions, directory, False, ""), on_progress))

    def read_bundle(self, path: Path, *, sessions: Iterable[str] | None = None,
                    keep_both: bool = False, branch_name: str = "",
                    directory: Path | None = None,
                    on_progress: Progress | None = None) -> TransferResult:
        """Takes in the sessions of a bundle, all of whose bytes are checked before. keep_both and
        branch_name: as in merge()."""
        return TransferResult.of(_wal.bundle_read(
            self._handle, path_bytes("path", path),
            _transfer_row(sessions, directory, keep_both, branch_name), on_progress))

    # ------------------------------------------------ imports and views ---

    def import_files(self, paths: Paths, *, dialect: str | None = None,
                     exclude: Path | None = None, select: Select = "clients",
                     project: Callable[[str], str | None] | None = None,
                     on_progress: Progress | None = None) -> ImportResult:
        """Imports session files of other programs, among and below the paths.

        dialect: the only one to accept; None: detected. exclude: directory that is not imported.
        select: which files below directories are sources: those that are sessions of a client, or
        "all", or "others". project: returns the id of the project of a directory, or None for its
        path. on_progress: with bytes of the present file.
        """
        return ImportResult.of(_wal.import_tree(
            self._handle, path_list("paths", paths), import_row(dialect, exclude, select),
            on_progress, project))

    def follow_import(self, paths: Paths, *, dialect: str | None = None,
                      exclude: Path | None = None, select: Select = "clients",
                      project: Callable[[str], str | None] | None = None) -> ImportFollow:
        """Imports them, then what changes in them: iterate the result."""
        return ImportFollow(self, path_list("paths", paths),
                            import_row(dialect, exclude, select), project)

    def views(self, *, session: str | None = None, stale: bool = False) -> List[ViewInfo]:
        """Views that the store knows of. stale: those that may hold what was deleted or
        redacted."""
        flags = _wal.VIEW_CURSOR_STALE if stale else 0
        return [ViewInfo(**row) for row in _wal.view_list(self._handle, flags, session)]

    def update_view(self, view: ViewInfo) -> ViewFlushResult:
        """Brings a listed view up to its session, or removes that of a deleted one."""
        if not isinstance(view, ViewInfo):
            raise wrong_type("view", "a ViewInfo", view)
        return ViewFlushResult(**_wal.view_update(self._handle, view_row(view)))

    def find_view(self, path: Path) -> ViewInfo | None:
        """The view that has this path as its main file, or None."""
        row = _wal.view_find(self._handle, path_bytes("path", path))
        return None if row is None else ViewInfo(**row)

    def add_view_root(self, dialect: str, root: Path) -> None:
        """Adds a root of views to the list of the store."""
        _wal.view_root_add(self._handle, dialect, path_bytes("root", root))


def _rate(rate: float | None) -> int:
    if rate is None:
        return 0
    if isinstance(rate, bool) or not isinstance(rate, (int, float)):
        raise wrong_type("rate", "a number of bytes or None", rate)
    if not rate > 0:
        raise Invalid("rate: %r is not above 0" % rate)
    return min(2 ** 64 - 1, int(rate)) if rate < 2 ** 63 else 2 ** 64 - 1


def _transfer_row(sessions: Iterable[str] | None, directory: Path | None, keep_both: bool,
                  branch_name: str) -> tuple[Any, ...]:
    ids = None if sessions is None else items_of("sessions", "an iterable of ids", sessions)
    return (_wal.TRANSFER_KEEP_BOTH if keep_both else 0, ids, optional_path("directory", directory),
            branch_name if keep_both else None)


_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _close_all() -> None:
    """Completes what is queued before the interpreter ends."""
    for store in tuple(_open_stores):
        try:
            if not store._is_closed:
                store.close()
        except Forked:
            pass
        except Error as error:
            warnings.warn("the store %r was not closed in order: %s" % (store.path, error),
                          RuntimeWarning)


atexit.register(_close_all)
