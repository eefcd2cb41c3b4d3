/*
 * import_view.h - import views of sessions of the store.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_VIEW_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_VIEW_H

#include "tools/walconv/walconv.h"

/* Imports the lines that were appended to a view into its session and prints
 * the result. Returns false if the file is not a view, or is one that was
 * changed other than by appending; else *code is the exit code. */
bool walconv_import_view(const struct walconv_import *import, int fd,
                         const char *name, int *code);

#endif
