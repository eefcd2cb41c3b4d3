/*
 * internal.h - what the files of a schedule share (sched.h): the processes
 * and the one that runs, the faults, and the ledger of the results returned.
 */
#ifndef AGENTWAL_TESTS_SIM_SCHED_INTERNAL_H
#define AGENTWAL_TESTS_SIM_SCHED_INTERNAL_H

#include <ucontext.h>

#include "tests/lib/arena_heap.h"
#include "tests/sim/ledger/ledger.h"
#include "tests/sim/sched/sched.h"

#define SCHED_ROOT "/store"
#define SCHED_NONE LEDGER_NONE

enum {
    SCHED_SESSIONS = 16,
    SCHED_SHARED_SESSIONS = 2, /* sessions that all write to */
    SCHED_OPS = 192,
    SCHED_BATCH_MAX = 3,       /* entries, at most */
    SCHED_INLINE = 256 * 1024, /* the largest payload in a record */
    SCHED_PAYLOAD = SCHED_INLINE + 4096,
    SCHED_KEYS = 2,
    SCHED_EVENTS = 4,
    SCHED_TEXT = 32,
    SCHED_TRACE = 128,
    SCHED_LOCKS = 12,
    SCHED_REPLACED = 128
};

/* --- the ledger --------------------------------------------------------- */

/* Of a batch of the ledger, by its number: an operation of a process. */
struct sched_op {
    uint32_t handle; /* that it was answered on, or 0 */
    bool creates;    /* its session, also by a fork */
    bool increments; /* the number in the metadata */
};

/* An entry of the session that is removed and created again. */
struct sched_replaced {
    bool is_acknowledged;
    bool is_durable;
    uint32_t doubts; /* removals that had seen it, unless they were refused */
};

/* --- processes ---------------------------------------------------------- */

/* Which lock, of those in LOCK. */
struct sched_lock {
    uint32_t shared;    /* a bit for each process */
    uint32_t exclusive; /* the same, one at most */
};

struct sched;

struct sched_process {
    struct sched *sched;
    uint32_t slot;
    struct sim_process *process;
    const struct wal__io *base;
    struct wal__io io;
    struct arena_heap arena;
    uint32_t id; /* of the process, that errors name */
    /* The coroutine. */
    ucontext_t context;
    void (*body)(struct sched_process *process);
    bool runs; /* there is one, and it has not come to its end */
    uint32_t priority;
    /* Waiting, by the table's call. */
    bool waits;
    bool woken;
    const uint32_t *word;
    uint32_t expected;
    uint64_t due_ns;
    /* Stopped until then. */
    bool stopped;
    bool dies;                 /* when it would go on */
    uint64_t stopped_since_ns; /* since then */
    uint64_t stopped_until_ns;
    uint64_t continued_ns; /* when it went on last */
    /* Its current activity. */
    enum sim_call call;
    uint64_t offset;
    bool on_segment; /* the call is on a segment's file */
    /* bits of SCHED_OPENING, READING, CLOSING, PREALLOCATING */
    uint32_t activity_bits;
    bool begun;   /* OPEN is written and not published */
    bool unlocks; /* is about to */
    /* holds a lock, and does not say so yet, or any more */
    bool owner_unpublished;
    struct wal__file *lock_file;
    const void *page;         /* of LOCK, as this process has it mapped */
    uint64_t blocked_byte;    /* that it could not lock, 0: none */
    uint64_t blocked_ns;      /* since then */
    bool blocked_by_fold;     /* by who writes the catalogue, since the call began */
    uint64_t open_started_ns; /* when it began to open the store */
    uint64_t last_polled_ns;  /* at the last look */
    /* The injected faults. */
    bool failed;        /* a call was */
    bool failed_space;  /* for want of space */
    bool failed_unlock; /* it may hold what it let go of */
    uint64_t sticky_until;
    uint32_t kills;
    /* The script. */
    uint64_t rng_state;
    uint32_t steps_left;
    struct wal_store *store;
    struct wal_session *sessions[SCHED_SESSIONS];
    uint32_t handle; /* number of the store's handle */
    uint32_t timeout_ms;
    uint32_t op;    /* that goes on, or SCHED_NONE */
    uint32_t again; /* that may be sent again, or SCHED_NONE */
    /* Seen at some time: tails, and the version of a document. */
    bool has_tail_seen[SCHED_SESSIONS];
    uint32_t tails[SCHED_SESSIONS];
    bool knows_version;
    uint32_t known_key;
    uint64_t known_version;
    bool poisoned;
    bool probed; /* calm: its append was acknowledged */
    bool prealloc_requested;
    uint64_t prealloc_id;
    uint64_t prealloc_capacity;
    uint32_t updates;                          /* 1 + the session whose metadata it is to change */
    bool may_read_only;                        /* the next opening may be to read only */
    uint64_t read_random;                      /* whether it is, and what a reader does */
    bool read_only;                            /* it is, or could not be opened otherwise */
    bool seen[SCHED_OPS];                      /* read_only: what the handle has shown */
    struct ledger_text texts[SCHED_BATCH_MAX]; /* of the call under way */
};

/* --- what strikes ------------------------------------------------------- */

enum sched_event_kind {
    EVENT_KILL,
    EVENT_STOP,
    EVENT_POWER_LOSS,
    EVENT_FAIL, /* a call */
    EVENT_FULL  /* the disk */
};

struct sched_event {
    enum sched_event_kind kind;
    enum sched_activity place;
    enum sim_call call; /* EVENT_FAIL */
    enum sched_call_failure failure;
    uint64_t countdown; /* occasions that pass first */
    bool done;
};

