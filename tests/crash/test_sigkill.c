/*
 * test_sigkill.c - a process that appends from several threads is killed at random moments, again
 * and again. Afterwards every acknowledged append is there, every batch is there whole or not at
 * all, and every session can be read and continued.
 *
 * The child reports each acknowledgement through a pipe, one record at a time; the parent keeps a
 * list of them over all rounds.
 */
#include "tests/lib/kit/store_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "format/bytes/assert.h"

enum {
    THREADS = 3,
    SESSIONS = 4,
    BATCH_MAX = 4,
    LIFE_MAX_US = 90000,
    ROUNDS_FACTOR = 20 /* at most */
};

/* Reports one acknowledged batch. A pipe transfers a record of this size whole. */
struct report {
    uint32_t round;
    uint32_t thread;
    uint32_t number;
    uint32_t count; /* entries */
    uint32_t session;
};

struct run {
    uint32_t round;
    uint64_t seed;
    int pipe; /* the child's end */
    struct wal_store *store;
    struct wal_session *sessions[SESSIONS];
};

struct worker {
    struct run *run;
    uint32_t number;
};

/* ------------------------------------------------------------- child --- */

/* A number that parent and child both derive: sizes of batches and payloads. */
static uint64_t derive(const struct report *of)
{
    uint64_t state = ((uint64_t)of->round << 40) + ((uint64_t)of->thread << 32) + of->number + 1;

    (void)kit_random(&state);
    return kit_random(&state);
}

static void name_entry(char id[64], const struct report *of, uint32_t item)
{
    (void)snprintf(id, 64, "%u-%u-%u-%u/%u", of->round, of->thread, of->number, item, of->count);
}

/* The payload's text, whose length does not follow from the id. */
static uint32_t fill_payload(char *payload, const struct report *of, uint32_t item)
{
    uint32_t size = (uint32_t)(derive(of) >> 20) % 3000 + 10 + item;

    if (derive(of) % 61 == 0) {
        size += 150000;
    }
    memset(payload, 'a' + (int)(of->number % 26), size);
    payload[0] = '"';
    payload[size - 1] = '"';
    return size;
}

static void append_batch(struct run *run, struct report *batch, char *payloads)
{
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = (uint32_t)(derive(batch) >> 8) % 2};
    struct wal_entry entries[BATCH_MAX];
    char ids[BATCH_MAX][64];
    enum wal_status status;

    batch->count = (uint32_t)(derive(batch) % BATCH_MAX) + 1;
    batch->session = (uint32_t)(derive(batch) >> 16) % SESSIONS;
    for (uint32_t i = 0; i < batch->count; i++) {
        char *payload = payloads + i * 200000;

        name_entry(ids[i], batch, i);
        entries[i] = kit_entry(ids[i], NULL, "");
        entries[i].payload.data = payload;
        entries[i].payload.size = fill_payload(payload, batch, i);
    }
    status = wal_append(run->sessions[batch->session], entries, batch->count, &options, NULL, NULL);
    WAL__ASSERT(status == WAL_OK);
    WAL__ASSERT(write(run->pipe, batch, sizeof(*batch)) == sizeof(*batch));
}

static void *work(void *arg)
{
    const struct worker *worker = arg;
    char *payloads = malloc(BATCH_MAX * 200000);

    WAL__ASSERT(payloads != NULL);
    for (uint32_t i = 0;; i++) {
        struct report batch = {.round = worker->run->round, .thread = worker->number, .number = i};

        append_batch(worker->run, &batch, payloads);
    }
    return NULL;
}

/* Opens the store, which recovers it, and appends until it is killed. */
static void live(struct run *run)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];

    run->store = kit_store();
    for (int i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        if (wal_session_open(run->store, kit_text(id), &run->sessions[i], NULL) != WAL_OK) {
            run->sessions[i] = kit_create(run->store, id);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.run = run, .number = i};
        WAL__ASSERT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (;;) {
        pause();
    }
}

/* ------------------------------------------------------------ parent --- */

/* Everything that was acknowledged so far. */
struct ledger {
    struct report *reports;
    size_t count;
    size_t capacity;
};

