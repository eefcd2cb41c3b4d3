/*
 * export_dir.h - write the files of an imported session directory.
 *
 * Invariant: a file whose content is not a version of it in the session is not
 * changed.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_EXPORT_DIR_H
#define AGENTWAL_TOOLS_CONVERT_EXPORT_DIR_H

#include "convert/model/dialect.h"
#include "tools/convert/export_source.h"

/* Writes all files of the session; source->path is the path of its source,
 * with the group. outcome->added counts lines and documents. Returns an exit
 * code. */
int convert_dir_export(const struct convert_source *source,
                       const struct wal__dialect *dialect,
                       struct convert_outcome *outcome);

/* Returns the path of a stream's file, or the root if the dialect has no such
 * stream. NULL: the path is not that of a session directory. The caller frees
 * the result. */
char *convert_dir_file_path(const char *path,
                            const struct wal__dialect *dialect,
                            uint32_t stream);

#endif
