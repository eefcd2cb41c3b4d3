/*
 * workload.h - a scripted life of a store on a simulated disk: one or two processes that append in
 * every class, branch, fork, redact, put documents, move heads, change metadata, delete sessions,
 * resend, are refused, rotate, put content, mark, close and open again, and the ledger of the
 * results returned.
 *
 * What a step does follows from the seed and the step's number alone, not from how earlier steps
 * went; so the same script runs under any fault. A process whose store is poisoned closes it, and
 * opens it at its next step.
 *
 * One thread. A workload stays where it is while it is in use.
 */
#ifndef AGENTWAL_TESTS_SIM_WORKLOAD_WORKLOAD_H
#define AGENTWAL_TESTS_SIM_WORKLOAD_WORKLOAD_H

#include <setjmp.h>

#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/sim/disk/sim.h"
#include "tests/sim/ledger/ledger.h"

#define WORKLOAD_ROOT "/store"

enum {
    WORKLOAD_BATCH = 6,           /* entries of a step, at most */
    WORKLOAD_TEXTS = 16,          /* of workload_append */
    WORKLOAD_INLINE = 256 * 1024, /* bytes of the largest payload in a record */
    WORKLOAD_PARTS = 6            /* the same */
};

struct workload_options {
    uint64_t seed;
    uint32_t actors;      /* 1 or 2 */
    uint32_t large_every; /* one batch in N is of 100 to 300 KiB; 0:
                           * none */
    uint32_t huge_every;  /* one in N has several MiB; 0: none */
    uint32_t blobs_every; /* one step in N puts content too; 0: none */
    uint32_t group_align; /* as in wal_open_options */
    uint32_t open_flags;  /* of every opening; WAL_OPEN_PREAD */
};

struct workload_actor {
    struct sim_process *process;
    struct arena_heap arena;
    struct faulty_heap heap;
    struct wal_store *store;
    struct wal_session *sessions[LEDGER_SESSIONS];
    bool poisoned; /* closed at the next step */
};

struct workload {
    struct workload_options options;
    struct sim_disk *disk;
    struct ledger *ledger;
    struct workload_actor actors[LEDGER_ACTORS];
    uint32_t step;
    /* The last step. */
    uint32_t actor;
    enum wal_status status; /* worst answer of a call that took part */
    bool died;
    bool has_damage; /* by the test: recovery may find damage */
    /* a sync of the store's own directory failed: what a later loss of power leaves is not
     * promised */
    bool names_unsynced;
    jmp_buf death;
    /* Of the call under way. */
    struct ledger_text texts[WORKLOAD_TEXTS];
    struct ledger_text part_texts[WORKLOAD_PARTS];
    uint8_t *blob;
    /* Called after every durable promise; may be null. */
    void (*on_durable)(void *arg);
    void *on_durable_arg;
};

/* Whether AGENTWAL_LONG asks for every case, not a sample. */
bool workload_is_long(void);
/* The distance between two cases that a loop tries: 1 with AGENTWAL_LONG, else
 * `stride` times that of tests/lib/sanitizers.h. */
uint32_t workload_sample(uint32_t stride);
/* The same for the way of a loop: `every` where any call is tried, each where it is one kind of
 * call; with a sanitizer one in four of those. */
uint32_t workload_stride(enum sim_call call, uint32_t every);
/* The number of cases that a loop tries: `long_count` with AGENTWAL_LONG, else
 * `count` divided by the stride of tests/lib/sanitizers.h, but at least 1. */
uint32_t workload_count(uint32_t long_count, uint32_t count);
/* An empty disk and ledger, no process running. */
struct workload *workload_create(const struct workload_options *options);
/* The same disk and ledger, as if after a restart without power loss: no process is running.
 * Whatever was open is open no more. */
struct workload *workload_clone(const struct workload *workload);
void workload_destroy(struct workload *workload);
/* Who takes the next step. */
uint32_t workload_next_actor(const struct workload *workload);
/* Starts the process if it does not run, so that a fault can be armed. */
struct workload_actor *workload_start(struct workload *workload, uint32_t number);
/* Runs the next step. */
void workload_step(struct workload *workload);
void workload_run(struct workload *workload, uint32_t until);
/* Starts the process if it does not run and opens its store if it is not open. */
enum wal_status workload_open(struct workload *workload, uint32_t number);
/* The same with more flags, whatever it answers. */
enum wal_status workload_open_raw(struct workload *workload, uint32_t number, uint32_t flags,
                                  struct wal_error *error);
/* Closes the store; the process lives on. */
enum wal_status workload_close(struct workload *workload, uint32_t number);
void workload_kill(struct workload *workload, uint32_t actor);
/* Every process; then the power if `loss` is not null. */
void workload_crash(struct workload *workload, const struct sim_power_loss *loss, uint64_t seed);

/*
 * Opens the store as its only process, compares it with the ledger, settles the ledger and closes
 * again, cleanly or by killing the process.
 */
enum workload_finish { WORKLOAD_CLOSE, WORKLOAD_KILL, WORKLOAD_KEEP_OPEN };

uint64_t workload_recover(struct workload *workload, enum ledger_loss loss,
                          enum workload_finish end);
/* After a longjmp out of a call: frees what it was given. */
void workload_free_call(struct workload *workload);
/* By hand: a session, and an entry of `size` bytes under its head; where one record does not hold
 * them, a batch of several that do. The ledger takes note of the answer. */
enum wal_status workload_add_session(struct workload *workload, uint32_t actor);
enum wal_status workload_append(struct workload *workload, uint32_t actor, uint32_t session,
                                uint32_t durability, uint32_t size);
/* Compares what a process that has the store open reads; one that could open it to read only may
 * lag, and is left out. False: nothing was read. */
bool workload_check(struct workload *workload, uint32_t actor);
/* Appends one durable entry to each session that is there, or to a new one. WAL_OK; or
 * WAL_EPOISONED; WAL_EREADONLY of a store that could be opened to read only; WAL_ELOCKED when
 * unlocking was made to fail. Any other failure fails the test. */
enum wal_status workload_probe(struct workload *workload, uint32_t number);
/*
 * What must hold after any trouble, whatever processes are alive: each reads what was promised;
 * appends succeed, if need be after all have closed and opened again; and what was appended
 * survives a loss of power by the seed.
 */
void workload_check_after_fault(struct workload *workload, uint64_t seed);

#endif
