/*
 * test_sigkill.c - processes that append are killed, or stopped and continued, at random moments,
 * alone and next to others that append, read and compact. Afterwards every acknowledged batch is
 * there once, in order, with its content, under the tail that it expected; what was refused is not
 * there; any other batch is there whole or not at all; no call of a process that lives failed for
 * the death of another one (SPEC.md 4.2, 4.3).
 *
 * A plan says which processes there are, what happens to them, and what the parent does between.
 * Each life of a process appends batches with rising numbers, from which their content follows.
 * Acknowledgements are counted in memory that all processes share.
 */
#include "tests/lib/kit/store_kit.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "format/bytes/assert.h"
#include "tests/lib/sanitizers.h"

enum {
    PROCESSES_MAX = 16,
    THREADS_MAX = 4,
    SESSIONS_MAX = 8,
    BATCH_MAX = 4,
    LIVES_MAX = 4096,
    REFUSED_MAX = 65536,
    EITHER = 100, /* WAL_DURABLE or WAL_WRITTEN */
    LARGE = 150000,
    PAYLOAD_MAX = LARGE + 4000,
    LEFT_OVER_MAX = 16 * 1024 * 1024
};

/* What the parent does after a process was killed, and before the next one is started. */
enum parent {
    WAITS,
    LOOKS,   /* it has the store open, and checks it */
    APPENDS, /* the same, and it appends */
    OPENS    /* now and then it opens the store, checks it, and closes it */
};

struct plan {
    uint32_t writers; /* processes */
    uint32_t threads; /* of each; thread t of writer w appends to session (w + t) % sessions */
    uint32_t sessions;
    uint32_t victims;    /* the first writers; 0: any process */
    uint32_t batch;      /* entries at most */
    uint32_t size;       /* bytes of a payload, at most; 0: a few are LARGE */
    uint32_t durability; /* enum wal_durability, or EITHER */
    bool expects;        /* each second thread expects a tail */
    bool may_fail;       /* WAL_ELOCKED and WAL_EPOISONED are answers */
    uint32_t readers;    /* processes with cursors that stay open */
    bool compacts;       /* one process compacts again and again */
    uint32_t stopped_ms; /* at most, by SIGSTOP; 0: victims are killed */
    uint32_t apart_us[2];
    uint32_t strikes; /* of each store; ten times as many with AGENTWAL_LONG */
    uint32_t stores;  /* one after the other; of every second one all processes are killed */
    enum parent parent;
};

struct batch {
    uint32_t life;
    uint32_t thread;
    uint32_t number;
};

struct shared {
    _Atomic uint32_t stop;
    /* The parent checks: writers append once a millisecond, so that there is not more and more to
     * check. */
    _Atomic uint32_t checking;
    _Atomic uint32_t acknowledged[LIVES_MAX][THREADS_MAX];
    _Atomic uint32_t conflicts;
    _Atomic uint32_t poisoned;
    _Atomic uint32_t reads;
    _Atomic uint32_t rewritten; /* segments */
    _Atomic uint32_t refused_count;
    struct batch refused[REFUSED_MAX];
};

static const struct plan *plan;
static struct shared *shared;
static uint32_t lives; /* that were begun */

static bool is_stopped(void)
{
    return atomic_load(&shared->stop) != 0;
}

/* --- what a batch is ------------------------------------------------------ */

static uint64_t derive(const struct batch *batch)
{
    uint64_t state =
        ((uint64_t)batch->life << 40) + ((uint64_t)batch->thread << 32) + batch->number + 1;

    (void)rng_next(&state);
    return rng_next(&state);
}

static uint32_t count_entries(const struct batch *batch)
{
    return (uint32_t)(derive(batch) % plan->batch) + 1;
}

static void name_entry(char id[64], const struct batch *batch, uint32_t item)
{
    (void)snprintf(id, 64, "%u-%u-%u-%u", batch->life, batch->thread, batch->number, item);
}

/* "TAIL|TEXT", where the length of the text does not follow from the id; returns its size. */
static uint32_t fill_payload(char *payload, const struct batch *batch, uint32_t item,
                             const char *tail)
{
    const uint64_t random = derive(batch) >> 8;
    uint32_t begin = (uint32_t)sprintf(payload, "\"%s|", tail);
    uint32_t size = 10 + (uint32_t)(random + item) % (plan->size == 0 ? 3000 : plan->size);

    if (plan->size == 0 && random % 61 == 0) {
        size += LARGE;
    }
    memset(payload + begin, 'a' + (int)((batch->number + item) % 26), size);
    payload[begin + size] = '"';
    return begin + size + 1;
}

