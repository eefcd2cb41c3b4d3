/*
 * exchange.c - what goes in and out: imports and exports of clients' files, transfers between
 * stores, views.
 */
#include <agentwal/convert.h>
#include <agentwal/import.h>
#include <agentwal/transfer.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* --- imports -------------------------------------------------------------- */

/*
 * A job of an import that goes on is one round: it waits for changes in parts of WAIT_MS, so that
 * it sees when it is to stop.
 */

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
static const struct wal_import_issue *issue_at(const struct wal_import_report *report,
                                               uint64_t index)
{
    const char *first = (const char *)report->issues;

    return (const void *)(first + index * report->issues->struct_size);
}

static void copy_issues(struct import_reports *reports, struct report_item *item)
{
    struct list *list = &reports->list;
    struct arena *arena = &reports->job->arena;

    for (uint64_t i = 0; i < item->is.issue_count && i < IMPORT_ISSUES; i++) {
        const struct wal_import_issue *issue = issue_at(&item->is, i);

        list_add_struct(&item->issues, arena, &wal_import_issue_out, issue);
        list->lacks_memory |= item->issues.lacks_memory;
    }
}

static int32_t import_reports_add(void *ctx, const struct wal_import_report *report)
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

static int32_t import_reports_progress(void *ctx, struct wal_slice path, uint64_t done,
                                       uint64_t total)
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

    object_set(call, object, "issues", list_structs(call, &self->issues, &wal_import_issue_out));
    return object;
}

static napi_value make_left_out(struct call *call, const struct wal_import_result *result)
{
    napi_value object = make_object(call);

    for (uint32_t i = 0; i < WAL_IMPORT_LEFT_OUT_SIZE; i++) {
        if (result->left_out[i] > 0) {
            object_number(call, object, wal_import_left_out_name(i), result->left_out[i]);
        }
    }
    return object;
}

static napi_value import_reports_make(struct call *call, const struct import_reports *reports)
{
    napi_value object = make_struct(call, &wal_import_result_out, &reports->result);

    object_set(call, object, "leftOut", make_left_out(call, &reports->result));
    object_set(call, object, "reports", list_make(call, &reports->list, make_report));
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
    enum wal_status status = wal_import_tree(job->store->wal, self->paths, self->count,
                                             &self->options, &self->reports.result, error);

    return list_check(&self->reports.list, status, error);
}

static enum wal_status scan_run(struct job *job, struct wal_error *error)
{
    struct import_job *self = (struct import_job *)job;
    enum wal_status status =
        wal_import_scan(self->paths, self->count, &self->options, &self->reports.result, error);

    return list_check(&self->reports.list, status, error);
}

static napi_value import_finish(struct call *call, struct job *job)
{
    return import_reports_make(call, &((struct import_job *)job)->reports);
}

static const struct job_kind tree_kind = {"importTree", sizeof(struct import_job), tree_run,
                                          import_finish, NULL};

static const struct job_kind scan_kind = {"scanImport", sizeof(struct import_job), scan_run,
                                          import_finish, NULL};

/* paths, flags, dialect, exclude, watch */
static napi_value start(struct call *call, struct import_job *self, size_t first)
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

