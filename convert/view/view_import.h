/*
 * view_import.h - imports lines that another program appended to a view's main
 * file into the session (SPEC.md 10.6).
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_H
#define AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_H

#include "convert/view/view.h"

enum wal_status wal__view_import(struct wal_view *view,
                                 struct wal_view_import_result *report,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
