"""Blobs: content kept once under its SHA-256."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Iterator

from . import _wal
from ._errors import NotFound
from ._handle import Unpicklable

if TYPE_CHECKING:
    from ._store import Store

# Of one read while a blob is iterated or read whole.
PIECE_SIZE = 1 << 20


class Blobs(Unpicklable):
    """Blobs of a store: `store.blobs`. Digests are in hexadecimal."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, content: str | bytes | bytearray | memoryview) -> str:
        """Keeps content, durably and for good; returns its digest."""
        return _wal.blob_put(self._store._handle, content)

    def get(self, digest: str) -> bytes | None:
        """Reads a blob whole, or None if there is none."""
        try:
            with self.open(digest) as blob:
                return blob.read()
        except NotFound:
            return None

    def open(self, digest: str) -> BlobReader:
        """Opens a blob to be read in parts. Raises NotFound."""
        return BlobReader(self._store, digest)

    def create(self, *, named: bool = False) -> BlobWriter:
        """Starts a blob that is written in pieces.

        `named`: content that checkpoints.import_files is to name, and that goes with it; name it
        before the writer is closed.
        """
        return BlobWriter(self._store, named)


class BlobReader(Unpicklable):
    """A blob that is read in parts. One thread at a time."""

    __slots__ = ("_handle", "_store", "digest")

    digest: str

    def __init__(self, store: Store, digest: str) -> None:
        self._store = store
        self._handle = _wal.blob_open(store._handle, digest)
        self.digest = digest

    @property
    def size(self) -> int:
        """Of the content in bytes."""
        return _wal.blob_size(self._handle)

    def read(self, offset: int = 0, size: int = -1) -> bytes:
        """Reads `size` bytes from `offset` on, fewer only at the end; -1: to the end."""
        return _wal.blob_read(self._handle, offset, self.size - offset if size < 0 else size)

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of at most 1 MiB."""
        for offset in range(0, self.size, PIECE_SIZE):
            yield _wal.blob_read(self._handle, offset, PIECE_SIZE)

    def close(self) -> None:
        """Frees the handle; otherwise that happens when it is collected."""
        _wal.handle_close(self._handle)

    def __enter__(self) -> BlobReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


class BlobWriter(Unpicklable):
    """A blob that is written in pieces, in a few MiB of memory. One thread at a time."""

    __slots__ = ("_handle", "_store")

    def __init__(self, store: Store, named: bool) -> None:
        self._store = store
        self._handle = _wal.blob_create(store._handle, bool(named))

    def write(self, piece: str | bytes | bytearray | memoryview) -> None:
        """Adds a piece."""
        _wal.blob_write(self._handle, piece)

    def finish(self) -> tuple[str, int]:
        """Makes the blob durable; returns its digest and its size in bytes."""
        return _wal.blob_finish(self._handle)

    def close(self) -> None:
        """Frees the writer; a blob that was not finished is dropped."""
        _wal.handle_close(self._handle)

    def __enter__(self) -> BlobWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()
