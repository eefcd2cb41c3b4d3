/*
 * test_written_kill.c - processes that append in bursts, waiting for no device, are killed: while
 * they copy into the map of the tail segment, or retain the append lock (SPEC.md 4.3). No append of
 * the others fails. What was acknowledged is read by a live process and by the next one that opens
 * the store; a batch is there whole or not at all.
 *
 * Acknowledgements are counted in memory that all processes share.
 */
#include "tests/lib/kit/store_kit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "format/bytes/assert.h"

enum {
    PROCESSES = 3,
    THREADS = 2,
    BATCH_MAX = 3,
    KILLS = 25, /* of one store */
    LIVES = PROCESSES + KILLS,
    APART_MAX_US = 30000,
    LARGE = 12000,
    SMALL = 700
};

struct counts {
    _Atomic uint32_t stop;
    /* The parent checks a life: writers append once a millisecond, so that there is not more and
     * more to check. */
    _Atomic uint32_t checking;
    /* Batches. The next one may be there, too. */
    _Atomic uint32_t acknowledged[LIVES][THREADS];
};

struct batch {
    uint32_t life;
    uint32_t thread;
    uint32_t number;
};

struct writer {
    struct counts *counts;
    struct wal_session *session;
    struct batch next;
};

static struct counts *counts;

static uint64_t derive(const struct batch *batch)
{
    uint64_t state =
        ((uint64_t)batch->life << 40) + ((uint64_t)batch->thread << 32) + batch->number + 1;

    (void)kit_random(&state);
    return kit_random(&state);
}

static uint32_t count_entries(const struct batch *batch)
{
    return (uint32_t)(derive(batch) % BATCH_MAX) + 1;
}

static void name_entry(char id[64], const struct batch *batch, uint32_t item)
{
    (void)snprintf(id, 64, "%u-%u-%u-%u", batch->life, batch->thread, batch->number, item);
}

static uint32_t fill_payload(char payload[LARGE + 2], const struct batch *batch, uint32_t item)
{
    uint64_t random = derive(batch) >> 8;
    uint32_t size = 2 + (uint32_t)(random + item) % (random % 32 == 0 ? (uint32_t)LARGE : SMALL);

    memset(payload, 'a' + (int)((batch->number + item) % 26), size);
    payload[0] = '"';
    payload[size - 1] = '"';
    return size;
}

/* ------------------------------------------------------------- child --- */

static void *write_batches(void *arg)
{
    static _Thread_local char payloads[BATCH_MAX][LARGE + 2];
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_error error = KIT_ERROR;
    struct wal_entry entries[BATCH_MAX];
    struct writer *writer = arg;
    char ids[BATCH_MAX][64];

    while (atomic_load(&counts->stop) == 0) {
        const struct timespec moment = {0, 1000000};
        uint32_t count = count_entries(&writer->next);

        if (atomic_load(&counts->checking) != 0) {
            (void)nanosleep(&moment, NULL);
        }

        for (uint32_t i = 0; i < count; i++) {
            name_entry(ids[i], &writer->next, i);
            entries[i] = kit_entry(ids[i], NULL, "");
            entries[i].payload.data = payloads[i];
            entries[i].payload.size = fill_payload(payloads[i], &writer->next, i);
        }
        if (wal_append(writer->session, entries, count, &options, NULL, &error) != WAL_OK) {
            (void)fprintf(stderr, "life %u: %s\n", writer->next.life, error.text);
            abort();
        }
        writer->next.number++;
        atomic_store(&counts->acknowledged[writer->next.life][writer->next.thread],
                     writer->next.number);
    }
    return NULL;
}

