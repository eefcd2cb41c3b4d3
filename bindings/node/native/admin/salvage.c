/*
 * salvage.c - a new store from what can be read of a damaged one.
 */
#include <agentwal/admin.h>

#include "bindings/node/native/base/list.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"

enum {
    REPORTS = 1000 /* that are kept */
};

struct report_item {
    struct list_item item;
    struct wal_salvage_report is;
};

struct salvage_job {
    struct job job;
    const char *path;
    const char *out;
    uint32_t flags;
    struct wal_salvage_result result;
    struct list reports;
};

/* --- in the thread ------------------------------------------------------ */

/* A wal_salvage_report_fn. */
static int32_t add_report(void *ctx, const struct wal_salvage_report *report)
{
    struct salvage_job *self = ctx;
    struct list *list = &self->reports;
    struct arena *arena = &self->job.arena;
    struct report_item *item;

    if (list->count == REPORTS) {
        return job_must_stop(&self->job);
    }
    item = list_add(list, arena, sizeof(*item));
    if (item != NULL) {
        item->is = *report;
        item->is.session_id = list_copy_text(list, arena, report->session_id);
        item->is.entry_id = list_copy_text(list, arena, report->entry_id);
        item->is.file = list_copy_text(list, arena, report->file);
        item->is.reason = list_copy_text(list, arena, report->reason);
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

/* --- values ------------------------------------------------------------- */

static napi_value make_report(struct call *call, const struct list_item *item)
{
    static const char *const kinds[] = {
        "range", "blob", "session", "entry", "head", "document", "checkpoint"};
    const struct wal_salvage_report *report =
        &((const struct report_item *)item)->is;
    napi_value object = make_object(call);

    object_set(
        call, object, "kind",
        make_string(
            call,
            kinds[report->kind <= WAL_SALVAGE_CHECKPOINT ? report->kind
                                                         : WAL_SALVAGE_RANGE]));
    object_text(call, object, "sessionId", report->session_id);
    object_text(call, object, "entryId", report->entry_id);
    object_number(call, object, "firstSequence", report->first_sequence);
    object_number(call, object, "lastSequence", report->last_sequence);
    object_text(call, object, "file", report->file);
    object_number(call, object, "offset", report->offset);
    object_number(call, object, "size", report->size);
    object_text(call, object, "reason", report->reason);
    return object;
}

static napi_value salvage_finish(struct call *call, struct job *job)
{
    const struct salvage_job *self = (struct salvage_job *)job;
    const struct wal_salvage_result *result = &self->result;
    napi_value object = make_object(call);

    object_number(call, object, "sessions", result->sessions);
    object_number(call, object, "entries", result->entries);
    object_number(call, object, "documents", result->documents);
    object_number(call, object, "blobs", result->blobs);
    object_number(call, object, "deletedSessions", result->deleted_sessions);
    object_number(call, object, "lostEntries", result->lost_entries);
    object_number(call, object, "lostBlobs", result->lost_blobs);
    object_number(call, object, "losses", result->losses);
    object_set(call, object, "reports",
               list_make(call, &self->reports, make_report));
    return object;
}

static const struct job_kind salvage_kind = {
    "salvage", sizeof(struct salvage_job), salvage_run, salvage_finish, NULL};

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

const struct call_method salvage_methods[] = {
    {"salvage", salvage},
    {NULL, NULL},
};
