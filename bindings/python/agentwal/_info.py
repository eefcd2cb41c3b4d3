"""Sessions and documents, whose fields are more than those of their structs."""

from __future__ import annotations

import datetime
from typing import Any

from . import _json, _records

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def time_of(milliseconds: int) -> datetime.datetime:
    """Raises OverflowError for a time beyond the year 9999."""
    return _EPOCH + datetime.timedelta(milliseconds=milliseconds)


def _parsed(text: str | None) -> Any:
    return _json.decode(text) if text else None


class SessionInfo(_records.SessionInfo):
    __doc__ = _records.SessionInfo.__doc__

    _makers = {"metadata": _parsed}

    @property
    def created(self) -> datetime.datetime:
        return time_of(self.created_ms)

    @property
    def updated(self) -> datetime.datetime:
        return time_of(self.updated_ms)


class SessionList(list[SessionInfo]):
    """Sessions; `next` is the position after them, for `after`, or None at the end."""

    next: str | None = None


class Document(_records.Document):
    __doc__ = _records.Document.__doc__

    _makers = {"value": _parsed}

    @property
    def modified(self) -> datetime.datetime:
        return time_of(self.modified_ms)
