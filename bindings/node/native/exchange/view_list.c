/*
 * view_list.c - views that a store knows of.
 */
#include <string.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/exchange/view.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static napi_value make_info(struct call *call, const struct wal_view_info *info)
{
    napi_value object = make_object(call);

    object_set(call, object, "session", make_string(call, info->session));
    object_set(call, object, "dialect", make_string(call, info->dialect));
    object_set(call, object, "root", make_string(call, info->root));
    object_bool(call, object, "deleted",
                (info->flags & WAL_VIEW_INFO_DELETED) != 0);
    object_bool(call, object, "redacted",
                (info->flags & WAL_VIEW_INFO_REDACTED) != 0);
    object_bool(call, object, "unreadable",
                (info->flags & WAL_VIEW_INFO_UNREADABLE) != 0);
    return object;
}

/* views(store, session, flags) */
static napi_value list_views(struct call *call)
{
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct store *store = store_get(call, 0);
    const struct wal_view_cursor_options options = {
        .struct_size = sizeof(options),
        .session = value_text(call, call_arg(call, 1)),
        .flags = value_u32(call, call_arg(call, 2)),
    };
    struct wal_view_cursor *cursor = NULL;
    napi_value array = make_array(call);
    enum wal_status status = WAL_OK;

    if (call->failed ||
        !call_check(call, wal_view_cursor_open(store->wal, &options, &cursor,
                                               call_error(call)))) {
        return NULL;
    }
    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        status = wal_view_cursor_next(cursor, &info, call_error(call));
        if (call_check(call, status) && status == WAL_OK) {
            array_push(call, array, i, make_info(call, &info));
        }
    }
    wal_view_cursor_close(cursor);
    return array;
}

/* findView(store, path): the view, or null */
static napi_value find_view(struct call *call)
{
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct store *store = store_get(call, 0);
    struct wal_slice path = value_path_slice(call, call_arg(call, 1));
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_view_find(store->wal, path, &info, call_error(call));
    if (status == WAL_ENOTFOUND) {
        return make_null(call);
    }
    return call_check(call, status) ? make_info(call, &info) : NULL;
}

/* --- changes ------------------------------------------------------------ */

struct view_job {
    struct job job;
    struct wal_view_info info;
    struct wal_slice dialect;
    struct wal_slice root;
    struct wal_view_flush_result result;
};

static enum wal_status update_run(struct job *job, struct wal_error *error)
{
    struct view_job *self = (struct view_job *)job;

    self->result.struct_size = sizeof(self->result);
    return wal_view_update(job->store->wal, &self->info, &self->result, error);
}

static napi_value update_finish(struct call *call, struct job *job)
{
    return view_make_flush_result(call, &((struct view_job *)job)->result);
}

static enum wal_status add_root_run(struct job *job, struct wal_error *error)
{
    struct view_job *self = (struct view_job *)job;

    return wal_view_root_add(job->store->wal, self->dialect, self->root, error);
}

static const struct job_kind update_kind = {
    "updateView", sizeof(struct view_job), update_run, update_finish, NULL};
static const struct job_kind add_root_kind = {
    "addViewRoot", sizeof(struct view_job), add_root_run, NULL, NULL};

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
    struct view_job *self = job_create(call, &update_kind, store, NULL);
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

/* addViewRoot(store, dialect, root) */
static napi_value add_root(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct view_job *self = job_create(call, &add_root_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->dialect = value_text(call, call_arg(call, 1));
    self->root = value_path_slice(call, call_arg(call, 2));
    return job_start(call, &self->job);
}

/* viewDialects() */
static napi_value list_dialects(struct call *call)
{
    napi_value array = make_array(call);
    const char *name;

    for (uint32_t i = 0; (name = wal_view_dialect(i)) != NULL; i++) {
        array_push(call, array, i, make_string(call, name));
    }
    return array;
}

const struct call_method view_list_methods[] = {
    {"views", list_views},           {"findView", find_view},
    {"updateView", update_view},     {"addViewRoot", add_root},
    {"viewDialects", list_dialects}, {NULL, NULL},
};
