"""Sessions."""

from __future__ import annotations

import contextlib
from typing import (TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Literal, Mapping,
                    NamedTuple, TypedDict, overload)

from . import _wal
from ._change import ChangeRow, HeadMove, SessionChange, change_row, head_row, head_rows
from ._documents import DocumentChange, Documents, document_rows
from ._entries import Entries, cursor_row, entries_of_slice, entry_at, follow
from ._entry import AppendResult, NewEntry, Row, make_row, options_of, row_of, rows_of
from ._errors import Invalid, InvalidType, wrong_type
from ._files import Checkpoints, file_changes, rewind
from ._handle import Closing
from ._info import SessionInfo
from ._records import FileChanges, Head, RewindResult
from ._shipping import Shipping, append_shipped, local_durability
from ._ticket import Ticket
from ._values import (UNSET, EntryId, Path, Time, Unset, durability_of, entry_id,
                      follow_durability, optional_entry_id, session_row, timeout_seconds,
                      whole_number)
from ._views import Export, View

if TYPE_CHECKING:
    from ._store import Store
    from ._values import Durability
    from ._wal import Entry


class SessionOptions(TypedDict, total=False):
    """Options of a session to be created; those of Store.create."""

    id: str
    cwd: str
    project: str
    title: str
    parent_id: str
    source: str
    metadata: Mapping[str, Any]
    schema_version: int
    created: Time


class Compaction(NamedTuple):
    """What Session.compact did."""

    session: Session
    """The fork, or the session itself."""
    result: AppendResult


