/*
 * session_dir_check.h - compare the ids in files with the files' paths.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_CHECK_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_CHECK_H

#include "tools/walconv/import/file_issues.h"
#include "tools/walconv/import_dir/session_dir.h"

/* Adds an issue for each id in a JSON file that differs from the id in its
 * path. */
void walconv_dir_check_file(const struct walconv_dir *dir,
                            const struct wal__dialect *dialect,
                            const struct walconv_dir_file *file,
                            struct wal_slice json,
                            struct walconv_file_issues *issues);

/* Adds an issue for each missing file of a session's directory. */
void walconv_dir_check(const struct walconv_dir *dir,
                       const struct wal__dialect *dialect,
                       struct walconv_file_issues *issues);

#endif
