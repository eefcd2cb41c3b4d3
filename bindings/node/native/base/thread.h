/*
 * thread.h - threads of the addon.
 */
#ifndef AGENTWAL_NODE_THREAD_H
#define AGENTWAL_NODE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread, which takes no signal of the program and can meet SIGBUS,
 * whose handler the library has. False: there is none left. */
bool thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
