/*
 * picker.h - pick a session on the terminal.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_RESUME_PICKER_H
#define AGENTWAL_TOOLS_RESUME_PICKER_H

#include "tools/resume/list.h"
#include "tools/terminal/screen.h"

/* Lets the user pick. *index is that of a row, or SIZE_MAX when the user gave
 * up. `query` is what was typed already. */
enum wal_status resume_pick(struct screen *screen, struct wal_store *store,
                            struct resume_list *list, const char *query,
                            size_t *index, struct wal_error *error);

#endif
