/*
 * view_lines.h - imports views of sessions of the store.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_TREE_VIEW_LINES_H
#define AGENTWAL_CONVERT_IMPORT_TREE_VIEW_LINES_H

#include "convert/import/import.h"

/* Imports the lines that were appended to a view into its session, and reports
 * the result. *is_view is false if the file is not a view, or is one that was
 * changed other than by appending; then import->view_session is its session. */
enum wal_status wal__import_view(struct wal__import *import, int fd,
                                 const char *name, bool *is_view,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
