/*
 * test_store_redacted.c - tests of redacted entries, also of those that are redacted while a cursor
 * is open.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/io.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/reading_kit.h"

/* ------------------------------------------------- redacted on the way --- */

/* Another handle of the store behaves like another process. */
KIT_TEST(open_cursor__redaction_by_another_is_seen_by_block)
{
    struct reading reading = reading_begin();
    struct wal_store *other = kit_open("store", 0);
    struct wal_session *session = kit_session(other, "s");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor;
    char last[16];

    for (int i = 0; i < 600; i++) {
        (void)snprintf(last, sizeof(last), "e%d", i);
        kit_append(reading.session, last, NULL);
    }
    cursor = reading_open(reading.session, 0, 0);
    reading_assert_next(cursor, "e0", "", 0);
    reading_redact(session, "e300", "");
    reading_redact(session, "e599", "");
    for (int i = 1; i < 599; i++) {
        if (i == 300) {
            continue;
        }
        (void)snprintf(last, sizeof(last), "e%d", i);
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_slice(entry.id, last);
    }
    reading_assert_end(cursor);
}

/* Repeats the call while it fails with WAL_ENOMEM, allowing one more allocation each time. */
static enum wal_status next_with_retries(struct faulty_heap *faulty,
                                         struct wal_entry_cursor *cursor, struct wal_entry *entry)
{
    enum wal_status status = WAL_ENOMEM;

    for (uint64_t nth = 1; status == WAL_ENOMEM; nth++) {
        uint64_t left = wal_entry_cursor_remaining(cursor);

        faulty_heap_fail(faulty, nth, true);
        status = wal_entry_cursor_next(cursor, entry, NULL);
        faulty_heap_fail(faulty, 0, false);
        if (status == WAL_ENOMEM) {
            assert_true(wal_entry_cursor_remaining(cursor) <= left);
        }
    }
    return status;
}

KIT_TEST(open_cursor__continues_when_memory_is_available)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE | WAL_OPEN_PREAD};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct faulty_heap faulty;
    struct reading reading;

    faulty_heap_init(&faulty, &wal__heap_libc);
    assert_ok(
        wal__store_open("store", &options, &faulty.heap, &wal__io_posix, &reading.store, NULL));
    reading.session = kit_create(reading.store, "s");
    kit_append_all(reading.session, "a b c d e");
    for (uint32_t shows = 0; shows < 2; shows++) {
        struct wal_entry_cursor *cursor =
            reading_open(reading.session, 0, shows * WAL_ENTRY_CURSOR_REDACTED);
        char given[32] = "";

        reading_assert_next(cursor, "a", "", 0);
        if (shows == 0) {
            reading_redact(reading.session, "b", "one");
            reading_redact(reading.session, "d", "two");
        }
        while (next_with_retries(&faulty, cursor, &entry) == WAL_OK) {
            (void)strncat(given, entry.parent_id.data, (size_t)entry.parent_id.size);
            (void)strncat(given, entry.id.data, (size_t)entry.id.size);
        }
        assert_string_equal(given, shows == 0 ? "acce" : "abbccdde");
        reading_assert_end(cursor);
    }
    reading_deinit(&reading);
    assert_true(faulty.failures > 0);
    assert_int_equal(faulty.live, 0);
}

/* The list of what is left grows more than once. */
KIT_TEST(open_cursor__failed_refresh_frees_what_it_collected)
{
    enum { COUNT = 200 };
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = WAL_OPEN_CREATE};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct faulty_heap faulty;
    struct reading reading;
    struct wal_entry_cursor *cursor;
    uint32_t given = 1;
    char id[16];

    faulty_heap_init(&faulty, &wal__heap_libc);
    assert_ok(
        wal__store_open("store", &options, &faulty.heap, &wal__io_posix, &reading.store, NULL));
    reading.session = kit_create(reading.store, "s");
    for (int i = 0; i < COUNT; i++) {
        snprintf(id, sizeof(id), "e%d", i);
        kit_append_all(reading.session, id);
    }
    cursor = reading_open(reading.session, 0, 0);
    reading_assert_next(cursor, "e0", "", 0);
    for (int i = 1; i < COUNT; i += 2) {
        snprintf(id, sizeof(id), "e%d", i);
        reading_redact(reading.session, id, "");
    }
    while (next_with_retries(&faulty, cursor, &entry) == WAL_OK) {
        given++;
    }
    assert_int_equal(given, COUNT / 2);
    wal_entry_cursor_close(cursor);
    reading_deinit(&reading);
    assert_in_range(faulty.failures, 3, UINT64_MAX);
    assert_int_equal(faulty.live, 0);
}

