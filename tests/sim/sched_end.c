/*
 * sched_end.c - the end of a schedule: all close or are killed, the power is
 * cut or not, and what is found then is compared with the ledger, again after
 * another recovery, and after going on (sched.h).
 */
#include "tests/sim/sched_parts.h"

enum ending {
    END_CLOSED,
    END_KILLED,
    END_CUT,
    ENDINGS
};

static void go(struct sched *sched, enum ending ending)
{
    struct sim_power_loss loss = {.landing = SIM_LAND_ANY, .garbage = true};

    if (ending == END_CLOSED && !sched__phase(sched, sched__leave_store)) {
        return;
    }
    if (ending == END_CUT && !sched->unnamed) {
        sim_disk_power_loss(sched->disk, &loss,
                            sched__draw(&sched->fate, UINT64_MAX));
        sched__note_power(sched);
    }
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        sched__drop(&sched->processes[i]);
    }
}

static uint32_t tail_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};

    return wal_store_status(store, &info, &error) == WAL_OK ? info.tail : 99;
}

/* Opens alone, compares everything; what is there then is durable, and what is
 * not there never comes back. */
static uint64_t look(struct sched *sched)
{
    struct sched_process *process = &sched->processes[0];
    uint64_t digest = 0;

    sched__start(process);
    if (!sched__open(process)) {
        sched__fail(sched, "the store cannot be opened at the end");
    }
    if (!sched->failed && tail_of(process->store) == WAL_TAIL_DAMAGED) {
        sched__fail(sched, "a crash is taken for damage");
    }
    if (!sched->failed) {
        sched__check_all(process, &digest);
    }
    return digest;
}

static void settle(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->ledger.op_count; i++) {
        struct sched_op *op = &sched->ledger.ops[i];

        if (op->kind == SCHED_APPEND || op->kind == SCHED_PUT) {
            op->state =
                op->state >= SCHED_WRITTEN ? SCHED_DURABLE : SCHED_REFUSED;
        } else if (op->state == SCHED_WRITTEN) {
            op->state = SCHED_DURABLE;
        }
    }
}

/* What recovery shows it has made durable; a second one changes nothing. */
static void look_again(struct sched *sched, uint64_t found)
{
    struct sim_power_loss loss = {.landing = SIM_LAND_NONE};

    settle(sched);
    sched__drop(&sched->processes[0]);
    if (sched__draw(&sched->fate, 2) == 0 && !sched->unnamed) {
        sim_disk_power_loss(sched->disk, &loss, 1);
    }
    if (look(sched) != found && !sched->failed) {
        sched__fail(sched, "a second recovery comes to something else");
    }
}

static void go_on(struct sched *sched)
{
    struct sched_process *process = &sched->processes[0];

    for (uint32_t i = 0; i < SCHED_BASE && !sched->failed; i++) {
        sched__append(process, i, WAL_DURABLE, 150);
    }
    if (sched->failed) {
        return;
    }
    if (sched__draw(&sched->fate, 2) == 0) {
        (void)sched__close(process);
    }
    go(sched, END_CUT);
    if (!sched->failed) {
        (void)look(sched);
    }
}

void sched__conclude(struct sched *sched)
{
    uint64_t found;

    go(sched, (enum ending)sched__draw(&sched->fate, ENDINGS));
    if (sched->failed) {
        return;
    }
    sched->may_poison = false;
    sched->may_lock = false;
    sched->was_full = false;
    found = look(sched);
    if (!sched->failed && sched__draw(&sched->fate, 2) == 0) {
        look_again(sched, found);
        if (!sched->failed && sched__draw(&sched->fate, 2) == 0) {
            go_on(sched);
        }
    }
}
