/*
 * lifecycle.c - operations on the store as a whole: it is synced,
 * closed and opened, killed, and loses power (differential.h).
 */
#include <string.h>

#include "engine/session/store.h"
#include "tests/sim/differential/differential.h"

/* Draws the schema version and the options of the next opening. */
static void choose_opening(struct differential *run)
{
    run->schema_version =
        differential_one_in(run, 4) ? 1 + differential_random(run, 2) : 0;
    run->open_flags = differential_one_in(run, 4) ? WAL_OPEN_PREAD : 0;
}

static void open_again(struct differential *run)
{
    choose_opening(run);
    differential_open(run, 0);
    reference_sync(run->ref);
    if (differential_one_in(run, 3)) {
        differential_check_all(run);
    }
}

void differential_sync(struct differential *run)
{
    (void)differential_compare_status(run, wal_sync(run->store, &run->error),
                                      WAL_OK);
    reference_sync(run->ref);
}

void differential_commit_mark(struct differential *run)
{
    if (run->is_memory) {
        return;
    }
    (void)differential_compare_status(
        run, wal__store_commit_mark(run->store, &run->error), WAL_OK);
}

void differential_reopen(struct differential *run)
{
    if (run->is_memory) {
        return;
    }
    differential_close(run);
    reference_sync(run->ref);
    open_again(run);
}

void differential_crash(struct differential *run)
{
    uint64_t last = reference_last_sequence(run->ref);

    if (run->is_memory) {
        return;
    }
    differential_kill(run);
    differential_open(run, 0);
    differential_check_number(run, "the last sequence after a death",
                              reference_last_sequence(run->ref), last);
    reference_sync(run->ref);
    differential_kill(run);
    open_again(run);
    differential_check_number(run, "the last sequence after two deaths",
                              reference_last_sequence(run->ref), last);
}

void differential_lose_power(struct differential *run)
{
    uint64_t last = reference_last_sequence(run->ref);
    struct sim_power_loss loss = {
        .landing = (enum sim_persistence)differential_random(
            run, (uint32_t)SIM_PERSISTENCES),
        .garbage = differential_one_in(run, 2),
        .unsafe_overwrite =
            run->group_align != 0 && differential_one_in(run, 2)};

    if (run->is_memory) {
        return;
    }
    if (differential_one_in(run, 8)) {
        differential_close(run);
        reference_sync(run->ref);
    }
    differential_kill(run);
    sim_disk_power_loss(run->disk, &loss, run->rng_state);
    choose_opening(run);
    differential_open(run, 0);
    run->counts->lost += last - reference_last_sequence(run->ref);
    differential_check_all(run);
}

/* Reading only: all is there, nothing can be written, nothing is changed. */
void differential_read_only(struct differential *run)
{
    uint64_t last = reference_last_sequence(run->ref);
    struct wal_session *session = NULL;

    if (run->is_memory) {
        return;
    }
    if (differential_one_in(run, 2)) {
        differential_close(run);
        reference_sync(run->ref);
    } else {
        differential_kill(run);
    }
    differential_open(run, WAL_OPEN_READ_ONLY);
    differential_check_number(run, "the last sequence to a reader",
                              reference_last_sequence(run->ref), last);
    (void)differential_compare_status(
        run, wal_session_create(run->store, NULL, &session, &run->error),
        WAL_EREADONLY);
    differential_check_all(run);
    differential_close(run);
    open_again(run);
}
