"""Arguments of calls, as the extension takes them."""

from __future__ import annotations

import datetime
import enum
import math
import os
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Union

from . import _json, _wal
from ._errors import Invalid, wrong_type

if TYPE_CHECKING:
    from typing import Literal

    from ._wal import Entry

    LocalDurability = Literal["durable", "written", "queued"]
    Durability = Literal["durable", "written", "queued", "cluster"]
    """When an append is acknowledged: on stable storage; in the system's cache, which survives a
    killed process; in the queue of this process; on stable storage, and in the remote too, which
    needs a process that ships the store."""

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Time = Union[datetime.datetime, int, float]
"""A datetime, or seconds since 1970."""
Paths = Union[Path, Iterable[Path]]
EntryId = Union[str, "Entry"]
"""The id of an entry, or the entry."""


class Unset(enum.Enum):
    """The type of UNSET: an argument that was not given, where None means something."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "agentwal.UNSET"


UNSET = Unset.UNSET

LOCAL_DURABILITIES = {"durable": _wal.DURABLE, "written": _wal.WRITTEN, "queued": _wal.QUEUED}
DURABILITIES = {**LOCAL_DURABILITIES, "cluster": _wal.CLUSTER}


def one_of(name: str, choices: Mapping[str, int], value: str) -> int:
    try:
        return choices[value]
    except (KeyError, TypeError):
        names = ", ".join('"%s"' % choice for choice in choices)
        raise Invalid("%s: one of %s is needed, not %r" % (name, names, value)) from None


def durability_of(value: str) -> int:
    return one_of("durability", DURABILITIES, value)


def follow_durability(value: str) -> int:
    return one_of("durability", {"durable": _wal.DURABLE, "written": _wal.WRITTEN}, value)


def flags_of(*choices: tuple[object, int]) -> int:
    """The sum of the flags whose conditions are true."""
    flags = 0
    for condition, flag in choices:
        if condition:
            flags |= flag
    return flags


def path_bytes(name: str, path: Path) -> bytes:
    try:
        return os.fsencode(path)
    except TypeError:
        raise wrong_type(name, "a path", path) from None
    except UnicodeEncodeError as error:
        raise Invalid("%s: not a name of a file: %s" % (name, error)) from error


def optional_path(name: str, path: Path | None) -> bytes | None:
    return None if path is None else path_bytes(name, path)


def path_list(name: str, paths: Paths) -> tuple[bytes, ...]:
    """One path, or several."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        return (path_bytes(name, paths),)
    try:
        return tuple(path_bytes(name, path) for path in paths)
    except TypeError:
        raise wrong_type(name, "a path or an iterable of paths", paths) from None


def milliseconds(name: str, time: Time | None) -> int:
    """A point in time in milliseconds since 1970; None: 0."""
    if time is None:
        return 0
    if isinstance(time, datetime.datetime):
        try:
            time = time.timestamp()
        except (OverflowError, ValueError) as error:
            raise Invalid("%s: %r is no point in time: %s" % (name, time, error)) from error
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise wrong_type(name, "a datetime or a number of seconds", time)
    if not (isinstance(time, int) or math.isfinite(time * 1000)):
        raise Invalid("%s: %r is no point in time" % (name, time))
    return int(time * 1000) if isinstance(time, int) else round(time * 1000)


def timeout_seconds(timeout: float | None) -> float | None:
    """A time to wait in seconds; None: no limit."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise wrong_type("timeout", "a number of seconds or None", timeout)
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = math.inf if timeout > 0 else 0.0
    if math.isnan(seconds):
        raise Invalid("timeout: %r is no time" % timeout)
    return max(0.0, seconds)


def whole_number(name: str, value: int | None) -> int:
    """A version or a sequence; None: 0."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, "an int", value)
    if not 0 <= value < 2 ** 64:
        raise Invalid("%s: not in 0 to 2**64 - 1" % name)
    return value


def items_of(name: str, wanted: str, items: Iterable[Any]) -> tuple[Any, ...]:
    """What an iterable yields; a str is none."""
    if isinstance(items, str):
        raise wrong_type(name, wanted, items)
    try:
        given = iter(items)
    except TypeError:
        raise wrong_type(name, wanted, items) from None
    return tuple(given)


def entry_id(name: str, entry: Any) -> str:
    """The id; the library takes an empty one for none at all."""
    if isinstance(entry, str):
        if not entry:
            raise Invalid("%s: an id has 1 to 255 bytes" % name)
        return entry
    if isinstance(entry, _wal.Entry):
        return entry.id
    raise wrong_type(name, "an entry or its id", entry)


def optional_entry_id(name: str, entry: EntryId | None) -> str | None:
    return None if entry is None else entry_id(name, entry)


def json_object(name: str, value: Mapping[str, Any] | None) -> str | bytes | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong_type(name, "a mapping", value)
    return _json.encode(dict(value), name)


def path_text(name: str, path: Any) -> str | None:
    """A directory that a session names; None: none."""
    if path is None:
        return None
    try:
        text = os.fspath(path)
    except TypeError:
        raise wrong_type(name, "a str or os.PathLike", path) from None
    if not isinstance(text, str):
        raise wrong_type(name, "a str or os.PathLike of str", path)
    return text


# Options of a session to be created, as the extension takes them.
SessionRow = tuple["str | None", "str | None", "str | None", "str | None", "str | None",
                   "str | None", "str | bytes | None", int, int]


def session_row(id: str | None = None, cwd: Any = None, project: str | None = None,
                title: str | None = None, parent_id: str | None = None, source: str | None = None,
                metadata: Mapping[str, Any] | None = None, schema_version: int = 0,
                created: Time | None = None) -> SessionRow:
    return (id, path_text("cwd", cwd), project, title, parent_id, source,
            json_object("metadata", metadata), schema_version, milliseconds("created", created))
