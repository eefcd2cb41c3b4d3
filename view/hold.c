/*
 * hold.c - a view in the hands of one call (SPEC.md 10.4).
 *
 * Threads: one thread at a time per view.
 */
#include "view/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/jsonl/model_table.h"

static enum wal_status lock(struct wal__hold *hold, struct wal_error *error)
{
    struct wal_view *view = hold->view;
    struct wal__json_span key = {(const uint8_t *)view->key, strlen(view->key)};
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    const char *name = NULL;
    enum wal_status status =
        wal__place_directory(&view->env, view->root, WAL__VIEW_FOLDER "/lock",
                             true, &view->files.folder, &name, error);
    int answer = -1;

    if (status != WAL_OK) {
        return status;
    }
    byte.l_start = (off_t)(wal__model_hash(0, key) >> 2);
    hold->lock = openat(view->files.folder, name,
                        O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (hold->lock >= 0) {
        do {
            answer = fcntl(hold->lock, F_OFD_SETLKW, &byte);
        } while (answer != 0 && errno == EINTR);
    }
    return answer == 0 ? WAL_OK
                       : wal__place_fail(error, WAL__VIEW_FOLDER "/lock");
}

/* Removes what a flush that was cut short has left beside. */
static void clear(struct wal_view *view)
{
    char name[WAL__VIEW_NAME_SIZE];

    for (unsigned i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%s.%u.tmp", view->key, i);
        wal__place_remove(&view->env, view->files.folder, name);
    }
}

void wal__view_forget(struct wal_view *view)
{
    wal__convert_deinit(&view->convert);
    wal__view_files_forget(&view->files);
    view->position = (struct wal__position){.is_known = false};
}

static enum wal_status load(struct wal__hold *hold, struct wal_error *error)
{
    struct wal_view *view = hold->view;
    struct stat stat;
    struct wal__stamp stamp;

    if (view->position.is_known && fstatat(view->files.folder, hold->state,
                                           &stat, AT_SYMLINK_NOFOLLOW) == 0) {
        stamp.size = (uint64_t)stat.st_size;
        stamp.inode = (uint64_t)stat.st_ino;
        stamp.mtime_ns =
            (int64_t)stat.st_mtim.tv_sec * 1000000000 + stat.st_mtim.tv_nsec;
        if (wal__stamp_equal(&stamp, &view->state)) {
            return WAL_OK;
        }
    }
    wal__view_forget(view);
    clear(view);
    return wal__state_read(hold->state, &view->subject, &view->files,
                           &view->position, &view->state, error);
}

enum wal_status wal__hold_take(struct wal__hold *hold, struct wal_error *error)
{
    enum wal_status status;

    snprintf(hold->state, sizeof(hold->state), "%s.json", hold->view->key);
    status = lock(hold, error);
    return status == WAL_OK ? load(hold, error) : status;
}

enum wal_status wal__hold_save(struct wal__hold *hold,
                               const struct wal__position *position,
                               bool is_durable, struct wal_error *error)
{
    struct wal_view *view = hold->view;

    return wal__state_write(hold->state, &view->subject, &view->files, position,
                            is_durable, &view->state, error);
}

void wal__hold_end(struct wal__hold *hold)
{
    struct wal__view_files *files = &hold->view->files;

    if (hold->lock >= 0) {
        close(hold->lock);
        hold->lock = -1;
    }
    if (files->folder >= 0) {
        close(files->folder);
        files->folder = -1;
    }
}
