/*
 * fault.c - what strikes a schedule, and when: chosen by the seed before
 * it begins, by what a process is at and how often that comes about
 * (sched.h). Counts every blow by its kind and place.
 */
#include "tests/sim/sched/internal.h"

#include <errno.h>
#include <string.h>

#include "engine/log/control.h"

enum {
    STEPS_MAX = 200000, /* of a schedule: more are a livelock */
    KILLS_MAX = 3       /* of each process */
};

/* ------------------------------------------------------------- plans --- */

static enum sched_event_kind draw_kind(uint64_t *fate)
{
    static const enum sched_event_kind kinds[] = {
        EVENT_KILL,       EVENT_KILL, EVENT_KILL,       EVENT_KILL,
        EVENT_KILL,       EVENT_KILL, EVENT_STOP,       EVENT_STOP,
        EVENT_STOP,       EVENT_STOP, EVENT_POWER_LOSS, EVENT_POWER_LOSS,
        EVENT_POWER_LOSS, EVENT_FAIL, EVENT_FAIL,       EVENT_FAIL,
        EVENT_FAIL,       EVENT_FAIL, EVENT_FAIL,       EVENT_FULL};

    return kinds[sched__random(fate, sizeof(kinds) / sizeof(kinds[0]))];
}

/* Calls of which a schedule makes a few. */
static bool is_rare_call(enum sim_call call)
{
    return call == SIM_ALLOCATE || call == SIM_MAKE_DIRECTORY ||
           call == SIM_LIST || call == SIM_RENAME || call == SIM_UNLINK ||
           call == SIM_SYNC_DIRECTORY || call == SIM_STORAGE ||
           call == SIM_PUNCH || call == SIM_POPULATE;
}

/* Which call fails, and how. */
static void draw_failure(struct sched_event *event, uint64_t *fate)
{
    static const enum sim_call prealloc_calls[] = {
        SIM_OPEN, SIM_ALLOCATE, SIM_PWRITEV, SIM_RENAME, SIM_MAKE_DIRECTORY};

    event->failure =
        (enum sched_call_failure)sched__random(fate, SCHED_FAILURES);
    event->countdown = sched__random(fate, 5);
    switch (event->failure) {
    case SCHED_FAIL_SYNC:
    case SCHED_FAIL_PARTIAL:
        event->call = SIM_SYNC;
        return;
    case SCHED_FAIL_WRITE:
    case SCHED_SHORT_WRITE:
    case SCHED_TORN_WRITE:
        event->call = SIM_PWRITEV;
        return;
    case SCHED_FAIL_NO_SPACE:
        event->call = prealloc_calls[sched__random(fate, 5)];
        return;
    case SCHED_FAIL_ONCE:
    case SCHED_FAIL_STICKY:
    case SCHED_FULL_DISK:
    case SCHED_FAILURES:
        break;
    }
    if (event->failure == SCHED_FULL_DISK) {
        event->failure = SCHED_FAIL_ONCE;
    }
    event->call = (enum sim_call)(1 + sched__random(fate, SIM_STORE_CALLS - 1));
    event->countdown = sched__random(fate, is_rare_call(event->call) ? 2 : 12);
    if (event->call == SIM_PUNCH) {
        event->countdown = 0; /* healing makes one hole */
    }
}

/* Whether the event needs a log that is healed, as the call does that gives
 * space back. */
static bool needs_healing(const struct sched_event *event)
{
    return event->place == SCHED_HEALING ||
           (event->kind == EVENT_FAIL && event->call == SIM_PUNCH);
}

/* There is something to heal only after a sync or a write failed. */
static void plan_poison(struct sched *sched)
{
    struct sched_event event = {
        .kind = EVENT_FAIL, .failure = SCHED_FAIL_SYNC, .call = SIM_SYNC};

    event.countdown = sched__random(&sched->fault_random, 4);
    for (uint32_t i = 0; i < sched->event_count; i++) {
        if (needs_healing(&sched->events[i]) &&
            sched->event_count < SCHED_EVENTS) {
            sched->events[sched->event_count] = event;
            sched->event_count++;
            return;
        }
    }
}

void sched__plan_faults(struct sched *sched)
{
    uint64_t *fate = &sched->fault_random;

    sched->event_count =
        sched__random(fate, 10) == 0 ? 0 : 1 + (uint32_t)sched__random(fate, 3);
    for (uint32_t i = 0; i < sched->event_count; i++) {
        struct sched_event *event = &sched->events[i];

        event->kind = draw_kind(fate);
        event->place = SCHED_ANY_ACTIVITY;
        event->countdown =
            sched__random(fate, UINT64_C(30) << sched__random(fate, 6));
        if (event->kind == EVENT_FAIL) {
            draw_failure(event, fate);
        } else if (event->kind != EVENT_FULL && sched__random(fate, 3) != 0) {
            event->place = (enum sched_activity)(
                1 + sched__random(fate, SCHED_ACTIVITIES - 1));
            event->countdown =
                sched__random(fate, UINT64_C(1) << sched__random(fate, 6));
        }
    }
    plan_poison(sched);
}

