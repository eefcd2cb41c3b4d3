/*
 * import_follow.c - wal_import_follow: imports what changes in folders (agentwal/import.h).
 *
 * Folders are watched before they are read, so that no change is missed. A change puts a path on a
 * list, each path once; what is at and below that path is scanned, and files that differ from their
 * stamp are imported. After lost events everything is scanned; where folders cannot be watched,
 * every few seconds.
 *
 * Folders. A watch is of one folder, not of those below it. Paths are relative to
 * one of the followed arguments. Of a session directory only the folders are watched that a client
 * changes with every message: two levels, without OpenCode's folders of parts, of which there is
 * one per message; the message's own file changes when it is complete.
 *
 * Stamps. The stamp of a file is the state of it that was imported, so that a scan reads only files
 * that changed. Names are compared by their 64-bit hash.
 *
 * Timers. What was busy, or changed while it was read, is read again shortly after, whether it
 * changes or not. A last line without a newline is imported when nothing follows it for a while.
 *
 * Invariants: a stamp is taken before the file is read, so that a later change differs from it.
 * Every change after a folder was added is reported, or loses_events or needs_scans is set.
 *
 * Threads: one thread at a time per follow.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agentwal.h"
#include "convert/clients/client.h"
#include "convert/files/view_fs.h"
#include "convert/import/import_tree.h"
#include "convert/import/walk.h"
#include "convert/source/source_name.h"
#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "engine/base/struct_size.h"
#include "engine/base/system.h"

/* --- folders that are watched -------------------------------------------- */

/* A watched folder. */
struct folder {
    uint64_t wd;       /* the number of its watch; a new one is higher than all before */
    uint32_t argument; /* index */
    char *path;        /* below the argument; owned. NULL: it is not watched any more */
    struct wal__place place;
    /* Its files are those of a session directory at this prefix of the path. */
    bool is_part;
    size_t unit_size;
};

struct folder_watch {
    const struct wal__heap *heap;
    int fd;                 /* -1: not available */
    struct folder *folders; /* ascending by wd */
    uint32_t count;
    uint32_t capacity;
    bool loses_events; /* events were lost: everything must be scanned again */
    bool needs_scans;  /* not every folder can be watched */
    int sys_errno;     /* why */
};

/* Receives a change: the name in the folder, empty for the folder itself. */
typedef enum wal_status folder_change_fn(void *ctx, const struct folder *folder, const char *name,
                                         struct wal_error *error);

static void folder_watch_init(struct folder_watch *watch, const struct wal__heap *heap)
{
    bool sees_writes = false;

    *watch = (struct folder_watch){.heap = heap, .fd = wal__system_watch_open(&sees_writes)};
    if (watch->fd < 0 || !sees_writes) {
        watch->needs_scans = true;
        watch->sys_errno = watch->fd < 0 ? errno : ENOTSUP;
    }
}

static void folder_watch_deinit(struct folder_watch *watch)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->folders[i].path != NULL) {
            wal__system_watch_remove(watch->fd, (int64_t)watch->folders[i].wd);
        }
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

static void forget_folder(struct folder_watch *watch, struct folder *folder)
{
    wal__heap_free(watch->heap, folder->path);
    folder->path = NULL;
}

/* Returns the number of folders that are watched. */
static uint32_t folder_watch_count(const struct folder_watch *watch)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < watch->count; i++) {
        count += watch->folders[i].path != NULL ? 1 : 0;
    }
    return count;
}

static uint32_t rank_of(const struct folder_watch *watch, uint64_t wd)
{
    return (uint32_t)wal__lower_bound(watch->folders, watch->count, sizeof(struct folder),
                                      offsetof(struct folder, wd), wd);
}

/* Makes room for one more: drops those that are not watched any more before the list grows. */
static bool make_room(struct folder_watch *watch)
{
    if (watch->count == watch->capacity) {
        uint32_t count = 0;

        for (uint32_t i = 0; i < watch->count; i++) {
            if (watch->folders[i].path != NULL) {
                watch->folders[count++] = watch->folders[i];
            }
        }
        watch->count = count;
    }
    return WAL__HEAP_GROW(watch->heap, watch->folders, watch->count, watch->capacity);
}

