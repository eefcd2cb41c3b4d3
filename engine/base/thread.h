/*
 * thread.h - the threads of the library. They take no signal of the program,
 * and can meet SIGBUS, whose handler continues a read of a file that was cut
 * (guarded_map.h, SPEC.md 4.6).
 */
#ifndef AGENTWAL_ENGINE_BASE_THREAD_H
#define AGENTWAL_ENGINE_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create() without attributes. Any thread. */
int wal__thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
