/*
 * brake_kit.c - see brake_kit.h.
 */
#include "tests/lib/stress/brake_kit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"

static void on_alarm(int number)
{
    static const char text[] = "brake_kit: the test waits for the engine, which does not go on\n";
    ssize_t put = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)number;
    (void)put;
    abort();
}

void kit_brake_init(struct kit_brake *brake)
{
    WAL__ASSERT(pthread_mutex_init(&brake->mutex, NULL) == 0);
    wal__system_cond_init(&brake->changed);
    brake->waiting = 0;
    WAL__ASSERT(signal(SIGALRM, on_alarm) != SIG_ERR);
    (void)alarm(KIT_TEST_S);
}

void kit_brake_deinit(struct kit_brake *brake)
{
    (void)alarm(0);
    (void)signal(SIGALRM, SIG_DFL);
    (void)pthread_mutex_destroy(&brake->mutex);
    (void)pthread_cond_destroy(&brake->changed);
}

void kit_brake_set(struct kit_brake *brake, bool *held, bool value)
{
    pthread_mutex_lock(&brake->mutex);
    *held = value;
    pthread_cond_broadcast(&brake->changed);
    pthread_mutex_unlock(&brake->mutex);
}

static struct timespec limit(void)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += KIT_WAIT_S;
    return until;
}

void kit_brake_pass(struct kit_brake *brake, const bool *held, const char *what)
{
    const struct timespec until = limit();
    int end = 0;

    pthread_mutex_lock(&brake->mutex);
    brake->waiting++;
    pthread_cond_broadcast(&brake->changed);
    while (*held && end == 0) {
        end = wal__system_cond_wait(&brake->changed, &brake->mutex, &until);
    }
    if (*held) {
        (void)fprintf(stderr,
                      "brake_kit: %s was held for %d s: the test did not get "
                      "to where it releases it\n",
                      what, KIT_WAIT_S);
        abort();
    }
    brake->waiting--;
    pthread_mutex_unlock(&brake->mutex);
}

void kit_brake_await(struct kit_brake *brake, const char *what)
{
    const struct timespec until = limit();
    bool came;
    int end = 0;

    pthread_mutex_lock(&brake->mutex);
    while (brake->waiting == 0 && end == 0) {
        end = wal__system_cond_wait(&brake->changed, &brake->mutex, &until);
    }
    came = brake->waiting > 0;
    pthread_mutex_unlock(&brake->mutex);
    if (!came) {
        fail_msg("the engine did not begin %s within %d s", what, KIT_WAIT_S);
    }
}