static bool expects_tail(uint32_t thread)
{
    return plan->expects && thread % 2 == 1;
}

/* --- processes ------------------------------------------------------------ */

static struct wal_store *open_store(uint32_t flags)
{
    /* Of a machine on which a process waits for a processor longer than for a lock. */
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = flags,
                                             .lock_timeout_ms = plan->stopped_ms > 0 ? 0 : 120000};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    while (wal_open("store", &options, &store, &error) != WAL_OK) {
        WAL__ASSERT(error.status == WAL_ELOCKED || error.status == WAL_EPOISONED);
    }
    return store;
}

static struct wal_session *open_session(struct wal_store *store, uint32_t number)
{
    struct wal_session *session = NULL;
    char id[16];

    (void)snprintf(id, sizeof(id), "s%u", number % plan->sessions);
    WAL__ASSERT(wal_session_open(store, kit_text(id), &session, NULL) == WAL_OK);
    return session;
}

struct writer {
    struct wal_session *session;
    struct batch next;
    char *payloads;
};

/* Appends the next batch until its outcome is known; false: the process is to end. */
static bool append_batch(struct writer *writer)
{
    struct batch *next = &writer->next;
    const uint32_t count = count_entries(next);
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = plan->durability == EITHER
                                                           ? (uint32_t)(derive(next) >> 40) % 2
                                                           : plan->durability};
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    bool may_be_there = false; /* an attempt had an unknown outcome */

    do {
        struct wal_entry entries[BATCH_MAX];
        char ids[BATCH_MAX][64];
        char tail[256] = "";

        if (expects_tail(next->thread)) {
            status = wal_head_get(writer->session, 0, kit_text(""), tail, &error);
            WAL__ASSERT(status == WAL_OK || status == WAL_ENOTFOUND);
            options.flags = WAL_APPEND_EXPECT;
            options.expected_tail = kit_text(tail);
        }
        for (uint32_t i = 0; i < count; i++) {
            char *payload = writer->payloads + (size_t)i * PAYLOAD_MAX;

            name_entry(ids[i], next, i);
            entries[i] = kit_entry(ids[i], NULL, "");
            entries[i].payload =
                (struct wal_slice){payload, fill_payload(payload, next, i, i == 0 ? tail : "")};
        }
        status = wal_append(writer->session, entries, count, &options, NULL, &error);
        if (status == WAL_ECONFLICT && expects_tail(next->thread)) {
            atomic_fetch_add(&shared->conflicts, 1);
        } else if (status == WAL_ELOCKED && plan->may_fail && !may_be_there) {
            const uint32_t at = atomic_fetch_add(&shared->refused_count, 1);

            WAL__ASSERT(at < REFUSED_MAX);
            shared->refused[at] = *next;
            next->number++;
            return !is_stopped();
        } else if ((status == WAL_EPOISONED || status == WAL_ELOCKED) && plan->may_fail) {
            atomic_fetch_add(&shared->poisoned, 1);
            may_be_there = true;
        } else if (status != WAL_OK && status != WAL_EEXISTS) {
            (void)fprintf(stderr, "life %u: %s\n", next->life, error.text);
            abort();
        }
        /* WAL_EEXISTS: an attempt whose outcome was not known wrote it. */
    } while (status != WAL_OK && status != WAL_EEXISTS && !is_stopped());
    if (status == WAL_OK || status == WAL_EEXISTS) {
        next->number++;
        atomic_store(&shared->acknowledged[next->life][next->thread], next->number);
    }
    return !is_stopped();
}

static void *write_batches(void *arg)
{
    struct writer *writer = arg;

    writer->payloads = malloc((size_t)BATCH_MAX * PAYLOAD_MAX);
    WAL__ASSERT(writer->payloads != NULL);
    while (append_batch(writer)) {
        if (atomic_load(&shared->checking) != 0) {
            (void)usleep(1000);
        }
    }
    free(writer->payloads);
    return NULL;
}

