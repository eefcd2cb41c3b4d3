/*
 * forked.h - descriptors that a child of fork() must not keep: locks belong to
 * an open file description, which parent and child share, so that the child
 * would hold what its parent took, even after the parent is gone. They are
 * closed in the child before fork() returns there.
 */
#ifndef WAL_IO_FORKED_H
#define WAL_IO_FORKED_H

#include <stdbool.h>

struct wal__forked {
    struct wal__forked *next;
    struct wal__forked *previous;
    int *fd; /* null: not in the list. In a child *fd becomes -1 */
};

/* Any thread; node and *fd stay until remove. False without memory. Adding
 * what is there already changes nothing. */
bool wal__forked_add(struct wal__forked *node, int *fd);
void wal__forked_remove(struct wal__forked *node);

#endif
