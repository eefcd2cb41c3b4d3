/*
 * api_noop.h - what the public functions answer with persistence off
 * (WAL_OPEN_NOOP, SPEC.md 5.11). They call these once the arguments are
 * checked. Nothing is kept but what a handle itself was given, and no system
 * call touches a file. Threads as agentwal.h says of each.
 */
#ifndef AGENTWAL_ENGINE_API_API_NOOP_H
#define AGENTWAL_ENGINE_API_API_NOOP_H

#include "agentwal/admin.h"
#include "engine/store/session.h"

enum wal_status wal__noop_open(const struct wal__heap *heap,
                               const struct wal__io *io,
                               const struct wal_open_options *options,
                               struct wal_store **store,
                               struct wal_error *error) WAL_MUST_USE;
/* Releases everything but what live handles need. */
void wal__noop_close(struct wal_store *store);
void wal__noop_store_info(struct wal_store_info *info);

/* Nothing will come: sleeps for as long as was asked, but never for ever. */
enum wal_status wal__noop_wait(const struct wal__core *core, int64_t timeout_ms,
                               struct wal_error *error) WAL_MUST_USE;

/* Migrating, of a store or of a session: it has the version `to` already.
 * result may be null. */
void wal__noop_migrate(uint32_t to, struct wal_migrate_result *result);

enum wal_status wal__noop_session_create(
    struct wal__core *core, const struct wal_session_options *options,
    struct wal_session **session, struct wal_error *error) WAL_MUST_USE;
/* An empty session of this id. */
enum wal_status wal__noop_session_open(struct wal__core *core,
                                       struct wal__span id,
                                       struct wal_session **session,
                                       struct wal_error *error) WAL_MUST_USE;
/* options may be null. */
enum wal_status
wal__noop_session_fork(struct wal_session *source, struct wal_slice at,
                       const struct wal_session_options *options,
                       struct wal_session **fork,
                       struct wal_error *error) WAL_MUST_USE;
void wal__noop_session_info(const struct wal_session *session,
                            struct wal_session_info *info);
enum wal_status wal__noop_session_update(struct wal_session *session,
                                         wal_update_fn *fn, void *ctx,
                                         struct wal_error *error) WAL_MUST_USE;

/* An operation that is done, and rings when it is asked for by a ticket: the
 * batch is checked as if it were to be
 * written. The caller releases it. */
enum wal_status wal__noop_submit(struct wal_session *session,
                                 const struct wal_batch *batch,
                                 const struct wal_append_options *options,
                                 bool has_ticket, struct wal__op **op,
                                 struct wal_error *error) WAL_MUST_USE;
/* With options->into. */
enum wal_status wal__noop_session_compact(
    struct wal_session *session, const struct wal_compact_options *options,
    struct wal_session **fork, struct wal_append_result *result,
    struct wal_error *error) WAL_MUST_USE;

/* Nothing of that name is there: a session, entry, head or document. */
enum wal_status wal__noop_not_found(struct wal_error *error) WAL_MUST_USE;

#endif
