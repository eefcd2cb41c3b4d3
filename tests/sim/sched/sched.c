/*
 * sched.c - coroutines, who goes on, and the course of a schedule (sched.h).
 *
 * Invariant: one coroutine runs, or none; a coroutine that is given up is never gone back to, and
 * what it held is dropped with its process.
 */
#include "tests/sim/sched/sched.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/log/control.h"
#include "format/bytes/assert.h"
#include "tests/lib/rng.h"
#include "tests/lib/sanitizers.h"
#include "tests/sim/sched/internal.h"

#if WITH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum {
    STACK_SIZE = 1024 * 1024,
    SPURIOUS_WAKE_ODDS = 200 /* a wait ends early, one in N looks */
};

static uint8_t *stacks[SCHED_PROCESSES];
static struct sched_process *starting;

/* ------------------------------------------------------------ chance --- */

uint64_t sched__random(uint64_t *state, uint64_t count)
{
    return rng_below(state, count);
}

uint64_t sched__now(const struct sched *sched)
{
    const struct wal__io *io = sim_process_io(sched->watch);

    /* Looking at the clock takes no time. */
    return io->monotonic_ns(io->ctx);
}

/* ----------------------------------------------------------- failing --- */

void sched__trace(struct sched_process *process, int status, const char *text)
{
    struct sched *sched = process->sched;
    struct sched_record *record = &sched->trace[sched->traced % SCHED_TRACE];
    size_t size = text == NULL ? 0 : strlen(text);
    size_t from = size < sizeof(record->text) ? 0 : size - sizeof(record->text) + 1;

    sched->traced++;
    record->step = sched->steps;
    record->slot = process->slot;
    record->call = process->call;
    record->status = status;
    record->offset = process->offset;
    (void)snprintf(record->text, sizeof(record->text), "%s", text == NULL ? "" : text + from);
    if (sched->options.prints_trace) {
        printf("%6llu %10.3f ms  %u %-14s %10llu %4d %s\n", (unsigned long long)record->step,
               (double)sched__now(sched) / 1e6, record->slot,
               record->call == SIM_ANY ? "" : sim_call_name(record->call),
               (unsigned long long)record->offset, status, record->text);
    }
}

static void print_trace(const struct sched *sched)
{
    uint64_t from = sched->traced > SCHED_TRACE ? sched->traced - SCHED_TRACE : 0;

    for (uint64_t i = from; i < sched->traced && !sched->options.prints_trace; i++) {
        const struct sched_record *record = &sched->trace[i % SCHED_TRACE];

        printf("%6llu %u %-14s %10llu %4d %s\n", (unsigned long long)record->step, record->slot,
               record->call == SIM_ANY ? "" : sim_call_name(record->call),
               (unsigned long long)record->offset, record->status, record->text);
    }
}

void sched__fail(struct sched *sched, const char *format, ...)
{
    va_list args;

    if (sched->failed) {
        return;
    }
    print_trace(sched);
    printf("AGENTWAL_SEED=%llu, %u processes%s, step %llu", (unsigned long long)sched->options.seed,
           sched->options.processes, sched->options.few_switches ? ", few switches" : "",
           (unsigned long long)sched->steps);
    if (sched->current != NULL) {
        printf(", process %u", sched->current->slot);
    }
    printf(":\n  ");
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    printf("\n");
    (void)fflush(stdout);
    sched->failed = true;
    if (sched->current != NULL) {
        sched__exit(sched);
    }
}

/* -------------------------------------------------------- coroutines --- */

/* Reports every change of stacks to the sanitizer. */
static void fiber_switch_start(const void *stack, size_t size, void **save)
{
#if WITH_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(save, stack, size);
#else
    (void)stack;
    (void)size;
    (void)save;
#endif
}

static void fiber_switch_finish(void *saved, const void **stack, size_t *size)
{
#if WITH_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(saved, stack, size);
#else
    (void)saved;
    (void)stack;
    (void)size;
#endif
}

/* The sanitizer replaces swapcontext() by one that maps the shadow of both stacks anew: most of the
 * time of a schedule. It need not here, because the stacks are announced to it, and unpoisoned
 * before they are used again. */
