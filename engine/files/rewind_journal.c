/*
 * rewind_journal.c - the lock of rewinds, the journal from which an interrupted rewind is
 * recovered, and the states that a rewind is about to overwrite, which it stores first (SPEC.md
 * 5.15).
 *
 * Invariants: a journal applies only to the session that wrote it; the copy that a fork inherits
 * refers to that session. Contents and list are durable before the checkpoint and the journal are
 * submitted. Those two are one batch, so that neither exists without the other. A rewind that
 * changes no file needs no journal.
 */
#include "engine/files/rewind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/doc_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

static const struct wal__span journal_key = {(const uint8_t *)"\0rewind", 7};

enum { LOCK_POLL_NS = 5000000 };

/* --- the lock ------------------------------------------------------------ */

/* The lock byte excludes other processes. It belongs to the store's open file description, which
 * all threads share: the mutex excludes them. */
enum wal_status wal__rewind_lock(struct wal__core *core, struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t end = io->monotonic_ns(io->ctx) + (uint64_t)core->env.lock_timeout_ms * 1000000;
    const uint32_t nothing = 0;
    enum wal_status status;
    int err = 0;

    pthread_mutex_lock(&core->rewind_mutex);
    status = io->lock(io->ctx, core->control.file, WAL__LOCK_REWIND, WAL__IO_LOCK_EXCLUSIVE, &err);
    while (status == WAL_ELOCKED && io->monotonic_ns(io->ctx) < end) {
        io->futex_wait(io->ctx, &nothing, 0, LOCK_POLL_NS);
        status =
            io->lock(io->ctx, core->control.file, WAL__LOCK_REWIND, WAL__IO_LOCK_EXCLUSIVE, &err);
    }
    if (status != WAL_OK) {
        pthread_mutex_unlock(&core->rewind_mutex);
        return wal__fail_at(error, status, err, core->control.path, WAL__LOCK_REWIND,
                            status == WAL_ELOCKED
                                ? "another process is rewinding files; retry later"
                                : "cannot lock the rewind byte of the control file");
    }
    return WAL_OK;
}

void wal__rewind_unlock(struct wal__core *core)
{
    const struct wal__io *io = core->env.io;
    int ignored = 0;

    (void)!io->lock(io->ctx, core->control.file, WAL__LOCK_REWIND, WAL__IO_LOCK_NONE, &ignored);
    pthread_mutex_unlock(&core->rewind_mutex);
}

/* --- a job --------------------------------------------------------------- */

void wal__rewind_job_init(struct wal__rewind_job *job, struct wal_session *session)
{
    const struct wal__heap *heap = session->core->env.heap;

    memset(job, 0, sizeof(*job));
    job->session = session;
    job->io = session->core->env.io->worktree;
    wal__buf_init(&job->undo, heap);
    wal__buf_init(&job->directories, heap);
    wal__files_init(&job->all, heap);
    wal__files_init(&job->before, heap);
    wal__files_init(&job->after, heap);
}

void wal__rewind_job_deinit(struct wal__rewind_job *job)
{
    wal__rewind_contents_destroy(job->contents, job->session->core->env.heap);
    if (job->worktree != NULL) {
        job->io->close_root(job->io->ctx, job->worktree);
    }
    wal__buf_deinit(&job->undo);
    wal__buf_deinit(&job->directories);
    wal__files_deinit(&job->all);
    wal__files_deinit(&job->before);
    wal__files_deinit(&job->after);
    wal__session_free(job->owner);
}

enum wal_status wal__rewind_job_open(struct wal__rewind_job *job, struct wal_error *error)
{
    enum wal_status status;
    int err = 0;

    WAL__ASSERT(job->worktree == NULL);
    if (job->io == NULL) {
        return wal__fail_at(error, WAL_EINVAL, 0, job->root, 0,
                            "this environment has no file system");
    }
    status = job->io->open_root(job->io->ctx, job->root, &job->worktree, &err);
    return status == WAL_OK ? WAL_OK
                            : wal__worktree_fail(error, status, err, job->root,
                                                 "cannot open the root of the files");
}

/* --- the document -------------------------------------------------------- */

