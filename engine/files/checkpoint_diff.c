/*
 * checkpoint_diff.c - computes the changes of files between checkpoints
 * (checkpoint_diff.h). Any thread.
 */
#include "engine/files/checkpoint_diff.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/files/checkpoint_document.h"
#include "format/bytes/assert.h"

/* --- two checkpoints, or one and the disk -------------------------------- */

struct diff {
    struct wal_session *session;
    struct wal__checkpoint checkpoint;
    struct wal__files before;
    struct wal__files after;
};

static enum wal_status diff_lists(struct diff *diff, struct wal__span id,
                                  struct wal__changes *changes,
                                  struct wal_error *error)
{
    const struct wal__content_source blobs = {.blobs =
                                                  &diff->session->core->blobs};
    enum wal_status status = wal__checkpoint_load(
        diff->session, id, &diff->checkpoint, &diff->after, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__changes_compute(&diff->before, &diff->after, changes, error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__changes_diffstat(&diff->session->core->env, changes, &blobs,
                                 &blobs, error);
}

/* Captures the current states of the files without storing contents. */
static enum wal_status scan_worktree(struct diff *diff,
                                     const struct wal__content_source *disk,
                                     struct wal_error *error)
{
    struct wal__capture capture = {.env = &diff->session->core->env,
                                   .io = disk->io,
                                   .worktree = disk->worktree,
                                   .baselines = {&diff->before},
                                   .baseline_count = 1};
    const struct wal__files none = {0};
    enum wal_status status =
        wal__files_filter(&diff->after, &diff->before, &none, false, error);

    return status == WAL_OK ? wal__capture(&capture, &diff->after, error)
                            : status;
}

static enum wal_status diff_worktree(struct diff *diff,
                                     struct wal__changes *changes,
                                     struct wal_error *error)
{
    struct wal__core *core = diff->session->core;
    const struct wal__content_source blobs = {.blobs = &core->blobs};
    struct wal__content_source disk = {.io = core->env.io->worktree};
    const char *root = wal__checkpoint_root(&diff->checkpoint);
    int sys_errno = 0;
    enum wal_status status;

    if (disk.io == NULL) {
        return wal__fail_at(error, WAL_EINVAL, 0, root, 0,
                            "this environment has no file system");
    }
    status = disk.io->open_root(disk.io->ctx, root, &disk.worktree, &sys_errno);
    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, sys_errno, root,
                                  "opening the root directory");
    }
    status = scan_worktree(diff, &disk, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__changes_compute(&diff->before, &diff->after, changes, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__changes_diffstat(&diff->session->core->env, changes, &blobs,
                                   &disk, error);
done:
    disk.io->close_root(disk.io->ctx, disk.worktree);
    return status;
}

enum wal_status wal__checkpoint_diff(struct wal_session *session,
                                     struct wal__span before,
                                     struct wal__span after,
                                     struct wal__changes *changes,
                                     struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct diff diff = {.session = session};
    enum wal_status status;

    WAL__ASSERT(changes->count == 0);
    wal__checkpoint_init(&diff.checkpoint, heap);
    wal__files_init(&diff.before, heap);
    wal__files_init(&diff.after, heap);
    status = wal__checkpoint_load(session, before, &diff.checkpoint,
                                  &diff.before, error);
    if (status == WAL_OK) {
        status = after.size > 0 ? diff_lists(&diff, after, changes, error)
                                : diff_worktree(&diff, changes, error);
    }
    if (status != WAL_OK) {
        wal__changes_deinit(changes);
    }
    wal__checkpoint_deinit(&diff.checkpoint);
    wal__files_deinit(&diff.before);
    wal__files_deinit(&diff.after);
    return status;
}

/* --- a whole session ----------------------------------------------------- */

/* The first and the last state of each path so far, under absolute paths, since
 * roots may differ. */
struct history {
    struct wal__files first;
    struct wal__files last;
};

/* Replaces *list by the merge of two lists. */
static enum wal_status merge_into(struct wal__files *list,
                                  const struct wal__files *over,
                                  const struct wal__files *under,
                                  struct wal_error *error)
{
    struct wal__files merged;
    enum wal_status status;

    wal__files_init(&merged, list->heap);
    status = wal__files_merge(&merged, over, under, error);
    if (status == WAL_OK) {
        WAL__ASSERT(merged.count >= over->count);
        WAL__ASSERT(merged.count >= under->count);
        wal__files_deinit(list);
        *list = merged;
    }
    return status;
}

static enum wal_status add_list(struct history *history,
                                const struct wal__files *files,
                                struct wal_error *error)
{
    enum wal_status status =
        merge_into(&history->first, &history->first, files, error);

    return status == WAL_OK
               ? merge_into(&history->last, files, &history->last, error)
               : status;
}

static enum wal_status add_checkpoint(struct history *history,
                                      struct wal__blob_store *blobs,
                                      const struct wal__checkpoint *checkpoint,
                                      struct wal_error *error)
{
    struct wal__files files;
    struct wal__files absolute;
    enum wal_status status;

    wal__files_init(&files, history->first.heap);
    wal__files_init(&absolute, history->first.heap);
    status = wal__files_load(&files, blobs, &checkpoint->list, error);
    if (status != WAL_OK) {
        goto done;
    }
    status =
        wal__files_make_absolute(&absolute, &files, checkpoint->root, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = add_list(history, &absolute, error);
done:
    wal__files_deinit(&files);
    wal__files_deinit(&absolute);
    return status;
}

/* Adds all checkpoints, oldest first; *root becomes the root of the last
 * one. */
static enum wal_status add_checkpoints(struct history *history,
                                       struct wal_session *session,
                                       struct wal__buf *root,
                                       struct wal_error *error)
{
    struct wal_checkpoint_cursor *checkpoints;
    const struct wal__checkpoint *checkpoint;
    enum wal_status status =
        wal__checkpoint_cursor_open(session, &checkpoints, error);

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = wal__checkpoint_cursor_next(checkpoints, &checkpoint, error);
        if (status == WAL_OK) {
            status = add_checkpoint(history, &session->core->blobs, checkpoint,
                                    error);
        }
        if (status == WAL_OK) {
            root->size = 0;
            status = wal__buf_append(root, checkpoint->root.data,
                                     checkpoint->root.size);
        }
    } while (status == WAL_OK);
    wal__checkpoint_cursor_close(checkpoints);
    if (status == WAL_ENOMEM) {
        wal__fail(error, status, "no memory");
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Makes paths below the root relative to it. */
static void strip_root(struct wal__changes *changes,
                       const struct wal__buf *root)
{
    size_t size = root->size - (root->size == 1); /* the root is "/" */

    WAL__ASSERT(root->size > 0 || changes->count == 0);
    for (uint32_t i = 0; i < changes->count; i++) {
        struct wal__span *path = &changes->items[i].path;

        if (path->size > size + 1 && path->data[size] == '/' &&
            memcmp(path->data, root->data, size) == 0) {
            path->data += size + 1;
            path->size -= size + 1;
            changes->items[i].before.path = *path;
            changes->items[i].after.path = *path;
        }
    }
}

enum wal_status wal__session_changes(struct wal_session *session,
                                     struct wal__changes *changes,
                                     struct wal_error *error)
{
    const struct wal__content_source blobs = {.blobs = &session->core->blobs};
    const struct wal__heap *heap = session->core->env.heap;
    struct history history;
    struct wal__buf root;
    enum wal_status status;

    WAL__ASSERT(changes->count == 0);
    wal__files_init(&history.first, heap);
    wal__files_init(&history.last, heap);
    wal__buf_init(&root, heap);
    status = add_checkpoints(&history, session, &root, error);
    if (status != WAL_OK) {
        goto done;
    }
    status =
        wal__changes_compute(&history.first, &history.last, changes, error);
    if (status != WAL_OK) {
        goto done;
    }
    strip_root(changes, &root);
    status = wal__changes_diffstat(&session->core->env, changes, &blobs, &blobs,
                                   error);
done:
    if (status != WAL_OK) {
        wal__changes_deinit(changes);
    }
    wal__files_deinit(&history.first);
    wal__files_deinit(&history.last);
    wal__buf_deinit(&root);
    return status;
}
