/*
 * test_compact_kill.c - eight processes append, four read with cursors that stay open, and one
 * compacts the store again and again, while one of them after the other is killed and started
 * again. Readers never see an error, and afterwards every acknowledged entry is there.
 */
#include "tests/lib/kit/store_kit.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "agentwal/admin.h"
#include "format/bytes/assert.h"

enum {
    WRITERS = 8,
    READERS = 4,
    PROCESSES = WRITERS + READERS + 1,
    SESSIONS = 4,
    SECONDS = 4,
    SECONDS_LONG = 60,
    PAUSE_MS = 250
};

struct counts {
    _Atomic uint32_t written[WRITERS]; /* acknowledged, of each writer */
    _Atomic uint32_t read;
    _Atomic uint32_t compactions;
    _Atomic uint32_t rewritten; /* segments */
    _Atomic uint32_t stop;
};

static bool is_stopped(struct counts *counts)
{
    return atomic_load(&counts->stop) != 0;
}

static struct wal_store *open_store(uint32_t flags)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_store *store = NULL;
    struct wal_error error = KIT_ERROR;

    while (wal_open("store", &options, &store, &error) != WAL_OK) {
        WAL__ASSERT(error.status == WAL_ELOCKED || error.status == WAL_EPOISONED);
    }
    return store;
}

static struct wal_session *open_session(struct wal_store *store, uint32_t number)
{
    struct wal_session *session = NULL;
    char id[16];

    (void)snprintf(id, sizeof(id), "s%u", number % SESSIONS);
    WAL__ASSERT(wal_session_open(store, kit_text(id), &session, NULL) == WAL_OK);
    return session;
}

/* Entries are numbered on over all lives; one of which the answer is not known is sent again. */
static void write_entries(struct counts *counts, uint32_t writer)
{
    struct wal_store *store = open_store(0);
    struct wal_session *session = open_session(store, writer);
    char payload[2048];

    memset(payload, 'x', sizeof(payload));
    payload[0] = '"';
    payload[sizeof(payload) - 2] = '"';
    payload[sizeof(payload) - 1] = '\0';
    while (!is_stopped(counts)) {
        uint32_t number = atomic_load(&counts->written[writer]);
        char id[32];
        struct wal_entry entry;
        enum wal_status status;

        (void)snprintf(id, sizeof(id), "e%u.%u", writer, number);
        entry = kit_entry(id, NULL, payload);
        status = wal_append(session, &entry, 1, NULL, NULL, NULL);
        if (status == WAL_OK) {
            atomic_store(&counts->written[writer], number + 1);
        } else {
            WAL__ASSERT(status == WAL_EPOISONED || status == WAL_ELOCKED);
        }
    }
    wal_session_close(session);
    (void)wal_close(store, NULL);
}

/* Reads a session from its beginning, with a pause in the middle. */
static void read_entries(struct counts *counts, uint32_t reader)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_store *store = open_store(reader % 2 == 0 ? 0 : WAL_OPEN_PREAD);
    struct wal_session *session = open_session(store, reader);

    while (!is_stopped(counts)) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_entry_cursor *cursor = NULL;
        struct wal_error error = KIT_ERROR;
        uint64_t last = 0;
        enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, &error);

        for (uint32_t i = 0; status == WAL_OK; i++) {
            if (i == 50) {
                (void)usleep(PAUSE_MS * 1000);
            }
            status = wal_entry_cursor_next(cursor, &entry, &error);
            if (status == WAL_OK) {
                WAL__ASSERT(entry.sequence > last && entry.payload.size > 0);
                last = entry.sequence;
            }
        }
        if (status != WAL_END && status != WAL_EPOISONED) {
            (void)fprintf(stderr, "reader %u: %d: %s (%s)\n", reader, status, error.text,
                          error.file);
            abort();
        }
        wal_entry_cursor_close(cursor);
        atomic_fetch_add(&counts->read, 1);
    }
    wal_session_close(session);
    (void)wal_close(store, NULL);
}

static void compact(struct counts *counts)
{
    struct wal_store *store = open_store(0);

    while (!is_stopped(counts)) {
        struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                    .dead_percent = 1};
        struct wal_store_compact_result result = {.struct_size = sizeof(result)};
        struct wal_error error = KIT_ERROR;
        enum wal_status status = wal_store_compact(store, &options, &result, &error);

        if (status != WAL_OK && status != WAL_EPOISONED && status != WAL_ELOCKED) {
            (void)fprintf(stderr, "compaction: %d: %s (%s)\n", status, error.text, error.file);
            abort();
        }
        atomic_fetch_add(&counts->compactions, status == WAL_OK);
        atomic_fetch_add(&counts->rewritten, (uint32_t)result.rewritten);
    }
    (void)wal_close(store, NULL);
}

static pid_t start(struct counts *counts, uint32_t number)
{
    pid_t child = kit_start_process();

    if (child != 0) {
        return child;
    }
    if (number < WRITERS) {
        write_entries(counts, number);
    } else if (number < WRITERS + READERS) {
        read_entries(counts, number - WRITERS);
    } else {
        compact(counts);
    }
    _exit(0);
}

/* Each of the acknowledged entries is there. */
static void check_writer(struct wal_store *store, uint32_t writer, uint32_t count)
{
    struct wal_session *session = open_session(store, writer);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    for (uint32_t i = 0; i < count; i++) {
        char id[32];

        (void)snprintf(id, sizeof(id), "e%u.%u", writer, i);
        assert_ok(wal_entry_cursor_get(cursor, kit_text(id), &entry, NULL));
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
}

static bool is_long(void)
{
    const char *text = getenv("AGENTWAL_LONG");

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0;
}

static void stop(struct counts *counts, const pid_t *children)
{
    int how;

    atomic_store(&counts->stop, 1);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
}

KIT_TEST(compact_kill__nothing_acknowledged_is_lost)
{
    struct counts *counts =
        mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct wal_store *store = kit_store();
    uint32_t kills = 1000 / PAUSE_MS * (is_long() ? SECONDS_LONG : SECONDS);
    uint64_t seed = kit_seed();
    pid_t children[PROCESSES];
    int how;

    assert_true(counts != MAP_FAILED);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%u", i);
        wal_session_close(kit_create(store, id));
    }
    kit_close(store);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = start(counts, i);
    }
    for (uint32_t i = 0; i < kills; i++) {
        uint32_t victim = (uint32_t)(kit_random(&seed) % PROCESSES);

        (void)usleep(PAUSE_MS * 1000);
        assert_int_equal(kill(children[victim], SIGKILL), 0);
        assert_int_equal(waitpid(children[victim], &how, 0), children[victim]);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        children[victim] = start(counts, victim);
    }
    /* On a slow machine each one may have been killed. */
    while (atomic_load(&counts->rewritten) == 0) {
        (void)usleep(PAUSE_MS * 1000);
    }
    stop(counts, children);
    for (int i = 0; i < 2; i++) {
        store = kit_open("store", i == 0 ? 0 : WAL_OPEN_PREAD);
        for (uint32_t k = 0; k < WRITERS; k++) {
            check_writer(store, k, atomic_load(&counts->written[k]));
        }
        kit_close(store);
    }
    print_message("%u compactions of %u segments, %u reads\n", atomic_load(&counts->compactions),
                  atomic_load(&counts->rewritten), atomic_load(&counts->read));
    assert_int_equal(munmap(counts, sizeof(*counts)), 0);
}
