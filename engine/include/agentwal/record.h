/*
 * agentwal/record.h - the log segment by segment: which segments there are, and the records of
 * each. For programs that keep an index of a store, such as libagentwal-search (agentwal/search.h).
 * Conventions: agentwal.h.
 */
#ifndef AGENTWAL_RECORD_H
#define AGENTWAL_RECORD_H

#include "agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_segment_cursor;
struct wal_record_cursor;

/* ---------------------------------------------------------- segments --- */

enum wal_segment_flag {
    WAL_SEGMENT_TAIL = 1u << 0,     /* the newest one: it grows */
    WAL_SEGMENT_REWRITTEN = 1u << 1 /* compaction wrote it */
};

/* A segment of the log. Its id and identity name its content for ever, but for what is appended to
 * the tail segment: a segment that compaction puts in its place has another identity. */
struct wal_segment_info {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_segment_flag */
    uint64_t id;
    uint64_t identity;      /* random, chosen when the file was made */
    uint64_t end;           /* bytes of the file below its written end */
    uint64_t last_sequence; /* highest sequence number of a record in it or
                             * before it */
};

/* Lists the segments of the log as they are now, by ascending id. A store without records, and one
 * without files, has none. Close *cursor with wal_segment_cursor_close. Threads: any. SPEC.md, From
 * segment to segment. */
WAL_API WAL_MUST_USE enum wal_status wal_segment_cursor_open(struct wal_store *store,
                                                             struct wal_segment_cursor **cursor,
                                                             struct wal_error *error);

/* Fills *segment with the next segment, or returns WAL_END. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_segment_cursor_next(struct wal_segment_cursor *cursor,
                                                             struct wal_segment_info *segment,
                                                             struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_segment_cursor_close(struct wal_segment_cursor *cursor);

/* ----------------------------------------------------------- records --- */

enum wal_record_kind {
    WAL_RECORD_ENTRY = 1,
    WAL_RECORD_DOC = 2,     /* a version of a document, or its deletion */
    WAL_RECORD_SESSION = 3, /* the texts of a session, as they were set */
    WAL_RECORD_RESTORED = 4 /* a redaction was undone: `entry` is shown again */
};

enum wal_record_flag {
    WAL_RECORD_DELETED = 1u << 0, /* its session was deleted; a fork may see it
                                   */
    WAL_RECORD_TRASHED = 1u << 1  /* its session is in the trash */
};

/* A record of a session. The library fills it. Of the three pointers the one of its kind is set. */
struct wal_record {
    uint32_t struct_size;
    uint32_t kind;           /* enum wal_record_kind */
    uint32_t flags;          /* enum wal_record_flag */
    uint32_t session_number; /* `number` of struct wal_session_info */
    uint64_t sequence;
    struct wal_slice session_id;
    /* parent_id is empty, depth 0; a payload above payload_limit is left out of line, flagged
     * WAL_ENTRY_OUT_OF_LINE. */
    const struct wal_entry *entry;
    const struct wal_doc *doc;
    /* Its texts and metadata; numbers that a record does not have are zero. */
    const struct wal_session_info *session;
};

enum wal_record_cursor_flag {
    WAL_RECORD_CURSOR_DELETED = 1u << 0, /* include records of deleted sessions
                                          * and of those in the trash */
    /* Include entries that are redacted, unless they were erased: for an index, of which a hit
     * counts only when a cursor without this flag returns it. */
    WAL_RECORD_CURSOR_REDACTED = 1u << 1,
    WAL_RECORD_CURSOR_RESTORED = 1u << 2 /* include records that undo a
                                          * redaction, of entries that are not
                                          * redacted again */
};

struct wal_record_cursor_options {
    uint32_t struct_size;
    uint32_t flags;          /* enum wal_record_cursor_flag */
    uint64_t segment;        /* id; 0: none, for wal_record_cursor_get */
    uint64_t identity;       /* of struct wal_segment_info */
    uint64_t after_sequence; /* records with a higher sequence number; 0: all */
    uint64_t payload_limit;  /* bytes of a payload that is read into memory; 0:
                              * 16 MiB */
};

/*
 * Starts reading the records of a segment as they are now: session by session, and by ascending
 * sequence number within a session.
 *
 * Left out are the entries that were redacted, also later; deltas; documents of the store and those
 * that the library keeps; and records of other kinds. What a deleted session had is returned only
 * with WAL_RECORD_CURSOR_DELETED: before it is shown to anyone, wal_entry_get on a fork must return
 * it.
 *
 * Takes 24 bytes of memory for each record. Close *cursor with wal_record_cursor_close. Threads:
 * any. Errors: WAL_ENOTFOUND when the log has no segment with this id and identity: compaction may
 * have replaced it. SPEC.md 2.12.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_record_cursor_open(struct wal_store *store, const struct wal_record_cursor_options *options,
                       struct wal_record_cursor **cursor, struct wal_error *error);

/* Fills *record with the next record, its checksum verified, or returns WAL_END. Pointers and
 * slices hold until the next call on the cursor, or its close. Threads: one at a time. Errors:
 * WAL_ECORRUPT concerns this record only; the next call continues after it. WAL_ENOTFOUND when
 * compaction has replaced the segment since. */
WAL_API WAL_MUST_USE enum wal_status wal_record_cursor_next(struct wal_record_cursor *cursor,
                                                            struct wal_record *record,
                                                            struct wal_error *error);

/*
 * Fills *record with the record of a session that has this sequence number, in any segment; the
 * cursor does not move. Pointers and slices hold until the next call on the cursor, or its close.
 *
 * Threads: one at a time. Errors: WAL_ENOTFOUND when there is no such record, or the cursor leaves
 * it out for a reason other than redaction; WAL_EREDACTED; WAL_ECORRUPT.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_record_cursor_get(struct wal_record_cursor *cursor, uint32_t session_number, uint64_t sequence,
                      struct wal_record *record, struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_record_cursor_close(struct wal_record_cursor *cursor);

/* Bytes that encrypting adds to what is derived of the records of an encrypted store, as an index
 * for searching is; 0: the store is not encrypted, and such files need not be. Threads: any. */
WAL_API uint64_t wal_derived_overhead(const struct wal_store *store);

/* Encrypts the bytes of a derived file of this name by the keys of the store, to `out`, which has
 * room for them and the overhead. Threads: any. Errors: WAL_EINVAL where the store is not
 * encrypted. */
WAL_API WAL_MUST_USE enum wal_status wal_derived_encrypt(struct wal_store *store, const char *name,
                                                         struct wal_slice bytes, void *out,
                                                         struct wal_error *error);

/* The reverse; `out` has room for as many bytes without the overhead. Threads: any. Errors: also
 * WAL_ECORRUPT, where they were not encrypted for this name by the keys of this store. */
WAL_API WAL_MUST_USE enum wal_status wal_derived_decrypt(struct wal_store *store, const char *name,
                                                         struct wal_slice bytes, void *out,
                                                         struct wal_error *error);

#ifdef __cplusplus
}
#endif

#endif