/* ------------------------------------------------------------ places --- */

static uint32_t activity_bit(enum sched_activity place)
{
    return 1u << place;
}

/* The activities of the process, as bits. */
static uint32_t activities_of(const struct sched_process *process, bool before)
{
    uint32_t places = activity_bit(SCHED_ANY_ACTIVITY) | process->activity_bits;
    bool appending = sched__holds(process, WAL__LOCK_APPEND);
    bool prealloc = sched__holds(process, WAL__LOCK_PREALLOC);

    if (sched__holds(process, WAL__LOCK_PARTICIPANT)) {
        places |= (process->activity_bits & activity_bit(SCHED_OPENING)) != 0
                      ? activity_bit(SCHED_RECOVERING)
                      : activity_bit(SCHED_CLOSING_LAST);
    }
    places |= appending ? activity_bit(SCHED_APPEND_LOCK) : 0;
    places |= appending && prealloc ? activity_bit(SCHED_ROTATING) : 0;
    places |= !appending && prealloc ? activity_bit(SCHED_PREALLOCATING) : 0;
    places |= process->begun ? activity_bit(SCHED_OPEN_UNPUBLISHED) : 0;
    places |=
        sched__holds(process, WAL__LOCK_SYNC) ? activity_bit(SCHED_SYNCING) : 0;
    if (appending && sched__holds(process, WAL__LOCK_SYNC) &&
        sched__page_is_poisoned(process)) {
        places |= activity_bit(SCHED_HEALING);
    }
    places |= process->waits ? activity_bit(SCHED_WAITING) : 0;
    if (before && process->call == SIM_PWRITEV && process->on_segment) {
        places |= activity_bit(SCHED_WRITING);
    }
    return places;
}

static void count_fault(struct sched_process *process, enum sched_fault blow,
                        bool before)
{
    uint32_t places = activities_of(process, before);

    for (uint32_t i = 0; i < SCHED_ACTIVITIES; i++) {
        if ((places & 1u << i) != 0) {
            process->sched->counts->fault_hits[blow][i]++;
        }
    }
}

/* --------------------------------------------------------- failures --- */

/* A number of bytes that is less than what is written. */
static size_t draw_partial_size(struct sched *sched)
{
    static const size_t puts[] = {0, 8, 24, 48, 100, 200, 512, 1024, 4096};

    return puts[sched__random(&sched->fault_random, 9)];
}

static void fill_fault(struct sched *sched, const struct sched_event *event,
                       struct sim_fault *fault)
{
    *fault = (struct sim_fault){.call = event->call, .sys_errno = EIO};
    switch (event->failure) {
    case SCHED_FAIL_STICKY:
        fault->sticky = true;
        break;
    case SCHED_FAIL_PARTIAL:
        fault->partial = true;
        break;
    case SCHED_FAIL_WRITE:
        fault->put = draw_partial_size(sched);
        break;
    case SCHED_SHORT_WRITE:
        fault->put = 1 + draw_partial_size(sched);
        fault->sys_errno = 0;
        break;
    case SCHED_FAIL_NO_SPACE:
        fault->sys_errno = ENOSPC;
        break;
    case SCHED_TORN_WRITE:
        fault->effect = SIM_KILL_BEFORE;
        fault->put = draw_partial_size(sched);
        break;
    case SCHED_FAIL_ONCE:
    case SCHED_FAIL_SYNC:
    case SCHED_FULL_DISK:
    case SCHED_FAILURES:
        break;
    }
}

/* Makes the call that is about to be made fail. */
static void fail_call(struct sched_process *process,
                      const struct sched_event *event)
{
    struct sched *sched = process->sched;
    struct sim_fault fault;

    fill_fault(sched, event, &fault);
    sim_process_clear_faults(process->process);
    sim_process_add_fault(process->process, &fault);
    sched->counts->failures[event->failure]++;
    if (event->failure == SCHED_TORN_WRITE) {
        count_fault(process, SCHED_KILL, true);
        process->kills++;
        sched__trace(process, 0, "killed in the middle");
        return;
    }
    sched__trace(process, 0, "is made to fail");
    if (event->failure == SCHED_SHORT_WRITE) {
        return;
    }
    sched->counts->calls[event->call]++;
    process->failed = true;
    process->failed_space |= event->failure == SCHED_FAIL_NO_SPACE;
    sched->may_poison |= event->call == SIM_SYNC || event->call == SIM_PWRITEV;
    if (fault.sticky) {
        process->sticky_until =
            sched->steps + sched__random(&sched->fault_random, 200);
    }
}

/* ------------------------------------------------------------- steps --- */

static bool event_matches(const struct sched_event *event,
                          const struct sched_process *process, bool before)
{
    if (event->done) {
        return false;
    }
    if (event->kind != EVENT_FAIL) {
        return (activities_of(process, before) & activity_bit(event->place)) !=
               0;
    }
    return before && process->call == event->call &&
           (process->on_segment || (event->failure != SCHED_FAIL_SYNC &&
                                    event->failure != SCHED_FAIL_PARTIAL &&
                                    event->failure != SCHED_TORN_WRITE));
}

