/*
 * sched_calls.c - which answers a call may give: a failure must have a cause
 * that the schedule knows of, and a lock that is refused must name who was
 * stopped (sched.h).
 */
#include "tests/sim/sched_parts.h"

#include "engine/log/control.h"

enum {
    LOOKS_NS = 11000000 /* two looks at a lock, and some calls */
};

/* Whether somebody was stopped at that time or later, or still is. */
static bool was_stopped(const struct sched *sched, uint64_t since_ns)
{
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        if (sched->processes[i].stopped) {
            return true;
        }
    }
    return sched->stopped_ns != 0 && sched->stopped_ns >= since_ns;
}

/* Who has been stopped since before the last look is named, unless it was
 * about to say that it holds the lock, or had just said that it does not. */
static void check_name(struct sched_process *process,
                       const struct wal_error *error, const char *what)
{
    struct sched *sched = process->sched;
    const struct sched_process *holder =
        sched__holder(sched, process->blocked_byte);

    if (holder == NULL || !holder->stopped || holder->nameless ||
        holder->halted_ns > process->looked_ns) {
        return;
    }
    if ((uint32_t)error->holder != holder->id) {
        sched__fail(sched, "%s: process %u holds the lock %llu, not %d: %s",
                    what, holder->id, (unsigned long long)process->blocked_byte,
                    error->holder, error->text);
    }
    sched->counts->feats[SCHED_NAMED]++;
}

static void check_locked(struct sched_process *process,
                         const struct wal_error *error, const char *what)
{
    struct sched *sched = process->sched;
    uint64_t waited = sched__now(sched) - process->blocked_ns;
    uint64_t limit = (uint64_t)process->timeout_ms * 1000000;
    uint64_t since = process->blocked_ns;

    if (process->blocked_byte == 0) {
        sched__fail(sched, "%s answers WAL_ELOCKED, and no lock was held: %s",
                    what, error->text);
    }
    if (sched->may_lock) {
        return; /* who could not let go of it holds it, or its copy */
    }
    if (process->blocked_byte == WAL__LOCK_MEMBER ||
        process->blocked_byte == WAL__LOCK_DOOR) {
        /* Who recovers is waited for longer, at two doors, without a name. */
        since = process->asked_ns;
    }
    if (!was_stopped(sched, since)) {
        sched__fail(sched, "%s answers WAL_ELOCKED, and nobody is stopped: %s",
                    what, error->text);
    }
    if (process->blocked_byte == WAL__LOCK_MEMBER ||
        process->blocked_byte == WAL__LOCK_DOOR) {
        return;
    }
    if (process->continued_ns < process->blocked_ns &&
        (waited > limit + LOOKS_NS || waited + LOOKS_NS < limit)) {
        sched__fail(sched, "%s answers WAL_ELOCKED after %llu us, not %u ms",
                    what, (unsigned long long)waited / 1000,
                    process->timeout_ms);
    }
    check_name(process, error, what);
}

/* Whether something that was done explains it. */
static bool is_explained(const struct sched_process *process,
                         enum wal_status status)
{
    const struct sched *sched = process->sched;
    bool space = process->failed_space || sched->was_full;

    switch ((int)status) {
    case WAL_EPOISONED:
        return sched->may_poison;
    case WAL_EIO:
    case WAL_ENOMEM:
        return process->failed;
    case WAL_ENOSPACE:
    case WAL_EREADONLY:
        return space;
    default:
        return false;
    }
}

bool sched__answered(struct sched_process *process, enum wal_status status,
                     const struct wal_error *error, const char *what)
{
    struct sched *sched = process->sched;

    process->call = SIM_ANY;
    process->offset = 0;
    sched__note(process, status, what);
    if (status == WAL_OK) {
        return true;
    }
    if (status == WAL_ELOCKED) {
        check_locked(process, error, what);
        return false;
    }
    if (!is_explained(process, status)) {
        sched__fail(sched, "%s answers %d: %s (%s at %llu)", what, status,
                    error->text, error->file,
                    (unsigned long long)error->offset);
    }
    if (status == WAL_EPOISONED) {
        process->poisoned = true;
        sched->counts->feats[SCHED_POISONED]++;
    }
    if (status == WAL_ENOSPACE) {
        sched->counts->feats[SCHED_REFUSED_SPACE]++;
    }
    return false;
}
