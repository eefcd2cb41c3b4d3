/*
 * resume.h - the verb that continues a session in the client that wrote it.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_RESUME_H
#define AGENTWAL_TOOLS_SHOWN_RESUME_H

#include "tools/cli/cli.h"

enum {
    SHOWN_RESUME_SIZE = 16384
};

/* Writes the command, NUL-terminated, to be pasted into sh, bash, zsh or fish:
 * that of the client, in the session's directory; else `agentwal cat`. */
void shown_resume_text(const struct wal_session_info *info,
                       char text[SHOWN_RESUME_SIZE]);

#endif
