"""agentwal: sessions of AI agents in one crash-safe log.

    with agentwal.open("store") as store:
        session = store.create(title="Example")
        session.append({"role": "user", "content": "Hello"})
        for entry in session:
            print(entry.payload)

Durability: a call that writes returns once its change is on stable storage, unless `durability`
says otherwise; with "cluster" once the remote has it too. Session.submit does not wait.
Errors: every failure is an agentwal.Error. What failed has changed nothing, except where `code`
is "WAL_EPOISONED" or "WAL_EIO", or where it has a `result`.
Threads: a Store, a Session and a Ticket may be used by any number of threads at the same time,
which run while a call waits or reads. Iterators, blobs and views are used by one at a time; a
second one gets Busy.
Lifetime: what came from a store keeps it open until Store.close(), after which it raises Closed.
Entries are copies: they remain.
Text is UTF-8: a str with half a surrogate pair is refused, except within JSON, where it is kept
as an escape. Times are datetimes or seconds, names that end in _ms milliseconds since 1970.
"""

from __future__ import annotations

import importlib
import types

from ._blobs import BlobReader, Blobs, BlobWriter
from ._change import HeadMove, SessionChange
from ._documents import DocumentChange, Documents
from ._entries import Entries
from ._entry import AppendResult, NewEntry
from ._errors import (AccessDenied, BadJSON, Busy, CallbackFailed, Changed, Claimed, Closed,
                      Conflict, Corrupt, Damaged, DependencyFailed, Error, Exists, Fenced, Forked,
                      Invalid, InvalidType, IOFailed, KeyRefused, LimitReached, Locked,
                      LockFileLost, NetworkFilesystem, NoParent, NoSpace, NotAFile, NotAStore,
                      NotFound, OutOfMemory, OutsideRoot, Poisoned, ReadOnly, Redacted,
                      RemoteFailed, SchemaMismatch, TimedOut, TooBig, Torn, Trashed,
                      UnsupportedVersion)
from ._files import Checkpoints, FileState
from ._imports import ImportFollow
from ._info import Document, SessionInfo, SessionList
from ._library import (Passphrase, Secret, __version__, import_clients, import_dialects, is_bundle,
                       memory, migrate, noop, open, salvage, scan_import, view_dialects)
from ._records import (BackupResult, CheckpointInfo, CheckpointIssue, Claim, CompactResult,
                       FileChange, FileChanges, Head, ImportClient, ImportIssue, ImportReport,
                       ImportResult, MigrateResult, RewindResult, SalvageLoss, SalvageResult,
                       SearchUpdate, SessionSpace, StoreInfo, TransferReport, TransferResult,
                       ViewFlushResult, ViewImportResult, ViewInfo)
from ._search import Search, SearchHit, SearchSession
from ._session import Compaction, Session, SessionOptions
from ._store import Store
from ._ticket import Ticket
from ._values import UNSET
from ._views import Export, View, ViewIssue
from ._wal import Entry, EntryIterator

__all__ = [
    "UNSET", "AccessDenied", "AppendResult", "BackupResult", "BadJSON", "BlobReader", "BlobWriter",
    "Blobs", "Busy", "CallbackFailed", "Changed", "CheckpointInfo", "CheckpointIssue",
    "Checkpoints", "Claim", "Claimed", "Closed", "CompactResult", "Compaction", "Conflict",
    "Corrupt", "Damaged", "DependencyFailed", "Document", "DocumentChange", "Documents", "Entries",
    "Entry", "EntryIterator", "Error", "Exists", "Export", "Fenced", "FileChange", "FileChanges",
    "FileState", "Forked", "Head", "HeadMove", "IOFailed", "ImportClient", "ImportFollow",
    "ImportIssue", "ImportReport", "ImportResult", "Invalid", "InvalidType", "KeyRefused",
    "LimitReached", "LockFileLost", "Locked", "MigrateResult", "NetworkFilesystem", "NewEntry",
    "NoParent", "NoSpace", "NotAFile", "NotAStore", "NotFound", "OutOfMemory", "OutsideRoot",
    "Passphrase", "Poisoned", "ReadOnly", "Redacted", "RemoteFailed", "RewindResult",
    "SalvageLoss", "SalvageResult", "SchemaMismatch", "Search", "SearchHit", "SearchSession",
    "SearchUpdate", "Secret", "Session", "SessionChange", "SessionInfo", "SessionList",
    "SessionOptions", "SessionSpace", "Store", "StoreInfo", "Ticket", "TimedOut", "TooBig", "Torn",
    "TransferReport", "TransferResult", "Trashed", "UnsupportedVersion", "View", "ViewFlushResult",
    "ViewImportResult", "ViewInfo", "ViewIssue", "__version__", "import_clients",
    "import_dialects", "is_bundle", "memory", "migrate", "noop", "open", "salvage", "scan_import",
    "view_dialects",
]


def __getattr__(name: str) -> types.ModuleType:
    """Imports a module that not every program needs when it is first used."""
    if name not in ("aio", "claude", "openai_agents"):
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return importlib.import_module("." + name, __name__)
