/*
 * status.c - which answers a call may give: a failure must have a cause
 * that the schedule knows of, and a lock that is refused must name who was
 * stopped (sched.h).
 */
#include <string.h>

#include "tests/sim/sched/internal.h"

#include "engine/log/control.h"

enum {
    POLL_SLACK_NS = 22000000, /* four looks at a lock, and some calls */
    RUNNING_HOLDER = 20 /* times the timeout is one that runs waited for */
};

/* Whether a process was stopped at that time or later, or is still stopped. */
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
static void check_holder(struct sched_process *process,
                         const struct wal_error *error, const char *what)
{
    struct sched *sched = process->sched;
    const struct sched_process *holder =
        sched__exclusive_holder(sched, process->blocked_byte);

    if (holder == NULL || !holder->stopped || holder->owner_unpublished ||
        holder->stopped_since_ns > process->last_polled_ns) {
        return;
    }
    if ((uint32_t)error->holder != holder->id) {
        sched__fail(sched, "%s: process %u holds the lock %llu, not %d: %s",
                    what, holder->id, (unsigned long long)process->blocked_byte,
                    error->holder, error->text);
    }
    sched->counts->outcomes[SCHED_HOLDER_REPORTED]++;
}

static bool is_open_lock(uint64_t byte)
{
    return byte == WAL__LOCK_PARTICIPANT || byte == WAL__LOCK_OPEN;
}

/* Whether the page names this process as the one that holds the lock. */
static bool is_owner_published(const struct sched_process *holder,
                               uint64_t byte)
{
    const struct wal__control_page *page = holder->page;
    const struct wal__lock_owner *name;

    if (page == NULL) {
        return false;
    }
    name = byte == WAL__LOCK_OPEN ? &page->open_lock_owner
                                  : &page->exclusive_owner;
    return atomic_load(&name->process) == holder->id;
}

/* Whether it names a stopped process that has the store alone: the process
 * that holds the open lock waits for it. */
static bool is_exclusive_stopped(struct sched *sched,
                                 const struct wal_error *error)
{
    const struct sched_process *alone =
        sched__exclusive_holder(sched, WAL__LOCK_PARTICIPANT);

    return alone != NULL && alone->stopped &&
           (uint32_t)error->holder == alone->id;
}

/* A process that opens the store waits longer than the lock timeout for a
 * running holder, and only the timeout for a stopped one, which it reports. */
static void check_open_refused(struct sched_process *process,
                               const struct wal_error *error, const char *what)
{
    struct sched *sched = process->sched;
    uint64_t limit = (uint64_t)process->timeout_ms * 1000000;
    uint64_t since = process->open_started_ns;
    const struct sched_process *holder =
        sched__exclusive_holder(sched, process->blocked_byte);

    if (holder == NULL || !holder->stopped || process->failed ||
        holder->stopped_since_ns > process->last_polled_ns ||
        !is_owner_published(holder, process->blocked_byte)) {
        return;
    }
    since = holder->stopped_since_ns > since ? holder->stopped_since_ns : since;
    if ((uint32_t)error->holder != holder->id &&
        !is_exclusive_stopped(sched, error)) {
        sched__fail(sched, "%s: process %u holds the lock %llu, not %d: %s",
                    what, holder->id, (unsigned long long)process->blocked_byte,
                    error->holder, error->text);
    }
    if (process->continued_ns < since &&
        sched__now(sched) > since + limit + POLL_SLACK_NS) {
        sched__fail(sched, "%s waits %llu us for who is stopped, not %u ms",
                    what,
                    (unsigned long long)(sched__now(sched) - since) / 1000,
                    process->timeout_ms);
    }
    sched->counts->outcomes[SCHED_OPEN_HOLDER_REPORTED]++;
}

static void check_locked(struct sched_process *process,
                         const struct wal_error *error, const char *what)
{
    struct sched *sched = process->sched;
    uint64_t waited = sched__now(sched) - process->blocked_ns;
    uint64_t limit = (uint64_t)process->timeout_ms * 1000000;
    uint64_t most;
    uint64_t since = process->blocked_ns;
    const struct sched_process *holder;

    if (process->blocked_byte == 0) {
        sched__fail(sched, "%s answers WAL_ELOCKED, and no lock was held: %s",
                    what, error->text);
    }
    if (sched->may_lock) {
        return; /* who could not let go of it holds it, or its copy */
    }
    if (is_open_lock(process->blocked_byte)) {
        since = process->open_started_ns;
    }
    if (!was_stopped(sched, since)) {
        sched__fail(sched, "%s returns WAL_ELOCKED, and none is stopped: %s",
                    what, error->text);
    }
    if (is_open_lock(process->blocked_byte)) {
        check_open_refused(process, error, what);
        return;
    }
    /* A holder that runs is waited for longer. */
    holder = sched__exclusive_holder(sched, process->blocked_byte);
    if (holder != NULL && holder->stopped &&
        holder->stopped_since_ns > process->blocked_ns + limit) {
        limit = holder->stopped_since_ns - process->blocked_ns;
    }
    /* One that runs may itself wait for the one that is stopped. */
    most = holder != NULL && !holder->stopped ? limit * RUNNING_HOLDER : limit;
    /* wal_close may wait twice: to heal what it syncs, which another process
     * does meanwhile, and to write the commit mark. */
    most *= strcmp(what, "closing") == 0 ? 2 : 1;
    if (process->continued_ns < process->blocked_ns &&
        (waited > most + POLL_SLACK_NS || waited + POLL_SLACK_NS < limit)) {
        sched__fail(sched, "%s answers WAL_ELOCKED after %llu us, not %u ms",
                    what, (unsigned long long)waited / 1000,
                    process->timeout_ms);
    }
    check_holder(process, error, what);
}

/* Whether something that was done explains it. */
static bool is_explained(const struct sched_process *process,
                         enum wal_status status)
{
    const struct sched *sched = process->sched;
    bool space = process->failed_space || sched->was_full;

    switch ((int)status) {
    case WAL_EPOISONED:
        /* A call of this process failed, so that healing did; or healing had to
         * wait for too long, for a process that was stopped or could not let go
         * of a lock. */
        return process->failed || space || sched->may_lock ||
               (sched->may_poison && was_stopped(sched, 0));
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

bool sched__check_status(struct sched_process *process, enum wal_status status,
                         const struct wal_error *error, const char *what)
{
    struct sched *sched = process->sched;

    process->call = SIM_ANY;
    process->offset = 0;
    sched__trace(process, status, what);
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
        sched->counts->outcomes[SCHED_POISONED]++;
    }
    if (status == WAL_ENOSPACE) {
        sched->counts->outcomes[SCHED_REFUSED_SPACE]++;
    }
    return false;
}
