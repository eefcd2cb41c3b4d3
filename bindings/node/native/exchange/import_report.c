/*
 * import_report.c - the reports of an import (import_report.h).
 */
#include "bindings/node/native/exchange/import_report.h"

#include "bindings/node/native/base/value.h"

struct report_item {
    struct list_item item;
    struct wal_import_report is;
    struct list issues;
};

struct issue_item {
    struct list_item item;
    struct wal_import_issue is;
};

/* --- in the thread ------------------------------------------------------ */

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
        struct issue_item *copy = list_add(&item->issues, arena, sizeof(*copy));

        if (copy == NULL) {
            list->lacks_memory = true;
            return;
        }
        copy->is = *issue;
        copy->is.path = list_copy_text(list, arena, issue->path);
        copy->is.reason = list_copy_text(list, arena, issue->reason);
    }
}

int32_t import_reports_add(void *ctx, const struct wal_import_report *report)
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
    item->is.path = list_copy_text(list, arena, report->path);
    item->is.dialect = list_copy_text(list, arena, report->dialect);
    item->is.session_id = list_copy_text(list, arena, report->session_id);
    item->is.view_session = list_copy_text(list, arena, report->view_session);
    item->is.error = list_copy_error(list, arena, report->error);
    item->is.issues = NULL;
    return job_must_stop(reports->job);
}

int32_t import_reports_progress(void *ctx, struct wal_slice path, uint64_t done,
                                uint64_t total)
{
    struct import_reports *reports = ctx;

    (void)path;
    return job_progress(reports->job, done, total);
}

/* --- values ------------------------------------------------------------- */

static napi_value make_issue(struct call *call, const struct list_item *item)
{
    const struct wal_import_issue *issue =
        &((const struct issue_item *)item)->is;
    napi_value object = make_object(call);

    object_text(call, object, "path", issue->path);
    object_text(call, object, "reason", issue->reason);
    object_number(call, object, "line", issue->line);
    object_set(call, object, "offset",
               issue->offset == WAL_IMPORT_NO_OFFSET
                   ? make_null(call)
                   : make_number(call, issue->offset));
    return object;
}

static napi_value make_kind(struct call *call, uint32_t kind)
{
    static const char *const names[] = {"none", "file", "stream", "view",
                                        "directory"};

    return make_string(call, names[kind <= WAL_IMPORT_DIRECTORY ? kind : 0]);
}

static napi_value make_report(struct call *call, const struct list_item *item)
{
    const struct report_item *self = (const struct report_item *)item;
    const struct wal_import_report *report = &self->is;
    napi_value object = make_object(call);

    object_set(call, object, "kind", make_kind(call, report->kind));
    object_text(call, object, "path", report->path);
    object_text(call, object, "dialect", report->dialect);
    object_text(call, object, "sessionId", report->session_id);
    object_text(call, object, "viewSession", report->view_session);
    object_bool(call, object, "changedView",
                (report->flags & WAL_IMPORT_CHANGED_VIEW) != 0);
    object_bool(call, object, "otherId",
                (report->flags & WAL_IMPORT_OTHER_ID) != 0);
    object_number(call, object, "lines", report->lines);
    object_number(call, object, "appended", report->appended);
    object_number(call, object, "shared", report->shared);
    object_number(call, object, "duplicates", report->duplicates);
    object_number(call, object, "checkpoints", report->checkpoints);
    object_number(call, object, "bytes", report->bytes);
    object_set(call, object, "issues",
               list_make(call, &self->issues, make_issue));
    object_set(call, object, "error",
               report->error == NULL ? make_null(call)
                                     : call_make_error(call, report->error));
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

napi_value import_reports_make(struct call *call,
                               const struct import_reports *reports)
{
    const struct wal_import_result *result = &reports->result;
    napi_value object = make_object(call);

    object_number(call, object, "sources", result->sources);
    object_number(call, object, "sessions", result->sessions);
    object_number(call, object, "appended", result->appended);
    object_number(call, object, "duplicates", result->duplicates);
    object_number(call, object, "failed", result->failed);
    object_number(call, object, "bytes", result->bytes);
    object_set(call, object, "leftOut", make_left_out(call, result));
    object_set(call, object, "reports",
               list_make(call, &reports->list, make_report));
    return object;
}

void import_read_options(struct call *call, size_t first, void *ctx,
                         struct wal_import_options *options)
{
    *options = (struct wal_import_options){
        .struct_size = sizeof(*options),
        .flags = value_u32(call, call_arg(call, first)),
        .dialect = value_text(call, call_arg(call, first + 1)),
        .exclude = value_path_slice(call, call_arg(call, first + 2)),
        .progress = import_reports_progress,
        .report = import_reports_add,
        .ctx = ctx,
    };
}
