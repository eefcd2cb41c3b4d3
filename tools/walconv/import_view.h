/*
 * import_view.h - files that are views of the store's own sessions.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_VIEW_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_VIEW_H

#include "tools/walconv/walconv.h"

/* Takes what was written behind a view into its session, and prints what was
 * done. False: the file is no view, or one that was not only appended to; else
 * *code is the exit code. */
bool walconv_import_view(const struct walconv_import *import, int fd,
                         const char *name, int *code);

#endif
