/*
 * session_items.h - reads a session of a store as items of the neutral model, and its fields at one
 * moment, as a conversion uses them (SPEC.md 10.2).
 *
 * Imported lines are read by the dialect that the session's source names; lines
 * imported from a view by the view's dialect; appended entries by the dialect
 * `entries`. Reading continues where it ended as the session grows, except in a
 * copy. A session whose dialect stores documents is read document by document.
 *
 * Ids and parents are those of the log. A line that a copy shares with its original has the
 * original's id in the log, and its own id in the copy's file (SPEC.md 5.17), which is used
 * instead; the same applies to its parent. Where a line has neither, or repeats an earlier id, the
 * ids of the log are used. A line without a time gets the time of an earlier line. No two entries
 * of a copy get the same id, and a parent comes before its entry.
 *
 * Invariant: memory does not grow with the session, except for the state of the dialects and the
 * ids of a copy.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_SESSION_ITEMS_H
#define AGENTWAL_CONVERT_RENDER_SESSION_ITEMS_H

#include "agentwal.h"
#include "convert/model/dialect.h"
#include "convert/model/model_table.h"
#include "engine/base/heap.h"

/* The meta of an imported line (SPEC.md 10.2). */
struct wal__line_meta {
    bool is_opaque;                  /* part of a file without lines */
    bool is_inexact;                 /* not JSON, blank, or its ids are not those of the log */
    bool is_replay;                  /* the client wrote an earlier line again */
    bool is_from_view;               /* the line was imported from a view */
    const struct wal__dialect *view; /* dialect of that view; NULL: unknown */
    /* In a root entry of a session that was imported as documents: id of the item of these that it
     * goes on after; or empty. */
    struct wal__json_span after;
};

struct wal__line_meta wal__entry_meta(const struct wal_entry *entry);

/* --- ids of a copy ------------------------------------------------------- */

/* Zeroed: empty. */
struct wal__copy_ids {
    struct wal__model_table by_log_id; /* id in the file, by id in the log */
    struct wal__model_table used_ids;  /* id in the file, by itself */
    struct wal__json_span last_id;     /* id of the previous entry */
    uint8_t time[64];                  /* of the last line that has one */
    size_t time_size;
};

/* --- items --------------------------------------------------------------- */

enum {
    WAL__ITEMS_VIEW_DIALECTS = 8 /* dialects of views with imported lines */
};

/* The caller sets the first nine fields and zeroes the others. Must not move in memory. */
struct wal__session_items {
    const struct wal__heap *heap;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect;                    /* of imported lines */
    bool (*sink)(void *ctx, struct wal__model_item *item); /* false: stop */
    bool (*is_idle)(void *ctx); /* no emitted item is in use; may be NULL */
    void *ctx;
    bool retains_items; /* emitted items outlive the next entry */
    uint64_t size_max;  /* larger payloads are skipped; 0: no limit */
    bool is_fork;       /* the session may be a copy */

    uint64_t damaged;    /* out: entries that are not JSON */
    uint64_t redacted;   /* out */
    uint64_t unreadable; /* out: entries that the store cannot read */
    uint64_t emitted;    /* out: items */
    bool has_stopped;    /* out: the sink stopped the reading */
    bool is_copy;        /* out: of another session's file */

    uint64_t read_counts[2]; /* entries of each stream */
    /* Id of the last item of the documents: appended entries go on after it. */
    struct wal__json_span last_document;
    bool is_in_documents;
    struct wal__heap_arena keep;
    struct wal__heap_arena scratch;
    struct wal__copy_ids ids;         /* ids of a copy */
    struct wal__model_reader lines;   /* reads imported lines */
    struct wal__model_reader entries; /* reads appended entries */
    struct wal__model_reader *active; /* the reader of the last line, or NULL */
    /* read lines imported from views; initialised on demand */
    struct wal__model_reader view_readers[WAL__ITEMS_VIEW_DIALECTS];
    enum wal_status status; /* WAL_ENOMEM of a callback */
};

/* The number of entries to read of each stream. */
struct wal__entry_limits {
    uint64_t entries[2];
};

void wal__session_items_init(struct wal__session_items *items);
void wal__session_items_deinit(struct wal__session_items *items);

/* Emits the items of the session's documents. */
enum wal_status wal__session_items_begin(struct wal__session_items *items,
                                         struct wal_error *error) WAL_MUST_USE;

/* Emits the items of entries that were not read yet. WAL_OK also when the sink stops. */
enum wal_status wal__session_items_read(struct wal__session_items *items,
                                        const struct wal__entry_limits *limits,
                                        struct wal_error *error) WAL_MUST_USE;

/* Emits items that wait for further entries. If there are any, reading cannot continue, since they
 * would differ with those entries. */
enum wal_status wal__session_items_finish(struct wal__session_items *items,
                                          struct wal_error *error) WAL_MUST_USE;

/* Maps the head, an id of the log, to the id of its item; in a copy without that id, to an empty
 * one. False: no memory. */
bool wal__session_items_map_head(struct wal__session_items *items,
                                 struct wal__json_span *head) WAL_MUST_USE;

/* The options of a cursor over the entries of a stream that views read. */
struct wal_entry_cursor_options wal__session_items_options(uint32_t stream, uint64_t skip);

/* Counts entries with such a cursor that lacks the flags `without`. */
enum wal_status wal__session_items_count(struct wal_session *session, uint32_t stream,
                                         uint32_t without, uint64_t *entries,
                                         struct wal_error *error) WAL_MUST_USE;
/* Adds the number of redacted entries to *redacted, and twice that of redactions that were undone:
 * each change of what is redacted raises the sum. */
enum wal_status wal__session_items_count_redacted(struct wal_session *session, uint32_t stream,
                                                  uint64_t *redacted,
                                                  struct wal_error *error) WAL_MUST_USE;

/* --- documents ----------------------------------------------------------- */

/* Calls `each` for the documents whose keys begin with `prefix`, until it returns false. Values are
 * valid until the scratch memory is reset. */
enum wal_status wal__document_items_scan(struct wal__session_items *items, const char *prefix,
                                         bool (*each)(void *ctx, const char *key,
                                                      struct wal__json_span value),
                                         void *ctx, struct wal_error *error) WAL_MUST_USE;

struct wal__session_snapshot {
    struct wal__heap_arena memory;
    struct wal__model_session session;
    struct wal__json_span head;         /* id as a JSON string, or empty */
    const struct wal__dialect *dialect; /* dialect of its lines */
    uint64_t last_sequence;             /* sequence of its newest record */
    uint64_t metadata_version;
    uint64_t documents;
    bool is_fork;
};

/* Reads the session's info and the fields in its first lines. The owner zeroes the snapshot and
 * calls deinit in any case. */
enum wal_status wal__session_snapshot_read(struct wal__session_snapshot *snapshot,
                                           const struct wal__heap *heap, struct wal_store *store,
                                           struct wal_session *session,
                                           struct wal_error *error) WAL_MUST_USE;
void wal__session_snapshot_deinit(struct wal__session_snapshot *snapshot);

/* Whether the fields are equal, except the time of the last change. */
bool wal__session_snapshot_equal(const struct wal__session_snapshot *one,
                                 const struct wal__session_snapshot *two);

/* A hash of the fields that equality compares. */
uint64_t wal__session_snapshot_hash(const struct wal__session_snapshot *snapshot);

#endif
