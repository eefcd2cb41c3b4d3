/*
 * rounds.c - what the processes of one round do (model.h).
 */
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/model.h"

enum {
    FRESH = MODEL_WORKERS, /* the rank of the worker that opens anew */
    SYSTEM_CALLS = 16,     /* among which a call is killed */
    COMPACT_CALLS = 400    /* likewise, of a compaction or a backup */
};

/* Whether a process of the store, which others use too, can do it. */
static bool is_shared(void (*run)(struct differential *run))
{
    static void (*const alone[])(struct differential *
                                 run) = {differential_commit_mark,   differential_reopen,
                                         differential_crash,         differential_lose_power,
                                         differential_crash_writing, differential_lose_unsynced,
                                         differential_compact_store, differential_fail_compaction,
                                         differential_lose_indexes,  differential_read_only,
                                         differential_check};

    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
        if (run == alone[i]) {
            return false;
        }
    }
    return true;
}

static bool only_reads(void (*run)(struct differential *run))
{
    static void (*const reading[])(struct differential * run) = {
        differential_open_session, differential_latest,    differential_get_head,
        differential_iterate,      differential_get,       differential_list,
        differential_get_doc,      differential_scan_docs, differential_step_iter,
        differential_step_docs};

    for (size_t i = 0; i < sizeof(reading) / sizeof(reading[0]); i++) {
        if (run == reading[i]) {
            return true;
        }
    }
    return false;
}

/* An operation by the weights of the differential test. */
static uint32_t choose_operation(struct model *model, bool reads)
{
    uint32_t total = 0;
    uint32_t roll;

    for (uint32_t i = 0; i < differential_operation_count; i++) {
        const struct differential_operation *one = &differential_operations[i];

        total += reads ? (only_reads(one->run) ? one->weight : 0)
                       : (is_shared(one->run) ? one->weight : 0);
    }
    roll = model_random(model, total);
    for (uint32_t i = 0; i < differential_operation_count; i++) {
        const struct differential_operation *one = &differential_operations[i];
        uint32_t weight = reads ? (only_reads(one->run) ? one->weight : 0)
                                : (is_shared(one->run) ? one->weight : 0);

        if (roll < weight) {
            return i;
        }
        roll -= weight;
    }
    return 0;
}

/* ------------------------------------------------------------ processes --- */

static void start(struct model *model, uint32_t worker, uint32_t flags)
{
    model->workers[worker].root = model->root;
    model_start(model, worker, flags);
}

static uint32_t flags_of(struct model *model, uint32_t worker)
{
    uint32_t flags = worker % 2 == 1 ? WAL_OPEN_PREAD : 0u;

    (void)model;
    return flags | (worker >= MODEL_WRITERS ? WAL_OPEN_READ_ONLY : 0u);
}

static void arm(struct model *model, uint32_t worker, uint32_t calls)
{
    atomic_store(&model->workers[worker].kill_at, 1 + (long long)model_random(model, calls));
}

static uint32_t any_writer(struct model *model)
{
    return model_random(model, MODEL_WRITERS);
}

/* A process opens the store, or a copy of it, compares everything, and ends. */
static void check_anew(struct model *model, const char *root, uint32_t flags, bool is_whole)
{
    if (model->has_failed) {
        return;
    }
    model->workers[FRESH].root = root;
    model_start(model, FRESH, flags);
    if (model->workers[FRESH].process != 0 && model_do(model, FRESH, MODEL_CHECK, is_whole) &&
        model_do(model, FRESH, MODEL_FIND, 1)) {
        (void)model_do(model, FRESH, MODEL_END, 0);
    }
    model_kill(model, FRESH);
}

/* The program that checks stores finds nothing. What it says of one that is damaged is kept next to
 * it. */
