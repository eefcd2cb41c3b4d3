/*
 * session_dir_check.h - compares the ids in files with the files' paths.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_TREE_SESSION_DIR_CHECK_H
#define AGENTWAL_CONVERT_IMPORT_TREE_SESSION_DIR_CHECK_H

#include "convert/import_tree/session_dir.h"

/* Issues of the files of a session. Zeroed: none. Texts are in the import's
 * arena. */
struct wal__import_issues {
    struct wal_import_issue *items;
    uint32_t count;
    uint32_t capacity;
};

/* Adds an issue of the file `path` below the root; copies `reason`. Without
 * memory import->arena.has_failed is set. */
void wal__import_issues_add(const struct wal__session_dir *dir,
                            struct wal__import_issues *issues, const char *path,
                            uint64_t offset, const char *reason);

/* Adds an issue for each id in a JSON file that differs from the id in its
 * path. */
void wal__session_dir_check_file(const struct wal__session_dir *dir,
                                 const struct wal__dialect *dialect,
                                 const struct wal__session_dir_file *file,
                                 struct wal_slice json,
                                 struct wal__import_issues *issues);

/* Adds an issue for each missing file of a session's directory. */
void wal__session_dir_check(const struct wal__session_dir *dir,
                            const struct wal__dialect *dialect,
                            struct wal__import_issues *issues);

#endif
