/*
 * close_on_fork.h - closes descriptors in the child of fork(), before fork()
 * returns there. A lock belongs to an open file description, which parent and
 * child share: a child that kept the descriptor would hold the parent's locks
 * after the parent died. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_CLOSE_ON_FORK_H
#define AGENTWAL_ENGINE_BASE_CLOSE_ON_FORK_H

#include <stdbool.h>

struct wal__close_on_fork {
    struct wal__close_on_fork *next;
    struct wal__close_on_fork *previous;
    int *fd; /* null: not in the list. In a child *fd becomes -1 */
};

/* Adds the descriptor *fd; node and fd must stay valid until remove. False when
 * memory is exhausted. Adding a node that is in the list does nothing. */
bool wal__close_on_fork_add(struct wal__close_on_fork *node, int *fd);
/* Does nothing for a node that is not in the list. */
void wal__close_on_fork_remove(struct wal__close_on_fork *node);

#endif