static enum wal_status put_text(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

/* Appends a member whose value is bytes in hexadecimal. */
static enum wal_status put_hex(struct wal__buf *out, const char *name, const void *data,
                               size_t size)
{
    uint8_t *at;

    if (put_text(out, ",\"") != WAL_OK || put_text(out, name) != WAL_OK ||
        put_text(out, "\":\"") != WAL_OK || wal__buf_reserve(out, 2 * size + 1, &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    wal__hex_write(data, size, (char *)at);
    at[2 * size] = '"';
    out->size += 2 * size + 1;
    return WAL_OK;
}

static enum wal_status rewind_journal_encode(const struct wal__rewind_job *job,
                                             struct wal__buf *value)
{
    const struct {
        const char *name;
        const void *data;
        size_t size;
    } members[] = {
        {"undo", job->undo.data, job->undo.size},
        {"before", job->before_list.bytes, WAL__DIGEST_SIZE},
        {"after", job->after_list.bytes, WAL__DIGEST_SIZE},
        {"root", job->root, strlen(job->root)},
        {"directories", job->directories.data, job->directories.size},
        {"headBefore", job->head_before, strlen(job->head_before)},
        {"headAfter", job->head_after, strlen(job->head_after)},
    };
    size_t count = job->head_after[0] == '\0' ? 5 : 7;
    enum wal_status status;
    char head[64];
    int size;

    WAL__ASSERT(job->undo.size > 0);
    WAL__ASSERT(strlen(job->temp_suffix) == WAL__REWIND_SUFFIX_SIZE);
    size = snprintf(head, sizeof(head), "{\"session\":%" PRIu32 ",\"mark\":\"%s\"",
                    job->session->number, job->temp_suffix);
    WAL__ASSERT(size > 0 && (size_t)size < sizeof(head));
    status = put_text(value, head);
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = put_hex(value, members[i].name, members[i].data, members[i].size);
    }
    return status == WAL_OK ? put_text(value, "}") : status;
}

/* Appends the decoded bytes of a hexadecimal member to out; at most `max`. */
static enum wal_status get_hex(const struct wal__buf *value, const char *name, size_t max,
                               struct wal__buf *out)
{
    struct wal__json_token token;
    enum wal_status status;
    uint8_t *at;
    size_t size;

    if (wal__json_find(value->data, value->size, name, &token) != WAL__JSON_OK ||
        token.kind != WAL__JSON_STRING || token.span.size % 2 != 0 ||
        token.span.size / 2 - 1 > max) {
        return WAL_ECORRUPT;
    }
    size = token.span.size / 2 - 1;
    status = wal__buf_reserve(out, size + 1, &at);
    if (status != WAL_OK) {
        return status;
    }
    if (!wal__hex_read(token.span.data + 1, size, at)) {
        return WAL_ECORRUPT;
    }
    out->size += size;
    return WAL_OK;
}

/* Decodes exactly `size` bytes of a member. */
static enum wal_status get_bytes(const struct wal__buf *value, const char *name, void *out,
                                 size_t size)
{
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, value->heap);
    status = get_hex(value, name, size, &bytes);
    if (status == WAL_OK && bytes.size != size) {
        status = WAL_ECORRUPT;
    }
    if (status == WAL_OK) {
        memcpy(out, bytes.data, size);
    }
    wal__buf_deinit(&bytes);
    return status;
}

/* Reads the number of the writing session, and the suffix of its temporary files (JSON key
 * "mark"). */
static enum wal_status get_header(const struct wal__buf *value, uint32_t *number,
                                  char suffix[WAL__REWIND_SUFFIX_SIZE + 1])
{
    uint8_t digits[WAL__REWIND_SUFFIX_SIZE / 2];
    struct wal__json_token token;
    int64_t session;

    if (wal__json_find(value->data, value->size, "session", &token) != WAL__JSON_OK ||
        token.kind != WAL__JSON_NUMBER || wal__json_integer(token.span, &session) != WAL__JSON_OK ||
        session < 0 || session > UINT32_MAX ||
        wal__json_find(value->data, value->size, "mark", &token) != WAL__JSON_OK ||
        token.span.size != WAL__REWIND_SUFFIX_SIZE + 2 ||
        !wal__hex_read(token.span.data + 1, sizeof(digits), digits)) {
        return WAL_ECORRUPT;
    }
    *number = (uint32_t)session;
    memcpy(suffix, token.span.data + 1, WAL__REWIND_SUFFIX_SIZE);
    suffix[WAL__REWIND_SUFFIX_SIZE] = '\0';
    return WAL_OK;
}

/* Decodes an entry id, which may be empty, and terminates it. */
static enum wal_status get_id(const struct wal__buf *value, const char *name, char out[WAL_ID_SIZE])
{
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, value->heap);
    status = get_hex(value, name, WAL__ID_MAX, &bytes);
    if (status == WAL_OK && bytes.size > 0) {
        memcpy(out, bytes.data, bytes.size);
    }
    out[bytes.size] = '\0';
    wal__buf_deinit(&bytes);
    return status;
}