static napi_value make_client(struct call *call, const struct wal_import_client *client,
                              bool has_folder)
{
    napi_value object = make_object(call);

    object_set(call, object, "name", make_string(call, client->name));
    object_set(call, object, "dialect", make_string(call, client->dialect));
    object_set(call, object, "folder",
               has_folder ? make_string(call, client->folder) : make_null(call));
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
            array_push(call, array, i, make_client(call, &client, status == WAL_OK));
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

static int32_t show_progress(void *ctx, struct wal_slice path, uint64_t done, uint64_t total)
{
    return import_reports_progress(((struct follow *)ctx)->reports, path, done, total);
}

/* openImport(store, paths, flags, dialect, exclude) */
static napi_value open_follow(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint32_t count = 0;
    struct wal_slice *paths = value_texts(call, call_arg(call, 1), true, &count);
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
    if (!call_check(call, wal_import_follow_open(store->wal, paths, count, &options, &self->follow,
                                                 call_error(call)))) {
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
    while (status == WAL_OK && reports->result.sources == 0 && reports->list.count == 0) {
        status = job_must_stop(job)
                     ? WAL_ECALLBACK
                     : wal_import_follow_next(self->follow, WAIT_MS, &reports->result, error);
    }
    self->reports = NULL;
    return list_check(&reports->list, status, error);
}

static napi_value round_finish(struct call *call, struct job *job)
{
    return import_reports_make(call, &((struct round_job *)job)->reports);
}

static const struct job_kind round_kind = {"nextImport", sizeof(struct round_job), round_run,
                                           round_finish, NULL};

/* nextImport(import, watch): the result of the next round that found something */
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

/* --- exports -------------------------------------------------------------- */

enum {
    FIRST_SIZE = 64 << 10
};

/* What the dialect could not express. */
struct loss_item {
    struct list_item item;
    const char *name; /* constant */
    uint64_t count;
};

struct export_job {
    struct job job;
    struct wal_view *view;
    uint64_t limit; /* of the size, which is that of a Buffer */
    uint8_t *data;
    size_t size;
    size_t room;
    enum wal_status failed; /* why `put` ended the flush */
    struct list losses;
};

/* --- in the thread ------------------------------------------------------ */

static bool grow(struct export_job *self, size_t size)
{
    size_t room = self->room < FIRST_SIZE ? FIRST_SIZE : 2 * self->room;
    uint8_t *data;

    if (size <= self->room) {
        return true;
    }
    room = room < size ? size : room;
    data = realloc(self->data, room);
    if (data == NULL) {
        return false;
    }
    self->data = data;
    self->room = room;
    return true;
}

/* A wal_view_put_fn. */
static int32_t put(void *ctx, const void *data, uint64_t size)
{
    struct export_job *self = ctx;

    if (size > self->limit - self->size) {
        self->failed = WAL_ETOOBIG;
        return 1;
    }
    if (!grow(self, self->size + (size_t)size)) {
        self->failed = WAL_ENOMEM;
        return 1;
    }
    if (size > 0) {
        memcpy(self->data + self->size, data, (size_t)size);
    }
    self->size += (size_t)size;
    return 0;
}

static enum wal_status collect_losses(struct export_job *self, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; status == WAL_OK; i++) {
        const char *name = NULL;
        uint64_t count = 0;

        status = wal_view_loss(self->view, i, &name, &count, error);
        if (status == WAL_OK) {
            struct loss_item *item = list_add(&self->losses, &self->job.arena, sizeof(*item));

            if (item != NULL) {
                item->name = name;
                item->count = count;
            }
        }
    }
    return list_check(&self->losses, status, error);
}

static enum wal_status export_run(struct job *job, struct wal_error *error)
{
    struct export_job *self = (struct export_job *)job;
    enum wal_status status = wal_view_flush(self->view, NULL, error);

    if (status == WAL_OK) {
        return collect_losses(self, error);
    }
    if (status != WAL_ECALLBACK || self->failed == WAL_OK) {
        return status;
    }
    *error = (struct wal_error){.struct_size = sizeof(*error), .status = (int32_t)self->failed};
    strcpy(error->text, self->failed == WAL_ETOOBIG
                            ? "the file is larger than a Buffer can be; write "
                              "it with Session.view"
                            : "no memory for the file");
    return self->failed;
}

/* --- in the thread of JavaScript ---------------------------------------- */

static napi_value make_losses(struct call *call, const struct list *losses)
{
    napi_value object = make_object(call);

    for (const struct list_item *item = losses->first; item != NULL; item = item->next) {
        const struct loss_item *loss = (const struct loss_item *)item;

        object_number(call, object, loss->name, loss->count);
    }
    return object;
}

static napi_value export_finish(struct call *call, struct job *job)
{
    struct export_job *self = (struct export_job *)job;
    napi_value object = make_object(call);

    object_set(call, object, "data", make_buffer(call, (struct wal_slice){self->data, self->size}));
    object_set(call, object, "losses", make_losses(call, &self->losses));
    return object;
}

static void export_discard(struct job *job)
{
    struct export_job *self = (struct export_job *)job;

    wal_view_close(self->view);
    free(self->data);
}

static const struct job_kind export_kind = {"export", sizeof(struct export_job), export_run,
                                            export_finish, export_discard};

/* exportSession(session, dialect, limit): {data, losses} */
static napi_value export_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct export_job *self = job_create(call, &export_kind, NULL, session);
    struct wal_view_options options = WAL_INIT(wal_view_options);

    if (self == NULL) {
        return NULL;
    }
    options.dialect = value_text(call, call_arg(call, 1));
    options.put = put;
    options.ctx = self;
    self->limit = value_u64(call, call_arg(call, 2));
    if (!call->failed) {
        (void)call_check(call, wal_view_open(session->store->wal, session->object, &options,
                                             &self->view, call_error(call)));
    }
    return job_start(call, &self->job);
}

/* --- transfers ------------------------------------------------------------ */

struct transfer_job {
    struct job job;
    struct wal_slice path;
    struct wal_transfer_options options;
    struct wal_transfer_result result;
    struct list reports;
};

/* A wal_transfer_report_fn. */
static int32_t add_transfer_report(void *ctx, const struct wal_transfer_report *report)
{
    struct transfer_job *self = ctx;

    list_add_struct(&self->reports, &self->job.arena, &wal_transfer_report_out, report);
    return 0;
}

static enum wal_status merge_run(struct job *job, struct wal_error *error)
{
    struct transfer_job *self = (struct transfer_job *)job;
    enum wal_status status =
        wal_store_merge(job->other->wal, job->store->wal, &self->options, &self->result, error);

    return list_check(&self->reports, status, error);
}

static enum wal_status write_run(struct job *job, struct wal_error *error)
{
    struct transfer_job *self = (struct transfer_job *)job;
    enum wal_status status =
        wal_bundle_write(job->store->wal, self->path, &self->options, &self->result, error);

    return list_check(&self->reports, status, error);
}