static void swap_context(ucontext_t *save, const ucontext_t *to)
{
#if WITH_ADDRESS_SANITIZER
    static int (*swap)(ucontext_t *, const ucontext_t *);

    if (swap == NULL) {
        *(void **)&swap = dlsym(RTLD_NEXT, "swapcontext");
        WAL__ASSERT(swap != NULL);
    }
    (void)swap(save, to);
#else
    (void)swapcontext(save, to);
#endif
}

static const void *main_stack;
static size_t main_stack_size;

static void coroutine_main(void)
{
    struct sched_process *process = starting;

    fiber_switch_finish(NULL, &main_stack, &main_stack_size);
    if (process->sched->options.begins != NULL) {
        process->sched->options.begins(process->sched->options.seed);
    }
    process->body(process);
    process->runs = false;
    sched__exit(process->sched);
}

static void make_coroutine(struct sched_process *process,
                           void (*body)(struct sched_process *process))
{
    uint32_t slot = process->slot;

    if (stacks[slot] == NULL) {
        stacks[slot] = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        WAL__ASSERT(stacks[slot] != MAP_FAILED);
    }
#if WITH_ADDRESS_SANITIZER
    ASAN_UNPOISON_MEMORY_REGION(stacks[slot], STACK_SIZE);
#endif
    process->body = body;
    process->runs = true;
    WAL__ASSERT(getcontext(&process->context) == 0);
    process->context.uc_stack.ss_sp = stacks[slot];
    process->context.uc_stack.ss_size = STACK_SIZE;
    process->context.uc_link = NULL;
    makecontext(&process->context, coroutine_main, 0);
}

void sched__yield(struct sched_process *process)
{
    struct sched *sched = process->sched;
    void *saved = NULL;

    sched->current = NULL;
    fiber_switch_start(main_stack, main_stack_size, &saved);
    swap_context(&process->context, &sched->context);
    fiber_switch_finish(saved, &main_stack, &main_stack_size);
}

_Noreturn void sched__exit(struct sched *sched)
{
    sched->current = NULL;
    fiber_switch_start(main_stack, main_stack_size, NULL);
    (void)setcontext(&sched->context);
    abort();
}

static void resume(struct sched_process *process)
{
    struct sched *sched = process->sched;
    void *saved = NULL;

    sched->current = process;
    process->waits = false;
    starting = process;
    sched->counts->outcomes[SCHED_SWITCHES]++;
    fiber_switch_start(stacks[process->slot], STACK_SIZE, &saved);
    swap_context(&sched->context, &process->context);
    fiber_switch_finish(saved, NULL, NULL);
}

/* --------------------------------------------------------- processes --- */

void sched__start(struct sched_process *process)
{
    struct sched *sched = process->sched;
    uint32_t kills = process->kills;

    process->process = sim_process_create(sched->disk);
    process->base = sim_process_io(process->process);
    process->id = process->base->process_id(process->base->ctx);
    sim_process_on_death(process->process, sched__on_death, process);
    arena_heap_init(&process->arena);
    sched__io_init(process);
    process->waits = false;
    process->stopped = false;
    process->dies = false;
    process->continued_ns = 0;
    process->activity_bits = 0;
    process->begun = false;
    process->unlocks = false;
    process->owner_unpublished = false;
    process->lock_file = NULL;
    process->page = NULL;
    process->blocked_byte = 0;
    process->failed = false;
    process->failed_space = false;
    process->failed_unlock = false;
    process->sticky_until = 0;
    process->kills = kills;
    process->updates = 0;
    process->store = NULL;
    memset(process->sessions, 0, sizeof(process->sessions));
    process->op = SCHED_NONE;
    process->poisoned = false;
    process->probed = false;
    process->prealloc_requested = false;
}

/* The process is gone, with all that it had. */
void sched__remove_process(struct sched_process *process)
{
    struct sched *sched = process->sched;

    if (process->process == NULL) {
        return;
    }
    if (process->op != SCHED_NONE) {
        sched->ledger.batches[process->op].end = sched->steps;
        process->again = process->op;
        process->op = SCHED_NONE;
    }
    sched__unlock_all(process);
    sim_process_destroy(process->process);
    arena_heap_deinit(&process->arena);
    sched__free_texts(process);
    process->process = NULL;
    process->runs = false;
    process->stopped = false;
    process->waits = false;
}

