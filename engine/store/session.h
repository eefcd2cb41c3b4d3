/*
 * session.h - the handles that callers hold: sessions, iterators, lists,
 * tickets (SPEC.md 5). The public functions of agentwal.h check that the
 * handle's process is the one that opened it, then call these.
 */
#ifndef AGENTWAL_ENGINE_STORE_SESSION_H
#define AGENTWAL_ENGINE_STORE_SESSION_H

#include "agentwal/admin.h"
#include "engine/base/bitset.h"
#include "engine/os/spill.h"
#include "engine/store/core.h"

/* The buffers of the last lookup of a handle (engine/read/lookup.h). */
struct wal__lookup {
    pthread_mutex_t mutex;
    struct wal_entry_cursor *entries; /* null: not used yet */
    struct wal_doc_cursor *docs;      /* null: not used yet */
};

struct wal_store {
    struct wal__core core;
    struct wal__lookup lookup; /* of the store's documents */
    struct wal__io *memory;    /* WAL_OPEN_MEMORY: its files; else null */
    struct wal__spill spill;
};

struct wal_session_cursor {
    struct wal__core *core;
    struct wal__catalogue_filter catalogue_filter;
    struct wal__catalogue_iter cursor;
    uint64_t generation;      /* of the indexes that the cursor walks */
    bool reloaded;            /* they are not those of the opening */
    uint64_t last_sequence;   /* of the log, when it was opened */
    uint32_t last_session;    /* highest number then */
    uint32_t retry_session;   /* session that could not be told, or 0 */
    struct wal__list_key key; /* of the session given last */
    struct wal__bitset seen;  /* numbers of those given */
    bool is_lineage;
    struct wal__buf lineage; /* numbers, instead of the cursor */
    size_t lineage_next;
    struct wal__buf filter_texts; /* the filter's texts */
    struct wal__buf texts;        /* of the session given last */
};

/* Part of its operation: there as long as that is. */
struct wal_ticket {
    struct wal__core *core;
    struct wal__op *op;
    bool result_taken; /* it gave the answer */
};

struct wal_session {
    struct wal__core *core;
    uint32_t number;
    uint64_t text_size; /* of its summary, when it was opened */
    uint32_t depth;     /* sessions that it descends from */
    pthread_mutex_t info_mutex;
    struct wal__buf info; /* what wal_session_get_info gave */
    struct wal__lookup lookup;
    /* Claims, under the core's claim_mutex. */
    struct wal_session *next_claim;
    uint32_t claim_slot;
    bool claimed;
};

/* A handle on no session yet; null without memory. */
struct wal_session *wal__session_alloc(struct wal__core *core);

/* A handle on a session that exists. */
enum wal_status wal__session_open(struct wal__core *core, uint32_t number,
                                  struct wal_session **session,
                                  struct wal_error *error) WAL_MUST_USE;

void wal__session_free(struct wal_session *session);

/* create.c */
enum wal_status wal__session_create(struct wal__core *core,
                                    const struct wal_session_options *options,
                                    struct wal_session **session,
                                    struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_fork(struct wal_session *source,
                                  struct wal_slice at,
                                  const struct wal_session_options *options,
                                  struct wal_session **fork,
                                  struct wal_error *error) WAL_MUST_USE;
/* Of the session with the number, or WAL__STORE_NUMBER; text_size: of its
 * summary. */
enum wal_status
wal__session_accept_damage(struct wal__core *core, uint32_t number,
                           uint64_t text_size,
                           struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_delete(struct wal_session *session,
                                    struct wal_error *error) WAL_MUST_USE;

/* claim.c */
enum wal_status wal__session_claim(struct wal_session *session,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__session_release_claim(struct wal_session *session);

/* fork.c: with an entry of type compaction_summary in the fork. */
enum wal_status wal__session_compact_into(
    struct wal_session *source, const struct wal_compact_options *options,
    struct wal_session **fork, struct wal_append_result *result,
    struct wal_error *error) WAL_MUST_USE;

/* update.c */
enum wal_status wal__session_update(struct wal_session *session,
                                    wal_update_fn *fn, void *ctx,
                                    struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__session_migrate(struct wal_session *session, uint32_t to,
                                     wal_update_fn *fn, void *ctx,
                                     struct wal_migrate_result *result,
                                     struct wal_error *error) WAL_MUST_USE;

/* describe.c: fills info from a summary; texts are copied to `texts`, which
 * is emptied first. State lock. */
enum wal_status wal__session_fill_info(
    const struct wal__core *core, const struct wal__summary *summary,
    struct wal__buf *texts, struct wal_session_info *info) WAL_MUST_USE;
enum wal_status wal__session_get_info(struct wal_session *session,
                                      struct wal_session_info *info,
                                      struct wal_error *error) WAL_MUST_USE;

/* Submits an operation and waits for it. op keeps one reference. */
enum wal_status wal__session_commit(struct wal__core *core, struct wal__op *op,
                                    struct wal_error *error) WAL_MUST_USE;

/* list.c */
enum wal_status wal__list_open(struct wal__core *core,
                               const struct wal_session_cursor_options *options,
                               struct wal_session_cursor **list,
                               struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__list_next(struct wal_session_cursor *list,
                               struct wal_session_info *info,
                               struct wal_error *error) WAL_MUST_USE;
void wal__list_cursor(const struct wal_session_cursor *list,
                      char cursor[WAL_CURSOR_TEXT_SIZE]);
void wal__list_close(struct wal_session_cursor *list);

#endif
