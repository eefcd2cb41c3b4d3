/*
 * import_follow.c - wal_import_follow: imports what changes in folders
 * (agentwal/import.h).
 *
 * Folders are watched before they are read, so that no change is missed. A
 * change puts a path on a list; what is at and below that path is scanned, and
 * files that differ from their stamp are imported. After lost events everything
 * is scanned; where folders cannot be watched, every few seconds.
 *
 * Invariant: a stamp is taken before the file is read, so that a later change
 * differs from it.
 *
 * Threads: one thread at a time per follow.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "convert/follow/file_stamps.h"
#include "convert/follow/folder_watch.h"
#include "convert/follow/pending.h"
#include "convert/follow/unit_folders.h"
#include "convert/import_tree/import_tree.h"
#include "convert/import_tree/tree_options.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

#define SCAN_MS      2000 /* between scans of folders that are not watched */
#define SCAN_SHARE   20   /* a scan takes at most 1/20 of the time */
#define RETRY_MS     200  /* after another import wrote the session */
#define DIRECTORY_MS 1000 /* between imports of one session directory */
#define BUSY_SHARE   4    /* a file is read at most 1/5 of the time */
#define FREE_READ_MS 20   /* reading a file for this long costs nothing */

struct wal_import_follow {
    struct wal__import import;
    struct wal__tree_walk walk;
    struct wal__folder_watch watch;
    struct wal__scan_stamps stamps;
    struct wal__pending_list pending;
    struct wal_import_options options; /* slices are in the arena */
    struct wal_slice *paths;
    char **arguments; /* in the arena of the whole call */
    uint32_t count;
    uint32_t argument; /* of the current walk */
    bool has_begun;    /* everything was imported once */
    bool only_stamps;  /* the walk takes stamps and imports nothing */
    bool has_missing;  /* an argument does not exist */
    int64_t scan_ms;   /* time of the next scan of everything */
    uint64_t scans;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static enum wal_status postpone(struct wal_import_follow *follow,
                                const char *path,
                                const struct wal__place *place, int64_t due_ms,
                                struct wal_error *error)
{
    const struct wal__pending pending = {.argument = follow->argument,
                                         .path = (char *)(uintptr_t)path,
                                         .place = *place,
                                         .due_ms = due_ms};

    return wal__pending_add(&follow->pending, &pending, error);
}

/* --------------------------------------------------------------- visits --- */

/* Imports a file that is not as its stamp has it. */
static enum wal_status import_changed(struct wal_import_follow *follow,
                                      const struct wal__tree_source *source,
                                      struct wal__scan_stamp *stamp,
                                      struct wal_error *error)
{
    const struct wal__place place = follow->walk.parent;
    int64_t begin_ms = now_ms();
    struct wal__scan_stamp old = *stamp;
    enum wal_status status;
    int64_t took_ms;

    follow->import.must_retry = false;
    status = wal__tree_import_file(&follow->import, source, error);
    took_ms = now_ms() - begin_ms;
    stamp = wal__scan_stamps_get(&follow->stamps, source->name);
    if (stamp != NULL && took_ms > FREE_READ_MS) {
        stamp->next_ms = begin_ms + took_ms + BUSY_SHARE * took_ms;
    }
    if (status == WAL_OK && stamp != NULL && follow->import.must_retry) {
        *stamp = (struct wal__scan_stamp){.next_ms = old.next_ms};
        status =
            postpone(follow, source->below, &place, now_ms() + RETRY_MS, error);
    }
    return status;
}

/* A wal__tree_visit_fn. */
static enum wal_status visit_file(void *ctx,
                                  const struct wal__tree_source *source,
                                  struct wal_error *error)
{
    struct wal_import_follow *follow = ctx;
    const struct wal__place place = follow->walk.parent;
    struct wal__scan_stamp *stamp =
        wal__scan_stamps_get(&follow->stamps, source->name);
    struct stat info;

