/*
 * forked.c - the list of descriptors that are closed in children of fork()
 * (SPEC.md 4.1). Invariant: the list is whole while fork() runs, since its
 * mutex is held from before until after. Any thread.
 */
#include "engine/io/forked.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wal__forked *first;
static bool watching; /* the system calls us when the process forks */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    for (struct wal__forked *node = first; node != NULL; node = node->next) {
        (void)close(*node->fd);
        *node->fd = -1;
    }
    pthread_mutex_unlock(&mutex);
}

static void watch(void)
{
    watching = pthread_atfork(before_fork, in_parent, in_child) == 0;
}

bool wal__forked_add(struct wal__forked *node, int *fd)
{
    if (pthread_once(&once, watch) != 0 || !watching) {
        return false;
    }
    pthread_mutex_lock(&mutex);
    if (node->fd == NULL) {
        node->fd = fd;
        node->previous = NULL;
        node->next = first;
        if (first != NULL) {
            first->previous = node;
        }
        first = node;
    }
    pthread_mutex_unlock(&mutex);
    return true;
}

void wal__forked_remove(struct wal__forked *node)
{
    pthread_mutex_lock(&mutex);
    if (node->fd != NULL) {
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
