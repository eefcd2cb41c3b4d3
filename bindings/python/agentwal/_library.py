"""Opening stores, and calls that need none."""

from __future__ import annotations

import os
from typing import Callable

from . import _wal
from ._errors import Invalid, wrong_type
from ._imports import Select, import_row
from ._records import ImportClient, ImportResult, MigrateResult, SalvageResult
from ._store import Store
from ._values import Path, Paths, flags_of, path_bytes, path_list

__version__: str = _wal.version()


class Secret:
    """A key of an encrypted store: 16 to 4,096 bytes that cannot be guessed. repr shows nothing
    of it."""

    __slots__ = ("_row",)

    def __init__(self, secret: bytes | str) -> None:
        self._row = (_wal.KEY_SECRET, secret)


class Passphrase:
    """A key of an encrypted store that a person knows: opening takes a third of a second and
    128 MiB. repr shows nothing of it."""

    __slots__ = ("_row",)

    def __init__(self, passphrase: str) -> None:
        self._row = (_wal.KEY_PASSPHRASE, passphrase)


Key = Secret | Passphrase
OpenRow = tuple[int, int, int, int, int, int, "tuple[int, bytes | str] | None"]


def _open_row(flags: int, queue_limit: int, lock_timeout: float | None, group_align: int,
              schema_version: int, key: Key | None = None) -> OpenRow:
    milliseconds = 0
    if lock_timeout is not None:
        if isinstance(lock_timeout, bool) or not isinstance(lock_timeout, (int, float)):
            raise wrong_type("lock_timeout", "a number of seconds or None", lock_timeout)
        if not 0 <= lock_timeout <= 4000000:
            raise Invalid("lock_timeout: %r is not in 0 to 4,000,000 s" % lock_timeout)
        milliseconds = max(1, round(lock_timeout * 1000))
    if key is not None and not isinstance(key, (Secret, Passphrase)):
        raise wrong_type("key", "a Secret, a Passphrase or None", key)
    return (flags, queue_limit, milliseconds, 0, group_align, schema_version,
            None if key is None else key._row)


def open(path: Path, *, create: bool | None = None, exclusive: bool = False,
         read_only: bool = False, strict: bool = False, network_fs: bool = False,
         pread: bool = False, queue_limit: int = 0, lock_timeout: float | None = None,
         group_align: int = 0, schema_version: int = 0, key: Key | None = None,
         key_if_needed: bool = False) -> Store:
    """Opens a store; recovers it if no other process has it open.

    create: when there is none; None: unless read_only. exclusive: raise Exists when there is one.
    read_only: write nothing and keep no lock. strict: raise Torn where recovery cannot decide,
    instead of dropping a torn end. network_fs: permit a network file system. pread: read with
    pread(2) instead of maps. queue_limit: operations in the queue; 0: 256. lock_timeout: seconds
    until Locked; None: 0.5. group_align: with create, alignment of groups, 0, 512 or 4096.
    schema_version: of the sessions that the caller writes; 0: not checked. key: opens an encrypted
    store; a store that is created with it is one; else KeyRefused. key_if_needed: do not refuse
    the key for a store that is not encrypted.
    """
    if create is None:
        create = not read_only
    flags = flags_of((create, _wal.OPEN_CREATE), (exclusive, _wal.OPEN_EXCLUSIVE),
                     (read_only, _wal.OPEN_READ_ONLY), (strict, _wal.OPEN_STRICT),
                     (network_fs, _wal.OPEN_NETWORK_FS), (pread, _wal.OPEN_PREAD),
                     (key_if_needed, _wal.OPEN_KEY_IF_NEEDED))
    name = path_bytes("path", path)
    # In no variable, which a report of an exception would show.
    return Store(_wal.open(name, _open_row(flags, queue_limit, lock_timeout, group_align,
                                           schema_version, key)), os.fsdecode(name))


def memory(*, queue_limit: int = 0, schema_version: int = 0) -> Store:
    """An empty store of this process in memory, dropped when it is closed."""
    flags = _wal.OPEN_MEMORY | _wal.OPEN_CREATE
    return Store(_wal.open(None, _open_row(flags, queue_limit, None, 0, schema_version)), "")


def noop(*, queue_limit: int = 0, schema_version: int = 0) -> Store:
    """A store with persistence off: nothing is kept and no file on disk is touched."""
    flags = _wal.OPEN_NOOP | _wal.OPEN_CREATE
    return Store(_wal.open(None, _open_row(flags, queue_limit, None, 0, schema_version)), "")


def migrate(path: Path, *, network_fs: bool = False, key: Key | None = None) -> MigrateResult:
    """Migrates the store at a path to the format of this version; no store may be open there in
    this process."""
    return MigrateResult(**_wal.migrate(
        path_bytes("path", path),
        _open_row(_wal.OPEN_NETWORK_FS if network_fs else 0, 0, None, 0, 0, key)))


def salvage(path: Path, out: Path, *, network_fs: bool = False,
            on_progress: Callable[[int, int], object] | None = None) -> SalvageResult:
    """Makes a new store at `out` from all that can be read of a damaged one, which is only
    read."""
    options = (_wal.OPEN_NETWORK_FS if network_fs else 0,)
    return SalvageResult.of(_wal.salvage(path_bytes("path", path), path_bytes("out", out), options,
                                       on_progress))


def scan_import(paths: Paths, *, dialect: str | None = None, exclude: Path | None = None,
                select: Select = "clients",
                on_progress: Callable[[int, int], object] | None = None) -> ImportResult:
    """Counts what Store.import_files would import, and imports nothing."""
    return ImportResult.of(_wal.import_scan(path_list("paths", paths),
                                          import_row(dialect, exclude, select), on_progress, None))


def import_clients() -> list[ImportClient]:
    """Clients whose session files are known by their path."""
    return [ImportClient(**row) for row in _wal.import_clients()]


def import_dialects() -> tuple[str, ...]:
    """Names of the dialects that can be imported."""
    return _wal.import_dialects()


def view_dialects() -> tuple[str, ...]:
    """Names of the dialects of views and exports."""
    return _wal.view_dialects()


def is_bundle(path: Path) -> bool:
    """Whether the file begins as a bundle does."""
    return _wal.bundle_detect(path_bytes("path", path))
