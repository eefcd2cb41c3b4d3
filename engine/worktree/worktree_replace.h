/*
 * worktree_replace.h - whether a file may take the place of a name (SPEC.md
 * 5.14). Any thread.
 */
#ifndef AGENTWAL_ENGINE_WORKTREE_WORKTREE_REPLACE_H
#define AGENTWAL_ENGINE_WORKTREE_WORKTREE_REPLACE_H

/* 0, or the errno that says why a file of the same directory cannot take the
 * place of the name, or be put there where there is none. */
int wal__worktree_check_replace(int directory, const char *name);

#endif
