/*
 * view_list.c - lists the views below the roots that a store knows of; brings a view that was
 * listed up to its session, or removes it with the session (SPEC.md 10.7).
 *
 * An entry of the store's list leads to a root; the states there name the views. Only a root that
 * does not exist is removed from the list: one without a state may be about to get it.
 *
 * Threads: any; a cursor is used by one at a time. The view's lock excludes other flushes.
 */
#include "convert/view/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/admin.h"
#include "convert/clients/client.h"
#include "convert/model/model_table.h"
#include "convert/state/view_state.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "format/bytes/assert.h"
#include "format/payload/timestamp.h"

/* --- the list ------------------------------------------------------------ */

enum wal_status wal_view_root_add(struct wal_store *store, struct wal_slice dialect,
                                  struct wal_slice root, struct wal_error *error)
{
    const struct wal__dialect *found;
    char path[PATH_MAX];

    if (store == NULL || dialect.data == NULL || root.data == NULL || root.size == 0 ||
        root.size >= sizeof(path) || memchr(root.data, '\0', (size_t)root.size) != NULL) {
        return wal__invalid(error, "store must not be NULL, and dialect and "
                                   "root must be a name and a path");
    }
    found = wal__view_find_dialect(dialect);
    if (found == NULL) {
        return wal__fail(error, WAL_ENOTFOUND, "views cannot be written in the dialect '%.*s'",
                         (int)dialect.size, (const char *)dialect.data);
    }
    memcpy(path, root.data, (size_t)root.size);
    path[root.size] = '\0';
    return wal__view_root_add(store, found, path, 0, error);
}

/* --- the cursor ---------------------------------------------------------- */

struct item {
    const char *session;
    const char *dialect; /* a constant */
    const char *root;
    uint32_t flags; /* enum wal_view_info_flag */
};

struct wal_view_cursor {
    struct wal__heap_arena memory; /* of what follows */
    struct item *items;
    size_t count;
    size_t capacity;
    size_t next;
};

/* A listing in progress. */
struct listing {
    const struct wal__view_env env;
    struct wal_store *store;
    uint8_t uuid[16];
    struct wal_view_cursor *cursor;
    uint32_t flags;         /* enum wal_view_cursor_flag */
    const char *session;    /* NULL: all */
    const char *root;       /* the present one */
    const char *dialect;    /* of it */
    enum wal_status status; /* why the listing of roots was stopped */
    struct wal_error *error;
};

/* Adds a view of the present root. */
static enum wal_status add_item(struct listing *listing, const char *session, uint32_t flags)
{
    struct wal_view_cursor *cursor = listing->cursor;
    struct wal__arena *arena = &cursor->memory.arena;
    struct item *items;
    const char *copy;

    if ((listing->flags & WAL_VIEW_CURSOR_STALE) != 0 && flags == 0) {
        return WAL_OK;
    }
    copy = wal__arena_copy_text(arena, session);
    items =
        wal__arena_grow(arena, cursor->items, cursor->count, &cursor->capacity, sizeof(items[0]));
    if (cursor->memory.has_failed) {
        return wal__no_memory(listing->error);
    }
    cursor->items = items;
    items[cursor->count++] = (struct item){
        .session = copy, .dialect = listing->dialect, .root = listing->root, .flags = flags};
    return WAL_OK;
}

/* Counts the redactions of entries that views show. */
static enum wal_status count_redacted(struct listing *listing, struct wal_session *session,
                                      uint64_t *redacted)
{
    struct wal__session_snapshot snapshot = {.dialect = NULL};
    enum wal_status status =
        wal__session_snapshot_read(&snapshot, listing->env.heap, listing->store, session, NULL);
    uint32_t streams = status == WAL_OK && snapshot.dialect->read_ops->stream != NULL ? 2 : 1;

    *redacted = 0;
    for (uint32_t i = 0; i < streams && status == WAL_OK; i++) {
        status = wal__session_items_count_redacted(session, i, redacted, NULL);
    }
    wal__session_snapshot_deinit(&snapshot);
    return status;
}

