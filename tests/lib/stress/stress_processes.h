/*
 * stress_processes.h - several processes that act on one store at once: writers
 * that work once, readers that look until these are done, and a stress_shared
 * in memory that all of them share. The process of the test forks them and has
 * no handle open itself, as a child of one with threads would lack these, and
 * have their locks. Whatever is not as it must be ends the child, and fails the
 * test.
 */
#ifndef AGENTWAL_TESTS_LIB_STRESS_STRESS_PROCESSES_H
#define AGENTWAL_TESTS_LIB_STRESS_STRESS_PROCESSES_H

#include <stdatomic.h>
#include <sys/types.h>

#include "tests/lib/stress/stress.h"

enum {
    STRESS_SECRETS = 120
};

/* What the processes of a test tell each other. */
struct stress_shared {
    _Atomic int ready;
    _Atomic int working;
    _Atomic bool live; /* a process has the store open to write all the time */
    _Atomic bool inside;
    _Atomic uint64_t began; /* the newest that was begun */
    _Atomic uint64_t made;  /* the newest that was acknowledged */
    _Atomic uint64_t lost;
    _Atomic uint64_t reads;
    _Atomic uint64_t redacted[STRESS_SECRETS]; /* when, by `made`; 0: not yet */
};

struct stress_process {
    struct stress_shared *stress_shared;
    int number;
    uint64_t random;
};

typedef void stress_process_fn(struct stress_process *stress_process);

/* A new store with the session "s" and these entries, that no handle is on. */
struct stress_shared *stress_shared_create(const char *entries);
void stress_shared_destroy(struct stress_shared *stress_shared);

/* Starts all at once; each must end well. Prints its seed. */
void stress_run_processes(struct stress_shared *stress_shared,
                          stress_process_fn *write, int writers,
                          stress_process_fn *read, int readers);

/* A process that only has the store open. */
pid_t stress_start_holder(struct stress_shared *stress_shared);
void stress_stop_holder(struct stress_shared *stress_shared, pid_t holder);

/* A handle, in a child, that now and then is given up for a new one. */
struct stress_handle {
    struct wal_store *store;
    struct wal_session *session;
};

struct stress_handle stress_handle_open(uint32_t flags);
void stress_handle_close(struct stress_handle *stress_handle);
void stress_handle_maybe_reopen(struct stress_handle *stress_handle,
                                uint64_t *random);

#endif
