/*
 * stress.h - what many threads or processes do to one store at once, so that a check detects
 * whether they conflicted: counters that lose nothing, a head that is a lock, batches of which
 * everything or nothing is there. Whatever is not as it must be ends the process, so that threads
 * and children of a test may call it.
 */
#ifndef AGENTWAL_TESTS_LIB_STRESS_STRESS_H
#define AGENTWAL_TESTS_LIB_STRESS_STRESS_H

#include "tests/lib/kit/store_kit.h"

/* Opens "store", waiting for others as long as it takes. */
struct wal_store *stress_open(uint32_t flags);
struct wal_session *stress_session(struct wal_store *store, const char *id);
void stress_close(struct wal_store *store, struct wal_session *session);

/* Ends the process, telling the error, unless the status is WAL_OK. */
void stress_check(enum wal_status status, const struct wal_error *error, const char *what);

/* ----------------------------------------------------------- threads --- */

/* What a thread is given: the test's own, which of its kind it is, numbers. */
struct stress_thread {
    void *ctx;
    int number;
    uint64_t random;
};

typedef void stress_thread_fn(struct stress_thread *stress_thread);

/* Starts that many threads at once that do `work`, and others that do `read` again and again until
 * the first are done; waits for all of them. Prints its seed. Answers how often it was read. */
uint64_t stress_run_threads(void *ctx, stress_thread_fn *work, int workers, stress_thread_fn *read,
                            int readers);

/* ---------------------------------------------------------- counters --- */

/* The member n of {"n":N...; 0 of no text. */
uint64_t stress_parse_number(struct wal_slice json);

/* Adds one to the counter in the session's metadata. */
void stress_increment_metadata(struct wal_session *session);
uint64_t stress_read_metadata(struct wal_session *session);

/* Adds one to the counter in a document, that of the store with session null;
 * `by` identifies the writer. Returns the number of conflicts. */
uint64_t stress_increment_doc(struct wal_store *store, struct wal_session *session, const char *key,
                              int by);
/* The number in a document, and its version; 0 when there is none. */
uint64_t stress_read_doc(struct wal_store *store, struct wal_session *session, const char *key,
                         uint64_t *version);
void stress_write_doc(struct wal_store *store, struct wal_session *session, const char *key,
                      uint64_t number, int by);

/* -------------------------------------------------------------- lock --- */

/* Takes the head `lock` for the entry "w<by>", which must be there: whether nobody else had it. */
bool stress_try_lock(struct wal_session *session, int by);
void stress_unlock(struct wal_session *session, int by);

/* ------------------------------------------------------------- turns --- */

/* Turn N is one batch: two entries, two documents of the session and one of the store, two heads,
 * and the title. Makes the turn after the last one of any writer; returns its number. */
uint64_t stress_write_turn(struct wal_store *store, struct wal_session *session, int by);
/* Looks at all parts. Each look shows one turn, and no turn before `least` or the one that was
 * looked at before. Answers the last one seen. */
uint64_t stress_check_turn(struct wal_store *store, struct wal_session *session, uint64_t least);

/* ------------------------------------------------------------ prefix --- */

/* Puts the documents "a<i>" and "b<i>", and "last" with the number i, in one batch. */
void stress_write_pair(struct wal_session *session, uint64_t i);
/* The documents are those of the pairs from 0 on and no others; how many. */
uint64_t stress_check_pairs(struct wal_session *session);

#endif