/* Keeps a copy of the folder, in the place of the one that had its descriptor before. */
static enum wal_status keep_folder(struct folder_watch *watch, const struct folder *folder,
                                   struct wal_error *error)
{
    char *path = wal__heap_copy_text(watch->heap, folder->path, strlen(folder->path));
    uint32_t at = rank_of(watch, folder->wd);

    if (path == NULL) {
        return wal__no_memory(error);
    }
    if (at < watch->count && watch->folders[at].wd == folder->wd) {
        forget_folder(watch, &watch->folders[at]);
    } else if (!make_room(watch)) {
        wal__heap_free(watch->heap, path);
        return wal__no_memory(error);
    } else {
        at = rank_of(watch, folder->wd);
        memmove(&watch->folders[at + 1], &watch->folders[at],
                (watch->count - at) * sizeof(watch->folders[0]));
        watch->count++;
    }
    watch->folders[at] = *folder;
    watch->folders[at].path = path;
    return WAL_OK;
}

/* Watches the folder at `name`, or notes that it has another path now. `folder` is copied.
 * WAL_ENOMEM. */
static enum wal_status folder_watch_add(struct folder_watch *watch, const char *name,
                                        const struct folder *folder, struct wal_error *error)
{
    char target[2 * WAL__CLIENT_PATH_SIZE];
    struct folder kept;
    int64_t wd;

    if (watch->fd < 0) {
        return WAL_OK;
    }
    wd = wal__system_watch_add(watch->fd, name);
    /* A link that the walk followed. */
    if (wd < 0 && errno == ENOTDIR &&
        snprintf(target, sizeof(target), "%s/.", name) < (int)sizeof(target)) {
        wd = wal__system_watch_add(watch->fd, target);
    }
    if (wd < 0) {
        /* A folder that is gone has nothing to report. */
        if (errno != ENOENT && errno != ENOTDIR) {
            watch->needs_scans = true;
            watch->sys_errno = errno;
        }
        return WAL_OK;
    }
    kept = *folder;
    kept.wd = (uint64_t)wd;
    return keep_folder(watch, &kept, error);
}

/* Returns true if the path is the folder, or below it. */
static bool is_at_or_below(const char *path, const char *folder, size_t size)
{
    return strncmp(path, folder, size) == 0 && (path[size] == '\0' || path[size] == '/');
}

/* A folder was moved away: those below it have other paths now. */
static void forget_below(struct folder_watch *watch, uint32_t argument, const char *parent,
                         const char *name)
{
    size_t parent_size = strlen(parent);
    size_t size = strlen(name);

    for (uint32_t i = 0; i < watch->count; i++) {
        struct folder *folder = &watch->folders[i];
        const char *below = folder->path;

        if (below != NULL && folder->argument == argument &&
            is_at_or_below(below, parent, parent_size)) {
            below += parent_size;
            below += *below == '/' ? 1 : 0;
            if (is_at_or_below(below, name, size)) {
                wal__system_watch_remove(watch->fd, (int64_t)folder->wd);
                forget_folder(watch, folder);
            }
        }
    }
}

/* To whom changes go. */
struct watch_reader {
    struct folder_watch *watch;
    folder_change_fn *change;
    void *ctx;
    struct wal_error *error;
};

/* A wal__system_watch_fn; returns an enum wal_status. */
static int handle_change(void *ctx, int64_t wd, enum wal__watch_change change, const char *name)
{
    const struct watch_reader *reader = ctx;
    struct folder_watch *watch = reader->watch;
    const uint32_t at = wd < 0 ? watch->count : rank_of(watch, (uint64_t)wd);
    struct folder *folder = at < watch->count ? &watch->folders[at] : NULL;

    if (change == WAL__WATCH_LOST) {
        watch->loses_events = true;
        return WAL_OK;
    }
    if (folder == NULL || folder->wd != (uint64_t)wd || folder->path == NULL) {
        return WAL_OK;
    }
    if (change == WAL__WATCH_NAME) {
        return reader->change(reader->ctx, folder, name, reader->error);
    }
    if (change == WAL__WATCH_ENDED) {
        forget_folder(watch, folder);
    } else if (change == WAL__WATCH_LEFT) {
        forget_below(watch, folder->argument, folder->path, name);
    } else {
        /* An argument that was moved away, or a folder whose new place was reported by its
         * parent. */
        watch->loses_events |= folder->path[0] == '\0';
    }
    return WAL_OK;
}

