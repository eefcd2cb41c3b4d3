/*
 * session_dir_target.h - find or create the session of a directory's files.
 *
 * Invariant: the same files find the session that they were imported into, as
 * long as its streams are prefixes of the files.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_TARGET_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_TARGET_H

#include "tools/walconv/import_dir/session_dir.h"
#include "tools/walconv/walconv.h"

/* The caller sets the first five members and zeroes the others. */
struct walconv_dir_session {
    const struct walconv_import *import;
    const struct walconv_dir *dir;
    const struct walconv_dir_group *group; /* of the directory */
    const struct wal__dialect *dialect;
    const char *path; /* of the directory, in the source */
    char *source;
    struct wal_session *session;
};

/* Opens the session, or creates it. */
enum wal_status walconv_dir_session_open(struct walconv_dir_session *target,
                                         struct wal_error *error);
void walconv_dir_session_close(struct walconv_dir_session *target);

#endif
