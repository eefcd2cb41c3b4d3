/*
 * import.c - imports of the session files of other programs, at once and going
 * on, and their reports.
 *
 * A job of an import that goes on is one round: it waits for changes in parts
 * of WAIT_MS, so that it sees when it is to stop.
 */
#include <agentwal/import.h>
#include <stdlib.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

enum {
    IMPORT_ISSUES = 1000, /* that are kept of a source */
    WAIT_MS = 100
};

/* What an import reports, as its job collects it. */
struct import_reports {
    struct job *job; /* whose arena they are in, and which is stopped */
    struct list list;
    struct wal_import_result result;
};

struct report_item {
    struct list_item item;
    struct wal_import_report is;
    struct list issues;
};

/* --- reports, in the thread --------------------------------------------- */

/* The issue with an index. Issues have the size that the first one states. */
static const struct wal_import_issue *
issue_at(const struct wal_import_report *report, uint64_t index)
{
    const char *first = (const char *)report->issues;

    return (const void *)(first + index * report->issues->struct_size);
}

static void copy_issues(struct import_reports *reports,
                        struct report_item *item)
{
    struct list *list = &reports->list;
    struct arena *arena = &reports->job->arena;

    for (uint64_t i = 0; i < item->is.issue_count && i < IMPORT_ISSUES; i++) {
        const struct wal_import_issue *issue = issue_at(&item->is, i);

        list_add_struct(&item->issues, arena, &wal_import_issue_out, issue);
        list->lacks_memory |= item->issues.lacks_memory;
    }
}

static int32_t import_reports_add(void *ctx,
                                  const struct wal_import_report *report)
{
    struct import_reports *reports = ctx;
    struct list *list = &reports->list;
    struct arena *arena = &reports->job->arena;
    struct report_item *item = list_add(list, arena, sizeof(*item));

    if (item == NULL) {
        return 1;
    }
    item->is = *report;
    copy_issues(reports, item);
    list_copy_struct(list, arena, &wal_import_report_out, &item->is);
    item->is.issues = NULL;
    return job_must_stop(reports->job);
}

static int32_t import_reports_progress(void *ctx, struct wal_slice path,
                                       uint64_t done, uint64_t total)
{
    struct import_reports *reports = ctx;

    (void)path;
    return job_progress(reports->job, done, total);
}

/* --- reports, as values ------------------------------------------------- */

static napi_value make_report(struct call *call, const struct list_item *item)
{
    const struct report_item *self = (const struct report_item *)item;
    napi_value object = make_struct(call, &wal_import_report_out, &self->is);

    object_set(call, object, "issues",
               list_structs(call, &self->issues, &wal_import_issue_out));
    return object;
}

static napi_value make_left_out(struct call *call,
                                const struct wal_import_result *result)
{
    napi_value object = make_object(call);

    for (uint32_t i = 0; i < WAL_IMPORT_LEFT_OUT_SIZE; i++) {
        if (result->left_out[i] > 0) {
            object_number(call, object, wal_import_left_out_name(i),
                          result->left_out[i]);
        }
    }
    return object;
}

static napi_value import_reports_make(struct call *call,
                                      const struct import_reports *reports)
{
    napi_value object =
        make_struct(call, &wal_import_result_out, &reports->result);

    object_set(call, object, "leftOut", make_left_out(call, &reports->result));
    object_set(call, object, "reports",
               list_make(call, &reports->list, make_report));
    return object;
}

/* Reads the options of an import: flags, dialect, exclude. */
static void import_read_options(struct call *call, size_t first, void *ctx,
                                struct wal_import_options *options)
{
    read_struct(call, first, &wal_import_options_in, options);
    options->progress = import_reports_progress;
    options->report = import_reports_add;
    options->ctx = ctx;
}

/* --- at once ------------------------------------------------------------ */

struct import_job {
    struct job job;
    struct wal_slice *paths;
    uint32_t count;
    struct wal_import_options options;
    struct import_reports reports;
};

static enum wal_status tree_run(struct job *job, struct wal_error *error)
{
    struct import_job *self = (struct import_job *)job;
    enum wal_status status =
        wal_import_tree(job->store->wal, self->paths, self->count,
                        &self->options, &self->reports.result, error);

    return list_check(&self->reports.list, status, error);
}

static enum wal_status scan_run(struct job *job, struct wal_error *error)
{
    struct import_job *self = (struct import_job *)job;
    enum wal_status status = wal_import_scan(
        self->paths, self->count, &self->options, &self->reports.result, error);

    return list_check(&self->reports.list, status, error);
}

static napi_value import_finish(struct call *call, struct job *job)
{
    return import_reports_make(call, &((struct import_job *)job)->reports);
}

static const struct job_kind tree_kind = {
    "importTree", sizeof(struct import_job), tree_run, import_finish, NULL};
static const struct job_kind scan_kind = {
    "scanImport", sizeof(struct import_job), scan_run, import_finish, NULL};

/* paths, flags, dialect, exclude, watch */
static napi_value start(struct call *call, struct import_job *self,
                        size_t first)
{
    self->reports.job = &self->job;
    self->reports.result.struct_size = sizeof(self->reports.result);
    self->paths = value_texts(call, call_arg(call, first), true, &self->count);
    import_read_options(call, first + 1, &self->reports, &self->options);
    job_watch_arg(call, &self->job, call_arg(call, first + 4));
    return job_start(call, &self->job);
}

/* importTree(store, paths, OPTIONS, watch) */
static napi_value import_tree(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct import_job *self = job_create(call, &tree_kind, store, NULL);

    return self == NULL ? NULL : start(call, self, 1);
}

/* scanImport(paths, OPTIONS, watch) */
static napi_value scan_import(struct call *call)
{
    struct import_job *self = job_create(call, &scan_kind, NULL, NULL);

    return self == NULL ? NULL : start(call, self, 0);
}

static napi_value make_client(struct call *call,
                              const struct wal_import_client *client,
                              bool has_folder)
{
    napi_value object = make_object(call);

    object_set(call, object, "name", make_string(call, client->name));
    object_set(call, object, "dialect", make_string(call, client->dialect));
    object_set(call, object, "folder",
               has_folder ? make_string(call, client->folder)
                          : make_null(call));
    return object;
}

/* importClients() */
static napi_value list_clients(struct call *call)
{
    struct wal_import_client client = WAL_INIT(wal_import_client);
    napi_value array = make_array(call);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        status = wal_import_client(i, &client, call_error(call));
        if (status == WAL_OK || status == WAL_ENOTFOUND) {
            array_push(call, array, i,
                       make_client(call, &client, status == WAL_OK));
        } else {
            (void)call_check(call, status);
        }
    }
    return array;
}

/* --- going on ----------------------------------------------------------- */

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

const struct call_method import_methods[] = {
    {"importTree", import_tree},
    {"scanImport", scan_import},
    {"importClients", list_clients},
    {"openImport", open_follow},
    {"nextImport", next_round},
    {"closeImport", close_handle},
    {NULL, NULL},
};