/* ------------------------------------------------------ who goes on --- */

static bool is_ready(struct sched *sched, struct sched_process *process, uint64_t now)
{
    if (!process->runs || process->stopped) {
        return false;
    }
    return !process->waits || process->woken || now >= process->due_ns ||
           __atomic_load_n(process->word, __ATOMIC_SEQ_CST) != process->expected ||
           sched__random(&sched->random, SPURIOUS_WAKE_ODDS) == 0;
}

static void change_priorities(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->change_count; i++) {
        if (sched->changes[i] == sched->steps && sched->current != NULL) {
            sched->current->priority = --sched->lowest;
        }
    }
}

/* Null when no process can run now. */
struct sched_process *sched__pick_next(struct sched *sched)
{
    struct sched_process *ready[SCHED_PROCESSES];
    struct sched_process *best = NULL;
    uint64_t now = sched__now(sched);
    uint32_t count = 0;

    for (uint32_t i = 0; i < sched->options.processes; i++) {
        struct sched_process *process = &sched->processes[i];

        if (is_ready(sched, process, now)) {
            ready[count] = process;
            count++;
            if (best == NULL || process->priority > best->priority) {
                best = process;
            }
        }
    }
    change_priorities(sched);
    if (sched->options.few_switches || count == 0) {
        return best;
    }
    if (sched->current != NULL && sched->current->runs && !sched->current->waits &&
        !sched->current->stopped && sched__random(&sched->random, sched->switch_odds) != 0) {
        return sched->current;
    }
    return ready[sched__random(&sched->random, count)];
}

/* No process can run: advances the clock to the next deadline. False: there is none. */
static bool advance_clock(struct sched *sched)
{
    uint64_t now = sched__now(sched);
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < sched->options.processes; i++) {
        const struct sched_process *process = &sched->processes[i];
        uint64_t due = UINT64_MAX;

        if (process->runs && process->stopped) {
            due = process->stopped_until_ns;
        } else if (process->runs && process->waits) {
            due = process->due_ns;
        }
        first = due < first ? due : first;
    }
    if (first == UINT64_MAX) {
        return false;
    }
    if (first > now) {
        sim_disk_advance(sched->disk, first - now);
    }
    return true;
}

static void resume_due(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        struct sched_process *process = &sched->processes[i];

        if (process->stopped && sched__now(sched) >= process->stopped_until_ns) {
            sched__resume_stopped(process);
        }
    }
}

static bool is_over(const struct sched *sched)
{
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        if (sched->processes[i].runs) {
            return false;
        }
    }
    return true;
}

/* Restarts killed processes. */
static void restart_killed(struct sched *sched, void (*body)(struct sched_process *process))
{
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        struct sched_process *process = &sched->processes[i];

        if (process->process != NULL && sim_process_is_dead(process->process)) {
            sched__remove_process(process);
        }
        if (process->process == NULL) {
            sched__start(process);
            make_coroutine(process, body);
        }
    }
}

/* Runs this in every process until all have come to its end. */
static bool sched__run_all(struct sched *sched, void (*body)(struct sched_process *process))
{
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        make_coroutine(&sched->processes[i], body);
    }
    while (!sched->failed && !is_over(sched)) {
        struct sched_process *next;

        if (sched->due != NULL) {
            sched__apply_fault(sched);
        }
        resume_due(sched);
        restart_killed(sched, body);
        next = sched->next;
        sched->next = NULL;
        if (next == NULL || !next->runs || next->stopped) {
            next = sched__pick_next(sched);
        }
        if (next != NULL) {
            resume(next);
        } else if (!advance_clock(sched)) {
            sched__fail(sched, "deadlock");
        }
    }
    return !sched->failed;
}

/* ---------------------------------------------------------- the course --- */

static void begin(struct sched *sched, const struct sched_options *options,
                  struct sched_counts *counts)
{
    static const uint64_t odds[] = {2, 4, 10, 30, 100};
    uint64_t seed = options->seed;