/* Reads the changes that there are, without waiting. */
static enum wal_status folder_watch_read(struct folder_watch *watch, folder_change_fn *change,
                                         void *ctx, struct wal_error *error)
{
    struct watch_reader reader = {watch, change, ctx, error};

    return watch->fd < 0
               ? WAL_OK
               : (enum wal_status)wal__system_watch_read(watch->fd, handle_change, &reader);
}

#define UNIT_DEPTH 2

/*
 * Watches a session directory at `path` below the argument, and the folders in it that a client
 * changes with every message: two levels, without OpenCode's folders of parts, of which there is
 * one per message; the message's own file changes when it is complete. `place` is that of the
 * folder around it.
 */
static enum wal_status watch_unit(struct folder_watch *watch, uint32_t argument, const char *name,
                                  const char *path, const struct wal__place *place,
                                  struct wal_error *error)
{
    char folder_path[2 * WAL__CLIENT_PATH_SIZE];
    const struct folder folder = {.argument = argument,
                                  .path = folder_path,
                                  .place = *place,
                                  .is_part = true,
                                  .unit_size = strlen(path)};
    struct wal__walk walk = {
        .heap = watch->heap, .argument = name, .follows = true, .folders_only = true};
    struct wal__walk_entry *entry = NULL;
    enum wal_status status;

    while ((status = wal__walk_next(&walk, &entry)) == WAL_OK && entry != NULL) {
        const char *below = entry->path + strlen(name);

        if (entry->kind != WAL__WALK_FOLDER) {
            continue;
        }
        below += strspn(below, "/");
        snprintf(folder_path, sizeof(folder_path), "%s%s%s", path,
                 path[0] != '\0' && below[0] != '\0' ? "/" : "", below);
        status = folder_watch_add(watch, entry->path, &folder, error);
        if (status != WAL_OK) {
            wal__walk_deinit(&walk);
            return status;
        }
        entry->is_skipped =
            entry->depth == UNIT_DEPTH || (entry->depth == 1 && strcmp(entry->name, "part") == 0);
    }
    wal__walk_deinit(&walk);
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

/* --- stamps -------------------------------------------------------------- */

struct scan_stamp {
    struct wal__file_stamp file;
    int64_t next_ms;  /* not to be read again before this time */
    int64_t rest_ms;  /* when a last line without a newline counts; 0: there is none */
    int64_t since_ms; /* of a database: rows that were changed before are imported */
};

struct scan_stamps {
    struct wal__hashmap map; /* from a hash of the name */
    struct scan_stamp *items;
    uint32_t count;
    uint32_t capacity;
};

/* Returns the stamp of a file, zeroed if it is new; it holds until the next call. NULL: no
 * memory. */
static struct scan_stamp *scan_stamps_get(struct scan_stamps *stamps, const char *name)
{
    uint64_t hash = wal__source_hash(name);
    uint32_t cursor = 0;
    uint32_t index;

    if (wal__hashmap_find(&stamps->map, hash, &cursor, &index)) {
        return &stamps->items[index];
    }
    if (!WAL__HEAP_GROW(stamps->map.heap, stamps->items, stamps->count, stamps->capacity) ||
        wal__hashmap_add(&stamps->map, hash, stamps->count) != WAL_OK) {
        return NULL;
    }
    stamps->items[stamps->count] = (struct scan_stamp){.next_ms = 0};
    return &stamps->items[stamps->count++];
}

/* Returns true if the file is not as the stamp has it, and updates the stamp. */
static bool scan_stamp_update(struct scan_stamp *stamp, const struct wal__file_stamp *now)
{
    bool differs = !wal__file_stamp_equal(now, &stamp->file);

    stamp->since_ms = now->inode == stamp->file.inode ? stamp->since_ms : 0;
    stamp->file = *now;
    return differs;
}

/* --- paths to scan ------------------------------------------------------- */

struct pending {
    uint32_t argument;       /* index */
    char *path;              /* below it */
    struct wal__place place; /* of the folder that contains the path */
    int64_t due_ms;
};

struct pending_list {
    const struct wal__heap *heap;
    struct pending *items; /* their paths are owned */
    uint32_t count;
    uint32_t capacity;
};

/* A path that is further back may be in the list twice; then its second scan finds nothing new. */
#define COMPARED_MAX 64

static void pending_free(struct pending_list *list, struct pending *pending)
{
    wal__heap_free(list->heap, pending->path);
    pending->path = NULL;
}

/* Adds a copy, unless the path is in the list already; then the earlier time counts. WAL_ENOMEM. */
static enum wal_status pending_add(struct pending_list *list, const struct pending *pending,
                                   struct wal_error *error)
{
    struct pending added = *pending;
    uint32_t first = list->count > COMPARED_MAX ? list->count - COMPARED_MAX : 0;

