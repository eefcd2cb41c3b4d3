/*
 * test_store_races.c - tests of concurrent threads with conditional or atomic calls: changes of
 * metadata, documents and heads with an expected version, batches, redactions, deletions, forks,
 * pages of lists and scans.
 */
#include "tests/lib/stress/stress.h"

#include <stdatomic.h>

#include "format/bytes/assert.h"

enum { WORKERS = 4, READERS = 2, ROUNDS = 40, SECRETS = 160 };

struct race {
    struct wal_store *store;
    struct wal_session *session;
    _Atomic uint64_t made; /* the newest that was acknowledged */
    _Atomic uint64_t lost; /* how often another thread was first */
    _Atomic uint64_t clock;
    _Atomic uint64_t redacted[SECRETS]; /* when, by the clock; 0: not yet */
    _Atomic bool inside;
    uint64_t guarded; /* accessed only by the lock's holder */
};

static void begin(struct race *race, uint32_t flags)
{
    memset(race, 0, sizeof(*race));
    race->store = kit_open("store", WAL_OPEN_CREATE | flags);
    race->session = kit_create(race->store, "s");
}

static void end(struct race *race)
{
    wal_session_close(race->session);
    kit_close(race->store);
}

static void again(struct race *race)
{
    end(race);
    race->store = kit_open("store", 0);
    race->session = kit_session(race->store, "s");
}

/* ---------------------------------------------------------- counters --- */

/* Every other worker uses separate handles, some of them short-lived. */
static void count_metadata(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;

    for (int i = 0; i < ROUNDS; i++) {
        if (stress_thread->number % 2 == 1 && i % 8 == 0) {
            struct wal_store *store = stress_open(0);
            struct wal_session *session = stress_session(store, "s");

            stress_increment_metadata(session);
            stress_close(store, session);
        } else {
            stress_increment_metadata(race->session);
        }
        atomic_fetch_add(&race->made, 1);
    }
}

static void watch_metadata(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;
    struct wal_session *session = stress_session(race->store, "s");
    uint64_t least = atomic_load(&race->made);

    WAL__ASSERT(stress_read_metadata(session) >= least);
    wal_session_close(session);
}

KIT_TEST(races__every_change_of_metadata_counts_once)
{
    struct race race;

    begin(&race, 0);
    (void)stress_run_threads(&race, count_metadata, WORKERS, watch_metadata, READERS);
    assert_int_equal(stress_read_metadata(race.session), WORKERS * ROUNDS);
    again(&race);
    assert_int_equal(stress_read_metadata(race.session), WORKERS * ROUNDS);
}

/* Another call first writes the same bytes that the outer one will write. */
static int32_t count_inside(void *ctx, const struct wal_session_info *now,
                            struct wal_session_change *change)
{
    struct race *race = ctx;

    if (race->guarded++ == 0) {
        stress_increment_metadata(race->session);
    }
    change->fields = WAL_CHANGE_METADATA;
    change->metadata =
        kit_text(stress_parse_number(now->metadata) == 0 ? "{\"n\":1}" : "{\"n\":2}");
    return 0;
}

KIT_TEST(races__change_repeated_after_an_equal_one)
{
    struct race race;
    struct wal_error error = KIT_ERROR;

    begin(&race, 0);
    stress_check(wal_session_update(race.session, count_inside, &race, &error), &error,
                 "wal_session_update");
    assert_int_equal(race.guarded, 2);
    assert_int_equal(stress_read_metadata(race.session), 2);
}

static void add_to_documents(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;

    for (int i = 0; i < ROUNDS; i++) {
        bool of_store = (i + stress_thread->number) % 2 == 0;
        struct wal_session *session = of_store ? NULL : race->session;
        uint64_t lost =
            stress_increment_doc(race->store, session, "counter", stress_thread->number);

        atomic_fetch_add(&race->lost, lost);
    }
}

static void watch_documents(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;
    uint64_t least = 0;
    uint64_t version = 0;

    for (int i = 0; i < 10; i++) {
        uint64_t before = version;
        uint64_t number = stress_read_doc(race->store, race->session, "counter", &version);

        WAL__ASSERT(number >= least && version >= before);
        WAL__ASSERT((number == least) == (version == before));
        least = number;
    }
}

static void add_documents(uint32_t flags)
{
    struct race race;

    begin(&race, flags);
    (void)stress_run_threads(&race, add_to_documents, WORKERS, watch_documents, READERS);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(stress_read_doc(race.store, NULL, "counter", NULL), WORKERS * ROUNDS / 2);
        assert_int_equal(stress_read_doc(race.store, race.session, "counter", NULL),
                         WORKERS * ROUNDS / 2);
        assert_int_equal(kit_info(race.session).documents, WORKERS * ROUNDS / 2);
        if (flags == 0) {
            again(&race);
        }
    }
    print_message("%llu puts came too late\n", (unsigned long long)atomic_load(&race.lost));
    end(&race);
}

KIT_TEST(races__every_expected_put_counts_once)
{
    add_documents(0);
}

KIT_TEST(races__the_same_in_memory)
{
    add_documents(WAL_OPEN_MEMORY);
}

