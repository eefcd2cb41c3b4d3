/*
 * model.h - several processes use one store on a real file system, and every answer is compared
 * with the reference (tests/sim/reference/reference.h).
 *
 * The test process, the driver, never calls the engine. It forks workers, which have the reference,
 * the generator and their requests in common memory (common_heap.h), and sends each what to do over
 * a pair of sockets: one operation of one worker at a time, so that the reference is exact; or
 * calls of several workers at once, which the reference repeats in the order of their sequence
 * numbers when all have answered. A worker that is killed in the middle of a call leaves the
 * request where the driver finds it: the call has happened, or it has not.
 *
 * The processes search too, and share the index files of search. The hits are compared with the
 * reference, and after erasing the words of those files.
 *
 * Everything follows from the seed of the round and the number of the step, but for times, ids that
 * the engine makes, and what runs at once.
 */
#ifndef AGENTWAL_TESTS_MODEL_MODEL_H
#define AGENTWAL_TESTS_MODEL_MODEL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "agentwal/transfer.h"
#include "format/bytes/assert.h"
#include "tests/lib/store_bytes.h"
#include "tests/sim/differential/differential.h"

enum {
    MODEL_WORKERS = 5,
    MODEL_WRITERS = 3, /* the first ones; the others read only */
    MODEL_CALLS = 6,   /* of one worker at once, at most */
    MODEL_LAST = 24,   /* operations that a failure prints */
    MODEL_LINE = 160,
    MODEL_PATH = 256
};

/* What a worker does when it is asked to. */
enum model_task {
    MODEL_OPEN,      /* the store; a new worker does nothing else before */
    MODEL_OPERATION, /* of the differential test, by its rank */
    MODEL_MAKE,      /* makes calls, and does not call yet */
    MODEL_CALL,      /* calls what it made */
    MODEL_MARK,      /* makes a session: a process that writes finds out whether
                      * what another one had under way is there */
    MODEL_LOOK,      /* reads and searches, for as long as others call */
    MODEL_FIND,      /* searches; for a canary, or for all of them */
    MODEL_CHECK,     /* compares everything; entries in each way to read them,
                      * or in one */
    MODEL_COMPACT,
    MODEL_COMPACT_SHARED, /* others write at the same time */
    MODEL_SYNC,
    MODEL_LEARN, /* finds out how many records there are */
    MODEL_BACKUP,
    MODEL_TRANSFER, /* by a bundle or a merge, to a second store */
    MODEL_REOPEN,
    MODEL_END, /* closes the store */
    MODEL_TASKS
};

/* A call whose request is in common memory. */
enum model_kind {
    MODEL_BATCH,
    MODEL_CREATE,
    MODEL_FORK,
    MODEL_DELETE,
    MODEL_TRASH,
    MODEL_UNDELETE,
    MODEL_HEAD,
    MODEL_PUT,
    MODEL_KINDS
};

struct model_call {
    enum model_kind kind;
    uint32_t number;                    /* of the session */
    uint32_t schema_version;            /* that its process opened the store with */
    struct differential_request given;  /* MODEL_BATCH */
    struct wal_session_options options; /* MODEL_CREATE, MODEL_FORK */
    struct wal_slice id;                /* MODEL_FORK: where; MODEL_UNDELETE */
    struct wal_head head;
    struct wal_doc doc;
    /* The engine's answer. */
    atomic_bool is_begun;
    atomic_bool is_answered;
    enum wal_status status;
    struct wal_append_result result;
    uint64_t sequence; /* that the call wrote last, or 0 */
    uint64_t order;    /* among the calls of all: that, or the one before */
    int64_t earliest_ms;
    int64_t latest_ms;
    char error[200];
};

struct model_worker {
    pid_t process; /* 0: none */
    int socket;
    const char *root; /* of the store that it opens */
    bool is_busy;     /* and did not answer yet */
    struct differential run;
    struct model_call calls[MODEL_CALLS + 1];
    uint32_t count;
    /* It is killed at the call of the system with this number. 0: none. */
    atomic_llong kill_at;
    uint64_t before; /* its task: the newest record */
};