    for (uint32_t i = first; i < list->count; i++) {
        struct pending *item = &list->items[i];

        if (item->argument == pending->argument && strcmp(item->path, pending->path) == 0) {
            item->due_ms = pending->due_ms < item->due_ms ? pending->due_ms : item->due_ms;
            return WAL_OK;
        }
    }
    added.path = wal__heap_copy_text(list->heap, pending->path, strlen(pending->path));
    if (added.path == NULL ||
        !WAL__HEAP_GROW(list->heap, list->items, list->count, list->capacity)) {
        wal__heap_free(list->heap, added.path);
        return wal__no_memory(error);
    }
    list->items[list->count++] = added;
    return WAL_OK;
}

/* Removes one that is due and returns true; the caller frees it. */
static bool pending_take(struct pending_list *list, int64_t now_ms, struct pending *pending)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].due_ms <= now_ms) {
            *pending = list->items[i];
            list->items[i] = list->items[--list->count];
            return true;
        }
    }
    return false;
}

/* Returns the time of the first that is due, or INT64_MAX. */
static int64_t pending_due(const struct pending_list *list)
{
    int64_t due_ms = INT64_MAX;

    for (uint32_t i = 0; i < list->count; i++) {
        due_ms = list->items[i].due_ms < due_ms ? list->items[i].due_ms : due_ms;
    }
    return due_ms;
}

/* --- the follow ---------------------------------------------------------- */

#define SCAN_MS      2000  /* between scans of folders that are not watched */
#define SCAN_SHARE   20    /* a scan takes at most 1/20 of the time */
#define RETRY_MS     200   /* after another import wrote the session */
#define DIRECTORY_MS 1000  /* between imports of one session directory */
#define BUSY_SHARE   4     /* a file is read at most 1/5 of the time */
#define FREE_READ_MS 20    /* reading a file for this long costs nothing */
#define SINCE_MS     60000 /* by which a clock that sets times of rows may go back */
#define SETTLE_MS    1000  /* from the write of a commit to a log until it can be read */
#define REST_MS      1000  /* until nothing will follow in the last line */

struct wal_import_follow {
    struct wal__tree_walk walk;
    struct folder_watch watch;
    struct scan_stamps stamps;
    struct pending_list pending;
    char **arguments; /* in the arena of the whole call */
    uint32_t count;
    uint32_t argument; /* of the current walk */
    bool has_begun;    /* everything was imported once */
    bool only_stamps;  /* the walk takes stamps and imports nothing */
    bool has_missing;  /* an argument does not exist */
    bool has_busy;     /* something was busy, and has no path on the list */
    int64_t scan_ms;   /* time of the next scan of everything */
    uint64_t scans;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static enum wal_status postpone(struct wal_import_follow *follow, const char *path,
                                const struct wal__place *place, int64_t due_ms,
                                struct wal_error *error)
{
    const struct pending pending = {.argument = follow->argument,
                                    .path = (char *)(uintptr_t)path,
                                    .place = *place,
                                    .due_ms = due_ms};

    return pending_add(&follow->pending, &pending, error);
}

/* Returns the time of the next scan of everything, or INT64_MAX. */
static int64_t scan_due(const struct wal_import_follow *follow)
{
    if (follow->watch.loses_events) {
        return 0;
    }
    return follow->watch.needs_scans || follow->has_missing || follow->has_busy ? follow->scan_ms
                                                                                : INT64_MAX;
}

/* Imports the files that waited for others. If one of them is busy, or anything was before, no
 * stamp holds: everything is looked at again. */
static enum wal_status import_waiting(struct wal_import_follow *follow, bool was_busy,
                                      struct wal_error *error)
{
    struct wal__import *import = &follow->walk.import;
    enum wal_status status;

