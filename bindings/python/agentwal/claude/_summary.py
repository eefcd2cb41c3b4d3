"""Summaries of sessions, which the SDK's fold_session_summary makes.

Documents of a session, put in the batch of the entries that they cover:

    claude/fold            {entries, mark, by}: how many entries the summary covers
    claude/summary.python  the `data` of the summary; put when it changes
    claude/summary         that of the SDK for TypeScript, whose fields have other names

Each append puts claude/fold and expects its version, so that appends of all processes take turns.
`mark` makes each put distinct; a put of a present value would succeed whatever was expected. When
the session has another number of entries, or another language appended last, the summary is made
anew.
"""

from __future__ import annotations

import base64
import importlib
import os
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from .._documents import DocumentChange
from .._info import Document, SessionInfo
from .._session import Session
from ._key import Key

FOLD = "claude/fold"
_SUMMARY = "claude/summary.python"
_SUMMARY_OF_NODE = "claude/summary"
_BY = "python"
_MARK_BYTES = 6

Fold = Callable[[Any, Any, Any], Any]
"""fold(previous, key, entries), as the SDK's fold_session_summary."""


def find_fold() -> Fold | None:
    """The SDK's function, or None without the SDK."""
    try:
        sdk = importlib.import_module("claude_agent_sdk")
    except ImportError:
        return None
    return getattr(sdk, "fold_session_summary", None)


@dataclass(frozen=True)
class State:
    """The summary of a session as it is."""

    info: SessionInfo
    version: int = 0
    """Of the document to expect."""
    data: Any = None
    """None when there is none that covers all entries."""
    stored: Any = None
    """As it is in the store, or None."""
    of_node: Any = None
    modified_ms: int = 0
    """When the newest entry was stored."""


def read_summary(session: Session) -> State:
    while True:
        fold = session.documents.get(FOLD)
        stored = of_node = None
        if fold is not None:
            summary = session.documents.get(_SUMMARY)
            stored = None if summary is None else summary.value
            summary = session.documents.get(_SUMMARY_OF_NODE)
            of_node = None if summary is None else summary.value
        info = session.info()
        again = session.documents.get(FOLD)
        # Another process may have appended between these reads.
        if (fold and fold.version) != (again and again.version):
            continue
        if fold is None:
            return State(info, modified_ms=info.updated_ms)
        is_own = _covers(fold, info) and fold.value.get("by") == _BY
        return State(info, fold.version, stored if is_own else None, stored, of_node,
                     _modified_ms(fold, info))


def read_modified_ms(session: Session, info: SessionInfo) -> int:
    """When the newest entry was stored, as read_summary() has it; info: an earlier look."""
    return _modified_ms(session.documents.get(FOLD), info)


def _modified_ms(fold: Document | None, info: SessionInfo) -> int:
    if fold is None:
        return info.updated_ms
    return fold.modified_ms if _covers(fold, info) else max(fold.modified_ms, info.updated_ms)


def _covers(fold: Document, info: SessionInfo) -> bool:
    return bool(fold.value.get("entries") == info.entries)


def make_changes(fold: Fold | None, key: Key, state: State, values: Sequence[Any],
                 before: Callable[[], Sequence[Any]]) -> list[DocumentChange]:
    """The changes of documents that bring the summary up to `values`, which are appended to what
    `state` has; `before` reads the entries of the session."""
    mark = base64.urlsafe_b64encode(os.urandom(_MARK_BYTES)).decode()
    value = {"entries": state.info.entries + len(values), "mark": mark, "by": _BY}
    changes = [DocumentChange(FOLD, value, expect=state.version)]
    data = None if fold is None else _fold_values(fold, key, state, values, before)
    if data != state.stored:
        changes.append(DocumentChange(_SUMMARY, data))
    if state.of_node is not None:
        changes.append(DocumentChange(_SUMMARY_OF_NODE, None))
    return changes


def _fold_values(fold: Fold, key: Key, state: State, values: Sequence[Any],
                 before: Callable[[], Sequence[Any]]) -> Any:
    """The new data, or None where it cannot be made: of a session that is damaged, or of entries
    that the SDK's function refuses. The append goes on."""
    last: Any = None
    try:
        if state.data is not None:
            last = {"session_id": key.session_id, "mtime": 0, "data": state.data}
        elif state.info.entries > 0:
            last = fold(None, key.to_sdk(), list(before()))
        return fold(last, key.to_sdk(), list(values))["data"]
    except Exception:
        return None
