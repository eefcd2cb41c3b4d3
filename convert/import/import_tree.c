/*
 * import_tree.c - wal_import_file and wal_import_tree: imports the sources
 * among files and directories; wal_import_scan: counts what an import would
 * take (agentwal/import.h).
 *
 * Invariant: sources are imported in the order of their names.
 *
 * Threads: any.
 */
#include "convert/import/import_tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/import/file_import.h"
#include "convert/import/session_dir.h"
#include "convert/import/session_dir_import.h"
#include "convert/import/tree_walk.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

/* --- options ------------------------------------------------------------- */

enum wal_status
wal__tree_check_arguments(const struct wal_slice *paths, uint32_t count,
                          const struct wal_import_options *options,
                          struct wal_error *error)
{
    const uint32_t flags = WAL_IMPORT_ALL_FILES | WAL_IMPORT_OTHER_FILES;

    if ((paths == NULL && count > 0) || (options->flags & ~flags) != 0) {
        return wal__invalid(error, "paths must not be NULL, and flags "
                                   "must be known");
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

void wal__tree_init_import(struct wal__import *import, struct wal_store *store,
                           const struct wal__heap *heap)
{
    import->store = store;
    import->heap = heap;
    import->first.struct_size = sizeof(import->first);
    import->result.struct_size = sizeof(import->result);
    wal__heap_arena_init(&import->arena, heap);
    wal__heap_arena_init(&import->walk, heap);
    wal__view_index_init(&import->views, store, heap);
}

char *wal__tree_argument(struct wal__import *import, struct wal_slice path)
{
    char *text = wal__arena_alloc(&import->walk.arena, (size_t)path.size + 1);

    if (text != NULL) {
        if (path.size > 0) {
            memcpy(text, path.data, (size_t)path.size);
        }
        text[path.size] = '\0';
    }
    return text;
}

enum wal_status wal__tree_set_options(struct wal__tree_walk *walk,
                                      const struct wal_import_options *options,
                                      struct wal_error *error)
{
    struct wal__import *import = walk->import;
    const char *text;

    if (options == NULL) {
        return WAL_OK;
    }
    walk->flags = options->flags;
    import->progress = options->progress;
    import->report = options->report;
    import->project = options->project;
    import->ctx = options->ctx;
    if (options->exclude.size > 0) {
        text = wal__tree_argument(import, options->exclude);
        walk->has_exclude = text != NULL && stat(text, &walk->exclude) == 0;
    }
    if (options->dialect.size > 0) {
        text = wal__tree_argument(import, options->dialect);
        import->forced = text != NULL ? wal__dialect_find(text) : NULL;
        if (text != NULL && import->forced == NULL) {
            return wal__fail(error, WAL_ENOTFOUND, "there is no dialect '%s'",
                             text);
        }
    }
    return wal__import_check_memory(import, error);
}

/* --- import -------------------------------------------------------------- */

/* One call. */
struct tree {
    struct wal__import import;
    struct wal__tree_walk walk;
};

/* Begins a source. */
static void reset(struct wal__import *import,
                  const struct wal__tree_source *source)
{
    wal__heap_arena_reset(&import->arena);
    import->view_session = NULL;
    import->matches_ids = source->is_matched_by_id;
}

/* --- files --------------------------------------------------------------- */

static enum wal_status import_open_file(struct wal__import *import, int fd,
                                        const struct wal__tree_source *source,
                                        struct wal_error *error)
{
    bool is_view = false;
    bool is_session = true;
    enum wal_status status =
        wal__import_view(import, fd, source->name, &is_view, error);

    if (status == WAL_OK && !is_view && source->must_be_session) {
        status =
            wal__tree_is_session(import, fd, source->path, &is_session, error);
    }
    if (status == WAL_OK && !is_session) {
        wal__tree_leave_out(import, source->path);
        import->result.sources--;
        return WAL_OK;
    }
    return status == WAL_OK && !is_view
               ? wal__import_file(import, fd, source->name, source->path, error)
               : status;
}

enum wal_status wal__tree_import_file(struct wal__import *import,
                                      const struct wal__tree_source *source,
                                      struct wal_error *error)
{
    int flags = source->is_argument ? 0 : O_NOFOLLOW;
    bool is_exported = false;
    enum wal_status status;
    int fd;

    import->result.sources++;
    reset(import, source);
    if (!source->must_be_session || wal__session_dir_is_json(source->path)) {
        status = wal__import_exported(import, source->name, source->path,
                                      &is_exported, error);
        if (status != WAL_OK || is_exported) {
            return status;
        }
    }
    fd = open(source->name,
              O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
    if (fd < 0) {
        status = wal__import_errno(error);
    } else {
        status = import_open_file(import, fd, source, error);
        close(fd);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__import_fail(import, source->name, status, error);
}

/* A wal__tree_visit_fn. */
static enum wal_status visit_file(void *ctx,
                                  const struct wal__tree_source *source,
                                  struct wal_error *error)
{
    struct tree *tree = ctx;

    return wal__tree_import_file(&tree->import, source, error);
}

enum wal_status
wal__tree_import_directory(struct wal__import *import,
                           const struct wal__tree_source *source,
                           struct wal_error *error)
{
    import->result.sources++;
    reset(import, source);
    return wal__import_dir(import, source->name, source->path, source->dialect,
                           source->files, error);
}

/* A wal__tree_visit_fn. */
static enum wal_status visit_directory(void *ctx,
                                       const struct wal__tree_source *source,
                                       struct wal_error *error)
{
    struct tree *tree = ctx;

    return wal__tree_import_directory(&tree->import, source, error);
}

/* --- interface ----------------------------------------------------------- */

static enum wal_status import_arguments(struct tree *tree,
                                        const struct wal_slice *paths,
                                        uint32_t count, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; status == WAL_OK && i < count; i++) {
        char *argument = wal__tree_argument(&tree->import, paths[i]);

        status = argument != NULL
                     ? wal__tree_walk_argument(&tree->walk, argument, error)
                     : wal__no_memory(error);
    }
    return status;
}

static void init(struct tree *tree, struct wal_store *store,
                 const struct wal__heap *heap)
{
    struct wal__import *import = &tree->import;

    wal__tree_init_import(import, store, heap);
    tree->walk.import = import;
    tree->walk.ctx = tree;
    tree->walk.file = visit_file;
    tree->walk.directory = visit_directory;
}

static void destroy(struct tree *tree)
{
    wal__heap_arena_deinit(&tree->import.arena);
    wal__heap_arena_deinit(&tree->import.walk);
    wal__view_index_deinit(&tree->import.views);
    wal__heap_free(tree->import.heap, tree);
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
    struct tree *tree = wal__heap_zalloc(heap, sizeof(*tree));
    enum wal_status status;

    if (tree == NULL) {
        return wal__no_memory(error);
    }
    init(tree, store, heap);
    tree->walk.is_one_source = is_one_source;
    status = wal__tree_set_options(&tree->walk, options, &cause);
    if (status == WAL_OK) {
        status = import_arguments(tree, paths, count, &cause);
    }
    if (status == WAL_OK && is_one_source) {
        status = (enum wal_status)tree->import.first.status;
        cause = tree->import.first;
    }
    if (result != NULL) {
        *result = tree->import.result;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &cause);
    }
    destroy(tree);
    return status;
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
        status = store != NULL
                     ? wal__tree_check_arguments(paths, count, &own, error)
                     : wal__invalid(error, "store must not be NULL");
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

/* --- scan ---------------------------------------------------------------- */

static_assert((int)WAL_IMPORT_CREDENTIALS == (int)WAL__FILE_CREDENTIALS &&
                  (int)WAL_IMPORT_LINKS == (int)WAL__FILE_LINK &&
                  (int)WAL_IMPORT_OTHERS == (int)WAL__FILE_OTHER &&
                  (int)WAL_IMPORT_LEFT_OUT_SIZE == (int)WAL__FILE_KINDS,
              "the public kinds are those of client.h");

/* Opens a file that counts only with the content of a session. */
static enum wal_status check_content(struct wal__import *import,
                                     const struct wal__tree_source *source,
                                     bool *is_session, struct wal_error *error)
{
    struct wal__session_dir dir = {.import = import, .root = "."};
    enum wal_status status;
    int fd;

    if (wal__session_dir_is_json(source->path)) {
        *is_session = wal__session_dir_read_exported(&dir, source->name);
        wal__session_dir_deinit(&dir);
        return wal__import_check_memory(import, error);
    }
    fd = open(source->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return wal__import_errno(error);
    }
    status = wal__tree_is_session(import, fd, source->path, is_session, error);
    close(fd);
    return status;
}

/* A wal__tree_visit_fn. */
static enum wal_status scan_file(void *ctx,
                                 const struct wal__tree_source *source,
                                 struct wal_error *error)
{
    struct wal__tree_walk *walk = ctx;
    struct wal__import *import = walk->import;
    bool is_session = true;
    enum wal_status status = WAL_OK;

    wal__heap_arena_reset(&import->arena);
    if (source->must_be_session) {
        status = check_content(import, source, &is_session, error);
    }
    if (status != WAL_OK) {
        return wal__import_fail(import, source->name, status, error);
    }
    if (!is_session) {
        wal__tree_leave_out(import, source->path);
        return WAL_OK;
    }
    import->result.sources++;
    import->result.sessions++;
    import->result.bytes += source->size;
    return wal__import_progress(import, source->name, source->size,
                                source->size, error);
}

/* Adds up the sizes of the directory's files. */
static void add_sizes(const struct wal__session_dir *dir)
{
    struct stat stat;

    for (uint32_t i = 0; i < dir->file_count; i++) {
        const char *name =
            wal__import_path(dir->import, dir->root, dir->files[i].path);

        if (name != NULL && lstat(name, &stat) == 0) {
            dir->import->result.bytes += (uint64_t)stat.st_size;
        }
    }
}

/* A wal__tree_visit_fn. */
static enum wal_status scan_directory(void *ctx,
                                      const struct wal__tree_source *source,
                                      struct wal_error *error)
{
    struct wal__tree_walk *walk = ctx;
    struct wal__import *import = walk->import;
    struct wal__session_dir dir = {
        .import = import, .root = source->name, .patterns = source->files};
    enum wal_status status;

    wal__heap_arena_reset(&import->arena);
    status = wal__session_dir_list_files(&dir, error);
    if (status == WAL_OK) {
        if (source->dialect->read_ops->stream != NULL) {
            wal__session_dir_group_single(&dir);
        } else {
            wal__session_dir_group_storage(&dir);
        }
        add_sizes(&dir);
        import->result.sources++;
        import->result.sessions += dir.group_count;
        status = wal__import_check_memory(import, error);
    }
    wal__session_dir_deinit(&dir);
    return status == WAL_OK
               ? wal__import_progress(import, source->name, 0, 0, error)
               : status;
}

static enum wal_status scan_paths(struct wal__tree_walk *walk,
                                  const struct wal_slice *paths, uint32_t count,
                                  const struct wal_import_options *options,
                                  struct wal_error *error)
{
    enum wal_status status = wal__tree_set_options(walk, options, error);

    for (uint32_t i = 0; status == WAL_OK && i < count; i++) {
        char *argument = wal__tree_argument(walk->import, paths[i]);

        status = argument != NULL
                     ? wal__tree_walk_argument(walk, argument, error)
                     : wal__no_memory(error);
    }
    return status;
}

static enum wal_status scan(const struct wal_slice *paths, uint32_t count,
                            const struct wal_import_options *options,
                            struct wal_import_result *result,
                            struct wal_error *error)
{
    const struct wal__heap *heap = &wal__heap_libc;
    struct wal_error cause = {.struct_size = sizeof(cause)};
    struct wal__import *import = wal__heap_zalloc(heap, sizeof(*import));
    struct wal__tree_walk *walk = wal__heap_zalloc(heap, sizeof(*walk));
    enum wal_status status = WAL_ENOMEM;

    if (import != NULL && walk != NULL) {
        wal__tree_init_import(import, NULL, heap);
        *walk = (struct wal__tree_walk){.import = import,
                                        .file = scan_file,
                                        .directory = scan_directory,
                                        .ctx = walk};
        status = scan_paths(walk, paths, count, options, &cause);
        *result = import->result;
        wal__heap_arena_deinit(&import->arena);
        wal__heap_arena_deinit(&import->walk);
        wal__view_index_deinit(&import->views);
        if (status != WAL_OK) {
            wal__error_copy(error, &cause);
        }
    } else {
        status = wal__no_memory(error);
    }
    wal__heap_free(heap, walk);
    wal__heap_free(heap, import);
    return status;
}

enum wal_status wal_import_scan(const struct wal_slice *paths,
                                uint32_t path_count,
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
        status = wal__tree_check_arguments(paths, path_count, &own, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_output(type, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = scan(paths, path_count, &own, &done, error);
    wal__struct_store(type, result, &done);
    return status;
}

enum wal_status wal_import_client(uint32_t index,
                                  struct wal_import_client *client,
                                  struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_import_client);
    const struct wal__client *found = wal__client_at(index);
    struct wal_import_client own = WAL_INIT(wal_import_client);
    enum wal_status status = wal__struct_check_output(type, client, error);

    if (status != WAL_OK || found == NULL) {
        return status == WAL_OK ? WAL_END : status;
    }
    own.name = found->name;
    own.dialect = found->dialect;
    if (!wal__client_folder(found, own.folder)) {
        return wal__fail(error, WAL_ENOTFOUND, "HOME is not set");
    }
    wal__struct_store(type, client, &own);
    return WAL_OK;
}

const char *wal_import_left_out_name(uint32_t kind)
{
    return wal__left_kind_name((enum wal__left_kind)kind);
}
