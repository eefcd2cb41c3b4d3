"""What calls return about stores, sessions and documents."""

from __future__ import annotations

import datetime
from typing import Any

from . import _json
from ._errors import code_of
from ._record import Record

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def time_of(milliseconds: int) -> datetime.datetime:
    """Raises OverflowError for a time beyond the year 9999."""
    return _EPOCH + datetime.timedelta(milliseconds=milliseconds)


class StoreInfo(Record):
    """The state of a store."""

    status: str | None
    """None, or the code of the reason why appends are refused."""
    queue_status: str | None
    """None, or the code of a failure of a queued operation that no call has reported."""
    format_version: int
    tail: str
    """What recovery found at the end of the log: "clean", "torn", "ambiguous" or "damaged"."""
    uuid: str
    tail_segment: int
    tail_offset: int
    tail_size: int
    tail_sequence: int
    sessions: int
    last_sequence: int
    segments: int
    log_bytes: int
    disk_bytes: int
    groups: int
    """Written by this handle, as are `syncs` and `acknowledged`."""
    syncs: int
    acknowledged: int
    queued: int
    pack_segments: int
    pack_bytes: int
    pack_disk_bytes: int


def store_info(row: dict[str, Any]) -> StoreInfo:
    row["status"] = code_of(row["status"])
    row["queue_status"] = code_of(row["queue_status"])
    return StoreInfo(**row)


class SessionInfo(Record):
    """A session as it was at the time of the call."""

    id: str
    number: int
    cwd: str
    project: str
    title: str
    parent_id: str
    source: str
    metadata: dict[str, Any] | None
    """Parsed; of a listed session None: it is not read."""
    head: str | None
    """Id of the entry of the head `main`, or None."""
    first_text: str
    """The start of the first message of the user."""
    created_ms: int
    """Milliseconds since 1970, as `updated_ms`."""
    updated_ms: int
    entries: int
    inherited: int
    bytes: int
    documents: int
    last_sequence: int
    metadata_version: int
    schema_version: int
    is_fork: bool
    is_damaged: bool
    is_deleted: bool
    is_trashed: bool
    is_moved: bool
    """To another store: appends are refused."""

    @property
    def created(self) -> datetime.datetime:
        return time_of(self.created_ms)

    @property
    def updated(self) -> datetime.datetime:
        return time_of(self.updated_ms)


def session_info(row: dict[str, Any]) -> SessionInfo:
    metadata = row["metadata"]
    row["metadata"] = _json.decode(metadata) if metadata else None
    return SessionInfo(**row)


class SessionList(list[SessionInfo]):
    """Sessions; `next` is the position after them, for `after`, or None at the end."""

    next: str | None = None


class Claim(Record):
    """A session that is claimed."""

    session_id: str
    session_number: int
    process_id: int
    """Of the holder; 0: unknown."""
    own: bool
    """A handle of this process has it."""


class Head(Record):
    """A named pointer to an entry of a stream."""

    name: str
    stream: int
    entry_id: str
    note: str
    version: int


class Document(Record):
    """JSON under a key of a session or of the store."""

    key: str
    value: Any
    """None also of a listed key, and of a deletion."""
    version: int
    modified_ms: int
    """Milliseconds since 1970."""
    deleted: bool

    @property
    def modified(self) -> datetime.datetime:
        return time_of(self.modified_ms)


def document(row: dict[str, Any]) -> Document:
    value = row["value"]
    row["value"] = _json.decode(value) if value else None
    return Document(**row)
