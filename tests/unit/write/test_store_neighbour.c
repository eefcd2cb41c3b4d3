/*
 * test_store_neighbour.c - tests of a processor that the engine shares with a busy process, the
 * neighbour (SPEC.md 4.3): callers that wait leave it to others.
 *
 * Engine and neighbour are bound to one processor. A fair scheduler gives each runnable thread the
 * same part, and so most of it to many threads. Therefore the threads of the engine have a priority
 * at which all of them together weigh as much as the neighbour, and each of the two is a session,
 * which weighs as much as another one where sched_autogroup_enabled is set. Then a half is due to
 * the neighbour whenever all threads run, and more while they wait.
 *
 * A caller that spins is due its part too. It shows in the processor time of an append: one of many
 * threads shares its sync with others, and must need less than that of a single thread, which waits
 * for nobody else. Only processor times of the two processes are compared: what else runs on the
 * machine delays both.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"

enum { THREADS_MAX = 64, WARM_MS = 500, MEASURE_MS = 3000 };

static const double SHARE_MIN = 0.45; /* nine tenths of a half */
/* The processor time of an append of many threads, which share a sync, to that of one. */
static const double COST_MAX = 0.5;

/* nice() of a thread that weighs a 64th or a 4th of one of nice 0, nearly: the kernel's weights are
 * 15, 272 and 1024. */
enum { NICE_64 = 19, NICE_4 = 6 };

struct load {
    const char *name; /* also of its store */
    uint32_t threads;
    uint32_t durability;
    int nice;
    uint32_t sync_us; /* of a simulated device; 0: of the device */
    bool is_alone;    /* there is no neighbour */
};

static const struct load durable_many = {
    .name = "64 threads, durable", .threads = 64, .durability = WAL_DURABLE, .nice = NICE_64};
static const struct load durable_one = {
    .name = "1 thread, durable", .threads = 1, .durability = WAL_DURABLE};
static const struct load written_many = {
    .name = "4 threads, written", .threads = 4, .durability = WAL_WRITTEN, .nice = NICE_4};
static const struct load written_one = {
    .name = "1 thread, written", .threads = 1, .durability = WAL_WRITTEN};
/* An append takes about 10 us, and so all eight a twelfth of a sync; under load a third of it. A
 * thread that spins takes a whole one. */
static const struct load short_syncs = {.name = "8 threads, syncs of 1000 us",
                                        .threads = 8,
                                        .durability = WAL_DURABLE,
                                        .sync_us = 1000,
                                        .is_alone = true};

/* What one run measured. */
struct result {
    double share;   /* the neighbour's part of both processor times */
    double rate;    /* appends in a second of both processor times */
    double cost_us; /* processor time of the engine for an append */
};

/* Memory that the processes share. */
static struct {
    _Atomic uint64_t appends;
    _Atomic bool stop;
} * shared;

/* --- a device whose syncs take as long as they should -------------------- */

static struct wal__io io;
static uint32_t sync_us;

static enum wal_status simulated_sync(void *ctx, struct wal__file *file, int *sys_errno)
{
    const struct timespec pause = {0, (long)sync_us * 1000};

    (void)ctx;
    (void)file;
    (void)sys_errno;
    (void)nanosleep(&pause, NULL);
    return WAL_OK;
}

static struct wal_store *open_store(const struct load *load)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    struct wal_store *store = NULL;

    io = wal__io_posix;
    if (load->sync_us != 0) {
        sync_us = load->sync_us;
        io.sync = simulated_sync;
    }
    WAL__ASSERT(wal__store_open(load->name, &options, &wal__heap_libc, &io, &store, NULL) ==
                WAL_OK);
    return store;
}

/* --- the two processes -------------------------------------------------- */

static void bind_to_one_processor(void)
{
    cpu_set_t all;
    cpu_set_t one;
    unsigned processor = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    while (!CPU_ISSET(processor, &all)) {
        processor++;
    }
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static _Noreturn void count_for_ever(void)
{
    volatile uint64_t count = 0;

    for (;;) {
        count = count + 1;
    }
}

struct writer {
    struct wal_session *session;
    uint32_t durability;
    pthread_t thread;
};

static void *append_until_stopped(void *arg)
{
    const struct writer *writer = arg;
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = writer->durability};
    const struct wal_entry entry = {
        .struct_size = sizeof(entry), .type = kit_text("message"), .payload = kit_text("{}")};

    while (!atomic_load(&shared->stop)) {
        WAL__ASSERT(wal_append(writer->session, &entry, 1, &options, NULL, NULL) == WAL_OK);
        atomic_fetch_add(&shared->appends, 1);
    }
    return NULL;
}