/* Reads the members that a rewind with a move of the head has. */
static enum wal_status get_heads(const struct wal__buf *value, struct wal__rewind_job *job)
{
    struct wal__json_token token;
    enum wal_status status;

    if (wal__json_find(value->data, value->size, "headAfter", &token) != WAL__JSON_OK) {
        return WAL_OK;
    }
    status = get_id(value, "headBefore", job->head_before);
    return status == WAL_OK ? get_id(value, "headAfter", job->head_after) : status;
}

/* Reads the other members into the job. */
static enum wal_status get_job(const struct wal__buf *value, struct wal__rewind_job *job)
{
    struct wal__buf root;
    enum wal_status status;

    wal__buf_init(&root, value->heap);
    status = get_hex(value, "root", WAL__PATH_MAX - 1, &root);
    if (status != WAL_OK) {
        goto done;
    }
    if (memchr(root.data, '\0', root.size) != NULL) {
        status = WAL_ECORRUPT;
        goto done;
    }
    WAL__ASSERT(root.size < sizeof(job->root));
    memcpy(job->root, root.data, root.size);
    job->root[root.size] = '\0';
    status = get_hex(value, "undo", WAL__ID_MAX, &job->undo);
    if (status != WAL_OK) {
        goto done;
    }
    status = get_hex(value, "directories", SIZE_MAX, &job->directories);
    if (status != WAL_OK) {
        goto done;
    }
    if (job->directories.size > 0 && job->directories.data[job->directories.size - 1] != '\0') {
        status = WAL_ECORRUPT;
        goto done;
    }
    status = get_bytes(value, "before", job->before_list.bytes, WAL__DIGEST_SIZE);
    if (status != WAL_OK) {
        goto done;
    }
    status = get_bytes(value, "after", job->after_list.bytes, WAL__DIGEST_SIZE);
    if (status == WAL_OK) {
        status = get_heads(value, job);
    }
done:
    wal__buf_deinit(&root);
    return status;
}

/* --- finding the journal ------------------------------------------------- */

/* Reads the journal in the session's documents, which a fork may have inherited; *number is the
 * session that wrote it. */
static enum wal_status read_journal(struct wal_session *session, struct wal__buf *value,
                                    uint32_t *number, char suffix[WAL__REWIND_SUFFIX_SIZE + 1],
                                    struct wal_error *error)
{
    enum wal_status status = wal__reserved_doc_get(session, journal_key, value, NULL, error);

    if (status == WAL_OK) {
        status = get_header(value, number, suffix);
        if (status != WAL_OK) {
            (void)!wal__fail(error, status,
                             "the journal of a rewind is damaged: invalid session or "
                             "mark");
        }
    }
    return status;
}

/* Reads an inherited journal from the session that wrote it. It is valid while that session still
 * has it. */
static enum wal_status read_owner(struct wal_session *session, uint32_t number, const char *suffix,
                                  struct wal_session **owner, struct wal__buf *value,
                                  struct wal_error *error)
{
    char now[WAL__REWIND_SUFFIX_SIZE + 1];
    uint32_t writer = 0;
    enum wal_status status = wal__session_open(session->core, number, owner, error);

    if (status == WAL_OK) {
        status = read_journal(*owner, value, &writer, now, error);
    }
    if (status == WAL_OK && (writer != number || strcmp(now, suffix) != 0)) {
        status = WAL_ENOTFOUND;
    }
    return status;
}

/* Finds the journal. *owner, NULL on entry, is the session that wrote it if that is another one. */
static enum wal_status find_journal(struct wal_session *session, struct wal_session **owner,
                                    struct wal__buf *value,
                                    char suffix[WAL__REWIND_SUFFIX_SIZE + 1],
                                    struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    uint32_t number = 0;
    enum wal_status status = read_journal(session, value, &number, suffix, &own);

    if (status == WAL_OK && number != session->number) {
        status = read_owner(session, number, suffix, owner, value, &own);
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        wal__error_copy(error, &own);
    }
    return status;
}

enum wal_status wal__rewind_journal_exists(struct wal_session *session, bool *has,
                                           struct wal_error *error)
{
    struct wal_session *owner = NULL;
    char suffix[WAL__REWIND_SUFFIX_SIZE + 1];
    struct wal__buf value;
    enum wal_status status;

    wal__buf_init(&value, session->core->env.heap);
    status = find_journal(session, &owner, &value, suffix, error);
    wal__buf_deinit(&value);
    wal__session_free(owner);
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        *has = status == WAL_OK;
        return WAL_OK;
    }
    return status;
}