    import->must_retry = was_busy;
    status = wal__tree_import_deferred(&follow->walk, error);
    if (import->must_retry && follow->stamps.count > 0) {
        memset(follow->stamps.items, 0, follow->stamps.count * sizeof(follow->stamps.items[0]));
        follow->has_busy = true;
        follow->scan_ms = now_ms() + RETRY_MS;
    }
    return status;
}

/* --- visits -------------------------------------------------------------- */

/* Imports a file that is not as its stamp has it. */
static enum wal_status import_changed(struct wal_import_follow *follow,
                                      const struct wal__tree_source *source,
                                      struct scan_stamp *stamp, struct wal_error *error)
{
    const struct wal__place place = follow->walk.parent;
    int64_t begin_ms = now_ms();
    struct scan_stamp old = *stamp;
    uint64_t failed;
    enum wal_status status;
    int64_t took_ms;

    follow->walk.import.must_retry = false;
    follow->walk.import.takes_rest = stamp->rest_ms != 0;
    follow->walk.import.has_rest = false;
    follow->walk.import.since_ms = stamp->since_ms;
    follow->walk.import.updated_ms = 0;
    failed = follow->walk.import.result.failed;
    status = wal__tree_import_file(&follow->walk, source, error);
    follow->walk.import.since_ms = 0;
    follow->walk.import.takes_rest = false;
    took_ms = now_ms() - begin_ms;
    stamp = scan_stamps_get(&follow->stamps, source->name);
    if (stamp != NULL && follow->walk.import.result.failed == failed &&
        follow->walk.import.updated_ms - SINCE_MS > stamp->since_ms) {
        stamp->since_ms = follow->walk.import.updated_ms - SINCE_MS;
    }
    if (stamp != NULL && took_ms > FREE_READ_MS) {
        stamp->next_ms = begin_ms + took_ms + BUSY_SHARE * took_ms;
    }
    if (stamp != NULL) {
        stamp->rest_ms = follow->walk.import.has_rest && old.rest_ms == 0 ? now_ms() + REST_MS : 0;
    }
    if (status == WAL_OK && stamp != NULL && follow->walk.import.must_retry) {
        *stamp = (struct scan_stamp){.next_ms = old.next_ms, .since_ms = old.since_ms};
        status = postpone(follow, source->below, &place, now_ms() + RETRY_MS, error);
    } else if (status == WAL_OK && stamp != NULL && stamp->rest_ms != 0) {
        status = postpone(follow, source->below, &place, stamp->rest_ms, error);
    }
    return status;
}

/* Adds the log of a database, in which the newest rows are, to what its stamp is made of. Returns
 * whether what was written to the log can be read: a commit becomes visible after it was written,
 * in memory that is not watched. */
static bool add_log(const char *name, struct wal__file_stamp *file)
{
    char log[WAL__CLIENT_PATH_SIZE + 8];
    struct timespec now;
    struct stat other;

    if ((size_t)snprintf(log, sizeof(log), "%s-wal", name) >= sizeof(log) ||
        stat(log, &other) != 0) {
        return true;
    }
    file->size += (uint64_t)other.st_size;
    file->mtime_ns += wal__system_modified_ns(&other);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
               wal__system_modified_ns(&other) / 1000000 >=
           SETTLE_MS;
}

/* A wal__tree_visit_fn. */
static enum wal_status visit_file(struct wal__tree_walk *walk,
                                  const struct wal__tree_source *source, struct wal_error *error)
{
    struct wal_import_follow *follow = walk->ctx;
    const struct wal__place place = follow->walk.parent;
    struct scan_stamp *stamp = scan_stamps_get(&follow->stamps, source->name);
    struct wal__file_stamp file;
    struct stat info;
    bool is_settled;
    enum wal_status status;

    if (stamp == NULL) {
        return wal__no_memory(error);
    }
    if (stat(source->name, &info) != 0) {
        return WAL_OK;
    }
    file = wal__file_stamp_of(&info);
    is_settled = add_log(source->name, &file);
    if (!follow->only_stamps && stamp->next_ms > now_ms()) {
        return postpone(follow, source->below, &place, stamp->next_ms, error);
    }
    if (scan_stamp_update(stamp, &file)) {
        stamp->rest_ms = 0;
    } else if (stamp->rest_ms == 0 || stamp->rest_ms > now_ms()) {
        return WAL_OK;
    }
    if (follow->only_stamps) {
        return WAL_OK;
    }
    status = import_changed(follow, source, stamp, error);
    stamp = scan_stamps_get(&follow->stamps, source->name);
    if (status == WAL_OK && !is_settled && stamp != NULL) {
        stamp->file.mtime_ns = 0;
        status = postpone(follow, source->below, &place, now_ms() + SETTLE_MS, error);
    }
    return status;
}

/* A wal__tree_visit_fn: watches the folders of a session directory, and imports it at most once in
 * a while. */
static enum wal_status visit_directory(struct wal__tree_walk *walk,
                                       const struct wal__tree_source *source,
                                       struct wal_error *error)
{
    struct wal_import_follow *follow = walk->ctx;
    const struct wal__place place = follow->walk.parent;
    struct scan_stamp *stamp = scan_stamps_get(&follow->stamps, source->name);
    int64_t begin_ms = now_ms();
    enum wal_status status;

