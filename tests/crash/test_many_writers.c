/*
 * test_many_writers.c - several processes of four threads each append to the same four sessions,
 * while one of them after the other is killed and restarted. Afterwards every acknowledged entry is
 * there once, each that expected a tail is under it, every session is a tree, and walcheck finds no
 * damage.
 *
 * Acknowledgements are counted in memory that all processes share: one count for each thread of
 * each life of a process. A thread appends the next entry only when the one before is acknowledged.
 */
#include "tests/lib/kit/store_kit.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <pthread.h>

#include "format/bytes/assert.h"

enum {
    THREADS = 4,
    SESSIONS = 4,
    LIVES_MAX = 4096,
    ID_SIZE = 48
};

struct counts {
    _Atomic uint32_t acknowledged[LIVES_MAX][THREADS];
    _Atomic uint32_t conflicts;
    _Atomic uint32_t unknown; /* results that left the outcome unknown */
    _Atomic uint32_t stop;
};

struct worker {
    struct counts *counts;
    struct wal_store *store;
    struct wal_session *session;
    uint32_t life;
    uint32_t thread;
};

static void write_id(char out[ID_SIZE], uint32_t life, uint32_t thread, uint32_t number)
{
    (void)snprintf(out, ID_SIZE, "e%u.%u.%u", life, thread, number);
}

/* --- a life --------------------------------------------------------------- */

/* Appends one entry until its outcome is known. Threads with an odd number expect a tail, and write
 * it into the payload. */
static void append_one(struct worker *worker, uint32_t number)
{
    struct wal_append_options options = {.struct_size = sizeof(options)};
    struct wal_error error = KIT_ERROR;
    char payload[512];
    char tail[256];
    char id[ID_SIZE];
    struct wal_entry entry;
    enum wal_status status;

    write_id(id, worker->life, worker->thread, number);
    do {
        tail[0] = '\0';
        if (worker->thread % 2 == 1) {
            status = wal_head_get(worker->session, 0, kit_text(""), tail, &error);
            WAL__ASSERT(status == WAL_OK || status == WAL_ENOTFOUND);
            options.flags = WAL_APPEND_EXPECT;
            options.expected_tail = kit_text(tail);
        }
        (void)snprintf(payload, sizeof(payload), "\"%s\"", worker->thread % 2 == 1 ? tail : "-");
        entry = kit_entry(id, NULL, payload);
        status = wal_append(worker->session, &entry, 1, &options, NULL, &error);
        if (status == WAL_ECONFLICT) {
            atomic_fetch_add(&worker->counts->conflicts, 1);
        } else if (status == WAL_EEXISTS) {
            /* It was written by an attempt with an unknown outcome, under the tail expected
             * then. */
            status = WAL_OK;
        } else if (status != WAL_OK) {
            WAL__ASSERT(status == WAL_EPOISONED || status == WAL_ELOCKED);
            atomic_fetch_add(&worker->counts->unknown, 1);
        }
    } while (status != WAL_OK && atomic_load(&worker->counts->stop) == 0);
    if (status == WAL_OK) {
        atomic_store(&worker->counts->acknowledged[worker->life][worker->thread], number + 1);
    }
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (uint32_t number = 0; atomic_load(&worker->counts->stop) == 0; number++) {
        append_one(worker, number);
    }
    return NULL;
}

static void live(struct counts *counts, uint32_t life)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct wal_store *store = NULL;
    struct wal_error error = KIT_ERROR;

    while (wal_open("store", NULL, &store, &error) != WAL_OK) {
        WAL__ASSERT(error.status == WAL_ELOCKED || error.status == WAL_EPOISONED);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        char id[16];

        workers[i] = (struct worker){.counts = counts, .store = store, .life = life, .thread = i};
        (void)snprintf(id, sizeof(id), "s%u", i % SESSIONS);
        WAL__ASSERT(wal_session_open(store, kit_text(id), &workers[i].session, NULL) == WAL_OK);
        WAL__ASSERT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        wal_session_close(workers[i].session);
    }
    (void)wal_close(store, NULL);
}

static pid_t start(struct counts *counts, uint32_t life)
{
    pid_t child = kit_start_process();

    if (child == 0) {
        live(counts, life);
        _exit(0);
    }
    return child;
}

/* --- afterwards ----------------------------------------------------------- */

