/*
 * file_changes.c - differences of checkpoints and of a session's files
 * (file_changes.h).
 */
#include "bindings/node/native/content/file_changes.h"

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"

struct change_item {
    struct list_item item;
    struct wal_file_change is;
};

/* --- collecting --------------------------------------------------------- */

static enum wal_status collect_next(struct file_changes *changes,
                                    struct arena *arena,
                                    struct wal_file_change_cursor *cursor,
                                    struct wal_error *error)
{
    struct wal_file_change change = WAL_INIT(wal_file_change);
    enum wal_status status =
        wal_file_change_cursor_next(cursor, &change, error);

    if (status == WAL_OK) {
        struct change_item *item =
            list_add(&changes->list, arena, sizeof(*item));

        if (item != NULL) {
            item->is = change;
            item->is.path = list_copy_text(&changes->list, arena, change.path);
        }
    }
    return status;
}

enum wal_status file_changes_collect(struct file_changes *changes,
                                     struct arena *arena,
                                     struct wal_file_change_cursor *cursor,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (cursor == NULL) {
        return WAL_OK;
    }
    changes->totals.struct_size = sizeof(changes->totals);
    status = wal_file_changes_get_info(cursor, &changes->totals, error);
    while (status == WAL_OK) {
        status = collect_next(changes, arena, cursor, error);
    }
    wal_file_change_cursor_close(cursor);
    return list_check(&changes->list, status, error);
}

/* --- values ------------------------------------------------------------- */

napi_value file_kind_make(struct call *call, uint32_t kind)
{
    static const char *const names[] = {"absent", "file", "symlink"};

    return make_string(call, names[kind <= WAL_FILE_SYMLINK ? kind : 0]);
}

static napi_value make_change(struct call *call, const struct list_item *item)
{
    const struct wal_file_change *change =
        &((const struct change_item *)item)->is;
    napi_value object = make_object(call);

    object_text(call, object, "path", change->path);
    object_set(call, object, "kindBefore",
               file_kind_make(call, change->kind_before));
    object_set(call, object, "kindAfter",
               file_kind_make(call, change->kind_after));
    object_number(call, object, "modeBefore", change->mode_before);
    object_number(call, object, "modeAfter", change->mode_after);
    object_number(call, object, "insertions", change->insertions);
    object_number(call, object, "deletions", change->deletions);
    object_bool(call, object, "binary",
                (change->flags & WAL_FILE_CHANGE_BINARY) != 0);
    object_bool(call, object, "contentChanged",
                (change->flags & WAL_FILE_CHANGE_CONTENT) != 0);
    object_bool(call, object, "modeChanged",
                (change->flags & WAL_FILE_CHANGE_MODE) != 0);
    object_bool(call, object, "changedElsewhere",
                (change->flags & WAL_FILE_CHANGE_ELSEWHERE) != 0);
    return object;
}

napi_value file_changes_make(struct call *call,
                             const struct file_changes *changes)
{
    return list_make(call, &changes->list, make_change);
}

/* --- differences -------------------------------------------------------- */

struct diff_job {
    struct job job;
    struct wal_slice before;
    struct wal_slice after;
    struct file_changes changes;
};

static enum wal_status collect(struct diff_job *self, enum wal_status status,
                               struct wal_file_change_cursor *cursor,
                               struct wal_error *error)
{
    return status == WAL_OK
               ? file_changes_collect(&self->changes, &self->job.arena, cursor,
                                      error)
               : status;
}

static enum wal_status checkpoint_diff_run(struct job *job,
                                           struct wal_error *error)
{
    struct diff_job *self = (struct diff_job *)job;
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status = wal_checkpoint_diff(
        job->handle->object, self->before, self->after, &cursor, error);

    return collect(self, status, cursor, error);
}

static enum wal_status session_diff_run(struct job *job,
                                        struct wal_error *error)
{
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status =
        wal_session_diff(job->handle->object, &cursor, error);

    return collect((struct diff_job *)job, status, cursor, error);
}

static napi_value diff_finish(struct call *call, struct job *job)
{
    const struct file_changes *changes = &((struct diff_job *)job)->changes;
    napi_value object = make_object(call);

    object_set(call, object, "changes", file_changes_make(call, changes));
    object_number(call, object, "files", changes->totals.files);
    object_number(call, object, "insertions", changes->totals.insertions);
    object_number(call, object, "deletions", changes->totals.deletions);
    object_number(call, object, "binary", changes->totals.binary);
    return object;
}

static const struct job_kind checkpoint_diff_kind = {
    "diffCheckpoints", sizeof(struct diff_job), checkpoint_diff_run,
    diff_finish, NULL};
static const struct job_kind session_diff_kind = {
    "diffSession", sizeof(struct diff_job), session_diff_run, diff_finish,
    NULL};

/* diffCheckpoints(session, before, after or nothing) */
static napi_value diff_checkpoints(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct diff_job *self =
        job_create(call, &checkpoint_diff_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->before = value_text(call, call_arg(call, 1));
    self->after = value_text(call, call_arg(call, 2));
    return job_start(call, &self->job);
}

/* diffSession(session) */
static napi_value diff_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);

    return job_start(call, job_create(call, &session_diff_kind, NULL, session));
}

const struct call_method file_change_methods[] = {
    {"diffCheckpoints", diff_checkpoints},
    {"diffSession", diff_session},
    {NULL, NULL},
};
