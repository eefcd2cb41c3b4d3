/*
 * test_store_shown.c - what a handle for reading has shown stays: next to writers and compactions
 * that are killed, no later read of it, nor of a handle that is opened later, shows fewer entries,
 * an older head, title or sequence number, or a session less. Nothing is deleted and nothing is
 * redacted.
 *
 * AGENTWAL_SEED repeats the choices, not the moments; AGENTWAL_STEPS is the number of looks.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "agentwal/admin.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"

enum {
    SESSIONS = 4,
    LOOKS = 300,
    LOOKS_MIN = 20,
    SECONDS_MAX = 20, /* of the looks after those: on a machine that has much to
                       * do the writers get further than the reader can read */
    LOOKS_OF_HANDLE = 20,
    LIFE_MAX_US = 60000, /* of a process before it is killed */
    PAUSE_MAX_US = 4000  /* between two looks */
};

static const char *const names[SESSIONS] = {"a", "b", "c", "d"};

/* --- the processes that write ------------------------------------------- */

/* The number in the id of an entry or in a title; 0: there is none. */
static uint64_t number_of(struct wal_slice text)
{
    char copy[32];

    (void)snprintf(copy, sizeof(copy), "%.*s", (int)text.size, (const char *)text.data);
    return strtoull(copy[0] == '\0' ? copy : copy + 1, NULL, 10);
}

static int32_t raise_title(void *ctx, const struct wal_session_info *now,
                           struct wal_session_change *change)
{
    char *title = ctx;

    (void)snprintf(title, 32, "t%llu", (unsigned long long)number_of(now->title) + 1);
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text(title);
    return 0;
}

static void write_once(struct wal_session *session, uint64_t *random)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = (uint32_t)(kit_random(random) % 3)};
    struct wal_entry entry;
    char text[32];

    if (kit_random(random) % 8 == 0) {
        WAL__ASSERT(wal_session_update(session, raise_title, text, NULL) == WAL_OK);
        return;
    }
    WAL__ASSERT(wal_session_get_info(session, &info, NULL) == WAL_OK);
    (void)snprintf(text, sizeof(text), "e%llu", (unsigned long long)number_of(info.head) + 1);
    entry = kit_entry(text, NULL, "{\"a\":1}");
    WAL__ASSERT(wal_append(session, &entry, 1, &options, NULL, NULL) == WAL_OK);
}

/* Ends when it is killed. */
static void run_writer(uint64_t random)
{
    struct wal_session *sessions[SESSIONS] = {NULL};
    struct wal_store *store = kit_open("store", random % 2 == 0 ? 0 : WAL_OPEN_PREAD);

    while (true) {
        const size_t i = kit_random(&random) % SESSIONS;

        if (sessions[i] == NULL &&
            wal_session_open(store, kit_text(names[i]), &sessions[i], NULL) != WAL_OK) {
            sessions[i] = kit_create(store, names[i]);
        }
        write_once(sessions[i], &random);
    }
}

/* Ends when it is killed. */
static void run_compactor(uint64_t random)
{
    struct wal_store *store = kit_open("store", 0);

    while (true) {
        const struct wal_store_compact_options options = {
            .struct_size = sizeof(options),
            .flags = random % 2 == 0 ? WAL_STORE_COMPACT_ERASE : 0U,
            .rate = UINT64_MAX};

        WAL__ASSERT(wal_store_compact(store, &options, NULL, NULL) == WAL_OK);
        (void)usleep((useconds_t)(kit_random(&random) % PAUSE_MAX_US));
    }
}

/* Starts writers and compactions, and kills them, until it is killed. */
static void run_killer(uint64_t random)
{
    pid_t children[2] = {0, 0};

    while (true) {
        const size_t i = kit_random(&random) % 2;

        if (children[i] != 0) {
            WAL__ASSERT(kill(children[i], SIGKILL) == 0 &&
                        waitpid(children[i], NULL, 0) == children[i]);
        }
        children[i] = kit_start_process();
        if (children[i] == 0) {
            (i == 0 ? run_writer : run_compactor)(random);
        }
        (void)usleep((useconds_t)(kit_random(&random) % LIFE_MAX_US));
    }
}

