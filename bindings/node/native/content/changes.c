/*
 * changes.c - differences of checkpoints and of a session's files, and
 * restoring files to a checkpoint.
 */
#include <agentwal/checkpoint.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

struct file_changes {
    struct list list;
    struct wal_file_changes_info totals;
};

/* Collects what a cursor has, in the thread of a job, and closes it. NULL:
 * there are no changes. */
static enum wal_status collect_changes(struct file_changes *changes,
                                       struct arena *arena,
                                       struct wal_file_change_cursor *cursor,
                                       struct wal_error *error)
{
    struct wal_file_change change = WAL_INIT(wal_file_change);
    enum wal_status status;

    if (cursor == NULL) {
        return WAL_OK;
    }
    changes->totals.struct_size = sizeof(changes->totals);
    status = wal_file_changes_get_info(cursor, &changes->totals, error);
    while (status == WAL_OK) {
        status = wal_file_change_cursor_next(cursor, &change, error);
        if (status == WAL_OK) {
            list_add_struct(&changes->list, arena, &wal_file_change_out,
                            &change);
        }
    }
    wal_file_change_cursor_close(cursor);
    return list_check(&changes->list, status, error);
}

static napi_value make_changes(struct call *call,
                               const struct file_changes *changes)
{
    return list_structs(call, &changes->list, &wal_file_change_out);
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
    return status == WAL_OK ? collect_changes(&self->changes, &self->job.arena,
                                              cursor, error)
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
    napi_value object =
        make_struct(call, &wal_file_changes_info_out, &changes->totals);

    object_set(call, object, "changes", make_changes(call, changes));
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

/* --- rewinding -------------------------------------------------------- */

struct rewind_job {
    struct job job;
    struct wal_slice checkpoint;
    struct wal_rewind_options options;
    struct wal_rewind_result result;
    struct file_changes changes;
};

static enum wal_status rewind_run(struct job *job, struct wal_error *error)
{
    struct rewind_job *self = (struct rewind_job *)job;
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status;

    self->result.struct_size = sizeof(self->result);
    /* The head is that of the entries which are in the queue, too. */
    status = wal_flush(job->store->wal, error);
    if (status == WAL_OK) {
        status = wal_rewind(job->handle->object, self->checkpoint,
                            &self->options, &self->result, &cursor, error);
    }
    return status == WAL_OK
               ? collect_changes(&self->changes, &job->arena, cursor, error)
               : status;
}

static napi_value rewind_finish(struct call *call, struct job *job)
{
    struct rewind_job *self = (struct rewind_job *)job;
    napi_value object =
        make_struct(call, &wal_rewind_result_out, &self->result);

    object_set(call, object, "changes", make_changes(call, &self->changes));
    return object;
}

static const struct job_kind rewind_kind = {"rewind", sizeof(struct rewind_job),
                                            rewind_run, rewind_finish, NULL};

/* rewind(session, checkpoint, flags, root, expected) */
static napi_value rewind_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct rewind_job *self = job_create(call, &rewind_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->checkpoint = value_text(call, call_arg(call, 1));
    read_struct(call, 2, &wal_rewind_options_in, &self->options);
    return job_start(call, &self->job);
}

const struct call_method change_methods[] = {
    {"diffCheckpoints", diff_checkpoints},
    {"diffSession", diff_session},
    {"rewind", rewind_session},
    {NULL, NULL},
};