    if (stamp == NULL) {
        return wal__no_memory(error);
    }
    if (!follow->only_stamps && stamp->next_ms > begin_ms) {
        return postpone(follow, source->below, &place, stamp->next_ms, error);
    }
    status =
        watch_unit(&follow->watch, follow->argument, source->name, source->below, &place, error);
    if (status != WAL_OK || follow->only_stamps) {
        return status;
    }
    follow->walk.import.must_retry = false;
    status = wal__tree_import_directory(&follow->walk, source, error);
    stamp = scan_stamps_get(&follow->stamps, source->name);
    if (stamp != NULL) {
        stamp->next_ms = now_ms() + DIRECTORY_MS + SCAN_SHARE * (now_ms() - begin_ms);
    }
    if (status == WAL_OK && stamp != NULL && follow->walk.import.must_retry) {
        status = postpone(follow, source->below, &place, stamp->next_ms, error);
    }
    return status;
}

/* A wal__tree_enter_fn. */
static enum wal_status enter_folder(struct wal__tree_walk *walk, const char *name, const char *path,
                                    const struct wal__place *place, struct wal_error *error)
{
    struct wal_import_follow *follow = walk->ctx;
    const struct folder folder = {
        .argument = follow->argument, .path = (char *)(uintptr_t)path, .place = *place};

    return folder_watch_add(&follow->watch, name, &folder, error);
}

/* --- scans --------------------------------------------------------------- */

/* Watches the folder that contains an argument that is a file. */
static enum wal_status watch_file(struct wal_import_follow *follow, const char *argument,
                                  struct wal_error *error)
{
    const char *slash = strrchr(argument, '/');
    const struct folder folder = {.argument = follow->argument, .path = (char *)(uintptr_t) ""};
    char name[WAL__CLIENT_PATH_SIZE];

    snprintf(name, sizeof(name), "%.*s", slash != NULL ? (int)(slash - argument) : 1,
             slash != NULL ? argument : ".");
    return folder_watch_add(&follow->watch, name[0] != '\0' ? name : "/", &folder, error);
}

static enum wal_status scan_argument(struct wal_import_follow *follow, uint32_t index,
                                     struct wal_error *error)
{
    char *argument = follow->arguments[index];
    struct stat info;
    enum wal_status status = WAL_OK;

    follow->argument = index;
    if (stat(argument, &info) != 0) {
        /* The first import reported it. */
        follow->has_missing = true;
        return WAL_OK;
    }
    if (!S_ISDIR(info.st_mode)) {
        status = watch_file(follow, argument, error);
    }
    return status == WAL_OK ? wal__tree_walk_argument(&follow->walk, argument, error) : status;
}

static enum wal_status scan_all(struct wal_import_follow *follow, struct wal_error *error)
{
    int64_t begin_ms = now_ms();
    enum wal_status status = WAL_OK;
    int64_t delay_ms;

    follow->has_missing = false;
    follow->has_busy = false;
    follow->scans++;
    for (uint32_t i = 0; status == WAL_OK && i < follow->count; i++) {
        status = scan_argument(follow, i, error);
    }
    delay_ms = SCAN_SHARE * (now_ms() - begin_ms);
    follow->scan_ms = now_ms() + (delay_ms > SCAN_MS ? delay_ms : SCAN_MS);
    return status == WAL_OK ? import_waiting(follow, false, error) : status;
}

/* A folder_change_fn. */
static enum wal_status on_change(void *ctx, const struct folder *folder, const char *name,
                                 struct wal_error *error)
{
    struct wal_import_follow *follow = ctx;
    const char *argument = follow->arguments[folder->argument];
    const char *slash = strrchr(argument, '/');
    char path[2 * WAL__CLIENT_PATH_SIZE];
    struct stat info;