static _Noreturn void run_engine(const struct load *load)
{
    struct writer writers[THREADS_MAX];
    struct wal_store *store = open_store(load);
    char id[16];

    WAL__ASSERT(setpriority(PRIO_PROCESS, 0, load->nice) == 0);
    for (uint32_t i = 0; i < load->threads; i++) {
        (void)snprintf(id, sizeof(id), "s%u", i);
        writers[i].session = kit_create(store, id);
        writers[i].durability = load->durability;
        WAL__ASSERT(pthread_create(&writers[i].thread, NULL, append_until_stopped, &writers[i]) ==
                    0);
    }
    for (uint32_t i = 0; i < load->threads; i++) {
        WAL__ASSERT(pthread_join(writers[i].thread, NULL) == 0);
        wal_session_close(writers[i].session);
    }
    kit_close(store);
    _exit(0);
}

/* Starts the engine, or without a load the neighbour, in a session. A neighbour of one that is
 * alone sleeps. */
static pid_t start(const struct load *load, bool is_alone)
{
    pid_t child = kit_start_process();

    if (child > 0) {
        return child;
    }
    WAL__ASSERT(setsid() > 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    if (load != NULL) {
        run_engine(load);
    }
    if (is_alone) {
        (void)pause();
    }
    count_for_ever();
}

/* --- measuring ---------------------------------------------------------- */

static double seconds_of(clockid_t clock)
{
    struct timespec time;

    assert_int_equal(clock_gettime(clock, &time), 0);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static clockid_t clock_of(pid_t process)
{
    clockid_t clock;

    assert_int_equal(clock_getcpuclockid(process, &clock), 0);
    return clock;
}

/* Runs the load next to its neighbour. */
static struct result measure(const struct load *load)
{
    pid_t neighbour = start(NULL, load->is_alone);
    pid_t engine = start(load, load->is_alone);
    clockid_t clocks[2] = {clock_of(engine), clock_of(neighbour)};
    struct result result;
    double spent[2];
    double appends;

    kit_pause_ms(WARM_MS);
    appends = (double)atomic_load(&shared->appends);
    for (int i = 0; i < 2; i++) {
        spent[i] = -seconds_of(clocks[i]);
    }
    kit_pause_ms(MEASURE_MS);
    for (int i = 0; i < 2; i++) {
        spent[i] += seconds_of(clocks[i]);
    }
    appends = (double)atomic_load(&shared->appends) - appends;
    atomic_store(&shared->stop, true);
    assert_int_equal(kill(neighbour, SIGKILL), 0);
    assert_int_equal(waitpid(neighbour, NULL, 0), neighbour);
    kit_expect_exit(engine, 0);
    assert_true(appends > 0);
    atomic_store(&shared->stop, false);
    result.share = spent[1] / (spent[0] + spent[1]);
    result.rate = appends / (spent[0] + spent[1]);
    result.cost_us = spent[0] / appends * 1e6;
    print_message("%s: the neighbour has %.2f of the time, %.0f appends/s, "
                  "%.1f us of processor time each\n",
                  load->name, result.share, result.rate, result.cost_us);
    return result;
}

static int enter(void **state)
{
    if (kit_set_up(state) != 0) {
        return -1;
    }
    bind_to_one_processor();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared != MAP_FAILED ? 0 : -1;
}

static int leave(void **state)
{
    (void)munmap(shared, sizeof(*shared));
    return kit_tear_down(state);
}

/* --- the tests ---------------------------------------------------------- */

TEST_WITH(neighbour__keeps_its_half, enter, leave)
{
    assert_true(measure(&durable_many).share >= SHARE_MIN);
    assert_true(measure(&written_many).share >= SHARE_MIN);
}

/* Those that wait for a sync take no processor time meanwhile. */
TEST_WITH(neighbour__many_threads_share_the_cost_of_a_sync, enter, leave)
{
    struct result many = measure(&durable_many);
    struct result one = measure(&durable_one);

    assert_true(many.cost_us <= COST_MAX * one.cost_us);
}

/* A caller that yields the processor while it waits is not woken by what it waits for: it gets the
 * processor after the neighbour's part. Together the threads are due as much as one is. */
TEST_WITH(neighbour__many_threads_keep_their_half_too, enter, leave)
{
    struct result many = measure(&written_many);
    struct result one = measure(&written_one);

    assert_true(many.rate >= one.rate / 8);
}

/* Without a neighbour the processor is idle while the device syncs. */
TEST_WITH(neighbour__nobody_spins_for_a_short_sync, enter, leave)
{
    const struct load *load = &short_syncs;

    assert_true(measure(load).cost_us * load->threads <= 0.6 * load->sync_us);
}
