/*
 * close_on_fork.h - descriptors that a child of fork() must not keep: locks
 * belong to an open file description, which parent and child share, so that the
 * child would hold what its parent took, even after the parent is gone. They
 * are closed in the child before fork() returns there.
 */
#ifndef AGENTWAL_ENGINE_OS_CLOSE_ON_FORK_H
#define AGENTWAL_ENGINE_OS_CLOSE_ON_FORK_H

#include <stdbool.h>

struct wal__close_on_fork {
    struct wal__close_on_fork *next;
    struct wal__close_on_fork *previous;
    int *fd; /* null: not in the list. In a child *fd becomes -1 */
};

/* Any thread; node and *fd stay until remove. False without memory. Adding
 * what is there already changes nothing. */
bool wal__close_on_fork_add(struct wal__close_on_fork *node, int *fd);
void wal__close_on_fork_remove(struct wal__close_on_fork *node);

#endif
