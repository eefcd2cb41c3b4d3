/*
 * rewind_undo.c - stores the states that a rewind is about to overwrite
 * (SPEC.md 5.15). The caller holds wal__rewind_lock.
 *
 * Invariant: contents and list are durable before the checkpoint and the
 * journal are submitted. Those two are one batch, so that neither exists
 * without the other. A rewind that changes no file needs no journal.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/checkpoint_document.h"
#include "engine/files/rewind_job.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

/* Generates the id of the undo checkpoint and the suffix of temporary files. */
static enum wal_status generate_names(struct wal__rewind_job *job,
                                      struct wal_error *error)
{
    const struct wal__env *env = &job->session->core->env;
    uint8_t temp_suffix[WAL__REWIND_SUFFIX_SIZE / 2];
    char id[WAL__UUID_TEXT];

    wal__text_uuid(env, id);
    if (wal__buf_append(&job->undo, id, sizeof(id)) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__random_bytes(env->random, env->io, temp_suffix, sizeof(temp_suffix));
    for (size_t i = 0; i < sizeof(temp_suffix); i++) {
        (void)snprintf(job->temp_suffix + 2 * i, 3, "%02x", temp_suffix[i]);
    }
    return WAL_OK;
}

/* Captures the files of `before` and stores their contents. */
static enum wal_status capture_files(const struct wal__rewind_job *job,
                                     struct wal__files *files,
                                     struct wal__blob_put_result *result,
                                     struct wal_error *error)
{
    struct wal__capture capture = {.env = &job->session->core->env,
                                   .io = job->io,
                                   .worktree = job->worktree,
                                   .blobs = &job->session->core->blobs,
                                   .baselines = {&job->before},
                                   .baseline_count = 1};
    enum wal_status status =
        wal__files_filter(files, &job->before, &job->before, true, error);

    if (status == WAL_OK && files->count > 0) {
        WAL__ASSERT(files->count == job->before.count);
        status = wal__capture(&capture, files, error);
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        if (!wal__file_state_equal(&files->items[i], &job->before.items[i])) {
            status = wal__fail_at(
                error, WAL_ECHANGED, 0, wal__file_path(&files->items[i]), 0,
                "another program changed the file during the rewind; call "
                "rewind again");
        }
    }
    *result = capture.result;
    return status;
}

/* Writes the list as a blob, and syncs it with the contents. */
static enum wal_status write_list(struct wal__rewind_job *job,
                                  const struct wal__files *files,
                                  struct wal__blob_put_result *result,
                                  struct wal_error *error)
{
    struct wal__blob_store *blobs = &job->session->core->blobs;
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, files->heap);
    status = wal__files_encode(files, job->session->core->env.io, &bytes);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status = wal__blob_put(
            blobs, (struct wal__span){bytes.data, bytes.size}, NULL,
            WAL__BLOB_OF_RECORDS, &job->before_list, result, error);
    }
    if (status == WAL_OK) {
        status = wal__blob_store_sync(blobs, result->end, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

/* Appends the document of the undo checkpoint to `value`. */
static enum wal_status
encode_checkpoint(const struct wal__rewind_job *job,
                  const struct wal__files *files,
                  const struct wal__blob_put_result *result,
                  struct wal__buf *value, struct wal_error *error)
{
    const struct wal__io *io = job->session->core->env.io;
    const struct wal__span id = {job->undo.data, job->undo.size};
    const struct wal__span root = {(const uint8_t *)job->root,
                                   strlen(job->root)};
    const struct wal__span entry = {(const uint8_t *)job->head_before,
                                    strlen(job->head_before)};
    struct wal__checkpoint made;
    enum wal_status status;

    wal__checkpoint_init(&made, files->heap);
    made.list = job->before_list;
    made.files = files->count;
    made.bytes = wal__files_total_size(files);
    made.new_blobs = result->new_blobs;
    made.new_bytes = result->new_bytes;
    made.created_ms = io->now_ms(io->ctx);
    status = wal__checkpoint_set_strings(&made, id, root, entry, error);
    if (status == WAL_OK && wal__checkpoint_encode(&made, value) != WAL_OK) {
        status = wal__no_memory(error);
    }
    wal__checkpoint_deinit(&made);
    return status;
}

/* Commits the checkpoint, whose id must be unused, and in the same batch the
 * journal, or without files the move of the head. */
static enum wal_status commit_values(const struct wal__rewind_job *job,
                                     const struct wal__buf *checkpoint,
                                     const struct wal__buf *journal,
                                     struct wal_error *error)
{
    const struct wal__span id = {job->undo.data, job->undo.size};
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    const struct wal_doc docs[2] = {
        {.struct_size = sizeof(docs[0]),
         .key = wal__text_slice(wal__checkpoint_key(id, key_buffer)),
         .value = {checkpoint->data, checkpoint->size},
         .flags = WAL_DOC_EXPECT},
        {.struct_size = sizeof(docs[1]),
         .key = wal__text_slice(wal__rewind_journal_key()),
         .value = {journal->data, journal->size}}};
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = docs, .document_count = 2};
    struct wal_head head;
    enum wal_status status;

    if (job->before.count == 0) {
        head = wal__rewind_head_move(job);
        batch.document_count = 1;
        batch.heads = &head;
        batch.head_count = 1;
    }
    status = wal__rewind_commit(job->session, &batch, WAL_DURABLE, error);
    return status == WAL_ECONFLICT
               ? wal__fail(error, WAL_ECHANGED,
                           "the head was moved during the rewind; call rewind "
                           "again")
               : status;
}

static enum wal_status commit(const struct wal__rewind_job *job,
                              const struct wal__files *files,
                              const struct wal__blob_put_result *result,
                              struct wal_error *error)
{
    struct wal__buf checkpoint;
    struct wal__buf journal;
    enum wal_status status;

    wal__buf_init(&checkpoint, files->heap);
    wal__buf_init(&journal, files->heap);
    status = encode_checkpoint(job, files, result, &checkpoint, error);
    if (status == WAL_OK &&
        wal__rewind_journal_encode(job, &journal) != WAL_OK) {
        status = wal__no_memory(error);
    }
    if (status == WAL_OK) {
        status = commit_values(job, &checkpoint, &journal, error);
    }
    wal__buf_deinit(&journal);
    wal__buf_deinit(&checkpoint);
    return status;
}

enum wal_status wal__rewind_save_undo(struct wal__rewind_job *job,
                                      struct wal_error *error)
{
    struct wal__core *core = job->session->core;
    struct wal__content_guard guard = {NULL, 0};
    struct wal__blob_put_result result = {0};
    struct wal__files files;
    enum wal_status status;

    WAL__ASSERT(job->undo.size == 0);
    WAL__ASSERT(job->before.count == job->after.count);
    wal__files_init(&files, core->env.heap);
    status = wal__content_guard_enter(&guard, &core->control, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = generate_names(job, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = capture_files(job, &files, &result, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = write_list(job, &files, &result, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = commit(job, &files, &result, error);
done:
    wal__content_guard_leave(&guard);
    if (status == WAL_OK) {
        struct wal__files old = job->before;

        job->before = files;
        files = old;
    }
    wal__files_deinit(&files);
    return status;
}
