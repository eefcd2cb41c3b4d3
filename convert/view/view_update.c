/*
 * view_update.c - brings a view that was listed up to its session, or removes
 * it with the session (SPEC.md 10.7).
 *
 * Threads: any; the view's lock excludes other flushes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/view/view_lock.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

static struct wal_slice slice_of(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static bool is_terminated(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

/* ------------------------------------------------------------- removal --- */

/* Paths of a view's files, to be looked at again when they were removed: a file
 * that another program changed is left, without a failure. */
struct paths {
    const struct wal__heap *heap;
    char **items;
    uint32_t count;
};

static enum wal_status copy_paths(const struct wal__view_files *files,
                                  struct paths *paths, struct wal_error *error)
{
    paths->items = wal__heap_resize(paths->heap, NULL, files->count + (size_t)1,
                                    sizeof(paths->items[0]));
    if (paths->items == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        const char *path = files->items[i]->lines.path;

        paths->items[i] = wal__heap_copy_text(paths->heap, path, strlen(path));
        if (paths->items[i] == NULL) {
            return wal__no_memory(error);
        }
        paths->count++;
    }
    return WAL_OK;
}

static void free_paths(struct paths *paths)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        wal__heap_free(paths->heap, paths->items[i]);
    }
    wal__heap_free(paths->heap, paths->items);
}

/* Fails for the first file that is still there. */
static enum wal_status check_removed(const struct wal_view *view,
                                     const struct paths *paths,
                                     struct wal_error *error)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        const char *name;
        struct stat stat;
        int fd = -1;
        bool exists = false;
        enum wal_status status = wal__view_fs_open_parent(
            &view->env, view->root, paths->items[i], false, &fd, &name, error);

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

/* Removes the directories of the files that are empty now: they may have the
 * name of the session's directory. Best effort. */
static void remove_directories(const struct wal_view *view,
                               const struct paths *paths)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        char *slash;
        bool is_removed = true;

        while (is_removed && (slash = strrchr(paths->items[i], '/')) != NULL) {
            const char *name;
            int fd = -1;

            *slash = '\0';
            if (wal__view_fs_open_parent(&view->env, view->root,
                                         paths->items[i], false, &fd, &name,
                                         NULL) != WAL_OK) {
                continue; /* another file's */
            }
            (void)wal__view_fault_point(&view->env, 0);
            is_removed =
                unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
            if (is_removed) {
                (void)!wal__view_fs_sync_names(&view->env, fd, name, NULL);
            }
            close(fd);
        }
    }
}

/* Removes all files, with the lock held and the state loaded. The state goes
 * last, so that an interrupted removal is repeated. */
static enum wal_status remove_files(struct wal__view_lock *view_lock,
                                    struct paths *paths,
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
               ? wal__view_fs_sync_names(&view->env, files->state_dir,
                                         view_lock->state, error)
               : wal__view_fs_fail(error, view_lock->state);
}

static enum wal_status remove_view(struct wal_view *view,
                                   struct wal_error *error)
{
    struct wal__view_lock view_lock = {.view = view, .lock_fd = -1};
    struct paths paths = {.heap = view->env.heap};
    enum wal_status status = wal__view_lock_acquire(&view_lock, error);

    /* Without a state another process has removed it. */
    if (status == WAL_OK && view->position.is_known) {
        status = remove_files(&view_lock, &paths, error);
    }
    wal__view_files_end(&view->files);
    wal__view_lock_release(&view_lock);
    free_paths(&paths);
    return status;
}

/* A view without its session. */
static enum wal_status open_orphan(struct wal_store *store,
                                   const struct wal_view_info *info,
                                   const struct wal__dialect *dialect,
                                   struct wal_view **view,
                                   struct wal_error *error)
{
    const struct wal__heap *heap = &wal__heap_libc;
    struct wal_view *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->env.heap = heap;
    opened->store = store;
    opened->dialect = dialect;
    wal__view_files_init(&opened->files, &opened->env);
    opened->files.key = opened->key;
    opened->files.dialect = dialect;
    opened->root = wal__heap_copy_text(heap, info->root, strlen(info->root));
    opened->files.root = opened->root;
    status =
        opened->root != NULL
            ? wal__view_set_identity(opened, slice_of(info->session), error)
            : wal__no_memory(error);
    if (status != WAL_OK) {
        wal_view_close(opened);
        return status;
    }
    *view = opened;
    return WAL_OK;
}

static enum wal_status remove_orphan(struct wal_store *store,
                                     const struct wal_view_info *info,
                                     const struct wal__dialect *dialect,
                                     struct wal_error *error)
{
    struct wal_view *view = NULL;
    enum wal_status status = open_orphan(store, info, dialect, &view, error);

    if (status == WAL_OK) {
        status = remove_view(view, error);
        wal_view_close(view);
    }
    return status;
}

/* -------------------------------------------------------------- update --- */

static enum wal_status flush(struct wal_store *store,
                             struct wal_session *session,
                             const struct wal_view_info *info,
                             struct wal_view_flush_result *result,
                             struct wal_error *error)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = slice_of(info->dialect),
        .root = slice_of(info->root),
    };
    struct wal_view *view = NULL;
    enum wal_status status =
        wal_view_open(store, session, &options, &view, error);

    if (status == WAL_OK) {
        status = wal_view_flush(view, result, error);
        wal_view_close(view);
    }
    return status;
}

/* Fails unless the root exists: a flush would make it. */
static enum wal_status check_root(const struct wal_view_info *info,
                                  struct wal_error *error)
{
    struct stat stat_now;

    if (stat(info->root, &stat_now) != 0) {
        return wal__view_fs_fail(error, info->root);
    }
    return S_ISDIR(stat_now.st_mode)
               ? WAL_OK
               : wal__fail_at(error, WAL_ENOTFOUND, 0, info->root, 0,
                              "the root is no directory");
}

static enum wal_status update(struct wal_store *store,
                              const struct wal_view_info *info,
                              struct wal_view_flush_result *result,
                              struct wal_error *error)
{
    const struct wal__dialect *dialect =
        wal__view_find_dialect(slice_of(info->dialect));
    struct wal_session *session = NULL;
    enum wal_status status;

    if (dialect == NULL) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "views cannot be written in the dialect '%s'",
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
    status = wal_session_open(store, slice_of(info->session), &session, error);
    if (status == WAL_ENOTFOUND) {
        return remove_orphan(store, info, dialect, error);
    }
    if (status == WAL_OK) {
        status = flush(store, session, info, result, error);
        wal_session_close(session);
    }
    return status;
}

enum wal_status wal_view_update(struct wal_store *store,
                                const struct wal_view_info *info,
                                struct wal_view_flush_result *result,
                                struct wal_error *error)
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
