/*
 * import_tree.c - wal_import_file and wal_import_tree: finds the sources among
 * files and directories (agentwal/import.h).
 *
 * Invariant: sources are imported in the order of their names, except that a
 * file that names another session as its origin waits for that session; so
 * equal directories give equal sessions.
 *
 * Threads: any.
 */
#include "engine/convert/import_tree/import_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/convert/import/copy_origin.h"
#include "engine/convert/import/file_import.h"
#include "engine/convert/import_tree/session_dir_import.h"
#include "engine/convert/import_tree/view_lines.h"

/* A file that waits for another session. */
struct deferred {
    const char *name; /* NULL: it was imported since */
    const char *path;
};

/* One walk over the arguments. */
struct walk {
    struct wal__import import;
    bool is_one_source; /* a directory must be a session's */
    bool has_exclude;
    struct stat exclude;
    struct deferred *deferred;
    uint32_t deferred_count;
    uint32_t deferred_capacity;
};

/* Begins a source. */
static void reset(struct wal__import *import)
{
    wal__heap_arena_reset(&import->arena);
    import->view_session = NULL;
}

/* ------------------------------------------------------------- files --- */

/* *must_wait: the file may be a copy of sessions it names, and none of these is
 * in the store. */
static enum wal_status must_defer(struct wal__import *import, int fd,
                                  bool *must_wait, struct wal_error *error)
{
    struct wal__copy_origins origins = {.count = 0};
    struct stat stat;

    if (fstat(fd, &stat) != 0 ||
        wal__copy_origins_read(&import->arena, fd, (uint64_t)stat.st_size,
                               &origins) < 0) {
        return wal__import_errno(error);
    }
    *must_wait = wal__copy_origins_are_missing(&origins, import->store);
    return wal__import_check_memory(import, error);
}

static const char *keep_text(struct wal__import *import, const char *text)
{
    struct wal__json_span span = {(const uint8_t *)text, strlen(text) + 1};

    return (const char *)wal__arena_copy(&import->walk.arena, span).data;
}

static enum wal_status defer(struct walk *walk, const char *name,
                             const char *path, struct wal_error *error)
{
    struct deferred *items = wal__heap_grow_array(
        walk->import.heap, walk->deferred, walk->deferred_count,
        &walk->deferred_capacity, sizeof(items[0]));

    if (items == NULL) {
        return wal__no_memory(error);
    }
    walk->deferred = items;
    items[walk->deferred_count++] = (struct deferred){
        keep_text(&walk->import, name), keep_text(&walk->import, path)};
    return wal__import_check_memory(&walk->import, error);
}

/* Imports an open file. *is_deferred is true if it must wait for another
 * session; that can happen only with `may_defer`. */
static enum wal_status import_open_file(struct wal__import *import, int fd,
                                        const char *name, const char *path,
                                        bool may_defer, bool *is_deferred,
                                        struct wal_error *error)
{
    bool is_view;
    enum wal_status status =
        wal__import_view(import, fd, name, &is_view, error);

    if (status != WAL_OK || is_view) {
        return status;
    }
    if (may_defer) {
        status = must_defer(import, fd, is_deferred, error);
    }
    return status == WAL_OK && !*is_deferred
               ? wal__import_file(import, fd, name, path, error)
               : status;
}

/* The same for a path; a failure is reported. */
static enum wal_status import_path(struct wal__import *import, const char *name,
                                   const char *path, bool may_defer,
                                   bool *is_deferred, struct wal_error *error)
{
    bool is_exported = false;
    enum wal_status status;
    int fd;

    *is_deferred = false;
    reset(import);
    status = wal__import_exported(import, name, path, &is_exported, error);
    if (status != WAL_OK || is_exported) {
        return status;
    }
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        status = wal__import_errno(error);
    } else {
        status = import_open_file(import, fd, name, path, may_defer,
                                  is_deferred, error);
        close(fd);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__import_fail(import, name, status, error);
}

static enum wal_status import_or_defer(struct walk *walk, const char *name,
                                       const char *path,
                                       struct wal_error *error)
{
    bool is_deferred;
    enum wal_status status;

    walk->import.result.sources++;
    status = import_path(&walk->import, name, path, !walk->is_one_source,
                         &is_deferred, error);
    return status == WAL_OK && is_deferred ? defer(walk, name, path, error)
                                           : status;
}

/* Tries the deferred files once; without `may_defer`, imports all of them.
 * *has_progress: one was imported. */
static enum wal_status import_deferred_once(struct walk *walk, bool may_defer,
                                            bool *has_progress,
                                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    *has_progress = false;
    for (uint32_t i = 0; status == WAL_OK && i < walk->deferred_count; i++) {
        struct deferred *file = &walk->deferred[i];
        bool is_deferred = false;

        if (file->name == NULL) {
            continue;
        }
        status = import_path(&walk->import, file->name, file->path, may_defer,
                             &is_deferred, error);
        if (!is_deferred) {
            file->name = NULL;
            *has_progress = true;
        }
    }
    return status;
}

