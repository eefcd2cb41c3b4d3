/*
 * tree_scan.c - wal_import_scan: counts what an import would take.
 *
 * Threads: any.
 */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "convert/import_tree/session_dir.h"
#include "convert/import_tree/tree_options.h"
#include "convert/import_tree/tree_walk.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

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
