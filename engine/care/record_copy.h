/*
 * record_copy.h - records of one store as what the interface takes, to repeat them in another:
 * shared by transfers and salvage. Any thread.
 */
#ifndef AGENTWAL_ENGINE_CARE_RECORD_COPY_H
#define AGENTWAL_ENGINE_CARE_RECORD_COPY_H

#include "agentwal.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"

enum {
    WAL__COPY_BATCH = 256,             /* entries of a batch, at most */
    WAL__COPY_BATCH_SIZE = 1024 * 1024 /* bytes of them after which it is full */
};

/* Entries of one session that wait to be appended together. */
struct wal__copy_batch {
    uint32_t count;
    uint64_t size;         /* bytes, with payloads that are blobs */
    struct wal__buf bytes; /* the entries' records */
    struct wal__frame frames[WAL__COPY_BATCH];
    size_t offsets[WAL__COPY_BATCH]; /* in bytes */
    struct wal_entry entries[WAL__COPY_BATCH];
    uint8_t *payloads[WAL__COPY_BATCH]; /* of a large heap, or NULL */
};

bool wal__copy_batch_is_full(const struct wal__copy_batch *batch);
/* Adds an entry by its record, which was decoded from `bytes`. It is not full. WAL_ENOMEM. */
enum wal_status wal__copy_batch_add(struct wal__copy_batch *batch, const struct wal__frame *frame,
                                    struct wal__span bytes,
                                    const struct wal__entry_record *record) WAL_MUST_USE;
/* Empties the batch, whose payloads are of the heap. */
void wal__copy_batch_empty(struct wal__copy_batch *batch, const struct wal__heap *large_heap);

/* Returns whether a status of a call on the store that is written ends the copying: it cannot be
 * written or read. Any other failure is the refusal of one record. */
bool wal__copy_is_fatal(enum wal_status status);

/* Returns whether the engine resolves references in entries of this kind. */
bool wal__copy_refers(uint8_t kind);

/* The entry of a record, without its parent; it borrows from the record. A payload that is a blob
 * is left empty. Of an entry that compaction erased, or that `is_hidden`, only what its redaction
 * does not hide is kept. */
void wal__copy_entry(const struct wal__frame *frame, const struct wal__entry_record *record,
                     bool is_hidden, struct wal_entry *entry);

/* Appends the payload of a redaction: of the entry that a REDACT record names, which may be
 * redacted itself, or erased. */
enum wal_status wal__copy_redaction(const struct wal__redact_record *record,
                                    struct wal__buf *json) WAL_MUST_USE;

/* The options to create a session with, or to change it to; they borrow from the record. */
void wal__copy_session(const struct wal__session_record *record,
                       struct wal_session_options *options);

/* The change of all texts of a session to those of the options. */
void wal__copy_change(const struct wal_session_options *options, struct wal_session_change *change);

/* Removes the directory of a store and everything in it, as far as that is possible. */
void wal__copy_remove_store(const struct wal__io *io, const char *path);

#endif
