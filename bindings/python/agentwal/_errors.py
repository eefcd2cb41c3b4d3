"""Exceptions of the package, one class for each thing that a caller may do about a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._entry import AppendResult


class Error(Exception):
    """A call failed. str(error) says what failed, why, and what to do.

    What failed has changed nothing, except where `code` is "WAL_EPOISONED" or "WAL_EIO": then the
    outcome is unknown, and the same call may be repeated with the same ids; and where there is a
    `result`.
    """

    code: str = "WAL_EINVAL"
    """Name of the status in agentwal.h, such as "WAL_ECONFLICT"."""
    errno: int = 0
    """Number of the system's error, or 0."""
    holder: int = 0
    """Process id of the holder of a lock or a claim, or 0."""
    file: str = ""
    """Path that the error is about, or ""."""
    offset: int = 0
    """Byte in that file, or 0."""
    actual: str = ""
    """The present value where another one was expected: an entry's id, or a version or a sequence
    in decimal; of Exists the id that is taken. Else ""."""
    expectation: str | None = None
    """What was expected, of a Conflict: "tail", "head", "document", "metadata" or "sequence"."""
    result: AppendResult | None = None
    """Of an append with durability "cluster" that is durable here: only storing it in the remote
    failed, or was not waited for, so that the remote may have it or not. Else None."""


class Invalid(Error, ValueError):
    """The call is wrong: correct it."""


class InvalidType(Invalid, TypeError):
    """An argument has a type that the call does not take."""


class BadJSON(Invalid):
    """A payload, document or metadata is not JSON, or not UTF-8."""


class TooBig(Invalid):
    """Over a limit of the format."""


class NotFound(Error, LookupError):
    """There is no such session, entry, head, document, checkpoint, blob or file."""


class NoParent(NotFound):
    """The parent that an entry names does not exist."""


class Redacted(NotFound):
    """The content of the entry was redacted."""


class Exists(Error):
    """The id is taken by other content; `actual` is the id."""


class Conflict(Error):
    """An expectation failed; `actual` is what is there, `expectation` says of what."""


class Locked(Error):
    """Another process holds a lock; `holder` is its id. Nothing was written."""


class Claimed(Locked):
    """Another handle claims the session, or imports the file: `holder` is its process. Or, with 0,
    the session has moved to another machine (SessionInfo.is_moved)."""


class Damaged(Error):
    """The session, or the documents of the store, lost records: accept that first."""


class Corrupt(Damaged):
    """Bytes that were acknowledged are damaged; `file` and `offset` say where."""


class Torn(Damaged):
    """Strict: the end of the log cannot be decided."""


class Closed(Error):
    """The store, or the handle, was closed."""


class Forked(Error):
    """The handle is that of the parent process: open the store again in the child of fork()."""


class Busy(Error):
    """Another thread uses the handle, or the queue is full."""


class TimedOut(Busy, TimeoutError):
    """The time given for a wait is over."""


class ReadOnly(Error):
    """The store is open for reading only."""


class NotAStore(Error):
    """There is no store at the path."""


class UnsupportedVersion(Error):
    """A newer format, or features that this version does not know."""


class NetworkFilesystem(Error):
    """The path is on a network file system, or one that ignores syncs: not permitted."""


class IOFailed(Error):
    """The system failed a read or a write; `errno` says how."""


class NoSpace(Error):
    """The disk or the quota is full; nothing was written."""


class Poisoned(Error):
    """A write or a sync failed: the outcome is unknown. Reads go on; the next append heals."""


class OutOfMemory(Error, MemoryError):
    """Out of memory; nothing changed."""


class DependencyFailed(Error):
    """Depends on an append that was refused."""


class CallbackFailed(Error):
    """A function of the caller failed."""


class SchemaMismatch(Error):
    """A schema version that the caller cannot write; `actual` is the version."""


class LimitReached(Error):
    """No room for another claim, or for another root of views."""


class LockFileLost(Error):
    """The file LOCK was removed or replaced while in use."""


class OutsideRoot(Error):
    """A path leaves its root, or crosses a symbolic link."""


class Changed(Error):
    """Another program changed the file."""


class AccessDenied(Error):
    """No permission to read, write or replace a file."""


class NotAFile(Error):
    """A directory or device where a file was named."""


