"""Documents: JSON under keys of a session or of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Iterator, List

from . import _json, _wal
from ._errors import Invalid, wrong_type
from ._handle import Unpicklable
from ._info import Document
from ._values import UNSET, flags_of, items_of, whole_number


@dataclass(frozen=True)
class DocumentChange:
    """A document to put, or with `delete` to delete, in a batch."""

    key: str
    value: Any = UNSET
    delete: bool = False
    expect: int | None = None
    """Refuse unless the newest version is this; 0: there is no document."""
    store: bool = False
    """Of the store instead of the session."""


Row = tuple[int, str, "str | bytes | None", int]


def document_row(change: DocumentChange) -> Row:
    """The change as the extension takes it."""
    if not isinstance(change, DocumentChange):
        raise wrong_type("documents", "an iterable of DocumentChange", change)
    if (change.value is UNSET) != bool(change.delete):
        raise Invalid("a change of a document has a value or delete=True, not both or neither")
    value = None if change.delete else _json.encode(change.value, "value")
    flags = flags_of((change.delete, _wal.DOC_DELETE), (change.store, _wal.DOC_STORE),
                     (change.expect is not None, _wal.DOC_EXPECT))
    return flags, change.key, value, whole_number("expect", change.expect)


def document_rows(changes: Iterable[DocumentChange]) -> tuple[Row, ...]:
    return tuple(map(document_row,
                     items_of("documents", "an iterable of DocumentChange", changes)))


class Documents(Unpicklable):
    """Documents of a session or of the store: `session.documents`, `store.documents`."""

    __slots__ = ("_handle", "_owner")

    def __init__(self, handle: _wal.Handle, owner: object) -> None:
        self._handle = handle
        self._owner = owner

    def get(self, key: str, *, version: int = 0) -> Document | None:
        """The document, or None; with `version` as that version left it."""
        row = _wal.doc_get(self._handle, key, version)
        return None if row is None else Document.of(row)

    def put(self, key: str, value: Any, *, expect: int | None = None) -> int:
        """Puts a document, durably; returns its newest version. Older versions can be read.

        With `expect` raises Conflict unless the newest version is that; 0: there is none. A put of
        the value that the document has writes nothing and succeeds.
        """
        return _wal.doc_put(self._handle, document_row(DocumentChange(key, value, expect=expect)))

    def delete(self, key: str, *, expect: int | None = None) -> int:
        """Deletes a document, durably. Raises NotFound when there is none."""
        flags, *rest = document_row(DocumentChange(key, delete=True, expect=expect))
        return _wal.doc_delete(self._handle, (flags & _wal.DOC_EXPECT, *rest))

    def list(self, prefix: str = "", *, keys: bool = False,
             history: bool = False) -> List[Document]:
        """The documents by their keys; with `keys` without values; with `history` every version,
        newest first, deletions too."""
        flags = flags_of((keys, _wal.DOC_CURSOR_KEYS), (history, _wal.DOC_CURSOR_HISTORY))
        return [Document.of(row) for row in _wal.doc_list(self._handle, flags, prefix)]

    def __iter__(self) -> Iterator[Document]:
        return iter(self.list())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _wal.doc_get(self._handle, key, 0) is not None
