/*
 * view.c - views of sessions (view.h).
 */
#include "bindings/node/native/exchange/view.h"

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static void close_view(void *object)
{
    wal_view_close(object);
}

static const struct handle_type view_type = {"view", close_view, false};

/* openView(session, dialect, root): a view */
static napi_value open_view(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = value_text(call, call_arg(call, 1)),
        .root = value_path_slice(call, call_arg(call, 2)),
    };
    struct wal_view *view = NULL;

    if (call->failed ||
        !call_check(call, wal_view_open(session->store->wal, session->object,
                                        &options, &view, call_error(call)))) {
        return NULL;
    }
    return handle_make(call, &view_type, session->store, view);
}

/* viewPath(view, stream) */
static napi_value view_path(struct call *call)
{
    struct handle *view = handle_get(call, 0, &view_type);
    uint32_t stream = value_u32(call, call_arg(call, 1));
    const char *path = NULL;

    if (call->failed ||
        !call_check(call, wal_view_path(view->object, stream, &path,
                                        call_error(call)))) {
        return NULL;
    }
    return make_string(call, path);
}

/* --- flush and import --------------------------------------------------- */

struct flush_job {
    struct job job;
    struct wal_view_flush_result result;
};

static enum wal_status flush_run(struct job *job, struct wal_error *error)
{
    struct flush_job *self = (struct flush_job *)job;

    self->result.struct_size = sizeof(self->result);
    return wal_view_flush(job->handle->object, &self->result, error);
}

napi_value view_make_flush_result(struct call *call,
                                  const struct wal_view_flush_result *result)
{
    napi_value object = make_object(call);

    object_bool(call, object, "replaced",
                (result->flags & WAL_VIEW_REPLACED) != 0);
    object_number(call, object, "lines", result->lines);
    object_number(call, object, "bytes", result->bytes);
    object_number(call, object, "entries", result->entries);
    object_number(call, object, "sequence", result->sequence);
    object_number(call, object, "unreadable", result->unreadable);
    return object;
}

static napi_value flush_finish(struct call *call, struct job *job)
{
    return view_make_flush_result(call, &((struct flush_job *)job)->result);
}

static const struct job_kind flush_kind = {
    "flushView", sizeof(struct flush_job), flush_run, flush_finish, NULL};

/* flushView(view) */
static napi_value flush_view(struct call *call)
{
    struct handle *view = handle_get(call, 0, &view_type);

    return job_start(call, job_create(call, &flush_kind, NULL, view));
}

struct import_job {
    struct job job;
    struct wal_view_import_result result;
};

static enum wal_status import_run(struct job *job, struct wal_error *error)
{
    struct import_job *self = (struct import_job *)job;

    self->result.struct_size = sizeof(self->result);
    return wal_view_import(job->handle->object, &self->result, error);
}

static napi_value import_finish(struct call *call, struct job *job)
{
    const struct wal_view_import_result *result =
        &((struct import_job *)job)->result;
    napi_value object = make_object(call);

    object_number(call, object, "lines", result->lines);
    object_number(call, object, "appended", result->appended);
    object_number(call, object, "duplicates", result->duplicates);
    object_number(call, object, "damaged", result->damaged);
    object_number(call, object, "unknown", result->unknown);
    return object;
}

static const struct job_kind import_kind = {
    "importView", sizeof(struct import_job), import_run, import_finish, NULL};

/* importView(view) */
static napi_value import_view(struct call *call)
{
    struct handle *view = handle_get(call, 0, &view_type);

    return job_start(call, job_create(call, &import_kind, NULL, view));
}

/* --- what they could not do --------------------------------------------- */

/* viewLosses(view): counts by name */
static napi_value view_losses(struct call *call)
{
    struct handle *view = handle_get(call, 0, &view_type);
    napi_value object = make_object(call);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        const char *name = NULL;
        uint64_t count = 0;

        status =
            wal_view_loss(view->object, i, &name, &count, call_error(call));
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

        status =
            wal_view_issue(view->object, i, &offset, &reason, call_error(call));
        if (call_check(call, status) && status == WAL_OK) {
            napi_value issue = make_object(call);

            object_number(call, issue, "offset", offset);
            object_set(call, issue, "reason", make_string(call, reason));
            array_push(call, array, i, issue);
        }
    }
    return array;
}

/* closeView(view) */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &view_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

const struct call_method view_methods[] = {
    {"openView", open_view},     {"viewPath", view_path},
    {"flushView", flush_view},   {"importView", import_view},
    {"viewLosses", view_losses}, {"viewIssues", view_issues},
    {"closeView", close_handle}, {NULL, NULL},
};
