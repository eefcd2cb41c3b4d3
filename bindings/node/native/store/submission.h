/*
 * submission.h - batches that JavaScript has submitted and that wait for their
 * outcome.
 *
 * Each has a slot, a number by which lib/base/submissions.js knows its promise.
 * Outcomes are reported to addon->settle, many at a time, in the order of
 * submission within a durability. A batch of WAL_CLUSTER is refused when no
 * process ships the store; else its outcome is that of WAL_DURABLE, after which
 * JavaScript waits for the remote (lib/session/append.js).
 *
 * When the library's queue is full, submissions wait in the backlog, and what
 * JavaScript asks for after them too, also jobs: so all begins in the order in
 * which it was asked for, and the event loop never waits.
 */
#ifndef AGENTWAL_NODE_SUBMISSION_H
#define AGENTWAL_NODE_SUBMISSION_H

#include "bindings/node/native/base/call.h"

struct batch_input;
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

/* Submits a batch of a session, or puts it into the backlog: WAL_EBUSY. WAL_OK
 * with WAL_QUEUED: nothing will be reported. Else the call failed. */
enum wal_status submissions_add(struct call *call, struct handle *session,
                                uint32_t slot, struct batch_input *input);

/* Queues a job at its turn. */
void submissions_queue_job(struct store *store, struct job *job);

/* Reports the outcomes that there are, and goes on with the backlog. */
void submissions_settle(struct store *store);

/* Submits what is in the backlog, waiting for room in the queue. */
void submissions_flush_backlog(struct store *store);

/* After wal_close: reports all outcomes. With is_ending the environment ends,
 * and nothing can be reported. */
void submissions_end(struct store *store, bool is_ending);

#endif
