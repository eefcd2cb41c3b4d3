/*
 * window.h - the parts that a writer has on the way: up to WAL__PART_WINDOW
 * objects that are created at the same time, by threads (SPEC.md 11.3).
 *
 * Invariant: an object that was sent is created, or sent again with the same
 * bytes; its place is used for another one only when the owner has taken it.
 *
 * Threads: one owner; the window's own threads are not seen by it.
 */
#ifndef AGENTWAL_REMOTE_SHIP_WINDOW_H
#define AGENTWAL_REMOTE_SHIP_WINDOW_H

#include <pthread.h>

#include "remote/history/history.h"

enum wal__send_state {
    WAL__SEND_NONE,   /* the place is free */
    WAL__SEND_QUEUED, /* a thread takes it */
    WAL__SEND_RUNNING,
    WAL__SEND_DONE /* status and error are set */
};

/* A part on the way, and what became of it. */
struct wal__send {
    enum wal__send_state state; /* under the window's mutex */
    uint64_t number;
    uint64_t began_ms; /* of the last attempt, by remote->now_ms */
    uint64_t ended_ms;
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    struct wal__position after;
    uint8_t digest[WAL_DIGEST_SIZE];
    enum wal_status status;
    struct wal_error error;
    struct wal__buf found; /* with WAL_EEXISTS: what has the name */
};

struct wal__window {
    struct wal_remote *remote;
    struct wal__send sends[WAL__PART_WINDOW]; /* by number */
    uint64_t first; /* number of the oldest one; with `next`: none */
    uint64_t next;  /* of the next one that is sent */
    uint32_t thread_count;
    bool is_stopping;
    pthread_t threads[WAL__PART_WINDOW];
    pthread_mutex_t mutex;
    pthread_cond_t work; /* for the threads */
    pthread_cond_t done; /* for the owner */
};

/* Begins with the part `next`. Threads are started as they are needed, at most
 * `threads`; 0: wal__window_send does the work itself. */
void wal__window_init(struct wal__window *window, struct wal_remote *remote,
                      uint64_t next);
/* Waits for what is running, and frees everything. Also of a zeroed window. */
void wal__window_deinit(struct wal__window *window);

bool wal__window_is_full(const struct wal__window *window);
bool wal__window_is_empty(const struct wal__window *window);
/* The bytes of all that are on the way, or were not taken. */
uint64_t wal__window_bytes(const struct wal__window *window);

/* The place for part window->next, to be filled; the window is not full. */
struct wal__send *wal__window_place(struct wal__window *window);
/* Sends what was filled in; begins a thread if `max_threads` allows it. */
void wal__window_send(struct wal__window *window, uint32_t max_threads);
/* Sends again all that failed, with the same bytes. */
void wal__window_send_again(struct wal__window *window);

/* Waits until the oldest one is done, at most timeout_ms (negative: no limit).
 * NULL: it is not, or there is none. */
struct wal__send *wal__window_wait(struct wal__window *window,
                                   int64_t timeout_ms);
/* The oldest one is stored: frees its place. */
void wal__window_take(struct wal__window *window);
/* Waits until nothing is on the way. */
void wal__window_settle(struct wal__window *window);

#endif