    if (stamp == NULL) {
        return wal__no_memory(error);
    }
    if (stat(source->name, &info) != 0) {
        return WAL_OK;
    }
    if (!follow->only_stamps && stamp->next_ms > now_ms()) {
        return postpone(follow, source->below, &place, stamp->next_ms, error);
    }
    if (!wal__scan_stamp_update(stamp, &info) || follow->only_stamps) {
        return WAL_OK;
    }
    return import_changed(follow, source, stamp, error);
}

/* A wal__tree_visit_fn: watches the folders of a session directory, and imports
 * it at most once in a while. */
static enum wal_status visit_directory(void *ctx,
                                       const struct wal__tree_source *source,
                                       struct wal_error *error)
{
    struct wal_import_follow *follow = ctx;
    const struct wal__place place = follow->walk.parent;
    struct wal__scan_stamp *stamp =
        wal__scan_stamps_get(&follow->stamps, source->name);
    int64_t begin_ms = now_ms();
    enum wal_status status;

    if (stamp == NULL) {
        return wal__no_memory(error);
    }
    if (!follow->only_stamps && stamp->next_ms > begin_ms) {
        return postpone(follow, source->below, &place, stamp->next_ms, error);
    }
    status =
        wal__unit_folders_watch(&follow->watch, follow->argument, source->name,
                                source->below, &place, error);
    if (status != WAL_OK || follow->only_stamps) {
        return status;
    }
    status = wal__tree_import_directory(&follow->import, source, error);
    stamp = wal__scan_stamps_get(&follow->stamps, source->name);
    if (stamp != NULL) {
        stamp->next_ms =
            now_ms() + DIRECTORY_MS + SCAN_SHARE * (now_ms() - begin_ms);
    }
    return status;
}

/* A wal__tree_enter_fn. */
static enum wal_status enter_folder(void *ctx, const char *name,
                                    const char *path,
                                    const struct wal__place *place,
                                    struct wal_error *error)
{
    struct wal_import_follow *follow = ctx;
    const struct wal__folder folder = {.argument = follow->argument,
                                       .path = (char *)(uintptr_t)path,
                                       .place = *place};

    return wal__folder_watch_add(&follow->watch, name, &folder, error);
}

/* ---------------------------------------------------------------- scans --- */

/* Watches the folder that contains an argument that is a file. */
static enum wal_status watch_file(struct wal_import_follow *follow,
                                  const char *argument, struct wal_error *error)
{
    const char *slash = strrchr(argument, '/');
    const struct wal__folder folder = {.argument = follow->argument,
                                       .path = (char *)(uintptr_t) ""};
    char name[WAL__CLIENT_PATH_SIZE];

    snprintf(name, sizeof(name), "%.*s",
             slash != NULL ? (int)(slash - argument) : 1,
             slash != NULL ? argument : ".");
    return wal__folder_watch_add(&follow->watch, name[0] != '\0' ? name : "/",
                                 &folder, error);
}

static enum wal_status scan_argument(struct wal_import_follow *follow,
                                     uint32_t index, struct wal_error *error)
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
    return status == WAL_OK
               ? wal__tree_walk_argument(&follow->walk, argument, error)
               : status;
}

static enum wal_status scan_all(struct wal_import_follow *follow,
                                struct wal_error *error)
{
    int64_t begin_ms = now_ms();
    enum wal_status status = WAL_OK;
    int64_t delay_ms;

    follow->has_missing = false;
    follow->scans++;
    for (uint32_t i = 0; status == WAL_OK && i < follow->count; i++) {
        status = scan_argument(follow, i, error);
    }
    delay_ms = SCAN_SHARE * (now_ms() - begin_ms);
    follow->scan_ms = now_ms() + (delay_ms > SCAN_MS ? delay_ms : SCAN_MS);
    return status;
}

/* A wal__folder_change_fn. */
static enum wal_status on_change(void *ctx, const struct wal__folder *folder,
                                 const char *name, struct wal_error *error)
{
    struct wal_import_follow *follow = ctx;
    const char *argument = follow->arguments[folder->argument];
    const char *slash = strrchr(argument, '/');
    char path[2 * WAL__CLIENT_PATH_SIZE];
    struct stat info;

    follow->argument = folder->argument;
    if (folder->is_part) {
        snprintf(path, sizeof(path), "%.*s", (int)folder->unit_size,
                 folder->path);
    } else if (stat(argument, &info) == 0 && !S_ISDIR(info.st_mode)) {
        if (strcmp(name, slash != NULL ? slash + 1 : argument) != 0) {
            return WAL_OK;
        }
        path[0] = '\0';
    } else if (name[0] == '\0') {
        return WAL_OK;
    } else {
        snprintf(path, sizeof(path), "%s%s%s", folder->path,
                 folder->path[0] != '\0' ? "/" : "", name);
    }
    return postpone(follow, path, &folder->place, 0, error);
}

