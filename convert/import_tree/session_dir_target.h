/*
 * session_dir_target.h - finds or creates the session of a directory's files.
 *
 * Invariant: the same files find the session that they were imported into, as
 * long as its streams are prefixes of the files.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_TREE_SESSION_DIR_TARGET_H
#define AGENTWAL_CONVERT_IMPORT_TREE_SESSION_DIR_TARGET_H

#include "convert/import_tree/session_dir.h"
#include "convert/source/source_name.h"

/* The caller sets the first four members and zeroes the others. */
struct wal__session_dir_target {
    const struct wal__session_dir *dir;
    const struct wal__session_dir_group *group; /* of the directory */
    const struct wal__dialect *dialect;
    const char *path; /* of the directory, in the source */
    char source[WAL__SOURCE_SIZE_MAX + 1];
    struct wal_session *session;
};

/* Opens the session, or creates it. The caller closes it. */
enum wal_status
wal__session_dir_target_open(struct wal__session_dir_target *target,
                             struct wal_error *error);

#endif
