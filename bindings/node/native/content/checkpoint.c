/*
 * checkpoint.c - making and deleting checkpoints; checkpoint_list.c reads them.
 */
#include "bindings/node/native/base/list.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/content/checkpoint_info.h"
#include "bindings/node/native/content/digest.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

enum {
    FILE_ITEMS = 5, /* of a file in an array: path, kind, mode, mtime, digest */
    OPTIONS = 2     /* the first argument of the options */
};

struct checkpoint_job {
    struct job job;
    struct wal_checkpoint_options options;
    struct wal_slice *paths; /* to be read; or */
    struct wal_file *files;  /* as described */
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
    struct arena *arena = &self->job.arena;
    enum wal_status status;

    info->struct_size = sizeof(*info);
    status = wal_checkpoint_get_info(cursor, info, error);
    if (status == WAL_OK) {
        info->id = list_copy_text(&self->copies, arena, info->id);
        info->root = list_copy_text(&self->copies, arena, info->root);
        info->entry_id = list_copy_text(&self->copies, arena, info->entry_id);
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
        status = self->files != NULL
                     ? wal_checkpoint_import(session, self->files, self->count,
                                             &self->options, &cursor, error)
                     : wal_checkpoint_create(session, self->paths, self->count,
                                             &self->options, &cursor, error);
    }
    return status == WAL_OK ? take_info(self, cursor, error) : status;
}

static napi_value create_finish(struct call *call, struct job *job)
{
    return checkpoint_make_info(call, &((struct checkpoint_job *)job)->info);
}

static const struct job_kind create_kind = {"checkpoint",
                                            sizeof(struct checkpoint_job),
                                            create_run, create_finish, NULL};

/* id, root, created, entryId, flags, threads */
static void read_options(struct call *call,
                         struct wal_checkpoint_options *options)
{
    *options = (struct wal_checkpoint_options){
        .struct_size = sizeof(*options),
        .id = value_text(call, call_arg(call, OPTIONS)),
        .root = value_path_slice(call, call_arg(call, OPTIONS + 1)),
        .created_ms = value_i64(call, call_arg(call, OPTIONS + 2)),
        .entry_id = value_text(call, call_arg(call, OPTIONS + 3)),
        .flags = value_u32(call, call_arg(call, OPTIONS + 4)),
        .threads = value_u32(call, call_arg(call, OPTIONS + 5)),
    };
}

/* createCheckpoint(session, paths, OPTIONS): its state, or null */
static napi_value create_checkpoint(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct checkpoint_job *self = job_create(call, &create_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->paths = value_texts(call, call_arg(call, 1), true, &self->count);
    read_options(call, &self->options);
    return job_start(call, &self->job);
}

/* Milliseconds with a fraction as nanoseconds. */
static int64_t read_time(struct call *call, napi_value value)
{
    /* Above, a conversion to nanoseconds is not defined. */
    const double limit = 9e12;
    napi_valuetype type = napi_undefined;
    double time = 0;

    if (call->failed || !call_ok(call, napi_typeof(call->env, value, &type)) ||
        type == napi_undefined) {
        return 0;
    }
    if (type == napi_number) {
        call_ok(call, napi_get_value_double(call->env, value, &time));
    }
    if (type != napi_number || !(time >= -limit && time <= limit)) {
        call_fail(call, WAL_EINVAL,
                  "a time in milliseconds since 1970 is expected");
        return 0;
    }
    return (int64_t)(time * 1e6);
}

static void read_file(struct call *call, napi_value array, uint32_t first,
                      struct wal_file *file)
{
    napi_value digest = value_item(call, array, first + 4);

    *file = (struct wal_file){
        .struct_size = sizeof(*file),
        .path = value_path_slice(call, value_item(call, array, first)),
        .kind = value_u32(call, value_item(call, array, first + 1)),
        .mode = value_u32(call, value_item(call, array, first + 2)),
        .mtime_ns = read_time(call, value_item(call, array, first + 3)),
    };
    if (!value_is_absent(call, digest)) {
        digest_read(call, digest, file->digest);
    }
}

static struct wal_file *read_files(struct call *call, napi_value array,
                                   uint32_t *count)
{
    uint32_t length = value_length(call, array) / FILE_ITEMS;
    struct wal_file *files =
        arena_calloc(call->arena, length + (size_t)1, sizeof(files[0]));

    if (files == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for %u files", length);
        return NULL;
    }
    for (uint32_t i = 0; i < length; i++) {
        read_file(call, array, i * FILE_ITEMS, &files[i]);
    }
    *count = length;
    return files;
}

/* importCheckpoint(session, files, OPTIONS): its state, or null */
static napi_value import_checkpoint(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct checkpoint_job *self = job_create(call, &create_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->files = read_files(call, call_arg(call, 1), &self->count);
    read_options(call, &self->options);
    return job_start(call, &self->job);
}

/* --- deleting, and switching off ---------------------------------------- */

struct change_job {
    struct job job;
    struct wal_slice id;
    bool is_on;
};

static enum wal_status delete_run(struct job *job, struct wal_error *error)
{
    return wal_checkpoint_delete(job->handle->object,
                                 ((struct change_job *)job)->id, error);
}

static enum wal_status enable_run(struct job *job, struct wal_error *error)
{
    return wal_session_set_checkpointing(
        job->handle->object, ((struct change_job *)job)->is_on, error);
}

static const struct job_kind delete_kind = {
    "deleteCheckpoint", sizeof(struct change_job), delete_run, NULL, NULL};
static const struct job_kind enable_kind = {
    "enableCheckpoints", sizeof(struct change_job), enable_run, NULL, NULL};

/* deleteCheckpoint(session, id) */
static napi_value delete_checkpoint(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct change_job *self = job_create(call, &delete_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->id = value_text(call, call_arg(call, 1));
    return job_start(call, &self->job);
}

/* enableCheckpoints(session, on) */
static napi_value enable_checkpoints(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct change_job *self = job_create(call, &enable_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->is_on = value_bool(call, call_arg(call, 1));
    return job_start(call, &self->job);
}

const struct call_method checkpoint_methods[] = {
    {"createCheckpoint", create_checkpoint},
    {"importCheckpoint", import_checkpoint},
    {"deleteCheckpoint", delete_checkpoint},
    {"enableCheckpoints", enable_checkpoints},
    {NULL, NULL},
};
