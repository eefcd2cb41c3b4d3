/*
 * compact.c - compacting a store.
 */
#include <agentwal/admin.h>
#include <math.h>

#include "bindings/node/native/base/list.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

struct refusal_item {
    struct list_item item;
    const struct wal_error *error;
};

struct reader_item {
    struct list_item item;
    int32_t process;
    uint64_t bytes;
};

struct space_item {
    struct list_item item;
    struct wal_session_space is;
};

struct compact_job {
    struct job job;
    struct wal_store_compact_options options;
    struct wal_store_compact_result result;
    struct list refusals;
    struct list readers;
    struct list spaces;
};

/* --- in the thread ------------------------------------------------------ */

/* A wal_store_compact_refused_fn. */
static void add_refusal(void *ctx, const struct wal_error *refusal)
{
    struct compact_job *self = ctx;
    struct refusal_item *item =
        list_add(&self->refusals, &self->job.arena, sizeof(*item));

    if (item != NULL) {
        item->error =
            list_copy_error(&self->refusals, &self->job.arena, refusal);
    }
}

/* A wal_store_compact_reader_fn. */
static void add_reader(void *ctx, int32_t process, uint64_t bytes)
{
    struct compact_job *self = ctx;
    struct reader_item *item =
        list_add(&self->readers, &self->job.arena, sizeof(*item));

    if (item != NULL) {
        item->process = process;
        item->bytes = bytes;
    }
}

/* A wal_session_space_fn. */
static int32_t add_space(void *ctx, const struct wal_session_space *space)
{
    struct compact_job *self = ctx;
    struct space_item *item =
        list_add(&self->spaces, &self->job.arena, sizeof(*item));

    if (item != NULL) {
        item->is = *space;
        item->is.session_id =
            list_copy_text(&self->spaces, &self->job.arena, space->session_id);
    }
    return job_must_stop(&self->job);
}

static enum wal_status compact_run(struct job *job, struct wal_error *error)
{
    struct compact_job *self = (struct compact_job *)job;
    enum wal_status status = wal_store_compact(job->store->wal, &self->options,
                                               &self->result, error);

    status = list_check(&self->refusals, status, error);
    status = list_check(&self->readers, status, error);
    return list_check(&self->spaces, status, error);
}

/* --- values ------------------------------------------------------------- */

static napi_value make_refusal(struct call *call, const struct list_item *item)
{
    return call_make_error(call, ((const struct refusal_item *)item)->error);
}

static napi_value make_reader(struct call *call, const struct list_item *item)
{
    const struct reader_item *reader = (const struct reader_item *)item;
    napi_value object = make_object(call);

    object_set(call, object, "processId", make_signed(call, reader->process));
    object_number(call, object, "bytes", reader->bytes);
    return object;
}

static napi_value make_space(struct call *call, const struct list_item *item)
{
    const struct wal_session_space *space =
        &((const struct space_item *)item)->is;
    napi_value object = make_object(call);

    object_text(call, object, "id", space->session_id);
    object_number(call, object, "number", space->session_number);
    object_bool(call, object, "deleted",
                (space->flags & WAL_SESSION_SPACE_DELETED) != 0);
    object_number(call, object, "ownBytes", space->own_bytes);
    object_number(call, object, "sharedBytes", space->shared_bytes);
    object_number(call, object, "reclaimableBytes", space->reclaimable_bytes);
    return object;
}

static napi_value compact_finish(struct call *call, struct job *job)
{
    const struct compact_job *self = (struct compact_job *)job;
    const struct wal_store_compact_result *result = &self->result;
    napi_value object = make_object(call);

    object_number(call, object, "segments", result->segments);
    object_number(call, object, "rewritten", result->rewritten);
    object_number(call, object, "refused", result->refused);
    object_number(call, object, "bytesBefore", result->bytes_before);
    object_number(call, object, "bytesAfter", result->bytes_after);
    object_number(call, object, "deadBytes", result->dead_bytes);
    object_number(call, object, "keptRecords", result->kept_records);
    object_number(call, object, "droppedRecords", result->dropped_records);
    object_number(call, object, "erasedRecords", result->erased_records);
    object_number(call, object, "droppedContents", result->dropped_contents);
    object_set(call, object, "refusals",
               list_make(call, &self->refusals, make_refusal));
    object_set(call, object, "readers",
               list_make(call, &self->readers, make_reader));
    object_set(call, object, "sessions",
               list_make(call, &self->spaces, make_space));
    return object;
}

/* --- functions of JavaScript -------------------------------------------- */

static const struct job_kind compact_kind = {"compactStore",
                                             sizeof(struct compact_job),
                                             compact_run, compact_finish, NULL};

/* Bytes in a second; Infinity: no limit. */
static uint64_t read_rate(struct call *call, napi_value value)
{
    napi_valuetype type = napi_undefined;
    double rate = 0;

    if (!call->failed && call_ok(call, napi_typeof(call->env, value, &type)) &&
        type == napi_number &&
        call_ok(call, napi_get_value_double(call->env, value, &rate)) &&
        isinf(rate) && rate > 0) {
        return UINT64_MAX;
    }
    return value_u64(call, value);
}

/* compactStore(store, flags, deadPercent, maxBytes, rate, watch) */
static napi_value compact_store(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct compact_job *self = job_create(call, &compact_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->result.struct_size = sizeof(self->result);
    self->options = (struct wal_store_compact_options){
        .struct_size = sizeof(self->options),
        .flags = value_u32(call, call_arg(call, 1)),
        .dead_percent = value_u32(call, call_arg(call, 2)),
        .max_bytes = value_u64(call, call_arg(call, 3)),
        .rate = read_rate(call, call_arg(call, 4)),
        .progress = job_progress,
        .refused = add_refusal,
        .session = add_space,
        .reader = add_reader,
        .ctx = self,
    };
    job_watch_arg(call, &self->job, call_arg(call, 5));
    return job_start(call, &self->job);
}

const struct call_method compact_methods[] = {
    {"compactStore", compact_store},
    {NULL, NULL},
};