static void write_threads(uint32_t number, uint32_t life)
{
    struct wal_store *store = open_store(0);
    struct writer writers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];

    for (uint32_t i = 0; i < plan->threads; i++) {
        writers[i] = (struct writer){.session = open_session(store, number + i),
                                     .next = {.life = life, .thread = i}};
        WAL__ASSERT(pthread_create(&threads[i], NULL, write_batches, &writers[i]) == 0);
    }
    for (uint32_t i = 0; i < plan->threads; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
        wal_session_close(writers[i].session);
    }
    WAL__ASSERT(wal_close(store, NULL) == WAL_OK || plan->may_fail);
}

/* Reads a session from its beginning, with a pause in the middle. */
static void read_entries(uint32_t number)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_store *store = open_store(number % 2 == 0 ? 0 : WAL_OPEN_PREAD);
    struct wal_session *session = open_session(store, number);

    while (!is_stopped()) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_entry_cursor *cursor = NULL;
        struct wal_error error = KIT_ERROR;
        uint64_t last = 0;
        enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, &error);

        for (uint32_t i = 0; status == WAL_OK; i++) {
            if (i == 50) {
                (void)usleep(plan->apart_us[1]);
            }
            status = wal_entry_cursor_next(cursor, &entry, &error);
            if (status == WAL_OK && (entry.sequence <= last || entry.payload.size == 0)) {
                (void)fprintf(stderr,
                              "reader: entry %u, %.*s: %zu bytes, %" PRIu64 " after %" PRIu64 "\n",
                              i, (int)entry.id.size, (const char *)entry.id.data,
                              entry.payload.size, entry.sequence, last);
                abort();
            }
            last = entry.sequence;
        }
        if (status != WAL_END && status != WAL_EPOISONED) {
            (void)fprintf(stderr, "reader: %d: %s (%s)\n", status, error.text, error.file);
            abort();
        }
        wal_entry_cursor_close(cursor);
        atomic_fetch_add(&shared->reads, 1);
    }
    wal_session_close(session);
    (void)wal_close(store, NULL);
}

static void compact(void)
{
    struct wal_store *store = open_store(0);

    while (!is_stopped()) {
        const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                          .dead_percent = 1};
        struct wal_store_compact_result result = {.struct_size = sizeof(result)};
        struct wal_error error = KIT_ERROR;
        enum wal_status status = wal_store_compact(store, &options, &result, &error);

        if (status != WAL_OK && status != WAL_EPOISONED && status != WAL_ELOCKED) {
            (void)fprintf(stderr, "compaction: %d: %s (%s)\n", status, error.text, error.file);
            abort();
        }
        atomic_fetch_add(&shared->rewritten, (uint32_t)result.rewritten);
    }
    (void)wal_close(store, NULL);
}

static pid_t start(uint32_t number)
{
    pid_t child = kit_start_process();

    WAL__ASSERT(lives < LIVES_MAX);
    if (child != 0) {
        lives++;
        return child;
    }
    if (number < plan->writers) {
        write_threads(number, lives);
    } else if (number < plan->writers + plan->readers) {
        read_entries(number);
    } else {
        compact();
    }
    _exit(0);
}

/* --- what is there -------------------------------------------------------- */

static bool is_refused(const struct batch *batch)
{
    for (uint32_t i = 0; i < atomic_load(&shared->refused_count); i++) {
        if (memcmp(&shared->refused[i], batch, sizeof(*batch)) == 0) {
            return true;
        }
    }
    return false;
}

/* The numbers of the next batches of each thread of each life. */
typedef uint32_t found_batches[LIVES_MAX][THREADS_MAX];

/* The entry belongs here: the next item of the batch *now, or the first one of the thread's
 * next. */
static void check_entry(const struct wal_entry *entry, struct batch *now, uint32_t *items,
                        found_batches found)
{
    static char payload[PAYLOAD_MAX];
    struct batch batch;
    char tail[64] = "";
    char id[64] = "";
    uint32_t item;

    assert_in_range(entry->id.size, 7, sizeof(id) - 1);
    memcpy(id, entry->id.data, entry->id.size);
    assert_int_equal(sscanf(id, "%u-%u-%u-%u", &batch.life, &batch.thread, &batch.number, &item),
                     4);
    assert_true(batch.life < lives && batch.thread < THREADS_MAX);
    if (item == 0) {
        struct batch next = {batch.life, batch.thread, found[batch.life][batch.thread]};

        assert_int_equal(*items, 0);
        for (; next.number < batch.number; next.number++) {
            if (!is_refused(&next)) {
                fail_msg("%s follows batch %u: one is missing", id, next.number);
            }
        }
        if (batch.number != next.number || is_refused(&batch)) {
            fail_msg("%s: the next batch is %u, and this one was%s refused", id, next.number,
                     is_refused(&batch) ? "" : " not");
        }
        found[batch.life][batch.thread] = batch.number + 1;
        *now = batch;
        *items = count_entries(&batch);
    }
    if (memcmp(&batch, now, sizeof(batch)) != 0 || item != count_entries(&batch) - *items) {
        fail_msg("a part of the batch of %s is missing", id);
    }
    (*items)--;
    if (item == 0 && expects_tail(batch.thread) && entry->parent_id.size > 0) {
        memcpy(tail, entry->parent_id.data, entry->parent_id.size);
    }
    assert_int_equal(entry->payload.size, fill_payload(payload, &batch, item, tail));
    assert_memory_equal(entry->payload.data, payload, entry->payload.size);
}