static void check_sound(struct model *model, const char *root)
{
    char program[MODEL_PATH];
    char log[MODEL_PATH + 16];
    const char *bin = getenv("WALBIN");
    int status = 0;
    pid_t process;

    if (model->has_failed) {
        return;
    }
    (void)snprintf(program, sizeof(program), "%s/walcheck", bin != NULL ? bin : "bin");
    (void)snprintf(log, sizeof(log), "%s.check", root);
    process = fork();
    WAL__ASSERT(process >= 0);
    if (process == 0) {
        if (freopen(log, "w", stdout) != NULL && dup2(1, 2) == 2) {
            (void)execl(program, program, "--jobs", "1", root, (char *)NULL);
        }
        _exit(127);
    }
    (void)waitpid(process, &status, 0);
    if (status != 0) {
        model_fail(model, "walcheck of %s ends with status %#x: see %s", root, (unsigned)status,
                   log);
    } else {
        (void)unlink(log);
    }
}

/* -------------------------------------------------------------- at once --- */

/* The worker that was killed is replaced; it finds what is there. */
static void replace(struct model *model, uint32_t worker)
{
    if (!model->has_failed) {
        start(model, worker, flags_of(model, worker));
    }
}

/* The reference repeats the calls. Of one that was under way when its process was killed, the next
 * one that writes decides whether it is there. */
static void settle(struct model *model, uint32_t worker, bool lives)
{
    if (!model->has_failed && !lives) {
        if (model_random(model, 2) == 0) {
            (void)model_do(model, (worker + 1) % MODEL_WRITERS, MODEL_MARK, 0);
        } else {
            model->is_unsettled = true;
            replace(model, worker);
            if (!model->has_failed) {
                (void)model_do(model, worker, MODEL_MARK, 0);
            }
            model->is_unsettled = false;
            lives = true;
        }
    }
    if (!model->has_failed) {
        model_repeat(model);
    }
    if (!lives) {
        replace(model, worker);
    }
}

/* A call that its process may not survive. */
static void call_and_kill(struct model *model)
{
    uint32_t worker = any_writer(model);
    uint32_t other = model_random(model, MODEL_WORKERS);
    bool lives;

    (void)model_do(model, worker, MODEL_MAKE, 0);
    arm(model, worker, SYSTEM_CALLS);
    lives = model_do(model, worker, MODEL_CALL, 0);
    settle(model, worker, lives);
    if (!model->has_failed) {
        (void)model_do(model, other, MODEL_LEARN, 0);
    }
}

static void choose_compaction(struct model *model)
{
    struct differential chooser = {.rng_state = model->rng_state};

    model->compaction = differential_compaction(&chooser);
    model->compaction.rate = UINT64_MAX;
    model->rng_state = chooser.rng_state;
}

static void note_drops(struct model *model)
{
    model->may_have_dropped |= (model->compaction.flags & WAL_STORE_COMPACT_KEEP_DELTAS) == 0;
}

/* Writers call at once, during a compaction, a search or a read; one may be killed. */
static void call_at_once(struct model *model)
{
    uint32_t compacting = model_random(model, 2) == 0 ? any_writer(model) : MODEL_WORKERS;
    /* A set of writers. */
    uint32_t finding = model_random(model, 2) == 0 ? model_random(model, 1u << MODEL_WRITERS) : 0;
    uint32_t killed = model_random(model, 3 * MODEL_WRITERS);

    for (uint32_t worker = 0; worker < MODEL_WRITERS; worker++) {
        if (worker != compacting && (finding & 1u << worker) == 0) {
            (void)model_do(model, worker, MODEL_MAKE, 1);
        }
    }
    if (compacting < MODEL_WRITERS) {
        choose_compaction(model);
        model->compaction.flags &= ~(uint32_t)WAL_STORE_COMPACT_EMPTY_TRASH;
        model->compactions++;
        note_drops(model);
    }
    if (killed < MODEL_WRITERS) {
        arm(model, killed, killed == compacting ? COMPACT_CALLS : SYSTEM_CALLS * 4);
    }
    if (model->has_failed) {
        return;
    }
    atomic_store(&model->is_concurrent, true);
    for (uint32_t worker = 0; worker < MODEL_WORKERS; worker++) {
        enum model_task task = worker == compacting            ? MODEL_COMPACT_SHARED
                               : (finding & 1u << worker) != 0 ? MODEL_FIND
                               : worker < MODEL_WRITERS        ? MODEL_CALL
                                                               : MODEL_LOOK;

        model_send(model, worker, task, 0);
    }
    for (uint32_t worker = 0; worker < MODEL_WORKERS; worker++) {
        (void)model_await(model, worker);
    }
    atomic_store(&model->is_concurrent, false);
    model->tally.concurrent++;
    for (uint32_t worker = 0; worker < MODEL_WRITERS; worker++) {
        model->tally.operations += model->workers[worker].count;
    }
    if (killed < MODEL_WRITERS) {
        settle(model, killed, model->workers[killed].process != 0);
    } else if (!model->has_failed) {
        model_repeat(model);
    }
    if (!model->has_failed) {
        (void)model_do(model, any_writer(model), MODEL_LEARN, 0);
    }
}