static enum wal_status read_run(struct job *job, struct wal_error *error)
{
    struct transfer_job *self = (struct transfer_job *)job;
    enum wal_status status =
        wal_bundle_read(job->store->wal, self->path, &self->options, &self->result, error);

    return list_check(&self->reports, status, error);
}

static napi_value transfer_finish(struct call *call, struct job *job)
{
    const struct transfer_job *self = (struct transfer_job *)job;
    napi_value object = make_struct(call, &wal_transfer_result_out, &self->result);

    object_set(call, object, "reports",
               list_structs(call, &self->reports, &wal_transfer_report_out));
    return object;
}

static const struct job_kind merge_kind = {"merge", sizeof(struct transfer_job), merge_run,
                                           transfer_finish, NULL};

static const struct job_kind write_kind = {"writeBundle", sizeof(struct transfer_job), write_run,
                                           transfer_finish, NULL};

static const struct job_kind read_kind = {"readBundle", sizeof(struct transfer_job), read_run,
                                          transfer_finish, NULL};

/* sessions, directory, branch, watch; no branch: a session that both went on with is refused */
static napi_value start_transfer(struct call *call, struct transfer_job *self, size_t first)
{
    uint32_t count = 0;
    struct wal_slice *sessions = value_texts(call, call_arg(call, first), false, &count);
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
        .report = add_transfer_report,
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
    return start_transfer(call, self, 2);
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
    return start_transfer(call, self, 2);
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
    return start_transfer(call, self, 2);
}

/* --- views ---------------------------------------------------------------- */

/* viewLosses(view): counts by name */
static napi_value view_losses(struct call *call)
{
    struct handle *view = handle_get(call, 0, &view_type);
    napi_value object = make_object(call);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        const char *name = NULL;
        uint64_t count = 0;

        status = wal_view_loss(view->object, i, &name, &count, call_error(call));
        if (call_check(call, status) && status == WAL_OK) {
            object_number(call, object, name, count);
        }
    }
    return object;
}

/* viewIssues(view) */
static napi_value view_issues(struct call *call)
{
    struct handle *view = handle_get(call, 0, &view_type);
    napi_value array = make_array(call);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        const char *reason = NULL;
        uint64_t offset = 0;

        status = wal_view_issue(view->object, i, &offset, &reason, call_error(call));
        if (call_check(call, status) && status == WAL_OK) {
            napi_value issue = make_object(call);

            object_number(call, issue, "offset", offset);
            object_set(call, issue, "reason", make_string(call, reason));
            array_push(call, array, i, issue);
        }
    }
    return array;
}

/* --- updates ------------------------------------------------------------ */

struct update_job {
    struct job job;
    struct wal_view_info info;
    struct wal_view_flush_result result;
};

static enum wal_status update_run(struct job *job, struct wal_error *error)
{
    struct update_job *self = (struct update_job *)job;

    self->result.struct_size = sizeof(self->result);
    return wal_view_update(job->store->wal, &self->info, &self->result, error);
}

static napi_value update_finish(struct call *call, struct job *job)
{
    return make_struct(call, &wal_view_flush_result_out, &((struct update_job *)job)->result);
}

static const struct job_kind update_kind = {"updateView", sizeof(struct update_job), update_run,
                                            update_finish, NULL};

/* Copies a text with its NUL. */
static void copy_text(struct call *call, napi_value value, const char *what, char *place,
                      size_t room)
{
    struct wal_slice text = value_text(call, value);

    if (call->failed) {
        return;
    }
    if (text.size >= room || (text.size > 0 && memchr(text.data, 0, text.size) != NULL)) {
        call_fail(call, WAL_EINVAL, "the %s of the view is not valid", what);
        return;
    }
    if (text.size > 0) {
        memcpy(place, text.data, text.size);
    }
    place[text.size] = '\0';
}

/* updateView(store, session, dialect, root, unreadable) */
static napi_value update_view(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct update_job *self = job_create(call, &update_kind, store, NULL);
    struct wal_view_info *info;

    if (self == NULL) {
        return NULL;
    }
    info = &self->info;
    info->struct_size = sizeof(*info);
    copy_text(call, call_arg(call, 1), "session", info->session, sizeof(info->session));
    copy_text(call, call_arg(call, 2), "dialect", info->dialect, sizeof(info->dialect));
    copy_text(call, call_arg(call, 3), "root", info->root, sizeof(info->root));
    if (value_bool(call, call_arg(call, 4))) {
        info->flags = WAL_VIEW_INFO_UNREADABLE;
    }
    return job_start(call, &self->job);
}

const struct call_method exchange_methods[] = {
    {"importTree", import_tree},       {"scanImport", scan_import},
    {"importClients", list_clients},   {"openImport", open_follow},
    {"nextImport", next_round},        {"closeImport", close_handle},
    {"exportSession", export_session}, {"merge", merge_stores},
    {"writeBundle", write_bundle},     {"readBundle", read_bundle},
    {"viewLosses", view_losses},       {"viewIssues", view_issues},
    {"updateView", update_view},       {NULL, NULL},
};
