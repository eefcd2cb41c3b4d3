/*
 * walconv_adopt.h - files that are views of the store's own sessions.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_ADOPT_H
#define AGENTWAL_TOOLS_WALCONV_ADOPT_H

#include "tools/walconv.h"

/* Takes what was written behind a view into its session, and prints what was
 * done. False: the file is no view, or one that was not only appended to; else
 * *code is the exit code. */
bool walconv_adopt(const struct walconv_import *import, int fd,
                   const char *name, int *code);

#endif
