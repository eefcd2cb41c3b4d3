"""What long calls of a store return: compaction, backup, salvage, transfer, import."""

from __future__ import annotations

from typing import Any

from ._errors import Error
from ._record import Record


class MigrateResult(Record):
    """What a migration did."""

    from_version: int
    to_version: int
    sessions: int
    """That were changed."""


class BackupResult(Record):
    """What a backup did."""

    segments: int
    copied: int
    removed: int
    bytes: int
    shared_bytes: int
    last_sequence: int


class SessionSpace(Record):
    """What a session has in the log, in bytes of records before compression."""

    id: str
    """"": the documents of the store."""
    number: int
    deleted: bool
    own_bytes: int
    shared_bytes: int
    reclaimable_bytes: int


class CompactResult(Record):
    """What a compaction of a store did, or would do."""

    segments: int
    rewritten: int
    refused: int
    bytes_before: int
    bytes_after: int
    dead_bytes: int
    kept_records: int
    dropped_records: int
    erased_records: int
    dropped_contents: int
    refusals: tuple[Error, ...]
    """One for each segment that is damaged and was left as it is."""
    readers: tuple[tuple[int, int], ...]
    """Process id and bytes of processes that keep replaced files, this one too."""
    sessions: tuple[SessionSpace, ...]
    """Of a dry run: one for each session that has records."""


def compact_result(row: dict[str, Any]) -> CompactResult:
    sessions = tuple(SessionSpace(**space) for space in row.pop("sessions"))
    readers = tuple((reader["process_id"], reader["bytes"]) for reader in row.pop("readers"))
    return CompactResult(refusals=tuple(row.pop("refusals")), readers=readers, sessions=sessions,
                         **row)


class SalvageLoss(Record):
    """Something that is missing in the new store or differs there."""

    kind: str
    """"range", "blob", "session", "entry", "head", "document" or "checkpoint"."""
    session_id: str
    entry_id: str
    first_sequence: int
    last_sequence: int
    file: str
    offset: int
    size: int
    reason: str


class SalvageResult(Record):
    """What a salvage did."""

    sessions: int
    entries: int
    documents: int
    blobs: int
    deleted_sessions: int
    lost_entries: int
    lost_blobs: int
    losses: int
    reports: tuple[SalvageLoss, ...]
    """At most the first 1,000 losses."""


def salvage_result(row: dict[str, Any]) -> SalvageResult:
    reports = tuple(SalvageLoss(**report) for report in row.pop("reports"))
    return SalvageResult(reports=reports, **row)


class TransferReport(Record):
    """What became of a session, or of a document of the store."""

    kind: str
    """"created", "continued", "unchanged", "refused", "document" or "branched"."""
    session_id: str
    key: str
    entries: int
    documents: int
    branch_id: str
    """The branch that has what the other store went on with; empty: the session itself has it."""
    error: Error | None


class TransferResult(Record):
    """What a merge, or writing or reading a bundle, did."""

    created: int
    continued: int
    unchanged: int
    refused: int
    entries: int
    documents: int
    differing_documents: int
    bytes: int
    branched: int
    """Sessions that were made as branches."""
    reports: tuple[TransferReport, ...]


def transfer_result(row: dict[str, Any]) -> TransferResult:
    reports = tuple(TransferReport(**report) for report in row.pop("reports"))
    return TransferResult(reports=reports, **row)


class ImportIssue(Record):
    """Damage of a source, or what its client does not write. It was imported nevertheless."""

    path: str
    reason: str
    line: int
    """From 1; 0: no line."""
    offset: int | None
    """None: it concerns the whole file."""


class ImportReport(Record):
    """The result of one source."""

    kind: str
    """"none", "file", "stream", "view" or "directory"."""
    path: str
    dialect: str
    session_id: str
    view_session: str
    changed_view: bool
    other_id: bool
    lines: int
    appended: int
    duplicates: int
    checkpoints: int
    bytes: int
    issues: tuple[ImportIssue, ...]
    error: Error | None


class ImportResult(Record):
    """What an import did."""

    sources: int
    sessions: int
    appended: int
    duplicates: int
    failed: int
    bytes: int
    left_out: dict[str, int]
    """Files that were not imported, by kind: "credentials", "settings", ..."""
    reports: tuple[ImportReport, ...]


def _import_report(row: dict[str, Any]) -> ImportReport:
    issues = tuple(ImportIssue(**issue) for issue in row.pop("issues"))
    return ImportReport(issues=issues, **row)


def import_result(row: dict[str, Any]) -> ImportResult:
    reports = tuple(_import_report(report) for report in row.pop("reports"))
    return ImportResult(reports=reports, **row)


class ImportClient(Record):
    """A folder of a client whose session files are known by their path."""

    name: str
    dialect: str
    """Empty: they cannot be read."""
    folder: str | None
    """In which it keeps its files; it may not exist; None: unknown."""
