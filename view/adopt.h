/*
 * adopt.h - takes what another program wrote behind a view's main file into
 * the session.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_VIEW_ADOPT_H
#define AGENTWAL_VIEW_ADOPT_H

#include "view/view.h"

enum wal_status wal__view_adopt(struct wal_view *view,
                                struct wal_view_import_report *report,
                                struct wal_error *error) WAL_MUST_USE;

#endif