static void live(uint32_t life)
{
    struct wal_store *store = kit_open("store", 0);
    struct writer writers[THREADS];
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%u", i);
        writers[i] = (struct writer){counts, kit_session(store, id), (struct batch){life, i, 0}};
        WAL__ASSERT(pthread_create(&threads[i], NULL, write_batches, &writers[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
        wal_session_close(writers[i].session);
    }
    WAL__ASSERT(wal_close(store, NULL) == WAL_OK);
    _exit(0);
}

static pid_t start(uint32_t life)
{
    pid_t child = kit_start_process();

    if (child == 0) {
        live(life);
    }
    return child;
}

/* ------------------------------------------------------------ parent --- */

/* Returns how many entries of the batch are there, with their content. */
static uint32_t count_found(struct wal_entry_cursor *cursor, const struct batch *batch)
{
    static char payload[LARGE + 2];
    uint32_t found = 0;

    for (uint32_t i = 0; i < count_entries(batch); i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_error error = KIT_ERROR;
        enum wal_status status;
        char id[64];

        name_entry(id, batch, i);
        status = wal_entry_cursor_get(cursor, kit_text(id), &entry, &error);
        if (status == WAL_ENOTFOUND) {
            continue;
        }
        if (status != WAL_OK) {
            fail_msg("%s: %s", id, error.text);
        }
        assert_int_equal(entry.payload.size, fill_payload(payload, batch, i));
        assert_memory_equal(entry.payload.data, payload, entry.payload.size);
        found++;
    }
    return found;
}

/* Checks what one thread of one life, which has ended, appended. */
static uint32_t check_thread(struct wal_store *store, uint32_t life, uint32_t thread)
{
    uint32_t acknowledged = atomic_load(&counts->acknowledged[life][thread]);
    struct batch batch = {life, thread, 0};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session;
    uint32_t found;
    char id[16];

    (void)snprintf(id, sizeof(id), "s%u", thread);
    session = kit_session(store, id);
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    for (; batch.number < acknowledged; batch.number++) {
        if (count_found(cursor, &batch) != count_entries(&batch)) {
            fail_msg("acknowledged, and lost: %u-%u-%u", life, thread, batch.number);
        }
    }
    found = count_found(cursor, &batch);
    assert_true(found == 0 || found == count_entries(&batch));
    batch.number++;
    assert_int_equal(count_found(cursor, &batch), 0);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    return acknowledged;
}

static uint32_t check_life(struct wal_store *store, uint32_t life)
{
    uint32_t acknowledged = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        acknowledged += check_thread(store, life, i);
    }
    return acknowledged;
}

static void kill_child(pid_t child)
{
    int ended = 0;

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (!WIFSIGNALED(ended) || WTERMSIG(ended) != SIGKILL) {
        fail_msg("an append failed: the process ended with %#x", (unsigned)ended);
    }
}

/* Ends the processes: all at once, or when their appends are done. */
static void end_all(const pid_t children[PROCESSES], bool killed)
{
    int ended = 0;

    if (!killed) {
        atomic_store(&counts->stop, 1);
    }
    for (int i = 0; i < PROCESSES; i++) {
        if (killed) {
            kill_child(children[i]);
        } else {
            assert_int_equal(waitpid(children[i], &ended, 0), children[i]);
            assert_int_equal(ended, 0);
        }
    }
}

/* The next process that opens the store finds everything, and, when the last processes closed it,
 * nothing after the end. */
static uint64_t check_reopened(uint32_t lives, bool killed)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = kit_open("store", 0);
    uint64_t acknowledged = 0;

    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_ok(info.status);
    assert_int_not_equal(info.tail, WAL_TAIL_DAMAGED);
    assert_int_not_equal(info.tail, WAL_TAIL_AMBIGUOUS);
    if (!killed) {
        assert_int_equal(info.tail, WAL_TAIL_CLEAN);
    }
    for (uint32_t life = 0; life < lives; life++) {
        acknowledged += check_life(store, life);
    }
    kit_close(store);
    return acknowledged;
}

static void nap(uint64_t *seed)
{
    const struct timespec time = {0, (long)(kit_random(seed) % APART_MAX_US + 1) * 1000};

    (void)nanosleep(&time, NULL);
}

/* Kills and restarts one process after the other. */
static uint64_t run(uint64_t *seed, bool killed)
{
    struct wal_store *store = kit_store();
    pid_t children[PROCESSES];
    uint32_t living[PROCESSES];
    uint32_t lives = 0;

    memset(counts, 0, sizeof(*counts));
    for (uint32_t i = 0; i < THREADS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%u", i);
        wal_session_close(kit_create(store, id));
    }
    for (int i = 0; i < PROCESSES; i++) {
        living[i] = lives++;
        children[i] = start(living[i]);
    }
    for (int i = 0; i < KILLS; i++) {
        int at = i % PROCESSES;

        nap(seed);
        kill_child(children[at]);
        atomic_store(&counts->checking, 1);
        (void)check_life(store, living[at]);
        atomic_store(&counts->checking, 0);
        living[at] = lives++;
        children[at] = start(living[at]);
    }
    nap(seed);
    kit_close(store);
    end_all(children, killed);
    return check_reopened(lives, killed);
}

KIT_TEST(written_kill__nothing_acknowledged_is_lost)
{
    const int rounds = getenv("AGENTWAL_LONG") != NULL ? 40 : 4;
    uint64_t seed = kit_seed();
    uint64_t acknowledged = 0;

    counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(counts != MAP_FAILED);
    for (int i = 0; i < rounds; i++) {
        acknowledged += run(&seed, i % 2 == 1);
        assert_int_equal(system("rm -r store"), 0);
    }
    print_message("%d kills, %llu batches acknowledged\n", rounds * KILLS,
                  (unsigned long long)acknowledged);
    assert_true(acknowledged > (uint64_t)rounds * KILLS);
    (void)munmap(counts, sizeof(*counts));
}
