"""Forks of sessions.

The engine's fork shares the branch up to the fork point in constant space. Rows before the fork
point that are on no branch are named by the document `claude/fork` (_transcript.py); rows after it
are copied. The fork is listed when the batch that completes it is durable.
"""

from __future__ import annotations

import uuid
from typing import Any

from .._change import SessionChange
from .._documents import DocumentChange
from .._errors import Corrupt, Invalid, NotFound, Redacted
from .._session import Session
from ._key import Key, id_of, project_text
from ._owner import Owner
from ._rows import serialize
from ._sessions import find_session
from ._summary import State, make_changes, read_summary
from ._transcript import FORK, Row, read_rows

_COPY_BATCH = 500


def _not_found(what: str) -> NotFound:
    return NotFound("there is no %s" % what)


def _fork_point(session: Session, key: Key, up_to: str | None) -> str:
    """The id of the last row to share."""
    if up_to is None:
        head = session.head()
        if head is None:
            raise _not_found("message in session %s" % key.session_id)
        return head
    id = id_of(str(up_to))
    if session.entry(id) is None:
        raise _not_found("message %s in session %s" % (up_to, key.session_id))
    return id


def _is_off_branch(row: Row) -> bool:
    return not isinstance(row.value.get("uuid"), str) or row.value.get("isSidechain") is True


def _partition(rows: list[Row], ids: set[str],
               is_whole: bool) -> tuple[list[Row], list[list[str | None]], list[Row]]:
    """Which rows are kept; which of them are off the branch, each with the id of the next row of
    the branch; and which are copied: of a fork at the head, those after the branch, but for what
    the head was moved away from."""
    last = next((i for i in range(len(rows) - 1, -1, -1) if rows[i].id in ids), -1)
    if last < 0:
        # Converted: the rows are not those of the log.
        return rows, [], []
    named: list[list[str | None]] = []
    following: str | None = None
    for row in reversed(rows[:last + 1]):
        if row.id in ids:
            following = row.id
        else:
            named.insert(0, [row.id, following])
    copied = list(filter(_is_off_branch, rows[last + 1:])) if is_whole else []
    return rows[:last + 1], named, copied


def _copy_row(row: Row, session_id: str) -> dict[str, Any]:
    value = row.value
    return {**value, "sessionId": session_id} if isinstance(value.get("sessionId"), str) else value


def _title_of(session: Session, title: str | None) -> str | None:
    """What the fork is named; None when the session has no title."""
    old = session.info().title
    return title if title is not None else "%s (fork)" % old if old else None


def _title_rows(session_id: str, title: str | None) -> list[dict[str, Any]]:
    if title is None:
        return []
    return [{"type": "custom-title", "customTitle": title, "sessionId": session_id}]


def fork_session(owner: Owner, key: Key, up_to: str | None, title: str | None,
                 session_id: str | None) -> str:
    """Forks the session of a main key; returns the id of the fork."""
    id = str(uuid.uuid4()) if session_id is None else session_id
    fork_key = Key({"project_key": key.project_key, "session_id": id})
    if fork_key.main_id != id:
        raise Invalid('the session id of a fork has at most 160 bytes, no control characters, '
                      'no half of a surrogate pair, and no "~" at its start')
    session = find_session(owner.open(), key)
    if session is None:
        raise _not_found("session %s in project %s" % (key.session_id, key.project_key))
    at = _fork_point(session, key, up_to)
    metadata = session.info().metadata or {}
    rows = read_rows(session)
    ids = {entry.id for entry in session.entries(up_to=at)}
    kept, named, copied = _partition(rows, ids, up_to is None)
    title = _title_of(session, title)
    own = [_copy_row(row, id) for row in copied] + _title_rows(id, title)
    fork = session.fork(at, id=id, project=project_text(key.project_key),
                        metadata={**metadata, "claude": {"fork": "incomplete"}})
    _complete(owner, fork, fork_key, kept, named, own, metadata, title)
    return id


def _complete(owner: Owner, fork: Session, key: Key, kept: list[Row],
              named: list[list[str | None]], own: list[dict[str, Any]],
              metadata: dict[str, Any], title: str | None) -> None:
    """Adds what is off the branch, and lets the fork be listed."""
    ids: set[str] = set()

    def has(id: str) -> bool:
        return id in ids or _has_entry(fork, id)

    entries = []
    fields = []
    for row in serialize(own):
        entries.append(row.to_entry(has, True))
        fields.append(row.fields)
        ids.add(row.id)
    last = max(0, len(entries) - _COPY_BATCH)
    for i in range(0, last, _COPY_BATCH):
        fork.append_many(entries[i:min(i + _COPY_BATCH, last)], durability=owner.durability)
    now = read_summary(fork)
    documents = make_changes(owner.fold(), key, State(now.info, now.version), fields[last:],
                             lambda: [row.value for row in kept] + fields[:last])
    documents.append(DocumentChange(FORK, {"rows": named}))
    change: SessionChange = {"metadata": metadata}
    if title is not None:
        change["title"] = title
    fork.commit(entries=entries[last:], documents=documents, change=change,
                durability=owner.durability)


def _has_entry(fork: Session, id: str) -> bool:
    try:
        return fork.entry(id) is not None
    except (Redacted, Corrupt):
        return True
