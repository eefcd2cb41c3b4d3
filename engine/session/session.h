/*
 * session.h - the handles that callers hold: sessions, iterators, lists,
 * tickets (SPEC.md 5). The public functions of agentwal.h check that the
 * handle's process is the one that opened it, then call these.
 */
#ifndef WAL_SESSION_SESSION_H
#define WAL_SESSION_SESSION_H

#include "engine/session/core.h"

struct wal_store {
    struct wal__core core;
};

struct wal_list {
    struct wal__core *core;
    struct wal__catalogue_filter wanted;
    struct wal__catalogue_cursor cursor;
    uint64_t generation; /* of the indexes that the cursor walks */
    uint64_t given;
    struct wal__buf filter; /* the filter's texts */
    struct wal__buf texts;  /* of the session given last */
};

struct wal_ticket {
    struct wal__core *core;
    struct wal__op *op;
};

struct wal_session {
    struct wal__core *core;
    uint32_t number;
    uint64_t text_size; /* of its summary, when it was opened */
    pthread_mutex_t info_mutex;
    struct wal__buf info; /* what wal_session_status gave */
};

/* A handle on no session yet; null without memory. */
struct wal_session *wal__session_alloc(struct wal__core *core);

/* A handle on a session that exists. */
enum wal_status wal__session_handle(struct wal__core *core, uint32_t number,
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
enum wal_status wal__session_accept(struct wal_session *session,
                                    struct wal_error *error) WAL_MUST_USE;

/* describe.c: fills info from a summary; texts are copied to `texts`, which
 * is emptied first. */
enum wal_status
wal__session_describe(const struct wal__summary *summary,
                      struct wal__buf *texts,
                      struct wal_session_info *info) WAL_MUST_USE;
enum wal_status wal__session_status(struct wal_session *session,
                                    struct wal_session_info *info,
                                    struct wal_error *error) WAL_MUST_USE;

/* Submits an operation and waits for it. op keeps one reference. */
enum wal_status wal__session_commit(struct wal__core *core, struct wal__op *op,
                                    struct wal_error *error) WAL_MUST_USE;

/* list.c */
enum wal_status wal__list_open(struct wal__core *core,
                               const struct wal_list_options *options,
                               struct wal_list **list,
                               struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__list_next(struct wal_list *list,
                               struct wal_session_info *info,
                               struct wal_error *error) WAL_MUST_USE;
void wal__list_close(struct wal_list *list);

/* append.c: an operation that appends the entries, not submitted. */
enum wal_status
wal__append_create(struct wal_session *session, const struct wal_entry *entries,
                   uint32_t count, const struct wal_append_options *options,
                   struct wal__op **op, struct wal_error *error) WAL_MUST_USE;

/* What an append was asked for, beyond its frames. */
struct wal__append_item {
    uint64_t id_hash;
    uint32_t flags;         /* enum wal_entry_flag */
    uint32_t parent_offset; /* of the parent's id in `parents` */
    uint8_t parent_size;    /* 0: none given */
    bool timed;             /* the caller gave the time */
};

struct wal__append {
    struct wal__core *core;
    uint32_t session;
    bool expect;
    uint16_t expected_size;
    uint8_t expected[WAL__ID_MAX];
    struct wal__append_item *items;
    struct wal__buf parents;
};

/* resolve.c: decides under the lease; ctx is the core. */
enum wal_status wal__append_resolve(void *ctx, struct wal__op *op);

#endif