/* ----------------------------------------------------------- at random --- */

enum { COUNT = 700, ROUNDS = 40 };

/* The session as readers must see it: a branch of stream 0, in order. */
struct model {
    bool delta[COUNT];
    bool redacted[COUNT];
    bool left_out[COUNT]; /* hidden when the cursor was asked */
    uint64_t random;
};

/* By an entry with an id that is made. */
static void redact_anew(struct wal_session *session, const char *id)
{
    struct wal_entry entry;
    char payload[64];

    (void)snprintf(payload, sizeof(payload), "{\"targetEntryId\":\"%s\"}", id);
    entry = kit_entry(NULL, NULL, payload);
    entry.type = kit_text("redaction");
    entry.stream = 9;
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
}

static bool hides(const struct model *model, int i, uint32_t flags)
{
    return (model->delta[i] && (flags & WAL_ENTRY_CURSOR_DELTAS) == 0) ||
           (model->redacted[i] && (flags & WAL_ENTRY_CURSOR_REDACTED) == 0);
}

static void append_tree(struct model *model, struct reading *reading)
{
    struct wal_session *fork;
    char id[16];

    for (int i = 0; i < COUNT; i++) {
        if (i == COUNT / 2) {
            (void)snprintf(id, sizeof(id), "%d", i - 1);
            fork = kit_fork(reading->session, id, "f");
            reading_deltas(reading->session, "unseen");
            wal_session_close(reading->session);
            reading->session = fork;
        }
        (void)snprintf(id, sizeof(id), "%d", i);
        /* Runs of deltas, and of other entries. */
        model->delta[i] = kit_random(&model->random) % 8 < (i / 50 % 2 == 0 ? 1u : 6u);
        if (model->delta[i]) {
            reading_deltas(reading->session, id);
        } else {
            reading_append(reading->session, id, NULL, "message", "{}");
        }
        if (i % 90 == 0) { /* a separate run, off the branch */
            struct wal_entry entry = kit_entry(NULL, id, "{}");

            entry.flags = WAL_ENTRY_HEAD_KEEP;
            assert_ok(kit_try_append(reading->session, &entry, NULL, NULL));
        }
    }
}

static void note_hidden(struct model *model, uint32_t flags)
{
    for (int i = 0; i < COUNT; i++) {
        model->left_out[i] |= hides(model, i, flags);
    }
}

/* Checks that the entry is the next one after `at` that was never hidden; returns its position. Its
 * parent is the nearest of these, or one that was shown again. */
static int check_entry(const struct model *model, const struct wal_entry *entry, int at,
                       uint32_t flags)
{
    char id[16];
    int above;

    do {
        at++;
        assert_in_range(at, 0, COUNT - 1);
    } while (model->left_out[at]);
    (void)snprintf(id, sizeof(id), "%d", at);
    assert_slice(entry->id, id);
    assert_int_equal(entry->depth, at);
    assert_int_equal((entry->flags & WAL_ENTRY_REDACTED) != 0, model->redacted[at]);
    (void)snprintf(id, sizeof(id), "%.*s", (int)entry->parent_id.size,
                   (const char *)entry->parent_id.data);
    above = id[0] == '\0' ? -1 : atoi(id);
    assert_in_range(above + 1, 0, at);
    for (int i = above + 1; i < at; i++) {
        assert_true(model->left_out[i]);
    }
    assert_true(above < 0 || !hides(model, above, flags));
    return at;
}

static uint64_t count_left(const struct model *model, int at)
{
    uint64_t count = 0;

    for (at = at + 1; at < COUNT; at++) {
        count += !model->left_out[at];
    }
    return count;
}