static void add_report(struct ledger *ledger, const struct report *report)
{
    if (ledger->count == ledger->capacity) {
        ledger->capacity = ledger->capacity == 0 ? 1024 : ledger->capacity * 2;
        ledger->reports = realloc(ledger->reports, ledger->capacity * sizeof(*report));
        assert_non_null(ledger->reports);
    }
    ledger->reports[ledger->count++] = *report;
}

/* Lets a child run for a while; adds its reports to the ledger. */
static void live_and_die(struct run *run, struct ledger *ledger)
{
    uint64_t life_us = kit_random(&run->seed) % LIFE_MAX_US;
    struct timespec life = {0, (long)life_us * 1000};
    struct report report;
    int ends[2];
    int status = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1024 * 1024) > 0);
    child = kit_start_process();
    if (child == 0) {
        (void)close(ends[0]);
        run->pipe = ends[1];
        live(run);
    }
    (void)close(ends[1]);
    (void)nanosleep(&life, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fail_msg("round %u: the child ended by itself, %#x", run->round, (unsigned)status);
    }
    while (read(ends[0], &report, sizeof(report)) == sizeof(report)) {
        add_report(ledger, &report);
    }
    (void)close(ends[0]);
}

/* An acknowledged batch is there, with its content. */
static void check_report(struct wal_entry_cursor *const *cursors, const struct report *report,
                         char *payload)
{
    for (uint32_t i = 0; i < report->count; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_error error = KIT_ERROR;
        char id[64];
        uint32_t size;

        name_entry(id, report, i);
        if (wal_entry_cursor_get(cursors[report->session], kit_text(id), &entry, &error) !=
            WAL_OK) {
            fail_msg("acknowledged, and lost: %s in s%u: %s", id, report->session, error.text);
        }
        size = fill_payload(payload, report, i);
        assert_int_equal(entry.payload.size, size);
        assert_memory_equal(entry.payload.data, payload, size);
    }
}

/* Walks a session: the entries of a batch are adjacent, and all are there. */
static void walk(struct wal_entry_cursor *cursor, int session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    unsigned expected = 0;
    unsigned count = 0;
    char batch[64] = "";

    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        char id[64] = "";
        char *item;
        char *all;

        assert_in_range(entry.id.size, 9, sizeof(id) - 1);
        memcpy(id, entry.id.data, entry.id.size);
        all = strchr(id, '/');
        assert_non_null(all);
        *all = '\0';
        item = strrchr(id, '-');
        assert_non_null(item);
        *item = '\0';
        if (expected == count) {
            (void)snprintf(batch, sizeof(batch), "%s", id);
            expected = 0;
            count = (unsigned)atoi(all + 1);
        }
        if (strcmp(batch, id) != 0 || (unsigned)atoi(item + 1) != expected) {
            fail_msg("s%d: a part of batch %s is missing", session, batch);
        }
        expected++;
    }
    if (status != WAL_END) {
        fail_msg("s%d: %s", session, error.text);
    }
    if (expected != count) {
        fail_msg("s%d: the end of batch %s is missing", session, batch);
    }
}

/* Reads every session; checks the reports from that index on. */
static void check_sessions(struct wal_store *store, const struct ledger *ledger, size_t from,
                           bool *all_are_there)
{
    struct wal_session *sessions[SESSIONS] = {NULL};
    struct wal_entry_cursor *cursors[SESSIONS] = {NULL};
    char *payload = malloc(200000);

    assert_non_null(payload);
    for (int i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        if (wal_session_open(store, kit_text(id), &sessions[i], NULL) != WAL_OK) {
            continue;
        }
        assert_ok(wal_entry_cursor_open(sessions[i], NULL, &cursors[i], NULL));
        walk(cursors[i], i);
        *all_are_there = i == SESSIONS - 1;
    }
    for (size_t i = from; i < ledger->count; i++) {
        assert_non_null(cursors[ledger->reports[i].session]);
        check_report(cursors, &ledger->reports[i], payload);
    }
    for (int i = 0; i < SESSIONS; i++) {
        wal_entry_cursor_close(cursors[i]);
        wal_session_close(sessions[i]);
    }
    free(payload);
}

