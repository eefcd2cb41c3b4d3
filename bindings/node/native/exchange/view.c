/*
 * view.c - what views could not do, and updates of views that are known;
 * interface.txt has the other calls on them.
 */
#include <agentwal/convert.h>
#include <string.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

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
    return make_struct(call, &wal_view_flush_result_out,
                       &((struct update_job *)job)->result);
}

static const struct job_kind update_kind = {
    "updateView", sizeof(struct update_job), update_run, update_finish, NULL};

/* Copies a text with its NUL. */
static void copy_text(struct call *call, napi_value value, const char *what,
                      char *place, size_t room)
{
    struct wal_slice text = value_text(call, value);

    if (call->failed) {
        return;
    }
    if (text.size >= room ||
        (text.size > 0 && memchr(text.data, 0, text.size) != NULL)) {
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
    copy_text(call, call_arg(call, 1), "session", info->session,
              sizeof(info->session));
    copy_text(call, call_arg(call, 2), "dialect", info->dialect,
              sizeof(info->dialect));
    copy_text(call, call_arg(call, 3), "root", info->root, sizeof(info->root));
    if (value_bool(call, call_arg(call, 4))) {
        info->flags = WAL_VIEW_INFO_UNREADABLE;
    }
    return job_start(call, &self->job);
}

const struct call_method view_methods[] = {
    {"viewLosses", view_losses},
    {"viewIssues", view_issues},
    {"updateView", update_view},
    {NULL, NULL},
};
