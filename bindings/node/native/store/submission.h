/*
 * submission.h - batches that JavaScript has submitted and that wait for their outcome.
 *
 * Each has a slot, a number by which lib/base/submissions.js knows its promise. Outcomes are
 * reported to addon->settle, many at a time, in the order of submission within a durability. A
 * batch of WAL_CLUSTER is refused when no process ships the store; else its outcome is that of
 * WAL_DURABLE, after which JavaScript waits for the remote (lib/session/append.js).
 *
 * When the library's queue is full, submissions wait in the backlog, and what JavaScript asks for
 * after them too, also jobs: so all begins in the order in which it was asked for, and the event
 * loop never waits.
 */
#ifndef AGENTWAL_BINDINGS_NODE_NATIVE_STORE_SUBMISSION_H
#define AGENTWAL_BINDINGS_NODE_NATIVE_STORE_SUBMISSION_H

#include "bindings/node/native/base/call.h"

/*
 * A batch of entries, documents, heads and a change, as
 * lib/session/batch.js lays it out in flat arrays.
 *
 *   entries    id, parentId, type, timestamp, runId, payload, meta, flags,
 *              stream
 *   documents  key, value, flags, version
 *   heads      entryId, name, note, expected, flags, stream
 *   change     fields, metadata, title, cwd, project, schemaVersion,
 *              expectedVersion
 */

enum {
    BATCH_ARGS = 7 /* durability, flags, expectedTail and the four above */
};

struct batch_input {
    struct wal_batch batch;
    struct wal_append_options options;
    struct wal_session_change change;
    bool made_id; /* the id of the last entry was made here */
};

/* Reads BATCH_ARGS arguments from `first` on; what it points to is in call->arena. The last entry
 * has an id afterwards. NULL: the call failed. */
struct batch_input *batch_read(struct call *call, size_t first);

/* The value of the last entry's id if it was made, else undefined. */
napi_value batch_made_id(struct call *call, const struct batch_input *input);

struct handle;
struct job;
struct store;
struct submission;

struct submission_queue {
    struct submission *first;
    struct submission *last;
};

struct submissions {
    struct submission_queue pending[2]; /* WAL_DURABLE, WAL_WRITTEN */
    struct submission_queue backlog;
    uint32_t count; /* in all three */
};

/* Submits a batch of a session, or puts it into the backlog: WAL_EBUSY. WAL_OK with WAL_QUEUED:
 * nothing will be reported. Else the call failed. */
enum wal_status submissions_add(struct call *call, struct handle *session, uint32_t slot,
                                struct batch_input *input);

/* Queues a job at its turn. */
void submissions_queue_job(struct store *store, struct job *job);

/* Submits what is in the backlog, waiting for room in the queue. */
void submissions_flush_backlog(struct store *store);

/* After wal_close: reports all outcomes. With is_ending the environment ends, and nothing can be
 * reported. */
void submissions_end(struct store *store, bool is_ending);

/*
 * The thread of a store that waits for completed submissions and rings the event loop.
 *
 * It polls the library's completion descriptor and a stop descriptor; on a ring it calls a
 * threadsafe function with a queue of one, without waiting, so that rings coalesce. That calls
 * submissions_settle in the thread of JavaScript.
 */

struct store;
struct waiter;

/* Ends the thread. Any thread; NULL is permitted. */
void waiter_stop(struct waiter *waiter);

/* Frees a waiter that was stopped. NULL is permitted. */
void waiter_destroy(struct waiter *waiter);

#endif
