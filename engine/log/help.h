/*
 * help.h - the thread that helps the writers of a log.
 *
 * Invariant: nothing that it does is waited for but by a rotation that finds a
 * spare being made. ask: who builds; main: the thread.
 */
#ifndef WAL_LOG_HELP_H
#define WAL_LOG_HELP_H

#include "engine/log/commit.h"

/* Asks for what is wanted after a group. */
void wal__help_ask(struct wal__committer *committer);
/* arg is the committer; ends when it is stopping. */
void *wal__help_main(void *arg);

#endif