/* Counted over all rounds. */
struct model_tally {
    uint64_t rounds;
    uint64_t operations;
    uint64_t tasks[MODEL_TASKS];
    uint64_t calls[MODEL_KINDS];
    uint64_t kills;      /* in the middle of something */
    uint64_t happened;   /* of the calls that were under way */
    uint64_t concurrent; /* calls of several workers at once */
    uint64_t erasures;   /* after which no canary was left */
    uint64_t canaries;   /* that were searched for */
    uint64_t hits;       /* that were compared */
    uint64_t failures;   /* rounds with a difference */
    struct differential_counts counts;
};

/* In common memory. */
struct model {
    uint64_t seed; /* of the round */
    uint64_t step;
    uint64_t rng_state; /* of the driver */
    char root[MODEL_PATH];
    char copy[MODEL_PATH];  /* by backups */
    char other[MODEL_PATH]; /* a second store */
    char bundle[MODEL_PATH];
    struct reference *ref;
    uint32_t made; /* ids given so far */
    struct wal_store_compact_options compaction;
    uint64_t compactions;      /* that began */
    bool may_have_dropped;     /* deltas: a compaction that was killed, or that
                            * other calls went on next to */
    bool is_unsettled;         /* whether a call is there that was under way */
    atomic_bool is_concurrent; /* calls go on at the same time */
    bool has_failed;
    char failure[2048];
    char last[MODEL_LAST][MODEL_LINE];
    uint64_t last_count;
    struct model_tally tally;
    struct model_worker workers[MODEL_WORKERS + 1]; /* and a fresh one */
};

/* rounds.c */
/* Runs one round. True: there was no difference. */
bool model_run_round(struct model *model, uint64_t seed, uint32_t steps);

/* processes.c: the driver's side ---------------------------------------- */

void model_start(struct model *model, uint32_t worker, uint32_t flags);
void model_send(struct model *model, uint32_t worker, enum model_task task, uint32_t argument);
/* Waits for the answer. False: the worker was killed, as kill_at says. */
bool model_await(struct model *model, uint32_t worker);
bool model_do(struct model *model, uint32_t worker, enum model_task task, uint32_t argument);
/* Ends the process, if there is one. */
void model_kill(struct model *model, uint32_t worker);
void model_fail(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
void model_note(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t model_random(struct model *model, uint32_t sides);

/* worker.c -------------------------------------------------------------- */

/* Called before each call of the system that changes something: the process may be killed there. */
void model_count_call(void);
/* What a worker's process does. */
_Noreturn void model_work(struct model *model, uint32_t worker, int socket);

/* calls.c --------------------------------------------------------------- */

/* Makes a call for one of the sessions that are this one's of `of`; false: there is none to
 * make. */
bool model_make_call(struct differential *run, struct model_call *call, uint32_t share, uint32_t of,
                     bool is_concurrent);
/* Makes one that makes a session. */
void model_make_mark(struct differential *run, struct model_call *call);
void model_call_engine(struct differential *run, struct model_call *call);
/* The reference repeats it. */
enum wal_status model_call_reference(struct model *model, struct model_call *call,
                                     struct wal_append_result *result);
/* Repeats what the workers have called at once. */
void model_repeat(struct model *model);

/* find.c ---------------------------------------------------------------- */

/* Searches the store by its full-text index, brought up to date; the index stays open. While others
 * write, hits are read only. */
void model_find(struct model *model, struct differential *run, bool is_whole);
void model_close_search(void);
/* Calls `see` for each word that the index files of a store have. */
void model_visit_words(const char *root, store_bytes_fn *see, void *ctx);

/* copies.c -------------------------------------------------------------- */

/* Nothing is killed from now on, unless it is already. */
void model_disarm(void);

/* is_erased: so is everything in the store that can be. */
void model_back_up(struct model *model, struct differential *run, bool is_erased);
void model_transfer(struct model *model, struct differential *run, bool by_bundle);

/* canaries.c ------------------------------------------------------------ */

/* No file of the store at `root` has a canary of what was erased, or of the second store one of
 * what was redacted. */
void model_search(struct model *model, struct differential *run, const char *root);

#endif
