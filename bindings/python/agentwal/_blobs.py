"""Blobs: content kept once under its SHA-256."""

from __future__ import annotations

import io
import operator
from typing import TYPE_CHECKING, Any, Iterator

from . import _wal
from ._errors import Invalid, NotFound, wrong_type
from ._handle import Closing, Unpicklable

if TYPE_CHECKING:
    from ._store import Store

# Of one read while a blob is iterated or read whole.
PIECE_SIZE = 1 << 20


def _index(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise wrong_type(name, "an int", value) from None


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


class BlobReader(Closing, io.RawIOBase):
    """A blob that is read in parts: a binary file that is read only and can seek. One thread at a
    time."""

    digest: str
    _handle: _wal.Handle | None = None

    def __init__(self, store: Store, digest: str) -> None:
        self._store = store
        self._position = 0
        self._handle = _wal.blob_open(store._handle, digest)
        self.digest = digest

    @property
    def size(self) -> int:
        """Of the content in bytes."""
        return _wal.blob_size(self._open_handle)

    @property
    def _open_handle(self) -> _wal.Handle:
        assert self._handle is not None
        return self._handle

    def read_at(self, offset: int, size: int = -1) -> bytes:
        """Reads `size` bytes from `offset` on, fewer only at the end; -1: to the end."""
        start = _index("offset", offset)
        count = _index("size", size)
        return _wal.blob_read(self._open_handle, start, self.size - start if count < 0 else count)

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads `size` bytes from the position on, fewer only at the end; -1 or None: to the
        end."""
        piece = self.read_at(self._position, -1 if size is None else size)
        self._position += len(piece)
        return piece

    def readall(self) -> bytes:
        """Reads from the position to the end."""
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        """Fills a writable buffer from the position on; returns how many bytes there were."""
        with memoryview(buffer).cast("B") as view:
            piece = self.read(len(view))
            view[:len(piece)] = piece
        return len(piece)

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Moves the position, also beyond the end; returns it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}.get(whence)
        if base is None:
            raise Invalid("whence: %r is not 0, 1 or 2" % (whence,))
        position = base + _index("offset", offset)
        if position < 0:
            raise Invalid("offset: a position is not negative")
        self._position = position
        return position

    def tell(self) -> int:
        """The position."""
        return self._position

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of at most 1 MiB."""
        for offset in range(0, self.size, PIECE_SIZE):
            yield _wal.blob_read(self._open_handle, offset, PIECE_SIZE)

    def close(self) -> None:
        """Frees the handle; otherwise that happens when it is collected."""
        if self._handle is not None:
            _wal.handle_close(self._handle)
        io.RawIOBase.close(self)


class BlobWriter(Closing):
    """A blob that is written in pieces, in a few MiB of memory. One thread at a time."""

    __slots__ = ("_handle", "_store")

    def __init__(self, store: Store, named: bool) -> None:
        self._store = store
        create = _wal.blob_create_named if named else _wal.blob_create
        self._handle = create(store._handle)

    def write(self, piece: str | bytes | bytearray | memoryview) -> None:
        """Adds a piece."""
        _wal.blob_write(self._handle, piece)

    def finish(self) -> tuple[str, int]:
        """Makes the blob durable; returns its digest and its size in bytes."""
        return _wal.blob_finish(self._handle)

    def close(self) -> None:
        """Frees the writer; a blob that was not finished is dropped."""
        _wal.handle_close(self._handle)
