/*
 * session.h - the handles of the public API: stores, sessions, session cursors,
 * tickets (SPEC.md 5). The public functions of agentwal.h check that the
 * calling process opened the handle, then call these.
 */
#ifndef AGENTWAL_ENGINE_STORE_SESSION_H
#define AGENTWAL_ENGINE_STORE_SESSION_H

#include "agentwal/admin.h"
#include "engine/base/containers.h"
#include "engine/base/spill.h"
#include "engine/base/struct_size.h"
#include "engine/store/core.h"

/* The buffers of the last lookup of a handle (engine/read/lookup.h). */
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
static inline enum wal_status
wal__check_session(const struct wal_session *session, struct wal_error *error)
{
    return wal__check_core(session == NULL ? NULL : session->core, error);
}

/* Allocates a handle without a session; NULL when out of memory. */
struct wal_session *wal__session_alloc(struct wal__core *core);

/* Opens a handle on an existing session. */
enum wal_status wal__session_open(struct wal__core *core, uint32_t number,
                                  struct wal_session **session,
                                  struct wal_error *error) WAL_MUST_USE;

void wal__session_free(struct wal_session *session);

/* session_create.c, session_fork.c */
/* is_only: WAL_EEXISTS if the list of the directory options->cwd has a session;
 * without one, the list of the store. */
enum wal_status wal__session_create(struct wal__core *core,
                                    const struct wal_session_options *options,
                                    bool is_only, struct wal_session **session,
                                    struct wal_error *error) WAL_MUST_USE;
/* at: an entry; empty: the head `main`, or with sees_none before the first
 * entry, wherever that head is. */
enum wal_status wal__session_fork(struct wal_session *source,
                                  struct wal_slice at, bool sees_none,
                                  const struct wal_session_options *options,
                                  struct wal_session **fork,
                                  struct wal_error *error) WAL_MUST_USE;
/* Clears the damaged flag of a session, or of the store (WAL__STORE_NUMBER).
 * text_size: that of its summary, in bytes. */
enum wal_status
wal__session_accept_damage(struct wal__core *core, uint32_t number,
                           uint64_t text_size,
                           struct wal_error *error) WAL_MUST_USE;
/* expected: last_sequence of the session as the caller saw it, or null. */
enum wal_status wal__session_delete(struct wal_session *session,
                                    const uint64_t *expected,
                                    struct wal_error *error) WAL_MUST_USE;

/* session_fork.c: forks the session and appends a compaction_summary entry to
 * the fork, in one operation. */
enum wal_status wal__session_compact_into(
    struct wal_session *source, const struct wal_compact_options *options,
    struct wal_session **fork, struct wal_append_result *result,
    struct wal_error *error) WAL_MUST_USE;

/* session_update.c */
enum wal_status wal__session_update(struct wal_session *session,
                                    wal_update_fn *fn, void *ctx,
                                    struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_migrate(struct wal_session *session, uint32_t to,
                                     wal_update_fn *fn, void *ctx,
                                     struct wal_migrate_result *result,
                                     struct wal_error *error) WAL_MUST_USE;

/* session_info.c: fills info from a summary; texts are copied to `texts`, which
 * is emptied first. State lock for reading. */
enum wal_status wal__session_fill_info(
    const struct wal__core *core, const struct wal__summary *summary,
    struct wal__buf *texts, struct wal_session_info *info) WAL_MUST_USE;
enum wal_status wal__session_get_info(struct wal_session *session,
                                      struct wal_session_info *info,
                                      struct wal_error *error) WAL_MUST_USE;

/* Submits an operation and waits for its result. The caller keeps its reference
 * to op. */
enum wal_status wal__session_commit(struct wal__core *core, struct wal__op *op,
                                    struct wal_error *error) WAL_MUST_USE;

/* session_list.c */
enum wal_status wal__session_cursor_open(
    struct wal__core *core, const struct wal_session_cursor_options *options,
    struct wal_session_cursor **list, struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_cursor_next(struct wal_session_cursor *list,
                                         struct wal_session_info *info,
                                         struct wal_error *error) WAL_MUST_USE;
void wal__session_cursor_encode(const struct wal_session_cursor *list,
                                char cursor[WAL_CURSOR_TEXT_SIZE]);
void wal__session_cursor_close(struct wal_session_cursor *list);

#endif
