/*
 * backup.c - backups, and migrations of a store.
 */
#include <agentwal/admin.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* --- backup ------------------------------------------------------------- */

struct backup_job {
    struct job job;
    const char *path;
    struct wal_store_backup_result result;
};

static enum wal_status backup_run(struct job *job, struct wal_error *error)
{
    struct backup_job *self = (struct backup_job *)job;
    const struct wal_store_backup_options options = {
        .struct_size = sizeof(options),
        .progress = job_progress,
        .ctx = job,
    };

    self->result.struct_size = sizeof(self->result);
    return wal_store_backup(job->store->wal, self->path, &options,
                            &self->result, error);
}

static napi_value backup_finish(struct call *call, struct job *job)
{
    const struct wal_store_backup_result *result =
        &((struct backup_job *)job)->result;
    napi_value object = make_object(call);

    object_number(call, object, "segments", result->segments);
    object_number(call, object, "copied", result->copied);
    object_number(call, object, "removed", result->removed);
    object_number(call, object, "bytes", result->bytes);
    object_number(call, object, "sharedBytes", result->shared_bytes);
    object_number(call, object, "lastSequence", result->last_sequence);
    return object;
}

static const struct job_kind backup_kind = {"backup", sizeof(struct backup_job),
                                            backup_run, backup_finish, NULL};

/* backup(store, path, watch) */
static napi_value backup_store(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct backup_job *self = job_create(call, &backup_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->path = value_path(call, call_arg(call, 1));
    job_watch_arg(call, &self->job, call_arg(call, 2));
    return job_start(call, &self->job);
}

/* --- migration ---------------------------------------------------------- */

struct migrate_job {
    struct job job;
    const char *path;
    struct wal_open_options options;
    struct wal_migrate_result result;
};

static enum wal_status migrate_run(struct job *job, struct wal_error *error)
{
    struct migrate_job *self = (struct migrate_job *)job;

    self->result.struct_size = sizeof(self->result);
    return wal_store_migrate(self->path, &self->options, &self->result, error);
}

static napi_value migrate_finish(struct call *call, struct job *job)
{
    const struct wal_migrate_result *result =
        &((struct migrate_job *)job)->result;
    napi_value object = make_object(call);

    object_number(call, object, "from", result->from);
    object_number(call, object, "to", result->to);
    object_number(call, object, "sessions", result->sessions);
    return object;
}

static const struct job_kind migrate_kind = {
    "migrate", sizeof(struct migrate_job), migrate_run, migrate_finish, NULL};

/* migrate(OPEN): the arguments of open */
static napi_value migrate_store(struct call *call)
{
    struct migrate_job *self = job_create(call, &migrate_kind, NULL, NULL);

    if (self == NULL) {
        return NULL;
    }
    store_read_open(call, &self->path, &self->options);
    return job_start(call, &self->job);
}

const struct call_method backup_methods[] = {
    {"backup", backup_store},
    {"migrate", migrate_store},
    {NULL, NULL},
};
