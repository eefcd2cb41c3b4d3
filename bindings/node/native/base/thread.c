/*
 * thread.c - starts the threads of the addon (thread.h).
 */
#include "bindings/node/native/base/thread.h"

#include <signal.h>

bool thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t blocked;
    sigset_t before;
    int failure;

    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    failure = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure == 0;
}