/* A file whose origin is not part of the import is imported without it. */
static enum wal_status import_deferred(struct walk *walk,
                                       struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool has_progress = walk->deferred_count > 0;

    while (status == WAL_OK && has_progress) {
        status = import_deferred_once(walk, true, &has_progress, error);
    }
    return status == WAL_OK
               ? import_deferred_once(walk, false, &has_progress, error)
               : status;
}

/* -------------------------------------------------------------- walk --- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* The path of a file relative to the argument; for the argument itself its
 * name. */
static const char *relative_path(const FTSENT *entry, const char *argument)
{
    const char *path = entry->fts_path;
    const char *slash;

    if (entry->fts_level == 0) {
        slash = strrchr(path, '/');
        return slash != NULL ? slash + 1 : path;
    }
    path += strlen(argument);
    return path + strspn(path, "/");
}

/* Imports a session directory as a whole, and excludes its files from the
 * walk. */
static enum wal_status import_directory(struct walk *walk, FTS *fts,
                                        FTSENT *entry, const char *argument,
                                        struct wal_error *error)
{
    struct wal__import *import = &walk->import;
    const struct wal__dialect *dialect;
    enum wal_status status;

    reset(import);
    dialect = wal__session_dir_detect(import, entry->fts_path);
    status = wal__import_check_memory(import, error);
    if (status != WAL_OK) {
        return status;
    }
    if (dialect != NULL) {
        fts_set(fts, entry, FTS_SKIP);
        import->result.sources++;
        return wal__import_dir(
            import, entry->fts_path,
            entry->fts_level == 0 ? "" : relative_path(entry, argument),
            dialect, error);
    }
    if (walk->is_one_source) {
        fts_set(fts, entry, FTS_SKIP);
        status = wal__fail(error, WAL_ENOTFILE,
                           "the directory is not that of a session");
        return wal__import_fail(import, entry->fts_path, status, error);
    }
    return WAL_OK;
}

/* Returns true for the excluded directory, and for the folder in which views
 * store their state. */
static bool is_excluded(const struct walk *walk, const FTSENT *entry)
{
    return (walk->has_exclude &&
            entry->fts_statp->st_dev == walk->exclude.st_dev &&
            entry->fts_statp->st_ino == walk->exclude.st_ino) ||
           (entry->fts_level > 0 && strcmp(entry->fts_name, ".agentwal") == 0);
}

static enum wal_status import_entry(struct walk *walk, FTS *fts, FTSENT *entry,
                                    const char *argument,
                                    struct wal_error *error)
{
    enum wal_status status;

    switch (entry->fts_info) {
    case FTS_D:
        if (is_excluded(walk, entry)) {
            fts_set(fts, entry, FTS_SKIP);
            return WAL_OK;
        }
        return import_directory(walk, fts, entry, argument, error);
    case FTS_F:
        return import_or_defer(walk, entry->fts_path,
                               relative_path(entry, argument), error);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = entry->fts_errno;
        status = wal__import_errno(error);
        return wal__import_fail(&walk->import, entry->fts_path, status, error);
    default:
        if (entry->fts_level > 0 || entry->fts_info == FTS_DP) {
            return WAL_OK;
        }
        status = wal__fail(error, WAL_ENOTFILE,
                           "neither a regular file nor a directory");
        return wal__import_fail(&walk->import, entry->fts_path, status, error);
    }
}

static enum wal_status import_argument(struct walk *walk, char *argument,
                                       struct wal_error *error)
{
    char *paths[] = {argument, NULL};
    FTS *fts =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    enum wal_status status = WAL_OK;
    FTSENT *entry = NULL;

    while (fts != NULL && status == WAL_OK &&
           (errno = 0, entry = fts_read(fts)) != NULL) {
        status = import_entry(walk, fts, entry, argument, error);
    }
    if (status == WAL_OK && (fts == NULL || errno != 0)) {
        status = wal__import_errno(error);
        status = wal__import_fail(&walk->import, argument, status, error);
    }
    if (fts != NULL) {
        fts_close(fts);
    }
    return status;
}

/* ----------------------------------------------------------- interface --- */

static char *argument_text(struct walk *walk, struct wal_slice path)
{
    char *text =
        wal__arena_alloc(&walk->import.walk.arena, (size_t)path.size + 1);

    if (text != NULL) {
        if (path.size > 0) {
            memcpy(text, path.data, (size_t)path.size);
        }
        text[path.size] = '\0';
    }
    return text;
}

static enum wal_status set_options(struct walk *walk,
                                   const struct wal_import_options *options,
                                   struct wal_error *error)
{
    struct wal__import *import = &walk->import;
    const char *text;

