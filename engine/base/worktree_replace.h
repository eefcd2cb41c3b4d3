/*
 * worktree_replace.h - checks whether a file may replace a name (SPEC.md 5.14).
 * Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_WORKTREE_REPLACE_H
#define AGENTWAL_ENGINE_BASE_WORKTREE_REPLACE_H

/* 0 if a file of the same directory can be renamed to `name`, which may exist
 * or not; else the errno that forbids it. */
int wal__worktree_check_replace(int directory, const char *name);

#endif
