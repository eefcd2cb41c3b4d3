/*
 * checkpoint_create.c - creates a checkpoint or adds files to one (SPEC.md
 * 5.13). Any thread.
 *
 * Invariant: the contents and the list that names them are written and synced
 * before the document is submitted. The expected version of the document
 * detects a concurrent change; the loser merges its files into the winner's
 * list and captures nothing again.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/checkpoint_document.h"
#include "engine/files/reserved_docs.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

enum {
    ATTEMPTS_MAX = 1000
};

struct creation {
    struct wal_session *session;
    struct wal__blob_store *blobs;
    struct wal__span id;
    struct wal__span root;  /* followed by a NUL */
    struct wal__span entry; /* to link it with; empty: none */
    bool expects_entry;     /* the caller gave it */
    uint32_t threads;
    int64_t created_ms; /* 0: now */
    bool has_states;    /* the caller gave states; nothing is captured */
    struct wal__files requested;     /* without states unless has_states */
    struct wal__checkpoint existing; /* version 0: there is none */
    struct wal__files existing_files;
    struct wal__files captured;
    struct wal__files baselines[WAL__CAPTURE_BASELINES];
    struct wal__digest base; /* of the newest baseline */
    bool has_base;
    struct wal__blob_put_result result; /* of the contents */
};

static void creation_init(struct creation *creation,
                          struct wal_session *session)
{
    const struct wal__heap *heap = session->core->env.heap;

    *creation =
        (struct creation){.session = session, .blobs = &session->core->blobs};
    wal__files_init(&creation->requested, heap);
    wal__checkpoint_init(&creation->existing, heap);
    wal__files_init(&creation->existing_files, heap);
    wal__files_init(&creation->captured, heap);
    for (int i = 0; i < WAL__CAPTURE_BASELINES; i++) {
        wal__files_init(&creation->baselines[i], heap);
    }
}

static void creation_deinit(struct creation *creation)
{
    wal__files_deinit(&creation->requested);
    wal__checkpoint_deinit(&creation->existing);
    wal__files_deinit(&creation->existing_files);
    wal__files_deinit(&creation->captured);
    for (int i = 0; i < WAL__CAPTURE_BASELINES; i++) {
        wal__files_deinit(&creation->baselines[i]);
    }
}

/* --- the existing checkpoint --------------------------------------------- */

/* Loads the checkpoint with the id; version 0 when there is none. */
static enum wal_status load_existing(struct creation *creation,
                                     struct wal_error *error)
{
    struct wal__checkpoint *existing = &creation->existing;
    enum wal_status status;

    wal__files_deinit(&creation->existing_files);
    wal__checkpoint_deinit(existing);
    status =
        wal__checkpoint_get(creation->session, creation->id, existing, error);
    if (status == WAL_ENOTFOUND) {
        WAL__ASSERT(existing->version == 0);
        return WAL_OK;
    }
    if (status == WAL_OK && !wal__span_equal(existing->root, creation->root)) {
        wal__fail(error, WAL_EEXISTS,
                  "the checkpoint \"%.*s\" was created with another root",
                  (int)creation->id.size, (const char *)creation->id.data);
        wal__error_set_actual(error, existing->root.data, existing->root.size);
        return WAL_EEXISTS;
    }
    if (status == WAL_OK && creation->expects_entry &&
        !wal__span_equal(existing->entry, creation->entry)) {
        wal__fail(error, WAL_EEXISTS,
                  "the checkpoint \"%.*s\" is linked with another entry",
                  (int)creation->id.size, (const char *)creation->id.data);
        wal__error_set_actual(error, existing->entry.data,
                              existing->entry.size);
        return WAL_EEXISTS;
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__files_load(&creation->existing_files, creation->blobs,
                             &existing->list, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__files_invalidate_fresh(&creation->existing_files,
                                creation->session->core->env.io);
    return WAL_OK;
}

/* --- files --------------------------------------------------------------- */

static enum wal_status capture_below_root(struct creation *creation,
                                          struct wal__capture *capture,
                                          struct wal_error *error)
{
    const struct wal__worktree_io *io = capture->io;
    const char *root = (const char *)creation->root.data;
    int sys_errno = 0;
    enum wal_status status;

    if (io == NULL) {
        return wal__fail_at(error, WAL_EINVAL, 0, root, 0,
                            "this environment has no file system");
    }
    status = io->open_root(io->ctx, root, &capture->worktree, &sys_errno);
    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, sys_errno, root,
                                  "opening the root directory");
    }
    status = wal__capture(capture, &creation->captured, error);
    io->close_root(io->ctx, capture->worktree);
    return status;
}

