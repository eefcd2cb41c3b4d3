/*
 * thread.c - starts the threads of the library (thread.h).
 */
#include "engine/base/thread.h"

#include <signal.h>

int wal__thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    /* A thread that blocks one of these is ended with its process by it. */
    static const int faults[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGABRT};
    sigset_t blocked;
    sigset_t before;
    int err;

    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)sigdelset(&blocked, faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    err = pthread_create(thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}
