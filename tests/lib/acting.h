/*
 * acting.h - several processes that act on one store at once: writers that work
 * once, readers that look until these are done, and a board in memory that all
 * of them share. The process of the test forks them and has no handle open
 * itself, as a child of one with threads would lack these, and have their
 * locks. Whatever is not as it must be ends the child, and fails the test.
 */
#ifndef WAL_TESTS_LIB_ACTING_H
#define WAL_TESTS_LIB_ACTING_H

#include <stdatomic.h>
#include <sys/types.h>

#include "tests/lib/racing.h"

enum {
    ACTING_SECRETS = 120
};

/* What the processes of a test tell each other. */
struct board {
    _Atomic int ready;
    _Atomic int working;
    _Atomic bool live; /* a process has the store open to write all the time */
    _Atomic bool inside;
    _Atomic uint64_t began; /* the newest that was begun */
    _Atomic uint64_t made;  /* the newest that was acknowledged */
    _Atomic uint64_t lost;
    _Atomic uint64_t reads;
    _Atomic uint64_t redacted[ACTING_SECRETS]; /* when, by `made`; 0: not yet */
};

struct actor {
    struct board *board;
    int number;
    uint64_t random;
};

typedef void actor_fn(struct actor *actor);

/* A new store with the session "s" and these entries, that no handle is on. */
struct board *acting_begin(const char *entries);
void acting_end(struct board *board);

/* Starts all at once; each must end well. Prints its seed. */
void acting_run(struct board *board, actor_fn *write, int writers,
                actor_fn *read, int readers);

/* A process that only has the store open. */
pid_t acting_hold(struct board *board);
void acting_let_go(struct board *board, pid_t holder);

/* A handle, in a child, that now and then is given up for a new one. */
struct visit {
    struct wal_store *store;
    struct wal_session *session;
};

struct visit acting_arrive(uint32_t flags);
void acting_leave(struct visit *visit);
void acting_maybe_leave(struct visit *visit, uint64_t *random);

#endif
