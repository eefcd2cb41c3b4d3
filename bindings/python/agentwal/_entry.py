"""Entries to be appended, and what an append did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping, NamedTuple

from . import _json, _wal
from ._errors import Invalid, wrong_type
from ._values import UNSET, EntryId, Unset, entry_id, json_object

Row = tuple[int, int, "str | None", "str | None", str, "str | None", "str | None",
            "str | bytes", "str | bytes | None"]


class AppendResult(NamedTuple):
    """What an append did."""

    appended: int
    """Entries written."""
    duplicates: int
    """Entries that existed with the same content."""
    sequence: int
    """Of the last entry written, or 0."""
    last_id: str
    """Of the last entry of the call."""


@dataclass(frozen=True)
class NewEntry:
    """An entry to append: a payload, or in its place `text` or `line`."""

    payload: Any = UNSET
    """Any value that JSON has."""
    text: str | bytes | None = None
    """JSON as text, in place of `payload`."""
    line: str | bytes | None = None
    """A line of any bytes; id, parent, type and time are read from it if it is JSON."""
    id: str | None = None
    """1 to 255 bytes; None: one is made."""
    parent_id: EntryId | None | Unset = UNSET
    """UNSET: the head. None: no parent, a root."""
    type: str = "message"
    timestamp: str | None = None
    """None: now."""
    run_id: str | None = None
    stream: int = 0
    """0: the conversation; 1: the transcript; at most 255."""
    meta: Mapping[str, Any] | None = None
    move_head: bool | None = None
    """True: moves the head in any case; False: does not; None: if it goes under the head."""


MOVE_HEAD = {None: 0, True: _wal.ENTRY_HEAD_MOVE, False: _wal.ENTRY_HEAD_KEEP}


def row_of(entry: NewEntry) -> Row:
    """The entry as the extension takes it."""
    return make_row(entry.payload, entry.text, entry.line, entry.id, entry.parent_id, entry.type,
                    entry.timestamp, entry.run_id, entry.stream, entry.meta, entry.move_head)


def make_row(payload: Any, text: str | bytes | None, line: str | bytes | None, id: str | None,
             parent_id: EntryId | None | Unset, type: str, timestamp: str | None,
             run_id: str | None, stream: int, meta: Mapping[str, Any] | None,
             move_head: bool | None) -> Row:
    """The entry that these describe, as the extension takes it."""
    given = (payload is not UNSET) + (text is not None) + (line is not None)
    if given != 1:
        raise Invalid("an entry has one of payload, text and line, not %d of them" % given)
    flags = 0
    content: str | bytes
    if text is not None:
        content = text
    elif line is not None:
        content = line
        flags = _wal.ENTRY_LINE
    else:
        content = _json.encode(payload)
    parent: str | None = None
    if parent_id is None:
        flags |= _wal.ENTRY_ROOT
    elif parent_id is not UNSET:
        parent = entry_id("parent_id", parent_id)
    if move_head is not None:
        if not isinstance(move_head, bool):
            raise wrong_type("move_head", "a bool or None", move_head)
        flags |= MOVE_HEAD[move_head]
    if isinstance(content, (bytearray, memoryview)):
        content = bytes(content)
    return (flags, stream, id, parent, type, timestamp, run_id, content,
            json_object("meta", meta))


def rows_of(entries: Iterable[Any]) -> tuple[Row, ...]:
    """Entries, or payloads, as the extension takes them."""
    if isinstance(entries, (str, bytes, Mapping, NewEntry)):
        raise wrong_type("entries", "an iterable of payloads or of NewEntry", entries)
    rows: list[Row] = []
    try:
        for entry in entries:
            rows.append(row_of(entry if isinstance(entry, NewEntry) else NewEntry(entry)))
    except TypeError as error:
        if rows or isinstance(error, Invalid):
            raise
        raise wrong_type("entries", "an iterable of payloads or of NewEntry", entries) from error
    return tuple(rows)


def options_of(durability: int, expect_tail: EntryId | None | Unset,
               wait_for_queue: bool = True) -> tuple[int, int, str | None]:
    flags = 0 if wait_for_queue else _wal.APPEND_NO_WAIT
    if expect_tail is UNSET:
        return durability, flags, None
    tail = None if expect_tail is None else entry_id("expect_tail", expect_tail)
    return durability, flags | _wal.APPEND_EXPECT, tail
