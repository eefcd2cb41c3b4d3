/*
 * content.c - blobs, checkpoints, and the files that a session changed.
 */
#include <agentwal/blob.h>
#include <agentwal/checkpoint.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* --- blobs ---------------------------------------------------------------- */

struct read_job {
    struct job job;
    uint64_t offset;
    void *data; /* of an array that `array` keeps */
    size_t size;
    napi_ref array;
    uint64_t got;
};

static enum wal_status read_run(struct job *job, struct wal_error *error)
{
    struct read_job *self = (struct read_job *)job;

    return wal_blob_read(job->handle->object, self->offset, self->data, self->size, &self->got,
                         error);
}

static napi_value read_finish(struct call *call, struct job *job)
{
    return make_number(call, ((struct read_job *)job)->got);
}

static void read_discard(struct job *job)
{
    struct read_job *self = (struct read_job *)job;

    if (self->array != NULL && !job->addon->is_ended) {
        (void)napi_delete_reference(job->addon->env, self->array);
    }
}

static const struct job_kind read_kind = {"readBlob", sizeof(struct read_job), read_run,
                                          read_finish, read_discard};

/* readBlob(blob, offset, array): the number of bytes read. The array is filled in the thread;
 * JavaScript leaves it alone until the promise is settled. */
static napi_value read_blob(struct call *call)
{
    struct handle *blob = handle_get(call, 0, &blob_type);
    struct read_job *self = job_create(call, &read_kind, NULL, blob);
    napi_typedarray_type kind = napi_int8_array;

    if (self == NULL) {
        return NULL;
    }
    self->offset = value_u64(call, call_arg(call, 1));
    if (call_ok(call, napi_get_typedarray_info(call->env, call_arg(call, 2), &kind, &self->size,
                                               &self->data, NULL, NULL)) &&
        kind != napi_uint8_array) {
        call_fail(call, WAL_EINVAL, "a Uint8Array is expected");
    }
    if (!call->failed) {
        call_ok(call, napi_create_reference(call->env, call_arg(call, 2), 1, &self->array));
    }
    return job_start(call, &self->job);
}

/* --- changes of files ----------------------------------------------------- */

struct file_changes {
    struct list list;
    struct wal_file_changes_info totals;
};

/* Collects what a cursor has, in the thread of a job, and closes it. NULL: there are no changes. */
static enum wal_status collect_changes(struct file_changes *changes, struct arena *arena,
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
            list_add_struct(&changes->list, arena, &wal_file_change_out, &change);
        }
    }
    wal_file_change_cursor_close(cursor);
    return list_check(&changes->list, status, error);
}

static napi_value make_changes(struct call *call, const struct file_changes *changes)
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
                               struct wal_file_change_cursor *cursor, struct wal_error *error)
{
    return status == WAL_OK ? collect_changes(&self->changes, &self->job.arena, cursor, error)
                            : status;
}

static enum wal_status checkpoint_diff_run(struct job *job, struct wal_error *error)
{
    struct diff_job *self = (struct diff_job *)job;
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status =
        wal_checkpoint_diff(job->handle->object, self->before, self->after, &cursor, error);

    return collect(self, status, cursor, error);
}

static enum wal_status session_diff_run(struct job *job, struct wal_error *error)
{
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status = wal_session_diff(job->handle->object, &cursor, error);

    return collect((struct diff_job *)job, status, cursor, error);
}

static napi_value diff_finish(struct call *call, struct job *job)
{
    const struct file_changes *changes = &((struct diff_job *)job)->changes;
    napi_value object = make_struct(call, &wal_file_changes_info_out, &changes->totals);

    object_set(call, object, "changes", make_changes(call, changes));
    return object;
}

static const struct job_kind checkpoint_diff_kind = {"diffCheckpoints", sizeof(struct diff_job),
                                                     checkpoint_diff_run, diff_finish, NULL};

static const struct job_kind session_diff_kind = {"diffSession", sizeof(struct diff_job),
                                                  session_diff_run, diff_finish, NULL};

/* diffCheckpoints(session, before, after or nothing) */
static napi_value diff_checkpoints(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct diff_job *self = job_create(call, &checkpoint_diff_kind, NULL, session);

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
        status = wal_rewind(job->handle->object, self->checkpoint, &self->options, &self->result,
                            &cursor, error);
    }
    return status == WAL_OK ? collect_changes(&self->changes, &job->arena, cursor, error) : status;
}

static napi_value rewind_finish(struct call *call, struct job *job)
{
    struct rewind_job *self = (struct rewind_job *)job;
    napi_value object = make_struct(call, &wal_rewind_result_out, &self->result);

    object_set(call, object, "changes", make_changes(call, &self->changes));
    return object;
}

