/*
 * worktree_stat.h - converts the system's structures to those of worktree.h.
 * Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_WORKTREE_STAT_H
#define AGENTWAL_ENGINE_BASE_WORKTREE_STAT_H

#include <sys/stat.h>
#include <time.h>

#include "engine/base/worktree.h"

int64_t wal__worktree_time_ns(const struct timespec *time);
struct wal__worktree_stat wal__worktree_stat_of(const struct stat *st);

#endif
