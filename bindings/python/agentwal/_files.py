"""Checkpoints of files, their differences, and rewinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, List

from . import _wal
from ._errors import wrong_type
from ._records import CheckpointInfo, FileChanges, RewindResult
from ._values import (UNSET, EntryId, Path, Paths, Time, Unset, entry_id, flags_of, milliseconds,
                      one_of, optional_path, path_bytes, path_list)

if TYPE_CHECKING:
    from ._session import Session

_KINDS = ("absent", "file", "symlink")
_KIND_CODES = {kind: code for code, kind in enumerate(_KINDS)}


@dataclass(frozen=True)
class FileState:
    """A file in a checkpoint."""

    path: Path
    """Below the root."""
    kind: str = "file"
    """"absent", "file" or "symlink"."""
    mode: int = 0
    """Permission bits; 0 of a file that is given: 0o644."""
    size: int = 0
    mtime_ns: int = 0
    """Nanoseconds since 1970."""
    digest: str | None = None
    """SHA-256 of the content, or of a link's target, in hexadecimal; None when absent."""


def checkpoint_info(row: dict[str, Any]) -> CheckpointInfo | None:
    """None when checkpoints are off."""
    return None if row.pop("off") else CheckpointInfo.of(row)


def file_changes(totals: dict[str, Any], changes: List[dict[str, Any]]) -> FileChanges:
    return FileChanges.of({**totals, "changes": changes})


def _options(id: str | None, root: Path | None, created: Time | None,
             entry: EntryId | None | Unset, threads: int, all_or_none: bool) -> tuple[Any, ...]:
    flags = flags_of((entry is None, _wal.CHECKPOINT_UNLINKED),
                     (all_or_none, _wal.CHECKPOINT_ALL_OR_NONE))
    linked = None if entry is None or entry is UNSET else entry_id("entry", entry)
    return (flags, threads, id, optional_path("root", root), milliseconds("created", created),
            linked)


class Checkpoints:
    """Checkpoints of a session: `session.checkpoints`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(self, paths: Paths, *, id: str | None = None, root: Path | None = None,
               created: Time | None = None, entry: EntryId | None | Unset = UNSET,
               threads: int = 0, all_or_none: bool = False) -> CheckpointInfo | None:
        """Records the state of files, durably, before they are changed.

        Paths are below `root` (None: the session's cwd). The checkpoint is linked with `entry`:
        UNSET is the head, None no entry. A path that cannot be recorded is in `unrecorded` of the
        result; the call raises when all are such, or with `all_or_none` one is. Returns None when
        checkpoints are off.
        """
        return checkpoint_info(_wal.checkpoint_create(
            self._session._handle, path_list("paths", paths),
            _options(id, root, created, entry, threads, all_or_none)))

    def import_files(self, files: Iterable[FileState], *, id: str | None = None,
                     root: Path | None = None, created: Time | None = None,
                     entry: EntryId | None | Unset = UNSET) -> CheckpointInfo | None:
        """Records files as described; their contents must be blobs of the store."""
        rows = []
        for file in files:
            if not isinstance(file, FileState):
                raise wrong_type("files", "an iterable of FileState", file)
            rows.append((one_of("kind", _KIND_CODES, file.kind), file.mode,
                         path_bytes("path", file.path), file.mtime_ns, file.digest))
        return checkpoint_info(_wal.checkpoint_import(
            self._session._handle, tuple(rows), _options(id, root, created, entry, 0, True)))

    def get(self, id: str) -> CheckpointInfo | None:
        """The checkpoint, or None if there is none."""
        row = _wal.checkpoint_get(self._session._handle, id)
        return None if row is None else checkpoint_info(row)

    def files(self, id: str) -> List[FileState]:
        """The files of a checkpoint. Raises NotFound."""
        return [FileState(**row) for row in _wal.checkpoint_files(self._session._handle, id)]

    def list(self) -> List[CheckpointInfo]:
        """The checkpoints, oldest first."""
        rows = map(checkpoint_info, _wal.checkpoint_list(self._session._handle))
        return [row for row in rows if row is not None]

    def delete(self, id: str) -> None:
        """Removes a checkpoint, durably. Raises NotFound."""
        _wal.checkpoint_delete(self._session._handle, id)

    def diff(self, before: str, after: str | None = None) -> FileChanges:
        """Compares a checkpoint with another, or with the files on disk."""
        return file_changes(*_wal.checkpoint_diff(self._session._handle, before, after))

    def set_enabled(self, on: bool) -> None:
        """Switches checkpoints of the session on or off, durably."""
        _wal.set_checkpointing(self._session._handle, bool(on))


def rewind(session: Session, checkpoint: str, dry_run: bool, force: bool, head: bool,
           root: Path | None, expected: str | None) -> RewindResult:
    flags = flags_of((dry_run, _wal.REWIND_DRY_RUN), (force, _wal.REWIND_FORCE),
                     (head, _wal.REWIND_HEAD))
    options = (flags, optional_path("root", root), expected)
    result, changes = _wal.rewind(session._handle, checkpoint, options)
    return RewindResult.of({**result, "changes": changes})
