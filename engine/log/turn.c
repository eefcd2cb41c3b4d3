/*
 * turn.c - taking a turn of writing to a stream (SPEC.md 4.1 to 4.3).
 */
#include "engine/log/turn.h"

#include "engine/base/error.h"
#include "engine/log/index_file.h"

/* Applies what was published, from the beginning where that must be. */
static enum wal_status apply_published(struct wal__log *log,
                                       const struct wal__turn_client *client,
                                       struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (!log->stale) {
        status = wal__log_catch_up(log, error);
    }
    if (status == WAL_OK && log->stale) {
        status = client->reload(client->ctx, error);
    }
    return status;
}

/* Brings this process to the published end, under lease and state lock. */
static enum wal_status catch_up(struct wal__log *log,
                                const struct wal__turn_client *client,
                                bool heals, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (heals) {
        wal__log_find_death(log);
    } else {
        status = wal__log_check_poison(log, error);
    }
    if (status == WAL_OK) {
        status = apply_published(log, client, error);
    }
    if (status == WAL_OK && wal__log_check_poison(log, NULL) != WAL_OK) {
        status = wal__log_heal(log, error);
        if (status == WAL_OK) {
            status = apply_published(log, client, error);
        }
    }
    if (status == WAL_OK) {
        status = wal__log_inherit(log, error);
    }
    return status;
}

enum wal_status wal__turn_begin(struct wal__log *log,
                                const struct wal__turn_client *client,
                                bool heals, struct wal_error *error)
{
    enum wal_status status = wal__log_lease(log, error);

    if (status != WAL_OK) {
        return status;
    }
    client->lock(client->ctx);
    status = catch_up(log, client, heals, error);
    if (status != WAL_OK) {
        wal__turn_end(log, client);
    }
    return status;
}

void wal__turn_end(struct wal__log *log, const struct wal__turn_client *client)
{
    client->unlock(client->ctx);
    wal__log_release(log);
}

void wal__turn_pass_on(struct wal__log *log,
                       const struct wal__turn_client *client)
{
    client->unlock(client->ctx);
    wal__log_pass_on(log);
}

/* The index beside the tail is removed before anything is appended. */
static enum wal_status unindex(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status;
    uint64_t indexed = atomic_load(&log->shared->indexed);

    if (indexed == 0) {
        return WAL_OK;
    }
    status = wal__index_file_remove(log, indexed);
    if (status != WAL_OK) {
        return wal__fail(error, status, 0, log->env->root, 0,
                         "cannot remove the index beside the tail");
    }
    atomic_store(&log->shared->indexed, 0);
    return WAL_OK;
}

enum wal_status wal__turn_reserve(struct wal__log *log,
                                  const struct wal__demand *demand,
                                  struct wal_error *error)
{
    /* Before a rotation, which writes to the tail, and may put an index of
     * its own in that one's place. */
    enum wal_status status = unindex(log, error);

    return status == WAL_OK ? wal__log_reserve(log, demand, error) : status;
}

/* Whether there is an end to be marked. */
static bool wants_mark(const struct wal__log *log)
{
    return log->tail != NULL && !log->marked && !log->tail->sealed &&
           !log->must_rotate &&
           atomic_load(&log->shared->rotate) != log->tail->id;
}

enum wal_status wal__turn_mark(struct wal__log *log,
                               const struct wal__turn_client *client,
                               struct wal_error *error)
{
    enum wal_status status = wal__turn_begin(log, client, false, error);
    struct wal__group group;

    if (status != WAL_OK) {
        return status;
    }
    if (wants_mark(log)) {
        status = wal__log_sync(log, atomic_load(&log->end), error);
        if (status == WAL_OK) {
            wal__group_init(&group, log);
            status = wal__log_write(log, &group, error);
            wal__group_deinit(&group);
        }
        if (status == WAL_OK) {
            status = wal__log_sync(log, atomic_load(&log->end), error);
        }
    }
    wal__turn_end(log, client);
    return status;
}
