/*
 * rewind.c - restoring files to a checkpoint.
 */
#include "bindings/node/native/base/status.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/content/file_changes.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/store.h"

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
    return status == WAL_OK ? file_changes_collect(&self->changes, &job->arena,
                                                   cursor, error)
                            : status;
}

/* Text that ends with NUL; null for an empty one. */
static napi_value make_id(struct call *call, const char *id)
{
    return id[0] == '\0' ? make_null(call) : make_string(call, id);
}

static napi_value rewind_finish(struct call *call, struct job *job)
{
    struct rewind_job *self = (struct rewind_job *)job;
    const struct wal_rewind_result *result = &self->result;
    napi_value object = make_object(call);

    object_bool(call, object, "canRewind", result->can_rewind != 0);
    object_set(call, object, "code",
               result->status == WAL_OK
                   ? make_null(call)
                   : make_string(call, status_code(result->status)));
    object_set(call, object, "error", make_string(call, result->error));
    object_number(call, object, "filesChanged", result->files_changed);
    object_number(call, object, "insertions", result->insertions);
    object_number(call, object, "deletions", result->deletions);
    object_number(call, object, "binary", result->binary);
    object_number(call, object, "changedElsewhere", result->changed_elsewhere);
    object_set(call, object, "undo", make_id(call, result->undo));
    object_set(call, object, "previousHead",
               make_id(call, result->previous_head));
    object_set(call, object, "newHead", make_id(call, result->new_head));
    object_set(call, object, "changes",
               file_changes_make(call, &self->changes));
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
    self->options = (struct wal_rewind_options){
        .struct_size = sizeof(self->options),
        .flags = value_u32(call, call_arg(call, 2)),
        .root = value_path_slice(call, call_arg(call, 3)),
        .expected = value_text(call, call_arg(call, 4)),
    };
    return job_start(call, &self->job);
}

const struct call_method rewind_methods[] = {
    {"rewind", rewind_session},
    {NULL, NULL},
};
