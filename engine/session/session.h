/*
 * session.h - the handles of the public API: stores, sessions, session cursors, tickets (SPEC.md
 * 5), and what of sessions the layers above share. A cursor is used by one thread at a time; other
 * functions may be called by any thread, without a lock, where nothing else is said.
 */
#ifndef AGENTWAL_ENGINE_SESSION_SESSION_H
#define AGENTWAL_ENGINE_SESSION_SESSION_H

#include "agentwal/admin.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "engine/base/struct_size.h"
#include "engine/store/core.h"

/* The buffers of the last lookup of a handle (lookup.c). */
struct wal__lookup {
    pthread_mutex_t mutex;
    struct wal_entry_cursor *entries; /* null: not used yet */
    struct wal_doc_cursor *docs;      /* null: not used yet */
};

struct wal_store {
    struct wal__core core;        /* first: destroyed as the core */
    const struct wal__heap *heap; /* that the store was allocated from */
    struct wal__lookup lookup;    /* of the store's documents */
    /* WAL_OPEN_MEMORY: names of memfds; else NULL */
    struct wal__io *memory;
    /* Another table that is of this store, and what frees it; or NULL. */
    struct wal__io *own_io;
    void (*destroy_io)(struct wal__io *io);
    struct wal__spill spill;
};

struct wal_session_cursor {
    struct wal__core *core;
    struct wal__catalogue_filter catalogue_filter;
    struct wal__catalogue_iter cursor;
    uint64_t generation;    /* of the indexes that the cursor reads */
    bool is_damaged;        /* what the cursor reads; to be read anew */
    bool is_restarted;      /* it was */
    bool is_page;           /* it began after a position */
    uint64_t last_sequence; /* of the log at the open */
    uint32_t last_session;  /* highest session number at the open */
    /* session that the last call failed to return, to be returned next, or 0 */
    uint32_t retry_session;
    struct wal__list_key key; /* of the session returned last */
    struct wal__bitset seen;  /* session numbers that were returned */
    bool is_lineage;
    /* session numbers, used instead of the cursor */
    struct wal__buf lineage;
    size_t lineage_next;
    struct wal__buf filter_texts; /* copies of the filter's texts */
    struct wal__buf texts;        /* of the session returned last */
};

/* Embedded in its operation: valid as long as the operation. */
struct wal_ticket {
    struct wal__core *core;
    struct wal__op *op;
    bool result_taken; /* the result was returned to the caller */
    bool is_cluster;   /* it is waited for until it is shipped, too */
};

struct wal_session {
    struct wal__core *core;
    uint32_t number;
    uint64_t text_size; /* of its summary at the open */
    uint32_t depth;     /* number of ancestors */
    pthread_mutex_t info_mutex;
    struct wal__buf info_texts; /* texts that wal_session_get_info returned */
    struct wal__lookup lookup;
    struct wal__claim claim;
};

/* As wal__check_core, of a session that may be null. */
static inline enum wal_status wal__check_session(const struct wal_session *session,
                                                 struct wal_error *error)
{
    return wal__check_core(session == NULL ? NULL : session->core, error);
}

/* Opens a handle on an existing session. */
enum wal_status wal__session_open(struct wal__core *core, uint32_t number,
                                  struct wal_session **session,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__session_free(struct wal_session *session);
/* at: an entry; empty: the head `main`, or with sees_none before the first entry, wherever that
 * head is. */
enum wal_status wal__session_fork(struct wal_session *source, struct wal_slice at, bool sees_none,
                                  const struct wal_session_options *options,
                                  struct wal_session **fork, struct wal_error *error) WAL_MUST_USE;
/* Clears the damaged flag of a session, or of the store (WAL__STORE_NUMBER). text_size: that of its
 * summary, in bytes. */
enum wal_status wal__session_accept_damage(struct wal__core *core, uint32_t number,
                                           uint64_t text_size,
                                           struct wal_error *error) WAL_MUST_USE;
/* create.c: forks the session and appends a compaction_summary entry to the fork, in one
 * operation. */
enum wal_status wal__session_compact_into(struct wal_session *source,
                                          const struct wal_compact_options *options,
                                          struct wal_session **fork,
                                          struct wal_append_result *result,
                                          struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_migrate(struct wal_session *session, uint32_t to, wal_update_fn *fn,
                                     void *ctx, struct wal_migrate_result *result,
                                     struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_get_info(struct wal_session *session, struct wal_session_info *info,
                                      struct wal_error *error) WAL_MUST_USE;
/* Submits an operation and waits for its result. The caller keeps its reference to op. */
enum wal_status wal__session_commit(struct wal__core *core, struct wal__op *op,
                                    struct wal_error *error) WAL_MUST_USE;
/* list.c */
enum wal_status wal__session_cursor_open(struct wal__core *core,
                                         const struct wal_session_cursor_options *options,
                                         struct wal_session_cursor **list,
                                         struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_cursor_next(struct wal_session_cursor *list,
                                         struct wal_session_info *info,
                                         struct wal_error *error) WAL_MUST_USE;
void wal__session_cursor_close(struct wal_session_cursor *list);
void wal__lookup_init(struct wal__lookup *lookup);
void wal__lookup_deinit(struct wal__lookup *lookup);
/* Whether the name is `main`, the head that appends move; an empty name is `main`. */
bool wal__head_is_main(struct wal__span name);
/* The sequence of the entry that a head points to, or 0. State lock for reading. */
uint64_t wal__head_target(const struct wal__branch_slot *slot, uint32_t stream,
                          struct wal__span name);
/* Writes the entry's id, terminated by NUL. WAL_ENOTFOUND when there is no such head, or it points
 * to no entry. Takes the state lock. */
enum wal_status wal__head_get(struct wal_session *session, uint32_t stream, struct wal__span name,
                              char entry_id[256], struct wal_error *error) WAL_MUST_USE;
/* Opens a cursor over the heads: `main` of each stream, then the others by stream and name. Heads
 * whose entry was lost to damage are skipped. Takes the state lock; the list is fixed here. */
enum wal_status wal__head_cursor_open(struct wal_session *session, struct wal_head_cursor **heads,
                                      struct wal_error *error) WAL_MUST_USE;
/* The next head, or WAL_END. Texts are valid until the close. */
enum wal_status wal__head_cursor_next(struct wal_head_cursor *heads,
                                      struct wal_head *head) WAL_MUST_USE;
void wal__head_cursor_close(struct wal_head_cursor *heads);
/* Whether a text of the JSON begins with the title, which may end in "..." or an ellipsis where it
 * was cut. */
bool wal__title_is_given(struct wal__span json, struct wal__span title);
/* Whether the entry gives the title; not when it is lost or erased. Takes the state lock.
 * WAL_ENOMEM, WAL_EIO. */
enum wal_status wal__session_gives_title(struct wal__core *core,
                                         const struct wal__entry_location *entry,
                                         struct wal__span title, bool *gives,
                                         struct wal_error *error) WAL_MUST_USE;
/* Empties the title of the session that owns the entry, and of each fork of it, if a text of the
 * entry gives it. An entry that is lost or erased gives none. */
enum wal_status wal__session_forget_titles(struct wal__core *core, uint32_t owner, uint32_t stream,
                                           uint64_t sequence, struct wal_error *error) WAL_MUST_USE;
/* Deletes the sessions that are in the trash for good, durably, by ascending number; one that is
 * taken out of it meanwhile stays. *count, also on failure: those that were deleted. */
enum wal_status wal__trash_empty(struct wal__core *core, uint64_t *count,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
