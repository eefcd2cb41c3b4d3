/*
 * test_model.c - rounds of several processes on one store, compared with the reference (model.h).
 *
 * Runs rounds from a fixed seed on; with AGENTWAL_LONG 2,000 rounds of 2,000 operations from a seed
 * of the time, and says now and then up to which seed all are done. AGENTWAL_SEED runs that round
 * alone; AGENTWAL_ROUNDS that many from it on, as when a long run goes on where it was ended;
 * AGENTWAL_STEPS sets their length; AGENTWAL_JOBS how many are run at the same time, by default as
 * many as there are processors. The stores of rounds that fail are kept in AGENTWAL_KEEP.
 */
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/model/model.h"

enum {
    SHORT_SEED = 1,
    SHORT_ROUNDS = 12,
    SHORT_STEPS = 400,
    LONG_ROUNDS = 2000,
    LONG_STEPS = 2000,
    REPORT = 50, /* rounds after which a long run says where it is */
    JOBS = 64    /* at most */
};

/* What the jobs share. */
struct campaign {
    uint64_t seed; /* of the first round */
    uint64_t rounds;
    uint32_t steps;
    uint32_t jobs;
    double begin;
    _Atomic uint64_t next; /* round that no job has taken */
    _Atomic uint64_t done;
    _Atomic uint64_t taken[JOBS]; /* the round of each; rounds: it has none */
    struct model_tally tallies[JOBS];
};

/* A number of the environment, or the fallback. */
static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : fallback;
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void print_tally(const struct model_tally *tally, double seconds)
{
    print_message("%" PRIu64 " rounds, %" PRIu64 " operations, %" PRIu64
                  " rounds with a difference, %.1f s\n",
                  tally->rounds, tally->operations, tally->failures, seconds);
    print_message("%" PRIu64 " kills, %" PRIu64 " times several at once, %" PRIu64
                  " compactions, %" PRIu64 " backups, %" PRIu64 " bundles and merges\n",
                  tally->kills, tally->concurrent,
                  tally->tasks[MODEL_COMPACT] + tally->tasks[MODEL_COMPACT_SHARED],
                  tally->tasks[MODEL_BACKUP], tally->tasks[MODEL_TRANSFER]);
    print_message("%" PRIu64 " times erased: %" PRIu64 " canaries searched for; %" PRIu64
                  " whole comparisons\n",
                  tally->erasures, tally->canaries, tally->counts.checks);
    print_message("%" PRIu64 " searches, %" PRIu64 " hits compared\n",
                  tally->tasks[MODEL_FIND] + tally->tasks[MODEL_LOOK], tally->hits);
}

/* Where a run that is ended now can go on. */
static void print_progress(struct campaign *campaign, uint64_t done)
{
    uint64_t first = atomic_load(&campaign->next);
    uint64_t failures = 0;

    for (uint32_t i = 0; i < campaign->jobs; i++) {
        uint64_t taken = atomic_load(&campaign->taken[i]);

        first = taken < first ? taken : first;
        failures += campaign->tallies[i].failures;
    }
    print_message("%" PRIu64 " rounds, %" PRIu64
                  " with a difference, %.0f s; all before AGENTWAL_SEED=%" PRIu64 " are done\n",
                  done, failures, now() - campaign->begin, campaign->seed + first);
    (void)fflush(stdout);
}

/* What the process of a job does: it takes one round after the other. */
static _Noreturn void run_job(struct campaign *campaign, uint32_t job)
{
    struct model *model;
    uint64_t round;
    uint64_t done;

    common_heap_init((size_t)16 << 30);
    model = common_alloc(1, sizeof(*model));
    for (;;) {
        atomic_store(&campaign->taken[job], atomic_load(&campaign->next));
        round = atomic_fetch_add(&campaign->next, 1);
        if (round >= campaign->rounds) {
            break;
        }
        atomic_store(&campaign->taken[job], round);
        (void)model_run_round(model, campaign->seed + round, campaign->steps);
        campaign->tallies[job] = model->tally;
        done = atomic_fetch_add(&campaign->done, 1) + 1;
        if (done % REPORT == 0) {
            print_progress(campaign, done);
        }
    }
    atomic_store(&campaign->taken[job], campaign->rounds);
    (void)fflush(NULL);
    _exit(0);
}

static pid_t start_job(struct campaign *campaign, uint32_t job)
{
    pid_t parent = getpid();
    pid_t process;

    (void)fflush(NULL);
    process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        run_job(campaign, job);
    }
    return process;
}

/* All members are counts. */
static void add_tally(struct model_tally *sum, const struct model_tally *tally)
{
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)tally;

    _Static_assert(sizeof(*tally) % sizeof(*to) == 0, "counts only");
    for (size_t i = 0; i < sizeof(*tally) / sizeof(*to); i++) {
        to[i] += from[i];
    }
}

static void run_campaign(struct campaign *campaign, struct model_tally *sum)
{
    pid_t processes[JOBS];

    for (uint32_t i = 0; i < campaign->jobs; i++) {
        processes[i] = start_job(campaign, i);
    }
    for (uint32_t i = 0; i < campaign->jobs; i++) {
        int status = 0;

        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        if (status != 0) {
            print_error("The driver of AGENTWAL_SEED=%" PRIu64 " ended with status %#x\n",
                        campaign->seed + atomic_load(&campaign->taken[i]), (unsigned)status);
            sum->failures++;
        }
        add_tally(sum, &campaign->tallies[i]);
    }
}

static uint32_t choose_jobs(uint64_t rounds)
{
    uint64_t most = rounds < JOBS ? rounds : JOBS;
    uint64_t jobs = setting("AGENTWAL_JOBS", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));

    jobs = jobs == 0 ? 1 : jobs;
    return (uint32_t)(jobs < most ? jobs : most);
}

TEST(model__processes_and_reference_agree)
{
    bool is_long = sample_is_whole();
    uint64_t seed = setting("AGENTWAL_SEED", 0);
    const char *keep = getenv("AGENTWAL_KEEP");
    struct model_tally sum = {0};
    struct campaign *campaign =
        mmap(NULL, sizeof(*campaign), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(campaign != MAP_FAILED);
    campaign->rounds = is_long ? LONG_ROUNDS : SHORT_ROUNDS;
    campaign->rounds = setting("AGENTWAL_ROUNDS", seed != 0 ? 1 : campaign->rounds);
    campaign->steps = (uint32_t)setting("AGENTWAL_STEPS", is_long ? LONG_STEPS : SHORT_STEPS);
    campaign->seed = seed != 0 ? seed : is_long ? (uint64_t)time(NULL) * 10000 : SHORT_SEED;
    campaign->jobs = choose_jobs(campaign->rounds);
    campaign->begin = now();
    if (keep != NULL && *keep != '\0') {
        assert_int_equal(chdir(keep), 0);
    }
    print_message("AGENTWAL_SEED=%" PRIu64 " AGENTWAL_ROUNDS=%" PRIu64 " AGENTWAL_STEPS=%u\n",
                  campaign->seed, campaign->rounds, campaign->steps);
    run_campaign(campaign, &sum);
    print_tally(&sum, now() - campaign->begin);
    assert_int_equal(sum.rounds, campaign->rounds);
    assert_int_equal(sum.failures, 0);
    assert_int_equal(munmap(campaign, sizeof(*campaign)), 0);
}
