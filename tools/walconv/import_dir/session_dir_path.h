/*
 * session_dir_path.h - paths of files in OpenCode's storage.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_PATH_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"

enum {
    WALCONV_DIR_PATH_PARTS = 8 /* deeper components are ignored */
};

struct walconv_dir_path {
    /* The last one without .json. */
    struct wal_slice parts[WALCONV_DIR_PATH_PARTS];
    size_t count;
};

void walconv_dir_path_split(const char *text, struct walconv_dir_path *path);

/* Returns true if the file is in the folder of that kind, which older
 * versions keep below "session". *first is the index of the component after
 * the folder. */
bool walconv_dir_path_is_kind(const struct walconv_dir_path *path,
                              const char *kind, size_t *first);

/* Returns true if it is a session's info file. */
bool walconv_dir_path_is_info(const struct walconv_dir_path *path);

#endif
