/*
 * brake_kit.h - holds the calls of a disk while a test looks, and limits every wait: when the
 * engine does not go on, the program says what was waited for and ends, instead of hanging until
 * ctest gives up.
 */
#ifndef AGENTWAL_TESTS_LIB_STRESS_BRAKE_KIT_H
#define AGENTWAL_TESTS_LIB_STRESS_BRAKE_KIT_H

#include <pthread.h>
#include <stdbool.h>

enum {
    KIT_WAIT_S = 30,  /* a wait for a call of the engine */
    KIT_TEST_S = 240, /* a whole test: the waits inside the engine */
    KIT_LONG_MS = KIT_WAIT_S * 1000
};

/* Calls of a disk that may be held, each kind by a flag of the test. */
struct kit_brake {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int waiting; /* calls that are held or about to go on */
};

/* From now until kit_brake_deinit(), the program ends by SIGALRM's handler after KIT_TEST_S
 * seconds. One brake at a time. */
void kit_brake_init(struct kit_brake *brake);
void kit_brake_deinit(struct kit_brake *brake);

/* Sets a flag, and wakes the calls. */
void kit_brake_set(struct kit_brake *brake, bool *held, bool value);

/* Any thread: waits while *held. After KIT_WAIT_S the program aborts, for only the main thread may
 * fail a test. `what` names the call. */
void kit_brake_pass(struct kit_brake *brake, const bool *held, const char *what);

/* Main thread: waits until a call is held, or fails the test. */
void kit_brake_await(struct kit_brake *brake, const char *what);

#endif