/* Loads the two lists that the journal names and restricts them to the same paths. */
static enum wal_status load_lists(struct wal__rewind_job *job, struct wal_error *error)
{
    struct wal__blob_store *blobs = &job->session->core->blobs;
    enum wal_status status = wal__files_load(&job->before, blobs, &job->before_list, error);

    if (status == WAL_OK) {
        wal__files_invalidate_fresh(&job->before, job->session->core->env.io);
        status = wal__files_load(&job->all, blobs, &job->after_list, error);
    }
    if (status == WAL_OK) {
        status = wal__files_filter(&job->after, &job->all, &job->before, true, error);
    }
    if (status == WAL_OK && job->after.count != job->before.count) {
        status = wal__fail(error, WAL_ECORRUPT,
                           "the journal of a rewind is damaged: its lists have different "
                           "paths");
    }
    return status;
}

enum wal_status wal__rewind_journal_load(struct wal__rewind_job *job, bool *found,
                                         struct wal_error *error)
{
    struct wal__buf value;
    enum wal_status status;

    WAL__ASSERT(job->owner == NULL && job->undo.size == 0);
    wal__buf_init(&value, job->session->core->env.heap);
    status = find_journal(job->session, &job->owner, &value, job->temp_suffix, error);
    if (status == WAL_ENOTFOUND) {
        *found = false;
        status = WAL_OK;
        goto done;
    }
    if (status != WAL_OK) {
        goto done;
    }
    if (job->owner != NULL) {
        job->session = job->owner;
    }
    status = get_job(&value, job);
    if (status == WAL_ENOMEM) {
        status = wal__no_memory(error);
    } else if (status != WAL_OK) {
        status = wal__fail(error, status, "the journal of a rewind is damaged");
    } else {
        status = load_lists(job, error);
    }
    if (status == WAL_OK) {
        *found = true;
    }
done:
    wal__buf_deinit(&value);
    return status;
}

/* --- writing ------------------------------------------------------------- */

enum wal_status wal__rewind_journal_delete(struct wal__rewind_job *job, bool undone,
                                           struct wal_error *error)
{
    const struct wal__span undo = {job->undo.data, job->undo.size};
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    struct wal_doc docs[2] = {{.struct_size = sizeof(docs[0]),
                               .flags = WAL_DOC_DELETE,
                               .key = wal__text_slice(journal_key)},
                              {.struct_size = sizeof(docs[1]), .flags = WAL_DOC_DELETE}};
    struct wal_batch batch = {.struct_size = sizeof(batch), .documents = docs, .document_count = 2};
    enum wal_status status = WAL_ENOTFOUND;

    WAL__ASSERT(undo.size <= WAL__ID_MAX);
    if (undone && undo.size > 0) {
        docs[1].key = wal__text_slice(wal__checkpoint_key(undo, key_buffer));
        status =
            wal__reserved_commit(job->session, &batch, WAL__BATCH_PLAIN, WAL_WRITTEN, NULL, error);
    }
    /* The checkpoint may be deleted already. */
    if (status == WAL_ENOTFOUND) {
        batch.document_count = 1;
        status =
            wal__reserved_commit(job->session, &batch, WAL__BATCH_PLAIN, WAL_WRITTEN, NULL, error);
    }
    return status;
}

/* The move of the head as a batch has it; it expects head_before. */
static struct wal_head head_move(const struct wal__rewind_job *job)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .flags = WAL_HEAD_EXPECT,
                                  .entry_id = {job->head_after, strlen(job->head_after)},
                                  .expected = {job->head_before, strlen(job->head_before)}};

    WAL__ASSERT(job->head_after[0] != '\0');
    return head;
}

enum wal_status wal__rewind_finish(struct wal__rewind_job *job, struct wal_error *error)
{
    const struct wal_doc journal = {.struct_size = sizeof(journal),
                                    .flags = WAL_DOC_DELETE,
                                    .key = wal__text_slice(journal_key)};
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &journal, .document_count = 1, .head_count = 1};
    struct wal_head head;

    if (job->head_after[0] == '\0') {
        return wal__rewind_journal_delete(job, false, error);
    }
    head = head_move(job);
    batch.heads = &head;
    return wal__reserved_commit(job->session, &batch, WAL__BATCH_PLAIN, WAL_DURABLE, NULL, error);
}

/* Generates the id of the undo checkpoint and the suffix of temporary files. */
static enum wal_status generate_names(struct wal__rewind_job *job, struct wal_error *error)
{
    const struct wal__env *env = &job->session->core->env;
    uint8_t temp_suffix[WAL__REWIND_SUFFIX_SIZE / 2];
    char id[WAL__UUID_TEXT];

