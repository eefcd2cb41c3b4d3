/*
 * script_compact.c - the step of a process that compacts the store while the
 * others go on (sched.h). What it replaces is live or superseded: no answer of
 * any process changes by it.
 */
#include "tests/sim/sched/internal.h"

#include "agentwal/admin.h"
#include "engine/log/control.h"

/* Whether it waited for a process that is about to name content, or may be, as
 * it is stopped: for up to 10 s, whatever the timeout. */
static bool is_kept_waiting(const struct sched_process *process)
{
    return process->blocked_byte == WAL__LOCK_CONTENT ||
           process->blocked_byte == WAL__LOCK_CONTENT + 1;
}

/* A segment is refused where reading it failed, and where the sync of a
 * directory has failed since the machine started; nowhere else. */
static void check_refusals(struct sched_process *process,
                           const struct wal_store_compact_result *result)
{
    if (result->refused != 0 && !process->failed &&
        !process->sched->directory_failed) {
        sched__fail(process->sched, "compaction refuses %u segments: %s",
                    (unsigned)result->refused, result->refusal.text);
    }
}

void sched__step_compact(struct sched_process *process)
{
    struct sched *sched = process->sched;
    struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    options.flags = sched__random(&process->read_random, 2) == 0
                        ? WAL_STORE_COMPACT_ERASE
                        : 0;
    process->blocked_byte = 0;
    status = wal_store_compact(process->store, &options, &result, &error);
    if (status == WAL_ELOCKED && is_kept_waiting(process)) {
        return;
    }
    if (status == WAL_ELOCKED && process->blocked_byte == WAL__LOCK_COMPACT) {
        /* Another one compacts, or had just begun: refused at once. */
        sched->counts->outcomes[SCHED_COMPACTING]++;
        return;
    }
    if (sched__check_status(process, status, &error, "compacting")) {
        check_refusals(process, &result);
    }
    sched->counts->outcomes[SCHED_COMPACTED] += result.rewritten;
}
