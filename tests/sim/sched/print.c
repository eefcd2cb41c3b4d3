/*
 * print.c - the counts of a run, and whether everything that must happen
 * did; and the test program around schedules (sched.h).
 */
#include "tests/sim/sched/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sanitizers.h"

enum {
    SCHEDULES = 2000,
    SCHEDULES_LONG = 250000
};

static const char *const place_names[SCHED_ACTIVITIES] = {
    [SCHED_ANY_ACTIVITY] = "anywhere",
    [SCHED_OPENING] = "opening",
    [SCHED_RECOVERING] = "in recovery",
    [SCHED_APPEND_LOCK] = "holding the append lock",
    [SCHED_WRITING] = "before a write",
    [SCHED_SYNCING] = "holding the sync lock",
    [SCHED_PREALLOCATING] = "preallocating a segment",
    [SCHED_ROTATING] = "rotating",
    [SCHED_OPEN_UNPUBLISHED] = "a segment begun, not published",
    [SCHED_HEALING] = "healing",
    [SCHED_WAITING] = "waiting for a lock",
    [SCHED_READING] = "reading",
    [SCHED_CLOSING] = "closing",
    [SCHED_CLOSING_LAST] = "closing as the last"};

static const char *const failure_names[SCHED_FAILURES] = {
    [SCHED_FAIL_ONCE] = "a call fails once",
    [SCHED_FAIL_STICKY] = "a call fails from then on",
    [SCHED_FAIL_SYNC] = "a sync drops its pages",
    [SCHED_FAIL_PARTIAL] = "a sync drops some pages",
    [SCHED_FAIL_WRITE] = "a write fails after a part",
    [SCHED_SHORT_WRITE] = "a write is short",
    [SCHED_FAIL_NO_SPACE] = "a call finds no space",
    [SCHED_FULL_DISK] = "the disk is full",
    [SCHED_TORN_WRITE] = "killed in the middle of a write"};

static const char *const outcome_names[SCHED_OUTCOMES] = {
    [SCHED_SCHEDULES] = "schedules",
    [SCHED_STEPS] = "steps",
    [SCHED_SWITCHES] = "switches",
    [SCHED_ROTATIONS] = "segments begun",
    [SCHED_PREALLOCATIONS] = "segments preallocated",
    [SCHED_RECOVERIES] = "recoveries",
    [SCHED_ACKNOWLEDGED] = "acknowledged",
    [SCHED_CONFLICTS] = "tails that had moved",
    [SCHED_STALE] = "documents and heads that had",
    [SCHED_HOLDER_REPORTED] = "stopped holders named",
    [SCHED_OPEN_HOLDER_REPORTED] = "those inside, when opening",
    [SCHED_POISONED] = "answers of poison",
    [SCHED_HEALED] = "healed by an append",
    [SCHED_UNKNOWN] = "answers that leave it open",
    [SCHED_RESENT] = "sent again",
    [SCHED_REFUSED_SPACE] = "refused for want of space",
    [SCHED_FORKS] = "forks",
    [SCHED_READS] = "sessions read",
    [SCHED_READ_ONLY] = "those by a handle to read only",
    [SCHED_BLOBS_READ] = "payloads read from out of line",
    [SCHED_COMPACTED] = "segments compacted",
    [SCHED_COMPACTING] = "compactions while another one ran",
    [SCHED_REPLACEMENTS] = "sessions created again",
    [SCHED_RETENTIONS] = "sessions moved to the trash",
    [SCHED_REMOVAL_CONFLICTS] = "removals of a session that had changed",
    [SCHED_KEPT] = "entries that no removal had seen"};

void sched_print(const struct sched_counts *counts)
{
    for (uint32_t i = 0; i < SCHED_OUTCOMES; i++) {
        printf("%12llu %s\n", (unsigned long long)counts->outcomes[i],
               outcome_names[i]);
    }
    printf("      killed     stopped   power cut\n");
    for (uint32_t i = 0; i < SCHED_ACTIVITIES; i++) {
        printf("%12llu%12llu%12llu  %s\n",
               (unsigned long long)counts->fault_hits[SCHED_KILL][i],
               (unsigned long long)counts->fault_hits[SCHED_STOP][i],
               (unsigned long long)counts->fault_hits[SCHED_POWER_LOSS][i],
               place_names[i]);
    }
    for (uint32_t i = 0; i < SCHED_FAILURES; i++) {
        printf("%12llu %s\n", (unsigned long long)counts->failures[i],
               failure_names[i]);
    }
    for (int i = SIM_ANY + 1; i < SIM_STORE_CALLS; i++) {
        printf("%12llu failed: %s\n", (unsigned long long)counts->calls[i],
               sim_call_name((enum sim_call)i));
    }
}

