/*
 * crash.c - operations that end badly: the process crashes_in_submit at one of
 * the calls of a commit, or the power is lost after appends without a waiter
 * for (differential.h). What was under way is there as a whole or not at all.
 */
#include <string.h>

#include "tests/sim/differential/request.h"

enum {
    CALLS = 14, /* among which the process crashes_in_submit, and a few more */
    SLACK_MS = 60000 /* that a commit takes, at most */
};

static void on_death(void *arg)
{
    struct differential *run = arg;

    longjmp(run->death, 1);
}

/* True: the process died before it answered. */
static bool crashes_in_submit(struct differential *run,
                              struct differential_request *given)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct sim_fault fault = {.call = SIM_ANY,
                              .effect = differential_one_in(run, 2)
                                            ? SIM_KILL_BEFORE
                                            : SIM_KILL_AFTER,
                              .after = differential_random(run, CALLS)};

    sim_process_add_fault(run->process, &fault);
    sim_process_on_death(run->process, on_death, run);
    if (setjmp(run->death) != 0) {
        return true;
    }
    run->status = differential_submit(run, given, &result);
    sim_process_clear_faults(run->process);
    sim_process_on_death(run->process, NULL, NULL);
    return false;
}

void differential_crash_writing(struct differential *run)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = true};
    struct differential_request given;
    uint64_t before = reference_last_sequence(run->ref);
    uint64_t last;
    enum wal_status status;
    bool dead;

    if (run->is_memory || !differential_request_init(run, &given)) {
        return;
    }
    differential_fill_entries(run, &given);
    dead = crashes_in_submit(run, &given);
    reference_set_clock(run->ref, run->earliest_ms,
                        run->earliest_ms + SLACK_MS);
    if (dead) {
        given.options.durability = WAL_WRITTEN; /* nothing was promised */
    }
    status = reference_batch(run->ref, given.number, &given.batch,
                             &given.options, NULL, &run->expected);
    last = reference_last_sequence(run->ref);
    if (!dead) {
        (void)differential_compare_status(run, run->status, status);
        return;
    }
    differential_kill(run);
    if (differential_one_in(run, 3)) {
        sim_disk_power_loss(run->disk, &loss, run->rng_state);
    }
    differential_open(run, 0);
    reference_sync(run->ref);
    run->counts->deaths++;
    run->counts->survived += status == WAL_OK &&
                             reference_last_sequence(run->ref) == last &&
                             last > before;
    differential_check_all(run);
}

void differential_lose_unsynced(struct differential *run)
{
    uint32_t count = 3 + differential_random(run, 20);
    struct differential_request given;

    if (run->is_memory) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (differential_request_init(run, &given)) {
            differential_fill_entries(run, &given);
            given.options.durability = WAL_WRITTEN;
            differential_commit(run, &given);
        }
    }
    differential_lose_power(run);
}
