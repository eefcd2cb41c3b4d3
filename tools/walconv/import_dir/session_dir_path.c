/*
 * session_dir_path.c - paths of files in OpenCode's storage.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import_dir/session_dir_path.h"

#include <string.h>

#include "tools/cli/cli.h"

void walconv_dir_path_split(const char *text, struct walconv_dir_path *path)
{
    path->count = 0;
    while (path->count < WALCONV_DIR_PATH_PARTS) {
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

static bool part_is(const struct walconv_dir_path *path, size_t position,
                    const char *text)
{
    return position < path->count &&
           cli_slice_equal(path->parts[position], cli_slice(text));
}

bool walconv_dir_path_is_kind(const struct walconv_dir_path *path,
                              const char *kind, size_t *first)
{
    if (part_is(path, 0, "session") && part_is(path, 1, kind)) {
        *first = 2;
        return path->count > 2;
    }
    *first = 1;
    return part_is(path, 0, kind) && path->count > 1;
}

bool walconv_dir_path_is_info(const struct walconv_dir_path *path)
{
    size_t first;

    return path->count == 3 && part_is(path, 0, "session") &&
           !walconv_dir_path_is_kind(path, "message", &first) &&
           !walconv_dir_path_is_kind(path, "part", &first);
}