/* Compares a view with its session. What cannot be read may be redacted; what is in the trash can
 * be taken out of it, so its view may stay. */
static uint32_t compare(struct listing *listing, const struct wal__view_summary *summary)
{
    const char *id = summary->info.session;
    struct wal_session *session = NULL;
    uint64_t redacted = 0;
    enum wal_status status =
        wal_session_open(listing->store, wal__slice_from_text(id), &session, NULL);

    if (status == WAL_ENOTFOUND) {
        return WAL_VIEW_INFO_DELETED;
    }
    if (status == WAL_ETRASHED) {
        return 0;
    }
    if (status == WAL_OK) {
        status = count_redacted(listing, session, &redacted);
        wal_session_close(session);
    }
    return status == WAL_OK && redacted == summary->redacted ? 0 : WAL_VIEW_INFO_REDACTED;
}

static enum wal_status add_state(struct listing *listing, int directory, const char *name)
{
    struct wal__view_summary summary = {.redacted = 0};
    bool is_found = false;
    enum wal_status status = wal__view_state_identify(&listing->env, directory, name, listing->uuid,
                                                      &summary, &is_found, listing->error);

    if (status != WAL_OK || !is_found || strcmp(summary.info.dialect, listing->dialect) != 0 ||
        (listing->session != NULL && strcmp(summary.info.session, listing->session) != 0)) {
        return status;
    }
    return add_item(listing, summary.info.session, compare(listing, &summary));
}

/* Whether a file has the name of a state in the present dialect, and of the session that is looked
 * for. */
static bool is_state(const struct listing *listing, const char *name)
{
    char key[WAL__VIEW_KEY_SIZE];
    size_t size = strlen(name);

    if (listing->session != NULL) {
        wal__view_key(key, listing->dialect, listing->session);
        return size > 5 && strncmp(name, key, size - 5) == 0 && key[size - 5] == '\0' &&
               wal__is_json_name(name);
    }
    return wal__is_json_name(name) &&
           strncmp(name, listing->dialect, strnlen(listing->dialect, 16)) == 0;
}

/* Opens the directory of the states of a root. */
static enum wal_status open_states(const struct wal__view_env *env, const char *root,
                                   DIR **directory)
{
    char place[PATH_MAX];
    const char *name;
    int fd = -1;
    bool is_elsewhere = wal__view_place(root, place);
    enum wal_status status = wal__view_fs_open_parent(
        env, is_elsewhere ? place : root, is_elsewhere ? "lock" : WAL__VIEW_STATE_DIR "/lock",
        false, &fd, &name, NULL);

    if (status != WAL_OK) {
        return status;
    }
    *directory = fdopendir(fd);
    if (*directory == NULL) {
        close(fd);
        return WAL_ENOMEM;
    }
    return WAL_OK;
}

static enum wal_status add_root(struct listing *listing, const char *dialect, const char *path)
{
    const struct wal__dialect *found = wal__view_find_dialect(wal__slice_from_text(dialect));
    const struct dirent *entry;
    DIR *directory = NULL;
    struct stat stat_now;
    enum wal_status status;

    /* A newer library may write dialects that this one does not know. */
    if (found == NULL) {
        return WAL_OK;
    }
    listing->dialect = found->name;
    if (stat(path, &stat_now) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return wal_store_remove_view_root(listing->store, wal__slice_from_text(dialect),
                                          wal__slice_from_text(path), listing->error);
    }
    listing->root = wal__arena_copy_text(&listing->cursor->memory.arena, path);
    if (listing->root == NULL) {
        return wal__no_memory(listing->error);
    }
    status = open_states(&listing->env, path, &directory);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return add_item(listing, "", WAL_VIEW_INFO_UNREADABLE);
    }
    while (status == WAL_OK && (entry = readdir(directory)) != NULL) {
        if (is_state(listing, entry->d_name)) {
            status = add_state(listing, dirfd(directory), entry->d_name);
        }
    }
    closedir(directory);
    return status;
}