static const struct job_kind rewind_kind = {"rewind", sizeof(struct rewind_job), rewind_run,
                                            rewind_finish, NULL};

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

/* --- checkpoints ---------------------------------------------------------- */

enum {
    OPTIONS = 2 /* the first argument of the options */
};

struct checkpoint_job {
    struct job job;
    struct wal_checkpoint_options options;
    struct wal_slice *paths; /* to be read; or */
    struct wal_file *files;  /* as described */
    bool is_import;
    uint32_t count;
    struct list copies; /* whether what is below could be copied */
    struct wal_checkpoint_info info;
};

/* Copies what the checkpoint is, in the thread. */
static enum wal_status take_info(struct checkpoint_job *self, struct wal_file_cursor *cursor,
                                 struct wal_error *error)
{
    struct wal_checkpoint_info *info = &self->info;
    enum wal_status status;

    info->struct_size = sizeof(*info);
    status = wal_checkpoint_get_info(cursor, info, error);
    if (status == WAL_OK) {
        list_copy_struct(&self->copies, &self->job.arena, &wal_checkpoint_info_out, info);
    }
    wal_file_cursor_close(cursor);
    return list_check(&self->copies, status, error);
}

/* The head is that of the entries which are in the queue, too. */
static enum wal_status wait_for_head(const struct checkpoint_job *self, struct wal_error *error)
{
    const struct wal_checkpoint_options *options = &self->options;

    return options->entry_id.size == 0 && (options->flags & WAL_CHECKPOINT_UNLINKED) == 0
               ? wal_flush(self->job.store->wal, error)
               : WAL_OK;
}

static enum wal_status create_run(struct job *job, struct wal_error *error)
{
    struct checkpoint_job *self = (struct checkpoint_job *)job;
    struct wal_session *session = job->handle->object;
    struct wal_file_cursor *cursor = NULL;
    enum wal_status status = wait_for_head(self, error);

    if (status == WAL_OK) {
        status = self->is_import ? wal_checkpoint_import(session, self->files, self->count,
                                                         &self->options, &cursor, error)
                                 : wal_checkpoint_create(session, self->paths, self->count,
                                                         &self->options, &cursor, error);
    }
    return status == WAL_OK ? take_info(self, cursor, error) : status;
}

/* null where checkpoints are switched off. */
static napi_value make_info(struct call *call, const struct wal_checkpoint_info *info)
{
    return (info->flags & WAL_CHECKPOINT_OFF) != 0
               ? make_null(call)
               : make_struct(call, &wal_checkpoint_info_out, info);
}

static napi_value create_finish(struct call *call, struct job *job)
{
    return make_info(call, &((struct checkpoint_job *)job)->info);
}

static const struct job_kind create_kind = {"checkpoint", sizeof(struct checkpoint_job), create_run,
                                            create_finish, NULL};

/* createCheckpoint(session, paths, OPTIONS): its state, or null */
static napi_value create_checkpoint(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct checkpoint_job *self = job_create(call, &create_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->paths = value_texts(call, call_arg(call, 1), true, &self->count);
    read_struct(call, OPTIONS, &wal_checkpoint_options_in, &self->options);
    return job_start(call, &self->job);
}

/* importCheckpoint(session, files, OPTIONS): its state, or null */
static napi_value import_checkpoint(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct checkpoint_job *self = job_create(call, &create_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->is_import = true;
    self->files = read_structs(call, call_arg(call, 1), &wal_file_in, &self->count);
    read_struct(call, OPTIONS, &wal_checkpoint_options_in, &self->options);
    return job_start(call, &self->job);
}

/* checkpoint(session, id): its state, or null */
static napi_value get_checkpoint(struct call *call)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct handle *session = handle_get(call, 0, &session_type);
    struct wal_slice id = value_text(call, call_arg(call, 1));
    struct wal_file_cursor *cursor = NULL;
    napi_value object = NULL;

    if (!call->failed &&
        call_check(call, wal_file_cursor_open(session->object, id, &cursor, call_error(call))) &&
        call_check(call, wal_checkpoint_get_info(cursor, &info, call_error(call)))) {
        object = make_info(call, &info);
    }
    wal_file_cursor_close(cursor);
    return object;
}

const struct call_method content_methods[] = {
    {"readBlob", read_blob},
    {"diffCheckpoints", diff_checkpoints},
    {"diffSession", diff_session},
    {"rewind", rewind_session},
    {"createCheckpoint", create_checkpoint},
    {"importCheckpoint", import_checkpoint},
    {"checkpoint", get_checkpoint},
    {NULL, NULL},
};
