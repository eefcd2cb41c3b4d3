/*
 * sched.h - schedules: two or three simulated processes on one simulated disk, each with the whole
 * engine in a separate coroutine, one running at a time. At every call of the table of
 * engine/base/io.h a seed decides who goes on, and at some of them it kills a process, also in the
 * middle of a write, stops one, cuts the power, makes the call fail or fills the disk.
 *
 * With `replaces` a process also looks at a session and removes it, as an import or a rule of
 * retention does, while the others append to it.
 *
 * Each process appends, with and without an expected tail, puts documents, moves heads, forks,
 * changes metadata, reads, preallocates segments, closes and opens again, all on the same few
 * sessions; a ledger (check.c) records the results returned to each, and says what may be seen.
 *
 * Time is that of the simulated disk: a call takes a microsecond, and when every process waits, or
 * is stopped, it advances to the first due time. So a lock is refused for its time-out only where a
 * process was stopped.
 *
 * The same seed gives the same schedule. One thread.
 */
#ifndef AGENTWAL_TESTS_SIM_SCHED_SCHED_H
#define AGENTWAL_TESTS_SIM_SCHED_SCHED_H

#include "tests/sim/disk/sim.h"

enum { SCHED_PROCESSES = 3 };

struct sched_options {
    uint64_t seed;
    const uint64_t *known; /* seeds that found something: they come first */
    uint32_t known_count;
    uint32_t processes; /* 2 or 3 */
    bool few_switches;  /* few changes of who runs, by priorities; else any */
    bool append_heals;  /* an append heals a store that is poisoned */
    bool with_blobs;    /* payloads out of line, so that there are blobs */
    bool compacts;      /* processes compact the store too */
    bool folds;         /* a catalogue is written at each end of a segment */
    bool replaces;      /* processes remove a session that others append to */
    bool restores;      /* processes redact entries, and undo that */
    bool prints_trace;  /* prints every call */
    /* Called as each process begins, or null. */
    void (*begins)(uint64_t seed);
};

/* The activities of a process when a fault was injected; several may apply. */
enum sched_activity {
    SCHED_ANY_ACTIVITY,
    SCHED_OPENING,
    SCHED_RECOVERING,    /* alone, the others wait to join */
    SCHED_APPEND_LOCK,   /* builds a group, or is about to */
    SCHED_WRITING,       /* before a write to a segment */
    SCHED_SYNCING,       /* holds the sync lock */
    SCHED_PREALLOCATING, /* preallocates a segment */
    SCHED_ROTATING,
    /* rotating, and OPEN is written but not published */
    SCHED_OPEN_UNPUBLISHED,
    SCHED_HEALING,
    SCHED_WAITING, /* for a lock */
    SCHED_READING,
    SCHED_CLOSING,
    SCHED_CLOSING_LAST, /* closing as the last one: writes indexes */
    SCHED_ACTIVITIES
};

enum sched_fault {
    SCHED_KILL,
    SCHED_STOP,
    SCHED_POWER_LOSS, /* of the power, of all */
    SCHED_FAULTS
};

/* Ways in which a call is made to fail. */
enum sched_call_failure {
    SCHED_FAIL_ONCE,
    SCHED_FAIL_STICKY,   /* from then on, for a while */
    SCHED_FAIL_SYNC,     /* drops its pages */
    SCHED_FAIL_PARTIAL,  /* drops some of them */
    SCHED_FAIL_WRITE,    /* a part is written all the same */
    SCHED_SHORT_WRITE,   /* succeeds, with less */
    SCHED_FAIL_NO_SPACE, /* this call */
    SCHED_FULL_DISK,     /* for a while */
    SCHED_TORN_WRITE,    /* killed in the middle of it */
    SCHED_FAILURES
};

/* What an answer came to, and what else must happen to be tested. */
enum sched_outcome {
    SCHED_SCHEDULES,
    SCHED_STEPS,
    SCHED_SWITCHES,
    SCHED_ROTATIONS,
    SCHED_PREALLOCATIONS, /* made ahead */
    SCHED_RECOVERIES,
    SCHED_ACKNOWLEDGED,
    SCHED_CONFLICTS,
    SCHED_STALE,
    SCHED_HOLDER_REPORTED,      /* WAL_ELOCKED with the id of who was stopped */
    SCHED_OPEN_HOLDER_REPORTED, /* the same, when opening */
    SCHED_POISONED,
    SCHED_HEALED,
    SCHED_UNKNOWN, /* batches whose answer left open whether they are there */
    SCHED_RESENT,
    SCHED_REFUSED_SPACE,
    SCHED_FORKS,
    SCHED_READS,
    SCHED_READ_ONLY,         /* by a handle that cannot write */
    SCHED_BLOBS_READ,        /* payloads out of line that were read again */
    SCHED_COMPACTED,         /* segments that were rewritten */
    SCHED_COMPACTING,        /* compactions refused while another one ran */
    SCHED_REPLACEMENTS,      /* sessions that were deleted and created again */
    SCHED_RETENTIONS,        /* those that were moved to the trash */
    SCHED_REMOVAL_CONFLICTS, /* removals of a session that had changed */
    SCHED_KEPT,              /* its entries that had to be there at the end */
    SCHED_RESTORED,          /* redactions that were undone */
    SCHED_GONE,              /* those of entries that were erased */
    SCHED_OUTCOMES
};

struct sched_counts {
    uint64_t fault_hits[SCHED_FAULTS][SCHED_ACTIVITIES];
    uint64_t failures[SCHED_FAILURES];
    uint64_t calls[SIM_CALLS]; /* that were made to fail */
    uint64_t outcomes[SCHED_OUTCOMES];
};

/* Runs one schedule and adds to *counts. False: it failed; what happened, and the seed, were
 * printed. */
bool sched_run(const struct sched_options *options, struct sched_counts *counts);
/* Frees what schedules share. */
void sched_finish(void);
/* The whole of a test program: runs all schedules, or the one of AGENTWAL_SEED. Returns the exit
 * status of main. A program that is ended by a signal, as by an assertion, writes the seed of the
 * schedule to stderr. */
int sched_main(const char *name, const struct sched_options *options);

/* The table of calls that a schedule's table ends in; another table is its own. */
const struct wal__io *sched_io_base(const struct wal__io *io);

#endif