/* A search that its process may not survive; then the next one has to complete the index. */
static void find_and_kill(struct model *model)
{
    uint32_t worker = model_random(model, MODEL_WORKERS);

    if (model_random(model, 2) == 0) {
        arm(model, worker, SYSTEM_CALLS);
    }
    if (!model_do(model, worker, MODEL_FIND, 0)) {
        replace(model, worker);
        if (!model->has_failed) {
            (void)model_do(model, model_random(model, MODEL_WORKERS), MODEL_FIND, 1);
        }
    }
}

/* ---------------------------------------------------------- maintenance --- */

static void back_up(struct model *model, bool kills, bool is_erased)
{
    uint32_t worker = any_writer(model);

    if (kills) {
        arm(model, worker, COMPACT_CALLS / 4);
    }
    if (!model_do(model, worker, MODEL_BACKUP, is_erased)) {
        replace(model, worker);
        return;
    }
    check_anew(model, model->copy, WAL_OPEN_READ_ONLY, is_erased);
    check_sound(model, model->copy);
}

static void compact(struct model *model, bool erases)
{
    uint32_t worker = any_writer(model);

    choose_compaction(model);
    if (erases) {
        model->compaction.flags = WAL_STORE_COMPACT_ERASE;
        model->compaction.flags |= model_random(model, 4) == 0 ? WAL_STORE_COMPACT_EMPTY_TRASH : 0u;
        model->compaction.max_bytes = 0;
    }
    model->compactions++;
    (void)model_do(model, any_writer(model), MODEL_FIND, 0);
    if (!model->has_failed) {
        (void)model_do(model, worker, MODEL_COMPACT, 0);
    }
    if (!model->has_failed) {
        (void)model_do(model, model_random(model, MODEL_WORKERS), MODEL_FIND, 1);
    }
    if (erases && !model->has_failed) {
        back_up(model, false, true);
    }
}

