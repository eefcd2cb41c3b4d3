/*
 * storage_path.c - splits paths of files in OpenCode's storage.
 *
 * Threads: any.
 */
#include "convert/import_tree/storage_path.h"

#include <string.h>

#include "engine/base/heap.h"

void wal__storage_path_split(const char *text, struct wal__storage_path *path)
{
    path->count = 0;
    while (path->count < WAL__STORAGE_PATH_PARTS) {
        size_t size = strcspn(text, "/");
        path->parts[path->count++] = (struct wal_slice){text, size};
        if (text[size] == '\0') {
            struct wal_slice *last = &path->parts[path->count - 1];
            if (size > 5 && strcmp(text + size - 5, ".json") == 0) {
                last->size -= 5;
            }
            return;
        }
        text += size + 1;
    }
}

static bool part_is(const struct wal__storage_path *path, size_t position,
                    const char *text)
{
    return position < path->count &&
           wal__slice_equal(path->parts[position], wal__slice_from_text(text));
}

bool wal__storage_path_is_kind(const struct wal__storage_path *path,
                               const char *kind, size_t *first)
{
    if (part_is(path, 0, "session") && part_is(path, 1, kind)) {
        *first = 2;
        return path->count > 2;
    }
    *first = 1;
    return part_is(path, 0, kind) && path->count > 1;
}

bool wal__storage_path_is_info(const struct wal__storage_path *path)
{
    size_t first;

    return path->count == 3 && part_is(path, 0, "session") &&
           !wal__storage_path_is_kind(path, "message", &first) &&
           !wal__storage_path_is_kind(path, "part", &first);
}
