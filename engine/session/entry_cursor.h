/*
 * entry_cursor.h - the entry cursor: reads a path or all entries of a session, as of its open,
 * without hidden entries (SPEC.md 5.5, 5.7). One thread at a time.
 */
#ifndef AGENTWAL_ENGINE_SESSION_ENTRY_CURSOR_H
#define AGENTWAL_ENGINE_SESSION_ENTRY_CURSOR_H

#include "engine/session/session.h"

enum {
    WAL__ENTRY_CURSOR_BLOCK = 256,
    /* Last entries that are found without the branch; more of them take the time of building it
     * anyway. */
    WAL__ENTRY_CURSOR_TAIL = 65536
};

/* Consecutive entries of a session, all of them visible; or one delta, which is named by its
 * sequence: compaction may drop deltas before it. */
struct wal__entry_cursor_range {
    uint64_t depth; /* of the first, when reading a path */
    uint64_t delta; /* 0: entries */
    uint32_t session;
    uint32_t first; /* ordinal in the stream */
    uint32_t count;
};

/* Location of an entry to return. */
struct wal__entry_cursor_item {
    uint64_t position;
    uint64_t sequence;
    uint64_t depth;
    uint64_t redaction; /* position of its REDACT record; 0: none */
};

/* An entry that may be the parent of another; sequence 0: unknown. */
struct wal__entry_cursor_parent_hint {
    uint64_t sequence;
    struct wal__span id;
};

struct wal_entry_cursor {
    struct wal__core *core;
    uint32_t session;
    uint32_t stream;
    uint32_t flags;         /* enum wal_entry_cursor_flag */
    bool all;               /* all entries in log order, not one path */
    uint64_t limit;         /* durable position, or UINT64_MAX */
    struct wal__buf ranges; /* struct wal__entry_cursor_range, in reading order */
    uint32_t range;         /* of the next entry */
    uint32_t range_index;   /* of the next entry in its range */
    uint64_t remaining;     /* entries */
    uint64_t restored;      /* RESTORE records in the sessions of the ranges */
    /* Reading the last entries: they are listed, and there are no ranges. */
    bool is_tail;
    uint64_t end;          /* sequence of the path's last entry */
    struct wal__buf items; /* struct wal__entry_cursor_item */
    uint32_t item_next;
    /* as of which the ranges and the block were built */
    uint64_t redaction_generation;
    /* The next entries. */
    struct wal__entry_cursor_item block[WAL__ENTRY_CURSOR_BLOCK];
    uint32_t block_count;
    uint32_t block_index;
    struct wal__entry_cursor_parent_hint previous; /* returned before; often the parent */
    uint8_t id_copy[2][WAL__ID_MAX];               /* with WAL_OPEN_PREAD */
    uint32_t id_copy_index;
    uint64_t looked; /* for the next entry (wal__core_look_again) */
    /* Entries in a row that could not be located, those of the next ones that fail with them, and
     * how. */
    uint64_t unlocated;
    uint64_t unlocated_left;
    enum wal_status unlocated_status;
    struct wal__record_buf scratch;
    struct wal__record_buf aux_scratch; /* of records other than the entry's */
    struct wal__buf redaction_json;     /* payload of a redacted entry */
    struct wal__buf payload_buf;        /* out-of-line payload */
    struct wal__buf copy;               /* of what one lookup returned (lookup.c) */
    /* Elements are struct wal__buf. With WAL_ENTRY_CURSOR_PINNED: the buffers of entries returned
     * before. */
    struct wal__buf pinned;
    /* What the last wal__entry_cursor_get did not read is damaged itself, where the indexes say:
     * loading them again would leave it out. */
    bool is_damaged;
};

/* A cursor that returns no entries, for wal__entry_cursor_get. */
enum wal_status wal__entry_cursor_create_empty(const struct wal_session *session,
                                               struct wal_entry_cursor **cursor,
                                               struct wal_error *error) WAL_MUST_USE;
void wal__entry_cursor_close(struct wal_entry_cursor *cursor);
enum wal_status wal__entry_cursor_get(struct wal_entry_cursor *cursor, struct wal__span id,
                                      struct wal_entry *entry,
                                      struct wal_error *error) WAL_MUST_USE;
/* Adds the session's deltas to the ranges, where they are in the log; on a path that ends at the
 * sequence `end` (0: an empty one) and has `depth` entries, those of the message that may follow
 * it. State lock for writing. */
enum wal_status wal__entry_cursor_add_deltas(struct wal_entry_cursor *cursor, uint64_t end,
                                             uint64_t depth, struct wal_error *error) WAL_MUST_USE;
/* Sets *cut to the number of entries before the start of reading; 0 without a compaction. path is
 * struct wal__path_range in reading order. State lock for writing. */
enum wal_status wal__entry_cursor_find_compaction(struct wal_entry_cursor *cursor,
                                                  const struct wal__buf *path, uint64_t *cut,
                                                  struct wal_error *error) WAL_MUST_USE;
/* Lists the last `last` visible entries, at most WAL__ENTRY_CURSOR_TAIL, of the path that ends at
 * the sequence `end`. State lock for writing. WAL_ENOTFOUND when the end was lost. */
enum wal_status wal__entry_cursor_fill_tail(struct wal_entry_cursor *cursor, uint64_t end,
                                            uint64_t last, struct wal_error *error) WAL_MUST_USE;
/* As wal__entry_cursor_refresh, for the entries that remain. */
enum wal_status wal__entry_cursor_refresh_tail(struct wal_entry_cursor *cursor,
                                               struct wal_error *error) WAL_MUST_USE;
/* Fills the empty block. Needs no lock. */
void wal__entry_cursor_fill_from_tail(struct wal_entry_cursor *cursor);
/* Whether this cursor hides the entry. State lock for reading or writing. */
bool wal__entry_cursor_is_hidden(const struct wal_entry_cursor *cursor,
                                 const struct wal__annotations *annotations,
                                 const struct wal__branch_entry *entry);
/* The range's stream, and the ordinal of its first entry; WAL_EPOISONED when it no longer has the
 * whole range. */
enum wal_status wal__entry_cursor_find_stream(const struct wal_entry_cursor *cursor,
                                              const struct wal__branch_slot *slot,
                                              const struct wal__entry_cursor_range *range,
                                              const struct wal__stream **stream, uint32_t *first,
                                              struct wal_error *error) WAL_MUST_USE;
/* Appends the visible parts of the range to `ranges`, and adds their entries to
 * *count. A delta that is gone has none. */
enum wal_status wal__entry_cursor_add_visible(struct wal_entry_cursor *cursor,
                                              const struct wal__entry_cursor_range *range,
                                              struct wal__buf *ranges, uint64_t *count,
                                              struct wal_error *error) WAL_MUST_USE;
/* Applies the redactions since the ranges were built: splits the remaining ranges again and empties
 * the block. State is unchanged on failure. */
enum wal_status wal__entry_cursor_refresh(struct wal_entry_cursor *cursor,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