    memset(sched, 0, offsetof(struct sched, ledger));
    memset(&sched->locks, 0, sizeof(*sched) - offsetof(struct sched, locks));
    sched->options = *options;
    sched->counts = counts;
    sched->random = sched__random(&seed, UINT64_MAX);
    sched->fault_random = sched__random(&seed, UINT64_MAX);
    sched->switch_odds = odds[sched__random(&sched->random, 5)];
    sched->lowest = 1000;
    for (uint32_t i = 0; i < SCHED_PROCESSES; i++) {
        struct sched_process *process = &sched->processes[i];

        process->sched = sched;
        process->slot = i;
        process->process = NULL;
        process->runs = false;
        process->kills = 0;
        process->again = SCHED_NONE;
        process->knows_version = false;
        memset(process->has_tail_seen, 0, sizeof(process->has_tail_seen));
        process->may_read_only = false;
        process->rng_state = sched__random(&seed, UINT64_MAX);
        process->read_random = process->rng_state ^ UINT64_C(0x5265616465727321);
        process->steps_left = 3 + (uint32_t)sched__random(&process->rng_state, 5);
        process->priority = 1000 + (uint32_t)sched__random(&sched->random, 1000) * 4 + i;
    }
    sched->change_count = 1 + (uint32_t)sched__random(&sched->random, 4);
    for (uint32_t i = 0; i < sched->change_count; i++) {
        uint64_t reach = UINT64_C(40) << sched__random(&sched->random, 7);

        sched->changes[i] = sched__random(&sched->random, reach);
    }
    sched->moves_main = sched__random(&sched->random, 4) == 0;
    sched__load_image(sched, sched__random(&seed, UINT64_MAX));
    sched->watch = sim_process_create(sched->disk);
}

static void end(struct sched *sched)
{
    for (uint32_t i = 0; i < SCHED_PROCESSES; i++) {
        sched__remove_process(&sched->processes[i]);
    }
    sim_disk_destroy(sched->disk);
    sched->disk = NULL;
}

/* Everybody comes to an end; poison, if there is any, is got rid of. */
static bool quiesce(struct sched *sched)
{
    bool all = true;

    sched->event_count = 0;
    sched->due = NULL;
    sched->full_until = 0;
    sim_disk_set_limit(sched->disk, 0);
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        sim_process_clear_faults(sched->processes[i].process);
    }
    if (!sched__run_all(sched, sched__quiesce)) {
        return false;
    }
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        all = all && sched->processes[i].probed;
    }
    if (all) {
        return true;
    }
    if (!sched__run_all(sched, sched__close_all) || !sched__run_all(sched, sched__quiesce)) {
        return false;
    }
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        if (!sched->processes[i].probed) {
            sched__fail(sched, "process %u cannot append though all had closed", i);
        }
    }
    return !sched->failed;
}

static void sched__verify_end(struct sched *sched);

bool sched_run(const struct sched_options *options, struct sched_counts *counts)
{
    static struct sched sched;

    begin(&sched, options, counts);
    for (uint32_t i = 0; i < options->processes; i++) {
        sched__start(&sched.processes[i]);
    }
    sched__plan_faults(&sched);
    if (sched__run_all(&sched, sched__script) && quiesce(&sched)) {
        sched__verify_end(&sched);
    }
    end(&sched);
    counts->outcomes[SCHED_SCHEDULES]++;
    counts->outcomes[SCHED_STEPS] += sched.steps;
    return !sched.failed;
}

void sched_finish(void)
{
    for (uint32_t i = 0; i < SCHED_PROCESSES; i++) {
        if (stacks[i] != NULL) {
            (void)munmap(stacks[i], STACK_SIZE);
        }
        stacks[i] = NULL;
    }
    sched__check_free();
    sched__images_free();
}

/* --- status --------------------------------------------------------------- */

/*
 * Which answers a call may give: a failure must have a cause that the schedule knows of, and a lock
 * that is refused must name who was stopped.
 */

