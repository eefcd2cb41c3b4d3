/*
 * folder_watch.c - notifications from inotify (folder_watch.h).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/follow/folder_watch.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/heap.h"

#define EVENTS                                                              \
    (IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | \
     IN_DELETE_SELF | IN_MOVE_SELF)
#define HOW          (IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
#define BUFFER_SIZE  65536
#define DEAD_WATCHES 64 /* that are kept in the list at least */

void wal__folder_watch_init(struct wal__folder_watch *watch,
                            const struct wal__heap *heap)
{
    *watch = (struct wal__folder_watch){
        .heap = heap, .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    if (watch->fd < 0) {
        watch->needs_scans = true;
        watch->sys_errno = errno;
    }
}

void wal__folder_watch_deinit(struct wal__folder_watch *watch)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        wal__heap_free(watch->heap, watch->folders[i].path);
    }
    wal__heap_free(watch->heap, watch->folders);
    if (watch->fd >= 0) {
        close(watch->fd);
    }
    watch->fd = -1;
    watch->folders = NULL;
    watch->count = 0;
}

/* Returns the index of the first folder whose descriptor is not smaller. New
 * descriptors are larger than all before. */
static uint32_t find_index(const struct wal__folder_watch *watch, int wd)
{
    uint32_t low = 0;
    uint32_t high = watch->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (watch->folders[middle].wd < wd) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct wal__folder *find_folder(const struct wal__folder_watch *watch,
                                       int wd)
{
    uint32_t index = find_index(watch, wd);

    return index < watch->count && watch->folders[index].wd == wd &&
                   watch->folders[index].path != NULL
               ? &watch->folders[index]
               : NULL;
}

static void forget(struct wal__folder_watch *watch, struct wal__folder *folder)
{
    wal__heap_free(watch->heap, folder->path);
    folder->path = NULL;
}

uint32_t wal__folder_watch_count(const struct wal__folder_watch *watch)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < watch->count; i++) {
        count += watch->folders[i].path != NULL ? 1 : 0;
    }
    return count;
}

/* Removes the folders that are no longer watched from the list. */
static void compact(struct wal__folder_watch *watch)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->folders[i].path != NULL) {
            watch->folders[kept++] = watch->folders[i];
        }
    }
    watch->count = kept;
}

static enum wal_status insert(struct wal__folder_watch *watch,
                              const struct wal__folder *folder,
                              struct wal_error *error)
{
    uint32_t index = find_index(watch, folder->wd);
    struct wal__folder *folders;

    if (index < watch->count && watch->folders[index].wd == folder->wd) {
        wal__heap_free(watch->heap, watch->folders[index].path);
        watch->folders[index] = *folder;
        return WAL_OK;
    }
    folders = wal__heap_grow_array(watch->heap, watch->folders, watch->count,
                                   &watch->capacity, sizeof(folders[0]));
    if (folders == NULL) {
        wal__heap_free(watch->heap, folder->path);
        return wal__no_memory(error);
    }
    watch->folders = folders;
    memmove(&folders[index + 1], &folders[index],
            (watch->count - index) * sizeof(folders[0]));
    folders[index] = *folder;
    watch->count++;
    return WAL_OK;
}

enum wal_status wal__folder_watch_add(struct wal__folder_watch *watch,
                                      const char *name,
                                      const struct wal__folder *folder,
                                      struct wal_error *error)
{
    struct wal__folder added = *folder;

    if (watch->fd < 0) {
        return WAL_OK;
    }
    added.wd = inotify_add_watch(watch->fd, name, EVENTS | HOW);
    if (added.wd < 0) {
        /* A folder that is gone has nothing to report. */
        if (errno != ENOENT && errno != ENOTDIR) {
            watch->needs_scans = true;
            watch->sys_errno = errno;
        }
        return WAL_OK;
    }
    added.path =
        wal__heap_copy_text(watch->heap, folder->path, strlen(folder->path));
    return added.path != NULL ? insert(watch, &added, error)
                              : wal__no_memory(error);
}

/* Returns true if the path is the folder, or below it. */
static bool is_at_or_below(const char *path, const char *folder, size_t size)
{
    return strncmp(path, folder, size) == 0 &&
           (path[size] == '\0' || path[size] == '/');
}

/* A folder was moved away: those below it have other paths now. */
static void forget_below(struct wal__folder_watch *watch, uint32_t argument,
                         const char *parent, const char *name)
{
    size_t parent_size = strlen(parent);
    size_t size = strlen(name);
    uint32_t dead = 0;

    for (uint32_t i = 0; i < watch->count; i++) {
        struct wal__folder *folder = &watch->folders[i];
        const char *below = folder->path;

        if (below != NULL && folder->argument == argument &&
            is_at_or_below(below, parent, parent_size)) {
            below += parent_size;
            below += *below == '/' ? 1 : 0;
            if (is_at_or_below(below, name, size)) {
                (void)inotify_rm_watch(watch->fd, folder->wd);
                forget(watch, folder);
            }
        }
        dead += folder->path == NULL ? 1 : 0;
    }
    if (dead > DEAD_WATCHES && dead > watch->count / 2) {
        compact(watch);
    }
}

static enum wal_status handle(struct wal__folder_watch *watch,
                              const struct inotify_event *event,
                              wal__folder_change_fn *change, void *ctx,
                              struct wal_error *error)
{
    struct wal__folder *folder;
    const char *name = event->len > 0 ? event->name : "";

    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        watch->loses_events = true;
        return WAL_OK;
    }
    folder = find_folder(watch, event->wd);
    if (folder == NULL) {
        return WAL_OK;
    }
    if ((event->mask & IN_IGNORED) != 0) {
        forget(watch, folder);
        return WAL_OK;
    }
    if ((event->mask & (IN_MOVED_FROM | IN_ISDIR)) ==
        (IN_MOVED_FROM | IN_ISDIR)) {
        forget_below(watch, folder->argument, folder->path, name);
        return WAL_OK;
    }
    if ((event->mask & (IN_MOVED_FROM | IN_DELETE_SELF)) != 0) {
        return WAL_OK;
    }
    if ((event->mask & IN_MOVE_SELF) != 0) {
        /* An argument that was moved away, or a folder whose new place was
         * reported by its parent. */
        watch->loses_events |= folder->path[0] == '\0';
        return WAL_OK;
    }
    return change(ctx, folder, name, error);
}

enum wal_status wal__folder_watch_read(struct wal__folder_watch *watch,
                                       wal__folder_change_fn *change, void *ctx,
                                       struct wal_error *error)
{
    alignas(struct inotify_event) char buffer[BUFFER_SIZE];
    enum wal_status status = WAL_OK;
    ssize_t got;

    while (watch->fd >= 0 && status == WAL_OK &&
           (got = read(watch->fd, buffer, sizeof(buffer))) > 0) {
        for (char *at = buffer; status == WAL_OK && at < buffer + got;) {
            const struct inotify_event *event = (void *)at;

            status = handle(watch, event, change, ctx, error);
            at += sizeof(*event) + event->len;
        }
    }
    return status;
}