static int32_t add_listed(void *ctx, struct wal_slice dialect, struct wal_slice root)
{
    struct listing *listing = ctx;

    listing->status = add_root(listing, dialect.data, root.data);
    return listing->status != WAL_OK;
}

/* A failure of add_root has filled *error. */
static enum wal_status list_roots(struct listing *listing, struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    enum wal_status status = wal_store_list_view_roots(listing->store, add_listed, listing, &own);

    if (status == WAL_ECALLBACK) {
        return listing->status;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static int compare_items(const void *left, const void *right)
{
    const struct item *one = left;
    const struct item *two = right;
    int order = strcmp(one->root, two->root);

    if (order == 0) {
        order = strcmp(one->dialect, two->dialect);
    }
    return order != 0 ? order : strcmp(one->session, two->session);
}

static enum wal_status fill(struct wal_store *store, const struct wal_view_cursor_options *options,
                            struct wal_view_cursor *cursor, struct wal_error *error)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct listing listing = {.env = {.heap = &wal__heap_libc},
                              .store = store,
                              .cursor = cursor,
                              .flags = options->flags,
                              .error = error};
    char session[WAL_ID_SIZE];
    enum wal_status status = wal_store_get_info(store, &info, error);

    if (options->session.size > 0) {
        memcpy(session, options->session.data, (size_t)options->session.size);
        session[options->session.size] = '\0';
        listing.session = session;
    }
    if (status == WAL_OK) {
        memcpy(listing.uuid, info.uuid, sizeof(listing.uuid));
        status = list_roots(&listing, error);
    }
    if (status == WAL_OK && cursor->count > 0) {
        qsort(cursor->items, cursor->count, sizeof(cursor->items[0]), compare_items);
    }
    return status;
}

enum wal_status wal_view_cursor_open(struct wal_store *store,
                                     const struct wal_view_cursor_options *options,
                                     struct wal_view_cursor **cursor, struct wal_error *error)
{
    struct wal_view_cursor_options own;
    struct wal_view_cursor *opened;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_view_cursor_options), &own, options, error);

    if (status != WAL_OK) {
        return status;
    }
    if (store == NULL || cursor == NULL || (own.flags & ~(uint32_t)WAL_VIEW_CURSOR_STALE) != 0 ||
        own.session.size >= WAL_ID_SIZE || (own.session.size > 0 && own.session.data == NULL)) {
        return wal__invalid(error, "store and cursor must not be NULL, and the "
                                   "options need known flags and an id");
    }
    opened = wal__heap_zalloc(&wal__heap_libc, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    wal__heap_arena_init(&opened->memory, &wal__heap_libc);
    status = fill(store, &own, opened, error);
    if (status != WAL_OK) {
        wal_view_cursor_close(opened);
        return status;
    }
    *cursor = opened;
    return WAL_OK;
}

enum wal_status wal_view_cursor_next(struct wal_view_cursor *cursor, struct wal_view_info *info,
                                     struct wal_error *error)
{
    struct wal_view_info own = WAL_INIT(wal_view_info);
    const struct item *item;
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__struct_check_output(WAL__STRUCT(wal_view_info), info, error);
    if (status != WAL_OK || cursor->next == cursor->count) {
        return status != WAL_OK ? status : WAL_END;
    }
    item = &cursor->items[cursor->next++];
    own.flags = item->flags;
    snprintf(own.session, sizeof(own.session), "%s", item->session);
    snprintf(own.dialect, sizeof(own.dialect), "%s", item->dialect);
    snprintf(own.root, sizeof(own.root), "%s", item->root);
    wal__struct_store(WAL__STRUCT(wal_view_info), info, &own);
    return WAL_OK;
}