/* Ends faults whose duration is over. */
static void expire_faults(struct sched_process *process)
{
    struct sched *sched = process->sched;

    if (sched->full_until != 0 && sched->steps >= sched->full_until) {
        sched->full_until = 0;
        sim_disk_set_limit(sched->disk, 0);
    }
    if (process->sticky_until != 0 && sched->steps >= process->sticky_until) {
        process->sticky_until = 0;
        sim_process_clear_faults(process->process);
    }
}

static void count_event(struct sched_process *process,
                        enum sched_event_kind kind, bool before)
{
    if (kind == EVENT_KILL && process->kills < KILLS_MAX) {
        count_fault(process, SCHED_KILL, before);
    } else if (kind == EVENT_STOP) {
        count_fault(process, SCHED_STOP, before);
    } else if (kind == EVENT_POWER_LOSS) {
        count_fault(process, SCHED_POWER_LOSS, before);
    }
}

void sched__step(struct sched_process *process, bool before)
{
    struct sched *sched = process->sched;
    struct sched_process *next;

    sched->steps++;
    if (sched->steps > STEPS_MAX) {
        sched__fail(sched, "livelock");
    }
    expire_faults(process);
    for (uint32_t i = 0; i < sched->event_count && sched->due == NULL; i++) {
        struct sched_event *event = &sched->events[i];

        if (!event_matches(event, process, before) || event->countdown-- != 0) {
            continue;
        }
        event->done = true;
        if (event->kind == EVENT_FAIL) {
            fail_call(process, event);
        } else {
            count_event(process, event->kind, before);
            sched->due = event;
            sched->victim = process;
        }
    }
    if (sched->due != NULL) {
        sched__yield(process);
        return;
    }
    next = sched__pick_next(sched);
    if (next != process) {
        sched->next = next;
        sched__yield(process);
    }
}

/* ------------------------------------------------------------- kills --- */

/* The death of a process that syncs poisons, and so does taking the lock over
 * from one that is stopped. */
static void note_syncer(struct sched_process *process)
{
    process->sched->may_poison |= sched__holds(process, WAL__LOCK_SYNC) ||
                                  sched__holds(process, WAL__LOCK_SYNC + 1);
}

static void kill_process(struct sched_process *process)
{
    process->kills++;
    note_syncer(process);
    sim_process_kill(process->process);
    sched__remove_process(process);
}

void sched__resume_stopped(struct sched_process *process)
{
    struct sched *sched = process->sched;

    process->stopped = false;
    process->call = SIM_ANY;
    sched->stopped_ns = sched__now(sched);
    process->continued_ns = sched->stopped_ns;
    sched__trace(process, 0,
                 process->dies ? "killed while stopped" : "goes on");
    if (process->dies) {
        count_fault(process, SCHED_KILL, false);
        kill_process(process);
    }
}

static void stop_process(struct sched_process *process)
{
    static const uint64_t spans_ms[] = {1, 40, 700, 700, 3000, 15000};
    struct sched *sched = process->sched;

    note_syncer(process);
    process->stopped = true;
    process->stopped_since_ns = sched__now(sched);
    process->dies = sched__random(&sched->fault_random, 4) == 0;
    process->stopped_until_ns =
        sched__now(sched) +
        spans_ms[sched__random(&sched->fault_random, 6)] * 1000000;
}

static void cut(struct sched *sched)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};

    loss.garbage = sched__random(&sched->fault_random, 2) == 0;
    if (!sched->names_unsynced) {
        sim_disk_power_loss(sched->disk, &loss,
                            sched__random(&sched->fault_random, UINT64_MAX));
        sched->directory_failed = false;
        sched__mark_power_loss(sched);
        sched->heal_name_pending = false;
    }
    sched->stopped_ns = 0;
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        sched__remove_process(&sched->processes[i]);
    }
}

void sched__apply_fault(struct sched *sched)
{
    static const char *const names[] = {[EVENT_KILL] = "killed",
                                        [EVENT_STOP] = "stopped",
                                        [EVENT_POWER_LOSS] = "the power is cut",
                                        [EVENT_FULL] = "the disk is full"};
    struct sched_process *victim = sched->victim;
    const struct sched_event *event = sched->due;

    sched->due = NULL;
    victim->call = SIM_ANY;
    sched__trace(victim, 0, names[event->kind]);
    switch (event->kind) {
    case EVENT_KILL:
        if (victim->kills < KILLS_MAX) {
            kill_process(victim);
        }
        return;
    case EVENT_STOP:
        stop_process(victim);
        return;
    case EVENT_POWER_LOSS:
        cut(sched);
        return;
    case EVENT_FULL:
        sched->was_full = true;
        sched->counts->failures[SCHED_FULL_DISK]++;
        sched->full_until =
            sched->steps + sched__random(&sched->fault_random, 400);
        sim_disk_set_limit(sched->disk, sim_disk_used_bytes(sched->disk));
        return;
    case EVENT_FAIL:
        return;
    }
}

void sched__on_death(void *arg)
{
    struct sched_process *process = arg;

    if (process->sched->current == process) {
        sched__exit(process->sched);
    }
}
