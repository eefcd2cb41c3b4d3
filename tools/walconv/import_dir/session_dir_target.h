/*
 * session_dir_target.h - the session that files of a dir go into.
 *
 * Invariant: the same files find the session that they went into before, as
 * long as its streams are beginnings of theirs.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_TARGET_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_TARGET_H

#include "tools/walconv/import_dir/session_dir.h"
#include "tools/walconv/walconv.h"

/* The owner sets the first five fields and zeroes the others. */
struct walconv_dir_session {
    const struct walconv_import *import;
    const struct walconv_dir *dir;
    const struct walconv_dir_group *group; /* of the dir */
    const struct wal__dialect *dialect;
    const char *path; /* of the dir, in the source */
    char *source;
    struct wal_session *session;
};

/* Opens the session, or makes it. */
enum wal_status walconv_dir_session_open(struct walconv_dir_session *target,
                                         struct wal_error *error);
void walconv_dir_session_close(struct walconv_dir_session *target);

#endif
