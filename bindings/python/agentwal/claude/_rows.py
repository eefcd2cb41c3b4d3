"""Entries of the SDK as entries of the log, which are lines."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, Callable, Iterable

from .._entry import NewEntry
from .._errors import BadJSON, InvalidType, wrong_type
from .._names import escape_surrogates, size
from .._values import UNSET, Unset
from ._key import has_lone_surrogate, id_of

# The engine gives native entries of these types a meaning, and hides deltas.
_RESERVED_TYPES = {"message_delta_batch", "redaction", "compaction_summary", "branch_summary"}
_TYPE_BYTES_MAX = 255
_TIMESTAMP_BYTES_MAX = 64
_TITLE_BYTES_MAX = 4096
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}


class Row:
    """An entry of the SDK, serialized. Later changes of the caller's object do not affect it."""

    __slots__ = ("cwd", "fields", "id", "is_sidechain", "parent_uuid", "text", "timestamp",
                 "title", "type", "uuid")

    def __init__(self, text: str, fields: dict[str, Any]) -> None:
        self.text = text
        self.uuid = _text(fields.get("uuid")) or None
        """The entry's idempotency key, or None."""
        self.id = make_id() if self.uuid is None else id_of(self.uuid)
        """Its id in the log, also when it is sent again."""
        self.parent_uuid: Any = fields.get("parentUuid", UNSET)
        self.type = fields.get("type")
        self.timestamp = fields.get("timestamp")
        self.is_sidechain = fields.get("isSidechain") is True
        self.cwd = _text(fields.get("cwd")) or None
        self.title = _title(fields)
        self.fields = fields
        """For the SDK's fold."""

    def to_entry(self, has: Callable[[str], bool], is_main: bool) -> NewEntry:
        """The entry to append. `has` says whether the session has an id."""
        is_type = _is_text(self.type, _TYPE_BYTES_MAX) and self.type not in _RESERVED_TYPES
        return NewEntry(
            line=self.text, id=self.id, parent_id=self._parent_id(has),
            type=str(self.type) if is_type else "line",
            timestamp=self.timestamp if _is_text(self.timestamp, _TIMESTAMP_BYTES_MAX) else None,
            move_head=self.uuid is not None and not (is_main and self.is_sidechain))

    def _parent_id(self, has: Callable[[str], bool]) -> str | None | Unset:
        """None: a root. UNSET: the head."""
        if self.uuid is not None and self.parent_uuid is None:
            return None
        if not _text(self.parent_uuid):
            return UNSET
        id = id_of(self.parent_uuid)
        return id if id != self.id and has(id) else UNSET


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_text(value: Any, limit: int) -> bool:
    return (isinstance(value, str) and value != "" and not has_lone_surrogate(value)
            and size(value) <= limit)


def _title(fields: dict[str, Any]) -> str | None:
    kind = fields.get("type")
    title = fields.get(_TITLES[kind]) if isinstance(kind, str) and kind in _TITLES else None
    return title if _is_text(title, _TITLE_BYTES_MAX) else None


def serialize(entries: Iterable[Any]) -> list[Row]:
    """Serializes entries. Raises InvalidType or BadJSON that names the one that has no JSON."""
    if not isinstance(entries, (list, tuple)):
        raise wrong_type("entries", "a list", entries)
    rows = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InvalidType("entry %d is not a dict" % index)
        try:
            text = json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except TypeError as error:
            raise InvalidType("entry %d cannot be written as JSON: %s" % (index, error)) from error
        except (RecursionError, ValueError) as error:
            raise BadJSON("entry %d cannot be written as JSON: %s" % (index, error)) from error
        text = escape_surrogates(text)
        rows.append(Row(text, json.loads(text)))
    return rows


_lock = threading.Lock()
_last_time = 0
_counter = 0


def make_id() -> str:
    """A UUIDv7; those of a process rise."""
    global _counter, _last_time
    with _lock:
        now = time.time_ns() // 1000000
        if now > _last_time:
            _last_time, _counter = now, 0
        elif _counter == 0xFFF:
            _last_time, _counter = _last_time + 1, 0
        else:
            _counter += 1
        moment, counter = "%012x" % _last_time, _counter
    random = bytearray(os.urandom(8))
    random[0] = random[0] & 0x3F | 0x80
    rest = random.hex()
    return "%s-%s-7%03x-%s-%s" % (moment[:8], moment[8:], counter, rest[:4], rest[4:])
