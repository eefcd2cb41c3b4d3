/*
 * checkpoint_list.c - reading checkpoints: their list, and their files
 * (checkpoint_info.h).
 */
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/content/checkpoint_info.h"
#include "bindings/node/native/content/file_changes.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"

napi_value checkpoint_make_info(struct call *call,
                                const struct wal_checkpoint_info *info)
{
    napi_value object;

    if ((info->flags & WAL_CHECKPOINT_OFF) != 0) {
        return make_null(call);
    }
    object = make_object(call);
    object_text(call, object, "id", info->id);
    object_text(call, object, "root", info->root);
    object_set(call, object, "created", make_signed(call, info->created_ms));
    object_number(call, object, "files", info->files);
    object_number(call, object, "bytes", info->bytes);
    object_number(call, object, "newBlobs", info->new_blobs);
    object_number(call, object, "newBytes", info->new_bytes);
    object_number(call, object, "version", info->version);
    object_set(call, object, "entryId", make_optional(call, info->entry_id));
    return object;
}

/* Opens the checkpoint of the arguments (session, id); NULL: the call has
 * failed. */
static struct wal_file_cursor *open_files(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct wal_slice id = value_text(call, call_arg(call, 1));
    struct wal_file_cursor *cursor = NULL;

    if (call->failed ||
        !call_check(call, wal_file_cursor_open(session->object, id, &cursor,
                                               call_error(call)))) {
        return NULL;
    }
    return cursor;
}

/* checkpoint(session, id) */
static napi_value get_checkpoint(struct call *call)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_file_cursor *cursor = open_files(call);
    napi_value object = NULL;

    if (cursor != NULL &&
        call_check(call,
                   wal_checkpoint_get_info(cursor, &info, call_error(call)))) {
        object = checkpoint_make_info(call, &info);
    }
    wal_file_cursor_close(cursor);
    return object;
}

static napi_value make_file(struct call *call, const struct wal_file *file)
{
    napi_value object = make_object(call);

    object_text(call, object, "path", file->path);
    object_set(call, object, "kind", file_kind_make(call, file->kind));
    object_number(call, object, "mode", file->mode);
    object_number(call, object, "size", file->size);
    object_set(call, object, "mtime",
               make_double(call, (double)file->mtime_ns / 1e6));
    object_set(call, object, "digest",
               file->kind == WAL_FILE_ABSENT ? make_null(call)
                                             : make_digest(call, file->digest));
    return object;
}

/* checkpointFiles(session, id) */
static napi_value list_files(struct call *call)
{
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_file_cursor *cursor = open_files(call);
    napi_value array = make_array(call);
    enum wal_status status = cursor == NULL ? WAL_END : WAL_OK;

    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        status = wal_file_cursor_next(cursor, &file, call_error(call));
        if (call_check(call, status) && status == WAL_OK) {
            array_push(call, array, i, make_file(call, &file));
        }
    }
    wal_file_cursor_close(cursor);
    return array;
}

/* checkpoints(session): oldest first */
static napi_value list_checkpoints(struct call *call)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct handle *session = handle_get(call, 0, &session_type);
    struct wal_checkpoint_cursor *cursor = NULL;
    napi_value array = make_array(call);
    enum wal_status status = WAL_OK;

    if (call->failed ||
        !call_check(call, wal_checkpoint_cursor_open(session->object, &cursor,
                                                     call_error(call)))) {
        return NULL;
    }
    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        status = wal_checkpoint_cursor_next(cursor, &info, call_error(call));
        if (call_check(call, status) && status == WAL_OK) {
            array_push(call, array, i, checkpoint_make_info(call, &info));
        }
    }
    wal_checkpoint_cursor_close(cursor);
    return array;
}

const struct call_method checkpoint_list_methods[] = {
    {"checkpoint", get_checkpoint},
    {"checkpointFiles", list_files},
    {"checkpoints", list_checkpoints},
    {NULL, NULL},
};
