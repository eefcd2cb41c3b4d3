"""Appends of one key, in the order of the calls.

One batch is in flight at a time, since the summary of a batch depends on the one before; calls that
arrive meanwhile become one batch.
"""

from __future__ import annotations

import collections
import concurrent.futures
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Deque, Sequence

from .._change import SessionChange
from .._documents import DocumentChange
from .._entry import NewEntry
from .._errors import (Closed, Conflict, Corrupt, Error, Exists, IOFailed, NotFound, Poisoned,
                       Redacted, Trashed)
from .._info import SessionInfo
from .._session import Session
from ._key import Key, id_of
from ._owner import Owner
from ._rows import Row, serialize
from ._sessions import cwd_of, open_or_create
from ._summary import State, make_changes, read_summary
from ._transcript import read_rows, read_transcript

_GROUP_ROWS = 2000
_GROUP_CHARACTERS = 8 << 20
_RETRY_SECONDS = 30.0  # The SDK gives an append 60.
_PAUSE_MS_MAX = 32
_UNKNOWN_ATTEMPTS = 3
_STALE_ATTEMPTS = 8  # But for conflicts, which go on as long as others append.

Call = tuple[Sequence[Row], "concurrent.futures.Future[None]"]


@dataclass
class _Plan:
    entries: list[NewEntry] = field(default_factory=list)
    documents: list[DocumentChange] = field(default_factory=list)
    change: SessionChange | None = None
    appended: int = 0
    duplicates: int = 0
    ignored: int = 0


def _is_stale(error: Error, attempt: int) -> bool:
    """Whether another process was faster, so that the batch is made anew from what is there."""
    return isinstance(error, Conflict) or (attempt < _STALE_ATTEMPTS
                                           and isinstance(error, (Exists, NotFound)))


