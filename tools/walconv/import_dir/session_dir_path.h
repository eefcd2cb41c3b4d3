/*
 * session_dir_path.h - paths of files in OpenCode's storage.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_PATH_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"

enum {
    WALCONV_DIR_PATH_PARTS = 8 /* deeper ones are looked at no further */
};

struct walconv_dir_path {
    struct wal_slice parts[WALCONV_DIR_PATH_PARTS]; /* the last without .json */
    size_t count;
};

void walconv_dir_path_split(const char *text, struct walconv_dir_path *path);

/* Whether the file lies in the folder of that kind, of the older layout below
 * "session"; *below is the index of what follows. */
bool walconv_dir_path_is_kind(const struct walconv_dir_path *path,
                              const char *kind, size_t *below);

/* Whether it is a session's own file. */
bool walconv_dir_path_is_info(const struct walconv_dir_path *path);

#endif