    if (options == NULL) {
        return WAL_OK;
    }
    import->progress = options->progress;
    import->report = options->report;
    import->project = options->project;
    import->ctx = options->ctx;
    if (options->exclude.size > 0) {
        text = argument_text(walk, options->exclude);
        walk->has_exclude = text != NULL && stat(text, &walk->exclude) == 0;
    }
    if (options->dialect.size > 0) {
        text = argument_text(walk, options->dialect);
        import->forced = text != NULL ? wal__dialect_find(text) : NULL;
        if (text != NULL && import->forced == NULL) {
            return wal__fail(error, WAL_ENOTFOUND, "there is no dialect '%s'",
                             text);
        }
    }
    return wal__import_check_memory(import, error);
}

static enum wal_status import_arguments(struct walk *walk,
                                        const struct wal_slice *paths,
                                        uint32_t count, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; status == WAL_OK && i < count; i++) {
        char *argument = argument_text(walk, paths[i]);

        status = argument != NULL ? import_argument(walk, argument, error)
                                  : wal__no_memory(error);
    }
    return status == WAL_OK ? import_deferred(walk, error) : status;
}

static void init(struct walk *walk, struct wal_store *store,
                 const struct wal__heap *heap)
{
    struct wal__import *import = &walk->import;

    import->store = store;
    import->heap = heap;
    import->first.struct_size = sizeof(import->first);
    import->result.struct_size = sizeof(import->result);
    wal__heap_arena_init(&import->arena, heap);
    wal__heap_arena_init(&import->walk, heap);
}

static void destroy(struct walk *walk)
{
    wal__heap_arena_deinit(&walk->import.arena);
    wal__heap_arena_deinit(&walk->import.walk);
    wal__heap_free(walk->import.heap, walk->deferred);
    wal__heap_free(walk->import.heap, walk);
}

enum wal_status wal__import_paths(struct wal_store *store,
                                  const struct wal_slice *paths, uint32_t count,
                                  bool is_one_source,
                                  const struct wal_import_options *options,
                                  const struct wal__heap *heap,
                                  struct wal_import_result *result,
                                  struct wal_error *error)
{
    struct wal_error cause = {.struct_size = sizeof(cause)};
    struct walk *walk = wal__heap_zalloc(heap, sizeof(*walk));
    enum wal_status status;

    if (walk == NULL) {
        return wal__no_memory(error);
    }
    init(walk, store, heap);
    walk->is_one_source = is_one_source;
    status = set_options(walk, options, &cause);
    if (status == WAL_OK) {
        status = import_arguments(walk, paths, count, &cause);
    }
    if (status == WAL_OK && is_one_source) {
        status = (enum wal_status)walk->import.first.status;
        cause = walk->import.first;
    }
    if (result != NULL) {
        *result = walk->import.result;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &cause);
    }
    destroy(walk);
    return status;
}

static enum wal_status check_arguments(const struct wal_store *store,
                                       const struct wal_slice *paths,
                                       uint32_t count,
                                       const struct wal_import_options *options,
                                       struct wal_error *error)
{
    if (store == NULL || (paths == NULL && count > 0) || options->flags != 0) {
        return wal__invalid(
            error, "store and paths must not be NULL, and flags must be 0");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (paths[i].size > 0 &&
            (paths[i].data == NULL ||
             memchr(paths[i].data, '\0', (size_t)paths[i].size) != NULL)) {
            return wal__invalid(error, "a path must not contain a zero byte");
        }
    }
    return WAL_OK;
}

const char *wal_import_dialect(uint32_t index)
{
    const struct wal__dialect *dialect = wal__dialect_at(index);

    return dialect != NULL ? dialect->name : NULL;
}

static enum wal_status import_paths(struct wal_store *store,
                                    const struct wal_slice *paths,
                                    uint32_t count, bool is_one_source,
                                    const struct wal_import_options *options,
                                    struct wal_import_result *result,
                                    struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_import_result);
    struct wal_import_result done = WAL_INIT(wal_import_result);
    struct wal_import_options own;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_import_options), &own, options, error);

    if (status == WAL_OK) {
        status = check_arguments(store, paths, count, &own, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(type, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__import_paths(store, paths, count, is_one_source, &own,
                               &wal__heap_libc, &done, error);
    wal__struct_store(type, result, &done);
    return status;
}

enum wal_status wal_import_file(struct wal_store *store, struct wal_slice path,
                                const struct wal_import_options *options,
                                struct wal_import_result *result,
                                struct wal_error *error)
{
    return import_paths(store, &path, 1, true, options, result, error);
}

enum wal_status
wal_import_tree(struct wal_store *store, const struct wal_slice *paths,
                uint32_t path_count, const struct wal_import_options *options,
                struct wal_import_result *result, struct wal_error *error)
{
    return import_paths(store, paths, path_count, false, options, result,
                        error);
}