/* Checks that the store has the contents of given states. */
static enum wal_status check_contents(struct creation *creation,
                                      struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};

    for (uint32_t i = 0; i < creation->captured.count; i++) {
        struct wal__file_record *file = &creation->captured.items[i];
        uint64_t end = 0;
        enum wal_status status;

        if (file->kind == WAL__FILE_ABSENT) {
            continue;
        }
        status = wal__blob_claim(creation->blobs, &file->digest, &file->size,
                                 &end, &why);
        if (status != WAL_OK) {
            return wal__fail_at(
                error, status, why.sys_errno, wal__file_path(file), 0,
                "the content of the file is not in the store: %s", why.text);
        }
        if (file->kind == WAL__FILE_SYMLINK &&
            (file->size == 0 || file->size >= WAL__PATH_MAX)) {
            return wal__fail_at(
                error, WAL_EINVAL, 0, wal__file_path(file), 0,
                "the target of a symbolic link must have 1 to %d bytes",
                WAL__PATH_MAX - 1);
        }
        creation->result.end =
            end > creation->result.end ? end : creation->result.end;
    }
    return WAL_OK;
}

/* Captures the files that the checkpoint does not have yet. */
static enum wal_status capture(struct creation *creation,
                               struct wal_error *error)
{
    const struct wal__env *env = &creation->session->core->env;
    struct wal__capture capture = {.env = env,
                                   .io = env->io->worktree,
                                   .blobs = creation->blobs,
                                   .threads = creation->threads};
    enum wal_status status =
        wal__files_filter(&creation->captured, &creation->requested,
                          &creation->existing_files, false, error);

    if (status != WAL_OK || creation->captured.count == 0) {
        return status;
    }
    WAL__ASSERT(creation->captured.count <= creation->requested.count);
    status = wal__checkpoint_load_baselines(
        creation->session, creation->root, &creation->captured,
        creation->baselines, &creation->base, &capture.baseline_count, error);
    if (status != WAL_OK) {
        return status;
    }
    creation->has_base = capture.baseline_count > 0;
    if (creation->has_states) {
        return check_contents(creation, error);
    }
    for (uint32_t i = 0; i < capture.baseline_count; i++) {
        capture.baselines[i] = &creation->baselines[i];
    }
    status = capture_below_root(creation, &capture, error);
    creation->result = capture.result;
    return status;
}

/* --- the document -------------------------------------------------------- */

/* Writes the list as a blob, and syncs it with everything that it names. */
static enum wal_status write_list(struct creation *creation,
                                  const struct wal__files *files,
                                  struct wal__checkpoint *made,
                                  struct wal_error *error)
{
    const struct wal__digest *base = creation->existing.version != 0
                                         ? &creation->existing.list
                                     : creation->has_base ? &creation->base
                                                          : NULL;
    struct wal__blob_put_result result = {.end = creation->result.end};
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, creation->session->core->env.heap);
    status = wal__files_encode(files, creation->session->core->env.io, &bytes);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        const struct wal__span span = {bytes.data, bytes.size};

        status =
            wal__blob_put(creation->blobs, span, base, WAL__BLOB_OF_RECORDS,
                          &made->list, &result, error);
    }
    if (status == WAL_OK) {
        /* The sync must cover the contents, not only the list. */
        WAL__ASSERT(result.end >= creation->result.end);
        status = wal__blob_store_sync(creation->blobs, result.end, error);
    }
    made->new_bytes += result.new_bytes;
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status write_document(struct creation *creation,
                                      struct wal__checkpoint *made,
                                      struct wal_error *error)
{
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    struct wal__buf value;
    enum wal_status status;

    wal__buf_init(&value, creation->session->core->env.heap);
    status = wal__checkpoint_encode(made, &value);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        const struct wal__span span = {value.data, value.size};

        status = wal__reserved_doc_put(
            creation->session, wal__checkpoint_key(creation->id, key_buffer),
            span, creation->existing.version, &made->version, error);
    }
    wal__buf_deinit(&value);
    return status;
}

/* Writes captured and existing files as one document; *made is initialised.
 * WAL_ECONFLICT: a concurrent call changed the document first. */
static enum wal_status write_merged(struct creation *creation,
                                    struct wal__checkpoint *made,
                                    struct wal__files *files,
                                    struct wal_error *error)
{
    const struct wal__checkpoint *existing = &creation->existing;
    const struct wal__io *io = creation->session->core->env.io;
    enum wal_status status = wal__files_merge(files, &creation->existing_files,
                                              &creation->captured, error);

