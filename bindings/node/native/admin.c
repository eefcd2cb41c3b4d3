/*
 * admin.c - migration, compaction and salvage of a store.
 */
#include <agentwal/admin.h>
#include <math.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

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
    return make_struct(call, &wal_migrate_result_out, &((struct migrate_job *)job)->result);
}

static const struct job_kind migrate_kind = {"migrate", sizeof(struct migrate_job), migrate_run,
                                             migrate_finish, NULL};

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

/* --- compaction --------------------------------------------------------- */

struct refusal_item {
    struct list_item item;
    const struct wal_error *error;
};

struct reader_item {
    struct list_item item;
    int32_t process;
    uint64_t bytes;
};

struct compact_job {
    struct job job;
    struct wal_store_compact_options options;
    struct wal_store_compact_result result;
    struct list refusals;
    struct list readers;
    struct list spaces;
};

/* A wal_store_compact_refused_fn. */
static void add_refusal(void *ctx, const struct wal_error *refusal)
{
    struct compact_job *self = ctx;
    struct refusal_item *item = list_add(&self->refusals, &self->job.arena, sizeof(*item));

    if (item != NULL) {
        item->error = list_copy_error(&self->refusals, &self->job.arena, refusal);
    }
}

/* A wal_store_compact_reader_fn. */
static void add_reader(void *ctx, int32_t process, uint64_t bytes)
{
    struct compact_job *self = ctx;
    struct reader_item *item = list_add(&self->readers, &self->job.arena, sizeof(*item));

    if (item != NULL) {
        item->process = process;
        item->bytes = bytes;
    }
}

/* A wal_session_space_fn. */
static int32_t add_space(void *ctx, const struct wal_session_space *space)
{
    struct compact_job *self = ctx;

    list_add_struct(&self->spaces, &self->job.arena, &wal_session_space_out, space);
    return job_must_stop(&self->job);
}

static enum wal_status compact_run(struct job *job, struct wal_error *error)
{
    struct compact_job *self = (struct compact_job *)job;
    enum wal_status status =
        wal_store_compact(job->store->wal, &self->options, &self->result, error);

    status = list_check(&self->refusals, status, error);
    status = list_check(&self->readers, status, error);
    return list_check(&self->spaces, status, error);
}

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

static napi_value compact_finish(struct call *call, struct job *job)
{
    const struct compact_job *self = (struct compact_job *)job;
    napi_value object = make_struct(call, &wal_store_compact_result_out, &self->result);

    object_set(call, object, "refusals", list_make(call, &self->refusals, make_refusal));
    object_set(call, object, "readers", list_make(call, &self->readers, make_reader));
    object_set(call, object, "sessions", list_structs(call, &self->spaces, &wal_session_space_out));
    return object;
}

static const struct job_kind compact_kind = {"compactStore", sizeof(struct compact_job),
                                             compact_run, compact_finish, NULL};

/* Bytes in a second; Infinity: no limit. */
static uint64_t read_rate(struct call *call, napi_value value)
{
    napi_valuetype type = napi_undefined;
    double rate = 0;

    if (!call->failed && call_ok(call, napi_typeof(call->env, value, &type)) &&
        type == napi_number && call_ok(call, napi_get_value_double(call->env, value, &rate)) &&
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
    struct wal_store_compact_options *options;

    if (self == NULL) {
        return NULL;
    }
    self->result.struct_size = sizeof(self->result);
    options = &self->options;
    read_struct(call, 1, &wal_store_compact_options_in, options);
    options->rate = read_rate(call, call_arg(call, 4));
    options->progress = job_progress;
    options->refused = add_refusal;
    options->session = add_space;
    options->reader = add_reader;
    options->ctx = self;
    job_watch_arg(call, &self->job, call_arg(call, 5));
    return job_start(call, &self->job);
}

/* --- salvage ------------------------------------------------------------ */

enum {
    REPORTS = 1000 /* that are kept */
};

struct salvage_job {
    struct job job;
    const char *path;
    const char *out;
    uint32_t flags;
    struct wal_salvage_result result;
    struct list reports;
};

/* A wal_salvage_report_fn. */
static int32_t add_report(void *ctx, const struct wal_salvage_report *report)
{
    struct salvage_job *self = ctx;

    if (self->reports.count < REPORTS) {
        list_add_struct(&self->reports, &self->job.arena, &wal_salvage_report_out, report);
    }
    return job_must_stop(&self->job);
}

static enum wal_status salvage_run(struct job *job, struct wal_error *error)
{
    struct salvage_job *self = (struct salvage_job *)job;
    const struct wal_salvage_options options = {
        .struct_size = sizeof(options),
        .flags = self->flags,
        .progress = job_progress,
        .report = add_report,
        .ctx = self,
    };
    enum wal_status status;

    self->result.struct_size = sizeof(self->result);
    status = wal_salvage(self->path, self->out, &options, &self->result, error);
    return list_check(&self->reports, status, error);
}

static napi_value salvage_finish(struct call *call, struct job *job)
{
    const struct salvage_job *self = (struct salvage_job *)job;
    napi_value object = make_struct(call, &wal_salvage_result_out, &self->result);

    object_set(call, object, "reports",
               list_structs(call, &self->reports, &wal_salvage_report_out));
    return object;
}

static const struct job_kind salvage_kind = {"salvage", sizeof(struct salvage_job), salvage_run,
                                             salvage_finish, NULL};

/* salvage(path, out, flags, watch) */
static napi_value salvage(struct call *call)
{
    struct salvage_job *self = job_create(call, &salvage_kind, NULL, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->path = value_path(call, call_arg(call, 0));
    self->out = value_path(call, call_arg(call, 1));
    self->flags = value_u32(call, call_arg(call, 2));
    job_watch_arg(call, &self->job, call_arg(call, 3));
    return job_start(call, &self->job);
}

const struct call_method admin_methods[] = {
    {"migrate", migrate_store},
    {"compactStore", compact_store},
    {"salvage", salvage},
    {NULL, NULL},
};