/* Parses the numbers in the entry's id. */
static void read_id(struct wal_slice id, uint32_t *life, uint32_t *thread, uint32_t *number)
{
    char text[ID_SIZE];

    assert_in_range(id.size, 1, ID_SIZE - 1);
    memcpy(text, id.data, id.size);
    text[id.size] = '\0';
    assert_int_equal(sscanf(text, "e%u.%u.%u", life, thread, number), 3);
}

/* Every entry is there once, under an earlier one; *seen counts each thread's entries, which have
 * no gap. */
static void check_session(struct wal_session *session, uint32_t (*seen)[THREADS])
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry parent = {.struct_size = sizeof(parent)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    while ((status = wal_entry_cursor_next(cursor, &entry, NULL)) == WAL_OK) {
        uint32_t life;
        uint32_t thread;
        uint32_t number;

        read_id(entry.id, &life, &thread, &number);
        assert_in_range(life, 0, LIVES_MAX - 1);
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(number, seen[life][thread]);
        seen[life][thread]++;
        if (entry.parent_id.size > 0) {
            assert_ok(wal_entry_cursor_get(cursor, entry.parent_id, &parent, NULL));
            assert_true(parent.sequence < entry.sequence);
        }
        if (thread % 2 == 1) { /* "TAIL" */
            const char *expected = (const char *)entry.payload.data + 1;

            assert_int_equal(entry.parent_id.size, entry.payload.size - 2);
            assert_memory_equal(expected, entry.parent_id.data, entry.parent_id.size);
        }
    }
    assert_int_equal(status, WAL_END);
    wal_entry_cursor_close(cursor);
}

static void check_all(const struct counts *counts, uint32_t lives, uint64_t *acknowledged)
{
    uint32_t(*seen)[THREADS] = calloc(LIVES_MAX, sizeof(*seen));
    struct wal_store *store = kit_store();

    assert_non_null(seen);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct wal_session *session;
        char id[16];

        (void)snprintf(id, sizeof(id), "s%u", i);
        session = kit_session(store, id);
        check_session(session, seen);
        wal_session_close(session);
    }
    kit_close(store);
    *acknowledged = 0;
    for (uint32_t life = 0; life < lives; life++) {
        for (uint32_t i = 0; i < THREADS; i++) {
            uint32_t acked = atomic_load(&counts->acknowledged[life][i]);

            assert_in_range(seen[life][i], acked, acked + 1);
            *acknowledged += acked;
        }
    }
    free(seen);
}

/* Kills and restarts one process, `kills` times, `apart_ms` apart. */
static void run(struct counts *counts, uint32_t processes, uint32_t kills, long apart_ms)
{
    pid_t children[16];
    uint32_t lives = 0;
    uint64_t acknowledged;
    int ended;

    for (uint32_t i = 0; i < processes; i++) {
        children[i] = start(counts, lives);
        lives++;
    }
    for (uint32_t i = 0; i < kills; i++) {
        pid_t *child = &children[i % processes];

        kit_pause_ms(apart_ms);
        assert_int_equal(kill(*child, SIGKILL), 0);
        assert_int_equal(waitpid(*child, &ended, 0), *child);
        assert_true(WIFSIGNALED(ended));
        *child = start(counts, lives);
        lives++;
    }
    kit_pause_ms(apart_ms);
    atomic_store(&counts->stop, 1);
    for (uint32_t i = 0; i < processes; i++) {
        assert_int_equal(waitpid(children[i], &ended, 0), children[i]);
        assert_int_equal(ended, 0);
    }
    check_all(counts, lives, &acknowledged);
    printf("%u processes of %d threads, %u killed: %llu acknowledged, %u "
           "conflicts, %u answers that did not tell\n",
           processes, THREADS, kills, (unsigned long long)acknowledged,
           atomic_load(&counts->conflicts), atomic_load(&counts->unknown));
    assert_true(acknowledged > 0);
}

static void check_store(void)
{
    const char *build = getenv("AGENTWAL_BUILD");
    char command[4096];

    if (build == NULL) {
        build = ".";
    }
    (void)snprintf(command, sizeof(command), "%s/bin/walcheck store", build);
    assert_int_equal(system(command), 0);
}

KIT_TEST(many_writers__one_is_killed_repeatedly)
{
    bool is_long = getenv("AGENTWAL_LONG") != NULL;
    struct counts *counts =
        mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct wal_store *store = kit_store();

    assert_true(counts != MAP_FAILED);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%u", i);
        wal_session_close(kit_create(store, id));
    }
    kit_close(store);
    run(counts, is_long ? 8 : 4, is_long ? 60 : 20, is_long ? 1000 : 150);
    check_store();
    (void)munmap(counts, sizeof(*counts));
}
