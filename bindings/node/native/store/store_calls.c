/*
 * store_calls.c - calls on a store: open, info, sync, flush.
 */
#include <stdio.h>

#include "bindings/node/native/base/status.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* --- open --------------------------------------------------------------- */

struct open_job {
    struct job job;
    const char *path;
    struct wal_open_options options;
    struct wal_store *wal;
};

/* path, flags, queueLimit, lockTimeout, groupAlign, schemaVersion */
static void read_open(struct call *call, const char **path,
                      struct wal_open_options *options)
{
    *options = (struct wal_open_options){
        .struct_size = sizeof(*options),
        .flags = value_u32(call, call_arg(call, 1)),
        .queue_limit = value_u32(call, call_arg(call, 2)),
        .lock_timeout_ms = value_u32(call, call_arg(call, 3)),
        .group_align = value_u32(call, call_arg(call, 4)),
        .schema_version = value_u32(call, call_arg(call, 5)),
    };
    *path = (options->flags & WAL_OPEN_MEMORY) != 0
                ? NULL
                : value_path(call, call_arg(call, 0));
}

static enum wal_status open_run(struct job *job, struct wal_error *error)
{
    struct open_job *self = (struct open_job *)job;

    return wal_open(self->path, &self->options, &self->wal, error);
}

static napi_value open_finish(struct call *call, struct job *job)
{
    struct open_job *self = (struct open_job *)job;
    struct wal_store *wal = self->wal;

    self->wal = NULL;
    return store_make(call, wal);
}

static void open_discard(struct job *job)
{
    (void)wal_close(((struct open_job *)job)->wal, NULL);
}

static const struct job_kind open_kind = {"open", sizeof(struct open_job),
                                          open_run, open_finish, open_discard};

static napi_value open_store(struct call *call)
{
    struct open_job *job = job_create(call, &open_kind, NULL, NULL);

    if (job == NULL) {
        return NULL;
    }
    read_open(call, &job->path, &job->options);
    return job_start(call, &job->job);
}

static napi_value open_now(struct call *call)
{
    struct wal_store *wal = NULL;
    struct wal_open_options options;
    const char *path;

    read_open(call, &path, &options);
    if (call->failed ||
        !call_check(call, wal_open(path, &options, &wal, call_error(call)))) {
        return NULL;
    }
    return store_make(call, wal);
}

/* --- info --------------------------------------------------------------- */

static napi_value make_uuid(struct call *call, const uint8_t uuid[16])
{
    char text[2 * 16 + 4 + 1];
    char *at = text;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        at += snprintf(at, 3, "%02x", uuid[i]);
    }
    return make_string(call, text);
}

static napi_value store_info(struct call *call)
{
    static const char *const tails[] = {"clean", "torn", "ambiguous",
                                        "damaged"};
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct store *store = store_get(call, 0);
    napi_value object;

    if (store == NULL ||
        !call_check(call,
                    wal_store_get_info(store->wal, &info, call_error(call)))) {
        return NULL;
    }
    object = make_object(call);
    object_set(call, object, "status",
               info.status == WAL_OK
                   ? make_null(call)
                   : make_string(call, status_code(info.status)));
    object_number(call, object, "formatVersion", info.format_version);
    object_set(call, object, "tail", make_string(call, tails[info.tail & 3]));
    object_set(call, object, "uuid", make_uuid(call, info.uuid));
    object_number(call, object, "tailSegment", info.tail_segment);
    object_number(call, object, "tailOffset", info.tail_offset);
    object_number(call, object, "tailSize", info.tail_size);
    object_number(call, object, "tailSequence", info.tail_sequence);
    object_number(call, object, "sessions", info.sessions);
    object_number(call, object, "lastSequence", info.last_sequence);
    object_number(call, object, "segments", info.segments);
    object_number(call, object, "logBytes", info.log_bytes);
    object_number(call, object, "diskBytes", info.disk_bytes);
    object_number(call, object, "groups", info.groups);
    object_number(call, object, "syncs", info.syncs);
    object_number(call, object, "acknowledged", info.acknowledged);
    object_number(call, object, "queued", info.queued);
    object_number(call, object, "packSegments", info.pack_segments);
    object_number(call, object, "packBytes", info.pack_bytes);
    object_number(call, object, "packDiskBytes", info.pack_disk_bytes);
    return object;
}

/* --- sync and flush ----------------------------------------------------- */

static enum wal_status sync_run(struct job *job, struct wal_error *error)
{
    return wal_sync(job->store->wal, error);
}

static enum wal_status flush_run(struct job *job, struct wal_error *error)
{
    return wal_flush(job->store->wal, error);
}

static const struct job_kind sync_kind = {"sync", sizeof(struct job), sync_run,
                                          NULL, NULL};
static const struct job_kind flush_kind = {"flush", sizeof(struct job),
                                           flush_run, NULL, NULL};

static napi_value sync_store(struct call *call)
{
    struct store *store = store_get(call, 0);

    return job_start(call, job_create(call, &sync_kind, store, NULL));
}

static napi_value flush_store(struct call *call)
{
    struct store *store = store_get(call, 0);

    return job_start(call, job_create(call, &flush_kind, store, NULL));
}

static napi_value version(struct call *call)
{
    return make_string(call, wal_version());
}

const struct call_method store_call_methods[] = {
    {"open", open_store}, {"openSync", open_now}, {"storeInfo", store_info},
    {"sync", sync_store}, {"flush", flush_store}, {"version", version},
    {NULL, NULL},
};