/* -------------------------------------------------------------- lock --- */

static void hold_lock(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;

    for (int i = 0; i < ROUNDS / 2; i++) {
        while (!stress_try_lock(race->session, stress_thread->number)) {
            atomic_fetch_add(&race->lost, 1);
            usleep((useconds_t)(kit_random(&stress_thread->random) % 500));
        }
        WAL__ASSERT(!atomic_exchange(&race->inside, true));
        race->guarded++;
        atomic_store(&race->inside, false);
        stress_unlock(race->session, stress_thread->number);
    }
}

KIT_TEST(races__head_is_a_lock)
{
    struct race race;

    begin(&race, 0);
    kit_append_all(race.session, "w0 w1 w2 w3");
    (void)stress_run_threads(&race, hold_lock, WORKERS, NULL, 0);
    assert_int_equal(race.guarded, WORKERS * ROUNDS / 2);
    assert_true(stress_try_lock(race.session, 0));
    assert_false(stress_try_lock(race.session, 1));
}

/* ------------------------------------------------------------- turns --- */

static void make_turns(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number = stress_write_turn(race->store, race->session, stress_thread->number);
        uint64_t made = atomic_load(&race->made);

        while (made < number && !atomic_compare_exchange_weak(&race->made, &made, number)) {
        }
    }
}

/* One reader uses a separate handle. */
static void check_turns(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;
    struct wal_store *store = race->store;
    struct wal_session *session = race->session;
    uint64_t last = 0;
    int looks = 0;

    if (stress_thread->number == 1) {
        store = stress_open(WAL_OPEN_READ_ONLY);
        session = stress_session(store, "s");
    }
    do {
        uint64_t least = atomic_load(&race->made);

        last = stress_check_turn(store, session, least > last ? least : last);
    } while (++looks < 10);
    if (stress_thread->number == 1) {
        stress_close(store, session);
    }
}

KIT_TEST(races__batch_is_seen_whole_or_not_at_all)
{
    struct race race;
    uint64_t reads;

    begin(&race, 0);
    reads = stress_run_threads(&race, make_turns, WORKERS - 1, check_turns, READERS);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(stress_check_turn(race.store, race.session, 0), (WORKERS - 1) * ROUNDS);
        again(&race);
    }
    assert_true(reads >= READERS);
}

/* -------------------------------------------------------- redactions --- */

static void redact_one(struct race *race, struct wal_session *session, uint64_t which)
{
    struct wal_error error = KIT_ERROR;
    char id[16];

    (void)snprintf(id, sizeof(id), "e%03d", (int)which);
    stress_check(wal_session_redact(session, kit_text(id), kit_text("why"), NULL, &error), &error,
                 id);
    atomic_store(&race->redacted[which], atomic_fetch_add(&race->clock, 1) + 1);
}

/* Each redacts its share except every fourth entry, in a different order; every other one through
 * the fork. */
static void redact_some(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;
    uint64_t step = 2 * (kit_random(&stress_thread->random) % 16) + 1;
    uint64_t share = SECRETS / 2;
    struct wal_session *session = race->session;

    if (stress_thread->number == 1) {
        session = stress_session(race->store, "f");
    }
    for (uint64_t i = 0; i < share; i++) {
        /* 5 divides the share: an odd step that 5 does not divide takes all */
        uint64_t at = i * (step % 5 == 0 ? step + 2 : step) % share;
        uint64_t which = 2 * at + (uint64_t)stress_thread->number;

        if (which % 8 < 6) {
            redact_one(race, session, which);
        }
    }
    if (stress_thread->number == 1) {
        wal_session_close(session);
    }
}

static bool has_secret(struct wal_slice payload)
{
    return memmem(payload.data, payload.size, "secret", 6) != NULL;
}

/* Whether a reader that began at clock `now` may return this entry with its content. */
static void check_secret(struct race *race, const struct wal_entry *entry, uint64_t now)
{
    uint64_t stamp;
    char id[16] = "";

    if (!kit_slice_is(entry->type, "message")) {
        return; /* a redaction */
    }
    WAL__ASSERT(entry->id.size < sizeof(id));
    memcpy(id, entry->id.data, entry->id.size);
    stamp = atomic_load(&race->redacted[strtoul(id + 1, NULL, 10)]);
    if (stamp != 0 && stamp <= now) {
        WAL__ASSERT((entry->flags & WAL_ENTRY_REDACTED) != 0);
    }
    WAL__ASSERT(has_secret(entry->payload) == ((entry->flags & WAL_ENTRY_REDACTED) == 0));
}

static void get_secret(struct race *race, struct wal_entry_cursor *cursor, uint64_t which)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    bool redacted = atomic_load(&race->redacted[which]) != 0;
    enum wal_status status;
    char id[16];

    (void)snprintf(id, sizeof(id), "e%03d", (int)which);
    status = wal_entry_cursor_get(cursor, kit_text(id), &entry, &error);
    if (status == WAL_EREDACTED) {
        return;
    }
    stress_check(status, &error, id);
    WAL__ASSERT(!redacted && has_secret(entry.payload));
}

