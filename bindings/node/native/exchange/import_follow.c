/*
 * import_follow.c - imports that go on.
 *
 * A job is one round: it waits for changes in parts of WAIT_MS, so that it sees
 * when it is to stop.
 */
#include <stdlib.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/exchange/import_report.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/store.h"

enum {
    WAIT_MS = 100
};

/* The object of the handle. */
struct follow {
    struct wal_import_follow *follow;
    struct import_reports *reports; /* of the round's job */
};

struct round_job {
    struct job job;
    struct import_reports reports;
};

static void close_follow(void *object)
{
    struct follow *self = object;

    wal_import_follow_close(self->follow);
    free(self);
}

static const struct handle_type follow_type = {"import", close_follow, false};

static int32_t add_report(void *ctx, const struct wal_import_report *report)
{
    return import_reports_add(((struct follow *)ctx)->reports, report);
}

static int32_t show_progress(void *ctx, struct wal_slice path, uint64_t done,
                             uint64_t total)
{
    return import_reports_progress(((struct follow *)ctx)->reports, path, done,
                                   total);
}

/* openImport(store, paths, flags, dialect, exclude) */
static napi_value open_follow(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint32_t count = 0;
    struct wal_slice *paths =
        value_texts(call, call_arg(call, 1), true, &count);
    struct wal_import_options options;
    struct follow *self;

    import_read_options(call, 2, NULL, &options);
    if (call->failed) {
        return NULL;
    }
    self = calloc(1, sizeof(*self));
    if (self == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for an import");
        return NULL;
    }
    options.progress = show_progress;
    options.report = add_report;
    options.ctx = self;
    if (!call_check(call,
                    wal_import_follow_open(store->wal, paths, count, &options,
                                           &self->follow, call_error(call)))) {
        free(self);
        return NULL;
    }
    return handle_make(call, &follow_type, store, self);
}

/* --- a round ------------------------------------------------------------ */

static enum wal_status round_run(struct job *job, struct wal_error *error)
{
    struct import_reports *reports = &((struct round_job *)job)->reports;
    struct follow *self = job->handle->object;
    enum wal_status status = WAL_OK;

    self->reports = reports;
    reports->result.struct_size = sizeof(reports->result);
    while (status == WAL_OK && reports->result.sources == 0 &&
           reports->list.count == 0) {
        status = job_must_stop(job)
                     ? WAL_ECALLBACK
                     : wal_import_follow_next(self->follow, WAIT_MS,
                                              &reports->result, error);
    }
    self->reports = NULL;
    return list_check(&reports->list, status, error);
}

static napi_value round_finish(struct call *call, struct job *job)
{
    return import_reports_make(call, &((struct round_job *)job)->reports);
}

static const struct job_kind round_kind = {
    "nextImport", sizeof(struct round_job), round_run, round_finish, NULL};

/* nextImport(import, watch): the result of the next round that found
 * something */
static napi_value next_round(struct call *call)
{
    struct handle *follow = handle_get(call, 0, &follow_type);
    struct round_job *self = job_create(call, &round_kind, NULL, follow);

    if (self == NULL) {
        return NULL;
    }
    self->reports.job = &self->job;
    job_watch_arg(call, &self->job, call_arg(call, 1));
    return job_start(call, &self->job);
}

/* closeImport(import) */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &follow_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

const struct call_method import_follow_methods[] = {
    {"openImport", open_follow},
    {"nextImport", next_round},
    {"closeImport", close_handle},
    {NULL, NULL},
};
