/*
 * iter.h - reading a session: a path or everything, as it was when the
 * iterator was opened, without what is hidden (SPEC.md 5.5, 5.7).
 */
#ifndef WAL_SESSION_ITER_H
#define WAL_SESSION_ITER_H

#include "engine/session/session.h"

enum {
    WAL__ITER_BLOCK = 256
};

/* Entries of a session in a row, all to be given. */
struct wal__iter_part {
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
struct wal__iter_above {
    uint64_t sequence;
    struct wal__span id;
};

struct wal_iter {
    struct wal__core *core;
    uint32_t session;
    uint32_t stream;
    uint32_t flags;        /* enum wal_iter_flag */
    bool all;              /* own entries in log order, not one path */
    uint64_t limit;        /* durable position, or UINT64_MAX */
    struct wal__buf parts; /* struct wal__iter_part, in reading order */
    uint32_t part;         /* that of the next entry, */
    uint32_t part_at;      /* and the entry's place in it */
    uint64_t remaining;
    uint64_t redactions; /* that the parts and the block take in */
    /* The next entries. */
    struct wal__iter_item block[WAL__ITER_BLOCK];
    uint32_t block_count;
    uint32_t block_at;
    struct wal__iter_above last;     /* given before, most often the parent */
    uint8_t id_copy[2][WAL__ID_MAX]; /* with WAL_OPEN_PREAD */
    uint32_t id_turn;
    struct wal__buf scratch;
    struct wal__buf other_scratch; /* of what is read beside an entry */
    struct wal__buf told;          /* payload of a redacted entry */
    struct wal__buf body;          /* payload brought in line, until the next
                                    * call */
};

/* iter_open.c */
enum wal_status wal__iter_open(struct wal_session *session,
                               const struct wal_iter_options *options,
                               struct wal_iter **iter,
                               struct wal_error *error) WAL_MUST_USE;
void wal__iter_close(struct wal_iter *iter);

/* iter.c */
enum wal_status wal__iter_next(struct wal_iter *iter, struct wal_entry *entry,
                               struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__iter_get(struct wal_iter *iter, struct wal__span id,
                              struct wal_entry *entry,
                              struct wal_error *error) WAL_MUST_USE;

/* iter_compaction.c: how many entries lie before where reading begins on the
 * path, which is struct wal__path_part in reading order; 0 without a
 * compaction. State lock for writing. */
enum wal_status wal__iter_compacted(struct wal_iter *iter,
                                    const struct wal__buf *path, uint64_t *cut,
                                    struct wal_error *error) WAL_MUST_USE;

/*
 * iter_hidden.c. Those with a slot or a part need the state lock for writing.
 */

/* Whether this iterator leaves the entry out. Any state lock. */
bool wal__iter_hides(const struct wal_iter *iter,
                     const struct wal__marks *marks,
                     const struct wal__branch_entry *entry);

/* The part's stream; WAL_EPOISONED when it no longer has all of the part. */
enum wal_status wal__iter_stream(const struct wal_iter *iter,
                                 const struct wal__branch_slot *slot,
                                 const struct wal__iter_part *part,
                                 const struct wal__stream **stream,
                                 struct wal_error *error) WAL_MUST_USE;

/* Appends what is given of the part to `parts`, and counts it. */
enum wal_status wal__iter_add(struct wal_iter *iter,
                              const struct wal__iter_part *part,
                              struct wal__buf *parts, uint64_t *count,
                              struct wal_error *error) WAL_MUST_USE;

/* Whether redactions were applied since the iterator looked. Any thread. */
bool wal__iter_is_old(const struct wal_iter *iter);

/* Takes them in: what is left is split again, the block is emptied. State is
 * unchanged on failure. */
enum wal_status wal__iter_renew(struct wal_iter *iter,
                                struct wal_error *error) WAL_MUST_USE;

/* The nearest entry at or above `sequence` that is not hidden; in sequence 0
 * when all are. WAL_ENOTFOUND when one was lost. */
enum wal_status wal__iter_shown(struct wal_iter *iter, uint32_t stream,
                                uint64_t sequence,
                                struct wal__found *found) WAL_MUST_USE;

/* Reads the REDACT record: iter->told says who and why, as JSON. */
enum wal_status wal__iter_tell(struct wal_iter *iter, uint64_t redaction,
                               struct wal_error *error) WAL_MUST_USE;

/* WAL_EREDACTED, with who and why in *error. */
enum wal_status wal__iter_refuse(struct wal_iter *iter, uint64_t redaction,
                                 struct wal_error *error);

#endif
