/*
 * session_items.h - a session of a store as items of the neutral model.
 *
 * A line that was imported is read by the dialect that the session's source
 * names; one that came in behind a view by that of the view; an entry that was
 * appended by the dialect `entries`. Ids and parents are those of the log, or,
 * in a copy of another session's file, those of that file (own_ids.h). Reading
 * goes on where it ended, as the session grows; not that of a copy.
 *
 * Invariant: memory does not grow with the session, but for what the dialects
 * keep, and for a copy's ids.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_SESSION_ITEMS_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_SESSION_ITEMS_H

#include "agentwal.h"
#include "engine/convert/render/copy_ids.h"
#include "engine/convert/render/heap_arena.h"
#include "format/model/dialect.h"

enum {
    WAL__ITEMS_VIEW_DIALECTS =
        8 /* dialects that views of a session were taken in of */
};

/* The caller sets the first nine fields and zeroes the others. Stays where it
 * is as long as it is used. */
struct wal__session_items {
    const struct wal__heap *heap;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect; /* of lines; from the source */
    bool (*sink)(void *ctx, struct wal__model_item *item); /* false: stop */
    bool (*is_idle)(void *ctx); /* nothing that was given is needed any more;
                                 * may be null */
    void *ctx;
    bool retains_items; /* what is given may be needed behind the next entry */
    uint64_t size_max;  /* longer payloads are passed over; 0: none are */
    bool is_fork;       /* the session may be a copy */

    uint64_t damaged;    /* out: entries that are no JSON */
    uint64_t redacted;   /* out */
    uint64_t unreadable; /* out: entries that the store cannot read */
    uint64_t emitted;    /* out: items */
    bool has_stopped;    /* out: the sink wanted no more */
    bool is_copy;        /* out: of another session's file */

    uint64_t read_counts[2]; /* entries of each stream */
    struct wal__heap_arena keep;
    struct wal__heap_arena scratch;
    struct wal__copy_ids ids;         /* of a copy */
    struct wal__model_reader lines;   /* imported */
    struct wal__model_reader entries; /* appended */
    /* came in behind one; begun when needed */
    struct wal__model_reader view_readers[WAL__ITEMS_VIEW_DIALECTS];
    enum wal_status status; /* no memory, from where it cannot be answered */
};

/* How many entries of each stream there are to be read. */
struct wal__entry_limits {
    uint64_t entries[2];
};

void wal__session_items_init(struct wal__session_items *items);
void wal__session_items_deinit(struct wal__session_items *items);

/* Gives the items of the session's documents. */
enum wal_status wal__session_items_begin(struct wal__session_items *items,
                                         struct wal_error *error) WAL_MUST_USE;

/* Gives the items of entries that were not taken yet. WAL_OK also when the
 * sink wants no more. */
enum wal_status wal__session_items_read(struct wal__session_items *items,
                                        const struct wal__entry_limits *limits,
                                        struct wal_error *error) WAL_MUST_USE;

/* Gives what waited for more; if there was anything, the items are not the
 * same as when it came, and reading cannot go on. */
enum wal_status wal__session_items_finish(struct wal__session_items *items,
                                          struct wal_error *error) WAL_MUST_USE;

/* Turns the head, an id of the log, into the id of its item; of a copy that has
 * none, into an empty one. False: no memory. */
bool wal__session_items_map_head(struct wal__session_items *items,
                                 struct wal__json_span *head) WAL_MUST_USE;

/* What entries of a stream the session has, as a view reads them. */
struct wal_entry_cursor_options wal__session_items_options(uint32_t stream,
                                                           uint64_t skip);

#endif
