/*
 * close_on_fork.c - the list of descriptors that children of fork() close
 * (SPEC.md 4.1). Invariant: the list is consistent in the child, since its
 * mutex is held across fork(). Any thread.
 */
#include "engine/base/close_on_fork.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "format/bytes/assert.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wal__close_on_fork *first;
static bool is_registered; /* the fork handlers are installed */

static void atfork_prepare(void)
{
    pthread_mutex_lock(&mutex);
}

static void atfork_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void atfork_child(void)
{
    for (struct wal__close_on_fork *node = first; node != NULL;
         node = node->next) {
        (void)close(*node->fd);
        *node->fd = -1;
    }
    pthread_mutex_unlock(&mutex);
}

static void register_atfork(void)
{
    is_registered =
        pthread_atfork(atfork_prepare, atfork_parent, atfork_child) == 0;
}

bool wal__close_on_fork_add(struct wal__close_on_fork *node, int *fd)
{
    if (pthread_once(&once, register_atfork) != 0 || !is_registered) {
        return false;
    }
    pthread_mutex_lock(&mutex);
    if (node->fd == NULL) {
        node->fd = fd;
        node->previous = NULL;
        node->next = first;
        if (first != NULL) {
            WAL__ASSERT(first->previous == NULL);
            first->previous = node;
        }
        first = node;
    }
    pthread_mutex_unlock(&mutex);
    return true;
}

void wal__close_on_fork_remove(struct wal__close_on_fork *node)
{
    pthread_mutex_lock(&mutex);
    if (node->fd != NULL) {
        WAL__ASSERT(node->previous != NULL || first == node);
        if (node->next != NULL) {
            node->next->previous = node->previous;
        }
        if (node->previous != NULL) {
            node->previous->next = node->next;
        } else {
            first = node->next;
        }
        node->fd = NULL;
    }
    pthread_mutex_unlock(&mutex);
}