/* --- a schedule --------------------------------------------------------- */

struct sched_record {
    uint64_t step;
    uint32_t slot;
    enum sim_call call;
    int status;
    uint64_t offset;
    char text[44];
};

struct sched {
    struct sched_options options;
    struct sched_counts *counts;
    struct sim_disk *disk;
    struct sim_process *watch; /* does nothing but tell the time */
    struct ledger ledger;
    struct sched_op ops[SCHED_OPS];
    struct sched_process processes[SCHED_PROCESSES];
    struct sched_lock locks[SCHED_LOCKS];
    struct sched_process *current; /* null: the schedule itself */
    struct sched_process *next;    /* who is to go on */
    struct sched_event *due;
    struct sched_process *victim;
    ucontext_t context;
    uint64_t random;       /* of who goes on */
    uint64_t fault_random; /* of what strikes */
    uint64_t steps;
    uint64_t switch_odds; /* another process continues: one in N */
    uint64_t changes[4];  /* steps at which priorities change */
    uint32_t change_count;
    uint32_t lowest;
    struct sched_event events[SCHED_EVENTS];
    uint32_t event_count;
    uint32_t handles;
    uint64_t full_until; /* step; 0: the disk has room */
    uint64_t stopped_ns; /* time of the last stop of a process */
    bool was_full;
    bool may_poison;        /* something happened that poisons */
    bool may_lock;          /* an unlock failed */
    bool heal_name_pending; /* healing gave a name that is not durable yet */
    bool names_unsynced;    /* a sync of a directory's names failed for good */
    bool directory_failed;  /* a sync of any directory failed in this boot */
    bool moves_main;        /* `main` is moved by hand */
    bool failed;
    struct sched_replaced replaced[SCHED_REPLACED];
    uint32_t replaced_count;
    struct sched_record trace[SCHED_TRACE];
    uint64_t traced;
};

/* sched.c */
uint64_t sched__random(uint64_t *state, uint64_t count);
uint64_t sched__now(const struct sched *sched);
void sched__start(struct sched_process *process);
void sched__remove_process(struct sched_process *process);
/* Yields; returns when the scheduler picks this process again. */
void sched__yield(struct sched_process *process);
struct sched_process *sched__pick_next(struct sched *sched);
_Noreturn void sched__exit(struct sched *sched);
/* Prints what is wrong, and ends the schedule. Returns only outside of the processes: look at
 * sched->failed then. */
void sched__fail(struct sched *sched, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sched__trace(struct sched_process *process, int status, const char *text);

/* io.c: the table of a process, and who holds what */
void sched__io_init(struct sched_process *process);
void sched__unlock_all(struct sched_process *process);
/* The exclusive holder, or null. */
struct sched_process *sched__exclusive_holder(struct sched *sched, uint64_t byte);

/* io.c */
void sched__plan_faults(struct sched *sched);
/* A step of the running process is due, before or after a call. */
void sched__step(struct sched_process *process, bool before);
void sched__apply_fault(struct sched *sched);
void sched__on_death(void *arg);
void sched__resume_stopped(struct sched_process *process);

/* script.c: what processes do */
void sched__script(struct sched_process *process);
void sched__quiesce(struct sched_process *process);
void sched__close_all(struct sched_process *process);
/* Opens the store when it is not open; false: it could not. */
bool sched__open(struct sched_process *process);
bool sched__close(struct sched_process *process);
void sched__create(struct sched_process *process, uint32_t session);
void sched__append(struct sched_process *process, uint32_t session, uint32_t durability,
                   uint32_t size);
void sched__free_texts(struct sched_process *process);

void sched__replaced_power_loss(struct sched *sched);
/* Outside of the processes. */
void sched__check_replaced(struct sched_process *process);

/* sched.c: what an answer may be */
bool sched__check_status(struct sched_process *process, enum wal_status status,
                         const struct wal_error *error, const char *what);

/* check.c: an operation is a batch of the ledger, to which its entries and parts are added before
 * anything else happens */
uint32_t sched__op_begin(struct sched_process *process, uint32_t session);
/* Makes the session too; it is answered. */
uint32_t sched__op_begin_fork(struct sched_process *process, uint32_t source, uint32_t at);
void sched__op_end(struct sched_process *process, uint32_t number, enum wal_status status);
void sched__mark_durable(struct sched_process *process);
void sched__mark_power_loss(struct sched *sched);
bool sched__may_exist(const struct sched *sched, uint32_t session);
bool sched__must_exist(const struct sched *sched, uint32_t session, uint64_t since);

/* check.c: reads a session that others write to, and compares it. */
void sched__read(struct sched_process *process, struct wal_session *handle, uint32_t session,
                 bool durable, uint64_t since);
/* Compares everything, outside of the processes. Answers the digest; with
 * `settles`, existing records are durable, and others must not reappear. */
uint64_t sched__check_all(struct sched_process *process, bool settles);
/* Answers N of {"n":1N}. */
uint32_t sched__check_counter(struct sched *sched, uint32_t session, struct wal_slice metadata,
                              uint64_t since);
void sched__check_free(void);

/* sched.c: what is written to stderr when a signal ends the program: name, seed and number of
 * the schedule that runs, from 1 */
void sched__seed_report_install(void);
void sched__seed_report_begin(const char *name, uint64_t seed, uint64_t number);
void sched__seed_report_end(void);

/* check.c: disks to begin with */
void sched__load_image(struct sched *sched, uint64_t which);
void sched__images_free(void);

#endif