enum {
    POLL_SLACK_NS = 22000000, /* four looks at a lock, and some calls */
    RUNNING_HOLDER = 20       /* times the timeout is one that runs waited for */
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

/* A process that has been stopped since before the last look is named, unless it was about to say
 * that it holds the lock, or had just said that it does not. */
static void check_holder(struct sched_process *process, const struct wal_error *error,
                         const char *what)
{
    struct sched *sched = process->sched;
    const struct sched_process *holder = sched__exclusive_holder(sched, process->blocked_byte);

    if (holder == NULL || !holder->stopped || holder->owner_unpublished ||
        holder->stopped_since_ns > process->last_polled_ns) {
        return;
    }
    if ((uint32_t)error->holder != holder->id) {
        sched__fail(sched, "%s: process %u holds the lock %llu, not %d: %s", what, holder->id,
                    (unsigned long long)process->blocked_byte, error->holder, error->text);
    }
    sched->counts->outcomes[SCHED_HOLDER_REPORTED]++;
}

static bool is_open_lock(uint64_t byte)
{
    return byte == WAL__LOCK_PARTICIPANT || byte == WAL__LOCK_OPEN;
}

/* Whether the page names this process as the one that holds the lock. */
static bool is_owner_published(const struct sched_process *holder, uint64_t byte)
{
    const struct wal__control_page *page = holder->page;
    const struct wal__lock_owner *name;

    if (page == NULL) {
        return false;
    }
    name = byte == WAL__LOCK_OPEN ? &page->open_lock_owner : &page->exclusive_owner;
    return atomic_load(&name->process) == holder->id;
}

/* Whether it names a stopped process that has the store alone: the process that holds the open lock
 * waits for it. */
static bool is_exclusive_stopped(struct sched *sched, const struct wal_error *error)
{
    const struct sched_process *alone = sched__exclusive_holder(sched, WAL__LOCK_PARTICIPANT);

    return alone != NULL && alone->stopped && (uint32_t)error->holder == alone->id;
}

/* A process that opens the store waits longer than the lock timeout for a running holder, and only
 * the timeout for a stopped one, which it reports. */
static void check_open_refused(struct sched_process *process, const struct wal_error *error,
                               const char *what)
{
    struct sched *sched = process->sched;
    uint64_t limit = (uint64_t)process->timeout_ms * 1000000;
    uint64_t since = process->open_started_ns;
    const struct sched_process *holder = sched__exclusive_holder(sched, process->blocked_byte);

    if (holder == NULL || !holder->stopped || process->failed ||
        holder->stopped_since_ns > process->last_polled_ns ||
        !is_owner_published(holder, process->blocked_byte)) {
        return;
    }
    since = holder->stopped_since_ns > since ? holder->stopped_since_ns : since;
    if ((uint32_t)error->holder != holder->id && !is_exclusive_stopped(sched, error)) {
        sched__fail(sched, "%s: process %u holds the lock %llu, not %d: %s", what, holder->id,
                    (unsigned long long)process->blocked_byte, error->holder, error->text);
    }
    if (process->continued_ns < since && sched__now(sched) > since + limit + POLL_SLACK_NS) {
        sched__fail(sched, "%s waits %llu us for who is stopped, not %u ms", what,
                    (unsigned long long)(sched__now(sched) - since) / 1000, process->timeout_ms);
    }
    sched->counts->outcomes[SCHED_OPEN_HOLDER_REPORTED]++;
}

static void check_locked(struct sched_process *process, const struct wal_error *error,
                         const char *what)
{
    struct sched *sched = process->sched;
    uint64_t waited = sched__now(sched) - process->blocked_ns;
    uint64_t limit = (uint64_t)process->timeout_ms * 1000000;
    uint64_t most;
    uint64_t since = process->blocked_ns;
    const struct sched_process *holder;

    if (process->blocked_byte == 0) {
        sched__fail(sched, "%s answers WAL_ELOCKED, and no lock was held: %s", what, error->text);
    }
    if (sched->may_lock) {
        return; /* who could not let go of it holds it, or its copy */
    }
    if (is_open_lock(process->blocked_byte)) {
        since = process->open_started_ns;
    }
    if (!was_stopped(sched, since)) {
        sched__fail(sched, "%s returns WAL_ELOCKED, and none is stopped: %s", what, error->text);
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
    /* One that is stopped before it has published its name may be about to. */
    if (holder != NULL && holder->stopped && (uint32_t)error->holder != holder->id) {
        most += (uint64_t)process->timeout_ms * 1000000;
    }
    /* wal_close may wait twice: to heal what it syncs, which another process does meanwhile, and to
     * write the commit mark. */
    most *= strcmp(what, "closing") == 0 ? 2 : 1;
    if (process->continued_ns < process->blocked_ns &&
        (waited > most + POLL_SLACK_NS || waited + POLL_SLACK_NS < limit)) {
        sched__fail(sched, "%s answers WAL_ELOCKED after %llu us, not %u ms", what,
                    (unsigned long long)waited / 1000, process->timeout_ms);
    }
    check_holder(process, error, what);
}

/* Whether something that was done explains it. */
static bool is_explained(const struct sched_process *process, enum wal_status status)
{
    const struct sched *sched = process->sched;
    bool space = process->failed_space || sched->was_full;

    switch ((int)status) {
    case WAL_EPOISONED:
        /* A call of this process failed, so that healing did; or healing had to wait for too long,
         * for a process that was stopped or could not let go of a lock. */
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
        sched__fail(sched, "%s answers %d: %s (%s at %llu)", what, status, error->text, error->file,
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

/* --- end ------------------------------------------------------------------ */

/*
 * The end of a schedule: all close or are killed, the power is cut or not, and what is found then
 * is compared with the ledger, again after another recovery, and after going on.
 */

enum end_kind { END_CLOSED, END_KILLED, END_CUT, ENDINGS };

static void end_processes(struct sched *sched, enum end_kind end_kind)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = true};

    if (end_kind == END_CLOSED && !sched__run_all(sched, sched__close_all)) {
        return;
    }
    if (end_kind == END_CUT && !sched->names_unsynced) {
        sim_disk_power_loss(sched->disk, &loss, sched__random(&sched->fault_random, UINT64_MAX));
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

/* All processes end, and what remains is compared with the ledger. */
static void sched__verify_end(struct sched *sched)
{
    uint64_t found;
    bool again;

    end_processes(sched, (enum end_kind)sched__random(&sched->fault_random, ENDINGS));
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

/* --- seed report ---------------------------------------------------------- */

/*
 * Names the schedule that runs when the program ends by a signal, a failed assertion's too.
 *
 * Invariant: the text is whole at any time a handler may write it: it is formatted elsewhere, and
 * then pointed to. Handlers run on their own stack, since the coroutine's may be exhausted.
 */

#if WITH_ADDRESS_SANITIZER
#endif

enum { TEXT_SIZE = 256, SEED_REPORT_STACK_SIZE = 64 * 1024 };

static char texts[2][TEXT_SIZE];
static const char *_Atomic present; /* null: no schedule runs */

/* Only functions that are safe in a signal handler. */
static void report(void)
{
    const char *text = atomic_exchange(&present, NULL);

    if (text != NULL) {
        (void)!write(STDERR_FILENO, text, strlen(text));
    }
}

static void on_signal(int signal)
{
    report();
    (void)raise(signal); /* now with its default effect */
}

static void catch_signal(int signal)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = (int)(SA_RESETHAND | SA_ONSTACK | SA_NODEFER);
    WAL__ASSERT(sigaction(signal, &action, NULL) == 0);
}

void sched__seed_report_install(void)
{
    static uint8_t stack[SEED_REPORT_STACK_SIZE];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};

    WAL__ASSERT(sigaltstack(&own, NULL) == 0);
    catch_signal(SIGABRT);
    catch_signal(SIGTERM); /* of who waits no longer for it */
    catch_signal(SIGINT);
#if WITH_ADDRESS_SANITIZER
    __sanitizer_set_death_callback(report);
#else
    catch_signal(SIGSEGV);
    catch_signal(SIGBUS);
    catch_signal(SIGFPE);
    catch_signal(SIGILL);
#endif
}

void sched__seed_report_begin(const char *name, uint64_t seed, uint64_t number)
{
    char *text = texts[number % 2];

    (void)snprintf(text, TEXT_SIZE,
                   "%s ended in schedule %llu; AGENTWAL_SEED=%llu %s runs it "
                   "again\n",
                   name, (unsigned long long)number, (unsigned long long)seed, name);
    atomic_store(&present, text);
}

void sched__seed_report_end(void)
{
    atomic_store(&present, NULL);
}