static uint32_t report_zero(uint64_t count, const char *what, const char *name)
{
    if (count != 0) {
        return 0;
    }
    printf("never happened: %s%s\n", what, name);
    return 1;
}

uint32_t sched_print_uncovered(const struct sched_counts *counts,
                               const struct sched_options *options)
{
    bool heals = options->append_heals;
    static const char *const fault_names[SCHED_FAULTS] = {
        [SCHED_KILL] = "killed ",
        [SCHED_STOP] = "stopped ",
        [SCHED_POWER_LOSS] = "power cut "};
    uint32_t missing = 0;

    for (uint32_t i = 0; i < SCHED_FAULTS; i++) {
        for (uint32_t j = 0; j < SCHED_ACTIVITIES; j++) {
            if (j != SCHED_HEALING || heals) {
                missing += report_zero(counts->fault_hits[i][j], fault_names[i],
                                       place_names[j]);
            }
        }
    }
    for (uint32_t i = 0; i < SCHED_FAILURES; i++) {
        missing += report_zero(counts->failures[i], "", failure_names[i]);
    }
    for (int i = SIM_ANY + 1; i < SIM_STORE_CALLS; i++) {
        missing += report_zero(counts->calls[i],
                               "failed: ", sim_call_name((enum sim_call)i));
    }
    for (uint32_t i = 0; i < SCHED_OUTCOMES; i++) {
        if ((i != SCHED_HEALED || heals) &&
            (i != SCHED_BLOBS_READ || options->with_blobs) &&
            ((i != SCHED_COMPACTED && i != SCHED_COMPACTING) ||
             options->compacts) &&
            (i < SCHED_REPLACEMENTS || options->replaces)) {
            missing += report_zero(counts->outcomes[i], "", outcome_names[i]);
        }
    }
    return missing;
}

static bool is_set(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0;
}

/* The schedule `number` of a program, from 1. */
static bool run_named(const char *name, const struct sched_options *options,
                      uint64_t number, struct sched_counts *counts)
{
    bool is_complete;

    sched__seed_report_begin(name, options->seed, number);
    is_complete = sched_run(options, counts);
    sched__seed_report_end();
    return is_complete;
}

int sched_main(const char *name, const struct sched_options *options)
{
    static struct sched_counts counts;
    const char *given = getenv("AGENTWAL_SEED");
    struct sched_options one = *options;
    /* Contents take their time to digest. */
    uint64_t few = options->with_blobs ? SCHEDULES / 2 : SCHEDULES;
    bool is_long = is_set("AGENTWAL_LONG");
    uint64_t count = is_long                  ? SCHEDULES_LONG
                     : WITH_ADDRESS_SANITIZER ? few / 4
                                              : few;
    bool is_complete = true;

    one.append_heals = one.append_heals || is_set("AGENTWAL_HEALS");
    sched__seed_report_install();
    if (given != NULL) {
        one.seed = strtoull(given, NULL, 0);
        one.prints_trace = true;
        is_complete = run_named(name, &one, 1, &counts);
    }
    for (uint64_t i = 0; given == NULL && is_complete && i < count; i++) {
        one.seed = i < options->known_count
                       ? options->known[i]
                       : options->seed + i - options->known_count;
        is_complete = run_named(name, &one, i + 1, &counts);
    }
    sched_finish();
    if (!is_complete) {
        printf("%s failed; AGENTWAL_SEED=%llu sim_sched %s runs it again\n",
               name, (unsigned long long)one.seed, name);
        return 1;
    }
    if (given != NULL) {
        return 0;
    }
    sched_print(&counts);
    if (count < few) {
        return 0; /* too few for everything to happen */
    }
    return sched_print_uncovered(&counts, &one) == 0 ? 0 : 1;
}
