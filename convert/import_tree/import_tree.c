/*
 * import_tree.c - wal_import_file and wal_import_tree: imports the sources
 * among files and directories (agentwal/import.h).
 *
 * Invariant: sources are imported in the order of their names.
 *
 * Threads: any.
 */
#include "convert/import_tree/import_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/import/file_import.h"
#include "convert/import_tree/session_dir_import.h"
#include "convert/import_tree/tree_options.h"
#include "convert/import_tree/view_lines.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

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

/* ------------------------------------------------------------- files --- */

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

/* A session in one file of JSON. */
static bool may_be_exported(const struct wal__tree_source *source)
{
    return !source->must_be_session || wal__session_dir_is_json(source->path);
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
    if (may_be_exported(source)) {
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

/* ----------------------------------------------------------- interface --- */

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
