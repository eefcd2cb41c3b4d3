/*
 * export_dir.h - the files of an imported tree, written out.
 *
 * Invariant: a file that holds what no version of it held is left as it is.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_EXPORT_DIR_H
#define AGENTWAL_TOOLS_WALCONV_EXPORT_DIR_H

#include "format/model/dialect.h"
#include "tools/walconv/export_source.h"

/* Puts all files of the session in place; source->path is that of its source,
 * with the group. `added` counts lines and documents. The exit code. */
int walconv_dir_export(const struct walconv_source *source,
                       const struct wal__dialect *dialect,
                       struct walconv_outcome *outcome);

/* Where the file of a stream lies, or the root where there is none; to be
 * freed. Null: the path is of no tree. */
char *walconv_dir_file_path(const char *path,
                            const struct wal__dialect *dialect,
                            uint32_t stream);

#endif