static void check_store(const struct ledger *ledger, size_t from, bool *all_are_there)
{
    struct wal_store *store = kit_store();
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_ok(info.status);
    assert_int_not_equal(info.tail, WAL_TAIL_DAMAGED);
    assert_int_not_equal(info.tail, WAL_TAIL_AMBIGUOUS);
    check_sessions(store, ledger, from, all_are_there);
    kit_close(store);
}

static void remove_store(void)
{
    assert_int_equal(system("rm -r store"), 0);
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

KIT_TEST(sigkill__nothing_acknowledged_is_lost)
{
    const bool is_long = getenv("AGENTWAL_LONG") != NULL;
    const uint32_t rounds = is_long ? 3000 : 64;
    struct ledger ledger = {NULL, 0, 0};
    struct run run = {.seed = kit_seed()};
    double begin = seconds();
    bool complete = false;
    size_t total = 0;
    size_t from = 0;

    /* A slow machine kills most children before they have done anything. */
    while (run.round < rounds ||
           (total + ledger.count <= rounds && run.round < ROUNDS_FACTOR * rounds)) {
        live_and_die(&run, &ledger);
        run.round++;
        /* A child may even be killed during the recovery from the one before. */
        if (kit_random(&run.seed) % 4 == 0) {
            continue;
        }
        check_store(&ledger, from, &complete);
        from = ledger.count;
        if (run.round % 16 == 0) {
            check_store(&ledger, 0, &complete);
            total += ledger.count;
            ledger.count = 0;
            from = 0;
            remove_store();
        }
    }
    total += ledger.count;
    print_message("%u kills, %zu batches acknowledged, %.1f s\n", run.round, total,
                  seconds() - begin);
    assert_true(complete);
    assert_true(total > rounds);
    free(ledger.reports);
}

/* The surviving process appends, too. If the killed one died during a sync, the log is poisoned:
 * then all processes close the store and open it again. */
static bool go_on(struct wal_store *store, struct ledger *ledger, uint32_t round)
{
    struct report report = {.round = round, .thread = THREADS, .count = 1};
    struct wal_session *session = kit_session(store, "s0");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    char *payload = malloc(200000);
    char id[64];
    enum wal_status status;

    assert_non_null(payload);
    name_entry(id, &report, 0);
    entry = kit_entry(id, NULL, "");
    entry.payload.data = payload;
    entry.payload.size = fill_payload(payload, &report, 0);
    status = wal_append(session, &entry, 1, NULL, NULL, &error);
    if (status == WAL_OK) {
        add_report(ledger, &report);
    } else if (status != WAL_EPOISONED) {
        fail_msg("round %u: %s", round, error.text);
    }
    wal_session_close(session);
    free(payload);
    return status == WAL_OK;
}

KIT_TEST(sigkill__another_process_continues)
{
    const uint32_t rounds = getenv("AGENTWAL_LONG") != NULL ? 1000 : 24;
    struct wal_store *store = kit_store();
    struct ledger ledger = {NULL, 0, 0};
    struct run run = {.seed = kit_seed()};
    uint32_t poisoned = 0;
    bool complete = false;

    wal_session_close(kit_create(store, "s0"));
    for (; run.round < rounds || (!complete && run.round < ROUNDS_FACTOR * rounds); run.round++) {
        size_t from = ledger.count;

        live_and_die(&run, &ledger);
        if (!go_on(store, &ledger, run.round)) {
            poisoned++;
            (void)!wal_close(store, NULL);
            store = kit_open("store", 0);
            assert_true(go_on(store, &ledger, run.round + ROUNDS_FACTOR * rounds));
        }
        check_sessions(store, &ledger, from, &complete);
    }
    kit_close(store);
    check_store(&ledger, 0, &complete);
    print_message("%u kills, %zu batches acknowledged, %u times poisoned\n", run.round,
                  ledger.count, poisoned);
    assert_true(complete);
    free(ledger.reports);
}
