/*
 * session_dir_check.h - whether the files of a dir agree with their names.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_CHECK_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_CHECK_H

#include "tools/walconv/import/file_issues.h"
#include "tools/walconv/import_dir/session_dir.h"

/* Adds what is odd in a file of JSON: ids that are not those in its path. */
void walconv_dir_check_file(const struct walconv_dir *dir,
                            const struct wal__dialect *dialect,
                            const struct walconv_dir_file *file,
                            struct wal_slice json,
                            struct walconv_file_issues *issues);

/* Adds what a session's directory lacks. */
void walconv_dir_check(const struct walconv_dir *dir,
                       const struct wal__dialect *dialect,
                       struct walconv_file_issues *issues);

#endif
