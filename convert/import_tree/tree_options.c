/*
 * tree_options.c - checks and copies arguments (tree_options.h).
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import_tree/tree_options.h"

#include <string.h>

#include "engine/base/error.h"

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