class AppendQueue:
    """The appends of a key. add() may be called by any thread."""

    def __init__(self, owner: Owner, key: Key,
                 executor: concurrent.futures.ThreadPoolExecutor) -> None:
        self.key = key
        self._owner = owner
        self._executor = executor
        self._waiting: Deque[Call] = collections.deque()
        self._idle = threading.Condition()
        self._is_running = False
        self._session: Session | None = None
        self._unknown: set[str] = set()
        """Parents that the session does not have."""

    def add(self, rows: Sequence[Row]) -> concurrent.futures.Future[None]:
        """The future is done when the rows are as durable as the owner asks for."""
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        with self._idle:
            if not self._is_running:
                try:
                    self._executor.submit(self._run)
                except RuntimeError:  # It was shut down.
                    raise Closed("the session store was closed") from None
                self._is_running = True
            self._waiting.append((rows, future))
        return future

    @property
    def is_idle(self) -> bool:
        return not self._is_running

    def wait(self) -> None:
        """Returns when nothing is waiting or in flight."""
        with self._idle:
            while self._is_running:
                self._idle.wait()

    def _run(self) -> None:
        while group := self._take_group():
            try:
                self._commit([row for rows, _ in group for row in rows])
            except BaseException as error:
                if len(group) == 1:
                    group[0][1].set_exception(error)
                else:
                    self._commit_each(group)
            else:
                for _, future in group:
                    future.set_result(None)

    def _take_group(self) -> list[Call]:
        group: list[Call] = []
        rows = characters = 0
        with self._idle:
            while self._waiting:
                rows += len(self._waiting[0][0])
                characters += sum(len(row.text) for row in self._waiting[0][0])
                if group and (rows > _GROUP_ROWS or characters > _GROUP_CHARACTERS):
                    break
                call = self._waiting.popleft()
                # What was cancelled before is left out.
                if call[1].set_running_or_notify_cancel():
                    group.append(call)
            if not group:
                self._is_running = False
                self._idle.notify_all()
        return group

    def _commit_each(self, group: list[Call]) -> None:
        """A refusal concerns one call, not those that shared its batch."""
        for rows, future in group:
            try:
                self._commit(rows)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(None)

    def _commit(self, rows: Sequence[Row]) -> None:
        store = self._owner.open()
        until = time.monotonic() + _RETRY_SECONDS
        attempt = 0
        while True:
            attempt += 1
            if self._session is None:
                self._session = open_or_create(store, self.key, rows)
            try:
                plan = self._plan(self._session, rows)
                if plan.entries:
                    self._commit_known(self._session, plan)
            except Error as error:
                self._session = None
                if not _is_stale(error, attempt) or time.monotonic() > until:
                    raise
                self._owner.count(retries=1)
            else:
                self._owner.count(appended=plan.appended, duplicates=plan.duplicates,
                                  ignored=plan.ignored)
                return
            time.sleep(random.random() * min(2 ** min(attempt, 8), _PAUSE_MS_MAX) / 1000)

    def _commit_known(self, session: Session, plan: _Plan) -> None:
        """Commits a batch; while the outcome is unknown, sends it again."""
        for attempt in range(1, _UNKNOWN_ATTEMPTS + 1):
            try:
                session.commit(entries=plan.entries, documents=plan.documents, change=plan.change,
                               durability=self._owner.durability)
                return
            except (IOFailed, Poisoned):
                if attempt == _UNKNOWN_ATTEMPTS:
                    raise

    def _plan(self, session: Session, rows: Sequence[Row]) -> _Plan:
        plan = _Plan()
        is_main = self.key.is_main
        state = read_summary(session) if is_main else State(session.info())
        if state.info.is_trashed:
            # Also where all rows are duplicates, since none can be read any more.
            raise Trashed('session "%s" is in the trash; undelete it first' % state.info.id)
        fresh = _select_new(session, rows, plan)
        if not fresh:
            return plan
        ids: set[str] = set()

        def has(id: str) -> bool:
            return id in ids or _look_up(session, id) is not None

        adopted = self._adopted(session, state.info, fresh[0])
        fresh = adopted + fresh
        plan.change = _change_of(state.info, fresh, is_main)
        for row in fresh:
            plan.entries.append(row.to_entry(has, is_main))
            ids.add(row.id)
        if is_main:
            plan.documents = make_changes(
                self._owner.fold(), self.key, state, [row.fields for row in fresh],
                lambda: [row.value for row in read_rows(session)])
        plan.appended = len(fresh)
        return plan

    def _adopted(self, session: Session, info: SessionInfo, first: Row) -> list[Row]:
        """The row that a converted transcript had in addition, where the client continued: a
        session that was resumed after its head had been moved."""
        parent = first.parent_uuid
        if (not isinstance(parent, str) or info.entries == 0 or parent in self._unknown
                or _look_up(session, id_of(parent)) is not None):
            return []
        try:
            found = [row.value for row in read_transcript(session)[0]
                     if row.id is None and row.value.get("uuid") == parent]
        except Error:
            return []
        if not found:
            self._unknown.add(parent)
        return serialize(found)


def _select_new(session: Session, rows: Sequence[Row], plan: _Plan) -> list[Row]:
    """Rows that the session does not have. One whose uuid it has is left out, and counted as
    ignored when the content differs."""
    texts: dict[str, str] = {}
    fresh = []
    for row in rows:
        if row.uuid is None:
            fresh.append(row)
            continue
        text = texts[row.id] if row.id in texts else _look_up(session, row.id)
        texts[row.id] = row.text if text is None else text
        if text is None:
            fresh.append(row)
        elif text == row.text:
            plan.duplicates += 1
        else:
            plan.ignored += 1
    return fresh


def _look_up(session: Session, id: str) -> str | None:
    """The text of an entry, "" of one that cannot be read, or None if there is none."""
    try:
        entry = session.entry(id)
    except (Redacted, Corrupt):
        return ""
    return None if entry is None else entry.text


def _change_of(info: SessionInfo, rows: Sequence[Row], is_main: bool) -> SessionChange | None:
    """Title and directory, as an import sets them."""
    change: SessionChange = {}
    title = next((row.title for row in reversed(rows) if row.title is not None), None)
    cwd = cwd_of(rows) if info.cwd == "" else None
    if is_main and title is not None and title != info.title:
        change["title"] = title
    if cwd is not None:
        change["cwd"] = cwd
    return change if change else None