    if (status == WAL_OK) {
        status = wal__checkpoint_set_strings(
            made, creation->id, creation->root,
            existing->version != 0 ? existing->entry : creation->entry, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(files->count >= creation->existing_files.count);
    WAL__ASSERT(files->count >= creation->captured.count);
    if (existing->version != 0) {
        made->created_ms = existing->created_ms;
    } else {
        made->created_ms = creation->created_ms != 0 ? creation->created_ms
                                                     : io->now_ms(io->ctx);
    }
    made->files = files->count;
    made->bytes = wal__files_total_size(files);
    made->new_blobs = existing->new_blobs + creation->result.new_blobs;
    made->new_bytes = existing->new_bytes + creation->result.new_bytes;
    made->list = existing->list;
    made->version = existing->version;
    if (existing->version != 0 && files->count == existing->files) {
        return WAL_OK; /* no new file */
    }
    status = write_list(creation, files, made, error);
    return status == WAL_OK ? write_document(creation, made, error) : status;
}

/* --- creation ------------------------------------------------------------ */

enum wal_status
wal__checkpoint_request_files(const struct wal__checkpoint_request *request,
                              const char *root, struct wal__files *files,
                              struct wal_error *error)
{
    return request->states != NULL
               ? wal__files_from_states(files, root, request->states,
                                        request->count, error)
               : wal__files_from_paths(files, root, request->paths,
                                       request->count, error);
}

static enum wal_status create(struct creation *creation,
                              const struct wal__checkpoint_request *request,
                              struct wal__checkpoint *made,
                              struct wal__files *files, struct wal_error *error)
{
    enum wal_status status = wal__checkpoint_request_files(
        request, (const char *)creation->root.data, &creation->requested,
        error);

    if (status == WAL_OK && request->id.size > 0) {
        status = load_existing(creation, error);
    }
    if (status == WAL_OK) {
        status = capture(creation, error);
    }
    if (status == WAL_OK) {
        status = write_merged(creation, made, files, error);
    }
    for (int i = 0; i < ATTEMPTS_MAX && status == WAL_ECONFLICT; i++) {
        wal__files_deinit(files);
        status = load_existing(creation, error);
        if (status == WAL_OK) {
            status = write_merged(creation, made, files, error);
        }
    }
    return status;
}

/* Determines the entry to link the checkpoint with: before the files are
 * captured, so that none of a later entry is linked with this one. */
static enum wal_status choose_entry(struct creation *creation,
                                    const struct wal__checkpoint_request *from,
                                    char current[WAL_ID_SIZE],
                                    struct wal_error *error)
{
    enum wal_status status;

    if (from->is_unlinked) {
        return WAL_OK;
    }
    if (from->entry.size > 0) {
        creation->entry = from->entry;
        creation->expects_entry = true;
        return wal__checkpoint_check_entry(creation->session, from->entry,
                                           error);
    }
    status = wal__checkpoint_current_entry(creation->session, current, error);
    if (status == WAL_OK) {
        creation->entry =
            (struct wal__span){(const uint8_t *)current, strlen(current)};
    }
    return status;
}

enum wal_status
wal__checkpoint_create(struct wal_session *session,
                       const struct wal__checkpoint_request *request,
                       struct wal__checkpoint *made, struct wal__files *files,
                       struct wal_error *error)
{
    char id[WAL__UUID_TEXT];
    char root[WAL__PATH_MAX];
    char entry[WAL_ID_SIZE];
    struct wal__content_guard guard = {NULL, 0};
    struct creation creation;
    enum wal_status status =
        wal__checkpoint_normalize_root(session, request->root, root, error);

    WAL__ASSERT(files->count == 0 && made->texts.size == 0);
    if (status != WAL_OK) {
        return status;
    }
    creation_init(&creation, session);
    creation.root = (struct wal__span){(const uint8_t *)root, strlen(root)};
    creation.id = request->id;
    creation.threads = request->threads;
    creation.created_ms = request->created_ms;
    creation.has_states = request->states != NULL;
    if (creation.id.size == 0) {
        wal__text_uuid(&session->core->env, id);
        creation.id = (struct wal__span){(const uint8_t *)id, sizeof(id)};
    }
    status = choose_entry(&creation, request, entry, error);
    if (status == WAL_OK) {
        status =
            wal__content_guard_enter(&guard, &session->core->control, error);
    }
    if (status == WAL_OK) {
        status = create(&creation, request, made, files, error);
    }
    wal__content_guard_leave(&guard);
    creation_deinit(&creation);
    return status;
}