/* Scans the paths that are due. */
static enum wal_status import_pending(struct wal_import_follow *follow,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__pending pending;

    while (status == WAL_OK &&
           wal__pending_take(&follow->pending, now_ms(), &pending)) {
        char *argument = follow->arguments[pending.argument];

        follow->argument = pending.argument;
        status =
            pending.path[0] == '\0'
                ? wal__tree_walk_argument(&follow->walk, argument, error)
                : wal__tree_walk_below(&follow->walk, argument, pending.path,
                                       &pending.place, error);
        wal__pending_free(&follow->pending, &pending);
    }
    return status;
}

/* ------------------------------------------------------------ interface --- */

static void init(struct wal_import_follow *follow, struct wal_store *store)
{
    const struct wal__heap *heap = &wal__heap_libc;

    wal__tree_init_import(&follow->import, store, heap);
    follow->walk.import = &follow->import;
    follow->walk.file = visit_file;
    follow->walk.directory = visit_directory;
    follow->walk.enter = enter_folder;
    follow->walk.ctx = follow;
    follow->watch.fd = -1;
    wal__scan_stamps_init(&follow->stamps, heap);
    wal__pending_init(&follow->pending, heap);
}

static enum wal_status set_arguments(struct wal_import_follow *follow,
                                     const struct wal_slice *paths,
                                     uint32_t count, struct wal_error *error)
{
    struct wal__arena *arena = &follow->import.walk.arena;

    follow->arguments = wal__arena_calloc(arena, (count + 1) * sizeof(char *));
    follow->paths = wal__arena_calloc(arena, (count + 1) * sizeof(paths[0]));
    for (uint32_t i = 0;
         follow->arguments != NULL && follow->paths != NULL && i < count; i++) {
        follow->arguments[i] = wal__tree_argument(&follow->import, paths[i]);
        follow->paths[i] = wal__slice_from_text(follow->arguments[i]);
    }
    follow->count = count;
    return wal__import_check_memory(&follow->import, error);
}

/* Copies the options that the first import needs. */
static void keep_options(struct wal_import_follow *follow,
                         const struct wal_import_options *options)
{
    struct wal__import *import = &follow->import;

    follow->options = *options;
    follow->options.dialect =
        wal__slice_from_text(wal__tree_argument(import, options->dialect));
    follow->options.exclude =
        wal__slice_from_text(wal__tree_argument(import, options->exclude));
}

enum wal_status wal_import_follow_open(struct wal_store *store,
                                       const struct wal_slice *paths,
                                       uint32_t path_count,
                                       const struct wal_import_options *options,
                                       struct wal_import_follow **follow,
                                       struct wal_error *error)
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
    init(opened, store);
    status = wal__tree_set_options(&opened->walk, &own, error);
    keep_options(opened, &own);
    if (status == WAL_OK) {
        status = set_arguments(opened, paths, path_count, error);
    }
    if (status != WAL_OK) {
        wal_import_follow_close(opened);
        return status;
    }
    wal__folder_watch_init(&opened->watch, &wal__heap_libc);
    *follow = opened;
    return WAL_OK;
}

/* A wal_import_report_fn of the first import. A source that another import is
 * writing is imported by the scan after it. */
static int32_t on_first_report(void *ctx,
                               const struct wal_import_report *report)
{
    struct wal_import_follow *follow = ctx;
    struct wal__scan_stamp *stamp;

    if (report->status == WAL_EBUSY || report->status == WAL_ECLAIMED) {
        stamp = wal__scan_stamps_get(&follow->stamps, report->path.data);
        if (stamp != NULL) {
            *stamp = (struct wal__scan_stamp){.inode = 0};
        }
        follow->watch.loses_events = true;
        return 0;
    }
    return follow->options.report != NULL
               ? follow->options.report(follow->options.ctx, report)
               : 0;
}

/* A wal_import_progress_fn of the first import. */
static int32_t on_first_progress(void *ctx, struct wal_slice path,
                                 uint64_t done, uint64_t total)
{
    const struct wal_import_follow *follow = ctx;

    return follow->options.progress != NULL
               ? follow->options.progress(follow->options.ctx, path, done,
                                          total)
               : 0;
}

