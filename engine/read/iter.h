/*
 * iter.h - reading a session: a path or everything, as it was when the
 * iterator was opened, without what is hidden (SPEC.md 5.5, 5.7).
 */
#ifndef AGENTWAL_ENGINE_READ_ITER_H
#define AGENTWAL_ENGINE_READ_ITER_H

#include "engine/store/session.h"

enum {
    WAL__ITER_BLOCK = 256
};

/* Entries of a session in a row, all to be given. */
struct wal__iter_range {
    uint64_t depth; /* of the first, when the iterator reads a path */
    uint32_t session;
    uint32_t first; /* ordinal in the stream */
    uint32_t count;
};

/* Where an entry is. */
struct wal__iter_item {
    uint64_t position;
    uint64_t sequence;
    uint64_t depth;
    uint64_t redaction; /* position of what redacted it; 0: nothing did */
};

/* The entry above another; sequence 0: not known. */
struct wal__iter_parent_hint {
    uint64_t sequence;
    struct wal__span id;
};

struct wal_entry_cursor {
    struct wal__core *core;
    uint32_t session;
    uint32_t stream;
    uint32_t flags;         /* enum wal_entry_cursor_flag */
    bool all;               /* own entries in log order, not one path */
    uint64_t limit;         /* durable position, or UINT64_MAX */
    struct wal__buf ranges; /* struct wal__iter_range, in reading order */
    uint32_t range;         /* that of the next entry, */
    uint32_t range_index;   /* and the entry's place in it */
    uint64_t remaining;
    uint64_t redaction_generation; /* that the ranges and the block take in */
    /* The next entries. */
    struct wal__iter_item block[WAL__ITER_BLOCK];
    uint32_t block_count;
    uint32_t block_index;
    struct wal__iter_parent_hint
        previous;                    /* given before, most often the parent */
    uint8_t id_copy[2][WAL__ID_MAX]; /* with WAL_OPEN_PREAD */
    uint32_t id_copy_index;
    struct wal__buf scratch;
    struct wal__buf aux_scratch;    /* of what is read beside an entry */
    struct wal__buf redaction_json; /* payload of a redacted entry */
    struct wal__buf payload_buf;    /* payload brought in line */
    struct wal__buf pinned;         /* of struct wal__buf: with
                                     * WAL_ENTRY_CURSOR_PINNED the buffers of
                                     * entries returned before */
};

/* iter_open.c */
enum wal_status wal__iter_open(struct wal_session *session,
                               const struct wal_entry_cursor_options *options,
                               struct wal_entry_cursor **iter,
                               struct wal_error *error) WAL_MUST_USE;
/* A cursor that returns no entries, for wal__iter_get. */
enum wal_status wal__iter_create_empty(const struct wal_session *session,
                                       struct wal_entry_cursor **iter,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__iter_close(struct wal_entry_cursor *iter);

/* iter.c */
enum wal_status wal__iter_next(struct wal_entry_cursor *iter,
                               struct wal_entry *entry,
                               struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__iter_get(struct wal_entry_cursor *iter,
                              struct wal__span id, struct wal_entry *entry,
                              struct wal_error *error) WAL_MUST_USE;

/* iter_compaction.c: how many entries lie before where reading begins on the
 * path, which is struct wal__path_range in reading order; 0 without a
 * compaction. State lock for writing. */
enum wal_status wal__iter_find_compaction(struct wal_entry_cursor *iter,
                                          const struct wal__buf *path,
                                          uint64_t *cut,
                                          struct wal_error *error) WAL_MUST_USE;

/*
 * iter_hidden.c. Those with a slot or a range need the state lock for writing.
 */

/* Whether this iterator leaves the entry out. Any state lock. */
bool wal__iter_is_hidden(const struct wal_entry_cursor *iter,
                         const struct wal__annotations *annotations,
                         const struct wal__branch_entry *entry);

/* The range's stream; WAL_EPOISONED when it no longer has all of the range. */
enum wal_status wal__iter_find_stream(const struct wal_entry_cursor *iter,
                                      const struct wal__branch_slot *slot,
                                      const struct wal__iter_range *range,
                                      const struct wal__stream **stream,
                                      struct wal_error *error) WAL_MUST_USE;

/* Appends what is given of the range to `ranges`, and counts it. */
enum wal_status wal__iter_add_visible(struct wal_entry_cursor *iter,
                                      const struct wal__iter_range *range,
                                      struct wal__buf *ranges, uint64_t *count,
                                      struct wal_error *error) WAL_MUST_USE;

/* Whether redactions were applied since the iterator looked. Any thread. */
bool wal__iter_is_stale(const struct wal_entry_cursor *iter);

/* Takes them in: what is left is split again, the block is emptied. State is
 * unchanged on failure. */
enum wal_status wal__iter_refresh(struct wal_entry_cursor *iter,
                                  struct wal_error *error) WAL_MUST_USE;

/* The nearest entry at or above `sequence` that is not hidden; in sequence 0
 * when all are. WAL_ENOTFOUND when one was lost. */
enum wal_status
wal__iter_find_visible(struct wal_entry_cursor *iter, uint32_t stream,
                       uint64_t sequence,
                       struct wal__entry_location *found) WAL_MUST_USE;

/* Reads the REDACT record: iter->redaction_json says who and why, as JSON. */
enum wal_status
wal__iter_format_redaction(struct wal_entry_cursor *iter, uint64_t redaction,
                           struct wal_error *error) WAL_MUST_USE;

/* WAL_EREDACTED, with who and why in *error. */
enum wal_status wal__iter_fail_redacted(struct wal_entry_cursor *iter,
                                        uint64_t redaction,
                                        struct wal_error *error);

#endif
