"""Finds, creates, lists and deletes the sessions of keys."""

from __future__ import annotations

from typing import Iterable, Sequence

from .._errors import BadJSON, Exists, NotFound, Trashed
from .._info import SessionInfo
from .._names import size
from .._session import Session
from .._store import Store
from .._wal import Entry
from ._key import (Key, decode_part, has_lone_surrogate, is_digest_part, is_project,
                   names_other_project, place_of, project_text)
from ._rows import Row
from ._summary import FOLD

_CWD_BYTES = 4096


def _open_session(store: Store, id: str) -> Session | None:
    """The session with an id, or None; one in the trash is none."""
    try:
        return store.session(id)
    except (NotFound, Trashed):
        return None


def info_of(session: Session) -> SessionInfo | None:
    """The session's info, or None when it was deleted meanwhile."""
    try:
        return session.info()
    except NotFound:
        return None


def _is_own_fork(store: Store, info: SessionInfo) -> bool:
    """Whether a fork is complete and of a session of Claude Code, which may be deleted: it has that
    one's summary, or a first row as Claude Code writes it."""
    session = _open_session(store, info.id)
    found = None if session is None else info_of(session)
    if session is None or found is None:
        return False
    claude = (found.metadata or {}).get("claude")
    if isinstance(claude, dict) and claude.get("fork") == "incomplete":
        return False
    return session.documents.get(FOLD) is not None or _is_row(session.entries().first())


def _is_row(entry: Entry | None) -> bool:
    if entry is None or not entry.is_line:
        return False
    try:
        value = entry.payload
    except BadJSON:
        return False
    return (isinstance(value, dict) and value.get("uuid") == entry.id
            and isinstance(value.get("sessionId"), str))


def _is_of(store: Store, key: Key, info: SessionInfo) -> bool:
    return key.matches(info) and (info.source != "" or _is_own_fork(store, info))


def find_session(store: Store, key: Key) -> Session | None:
    """The session of a key, or None."""
    for id in key.ids:
        session = _open_session(store, id)
        info = None if session is None else info_of(session)
        if info is not None and _is_of(store, key, info):
            return session
    return None


def open_or_create(store: Store, key: Key, rows: Sequence[Row]) -> Session:
    """Finds the session of a key, or creates it under the first id that is free. Processes that
    race for one key get the same session."""
    found = find_session(store, key)
    if found is not None:
        return found
    for id in key.ids:
        session, _ = store.open_or_create(
            id=id, source=key.source, project=project_text(key.project_key), cwd=cwd_of(rows),
            parent_id=None if key.is_main else key.main_id, metadata=key.metadata())
        if _is_of(store, key, session.info()):
            return session
    raise Exists("all ids for session %s are taken by other sessions: %s" %
                 (key.session_id, ", ".join(key.ids)))


def cwd_of(rows: Iterable[Row]) -> str | None:
    """The directory that the first of these rows names."""
    cwd = next((row.cwd for row in rows if row.cwd is not None), None)
    if cwd is None or size(cwd) > _CWD_BYTES or has_lone_surrogate(cwd):
        return None
    return cwd


def _text_of(store: Store, info: SessionInfo, part: str, name: str) -> str | None:
    """The text of a part of a key: metadata has it where the source has a digest."""
    if not is_digest_part(part):
        return "/".join(map(decode_part, part.split("/")))
    session = _open_session(store, info.id)
    found = None if session is None else info_of(session)
    claude = ((found.metadata if found is not None else None) or {}).get("claude")
    text = claude.get(name) if isinstance(claude, dict) else None
    return text if isinstance(text, str) else None


def _key_of(store: Store, info: SessionInfo, project_key: str) -> Key | None:
    """The key of a listed session, or None if it is not one of the project."""
    place = place_of(info)
    if place is None or info.entries == 0 or not is_project(info, place, project_key):
        return None
    is_fork = place.project is None and info.source == ""
    session_id = info.id if is_fork else _text_of(store, info, place.session, "sessionId")
    subpath = None if place.rest == "" else _text_of(store, info, place.rest, "subpath")
    if session_id is None or (place.rest != "" and subpath is None):
        return None
    key = Key({"project_key": project_key, "session_id": session_id, "subpath": subpath})
    return key if info.id in key.ids and _is_of(store, key, info) else None


def list_mains(store: Store, project_key: str) -> list[tuple[Key, SessionInfo]]:
    """The main sessions of a project, each with its key, once."""
    seen: dict[str, tuple[int, Key, SessionInfo]] = {}
    for info in store.sessions():
        if names_other_project(info.source, project_key):
            continue
        key = _key_of(store, info, project_key)
        if key is None or not key.is_main:
            continue
        # Of two that claim the key, the one that a key is looked up by.
        rank = key.ids.index(info.id)
        if key.source not in seen or rank < seen[key.source][0]:
            seen[key.source] = (rank, key, info)
    return [(key, info) for _, key, info in seen.values()]


def list_subs(store: Store, main: Key) -> list[Key]:
    """The keys of a main key's subpaths."""
    found: dict[str, Key] = {}
    for info in store.sessions(prefix=main.main_id):
        key = _key_of(store, info, main.project_key)
        if key is not None and not key.is_main and key.session_id == main.session_id:
            found[key.source] = key
    return list(found.values())


def delete_tree(store: Store, key: Key) -> None:
    """Deletes the session of a key for good, after those of its subpaths; sessions in the trash,
    too. When it fails, the rest is found by the next call."""
    trashed = [info.id for info in store.sessions(prefix=key.main_id, trash=True)
               if key.contains(info)]
    for id in trashed:
        store.undelete(id)
    for sub in list_subs(store, key) if key.is_main else ():
        _delete_session(store, sub)
    _delete_session(store, key)


def _delete_session(store: Store, key: Key) -> None:
    session = find_session(store, key)
    if session is not None:
        try:
            session.delete()
        except NotFound:
            pass
