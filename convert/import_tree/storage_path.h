/*
 * storage_path.h - paths of files in OpenCode's storage.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_TREE_STORAGE_PATH_H
#define AGENTWAL_CONVERT_IMPORT_TREE_STORAGE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"

enum {
    WAL__STORAGE_PATH_PARTS = 8 /* deeper components are ignored */
};

struct wal__storage_path {
    /* The last one without .json. */
    struct wal_slice parts[WAL__STORAGE_PATH_PARTS];
    size_t count;
};

void wal__storage_path_split(const char *text, struct wal__storage_path *path);

/* Returns true if the file is in the folder of that kind, which older
 * versions keep below "session". *first is the index of the component after
 * the folder. */
bool wal__storage_path_is_kind(const struct wal__storage_path *path,
                               const char *kind, size_t *first);

/* Returns true if it is a session's info file. */
bool wal__storage_path_is_info(const struct wal__storage_path *path);

#endif
