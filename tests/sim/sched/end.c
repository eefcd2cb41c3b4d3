/*
 * end.c - the end of a schedule: all close or are killed, the power is
 * cut or not, and what is found then is compared with the ledger, again after
 * another recovery, and after going on (sched.h).
 */
#include "tests/sim/sched/internal.h"

enum end_kind {
    END_CLOSED,
    END_KILLED,
    END_CUT,
    ENDINGS
};

static void end_processes(struct sched *sched, enum end_kind end_kind)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = true};

    if (end_kind == END_CLOSED && !sched__run_all(sched, sched__close_all)) {
        return;
    }
    if (end_kind == END_CUT && !sched->names_unsynced) {
        sim_disk_power_loss(sched->disk, &loss,
                            sched__random(&sched->fault_random, UINT64_MAX));
        sched__mark_power_loss(sched);
    }
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        sched__remove_process(&sched->processes[i]);
    }
}

static uint32_t tail_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};

    return wal_store_get_info(store, &info, &error) == WAL_OK ? info.tail : 99;
}

/* Opens alone, compares everything. */
static uint64_t recover_and_check(struct sched *sched, bool settles)
{
    struct sched_process *process = &sched->processes[0];

    sched__start(process);
    if (!sched__open(process)) {
        sched__fail(sched, "the store cannot be opened at the end");
    }
    if (!sched->failed && tail_of(process->store) == WAL_TAIL_DAMAGED) {
        sched__fail(sched, "a crash is taken for damage");
    }
    return sched->failed ? 0 : sched__check_all(process, settles);
}

/* A second recovery changes nothing. */
static void recover_twice(struct sched *sched, uint64_t found)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};

    sched__remove_process(&sched->processes[0]);
    if (sched__random(&sched->fault_random, 2) == 0 && !sched->names_unsynced) {
        sim_disk_power_loss(sched->disk, &loss, 1);
    }
    if (recover_and_check(sched, false) != found && !sched->failed) {
        sched__fail(sched, "a second recovery comes to something else");
    }
}

static void append_after(struct sched *sched)
{
    struct sched_process *process = &sched->processes[0];

    for (uint32_t i = 0; i < SCHED_SHARED_SESSIONS && !sched->failed; i++) {
        sched__append(process, i, WAL_DURABLE, 150);
    }
    if (sched->failed) {
        return;
    }
    if (sched__random(&sched->fault_random, 2) == 0) {
        (void)sched__close(process);
    }
    end_processes(sched, END_CUT);
    if (!sched->failed) {
        (void)recover_and_check(sched, false);
    }
}

void sched__verify_end(struct sched *sched)
{
    uint64_t found;
    bool again;

    end_processes(sched,
                  (enum end_kind)sched__random(&sched->fault_random, ENDINGS));
    if (sched->failed) {
        return;
    }
    sched->may_poison = false;
    sched->may_lock = false;
    sched->was_full = false;
    again = sched__random(&sched->fault_random, 2) == 0;
    found = recover_and_check(sched, again);
    if (!sched->failed && again) {
        recover_twice(sched, found);
        if (!sched->failed && sched__random(&sched->fault_random, 2) == 0) {
            append_after(sched);
        }
    }
}