void wal_view_cursor_close(struct wal_view_cursor *cursor)
{
    if (cursor != NULL) {
        wal__heap_arena_deinit(&cursor->memory);
        wal__heap_free(&wal__heap_libc, cursor);
    }
}

/* --- views of a list ----------------------------------------------------- */

static bool is_terminated(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

/* --- removal ------------------------------------------------------------- */

/* Paths of a view's files, to be looked at again when they were removed: a file that another
 * program changed is left, without a failure. */
struct paths {
    struct wal__heap_arena memory;
    char **items;
    uint32_t count;
};

static enum wal_status copy_paths(const struct wal__view_files *files, struct paths *paths,
                                  struct wal_error *error)
{
    struct wal__arena *arena = &paths->memory.arena;

    paths->items = wal__arena_alloc(arena, (files->count + (size_t)1) * sizeof(paths->items[0]));
    for (uint32_t i = 0; paths->items != NULL && i < files->count; i++) {
        paths->items[paths->count++] = wal__arena_copy_text(arena, files->items[i]->lines.path);
    }
    return paths->memory.has_failed ? wal__no_memory(error) : WAL_OK;
}

/* Fails for the first file that is still there. */
static enum wal_status check_removed(const struct wal_view *view, const struct paths *paths,
                                     struct wal_error *error)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        const char *name;
        struct stat stat;
        int fd = -1;
        bool exists = false;
        enum wal_status status = wal__view_fs_open_parent(&view->env, view->root, paths->items[i],
                                                          false, &fd, &name, error);

        if (status == WAL_OK) {
            exists = fstatat(fd, name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
            close(fd);
        } else if (status != WAL_ENOTFOUND) {
            return status;
        }
        if (exists) {
            return wal__fail_at(error, WAL_ECHANGED, 0, paths->items[i], 0,
                                "another program wrote to it");
        }
    }
    return WAL_OK;
}

/* Removes the directories of the files that are empty now: they may have the name of the session's
 * directory. Best effort. */
static void remove_directories(const struct wal_view *view, const struct paths *paths)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        char *slash;
        bool is_removed = true;

        while (is_removed && (slash = strrchr(paths->items[i], '/')) != NULL) {
            const char *name;
            int fd = -1;

            *slash = '\0';
            if (wal__view_fs_open_parent(&view->env, view->root, paths->items[i], false, &fd, &name,
                                         NULL) != WAL_OK) {
                continue; /* another file's */
            }
            (void)wal__view_fault_point(&view->env, 0);
            is_removed = unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
            if (is_removed) {
                (void)!wal__view_fs_sync_names(&view->env, fd, name, NULL);
            }
            close(fd);
        }
    }
}

/* Removes all files, with the lock held and the state loaded. The state goes last, so that an
 * interrupted removal is repeated. */