    wal__text_uuid(env, id);
    if (wal__buf_append(&job->undo, id, sizeof(id)) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__random_bytes(env->random, env->io, temp_suffix, sizeof(temp_suffix));
    wal__hex_write(temp_suffix, sizeof(temp_suffix), job->temp_suffix);
    return WAL_OK;
}

/* Captures the files of `before` and stores their contents. */
static enum wal_status capture_files(const struct wal__rewind_job *job, struct wal__files *files,
                                     struct wal__blob_put_result *result, struct wal_error *error)
{
    struct wal__capture capture = {.env = &job->session->core->env,
                                   .io = job->io,
                                   .worktree = job->worktree,
                                   .blobs = &job->session->core->blobs,
                                   .baselines = {&job->before},
                                   .baseline_count = 1,
                                   .names = &job->all};
    enum wal_status status = wal__files_filter(files, &job->before, &job->before, true, error);

    if (status == WAL_OK && files->count > 0) {
        WAL__ASSERT(files->count == job->before.count);
        status = wal__capture(&capture, files, error);
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        if (!wal__file_state_equal(&files->items[i], &job->before.items[i])) {
            status = wal__fail_at(error, WAL_ECHANGED, 0, wal__file_path(&files->items[i]), 0,
                                  "another program changed the file during the rewind; call "
                                  "rewind again");
        }
    }
    *result = capture.result;
    return status;
}

/* Appends the document of the undo checkpoint to `value`. */
static enum wal_status encode_checkpoint(const struct wal__rewind_job *job,
                                         const struct wal__files *files,
                                         const struct wal__blob_put_result *result,
                                         struct wal__buf *value, struct wal_error *error)
{
    const struct wal__io *io = job->session->core->env.io;
    const struct wal__span id = {job->undo.data, job->undo.size};
    const struct wal__span root = {(const uint8_t *)job->root, strlen(job->root)};
    const struct wal__span entry = {(const uint8_t *)job->head_before, strlen(job->head_before)};
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

/* Commits the checkpoint, whose id must be unused, and in the same batch the journal, or without
 * files the move of the head. */
static enum wal_status commit_values(const struct wal__rewind_job *job,
                                     const struct wal__buf *checkpoint,
                                     const struct wal__buf *journal, struct wal_error *error)
{
    const struct wal__span id = {job->undo.data, job->undo.size};
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    const struct wal_doc docs[2] = {{.struct_size = sizeof(docs[0]),
                                     .key = wal__text_slice(wal__checkpoint_key(id, key_buffer)),
                                     .value = {checkpoint->data, checkpoint->size},
                                     .flags = WAL_DOC_EXPECT},
                                    {.struct_size = sizeof(docs[1]),
                                     .key = wal__text_slice(journal_key),
                                     .value = {journal->data, journal->size}}};
    struct wal_batch batch = {.struct_size = sizeof(batch), .documents = docs, .document_count = 2};
    struct wal_head head;
    enum wal_status status;

    if (job->before.count == 0) {
        head = head_move(job);
        batch.document_count = 1;
        batch.heads = &head;
        batch.head_count = 1;
    }
    status = wal__reserved_commit(job->session, &batch, WAL__BATCH_PLAIN, WAL_DURABLE, NULL, error);
    return status == WAL_ECONFLICT ? wal__fail(error, WAL_ECHANGED,
                                               "the head was moved during the rewind; call rewind "
                                               "again")
                                   : status;
}

static enum wal_status commit(const struct wal__rewind_job *job, const struct wal__files *files,
                              const struct wal__blob_put_result *result, struct wal_error *error)
{
    struct wal__buf checkpoint;
    struct wal__buf journal;
    enum wal_status status;

    wal__buf_init(&checkpoint, files->heap);
    wal__buf_init(&journal, files->heap);
    status = encode_checkpoint(job, files, result, &checkpoint, error);
    if (status == WAL_OK && rewind_journal_encode(job, &journal) != WAL_OK) {
        status = wal__no_memory(error);
    }
    if (status == WAL_OK) {
        status = commit_values(job, &checkpoint, &journal, error);
    }
    wal__buf_deinit(&journal);
    wal__buf_deinit(&checkpoint);
    return status;
}

enum wal_status wal__rewind_save_undo(struct wal__rewind_job *job, struct wal_error *error)
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
    status = wal__files_store(&files, &core->blobs, NULL, &job->before_list, &result, error);
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