/* Reads a branch while some of it is redacted. */
static void read_on(struct model *model, struct wal_session *session, uint32_t flags)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = reading_open(session, 0, flags);
    enum wal_status status;
    int at = -1;

    memset(model->left_out, 0, sizeof(model->left_out));
    note_hidden(model, flags);
    assert_int_equal(wal_entry_cursor_remaining(cursor), count_left(model, at));
    for (;;) {
        if (kit_random(&model->random) % 100 == 0) {
            int target = (int)(kit_random(&model->random) % COUNT);
            char id[16];

            (void)snprintf(id, sizeof(id), "%d", target);
            for (int i = 0; kit_random(&model->random) % 4 == 0; i++) {
                /* One that is redacted, near it. */
                int other = (target + i) % COUNT;

                if (model->redacted[other]) {
                    (void)snprintf(id, sizeof(id), "%d", other);
                    assert_ok(wal_session_unredact(session, kit_text(id), NULL));
                    model->redacted[other] = false;
                }
            }
            (void)snprintf(id, sizeof(id), "%d", target);
            redact_anew(session, id);
            model->redacted[target] = true;
        }
        note_hidden(model, flags);
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        if (status != WAL_OK) {
            break;
        }
        at = check_entry(model, &entry, at, flags);
        assert_int_equal(wal_entry_cursor_remaining(cursor), count_left(model, at));
    }
    assert_int_equal(status, WAL_END);
    assert_int_equal(count_left(model, at), 0);
    wal_entry_cursor_close(cursor);
}

KIT_TEST(random__branches_while_entries_are_redacted)
{
    struct model model = {.random = kit_seed()};
    struct reading reading = reading_begin();

    append_tree(&model, &reading);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        read_on(&model, reading.session, round % 4 * WAL_ENTRY_CURSOR_DELTAS);
        if (round == ROUNDS / 2) {
            wal_session_close(reading.session);
            kit_close(reading.store);
            reading.store = kit_open("store", WAL_OPEN_PREAD);
            reading.session = kit_session(reading.store, "f");
        }
    }
}

/* ---------------------------------------------------------- threads --- */

enum { REDACTIONS = 300 };

struct racing {
    struct wal_session *session;
    _Atomic uint32_t acknowledged; /* entries 0 to this one are redacted */
};

static void *redact_all(void *arg)
{
    struct racing *racing = arg;

    for (uint32_t i = 0; i < REDACTIONS; i++) {
        struct wal_entry entry;
        struct wal_append_options options = {.struct_size = sizeof(options),
                                             .durability = WAL_WRITTEN};
        char payload[64];

        (void)snprintf(payload, sizeof(payload), "{\"targetEntryId\":\"%u\"}", i);
        entry = kit_entry(NULL, NULL, payload);
        entry.type = kit_text("redaction");
        if (wal_append(racing->session, &entry, 1, &options, NULL, NULL) != WAL_OK) {
            break;
        }
        atomic_store(&racing->acknowledged, i + 1);
    }
    return NULL;
}

KIT_TEST(threads__entry_redacted_before_the_call_is_not_returned)
{
    struct reading reading = reading_begin();
    struct racing racing = {.session = reading.session};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    uint32_t before = 0;
    pthread_t thread;

    for (int i = 0; i < REDACTIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "%d", i);
        kit_append(reading.session, id, NULL);
    }
    assert_int_equal(pthread_create(&thread, NULL, redact_all, &racing), 0);
    while (before < REDACTIONS) {
        struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                   .mode = before % 2,
                                                   .up_to =
                                                       kit_text(before % 2 == 0 ? "299" : NULL)};
        struct wal_entry_cursor *cursor = NULL;
        uint32_t given = 0;
        bool more;

        assert_ok(wal_entry_cursor_open(reading.session, &options, &cursor, NULL));
        do {
            before = atomic_load(&racing.acknowledged);
            more = wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK &&
                   !kit_slice_is(entry.type, "redaction");
            if (more) {
                given = (uint32_t)strtoul(entry.id.data, NULL, 10);
                assert_true(given >= before);
            }
        } while (more && given + 1 < REDACTIONS);
        wal_entry_cursor_close(cursor);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}