class Trashed(Error):
    """The session is in the trash: undelete it first."""


class RemoteFailed(Error):
    """The remote failed or did not answer: the outcome is unknown. Of an append that has no
    `result`: no process ships the store, and nothing was written."""


class Fenced(Error):
    """Another writer has taken over what this one wrote to."""


class KeyRefused(Error):
    """The store is encrypted and the key does not open it, or it is not encrypted."""


STATUSES: dict[int, tuple[str, type[Error]]] = {
    -1: ("WAL_EINVAL", Invalid),
    -2: ("WAL_ENOTFOUND", NotFound),
    -3: ("WAL_EEXISTS", Exists),
    -4: ("WAL_ECONFLICT", Conflict),
    -5: ("WAL_ETOOBIG", TooBig),
    -6: ("WAL_ENOSPACE", NoSpace),
    -7: ("WAL_EIO", IOFailed),
    -8: ("WAL_ETORN", Torn),
    -9: ("WAL_ECORRUPT", Corrupt),
    -10: ("WAL_EVERSION", UnsupportedVersion),
    -11: ("WAL_ELOCKED", Locked),
    -12: ("WAL_EPOISONED", Poisoned),
    -13: ("WAL_ENOMEM", OutOfMemory),
    -14: ("WAL_EBUSY", Busy),
    -15: ("WAL_EREADONLY", ReadOnly),
    -16: ("WAL_ENOTSTORE", NotAStore),
    -17: ("WAL_EFORKED", Forked),
    -18: ("WAL_ENOPARENT", NoParent),
    -19: ("WAL_EBADJSON", BadJSON),
    -20: ("WAL_EDAMAGED", Damaged),
    -21: ("WAL_ENETWORK", NetworkFilesystem),
    -22: ("WAL_EDEPENDENCY", DependencyFailed),
    -23: ("WAL_ECALLBACK", CallbackFailed),
    -24: ("WAL_ESCHEMA", SchemaMismatch),
    -25: ("WAL_EREDACTED", Redacted),
    -26: ("WAL_ECLAIMED", Claimed),
    -27: ("WAL_ELIMIT", LimitReached),
    -28: ("WAL_ELOCKFILE", LockFileLost),
    -29: ("WAL_EOUTSIDE", OutsideRoot),
    -30: ("WAL_ECHANGED", Changed),
    -31: ("WAL_EACCESS", AccessDenied),
    -32: ("WAL_ENOTFILE", NotAFile),
    -33: ("WAL_ECLOSED", Closed),
    -34: ("WAL_ETRASHED", Trashed),
    -35: ("WAL_EREMOTE", RemoteFailed),
    -36: ("WAL_EFENCED", Fenced),
    -37: ("WAL_EKEY", KeyRefused),
}
for _code, _kind in STATUSES.values():
    _kind.code = _code
    _kind.__module__ = "agentwal"
for _kind in (Error, InvalidType, TimedOut):
    _kind.__module__ = "agentwal"
EXPECTATIONS = (None, "tail", "head", "document", "metadata", "sequence")


def code_of(status: int) -> str | None:
    """The name of a status; None if it is no failure."""
    return None if status >= 0 else STATUSES.get(status, ("WAL_E%d" % -status, Error))[0]


def make_error(status: int, text: str, errno: int = 0, holder: int = 0, expectation: int = 0,
               offset: int = 0, file: str = "", actual: str = "") -> Error:
    """The exception of a struct wal_error; the extension calls it."""
    code, kind = STATUSES.get(status, ("WAL_E%d" % -status, Error))
    error = kind(text)
    error.code = code
    error.errno = errno
    error.holder = holder
    error.file = file
    error.offset = offset
    error.actual = actual
    if 0 < expectation < len(EXPECTATIONS):
        error.expectation = EXPECTATIONS[expectation]
    return error


def copy_error(error: Error) -> Error:
    """Another one with the same contents, for what several calls fail with."""
    made = type(error)(*error.args)
    made.__dict__.update(error.__dict__)
    return made


def wrong_type(name: str, wanted: str, value: object) -> InvalidType:
    """The exception for an argument of the wrong type; the extension calls it."""
    return InvalidType("%s: %s is needed, not %s" % (name, wanted, type(value).__name__))
