/*
 * view_lock.c - acquires and releases the lock of a view (view_lock.h, SPEC.md
 * 10.4).
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/model/model_table.h"
#include "convert/state/view_place.h"
#include "format/bytes/assert.h"

/* Opens the directory of the state, and that of temporary files, which is on
 * the file system of the root. */
static enum wal_status open_directories(struct wal_view *view,
                                        struct wal_error *error)
{
    struct wal__view_files *files = &view->files;
    const char *name = NULL;
    char place[PATH_MAX];
    enum wal_status status =
        wal__view_fs_open_parent(&view->env, view->root, "lock", true,
                                 &files->temporary_dir, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    files->prefix = wal__view_place(view->root, place) ? ".agentwal-" : "";
    if (files->prefix[0] != '\0') {
        return wal__view_fs_open_parent(&view->env, place, "lock", true,
                                        &files->state_dir, &name, error);
    }
    close(files->temporary_dir);
    files->temporary_dir = -1;
    status = wal__view_fs_open_parent(&view->env, view->root,
                                      WAL__VIEW_STATE_DIR "/lock", true,
                                      &files->state_dir, &name, error);
    if (status == WAL_OK) {
        files->temporary_dir = fcntl(files->state_dir, F_DUPFD_CLOEXEC, 0);
    }
    return status != WAL_OK || files->temporary_dir >= 0
               ? status
               : wal__view_fs_fail(error, WAL__VIEW_STATE_DIR);
}

static enum wal_status lock_byte(struct wal__view_lock *view_lock,
                                 struct wal_error *error)
{
    struct wal_view *view = view_lock->view;
    struct wal__json_span key = {(const uint8_t *)view->key, strlen(view->key)};
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    enum wal_status status = open_directories(view, error);
    int answer = -1;

    if (status != WAL_OK) {
        return status;
    }
    byte.l_start = (off_t)(wal__model_hash(0, key) >> 2);
    view_lock->lock_fd =
        openat(view->files.state_dir, "lock",
               O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (view_lock->lock_fd >= 0) {
        do {
            answer = fcntl(view_lock->lock_fd, F_OFD_SETLKW, &byte);
        } while (answer != 0 && errno == EINTR);
    }
    return answer == 0 ? WAL_OK
                       : wal__view_fs_fail(error, WAL__VIEW_STATE_DIR "/lock");
}

/* Removes the temporary files of interrupted flushes, that of the state too. */
static void remove_temporary_files(struct wal_view *view)
{
    char name[WAL__VIEW_NAME_SIZE];

    for (unsigned i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%s%s.%u.tmp", view->files.prefix,
                 view->key, i);
        (void)wal__view_fs_remove(&view->env, view->files.temporary_dir, name);
    }
    snprintf(name, sizeof(name), "%s.8.tmp", view->key);
    (void)wal__view_fs_remove(&view->env, view->files.state_dir, name);
}

void wal__view_invalidate(struct wal_view *view)
{
    wal__converter_deinit(&view->convert);
    wal__view_files_clear(&view->files);
    view->position = (struct wal__view_position){.is_known = false};
}

static enum wal_status load_state(struct wal__view_lock *view_lock,
                                  struct wal_error *error)
{
    struct wal_view *view = view_lock->view;
    struct stat stat;
    struct wal__file_stamp stamp;

    if (view->position.is_known &&
        fstatat(view->files.state_dir, view_lock->state, &stat,
                AT_SYMLINK_NOFOLLOW) == 0) {
        stamp.size = (uint64_t)stat.st_size;
        stamp.inode = (uint64_t)stat.st_ino;
        stamp.mtime_ns =
            (int64_t)stat.st_mtim.tv_sec * 1000000000 + stat.st_mtim.tv_nsec;
        if (wal__file_stamp_equal(&stamp, &view->state)) {
            return WAL_OK;
        }
    }
    wal__view_invalidate(view);
    remove_temporary_files(view);
    return wal__view_state_read(view_lock->state, &view->identity, &view->files,
                                &view->position, &view->state, error);
}

enum wal_status wal__view_lock_acquire(struct wal__view_lock *view_lock,
                                       struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(view_lock->lock_fd < 0);
    WAL__ASSERT(view_lock->view->files.state_dir < 0);
    snprintf(view_lock->state, sizeof(view_lock->state), "%s.json",
             view_lock->view->key);
    status = lock_byte(view_lock, error);
    return status == WAL_OK ? load_state(view_lock, error) : status;
}

enum wal_status
wal__view_lock_save_state(struct wal__view_lock *view_lock,
                          const struct wal__view_position *position,
                          bool is_durable, struct wal_error *error)
{
    struct wal_view *view = view_lock->view;

    WAL__ASSERT(view_lock->lock_fd >= 0);
    return wal__view_state_write(view_lock->state, &view->identity,
                                 &view->files, position, is_durable,
                                 &view->state, error);
}

void wal__view_lock_release(struct wal__view_lock *view_lock)
{
    struct wal__view_files *files = &view_lock->view->files;

    if (view_lock->lock_fd >= 0) {
        close(view_lock->lock_fd);
        view_lock->lock_fd = -1;
    }
    if (files->state_dir >= 0) {
        close(files->state_dir);
        files->state_dir = -1;
    }
    if (files->temporary_dir >= 0) {
        close(files->temporary_dir);
        files->temporary_dir = -1;
    }
}
