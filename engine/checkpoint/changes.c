/*
 * changes.c - changes of files as checkpoints tell them (changes.h).
 */
#include "engine/checkpoint/changes.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/checkpoint/checkpoint_parts.h"

/* --- two checkpoints, or one and the disk --------------------------------- */

/* A list and what it is compared with. */
struct sides {
    struct wal_session *session;
    struct wal__checkpoint checkpoint;
    struct wal__files before;
    struct wal__files after;
};

static enum wal_status compare_lists(struct sides *sides, struct wal__span id,
                                     struct wal__changes *changes,
                                     struct wal_error *error)
{
    const struct wal__contents blobs = {.blobs = &sides->session->core->blobs};
    enum wal_status status = wal__checkpoint_load(
        sides->session, id, &sides->checkpoint, &sides->after, error);

    if (status == WAL_OK) {
        status = wal__compare(&sides->before, &sides->after, changes, error);
    }
    return status == WAL_OK ? wal__changes_count(&sides->session->core->env,
                                                 changes, &blobs, &blobs, error)
                            : status;
}

/* The states of the files as they are, without keeping contents. */
static enum wal_status look_at_disk(struct sides *sides,
                                    const struct wal__contents *disk,
                                    struct wal_error *error)
{
    struct wal__collect collect = {.env = &sides->session->core->env,
                                   .io = disk->io,
                                   .tree = disk->tree,
                                   .earlier = {&sides->before},
                                   .earlier_count = 1};
    const struct wal__files none = {0};
    enum wal_status status =
        wal__files_among(&sides->after, &sides->before, &none, false, error);

    return status == WAL_OK ? wal__collect(&collect, &sides->after, error)
                            : status;
}

static enum wal_status compare_disk(struct sides *sides,
                                    struct wal__changes *changes,
                                    struct wal_error *error)
{
    struct wal__core *core = sides->session->core;
    const struct wal__contents blobs = {.blobs = &core->blobs};
    struct wal__contents disk = {.io = core->env.io->tree};
    const char *root = wal__checkpoint_root(&sides->checkpoint);
    int sys_errno = 0;
    enum wal_status status;

    if (disk.io == NULL) {
        return wal__fail(error, WAL_EINVAL, 0, root, 0,
                         "there is no file system");
    }
    status = disk.io->open_root(disk.io->ctx, root, &disk.tree, &sys_errno);
    if (status != WAL_OK) {
        return wal__tree_fail(error, status, sys_errno, root,
                              "opening the root");
    }
    status = look_at_disk(sides, &disk, error);
    if (status == WAL_OK) {
        status = wal__compare(&sides->before, &sides->after, changes, error);
    }
    if (status == WAL_OK) {
        status = wal__changes_count(&sides->session->core->env, changes, &blobs,
                                    &disk, error);
    }
    disk.io->close_root(disk.io->ctx, disk.tree);
    return status;
}

enum wal_status wal__checkpoint_diff(struct wal_session *session,
                                     struct wal__span before,
                                     struct wal__span after,
                                     struct wal__changes *changes,
                                     struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct sides sides = {.session = session};
    enum wal_status status;

    wal__checkpoint_init(&sides.checkpoint, heap);
    wal__files_init(&sides.before, heap);
    wal__files_init(&sides.after, heap);
    status = wal__checkpoint_load(session, before, &sides.checkpoint,
                                  &sides.before, error);
    if (status == WAL_OK) {
        status = after.size > 0 ? compare_lists(&sides, after, changes, error)
                                : compare_disk(&sides, changes, error);
    }
    if (status != WAL_OK) {
        wal__changes_deinit(changes);
    }
    wal__checkpoint_deinit(&sides.checkpoint);
    wal__files_deinit(&sides.before);
    wal__files_deinit(&sides.after);
    return status;
}

/* --- a session ----------------------------------------------------------- */

/* Each path's first and last state so far, under its absolute path: roots may
 * differ. */
struct history {
    struct wal__files first;
    struct wal__files last;
};

/* Puts a merge of two lists in the place of *list. */
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
                                      struct wal__blobs *blobs,
                                      const struct wal__checkpoint *checkpoint,
                                      struct wal_error *error)
{
    struct wal__files files;
    struct wal__files absolute;
    enum wal_status status;

    wal__files_init(&files, history->first.heap);
    wal__files_init(&absolute, history->first.heap);
    status = wal__files_load(&files, blobs, &checkpoint->list, error);
    if (status == WAL_OK) {
        status = wal__files_prefix(&absolute, &files, checkpoint->root, error);
    }
    if (status == WAL_OK) {
        status = add_list(history, &absolute, error);
    }
    wal__files_deinit(&files);
    wal__files_deinit(&absolute);
    return status;
}

/* All checkpoints, oldest first; the root of the last one goes to *root. */
static enum wal_status add_all(struct history *history,
                               struct wal_session *session,
                               struct wal__buf *root, struct wal_error *error)
{
    struct wal_checkpoints *checkpoints;
    const struct wal__checkpoint *checkpoint;
    enum wal_status status =
        wal__checkpoints_open(session, &checkpoints, error);

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = wal__checkpoints_next(checkpoints, &checkpoint, error);
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
    wal__checkpoints_close(checkpoints);
    if (status == WAL_ENOMEM) {
        wal__fail(error, status, 0, NULL, 0, "no memory");
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Paths below the root are told from there. */
static void strip(struct wal__changes *changes, const struct wal__buf *root)
{
    size_t size = root->size - (root->size == 1); /* the root of all */

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
    const struct wal__contents blobs = {.blobs = &session->core->blobs};
    const struct wal__heap *heap = session->core->env.heap;
    struct history history;
    struct wal__buf root;
    enum wal_status status;

    wal__files_init(&history.first, heap);
    wal__files_init(&history.last, heap);
    wal__buf_init(&root, heap);
    status = add_all(&history, session, &root, error);
    if (status == WAL_OK) {
        status = wal__compare(&history.first, &history.last, changes, error);
    }
    if (status == WAL_OK) {
        strip(changes, &root);
        status = wal__changes_count(&session->core->env, changes, &blobs,
                                    &blobs, error);
    }
    if (status != WAL_OK) {
        wal__changes_deinit(changes);
    }
    wal__files_deinit(&history.first);
    wal__files_deinit(&history.last);
    wal__buf_deinit(&root);
    return status;
}