    follow->argument = folder->argument;
    if (folder->is_part) {
        snprintf(path, sizeof(path), "%.*s", (int)folder->unit_size, folder->path);
    } else if (stat(argument, &info) == 0 && !S_ISDIR(info.st_mode)) {
        const char *file = slash != NULL ? slash + 1 : argument;
        size_t size = strlen(name) - wal__tree_log_ending(name);
        if (strncmp(name, file, size) != 0 || file[size] != '\0') {
            return WAL_OK;
        }
        path[0] = '\0';
    } else if (name[0] == '\0') {
        return WAL_OK;
    } else {
        snprintf(path, sizeof(path), "%s%s%.*s", folder->path, folder->path[0] != '\0' ? "/" : "",
                 (int)(strlen(name) - wal__tree_log_ending(name)), name);
    }
    return postpone(follow, path, &folder->place, 0, error);
}

/* Scans the paths that are due. */
static enum wal_status import_pending(struct wal_import_follow *follow, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct pending pending;

    while (status == WAL_OK && pending_take(&follow->pending, now_ms(), &pending)) {
        char *argument = follow->arguments[pending.argument];

        follow->argument = pending.argument;
        status = pending.path[0] == '\0'
                     ? wal__tree_walk_argument(&follow->walk, argument, error)
                     : wal__tree_walk_below(&follow->walk, argument, pending.path, &pending.place,
                                            error);
        pending_free(&follow->pending, &pending);
    }
    return status == WAL_OK ? import_waiting(follow, false, error) : status;
}

/* --- interface ----------------------------------------------------------- */

static void set_visits(struct wal__tree_walk *walk, wal__tree_visit_fn *file,
                       wal__tree_visit_fn *directory, wal__tree_enter_fn *enter)
{
    walk->file = file;
    walk->directory = directory;
    walk->enter = enter;
}

static enum wal_status set_arguments(struct wal_import_follow *follow,
                                     const struct wal_slice *paths, uint32_t count,
                                     struct wal_error *error)
{
    struct wal__import *import = &follow->walk.import;