/* A wal_import_project_fn of the first import. */
static int32_t on_first_project(void *ctx, struct wal_slice directory,
                                char *project, uint64_t size)
{
    const struct wal_import_follow *follow = ctx;

    return follow->options.project(follow->options.ctx, directory, project,
                                   size);
}

/* Watches everything and takes the stamps, then imports as wal_import_tree
 * does. What changes meanwhile differs from its stamp. */
static enum wal_status begin(struct wal_import_follow *follow,
                             struct wal_error *error)
{
    struct wal_import_options options = follow->options;
    enum wal_status status;

    options.report = on_first_report;
    options.progress = on_first_progress;
    options.project = options.project != NULL ? on_first_project : NULL;
    options.ctx = follow;
    follow->only_stamps = true;
    follow->import.report = NULL;
    status = scan_all(follow, error);
    follow->only_stamps = false;
    follow->import.report = follow->options.report;
    if (status == WAL_OK) {
        status = wal__import_paths(
            follow->import.store, follow->paths, follow->count, false, &options,
            &wal__heap_libc, &follow->import.result, error);
    }
    follow->import.waits_for_newline = true;
    follow->import.retries = true;
    follow->has_begun = status == WAL_OK;
    return status;
}

/* Waits for events or for the next thing that is due, at most timeout_ms. */
static void wait_for_events(const struct wal_import_follow *follow,
                            uint32_t timeout_ms)
{
    struct pollfd fd = {.fd = follow->watch.fd, .events = POLLIN};
    int64_t due_ms = wal__pending_due(&follow->pending);
    int64_t now = now_ms();
    int64_t wait_ms = timeout_ms > INT32_MAX ? INT32_MAX : timeout_ms;

    if ((follow->watch.needs_scans || follow->has_missing) &&
        follow->scan_ms < due_ms) {
        due_ms = follow->scan_ms;
    }
    if (due_ms - now < wait_ms) {
        wait_ms = due_ms > now ? due_ms - now : 0;
    }
    (void)poll(&fd, 1, (int)wait_ms);
}

static enum wal_status import_changes(struct wal_import_follow *follow,
                                      struct wal_error *error)
{
    enum wal_status status =
        wal__folder_watch_read(&follow->watch, on_change, follow, error);
    bool must_scan = follow->watch.loses_events ||
                     ((follow->watch.needs_scans || follow->has_missing) &&
                      now_ms() >= follow->scan_ms);

    if (status == WAL_OK && must_scan) {
        follow->watch.loses_events = false;
        status = scan_all(follow, error);
    }
    return status == WAL_OK ? import_pending(follow, error) : status;
}

enum wal_status wal_import_follow_next(struct wal_import_follow *follow,
                                       uint32_t timeout_ms,
                                       struct wal_import_result *result,
                                       struct wal_error *error)
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
    follow->import.result = (struct wal_import_result){
        .struct_size = sizeof(struct wal_import_result)};
    if (follow->has_begun) {
        wait_for_events(follow, timeout_ms);
        status = import_changes(follow, &cause);
    } else {
        status = begin(follow, &cause);
    }
    wal__struct_store(type, result, &follow->import.result);
    if (status != WAL_OK) {
        wal__error_copy(error, &cause);
    }
    return status;
}

enum wal_status
wal_import_follow_get_info(const struct wal_import_follow *follow,
                           struct wal_import_follow_info *info,
                           struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_import_follow_info);
    struct wal_import_follow_info own = WAL_INIT(wal_import_follow_info);
    enum wal_status status =
        follow != NULL ? wal__struct_check_output(type, info, error)
                       : wal__invalid(error, "follow must not be NULL");

    if (status != WAL_OK) {
        return status;
    }
    own.folders = wal__folder_watch_count(&follow->watch);
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
    wal__pending_deinit(&follow->pending);
    wal__scan_stamps_deinit(&follow->stamps);
    wal__folder_watch_deinit(&follow->watch);
    wal__heap_arena_deinit(&follow->import.arena);
    wal__heap_arena_deinit(&follow->import.walk);
    wal__view_index_deinit(&follow->import.views);
    wal__heap_free(&wal__heap_libc, follow);
}