class Session(Closing):
    """A session: entries that form a tree, of which each head names a branch.

    Iterating it, len() and indexing read the branch of the head `main`. Any number of threads may
    use it. It keeps its store open; close() or collecting it frees the handle.
    """

    __slots__ = ("_handle", "_id", "store")

    store: Store

    def __init__(self, store: Store, handle: _wal.Handle) -> None:
        """Called by the store: use Store.create, Store.session and the like."""
        if not isinstance(handle, _wal.Handle):
            raise wrong_type("Session", "Store.create or Store.session", handle)
        self.store = store
        self._handle = handle
        self._id: str = _wal.session_info(handle)["id"]

    @property
    def id(self) -> str:
        return self._id

    def __repr__(self) -> str:
        return "<agentwal.Session %s>" % self._id

    def info(self) -> SessionInfo:
        """The session as it is now. Raises NotFound when it is deleted."""
        return SessionInfo.of(_wal.session_info(self._handle))

    # ---------------------------------------------------------- writing ---

    def append(self, payload: Any = UNSET, /, *, text: str | bytes | None = None,
               line: str | bytes | None = None, id: str | None = None,
               parent_id: EntryId | None | Unset = UNSET, type: str = "message",
               timestamp: str | None = None, run_id: str | None = None, stream: int = 0,
               meta: Mapping[str, Any] | None = None, move_head: bool | None = None,
               durability: Durability = "durable",
               expect_tail: EntryId | None | Unset = UNSET) -> AppendResult:
        """Appends one entry and returns once it is as durable as `durability` says.

        payload: any value that JSON has, such as {"role": "user", "content": "Hello"}; in its
        place `text`, JSON as text, or `line`, a line of any bytes. Or a NewEntry, without the
        other arguments that describe an entry. See NewEntry for these.

        expect_tail: raises Conflict unless this is the entry of the head `main`; None: an empty
        stream. An entry whose id exists with the same content is counted as a duplicate, so that
        an append can be repeated. Threads that append at the same time share syncs. Readers see
        what is "queued" once it is written: Store.flush.

        "cluster" raises RemoteFailed when no process ships the store; nothing is written then.
        What it raises later, such as Fenced, has a `result`: the entry is durable here, and the
        remote may have it or not.
        """
        row = appended_row(payload, text, line, id, parent_id, type, timestamp, run_id, stream,
                           meta, move_head)
        return self._append((row,), durability_of(durability), expect_tail)

    def append_many(self, entries: Iterable[Any], *, durability: Durability = "durable",
                    expect_tail: EntryId | None | Unset = UNSET) -> AppendResult:
        """Appends payloads, or NewEntry objects, in their order, all or none."""
        return self._append(rows_of(entries), durability_of(durability), expect_tail)

    def _append(self, rows: tuple[Row, ...], kind: int,
                expect_tail: EntryId | None | Unset) -> AppendResult:
        if kind == _wal.CLUSTER:
            return append_shipped(self.store, lambda: _wal.append(
                self._handle, rows, options_of(_wal.DURABLE, expect_tail)))
        return AppendResult(*_wal.append(self._handle, rows, options_of(kind, expect_tail)))

    def submit(self, payload: Any = UNSET, /, *, text: str | bytes | None = None,
               line: str | bytes | None = None, id: str | None = None,
               parent_id: EntryId | None | Unset = UNSET, type: str = "message",
               timestamp: str | None = None, run_id: str | None = None, stream: int = 0,
               meta: Mapping[str, Any] | None = None, move_head: bool | None = None,
               durability: Durability = "durable",
               expect_tail: EntryId | None | Unset = UNSET, block: bool = True) -> Ticket:
        """Appends as append does, without waiting; the ticket reports the outcome.

        A full queue blocks the call, or with block=False raises Busy.
        """
        row = appended_row(payload, text, line, id, parent_id, type, timestamp, run_id, stream,
                           meta, move_head)
        return self._submit((row,), durability_of(durability), expect_tail, block)

    def submit_many(self, entries: Iterable[Any], *, durability: Durability = "durable",
                    expect_tail: EntryId | None | Unset = UNSET, block: bool = True) -> Ticket:
        """Appends as append_many does, without waiting."""
        return self._submit(rows_of(entries), durability_of(durability), expect_tail, block)

    def _submit(self, rows: tuple[Row, ...], kind: int, expect_tail: EntryId | None | Unset,
                block: bool) -> Ticket:
        kind, shipping = self._begin_shipping(kind)
        return Ticket(_wal.submit(self._handle, rows, options_of(kind, expect_tail, block)),
                      shipping)

    def _begin_shipping(self, kind: int) -> tuple[int, Shipping | None]:
        """The durability to submit with, and what is to be waited for after that."""
        shipping = Shipping(self.store) if kind == _wal.CLUSTER else None
        return local_durability(kind), shipping

    def commit(self, *, entries: Iterable[Any] = (), documents: Iterable[DocumentChange] = (),
               heads: Iterable[HeadMove] = (), change: SessionChange | None = None,
               expect_version: int | None = None, expect_sequence: int | None = None,
               durability: Durability = "durable",
               expect_tail: EntryId | None | Unset = UNSET) -> AppendResult:
        """Appends entries, puts documents, moves heads and changes texts, all or nothing.

        All expectations are checked before anything is written. expect_version: refuse the change
        unless this is `metadata_version`. expect_sequence: see `delete`; a batch of which all
        exists already succeeds whatever is expected.
        """
        kind = durability_of(durability)
        rows = (rows_of(entries), document_rows(documents), head_rows(heads),
                optional_change(change, expect_version, expect_sequence))
        if kind == _wal.CLUSTER:
            return append_shipped(self.store, lambda: _wal.commit(
                self._handle, *rows, options_of(_wal.DURABLE, expect_tail)))
        return AppendResult(*_wal.commit(self._handle, *rows, options_of(kind, expect_tail)))

    def submit_commit(self, *, entries: Iterable[Any] = (),
                      documents: Iterable[DocumentChange] = (), heads: Iterable[HeadMove] = (),
                      change: SessionChange | None = None, expect_version: int | None = None,
                      expect_sequence: int | None = None,
                      durability: Durability = "durable",
                      expect_tail: EntryId | None | Unset = UNSET, block: bool = True) -> Ticket:
        """Commits without waiting; a change needs `expect_version`."""
        kind = durability_of(durability)
        rows = (rows_of(entries), document_rows(documents), head_rows(heads),
                optional_change(change, expect_version, expect_sequence))
        kind, shipping = self._begin_shipping(kind)
        return Ticket(_wal.submit_commit(self._handle, *rows,
                                         options_of(kind, expect_tail, block)), shipping)

    # ---------------------------------------------------------- reading ---

    def entries(self, *, mode: Literal["branch", "all"] = "branch", stream: int = 0,
                up_to: EntryId | None = None, head: str | None = None, skip: int = 0,
                last: int | None = None, since_compaction: bool = False, durable: bool = False,
                deltas: bool = False, redacted: bool = False,
                out_of_line: bool = False) -> Entries:
        """The entries as they are now; default: the branch of the head `main`.

        mode: "branch", the path from a root to an entry; "all", what a fork shares, then its own
        in log order. up_to: last entry of the branch. head: branch of this head. last: only the
        last of them. durable: stop at the durable end. out_of_line: leave payloads above 256 KiB
        out; `digest` of an entry names the blob.
        """
        return Entries(self, cursor_row(mode, stream, optional_entry_id("up_to", up_to), head, skip,
                                        last, since_compaction, durable, deltas, redacted,
                                        out_of_line))

    def __iter__(self) -> Iterator[Entry]:
        return iter(Entries(self, cursor_row()))

    def __len__(self) -> int:
        return len(Entries(self, cursor_row()))

    def __bool__(self) -> bool:
        return True

    @overload
    def __getitem__(self, position: int) -> Entry: ...

    @overload
    def __getitem__(self, position: slice) -> List[Entry]: ...

    def __getitem__(self, position: int | slice) -> Entry | List[Entry]:
        """Entries of the branch by their positions: session[0], session[-10:]."""
        if isinstance(position, slice):
            return entries_of_slice(self, position)
        if not isinstance(position, int):
            raise wrong_type("position", "an int or a slice", position)
        return entry_at(self, position)

    def entry(self, id: str) -> Entry | None:
        """One entry on any branch, or None. Raises Redacted."""
        return _wal.entry_get(self._handle, id)

    def follow(self, after: Literal["tail", "start"] | int = "tail", *,
               durability: Literal["durable", "written"] = "written", deltas: bool = False,
               redacted: bool = False, stream: int = 0,
               timeout: float | None = None) -> Iterator[Entry]:
        """Yields entries as they are appended by any process, in log order.

        after: a sequence number, "tail", or "start" for those that are there too. The iteration
        ends when there was no entry for `timeout` seconds; None: it goes on until the store is
        closed, which raises Closed. It waits without polling a file.
        """
        return follow(self, after, follow_durability(durability), deltas, redacted, stream,
                      timeout_seconds(timeout))

    # ------------------------------------------------- heads and forks ---

    def fork(self, at: EntryId | None = None, *, id: str | None = None, cwd: Path | None = None,
             project: str | None = None, title: str | None = None,
             metadata: Mapping[str, Any] | None = None, source: str | None = None,
             schema_version: int = 0) -> Session:
        """Creates a session that shares the branch up to and including `at` (None: the head),
        durably, in time and space independent of its length. What is not given is copied."""
        row = session_row(id, cwd, project, title, None, source, metadata, schema_version)
        return Session(self.store, _wal.session_fork(self._handle, optional_entry_id("at", at),
                                                     row))

    def head(self, name: str = "main", *, stream: int = 0) -> str | None:
        """Entry id of a head, or None."""
        return _wal.head_get(self._handle, stream, name)

    def heads(self) -> List[Head]:
        """The heads that point to an entry: `main` first, then by stream and name."""
        return [Head(**row) for row in _wal.head_list(self._handle)]

    def move_head(self, entry: EntryId | None, *, name: str = "main", stream: int = 0,
                  note: str | None = None,
                  expect: EntryId | None | Unset = UNSET) -> str | None:
        """Moves or creates a head, or with None removes it, durably. Returns the entry id that it
        had, or None. expect: raises Conflict unless it is there; None: there is no such head."""
        row = head_row(HeadMove(entry, name, stream, note, expect))
        return _wal.head_move(self._handle, row) or None

    # ---------------------------------------------------------- changes ---

    @property
    def documents(self) -> Documents:
        """Documents of the session."""
        return Documents(self._handle, self)

    def update(self, change: Callable[[SessionInfo], SessionChange] | None = None, /, *,
               metadata: Mapping[str, Any] | Unset = UNSET, title: str | Unset = UNSET,
               cwd: Path | Unset = UNSET, project: str | Unset = UNSET,
               schema_version: int | Unset = UNSET, expect_sequence: int | None = None) -> None:
        """Changes metadata and texts, durably.

        change: a function of the present state that returns the fields to set as a dict; it is
        called again when another writer was faster. What it raises is raised, and nothing is
        changed. expect_sequence: see `delete`.
        """
        given = {"metadata": metadata, "title": title, "cwd": cwd, "project": project,
                 "schema_version": schema_version}
        fields = {name: value for name, value in given.items() if value is not UNSET}
        if (change is None) == (not fields):
            raise Invalid("update takes fields to set, or a function that returns them")
        if change is None:
            row = change_row(fields, None, expect_sequence)
            _wal.session_update(self._handle, lambda now: row)
        else:
            _wal.session_update(self._handle, _change_function(change, expect_sequence))

    def migrate(self, to: int,
                step: Callable[[SessionInfo], SessionChange] | None = None) -> None:
        """Migrates to a schema version, one version at a time; each step is atomic."""
        _wal.session_migrate(self._handle, to,
                             None if step is None else _change_function(step))

    def redact(self, entry: EntryId, reason: str | None = None) -> AppendResult:
        """Hides the content of an entry from every reader, durably."""
        return AppendResult(*_wal.session_redact(self._handle, entry_id("entry", entry), reason))

    def unredact(self, entry: EntryId) -> None:
        """Shows the content of a redacted entry again. Raises Redacted when it was erased."""
        _wal.session_unredact(self._handle, entry_id("entry", entry))

    def compact(self, *, first_kept: EntryId, summary: str,
                into: SessionOptions | None = None) -> Compaction:
        """Records that a summary replaces the entries before `first_kept`, durably; with `into`
        in a fork that is created with these options. Nothing is destroyed."""
        try:
            options = None if into is None else session_row(**into)
        except TypeError as error:
            raise InvalidType("into: %s" % error) from error
        fork, row = _wal.session_compact(
            self._handle, (entry_id("first_kept", first_kept), summary, options))
        return Compaction(self if fork is None else Session(self.store, fork), AppendResult(*row))

    def claim(self) -> None:
        """Says that this handle works in the session, until unclaim(), close() or the end of the
        process. Raises Claimed when another one does."""
        _wal.session_claim(self._handle)

    def unclaim(self) -> None:
        """Ends the claim of this handle, if it has one."""
        _wal.session_unclaim(self._handle)

    @contextlib.contextmanager
    def claimed(self) -> Iterator[Session]:
        """Claims the session within a `with` block."""
        self.claim()
        try:
            yield self
        finally:
            self.unclaim()

    def accept_damage(self) -> None:
        """Permits appends again after damage lost some entries."""
        _wal.session_accept_damage(self._handle)

    def trash(self, *, expect_sequence: int | None = None) -> None:
        """Moves the session to the trash; Store.undelete takes it out. expect_sequence: see
        `delete`."""
        self._remove(_wal.SESSION_REMOVE_TRASH, expect_sequence)

    def delete(self, *, expect_sequence: int | None = None) -> None:
        """Deletes the session for good.

        expect_sequence: raises Conflict unless this is its `last_sequence`. A caller that deletes
        or changes a session because of what it read passes that of the `info()` before; the
        session has another one when anybody has written to it since.
        """
        self._remove(0, expect_sequence)

    def _remove(self, flags: int, sequence: int | None) -> None:
        if sequence is not None:
            flags |= _wal.SESSION_REMOVE_EXPECT
        _wal.session_remove(self._handle, flags, whole_number("expect_sequence", sequence))

    # ------------------------------------------------- files and views ---

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints of the files that the session works on."""
        return Checkpoints(self)

    def rewind(self, checkpoint: str, *, dry_run: bool = False, force: bool = False,
               head: bool = False, root: Path | None = None,
               expected: str | None = None) -> RewindResult:
        """Restores the files of a checkpoint, all or none.

        force: overwrite what other programs changed. head: move the head `main` to the
        checkpoint's entry, too. expected: checkpoint of what the caller last wrote.
        """
        return rewind(self, checkpoint, dry_run, force, head, root, expected)

    def diff(self) -> FileChanges:
        """The first state of each file in the checkpoints, compared with the last."""
        return file_changes(*_wal.session_diff(self._handle))

    def view(self, *, dialect: str, root: Path) -> View:
        """The session as files of another program, in the directory `root`."""
        return View(self, dialect, root)

    def export(self, *, dialect: str) -> Export:
        """The session as one file of another program."""
        data, losses = _wal.session_export(self.store._handle, self._handle, dialect)
        return Export(data=data, losses=losses)

    # ---------------------------------------------------------- closing ---

    def close(self) -> None:
        """Frees the handle; otherwise that happens when it is collected. May be repeated."""
        _wal.handle_close(self._handle)


def appended_row(payload: Any, text: str | bytes | None, line: str | bytes | None,
                 id: str | None, parent_id: EntryId | None | Unset, type: str,
                 timestamp: str | None, run_id: str | None, stream: int,
                 meta: Mapping[str, Any] | None, move_head: bool | None) -> Row:
    """The entry that the arguments of an append describe, as the extension takes it."""
    if isinstance(payload, NewEntry):
        others = (text, line, id, timestamp, run_id, meta, move_head)
        if (any(other is not None for other in others) or parent_id is not UNSET
                or type != "message" or stream != 0):
            raise Invalid("a NewEntry is appended as it is: give it these arguments")
        return row_of(payload)
    return make_row(payload, text, line, id, parent_id, type, timestamp, run_id, stream, meta,
                    move_head)


def optional_change(change: SessionChange | None, version: int | None,
                    sequence: int | None) -> ChangeRow | None:
    """The change as the extension takes it, or None."""
    if change is None:
        if version is not None:
            raise Invalid("expect_version: there is no change")
        return None if sequence is None else change_row({}, None, sequence)
    return change_row(change, version, sequence)


def _change_function(change: Callable[[SessionInfo], SessionChange], sequence: int | None = None
                     ) -> Callable[[dict[str, Any]], ChangeRow]:
    if not callable(change):
        raise wrong_type("change", "a function", change)
    return lambda now: change_row(change(SessionInfo.of(now)), None, sequence)
