/*
 * api_checkpoint.c - the public functions on checkpoints and changes of files
 * (agentwal.h): arguments are checked here, everything else is below.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/checkpoint.h"
#include "engine/files/rewind.h"
#include "engine/session/session.h"
#include "engine/store/input_text.h"

struct wal_file_cursor {
    struct wal__core *core;
    uint32_t flags; /* enum wal_checkpoint_flag */
    struct wal__checkpoint is;
    struct wal__files files;
    uint32_t next;
};

static enum wal_status check_output(const void *place, struct wal_error *error)
{
    return place != NULL
               ? WAL_OK
               : wal__invalid(error, "the place for the reader is null");
}

/* A reader with nothing in it. */
static enum wal_status cursor_create(struct wal__core *core,
                                     struct wal_file_cursor **reader,
                                     struct wal_error *error)
{
    struct wal_file_cursor *made =
        wal__heap_zalloc(core->env.heap, sizeof(*made));

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->core = core;
    wal__core_retain(core);
    wal__checkpoint_init(&made->is, core->env.heap);
    wal__files_init(&made->files, core->env.heap);
    *reader = made;
    return WAL_OK;
}

/* --- making -------------------------------------------------------------- */

static enum wal_status
decode_options(const struct wal_checkpoint_options *options,
               struct wal__checkpoint_request *request, struct wal_error *error)
{
    struct wal_checkpoint_options own;
    enum wal_status status = wal__struct_load(
        WAL__STRUCT(wal_checkpoint_options), &own, options, error);

    if (status != WAL_OK) {
        return status;
    }
    if (request->count > 0 && request->paths == NULL &&
        request->states == NULL) {
        status = wal__invalid(error, "there is a count of files, but no files");
    }
    if (status == WAL_OK) {
        status = wal__text_check(own.id, WAL__ID_MAX, "checkpoint's id",
                                 &request->id, error);
    }
    if (status == WAL_OK &&
        !wal__text_span(own.root, 2 * WAL__PATH_MAX, &request->root)) {
        status = wal__invalid(error, "the root is too long, or has no address");
    }
    if (status == WAL_OK) {
        status = wal__text_check(own.entry_id, WAL__ID_MAX, "entry's id",
                                 &request->entry, error);
    }
    if (status == WAL_OK &&
        ((own.flags & ~(uint32_t)WAL_CHECKPOINT_UNLINKED) != 0 ||
         (own.flags != 0 && request->entry.size > 0))) {
        status =
            wal__invalid(error, "the checkpoint's flags are %#x, with %s entry",
                         own.flags, request->entry.size > 0 ? "an" : "no");
    }
    request->is_unlinked = own.flags == WAL_CHECKPOINT_UNLINKED;
    request->threads = own.threads;
    request->created_ms = own.created_ms;
    return status;
}

/* With persistence off: what can be refused without looking is. */
static enum wal_status check_forgotten(struct wal_session *session,
                                       struct wal__checkpoint_request *request,
                                       struct wal_error *error)
{
    struct wal__files files;
    char root[WAL__PATH_MAX];
    enum wal_status status =
        wal__checkpoint_normalize_root(session, request->root, root, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__files_init(&files, session->core->env.heap);
    status = wal__checkpoint_request_files(request, root, &files, error);
    wal__files_deinit(&files);
    return status;
}

static enum wal_status record_files(struct wal_session *session,
                                    struct wal__checkpoint_request *request,
                                    struct wal_file_cursor *reader,
                                    struct wal_error *error)
{
    bool on = true;
    enum wal_status status;

    if (session->core->env.io->forgets) {
        return check_forgotten(session, request, error);
    }
    status = wal__checkpoints_enabled(session, &on, error);
    if (status == WAL_OK && !on) {
        reader->flags = WAL_CHECKPOINT_OFF;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__rewind_recover(session, error);
    }
    return status == WAL_OK
               ? wal__checkpoint_create(session, request, &reader->is,
                                        &reader->files, error)
               : status;
}

/* Records the files of the request, and opens the checkpoint. */
static enum wal_status
create_and_open(struct wal_session *session,
                struct wal__checkpoint_request request,
                const struct wal_checkpoint_options *options,
                struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    struct wal_file_cursor *reader = NULL;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = decode_options(options, &request, error);
    }
    if (status == WAL_OK) {
        status = cursor_create(session->core, &reader, error);
    }
    if (status == WAL_OK) {
        status = record_files(session, &request, reader, error);
    }
    if (status != WAL_OK || checkpoint == NULL) {
        wal_file_cursor_close(reader);
        return status;
    }
    *checkpoint = reader;
    return WAL_OK;
}

enum wal_status wal_checkpoint_create(
    struct wal_session *session, const struct wal_slice *paths, uint64_t count,
    const struct wal_checkpoint_options *options,
    struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    const struct wal__checkpoint_request request = {.paths = paths,
                                                    .count = count};

    return create_and_open(session, request, options, checkpoint, error);
}

enum wal_status wal_checkpoint_import(
    struct wal_session *session, const struct wal_file *files, uint64_t count,
    const struct wal_checkpoint_options *options,
    struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    static const struct wal_file none;
    struct wal__checkpoint_request request = {.count = count};
    struct wal__buf copies;
    const void *states;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&copies, session->core->env.heap);
    status = wal__struct_load_array(WAL__STRUCT(wal_file), files, count,
                                    &copies, &states, error);
    if (status == WAL_OK) {
        request.states = count == 0 ? &none : states;
        status = create_and_open(session, request, options, checkpoint, error);
    }
    wal__buf_deinit(&copies);
    return status;
}