static enum wal_status remove_files(struct wal__view_lock *view_lock, struct paths *paths,
                                    struct wal_error *error)
{
    struct wal_view *view = view_lock->view;
    struct wal__view_files *files = &view->files;
    enum wal_status status = copy_paths(files, paths, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__view_files_begin(files, false);
    status = wal__view_files_commit(files, error);
    if (status == WAL_OK) {
        status = check_removed(view, paths, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    remove_directories(view, paths);
    return wal__view_fs_remove(&view->env, files->state_dir, view_lock->state)
               ? wal__view_fs_sync_names(&view->env, files->state_dir, view_lock->state, error)
               : wal__view_fs_fail(error, view_lock->state);
}

static enum wal_status remove_view(struct wal_view *view, struct wal_error *error)
{
    struct wal__view_lock view_lock = {.view = view, .lock_fd = -1};
    struct paths paths = {.count = 0};
    enum wal_status status = wal__view_lock_acquire(&view_lock, error);

    wal__heap_arena_init(&paths.memory, view->env.heap);
    /* Without a state another process has removed it. */
    if (status == WAL_OK && view->position.is_known) {
        status = remove_files(&view_lock, &paths, error);
    }
    wal__view_files_end(&view->files);
    wal__view_lock_release(&view_lock);
    wal__heap_arena_deinit(&paths.memory);
    return status;
}

/* Removes a view whose session is gone. */
static enum wal_status remove_orphan(struct wal_store *store, const struct wal_view_info *info,
                                     const struct wal__dialect *dialect, struct wal_error *error)
{
    const struct wal__view_env env = {.heap = &wal__heap_libc};
    struct wal_view *view = NULL;
    enum wal_status status =
        wal__view_create(store, dialect, wal__slice_from_text(info->root), &env, &view, error);

    if (status == WAL_OK) {
        status = wal__view_set_identity(view, wal__slice_from_text(info->session), error);
    }
    if (status == WAL_OK) {
        status = remove_view(view, error);
    }
    wal_view_close(view);
    return status;
}

/* --- update -------------------------------------------------------------- */

static enum wal_status flush(struct wal_store *store, struct wal_session *session,
                             const struct wal_view_info *info, struct wal_view_flush_result *result,
                             struct wal_error *error)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = wal__slice_from_text(info->dialect),
        .root = wal__slice_from_text(info->root),
    };
    struct wal_view *view = NULL;
    enum wal_status status = wal_view_open(store, session, &options, &view, error);

    if (status == WAL_OK) {
        status = wal_view_flush(view, result, error);
        wal_view_close(view);
    }
    return status;
}

/* Fails unless the root exists: a flush would make it. */
static enum wal_status check_root(const struct wal_view_info *info, struct wal_error *error)
{
    struct stat stat_now;

    if (stat(info->root, &stat_now) != 0) {
        return wal__view_fs_fail(error, info->root);
    }
    return S_ISDIR(stat_now.st_mode)
               ? WAL_OK
               : wal__fail_at(error, WAL_ENOTFOUND, 0, info->root, 0, "the root is no directory");
}

static enum wal_status update(struct wal_store *store, const struct wal_view_info *info,
                              struct wal_view_flush_result *result, struct wal_error *error)
{
    const struct wal__dialect *dialect =
        wal__view_find_dialect(wal__slice_from_text(info->dialect));
    struct wal_session *session = NULL;
    enum wal_status status;

    if (dialect == NULL) {
        return wal__fail(error, WAL_ENOTFOUND, "views cannot be written in the dialect '%s'",
                         info->dialect);
    }
    status = check_root(info, error);
    if (status == WAL_OK && (info->flags & WAL_VIEW_INFO_UNREADABLE) != 0) {
        return wal__fail_at(error, WAL_EACCESS, EACCES, info->root, 0,
                            "the states of views cannot be read");
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal_session_open(store, wal__slice_from_text(info->session), &session, error);
    if (status == WAL_ENOTFOUND) {
        return remove_orphan(store, info, dialect, error);
    }
    if (status == WAL_OK) {
        status = flush(store, session, info, result, error);
        wal_session_close(session);
    }
    return status;
}

enum wal_status wal_view_update(struct wal_store *store, const struct wal_view_info *info,
                                struct wal_view_flush_result *result, struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_flush_result);
    struct wal_view_flush_result own = WAL_INIT(wal_view_flush_result);
    struct wal_view_info of;
    enum wal_status status;

    if (store == NULL || info == NULL) {
        return wal__invalid(error, "store and info must not be NULL");
    }
    status = wal__struct_load(WAL__STRUCT(wal_view_info), &of, info, error);
    if (status == WAL_OK) {
        status = wal__struct_check_optional(type, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (!is_terminated(of.session, sizeof(of.session)) ||
        !is_terminated(of.dialect, sizeof(of.dialect)) ||
        !is_terminated(of.root, sizeof(of.root)) || of.root[0] == '\0') {
        return wal__invalid(error, "info must be what a cursor returned");
    }
    status = update(store, &of, &own, error);
    if (status == WAL_OK) {
        wal__struct_store(type, result, &own);
    }
    return status;
}
