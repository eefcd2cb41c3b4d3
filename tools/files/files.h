/*
 * files.h - prints states and changes of files.
 */
#ifndef AGENTWAL_TOOLS_FILES_FILES_H
#define AGENTWAL_TOOLS_FILES_FILES_H

#include "agentwal/checkpoint.h"
#include "tools/cli/json.h"

/* "file", "symlink" or "absent". */
const char *files_kind_name(uint32_t kind);

/* Permission bits as a string, e.g. "0644". */
void files_json_mode(struct wal__json_out *json, uint32_t mode);

/* Writes {"path","before","after","modeBefore","modeAfter","insertions", "deletions","binary"};
 * modes only for regular files. */
void files_json_change(struct wal__json_out *json, const struct wal_file_change *change);

/* Prints a line: insertions, deletions, path, and a change of kind or mode. */
void files_print_change(const struct wal_file_change *change);

/* Prints `N files, +I -D` without a newline. */
void files_print_totals(const struct wal_file_changes_info *info);

/* Writes {"additions","deletions","files"}, the summary of a session. */
void files_json_totals(struct wal__json_out *json, const struct wal_file_changes_info *info);

#endif
