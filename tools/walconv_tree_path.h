/*
 * walconv_tree_path.h - paths of files in OpenCode's storage.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_TREE_PATH_H
#define AGENTWAL_TOOLS_WALCONV_TREE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"

enum {
    WALCONV_TREE_PARTS = 8 /* deeper ones are looked at no further */
};

struct walconv_tree_path {
    struct wal_slice parts[WALCONV_TREE_PARTS]; /* the last without .json */
    size_t count;
};

void walconv_tree_split(const char *text, struct walconv_tree_path *path);

/* Whether the file lies in the folder of that kind, of the older layout below
 * "session"; *below is the index of what follows. */
bool walconv_tree_is_kind(const struct walconv_tree_path *path,
                          const char *kind, size_t *below);

/* Whether it is a session's own file. */
bool walconv_tree_is_info(const struct walconv_tree_path *path);

#endif