/* Reads every session. Writers may go on meanwhile. Returns the number of batches that are
 * acknowledged. */
static uint64_t check(struct wal_store *store)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    found_batches *found = calloc(1, sizeof(*found));
    found_batches *before = malloc(sizeof(*before));
    uint64_t acknowledged = 0;

    assert_true(found != NULL && before != NULL);
    atomic_store(&shared->checking, 1);
    memcpy(before, shared->acknowledged, sizeof(*before));
    for (uint32_t i = 0; i < plan->sessions; i++) {
        struct wal_session *session = open_session(store, i);
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_entry_cursor *cursor = NULL;
        struct wal_error error = KIT_ERROR;
        enum wal_status status;
        struct batch now = {0};
        uint32_t items = 0; /* that must follow */

        assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
        while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
            check_entry(&entry, &now, &items, *found);
        }
        if (status != WAL_END || items != 0) {
            fail_msg("s%u: %u entries are missing: %s", i, items, error.text);
        }
        wal_entry_cursor_close(cursor);
        wal_session_close(session);
    }
    atomic_store(&shared->checking, 0);
    for (uint32_t life = 0; life < lives; life++) {
        for (uint32_t i = 0; i < plan->threads; i++) {
            struct batch next = {life, i, (*found)[life][i]};
            const uint32_t after = atomic_load(&shared->acknowledged[life][i]);
            struct batch last = {life, i, after};

            while (is_refused(&last)) {
                last.number++;
            }
            while (next.number < (*before)[life][i] && is_refused(&next)) {
                next.number++;
            }
            /* One more may be there when its process was killed, or has not counted it yet. */
            if (next.number < (*before)[life][i] || next.number > last.number + 1) {
                fail_msg("acknowledged, and lost: %u to %u batches of %u-%u, and %u are there",
                         (*before)[life][i], after, life, i, next.number);
            }
            acknowledged += after;
        }
    }
    free(found);
    free(before);
    return acknowledged;
}

/* The next process that opens the store finds everything and, where the last ones closed it,
 * nothing after the end. */
static uint64_t check_opening(uint32_t flags, bool is_closed)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = kit_open("store", flags);
    uint64_t acknowledged;

    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_ok(info.status);
    assert_int_not_equal(info.tail, WAL_TAIL_DAMAGED);
    assert_int_not_equal(info.tail, WAL_TAIL_AMBIGUOUS);
    if (is_closed) {
        assert_int_equal(info.tail, WAL_TAIL_CLEAN);
    }
    acknowledged = check(store);
    kit_close(store);
    return acknowledged;
}

/* --- what happens --------------------------------------------------------- */

static void kill_child(pid_t child)
{
    int ended = 0;

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (!WIFSIGNALED(ended) || WTERMSIG(ended) != SIGKILL) {
        fail_msg("a call failed: the process ended with %#x", (unsigned)ended);
    }
}

/* The parent appends as a separate life. When the killed process died during a sync, the log may
 * be poisoned: then all processes close the store and open it again. */
static void append_here(struct wal_store **store)
{
    struct writer writer = {.next = {.life = lives++}};

    WAL__ASSERT(lives < LIVES_MAX);
    writer.payloads = malloc((size_t)BATCH_MAX * PAYLOAD_MAX);
    assert_non_null(writer.payloads);
    for (int i = 0; i < 2 && atomic_load(&shared->acknowledged[writer.next.life][0]) == 0; i++) {
        if (i > 0) {
            (void)!wal_close(*store, NULL);
            *store = kit_open("store", 0);
        }
        writer.session = open_session(*store, 0);
        atomic_store(&shared->stop, 1); /* one attempt */
        (void)append_batch(&writer);
        atomic_store(&shared->stop, 0);
        wal_session_close(writer.session);
    }
    assert_int_equal(atomic_load(&shared->acknowledged[writer.next.life][0]), 1);
    free(writer.payloads);
}