    follow->arguments = wal__arena_calloc(&import->walk.arena, (count + 1) * sizeof(char *));
    for (uint32_t i = 0; follow->arguments != NULL && i < count; i++) {
        follow->arguments[i] = wal__import_text(&import->walk.arena, paths[i]);
    }
    follow->count = count;
    return wal__import_check_memory(import, error);
}

enum wal_status wal_import_follow_open(struct wal_store *store, const struct wal_slice *paths,
                                       uint32_t path_count,
                                       const struct wal_import_options *options,
                                       struct wal_import_follow **follow, struct wal_error *error)
{
    struct wal_import_options own;
    struct wal_import_follow *opened = NULL;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_import_options), &own, options, error);

    if (status == WAL_OK) {
        status = store != NULL && follow != NULL
                     ? wal__tree_check_arguments(paths, path_count, &own, error)
                     : wal__invalid(error, "store and follow must not be NULL");
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(&wal__heap_libc, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    wal__tree_init(&opened->walk, store, &wal__heap_libc);
    opened->walk.ctx = opened;
    opened->watch.fd = -1;
    wal__hashmap_init(&opened->stamps.map, &wal__heap_libc);
    opened->pending.heap = &wal__heap_libc;
    status = wal__tree_set_options(&opened->walk, &own, error);
    if (status == WAL_OK) {
        status = set_arguments(opened, paths, path_count, error);
    }
    if (status != WAL_OK) {
        wal_import_follow_close(opened);
        return status;
    }
    folder_watch_init(&opened->watch, &wal__heap_libc);
    *follow = opened;
    return WAL_OK;
}

/* Watches everything and takes the stamps, then imports as wal_import_tree does. What changes
 * meanwhile differs from its stamp. */
static enum wal_status begin(struct wal_import_follow *follow, struct wal_error *error)
{
    struct wal__tree_walk *walk = &follow->walk;
    wal_import_report_fn *report = walk->import.report;
    enum wal_status sync_status;
    enum wal_status status;

    set_visits(walk, visit_file, visit_directory, enter_folder);
    follow->only_stamps = true;
    walk->import.report = NULL;
    status = scan_all(follow, error);
    follow->only_stamps = false;
    walk->import.report = report;
    walk->import.result = (struct wal_import_result)WAL_INIT(wal_import_result);
    walk->unread = NULL; /* they are not reported yet */
    walk->import.retries = true;
    set_visits(walk, wal__tree_import_file, wal__tree_import_directory, NULL);
    for (uint32_t i = 0; status == WAL_OK && i < follow->count; i++) {
        status = wal__tree_walk_argument(walk, follow->arguments[i], error);
    }
    if (status == WAL_OK) {
        status = import_waiting(follow, walk->import.must_retry, error);
    }
    sync_status = wal__import_sync(&walk->import, status == WAL_OK ? error : NULL);
    status = status == WAL_OK ? sync_status : status;
    set_visits(walk, visit_file, visit_directory, enter_folder);
    walk->import.waits_for_newline = true;
    follow->has_begun = status == WAL_OK;
    return status;
}

/* Waits for events or for the next thing that is due, at most timeout_ms. */
static void wait_for_events(const struct wal_import_follow *follow, uint32_t timeout_ms)
{
    struct pollfd fd = {.fd = follow->watch.fd, .events = POLLIN};
    int64_t due_ms = pending_due(&follow->pending);
    int64_t now = now_ms();
    int64_t wait_ms = timeout_ms > INT32_MAX ? INT32_MAX : timeout_ms;

    if (scan_due(follow) < due_ms) {
        due_ms = scan_due(follow);
    }
    if (due_ms - now < wait_ms) {
        wait_ms = due_ms > now ? due_ms - now : 0;
    }
    (void)poll(&fd, 1, (int)wait_ms);
}

static enum wal_status import_changes(struct wal_import_follow *follow, struct wal_error *error)
{
    enum wal_status status = folder_watch_read(&follow->watch, on_change, follow, error);
    enum wal_status sync_status;

    if (status == WAL_OK && now_ms() >= scan_due(follow)) {
        follow->watch.loses_events = false;
        status = scan_all(follow, error);
    }
    if (status == WAL_OK) {
        status = import_pending(follow, error);
    }
    sync_status = wal__import_sync(&follow->walk.import, status == WAL_OK ? error : NULL);
    return status == WAL_OK ? sync_status : status;
}

enum wal_status wal_import_follow_next(struct wal_import_follow *follow, uint32_t timeout_ms,
                                       struct wal_import_result *result, struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_import_result);
    struct wal_error cause = {.struct_size = sizeof(cause)};
    enum wal_status status;

    if (follow == NULL) {
        return wal__invalid(error, "follow must not be NULL");
    }
    status = wal__struct_check_optional(type, result, error);
    if (status != WAL_OK) {
        return status;
    }
    follow->walk.import.result = (struct wal_import_result)WAL_INIT(wal_import_result);
    if (follow->has_begun) {
        wait_for_events(follow, timeout_ms);
        status = import_changes(follow, &cause);
    } else {
        status = begin(follow, &cause);
    }
    wal__struct_store(type, result, &follow->walk.import.result);
    if (status != WAL_OK) {
        wal__error_copy(error, &cause);
    }
    return status;
}

enum wal_status wal_import_follow_get_info(const struct wal_import_follow *follow,
                                           struct wal_import_follow_info *info,
                                           struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_import_follow_info);
    struct wal_import_follow_info own = WAL_INIT(wal_import_follow_info);
    enum wal_status status = follow != NULL ? wal__struct_check_output(type, info, error)
                                            : wal__invalid(error, "follow must not be NULL");

    if (status != WAL_OK) {
        return status;
    }
    own.folders = folder_watch_count(&follow->watch);
    own.scans = follow->scans;
    own.is_scanning = follow->watch.needs_scans ? 1 : 0;
    own.sys_errno = follow->watch.sys_errno;
    wal__struct_store(type, info, &own);
    return WAL_OK;
}

void wal_import_follow_close(struct wal_import_follow *follow)
{
    if (follow == NULL) {
        return;
    }
    for (uint32_t i = 0; i < follow->pending.count; i++) {
        pending_free(&follow->pending, &follow->pending.items[i]);
    }
    wal__heap_free(follow->pending.heap, follow->pending.items);
    wal__heap_free(follow->stamps.map.heap, follow->stamps.items);
    wal__hashmap_deinit(&follow->stamps.map);
    folder_watch_deinit(&follow->watch);
    wal__tree_deinit(&follow->walk);
    wal__heap_free(&wal__heap_libc, follow);
}
