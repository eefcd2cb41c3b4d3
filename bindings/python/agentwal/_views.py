"""Views: sessions as files of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _wal
from ._errors import Invalid
from ._handle import Closing
from ._record import Record
from ._records import ViewFlushResult, ViewImportResult, ViewInfo
from ._values import Path, path_bytes

if TYPE_CHECKING:
    from ._session import Session


class ViewIssue(Record):
    """Something that an import of a view found in a line of the file."""

    offset: int
    reason: str


class Export(Record):
    """A session as one file of another program."""

    data: bytes
    losses: dict[str, int]
    """What the dialect could not express, by name."""


def view_row(view: ViewInfo) -> tuple[str, str, str, int]:
    flags = (view.deleted * _wal.VIEW_INFO_DELETED + view.redacted * _wal.VIEW_INFO_REDACTED +
             view.unreadable * _wal.VIEW_INFO_UNREADABLE)
    return view.session, view.dialect, view.root, flags


class View(Closing):
    """A session as files of another program: `session.view`. One thread at a time."""

    __slots__ = ("_handle", "_session")

    def __init__(self, session: Session, dialect: str, root: Path) -> None:
        self._session = session
        folder = path_bytes("root", root)
        if not folder:
            raise Invalid("root: a directory is needed")
        self._handle = _wal.view_open(session.store._handle, session._handle, dialect, folder)

    def path(self, stream: int = 0) -> str:
        """Path of a stream's file. Raises NotFound when the dialect has none."""
        return _wal.view_path(self._handle, stream)

    def flush(self) -> ViewFlushResult:
        """Brings the files up to the durable end of the log. Raises Changed when another program
        changed a file."""
        return ViewFlushResult(**_wal.view_flush(self._handle))

    def import_changes(self) -> ViewImportResult:
        """Appends what another program added to the files, durably."""
        return ViewImportResult(**_wal.view_import(self._handle))

    def losses(self) -> dict[str, int]:
        """What the dialect could not express in the last flush, by name."""
        return dict(_wal.view_losses(self._handle))

    def issues(self) -> list[ViewIssue]:
        """What the last import found."""
        return [ViewIssue(offset=offset, reason=reason)
                for offset, reason in _wal.view_issues(self._handle)]

    def close(self) -> None:
        """Frees the view; its files remain."""
        _wal.handle_close(self._handle)