static void read_secrets(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;
    uint64_t random = kit_random(&stress_thread->random);
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .mode = random >> 20 & 1,
                                               .flags = random >> 21 & 1 ? WAL_ENTRY_CURSOR_REDACTED
                                                                         : 0};
    struct wal_session *session = stress_session(race->store, random >> 22 & 1 ? "s" : "f");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;
    int count = 0;

    stress_check(wal_entry_cursor_open(session, &options, &cursor, &error), &error,
                 "wal_entry_cursor_open");
    do {
        uint64_t now = atomic_load(&race->clock);

        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK) {
            check_secret(race, &entry, now);
            count += kit_slice_is(entry.type, "message") ? 1 : 0;
        }
        if (options.flags == 0 && random >> 23 & 1) {
            get_secret(race, cursor, kit_random(&stress_thread->random) % SECRETS);
        }
    } while (status == WAL_OK);
    WAL__ASSERT(status == WAL_END);
    WAL__ASSERT(options.flags == 0 ? count >= SECRETS / 4 : count == SECRETS);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
}

static void append_secrets(struct race *race)
{
    for (int i = 0; i < SECRETS; i++) {
        char payload[32];
        char id[16];

        (void)snprintf(id, sizeof(id), "e%03d", i);
        (void)snprintf(payload, sizeof(payload), "{\"secret\":%d}", i);

        struct wal_entry entry = kit_entry(id, NULL, payload);

        assert_ok(kit_try_append(race->session, &entry, NULL, NULL));
    }
}

static void redact(uint32_t flags)
{
    struct race race;

    begin(&race, flags);
    append_secrets(&race);
    wal_session_close(kit_fork(race.session, NULL, "f"));
    (void)stress_run_threads(&race, redact_some, 2, read_secrets, READERS);
    assert_int_equal(atomic_load(&race.clock), SECRETS * 3 / 4);
    again(&race);
    /* and the redactions made in the session itself */
    assert_int_equal(kit_info(race.session).entries, SECRETS + SECRETS * 3 / 8);
    for (int i = 0; i < 8; i++) {
        struct stress_thread late = {.ctx = &race, .random = (uint64_t)i << 40 | 1};

        read_secrets(&late);
    }
    end(&race);
}

KIT_TEST(races__redacted_entry_is_not_returned)
{
    redact(0);
}

KIT_TEST(races__redacted_entry_is_not_returned_by_pread)
{
    redact(WAL_OPEN_PREAD);
}

/* ---------------------------------------------------------- one place --- */

/* Creates the session "x", is its only writer, and deletes it. */
static void append_contended_id(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text("x")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < ROUNDS / 2;) {
        struct wal_session *session = NULL;
        enum wal_status status = wal_session_create(race->store, &options, &session, &error);

        if (status == WAL_EEXISTS) {
            atomic_fetch_add(&race->lost, 1);
            usleep((useconds_t)(kit_random(&stress_thread->random) % 500));
            continue;
        }
        stress_check(status, &error, "wal_session_create");
        WAL__ASSERT(!atomic_exchange(&race->inside, true));
        race->guarded++;
        WAL__ASSERT(stress_increment_doc(race->store, session, "n", stress_thread->number) == 0);
        WAL__ASSERT(stress_read_doc(race->store, session, "n", NULL) == 1);
        stress_increment_metadata(session);
        WAL__ASSERT(stress_read_metadata(session) == 1);
        WAL__ASSERT(stress_write_turn(race->store, session, stress_thread->number) == 1);
        atomic_store(&race->inside, false);
        stress_check(wal_session_delete(session, &error), &error, "delete");
        WAL__ASSERT(wal_session_delete(session, NULL) == WAL_ENOTFOUND);
        WAL__ASSERT(wal_session_get_info(session, &info, NULL) == WAL_ENOTFOUND);
        wal_session_close(session);
        i++;
    }
}

/* An open session shows one incarnation of the id and nothing of others. */
static void check_contended_id(struct stress_thread *stress_thread)
{
    struct race *race = stress_thread->ctx;
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(race->store, kit_text("x"), &session, &error);
    uint64_t least = 0;

    if (status == WAL_ENOTFOUND) {
        return;
    }
    stress_check(status, &error, "wal_session_open");
    while ((status = wal_session_get_info(session, &info, &error)) == WAL_OK) {
        WAL__ASSERT(info.entries == 0 || info.entries == 2);
        WAL__ASSERT(info.documents == 0 || info.documents == 1 || info.documents == 3);
        WAL__ASSERT((info.documents == 3) == (info.entries == 2));
        WAL__ASSERT(stress_parse_number(info.metadata) <= 1);
        WAL__ASSERT(info.documents >= least);
        least = info.documents;
    }
    WAL__ASSERT(status == WAL_ENOTFOUND);
    wal_session_close(session);
}

KIT_TEST(races__id_is_used_by_one_at_a_time)
{
    struct race race;

    begin(&race, 0);
    (void)stress_run_threads(&race, append_contended_id, 3, check_contended_id, READERS);
    assert_int_equal(race.guarded, 3 * ROUNDS / 2);
    again(&race);
    wal_session_close(kit_create(race.store, "x"));
}