/* --- the reader --------------------------------------------------------- */

/* What was shown of a session. */
struct shown {
    bool exists;
    uint64_t entries;
    uint64_t sequence;
    uint64_t head;
    uint64_t title;
    uint64_t last; /* entry that a cursor returned */
};

static void raise_to(uint64_t *shown, uint64_t now, const char *name, const char *what)
{
    if (now < *shown) {
        fail_msg("session %s: %s was %llu, and is %llu", name, what, (unsigned long long)*shown,
                 (unsigned long long)now);
    }
    *shown = now;
}

static void read_cursor(struct wal_session *session, struct shown *shown, const char *name)
{
    struct wal_entry_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;
    uint64_t count = 0;
    uint64_t last = 0;
    enum wal_status status = wal_entry_cursor_open(session, NULL, &cursor, &error);

    while (status == WAL_OK) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};

        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK) {
            count++;
            last = number_of(entry.id);
        }
    }
    if (status != WAL_END) {
        fail_msg("session %s: %s", name, error.text);
    }
    assert_int_equal(count, last); /* none is left out */
    raise_to(&shown->last, last, name, "the last entry");
    wal_entry_cursor_close(cursor);
}

static void look(struct wal_store *store, struct wal_session **session, struct shown *shown,
                 const char *name)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = KIT_ERROR;
    enum wal_status status = WAL_OK;

    if (*session == NULL) {
        status = wal_session_open(store, kit_text(name), session, &error);
    }
    if (status == WAL_ENOTFOUND && !shown->exists) {
        return;
    }
    if (status == WAL_OK) {
        status = wal_session_get_info(*session, &info, &error);
    }
    if (status != WAL_OK) {
        fail_msg("session %s: %s", name, error.text);
    }
    shown->exists = true;
    raise_to(&shown->entries, info.entries, name, "the number of entries");
    raise_to(&shown->sequence, info.last_sequence, name, "the sequence");
    raise_to(&shown->head, number_of(info.head), name, "the head");
    raise_to(&shown->title, number_of(info.title), name, "the title");
    read_cursor(*session, shown, name);
}

static void read_shown(uint32_t flags)
{
    uint64_t random = kit_seed();
    const char *steps = getenv("AGENTWAL_STEPS");
    const int looks = steps == NULL ? LOOKS : atoi(steps);
    struct shown shown[SESSIONS] = {{.exists = false}};
    struct wal_session *sessions[SESSIONS] = {NULL};
    struct wal_store *store = NULL;
    const time_t end = time(NULL) + SECONDS_MAX;
    pid_t killer;

    kit_close(kit_store());
    killer = kit_start_process();
    if (killer == 0) {
        run_killer(random);
    }
    for (int i = 0; i < looks && (steps != NULL || i < LOOKS_MIN || time(NULL) < end); i++) {
        if (store == NULL) {
            store = kit_open("store", WAL_OPEN_READ_ONLY | flags);
        }
        for (size_t k = 0; k < SESSIONS; k++) {
            look(store, &sessions[k], &shown[k], names[k]);
        }
        if ((i + 1) % LOOKS_OF_HANDLE == 0) {
            for (size_t k = 0; k < SESSIONS; k++) {
                wal_session_close(sessions[k]);
                sessions[k] = NULL;
            }
            kit_close(store);
            store = NULL;
        }
        (void)usleep((useconds_t)(kit_random(&random) % PAUSE_MAX_US));
    }
    for (size_t k = 0; k < SESSIONS; k++) {
        print_message("%s: %llu entries, title %llu\n", names[k],
                      (unsigned long long)shown[k].entries, (unsigned long long)shown[k].title);
    }
    assert_int_equal(kill(killer, SIGKILL), 0);
    assert_int_equal(waitpid(killer, NULL, 0), killer);
    for (size_t k = 0; k < SESSIONS; k++) {
        wal_session_close(sessions[k]);
    }
    if (store != NULL) {
        kit_close(store);
    }
}

KIT_TEST(shown__stays_in_maps)
{
    read_shown(0);
}

KIT_TEST(shown__stays_without_maps)
{
    read_shown(WAL_OPEN_PREAD);
}
