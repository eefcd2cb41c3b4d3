/*
 * walconv_tree_session.h - the session that files of a tree go into.
 *
 * Invariant: the same files find the session that they went into before, as
 * long as its streams are beginnings of theirs.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_TREE_SESSION_H
#define AGENTWAL_TOOLS_WALCONV_TREE_SESSION_H

#include "tools/walconv.h"
#include "tools/walconv_tree.h"

/* The owner sets the first five fields and zeroes the others. */
struct walconv_tree_session {
    const struct walconv_import *import;
    const struct walconv_tree *tree;
    const struct walconv_tree_group *group; /* of the tree */
    const struct wal__dialect *dialect;
    const char *path; /* of the tree, in the source */
    char *source;
    struct wal_session *session;
};

/* Opens the session, or makes it. */
enum wal_status walconv_tree_session_open(struct walconv_tree_session *at,
                                          struct wal_error *error);
void walconv_tree_session_close(struct walconv_tree_session *at);

#endif
