/*
 * test_store_process_parts.c - tests of concurrent processes with conditional
 * or atomic calls, and of processes that only read: they see documents, heads,
 * batches, redactions and deletions of others.
 */
#include "tests/lib/stress/stress_processes.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "format/bytes/assert.h"

enum {
    WRITERS = 3,
    READERS = 2,
    ROUNDS = 40,
    LIVES = 40,
    PAIRS = 150
};

/* ---------------------------------------------------------- counters --- */

static void increment_counters(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(0);
    uint64_t lost = 0;

    for (int i = 0; i < ROUNDS; i++) {
        stress_increment_metadata(stress_handle.session);
        lost += stress_increment_doc(stress_handle.store, stress_handle.session,
                                     "n", stress_process->number);
        lost += stress_increment_doc(stress_handle.store, NULL, "n",
                                     stress_process->number);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    atomic_fetch_add(&stress_process->stress_shared->lost, lost);
    stress_handle_close(&stress_handle);
}

/* Values that were seen once never decrease. */
static void watch(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(
        stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);
    uint64_t seen[3] = {0, 0, 0};

    for (int i = 0; i < 20; i++) {
        uint64_t now[3] = {
            stress_read_metadata(stress_handle.session),
            stress_read_doc(stress_handle.store, stress_handle.session, "n",
                            NULL),
            stress_read_doc(stress_handle.store, NULL, "n", NULL)};

        for (int k = 0; k < 3; k++) {
            WAL__ASSERT(now[k] >= seen[k]);
            seen[k] = now[k];
        }
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__every_change_counts_once)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;

    stress_run_processes(stress_shared, increment_counters, WRITERS, watch,
                         READERS);
    print_message("%" PRIu64 " puts came too late\n",
                  atomic_load(&stress_shared->lost));
    stress_handle = stress_handle_open(0);
    assert_int_equal(stress_read_metadata(stress_handle.session),
                     WRITERS * ROUNDS);
    assert_int_equal(
        stress_read_doc(stress_handle.store, stress_handle.session, "n", NULL),
        WRITERS * ROUNDS);
    assert_int_equal(stress_read_doc(stress_handle.store, NULL, "n", NULL),
                     WRITERS * ROUNDS);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* -------------------------------------------------------------- lock --- */

/* The lock guards a document that is put without an expected version. */
static void hold_lock(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);

    for (int i = 0; i < ROUNDS / 2; i++) {
        while (
            !stress_try_lock(stress_handle.session, stress_process->number)) {
            atomic_fetch_add(&stress_shared->lost, 1);
            usleep((useconds_t)(kit_random(&stress_process->random) % 500));
        }
        WAL__ASSERT(!atomic_exchange(&stress_shared->inside, true));
        stress_write_doc(stress_handle.store, stress_handle.session, "guarded",
                         stress_read_doc(stress_handle.store,
                                         stress_handle.session, "guarded",
                                         NULL) +
                             1,
                         stress_process->number);
        atomic_store(&stress_shared->inside, false);
        stress_unlock(stress_handle.session, stress_process->number);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__head_is_a_lock)
{
    struct stress_shared *stress_shared = stress_shared_create("w0 w1 w2");
    struct stress_handle stress_handle;

    stress_run_processes(stress_shared, hold_lock, WRITERS, NULL, 0);
    assert_true(atomic_load(&stress_shared->lost) > 0);
    stress_handle = stress_handle_open(0);
    assert_int_equal(stress_read_doc(stress_handle.store, stress_handle.session,
                                     "guarded", NULL),
                     WRITERS * ROUNDS / 2);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* ------------------------------------------------------------- turns --- */

static void make_turns(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number = stress_write_turn(
            stress_handle.store, stress_handle.session, stress_process->number);
        uint64_t made = atomic_load(&stress_shared->made);

        while (made < number && !atomic_compare_exchange_weak(
                                    &stress_shared->made, &made, number)) {
        }
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    stress_handle_close(&stress_handle);
}

/* One of the readers opens read-only: it follows live writers; without writers
 * it sees the state at its opening. */
static void check_turns(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    bool follows =
        stress_process->number != 0 || atomic_load(&stress_shared->live);
    uint64_t last = atomic_load(&stress_shared->made);
    struct stress_handle stress_handle = stress_handle_open(
        stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);

    for (int i = 0; i < 10; i++) {
        uint64_t least = follows ? atomic_load(&stress_shared->made) : last;

        last = stress_check_turn(stress_handle.store, stress_handle.session,
                                 least > last ? least : last);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__batch_is_seen_whole_or_not_at_all)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;
    pid_t holder;

    stress_run_processes(stress_shared, make_turns, WRITERS, check_turns,
                         READERS);
    holder = stress_start_holder(stress_shared);
    stress_run_processes(stress_shared, make_turns, WRITERS, check_turns,
                         READERS);
    stress_stop_holder(stress_shared, holder);
    stress_handle = stress_handle_open(0);
    assert_int_equal(
        stress_check_turn(stress_handle.store, stress_handle.session, 0),
        2 * WRITERS * ROUNDS);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* -------------------------------------------------------- redactions --- */

static void redact_all(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_error error = KIT_ERROR;

    for (int i = stress_process->number; i < STRESS_SECRETS; i += 2) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        stress_check(wal_session_redact(stress_handle.session, kit_text(id),
                                        kit_text("why"), NULL, &error),
                     &error, id);
        atomic_store(&stress_shared->redacted[i],
                     atomic_fetch_add(&stress_shared->made, 1) + 1);
    }
    stress_handle_close(&stress_handle);
}

static void read_secrets(struct stress_process *stress_process,
                         struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    uint64_t now = atomic_load(&stress_process->stress_shared->made);
    enum wal_status status;

    stress_check(wal_entry_cursor_open(session, NULL, &cursor, &error), &error,
                 "wal_entry_cursor_open");
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        char id[16] = "";
        uint64_t stamp;

        if (!kit_slice_is(entry.type, "message")) {
            continue;
        }
        WAL__ASSERT(entry.id.size < sizeof(id));
        memcpy(id, entry.id.data, entry.id.size);
        stamp =
            atomic_load(&stress_process->stress_shared->redacted[atoi(id + 1)]);
        WAL__ASSERT(stamp == 0 || stamp > now);
    }
    WAL__ASSERT(status == WAL_END);
    wal_entry_cursor_close(cursor);
}

/* An entry that another process redacted before this is refused. */
static void append_contended_id(struct stress_process *stress_process,
                                struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    int which = (int)(kit_random(&stress_process->random) % STRESS_SECRETS);
    bool redacted =
        atomic_load(&stress_process->stress_shared->redacted[which]) != 0;
    enum wal_status status;
    char id[16];

    (void)snprintf(id, sizeof(id), "e%d", which);
    stress_check(wal_entry_cursor_open(session, NULL, &cursor, &error), &error,
                 "wal_entry_cursor_open");
    status = wal_entry_cursor_get(cursor, kit_text(id), &entry, &error);
    WAL__ASSERT(status == WAL_EREDACTED || (status == WAL_OK && !redacted));
    wal_entry_cursor_close(cursor);
}

static void follow_redactions(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(
        stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);

    for (int i = 0; i < 10; i++) {
        read_secrets(stress_process, stress_handle.session);
        append_contended_id(stress_process, stress_handle.session);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__redacted_entry_is_not_returned)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle = stress_handle_open(0);
    pid_t holder;
    char id[16];

    for (int i = 0; i < STRESS_SECRETS; i++) {
        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(stress_handle.session, id, NULL);
    }
    stress_handle_close(&stress_handle);
    holder = stress_start_holder(stress_shared);
    stress_run_processes(stress_shared, redact_all, 2, follow_redactions,
                         READERS);
    stress_stop_holder(stress_shared, holder);
    assert_int_equal(atomic_load(&stress_shared->made), STRESS_SECRETS);
    stress_handle = stress_handle_open(WAL_OPEN_READ_ONLY);
    read_secrets(&(struct stress_process){.stress_shared = stress_shared},
                 stress_handle.session);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* ---------------------------------------------------------- deletions --- */

static void format_life_id(char id[16], uint64_t number)
{
    (void)snprintf(id, 16, "life-%d", (int)number);
}

/* Life i is there, session and document, before life i - 1 is gone. */
static void create_and_delete(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_session *before = NULL;
    struct wal_error error = KIT_ERROR;

    for (uint64_t i = 1; i <= LIVES; i++) {
        struct wal_session_options options = {.struct_size = sizeof(options)};
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct wal_session *session = NULL;
        char id[16];

        format_life_id(id, i);
        options.id = kit_text(id);
        atomic_store(&stress_shared->began, i);
        stress_check(
            wal_session_create(stress_handle.store, &options, &session, &error),
            &error, id);
        stress_write_doc(stress_handle.store, session, "mine", i, 0);
        stress_write_doc(stress_handle.store, NULL, id, i, 0);
        if (before != NULL) {
            format_life_id(id, i - 1);
            doc.key = kit_text(id);
            stress_check(wal_session_delete(before, &error), &error, id);
            stress_check(
                wal_doc_delete(stress_handle.store, NULL, &doc, NULL, &error),
                &error, id);
            wal_session_close(before);
        }
        before = session;
        atomic_store(&stress_shared->made, i);
    }
    wal_session_close(before);
    stress_handle_close(&stress_handle);
}

/* The session and its documents exist both or not at all. */
static void check_session_exists(struct wal_store *store, uint64_t number,
                                 bool there)
{
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    char id[16];

    format_life_id(id, number);
    status = wal_session_open(store, kit_text(id), &session, &error);
    if (!there) {
        WAL__ASSERT(status == WAL_ENOTFOUND);
        WAL__ASSERT(stress_read_doc(store, NULL, id, NULL) == 0);
        return;
    }
    stress_check(status, &error, id);
    WAL__ASSERT(stress_read_doc(store, session, "mine", NULL) == number);
    WAL__ASSERT(stress_read_doc(store, NULL, id, NULL) == number);
    wal_session_close(session);
}

static void count_sessions(struct wal_store *store)
{
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .prefix = kit_text("life-")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    struct wal_session_cursor *list = NULL;
    int count = 0;

    stress_check(wal_session_cursor_open(store, &options, &list, &error),
                 &error, "wal_session_cursor_open");
    while (wal_session_cursor_next(list, &info, &error) == WAL_OK) {
        count++;
    }
    WAL__ASSERT(count <= 2);
    wal_session_cursor_close(list);
}

/* Also with a handle of a session that another process deletes. */
static void read_sessions(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(
        stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *held = NULL;
    uint64_t holds = 0;

    for (int i = 0; i < 20; i++) {
        uint64_t made = atomic_load(&stress_shared->made);
        char id[16];

        if (held != NULL && made > holds) {
            WAL__ASSERT(wal_session_get_info(held, &info, NULL) ==
                        WAL_ENOTFOUND);
            WAL__ASSERT(
                wal_session_delete(held, NULL) ==
                (stress_process->number == 0 ? WAL_EREADONLY : WAL_ENOTFOUND));
            wal_session_close(held);
            held = NULL;
        }
        if (made > 1) {
            check_session_exists(
                stress_handle.store,
                1 + kit_random(&stress_process->random) % (made - 1), false);
        }
        format_life_id(id, made);
        if (held == NULL && made > 0 &&
            wal_session_open(stress_handle.store, kit_text(id), &held, NULL) ==
                WAL_OK) {
            holds = made;
        }
        WAL__ASSERT(made == 0 || held != NULL ||
                    atomic_load(&stress_shared->began) > made);
        count_sessions(stress_handle.store);
    }
    wal_session_close(held);
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__deleted_session_is_absent_for_all)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;
    pid_t holder = stress_start_holder(stress_shared);

    stress_run_processes(stress_shared, create_and_delete, 1, read_sessions,
                         READERS);
    stress_stop_holder(stress_shared, holder);
    stress_handle = stress_handle_open(WAL_OPEN_READ_ONLY);
    for (uint64_t i = 1; i <= LIVES; i++) {
        check_session_exists(stress_handle.store, i, i == LIVES);
    }
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* Many processes create and delete the same id. */
static void append_contended_ids(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("x")};
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < ROUNDS / 2;) {
        struct wal_session *session = NULL;
        enum wal_status status =
            wal_session_create(stress_handle.store, &options, &session, &error);

        if (status == WAL_EEXISTS) {
            usleep((useconds_t)(kit_random(&stress_process->random) % 500));
            continue;
        }
        stress_check(status, &error, "wal_session_create");
        WAL__ASSERT(!atomic_exchange(&stress_shared->inside, true));
        WAL__ASSERT(stress_increment_doc(stress_handle.store, session, "n",
                                         stress_process->number) == 0);
        WAL__ASSERT(stress_read_doc(stress_handle.store, session, "n", NULL) ==
                    1);
        WAL__ASSERT(stress_write_turn(stress_handle.store, session,
                                      stress_process->number) == 1);
        atomic_fetch_add(&stress_shared->made, 1);
        atomic_store(&stress_shared->inside, false);
        stress_check(wal_session_delete(session, &error), &error, "delete");
        wal_session_close(session);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
        i++;
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__id_is_used_by_one_at_a_time)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct wal_store *store;

    stress_run_processes(stress_shared, append_contended_ids, WRITERS, NULL, 0);
    assert_int_equal(atomic_load(&stress_shared->made), WRITERS * ROUNDS / 2);
    store = kit_open("store", 0);
    wal_session_close(kit_create(store, "x"));
    kit_close(store);
    stress_shared_destroy(stress_shared);
}

/* ------------------------------------------------------------- forks --- */

static void put_pairs(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(0);

    for (uint64_t i = 0; i < PAIRS; i++) {
        atomic_store(&stress_process->stress_shared->began, i + 1);
        stress_write_pair(stress_handle.session, i);
        atomic_store(&stress_process->stress_shared->made, i + 1);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    stress_handle_close(&stress_handle);
}

static void fork_between(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_slice head = {NULL, 0};
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < 5; i++) {
        struct wal_session *fork = NULL;
        uint64_t least = atomic_load(&stress_process->stress_shared->made);
        uint64_t most;
        uint64_t count;

        stress_check(
            wal_session_fork(stress_handle.session, head, NULL, &fork, &error),
            &error, "wal_session_fork");
        most = atomic_load(&stress_process->stress_shared->began);
        usleep((useconds_t)(kit_random(&stress_process->random) % 500));
        count = stress_check_pairs(fork);
        WAL__ASSERT(count >= least && count <= most);
        stress_write_pair(fork, count);
        WAL__ASSERT(stress_check_pairs(fork) == count + 1);
        WAL__ASSERT(stress_check_pairs(stress_handle.session) >= count);
        wal_session_close(fork);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__fork_inherits_a_snapshot_of_documents)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;

    stress_run_processes(stress_shared, put_pairs, 1, fork_between, READERS);
    stress_handle = stress_handle_open(0);
    assert_int_equal(stress_check_pairs(stress_handle.session), PAIRS);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}