/* One of the processes is killed and started again, or stopped for a while. */
static void strike(pid_t *children, uint32_t victim, struct wal_store **store, uint64_t *random)
{
    (void)usleep(plan->apart_us[0] +
                 (useconds_t)rng_below(random, plan->apart_us[1] - plan->apart_us[0]));
    if (plan->stopped_ms > 0) {
        assert_int_equal(kill(children[victim], SIGSTOP), 0);
        kit_pause_ms(20 + (long)rng_below(random, plan->stopped_ms));
        assert_int_equal(kill(children[victim], SIGCONT), 0);
        return;
    }
    kill_child(children[victim]);
    if (plan->parent == APPENDS) {
        append_here(store);
    }
    if (plan->parent == LOOKS || plan->parent == APPENDS) {
        (void)check(*store);
    }
    /* One may be killed even during the recovery from the one before. */
    if (plan->parent == OPENS && rng_below(random, 4) != 0) {
        (void)check_opening(0, false);
    }
    children[victim] = start(victim);
}

/* Whether every kind of process has done something; on a slow machine each may have been killed
 * before. */
static bool has_begun(void)
{
    uint64_t acknowledged = 0;

    for (uint32_t i = 0; i < lives; i++) {
        acknowledged += atomic_load(&shared->acknowledged[i][0]);
    }
    return acknowledged > 0 && (plan->readers == 0 || atomic_load(&shared->reads) > 0) &&
           (!plan->compacts || atomic_load(&shared->rewritten) > 0);
}

static uint64_t run_store(uint64_t *random, bool is_killed)
{
    const uint32_t processes = plan->writers + plan->readers + plan->compacts;
    const uint32_t strikes = plan->strikes * (sample_is_whole() ? 10 : 1);
    struct wal_store *store = kit_store();
    pid_t children[PROCESSES_MAX];
    uint64_t acknowledged;
    int ended = 0;

    memset(shared, 0, sizeof(*shared));
    lives = 0;
    for (uint32_t i = 0; i < plan->sessions; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%u", i);
        wal_session_close(kit_create(store, id));
    }
    if (plan->parent == WAITS || plan->parent == OPENS) {
        kit_close(store);
        store = NULL;
    }
    for (uint32_t i = 0; i < processes; i++) {
        children[i] = start(i);
    }
    for (uint32_t i = 0; i < strikes; i++) {
        strike(children, (uint32_t)rng_below(random, plan->victims > 0 ? plan->victims : processes),
               &store, random);
    }
    while (!has_begun()) {
        kit_pause_ms(1);
    }
    if (store != NULL) {
        kit_close(store);
    }
    if (!is_killed) {
        atomic_store(&shared->stop, 1);
    }
    for (uint32_t i = 0; i < processes; i++) {
        if (is_killed) {
            kill_child(children[i]);
        } else {
            assert_int_equal(waitpid(children[i], &ended, 0), children[i]);
            assert_int_equal(ended, 0);
        }
    }
    (void)check_opening(0, !is_killed && plan->durability == WAL_WRITTEN);
    acknowledged = check_opening(WAL_OPEN_PREAD, false);
    kit_check_sound("store");
    print_message("%u strikes, %llu batches acknowledged, %u refused, %u conflicts, %u poisoned\n",
                  strikes, (unsigned long long)acknowledged, atomic_load(&shared->refused_count),
                  atomic_load(&shared->conflicts), atomic_load(&shared->poisoned));
    return acknowledged;
}

static void run(const struct plan *wanted)
{
    uint64_t random = kit_seed();

    plan = wanted;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (uint32_t i = 0; i < plan->stores; i++) {
        assert_true(run_store(&random, i % 2 == 1) > 0);
        assert_int_equal(system("rm -r store"), 0);
    }
    assert_int_equal(munmap(shared, sizeof(*shared)), 0);
}

