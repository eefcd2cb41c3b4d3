/*
 * sched.c - coroutines, who goes on, and the course of a schedule (sched.h).
 *
 * Invariant: one coroutine runs, or none; a coroutine that is given up is never
 * gone back to, and what it held is dropped with its process.
 */
#include "tests/sim/sched/internal.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "format/bytes/assert.h"
#include "tests/lib/rng.h"
#include "tests/lib/sanitizers.h"

#if WITH_ADDRESS_SANITIZER
#include <dlfcn.h>
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
    size_t from =
        size < sizeof(record->text) ? 0 : size - sizeof(record->text) + 1;

    sched->traced++;
    record->step = sched->steps;
    record->slot = process->slot;
    record->call = process->call;
    record->status = status;
    record->offset = process->offset;
    (void)snprintf(record->text, sizeof(record->text), "%s",
                   text == NULL ? "" : text + from);
    if (sched->options.prints_trace) {
        printf("%6llu %10.3f ms  %u %-14s %10llu %4d %s\n",
               (unsigned long long)record->step,
               (double)sched__now(sched) / 1e6, record->slot,
               record->call == SIM_ANY ? "" : sim_call_name(record->call),
               (unsigned long long)record->offset, status, record->text);
    }
}

static void print_trace(const struct sched *sched)
{
    uint64_t from =
        sched->traced > SCHED_TRACE ? sched->traced - SCHED_TRACE : 0;

    for (uint64_t i = from; i < sched->traced && !sched->options.prints_trace;
         i++) {
        const struct sched_record *record = &sched->trace[i % SCHED_TRACE];

        printf("%6llu %u %-14s %10llu %4d %s\n",
               (unsigned long long)record->step, record->slot,
               record->call == SIM_ANY ? "" : sim_call_name(record->call),
               (unsigned long long)record->offset, record->status,
               record->text);
    }
}

void sched__fail(struct sched *sched, const char *format, ...)
{
    va_list args;

    if (sched->failed) {
        return;
    }
    print_trace(sched);
    printf("AGENTWAL_SEED=%llu, %u processes%s, step %llu",
           (unsigned long long)sched->options.seed, sched->options.processes,
           sched->options.few_switches ? ", few switches" : "",
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

/* The sanitizer replaces swapcontext() by one that maps the shadow of both
 * stacks anew: most of the time of a schedule. It need not here, because the
 * stacks are announced to it, and unpoisoned before they are used again. */
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

static bool is_ready(struct sched *sched, struct sched_process *process,
                     uint64_t now)
{
    if (!process->runs || process->stopped) {
        return false;
    }
    return !process->waits || process->woken || now >= process->due_ns ||
           __atomic_load_n(process->word, __ATOMIC_SEQ_CST) !=
               process->expected ||
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
    if (sched->current != NULL && sched->current->runs &&
        !sched->current->waits && !sched->current->stopped &&
        sched__random(&sched->random, sched->switch_odds) != 0) {
        return sched->current;
    }
    return ready[sched__random(&sched->random, count)];
}

/* No process can run: advances the clock to the next deadline. False: there is
 * none. */
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

        if (process->stopped &&
            sched__now(sched) >= process->stopped_until_ns) {
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
static void restart_killed(struct sched *sched,
                           void (*body)(struct sched_process *process))
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

bool sched__run_all(struct sched *sched,
                    void (*body)(struct sched_process *process))
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
        process->read_random =
            process->rng_state ^ UINT64_C(0x5265616465727321);
        process->steps_left =
            3 + (uint32_t)sched__random(&process->rng_state, 5);
        process->priority =
            1000 + (uint32_t)sched__random(&sched->random, 1000) * 4 + i;
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
    if (!sched__run_all(sched, sched__close_all) ||
        !sched__run_all(sched, sched__quiesce)) {
        return false;
    }
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        if (!sched->processes[i].probed) {
            sched__fail(sched, "process %u cannot append though all had closed",
                        i);
        }
    }
    return !sched->failed;
}

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
