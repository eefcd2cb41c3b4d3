/*
 * transfer.c - sessions from one store to another, and bundles.
 */
#include <agentwal/transfer.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

struct transfer_job {
    struct job job;
    struct wal_slice path;
    struct wal_transfer_options options;
    struct wal_transfer_result result;
    struct list reports;
};

/* A wal_transfer_report_fn. */
static int32_t add_report(void *ctx, const struct wal_transfer_report *report)
{
    struct transfer_job *self = ctx;

    list_add_struct(&self->reports, &self->job.arena, &wal_transfer_report_out,
                    report);
    return 0;
}

static enum wal_status merge_run(struct job *job, struct wal_error *error)
{
    struct transfer_job *self = (struct transfer_job *)job;
    enum wal_status status = wal_store_merge(
        job->other->wal, job->store->wal, &self->options, &self->result, error);

    return list_check(&self->reports, status, error);
}

static enum wal_status write_run(struct job *job, struct wal_error *error)
{
    struct transfer_job *self = (struct transfer_job *)job;
    enum wal_status status = wal_bundle_write(
        job->store->wal, self->path, &self->options, &self->result, error);

    return list_check(&self->reports, status, error);
}

static enum wal_status read_run(struct job *job, struct wal_error *error)
{
    struct transfer_job *self = (struct transfer_job *)job;
    enum wal_status status = wal_bundle_read(
        job->store->wal, self->path, &self->options, &self->result, error);

    return list_check(&self->reports, status, error);
}

static napi_value transfer_finish(struct call *call, struct job *job)
{
    const struct transfer_job *self = (struct transfer_job *)job;
    napi_value object =
        make_struct(call, &wal_transfer_result_out, &self->result);

    object_set(call, object, "reports",
               list_structs(call, &self->reports, &wal_transfer_report_out));
    return object;
}

static const struct job_kind merge_kind = {"merge", sizeof(struct transfer_job),
                                           merge_run, transfer_finish, NULL};
static const struct job_kind write_kind = {"writeBundle",
                                           sizeof(struct transfer_job),
                                           write_run, transfer_finish, NULL};
static const struct job_kind read_kind = {
    "readBundle", sizeof(struct transfer_job), read_run, transfer_finish, NULL};

/* sessions, directory, branch, watch; no branch: a session that both went on
 * with is refused */
static napi_value start(struct call *call, struct transfer_job *self,
                        size_t first)
{
    uint32_t count = 0;
    struct wal_slice *sessions =
        value_texts(call, call_arg(call, first), false, &count);
    napi_value branch = call_arg(call, first + 2);

    self->result.struct_size = sizeof(self->result);
    self->options = (struct wal_transfer_options){
        .struct_size = sizeof(self->options),
        .flags = value_is_absent(call, branch) ? 0U : WAL_TRANSFER_KEEP_BOTH,
        .sessions = sessions,
        .session_count = count,
        .directory = value_path_slice(call, call_arg(call, first + 1)),
        .branch_name = value_text(call, branch),
        .progress = job_progress,
        .report = add_report,
        .ctx = self,
    };
    job_watch_arg(call, &self->job, call_arg(call, first + 3));
    return job_start(call, &self->job);
}

/* merge(to, from, sessions, directory, branch, watch) */
static napi_value merge_stores(struct call *call)
{
    struct store *to = store_get(call, 0);
    struct store *from = store_get(call, 1);
    struct transfer_job *self = job_create(call, &merge_kind, to, NULL);

    if (self == NULL) {
        return NULL;
    }
    job_use_store(&self->job, from);
    return start(call, self, 2);
}

/* writeBundle(store, path, sessions, directory, undefined, watch) */
static napi_value write_bundle(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct transfer_job *self = job_create(call, &write_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->path = value_path_slice(call, call_arg(call, 1));
    return start(call, self, 2);
}

/* readBundle(store, path, sessions, directory, branch, watch) */
static napi_value read_bundle(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct transfer_job *self = job_create(call, &read_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->path = value_path_slice(call, call_arg(call, 1));
    return start(call, self, 2);
}

const struct call_method transfer_methods[] = {
    {"merge", merge_stores},
    {"writeBundle", write_bundle},
    {"readBundle", read_bundle},
    {NULL, NULL},
};