KIT_TEST(sigkill__nothing_acknowledged_is_lost)
{
    run(&(struct plan){.writers = 1,
                       .threads = 3,
                       .sessions = 3,
                       .batch = 4,
                       .durability = EITHER,
                       .apart_us = {0, 90000},
                       .strikes = 16,
                       .stores = 4,
                       .parent = OPENS});
}

KIT_TEST(sigkill__another_process_continues)
{
    run(&(struct plan){.writers = 1,
                       .threads = 3,
                       .sessions = 3,
                       .batch = 4,
                       .durability = EITHER,
                       .may_fail = true,
                       .apart_us = {0, 90000},
                       .strikes = 24,
                       .stores = 1,
                       .parent = APPENDS});
}

KIT_TEST(sigkill__no_append_of_others_fails)
{
    run(&(struct plan){.writers = 8,
                       .threads = 1,
                       .sessions = 8,
                       .victims = 2,
                       .batch = 1,
                       .size = 40,
                       .apart_us = {20000, 200000},
                       .strikes = 30,
                       .stores = 1});
}

/* They are killed while they copy into the map of the tail segment, or retain the append lock. */
KIT_TEST(sigkill__written_batches)
{
    run(&(struct plan){.writers = 3,
                       .threads = 2,
                       .sessions = 2,
                       .batch = 3,
                       .size = 1200,
                       .durability = WAL_WRITTEN,
                       .apart_us = {1000, 30000},
                       .strikes = 12,
                       .stores = 6,
                       .parent = LOOKS});
}

KIT_TEST(sigkill__expected_tails)
{
    run(&(struct plan){.writers = 4,
                       .threads = 4,
                       .sessions = 4,
                       .batch = 1,
                       .size = 40,
                       .expects = true,
                       .may_fail = true,
                       .apart_us = {50000, 150000},
                       .strikes = 20,
                       .stores = 1});
}

KIT_TEST(sigkill__one_compacts)
{
    run(&(struct plan){.writers = 8,
                       .threads = 1,
                       .sessions = 4,
                       .batch = 1,
                       .size = 2048,
                       .may_fail = true,
                       .readers = 4,
                       .compacts = true,
                       .apart_us = {100000, 250000},
                       .strikes = 16,
                       .stores = 1});
}

KIT_TEST(stopped__for_less_than_the_timeout)
{
    run(&(struct plan){.writers = 8,
                       .threads = 1,
                       .sessions = 8,
                       .victims = 2,
                       .batch = 1,
                       .size = 40,
                       .stopped_ms = 250,
                       .apart_us = {20000, 200000},
                       .strikes = 12,
                       .stores = 1});
}

/* A process that holds the append lock cannot be passed: others are refused. */
KIT_TEST(stopped__for_longer)
{
    run(&(struct plan){.writers = 8,
                       .threads = 1,
                       .sessions = 8,
                       .victims = 2,
                       .batch = 1,
                       .size = 40,
                       .may_fail = true,
                       .stopped_ms = 1500,
                       .apart_us = {20000, 200000},
                       .strikes = 6,
                       .stores = 1});
}

/* --- disk space ----------------------------------------------------------- */

static uint64_t allocated_in(const char *directory)
{
    DIR *listing = opendir(directory);
    struct dirent *entry;
    uint64_t total = 0;

    assert_non_null(listing);
    while ((entry = readdir(listing)) != NULL) {
        char path[4096];
        struct stat st;

        (void)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            total += (uint64_t)st.st_blocks * 512;
        }
    }
    (void)closedir(listing);
    return total;
}

/* Opens the store, appends, and is killed at any moment until shortly after. */
static void append_and_die(uint64_t *random)
{
    pid_t child = kit_start_process();

    if (child == 0) {
        struct wal_store *store = kit_open("store", 0);

        kit_append_as(kit_session(store, "s"), WAL_DURABLE);
        for (;;) {
            (void)pause();
        }
    }
    (void)usleep((useconds_t)rng_below(random, 6000));
    kill_child(child);
}

/* Healing after each death costs what it copies. */
KIT_TEST(sigkill__killed_processes_leave_no_space)
{
    const uint32_t kills = sample_is_whole() ? 3000 : 150;
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t random = kit_seed();

    for (uint32_t i = 0; i < kills; i++) {
        append_and_die(&random);
    }
    kit_append(session, "last", NULL);
    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_true(allocated_in("store/log") < info.log_bytes + LEFT_OVER_MAX);
    wal_session_close(session);
    kit_close(store);
    kit_check_sound("store");
}
