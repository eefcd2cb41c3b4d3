/*
 * checkpoint.c - making checkpoints, and the state of one; interface.txt has
 * the other calls on them.
 */
#include <agentwal/checkpoint.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

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
static enum wal_status take_info(struct checkpoint_job *self,
                                 struct wal_file_cursor *cursor,
                                 struct wal_error *error)
{
    struct wal_checkpoint_info *info = &self->info;
    enum wal_status status;

    info->struct_size = sizeof(*info);
    status = wal_checkpoint_get_info(cursor, info, error);
    if (status == WAL_OK) {
        list_copy_struct(&self->copies, &self->job.arena,
                         &wal_checkpoint_info_out, info);
    }
    wal_file_cursor_close(cursor);
    return list_check(&self->copies, status, error);
}

/* The head is that of the entries which are in the queue, too. */
static enum wal_status wait_for_head(const struct checkpoint_job *self,
                                     struct wal_error *error)
{
    const struct wal_checkpoint_options *options = &self->options;

    return options->entry_id.size == 0 &&
                   (options->flags & WAL_CHECKPOINT_UNLINKED) == 0
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
        status = self->is_import
                     ? wal_checkpoint_import(session, self->files, self->count,
                                             &self->options, &cursor, error)
                     : wal_checkpoint_create(session, self->paths, self->count,
                                             &self->options, &cursor, error);
    }
    return status == WAL_OK ? take_info(self, cursor, error) : status;
}

/* null where checkpoints are switched off. */
static napi_value make_info(struct call *call,
                            const struct wal_checkpoint_info *info)
{
    return (info->flags & WAL_CHECKPOINT_OFF) != 0
               ? make_null(call)
               : make_struct(call, &wal_checkpoint_info_out, info);
}

static napi_value create_finish(struct call *call, struct job *job)
{
    return make_info(call, &((struct checkpoint_job *)job)->info);
}

static const struct job_kind create_kind = {"checkpoint",
                                            sizeof(struct checkpoint_job),
                                            create_run, create_finish, NULL};

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
    self->files =
        read_structs(call, call_arg(call, 1), &wal_file_in, &self->count);
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
        call_check(call, wal_file_cursor_open(session->object, id, &cursor,
                                              call_error(call))) &&
        call_check(call,
                   wal_checkpoint_get_info(cursor, &info, call_error(call)))) {
        object = make_info(call, &info);
    }
    wal_file_cursor_close(cursor);
    return object;
}

const struct call_method checkpoint_methods[] = {
    {"createCheckpoint", create_checkpoint},
    {"importCheckpoint", import_checkpoint},
    {"checkpoint", get_checkpoint},
    {NULL, NULL},
};