static void compact_and_kill(struct model *model)
{
    uint32_t worker = any_writer(model);

    choose_compaction(model);
    model->compaction.flags &= ~(uint32_t)WAL_STORE_COMPACT_EMPTY_TRASH;
    model->compactions++;
    note_drops(model);
    arm(model, worker, COMPACT_CALLS);
    if (!model_do(model, worker, MODEL_COMPACT_SHARED, 0)) {
        replace(model, worker);
    }
    if (!model->has_failed) {
        (void)model_do(model, any_writer(model), MODEL_LEARN, 0);
    }
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void transfer(struct model *model)
{
    bool by_bundle = model_random(model, 2) == 0;

    (void)model_do(model, model_random(model, MODEL_WORKERS), MODEL_TRANSFER, by_bundle);
    if (!model->has_failed) {
        check_sound(model, model->other);
    }
    if (!model->has_failed) {
        remove_tree(model->other);
        (void)unlink(model->bundle);
    }
}

/* --------------------------------------------------------------- rounds --- */

static void step(struct model *model)
{
    uint32_t roll = model_random(model, 2000);

    model->tally.operations++;
    if (roll < 1830) {
        uint32_t worker = roll % 4 == 0 ? model_random(model, MODEL_WORKERS) : any_writer(model);
        uint32_t operation = choose_operation(model, worker >= MODEL_WRITERS);

        (void)model_do(model, worker, MODEL_OPERATION, operation);
    } else if (roll < 1860) {
        find_and_kill(model);
    } else if (roll < 1910) {
        call_and_kill(model);
    } else if (roll < 1940) {
        call_at_once(model);
    } else if (roll < 1950) {
        compact(model, false);
    } else if (roll < 1955) {
        compact(model, true);
    } else if (roll < 1962) {
        compact_and_kill(model);
    } else if (roll < 1972) {
        back_up(model, model_random(model, 3) == 0, false);
    } else if (roll < 1978) {
        transfer(model);
    } else if (roll < 1986) {
        (void)model_do(model, model_random(model, MODEL_WORKERS), MODEL_REOPEN, 0);
    } else if (roll < 1992) {
        (void)model_do(model, model_random(model, MODEL_WORKERS), MODEL_CHECK, 0);
    } else {
        (void)model_do(model, any_writer(model), MODEL_SYNC, 0);
    }
}

/* Everything is read by every kind of handle, also after all are closed. */
static void finish(struct model *model)
{
    for (uint32_t worker = 0; worker < MODEL_WORKERS; worker++) {
        if (!model->has_failed) {
            (void)model_do(model, worker, MODEL_CHECK, 0);
        }
        if (!model->has_failed) {
            (void)model_do(model, worker, MODEL_FIND, 1);
        }
    }
    check_anew(model, model->root, WAL_OPEN_READ_ONLY | WAL_OPEN_PREAD, true);
    check_sound(model, model->root);
    if (!model->has_failed) {
        compact(model, true);
    }
    for (uint32_t worker = 0; worker < MODEL_WORKERS; worker++) {
        if (!model->has_failed) {
            (void)model_do(model, worker, MODEL_CHECK, 0);
        }
        if (!model->has_failed) {
            (void)model_do(model, worker, MODEL_FIND, 1);
        }
        if (!model->has_failed) {
            (void)model_do(model, worker, MODEL_END, 0);
        }
        model_kill(model, worker);
    }
    check_anew(model, model->root, WAL_OPEN_READ_ONLY, true);
    check_sound(model, model->root);
    check_anew(model, model->root, 0, true);
}

static void begin(struct model *model, uint64_t seed)
{
    char directory[MODEL_PATH / 2];
    struct model_tally tally = model->tally;

    common_heap_clear_but(model);
    memset(model, 0, sizeof(*model));
    model->tally = tally;
    model->seed = seed;
    model->rng_state = seed;
    model->ref = reference_create();
    WAL__ASSERT(getcwd(directory, sizeof(directory)) != NULL);
    (void)snprintf(model->root, MODEL_PATH, "%s/store-%" PRIu64, directory, seed);
    (void)snprintf(model->copy, MODEL_PATH, "%s/copy-%" PRIu64, directory, seed);
    (void)snprintf(model->other, MODEL_PATH, "%s/other-%" PRIu64, directory, seed);
    (void)snprintf(model->bundle, MODEL_PATH, "%s/bundle-%" PRIu64, directory, seed);
}

static void print_failure(const struct model *model)
{
    uint64_t first = model->last_count > MODEL_LAST ? model->last_count - MODEL_LAST : 0;

    (void)fprintf(stderr, "AGENTWAL_SEED=%" PRIu64 ", step %" PRIu64 ": %s\n", model->seed,
                  model->step, model->failure);
    for (uint64_t i = first; i < model->last_count; i++) {
        (void)fprintf(stderr, "  %s\n", model->last[i % MODEL_LAST]);
    }
}

bool model_run_round(struct model *model, uint64_t seed, uint32_t steps)
{
    begin(model, seed);
    for (uint32_t worker = 0; worker < MODEL_WORKERS; worker++) {
        start(model, worker, flags_of(model, worker));
    }
    while (model->step < steps && !model->has_failed) {
        model->step++;
        step(model);
    }
    if (!model->has_failed) {
        finish(model);
    }
    for (uint32_t worker = 0; worker <= MODEL_WORKERS; worker++) {
        model_kill(model, worker);
    }
    model->tally.rounds++;
    if (model->has_failed) {
        model->tally.failures++;
        print_failure(model);
        return false;
    }
    remove_tree(model->root);
    remove_tree(model->copy);
    return true;
}
