"""Reads the transcript of a session: its rows as objects, in the order in which they were appended.

Where the lines alone would not be the session, it is converted as for a view of Claude Code: when
an agent appended entries that are not lines, when the head was moved elsewhere, and for an imported
copy.

A fork shares the branch up to its fork point. Rows that were before that point but are not on the
branch (titles, snapshots of files, results of parallel calls of tools) can be read by their ids;
the document `claude/fork` has these, each with the id of the row of the branch that follows it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Callable

from .._errors import BadJSON, Corrupt, Error, IOFailed, Redacted
from .._info import SessionInfo
from .._session import Session
from .._wal import Entry
from ._key import id_of, place_of

FORK = "claude/fork"
_COPY_STREAM = 253  # Of an imported copy of a file.
_HEAD_ATTEMPTS = 3

OnDamage = Callable[[Error], None]


@dataclass
class Row:
    """A row; `id` is None in a session that is converted, because it has more than lines."""

    id: str | None
    value: dict[str, Any]
    is_shared: bool = False


@dataclass
class Lines:
    """The lines of a session."""

    info: SessionInfo
    rows: list[Row] = field(default_factory=list)
    hidden: dict[str, str | None] = field(default_factory=dict)
    """Parents of what is not a row, by id: redacted entries, and their redactions, which are under
    the head."""
    is_complete: bool = True
    """They are all that it has."""
    is_at_head: bool = True
    """The SDK goes on after the last row of its conversation, and that is where the head is."""
    unreadable: int = 0


def _object_of(entry: Entry) -> dict[str, Any] | None:
    """The object of a line, or None when it is none, as in a damaged file."""
    try:
        value = entry.payload
    except BadJSON:
        return None
    # A copy: the entry keeps what it has parsed.
    copy: dict[str, Any] | None = json.loads(entry.text) if isinstance(value, dict) else None
    return copy


def _read_converted(session: Session) -> list[Row]:
    """The session as the SDK would have it in a file."""
    data = session.export(dialect="claude").data
    return [Row(None, json.loads(line)) for line in data.decode().split("\n") if line]


def _is_copy(session: Session) -> bool:
    return session.entries(mode="all", stream=_COPY_STREAM).first() is not None


def _read_object(session: Session, id: str) -> dict[str, Any] | None:
    """The object of a row by its id, or None when it was redacted."""
    try:
        entry = session.entry(id)
    except Redacted:
        return None
    return None if entry is None else _object_of(entry)


def _add_shared_rows(session: Session, rows: list[Row]) -> list[Row]:
    """Adds what was before the fork point and is not on its branch."""
    document = session.documents.get(FORK)
    before: dict[str, list[Row]] = {}
    for id, following in document.value["rows"] if document is not None else ():
        shared = _read_object(session, id)
        if shared is not None:
            before.setdefault(following, []).append(Row(id, shared, True))
    found = []
    for row in rows:
        found += before.get(row.id or "", [])
        found.append(row)
    return found


def _in_fork(row: Row, session_id: str) -> Row:
    """A row of the session that was forked, as a row of the fork."""
    value = row.value
    if not row.is_shared or not isinstance(value.get("sessionId"), str):
        return row
    changed: dict[str, Any] = {**value, "sessionId": session_id}
    if isinstance(value.get("uuid"), str):
        changed["forkedFrom"] = {"sessionId": value["sessionId"], "messageUuid": value["uuid"]}
    return Row(row.id, changed, True)


def _read_lines(session: Session, on_damage: OnDamage | None) -> Lines:
    info = session.info()
    place = place_of(info)
    is_main = place is not None and place.rest == ""
    read = Lines(info)
    iterator = iter(session.entries(mode="all", redacted=True))
    count = 0
    last: str | None = None
    while True:
        try:
            entry = next(iterator, None)
        except (Corrupt, IOFailed) as error:
            if on_damage is None:
                raise
            on_damage(error)
            continue
        if entry is None:
            break
        is_shared = count < info.inherited
        count += 1
        if entry.is_redacted or not entry.is_line:
            read.hidden[entry.id] = entry.parent_id
            if not (entry.is_line or entry.is_redacted or entry.type == "redaction"):
                read.is_complete = False
                break
            continue
        value = _object_of(entry)
        if value is None:
            read.unreadable += 1 if entry.text.strip() else 0
            continue
        read.rows.append(Row(entry.id, value, is_shared))
        if _is_of_conversation(value, is_main):
            last = entry.id
    read.is_at_head = last is None or last == _visible(read.hidden, info.head)
    return read


def _visible(hidden: dict[str, str | None], id: str | None) -> str | None:
    """The id, or that of the nearest entry above it that is a row; or None."""
    while id is not None and id in hidden:
        id = hidden[id]
    return id


def _is_of_conversation(value: dict[str, Any], is_main: bool) -> bool:
    """Whether a row moved the head."""
    uuid = value.get("uuid")
    return (isinstance(uuid, str) and uuid != ""
            and not (is_main and value.get("isSidechain") is True))


def _relink(rows: list[Row], hidden: dict[str, str | None]) -> list[Row]:
    """Rows under a redacted one are under the nearest one above that is not."""
    if not hidden:
        return rows
    uuids = {row.id: row.value.get("uuid") for row in rows}
    linked = []
    for row in rows:
        uuid = row.value.get("parentUuid")
        parent = id_of(uuid) if isinstance(uuid, str) else None
        if parent is not None and parent in hidden:
            above = uuids.get(_visible(hidden, parent))
            row = Row(row.id, {**row.value, "parentUuid": above}, row.is_shared)
        linked.append(row)
    return linked


def _to_rows(session: Session, read: Lines) -> list[Row]:
    linked = _relink(read.rows, read.hidden)
    if not read.info.is_fork:
        return linked
    return [_in_fork(row, read.info.id) for row in _add_shared_rows(session, linked)]


def _is_converted(session: Session, read: Lines) -> bool:
    return not read.is_complete or (read.info.is_fork and _is_copy(session))


def read_rows(session: Session) -> list[Row]:
    """Rows of a session."""
    read = _read_lines(session, None)
    if _is_converted(session, read):
        return _read_converted(session)
    return _to_rows(session, read)


def read_transcript(session: Session,
                    on_damage: OnDamage | None = None) -> tuple[list[Row], int]:
    """The rows from which the client resumes the session: as read_rows(), and converted also when
    the head was moved; and the number of lines that are no objects. With `on_damage` damaged
    entries are left out."""
    for _ in range(_HEAD_ATTEMPTS):
        read = _read_lines(session, on_damage)
        is_lines = not _is_converted(session, read)
        if is_lines and read.is_at_head:
            return _to_rows(session, read), read.unreadable
        # Another process may have moved the head meanwhile.
        if not is_lines or session.info().last_sequence == read.info.last_sequence:
            break
    return _read_converted(session), 0