enum wal_status wal_session_set_checkpointing(struct wal_session *session,
                                              int32_t on,
                                              struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__checkpoints_set_enabled(session, on != 0, error);
}

enum wal_status wal_checkpoint_delete(struct wal_session *session,
                                      struct wal_slice id,
                                      struct wal_error *error)
{
    struct wal__span span;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = wal__checkpoint_check_id(id, &span, error);
    }
    if (status != WAL_OK || session->core->env.io->forgets) {
        return status;
    }
    return wal__checkpoint_delete(session, span, error);
}

/* --- one ----------------------------------------------------------------- */

enum wal_status wal_file_cursor_open(struct wal_session *session,
                                     struct wal_slice id,
                                     struct wal_file_cursor **checkpoint,
                                     struct wal_error *error)
{
    struct wal_file_cursor *reader = NULL;
    struct wal__span span;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        status = check_output(checkpoint, error);
    }
    if (status == WAL_OK) {
        status = wal__checkpoint_check_id(id, &span, error);
    }
    if (status == WAL_OK) {
        status = cursor_create(session->core, &reader, error);
    }
    if (status == WAL_OK) {
        status = wal__checkpoint_load(session, span, &reader->is,
                                      &reader->files, error);
    }
    if (status != WAL_OK) {
        wal_file_cursor_close(reader);
        return status;
    }
    *checkpoint = reader;
    return WAL_OK;
}

static void fill_info(const struct wal__checkpoint *checkpoint, uint32_t flags,
                      struct wal_checkpoint_info *info)
{
    *info = (struct wal_checkpoint_info){
        .struct_size = sizeof(*info),
        .flags = flags,
        .id = wal__text_slice(checkpoint->id),
        .root = wal__text_slice(checkpoint->root),
        .created_ms = checkpoint->created_ms,
        .files = checkpoint->files,
        .bytes = checkpoint->bytes,
        .new_blobs = checkpoint->new_blobs,
        .new_bytes = checkpoint->new_bytes,
        .version = checkpoint->version,
        .entry_id = wal__text_slice(checkpoint->entry),
    };
}

static enum wal_status check_cursor(const struct wal__core *core,
                                    const struct wal__struct *type,
                                    const void *output, struct wal_error *error)
{
    enum wal_status status = wal__check_core(core, error);

    return status == WAL_OK ? wal__struct_check_output(type, output, error)
                            : status;
}

enum wal_status
wal_checkpoint_get_info(const struct wal_file_cursor *checkpoint,
                        struct wal_checkpoint_info *info,
                        struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_checkpoint_info);
    struct wal_checkpoint_info own;
    enum wal_status status = check_cursor(
        checkpoint == NULL ? NULL : checkpoint->core, type, info, error);

    if (status == WAL_OK) {
        fill_info(&checkpoint->is, checkpoint->flags, &own);
        wal__struct_store(type, info, &own);
    }
    return status;
}

enum wal_status wal_file_cursor_next(struct wal_file_cursor *checkpoint,
                                     struct wal_file *file,
                                     struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_file);
    const struct wal__file_record *record;
    struct wal_file own;
    enum wal_status status = check_cursor(
        checkpoint == NULL ? NULL : checkpoint->core, type, file, error);

    if (status != WAL_OK) {
        return status;
    }
    if (checkpoint->next == checkpoint->files.count) {
        return WAL_END;
    }
    record = &checkpoint->files.items[checkpoint->next++];
    own = (struct wal_file){
        .struct_size = sizeof(own),
        .kind = record->kind,
        .mode = record->mode,
        .path = wal__text_slice(record->path),
        .size = record->size,
        .mtime_ns = record->mtime_ns,
    };
    memcpy(own.digest, record->digest.bytes, sizeof(own.digest));
    wal__struct_store(type, file, &own);
    return WAL_OK;
}

void wal_file_cursor_close(struct wal_file_cursor *checkpoint)
{
    struct wal__core *core;

    if (checkpoint == NULL) {
        return;
    }
    core = checkpoint->core;
    wal__checkpoint_deinit(&checkpoint->is);
    wal__files_deinit(&checkpoint->files);
    wal__heap_free(core->env.heap, checkpoint);
    wal__core_release(core);
}

/* --- all of a session ---------------------------------------------------- */

enum wal_status
wal_checkpoint_cursor_open(struct wal_session *session,
                           struct wal_checkpoint_cursor **checkpoints,
                           struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        status = check_output(checkpoints, error);
    }
    return status == WAL_OK
               ? wal__checkpoint_cursor_open(session, checkpoints, error)
               : status;
}

enum wal_status
wal_checkpoint_cursor_next(struct wal_checkpoint_cursor *checkpoints,
                           struct wal_checkpoint_info *info,
                           struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_checkpoint_info);
    const struct wal__checkpoint *checkpoint;
    struct wal_checkpoint_info own;
    enum wal_status status = check_cursor(
        checkpoints == NULL ? NULL : wal__checkpoint_cursor_core(checkpoints),
        type, info, error);

    if (status == WAL_OK) {
        status = wal__checkpoint_cursor_next(checkpoints, &checkpoint, error);
    }
    if (status == WAL_OK) {
        fill_info(checkpoint, 0, &own);
        wal__struct_store(type, info, &own);
    }
    return status;
}

void wal_checkpoint_cursor_close(struct wal_checkpoint_cursor *checkpoints)
{
    wal__checkpoint_cursor_close(checkpoints);
}
