/*
 * writer.h - a writer: ships the log of a store in its epoch (SPEC.md 11.3).
 *
 * Invariant: everything before `position` is in the remote, in the parts before `window.first` of
 * the epoch, and of those before it. What is in the window is on the way, each part under its
 * number: other bytes are never sent in its place. `marks` were kept before that.
 *
 * Threads: one at a time per writer.
 */
#ifndef AGENTWAL_REMOTE_SHIP_WRITER_H
#define AGENTWAL_REMOTE_SHIP_WRITER_H

#include <pthread.h>

#include "agentwal/remote.h"
#include "remote/history/fetch.h"
#include "remote/history/history.h"

/*
 * Makes the epoch after history->last_epoch for this writer, fences those before it and reads the
 * history again: nothing that is in it can change any more but by this writer. WAL_EFENCED when
 * another writer made the epoch, or one after it.
 */
enum wal_status wal__takeover(struct wal_remote *remote, wal__part_info_fn *info,
                              const uint8_t uuid[16], const uint8_t writer[16],
                              struct wal__history *history, struct wal_error *error) WAL_MUST_USE;

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

/*
 * Up to WAL__PART_WINDOW objects that are created at the same time, by threads that the owner does
 * not see. An object that was sent is created, or sent again with the same bytes; its place is used
 * for another one only when the owner has taken it.
 */
struct wal__window {
    struct wal_remote *remote;
    struct wal__send sends[WAL__PART_WINDOW]; /* by number */
    uint64_t first;                           /* number of the oldest one; with `next`: none */
    uint64_t next;                            /* of the next one that is sent */
    uint32_t thread_count;
    bool is_stopping;
    pthread_t threads[WAL__PART_WINDOW];
    pthread_mutex_t mutex;
    pthread_cond_t work; /* for the threads */
    pthread_cond_t done; /* for the owner */
};

bool wal__window_is_empty(const struct wal__window *window);

/* Sends again all that failed, with the same bytes. */
void wal__window_send_again(struct wal__window *window);

/* Waits until nothing is on the way. */
void wal__window_settle(struct wal__window *window);

struct wal_remote_writer {
    struct wal_remote *remote;
    struct wal__part_source source;
    struct wal__store_source store; /* the context of `source` in a library */
    uint8_t uuid[16];
    uint8_t writer[16];
    uint64_t part_size;
    uint32_t parallel;        /* parts on the way at a time; 0: WAL__PART_WINDOW */
    bool is_inline;           /* without threads */
    bool begins_epoch;        /* starts in a new epoch, whatever was on the way */
    wal_remote_keep_fn *keep; /* NULL: the marks are not kept */
    void *keep_ctx;
    /* What `keep` has: the last part that is stored, if there is any, and those that are on the
     * way, or may be. */
    struct wal_remote_mark marks[WAL_REMOTE_MARKS];
    uint64_t mark_count;
    uint64_t epoch;
    struct wal__position position; /* after the last part that is stored */
    struct wal__position sent;     /* after the last one in the window */
    struct wal_remote_mark last;   /* that is stored; .part 0: none */
    uint64_t looked_ms;            /* when the epoch was last found to be the newest */
    uint64_t looked_part;          /* the last one that was stored then */
    struct wal__flow flow;
    bool is_fenced;
    struct wal__window window;
};

/* Starts: the fields before `epoch` are set, all else is zero. See wal_remote_writer_open. */
enum wal_status wal__writer_start(struct wal_remote_writer *writer, bool takes_over,
                                  struct wal_error *error) WAL_MUST_USE;

/* Begins a new epoch: everything before it is in fenced ones. */
enum wal_status wal__writer_begin_epoch(struct wal_remote_writer *writer,
                                        struct wal_error *error) WAL_MUST_USE;
void wal__writer_deinit(struct wal_remote_writer *writer);

/* How many bytes the next part may have. */
uint64_t wal__writer_part_size(const struct wal_remote_writer *writer);

/* Whether no other part may be on the way now. */
bool wal__writer_is_full(const struct wal_remote_writer *writer);

/* Reads the next part, as *place, which holds until the next call but acknowledging. The writer is
 * not full. WAL_END: there is no more. */
enum wal_status wal__writer_read(struct wal_remote_writer *writer, struct wal__send **place,
                                 struct wal_error *error) WAL_MUST_USE;

/* Sends it. */
enum wal_status wal__writer_send(struct wal_remote_writer *writer, struct wal__send *send,
                                 struct wal_error *error) WAL_MUST_USE;

/*
 * Acknowledges the parts that are stored, in order; waits for the first one at most timeout_ms
 * (negative: no limit). WAL_EFENCED: for ever. After WAL_EREMOTE and others wal__window_send_again
 * sends what failed.
 */
enum wal_status wal__writer_acknowledge(struct wal_remote_writer *writer, int64_t timeout_ms,
                                        struct wal_remote_push_result *result,
                                        struct wal_error *error) WAL_MUST_USE;

/* Keeps that nothing is on the way. The window is empty. */
enum wal_status wal__writer_keep(struct wal_remote_writer *writer,
                                 struct wal_error *error) WAL_MUST_USE;

/* See wal_remote_push. Counts what it stores in *result. */
enum wal_status wal__writer_push(struct wal_remote_writer *writer,
                                 struct wal_remote_push_result *result,
                                 struct wal_error *error) WAL_MUST_USE;

/* WAL_ECONFLICT unless the log has the past that the position has; with
 * `is_known` false also when compaction leaves that open. */
enum wal_status wal__writer_verify(const struct wal__part_source *source,
                                   const struct wal__position *position, bool is_known,
                                   struct wal_error *error) WAL_MUST_USE;

/* Fills *result, also when the store lacks what the remote has:
 * WAL_ECONFLICT. */
enum wal_status wal__status_read(struct wal_remote *remote, const struct wal__part_source *source,
                                 const uint8_t uuid[16], struct wal_remote_status *result,
                                 struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__status_list(struct wal_remote *remote, wal__part_info_fn *info,
                                 wal_remote_store_fn *report, void *ctx,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
