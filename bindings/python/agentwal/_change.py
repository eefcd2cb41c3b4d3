"""Changes of a session's texts, metadata and heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping, TypedDict

from . import _wal
from ._errors import Invalid, wrong_type
from ._values import (UNSET, EntryId, Unset, entry_id, items_of, json_object, optional_entry_id,
                      path_text, whole_number)


class SessionChange(TypedDict, total=False):
    """Fields of a session to set."""

    metadata: Mapping[str, Any]
    title: str
    cwd: str
    project: str
    schema_version: int


ChangeRow = tuple[int, int, "str | bytes | None", "str | None", "str | None", "str | None", int,
                  int]

_FIELDS = {"metadata": _wal.CHANGE_METADATA, "title": _wal.CHANGE_TITLE, "cwd": _wal.CHANGE_CWD,
           "project": _wal.CHANGE_PROJECT, "schema_version": _wal.CHANGE_SCHEMA}


def change_row(change: Mapping[str, Any], expect_version: int | None = None,
               expect_sequence: int | None = None) -> ChangeRow:
    """The change as the extension takes it."""
    if not isinstance(change, Mapping):
        raise wrong_type("change", "a mapping", change)
    fields = 0
    for name in change:
        if name not in _FIELDS:
            raise Invalid("change: a session has no field %r; it has %s" %
                          (name, ", ".join(_FIELDS)))
        fields |= _FIELDS[name]
    if expect_version is not None:
        fields |= _wal.CHANGE_EXPECT
    if expect_sequence is not None:
        fields |= _wal.CHANGE_EXPECT_SEQUENCE
    return (fields, change.get("schema_version", 0),
            json_object("metadata", change.get("metadata")), change.get("title"),
            path_text("cwd", change.get("cwd")), change.get("project"),
            whole_number("expect_version", expect_version),
            whole_number("expect_sequence", expect_sequence))


@dataclass(frozen=True)
class HeadMove:
    """A head to move, to create, or with entry_id None to remove, in a batch."""

    entry_id: EntryId | None
    name: str = "main"
    stream: int = 0
    note: str | None = None
    expect: EntryId | None | Unset = UNSET
    """Refuse unless the head is at this entry; None: there is no such head."""


HeadRow = tuple[int, int, str, "str | None", "str | None", "str | None"]


def head_row(move: HeadMove) -> HeadRow:
    """The move as the extension takes it."""
    if not isinstance(move, HeadMove):
        raise wrong_type("heads", "an iterable of HeadMove", move)
    target = optional_entry_id("entry_id", move.entry_id)
    if move.expect is UNSET:
        return 0, move.stream, move.name, target, move.note, None
    expected = None if move.expect is None else entry_id("expect", move.expect)
    return _wal.HEAD_EXPECT, move.stream, move.name, target, move.note, expected


def head_rows(moves: Iterable[HeadMove]) -> tuple[HeadRow, ...]:
    return tuple(map(head_row, items_of("heads", "an iterable of HeadMove", moves)))
