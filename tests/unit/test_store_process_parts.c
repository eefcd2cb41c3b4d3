/*
 * test_store_process_parts.c - tests of several processes at once on what is
 * conditional or whole, and of processes that only read: documents, heads,
 * batches, redactions and deletions of others are seen as they are.
 */
#include "tests/lib/acting.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "engine/base/assert.h"

enum {
    WRITERS = 3,
    READERS = 2,
    ROUNDS = 40,
    LIVES = 40,
    PAIRS = 150
};

/* ---------------------------------------------------------- counters --- */

static void add_everywhere(struct actor *actor)
{
    struct visit visit = acting_arrive(0);
    uint64_t lost = 0;

    for (int i = 0; i < ROUNDS; i++) {
        racing_count(visit.session);
        lost += racing_add(visit.store, visit.session, "n", actor->number);
        lost += racing_add(visit.store, NULL, "n", actor->number);
        acting_maybe_leave(&visit, &actor->random);
    }
    atomic_fetch_add(&actor->board->lost, lost);
    acting_leave(&visit);
}

/* What was once there is never less. */
static void watch(struct actor *actor)
{
    struct visit visit =
        acting_arrive(actor->number == 0 ? WAL_OPEN_READ_ONLY : 0);
    uint64_t seen[3] = {0, 0, 0};

    for (int i = 0; i < 20; i++) {
        uint64_t now[3] = {racing_counted(visit.session),
                           racing_get(visit.store, visit.session, "n", NULL),
                           racing_get(visit.store, NULL, "n", NULL)};

        for (int k = 0; k < 3; k++) {
            WAL__ASSERT(now[k] >= seen[k]);
            seen[k] = now[k];
        }
    }
    acting_leave(&visit);
}

static void test_processes__every_change_counts_once(void **state)
{
    (void)state;
    struct board *board = acting_begin("");
    struct visit visit;

    acting_run(board, add_everywhere, WRITERS, watch, READERS);
    print_message("%" PRIu64 " puts came too late\n",
                  atomic_load(&board->lost));
    visit = acting_arrive(0);
    assert_int_equal(racing_counted(visit.session), WRITERS * ROUNDS);
    assert_int_equal(racing_get(visit.store, visit.session, "n", NULL),
                     WRITERS * ROUNDS);
    assert_int_equal(racing_get(visit.store, NULL, "n", NULL),
                     WRITERS * ROUNDS);
    acting_leave(&visit);
    acting_end(board);
}

/* -------------------------------------------------------------- lock --- */

/* What the lock guards is a document that is put without any condition. */
static void hold_lock(struct actor *actor)
{
    struct board *board = actor->board;
    struct visit visit = acting_arrive(0);

    for (int i = 0; i < ROUNDS / 2; i++) {
        while (!racing_lock(visit.session, actor->number)) {
            atomic_fetch_add(&board->lost, 1);
            usleep((useconds_t)(kit_random(&actor->random) % 500));
        }
        WAL__ASSERT(!atomic_exchange(&board->inside, true));
        racing_put(visit.store, visit.session, "guarded",
                   racing_get(visit.store, visit.session, "guarded", NULL) + 1,
                   actor->number);
        atomic_store(&board->inside, false);
        racing_unlock(visit.session, actor->number);
        acting_maybe_leave(&visit, &actor->random);
    }
    acting_leave(&visit);
}

static void test_processes__head_is_a_lock(void **state)
{
    (void)state;
    struct board *board = acting_begin("w0 w1 w2");
    struct visit visit;

    acting_run(board, hold_lock, WRITERS, NULL, 0);
    assert_true(atomic_load(&board->lost) > 0);
    visit = acting_arrive(0);
    assert_int_equal(racing_get(visit.store, visit.session, "guarded", NULL),
                     WRITERS * ROUNDS / 2);
    acting_leave(&visit);
    acting_end(board);
}

/* ------------------------------------------------------------- turns --- */

static void make_turns(struct actor *actor)
{
    struct board *board = actor->board;
    struct visit visit = acting_arrive(0);

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number =
            racing_turn(visit.store, visit.session, actor->number);
        uint64_t made = atomic_load(&board->made);

        while (made < number &&
               !atomic_compare_exchange_weak(&board->made, &made, number)) {
        }
        acting_maybe_leave(&visit, &actor->random);
    }
    acting_leave(&visit);
}

/* One of the readers only reads: it follows the live processes; it sees what
 * was there when it came when there were none. */
static void look_at_turns(struct actor *actor)
{
    struct board *board = actor->board;
    bool follows = actor->number != 0 || atomic_load(&board->live);
    uint64_t last = atomic_load(&board->made);
    struct visit visit =
        acting_arrive(actor->number == 0 ? WAL_OPEN_READ_ONLY : 0);

    for (int i = 0; i < 10; i++) {
        uint64_t least = follows ? atomic_load(&board->made) : last;

        last = racing_look(visit.store, visit.session,
                           least > last ? least : last);
    }
    acting_leave(&visit);
}

static void test_processes__batch_is_seen_whole_or_not_at_all(void **state)
{
    (void)state;
    struct board *board = acting_begin("");
    struct visit visit;
    pid_t holder;

    acting_run(board, make_turns, WRITERS, look_at_turns, READERS);
    holder = acting_hold(board);
    acting_run(board, make_turns, WRITERS, look_at_turns, READERS);
    acting_let_go(board, holder);
    visit = acting_arrive(0);
    assert_int_equal(racing_look(visit.store, visit.session, 0),
                     2 * WRITERS * ROUNDS);
    acting_leave(&visit);
    acting_end(board);
}

/* -------------------------------------------------------- redactions --- */

static void redact_all(struct actor *actor)
{
    struct board *board = actor->board;
    struct visit visit = acting_arrive(0);
    struct wal_error error = KIT_ERROR;

    for (int i = actor->number; i < ACTING_SECRETS; i += 2) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        racing_ok(wal_session_redact(visit.session, kit_text(id),
                                     kit_text("why"), NULL, &error),
                  &error, id);
        atomic_store(&board->redacted[i],
                     atomic_fetch_add(&board->made, 1) + 1);
    }
    acting_leave(&visit);
}

static void read_secrets(struct actor *actor, struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_iter *iter = NULL;
    uint64_t now = atomic_load(&actor->board->made);
    enum wal_status status;

    racing_ok(wal_iter_open(session, NULL, &iter, &error), &error,
              "wal_iter_open");
    while ((status = wal_iter_next(iter, &entry, &error)) == WAL_OK) {
        char id[16] = "";
        uint64_t stamp;

        if (!kit_is(entry.type, "message")) {
            continue;
        }
        WAL__ASSERT(entry.id.size < sizeof(id));
        memcpy(id, entry.id.data, entry.id.size);
        stamp = atomic_load(&actor->board->redacted[atoi(id + 1)]);
        WAL__ASSERT(stamp == 0 || stamp > now);
    }
    WAL__ASSERT(status == WAL_END);
    wal_iter_close(iter);
}

/* An entry that another process redacted before this is refused. */
static void ask_for_one(struct actor *actor, struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_iter *iter = NULL;
    int which = (int)(kit_random(&actor->random) % ACTING_SECRETS);
    bool redacted = atomic_load(&actor->board->redacted[which]) != 0;
    enum wal_status status;
    char id[16];

    (void)snprintf(id, sizeof(id), "e%d", which);
    racing_ok(wal_iter_open(session, NULL, &iter, &error), &error,
              "wal_iter_open");
    status = wal_iter_get(iter, kit_text(id), &entry, &error);
    WAL__ASSERT(status == WAL_EREDACTED || (status == WAL_OK && !redacted));
    wal_iter_close(iter);
}

static void follow_redactions(struct actor *actor)
{
    struct visit visit =
        acting_arrive(actor->number == 0 ? WAL_OPEN_READ_ONLY : 0);

    for (int i = 0; i < 10; i++) {
        read_secrets(actor, visit.session);
        ask_for_one(actor, visit.session);
    }
    acting_leave(&visit);
}

static void test_processes__redacted_is_not_given_any_more(void **state)
{
    (void)state;
    struct board *board = acting_begin("");
    struct visit visit = acting_arrive(0);
    pid_t holder;
    char id[16];

    for (int i = 0; i < ACTING_SECRETS; i++) {
        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(visit.session, id, NULL);
    }
    acting_leave(&visit);
    holder = acting_hold(board);
    acting_run(board, redact_all, 2, follow_redactions, READERS);
    acting_let_go(board, holder);
    assert_int_equal(atomic_load(&board->made), ACTING_SECRETS);
    visit = acting_arrive(WAL_OPEN_READ_ONLY);
    read_secrets(&(struct actor){.board = board}, visit.session);
    acting_leave(&visit);
    acting_end(board);
}

/* ---------------------------------------------------------- deletions --- */

static void name_life(char id[16], uint64_t number)
{
    (void)snprintf(id, 16, "life-%d", (int)number);
}

/* Life i is there, session and document, before life i - 1 is gone. */
static void live_and_die(struct actor *actor)
{
    struct board *board = actor->board;
    struct visit visit = acting_arrive(0);
    struct wal_session *before = NULL;
    struct wal_error error = KIT_ERROR;

    for (uint64_t i = 1; i <= LIVES; i++) {
        struct wal_session_options options = {.struct_size = sizeof(options)};
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct wal_session *session = NULL;
        char id[16];

        name_life(id, i);
        options.id = kit_text(id);
        atomic_store(&board->began, i);
        racing_ok(wal_session_create(visit.store, &options, &session, &error),
                  &error, id);
        racing_put(visit.store, session, "mine", i, 0);
        racing_put(visit.store, NULL, id, i, 0);
        if (before != NULL) {
            name_life(id, i - 1);
            doc.key = kit_text(id);
            racing_ok(wal_session_delete(before, &error), &error, id);
            racing_ok(wal_doc_delete(visit.store, NULL, &doc, NULL, &error),
                      &error, id);
            wal_session_close(before);
        }
        before = session;
        atomic_store(&board->made, i);
    }
    wal_session_close(before);
    acting_leave(&visit);
}

/* The session and its documents, there or gone. */
static void look_for(struct wal_store *store, uint64_t number, bool there)
{
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    char id[16];

    name_life(id, number);
    status = wal_session_open(store, kit_text(id), &session, &error);
    if (!there) {
        WAL__ASSERT(status == WAL_ENOTFOUND);
        WAL__ASSERT(racing_get(store, NULL, id, NULL) == 0);
        return;
    }
    racing_ok(status, &error, id);
    WAL__ASSERT(racing_get(store, session, "mine", NULL) == number);
    WAL__ASSERT(racing_get(store, NULL, id, NULL) == number);
    wal_session_close(session);
}

static void count_lives(struct wal_store *store)
{
    struct wal_list_options options = {.struct_size = sizeof(options),
                                       .prefix = kit_text("life-")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    struct wal_list *list = NULL;
    int count = 0;

    racing_ok(wal_list_open(store, &options, &list, &error), &error,
              "wal_list_open");
    while (wal_list_next(list, &info, &error) == WAL_OK) {
        count++;
    }
    WAL__ASSERT(count <= 2);
    wal_list_close(list);
}

/* Also a handle on a session that another process deletes. */
static void follow_lives(struct actor *actor)
{
    struct board *board = actor->board;
    struct visit visit =
        acting_arrive(actor->number == 0 ? WAL_OPEN_READ_ONLY : 0);
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *held = NULL;
    uint64_t holds = 0;

    for (int i = 0; i < 20; i++) {
        uint64_t made = atomic_load(&board->made);
        char id[16];

        if (held != NULL && made > holds) {
            WAL__ASSERT(wal_session_status(held, &info, NULL) == WAL_ENOTFOUND);
            WAL__ASSERT(wal_session_delete(held, NULL) ==
                        (actor->number == 0 ? WAL_EREADONLY : WAL_ENOTFOUND));
            wal_session_close(held);
            held = NULL;
        }
        if (made > 1) {
            look_for(visit.store, 1 + kit_random(&actor->random) % (made - 1),
                     false);
        }
        name_life(id, made);
        if (held == NULL && made > 0 &&
            wal_session_open(visit.store, kit_text(id), &held, NULL) ==
                WAL_OK) {
            holds = made;
        }
        WAL__ASSERT(made == 0 || held != NULL ||
                    atomic_load(&board->began) > made);
        count_lives(visit.store);
    }
    wal_session_close(held);
    acting_leave(&visit);
}

static void test_processes__what_was_deleted_is_gone_for_all(void **state)
{
    (void)state;
    struct board *board = acting_begin("");
    struct visit visit;
    pid_t holder = acting_hold(board);

    acting_run(board, live_and_die, 1, follow_lives, READERS);
    acting_let_go(board, holder);
    visit = acting_arrive(WAL_OPEN_READ_ONLY);
    for (uint64_t i = 1; i <= LIVES; i++) {
        look_for(visit.store, i, i == LIVES);
    }
    acting_leave(&visit);
    acting_end(board);
}

/* Many want the same id, and delete it again. */
static void want_one_id(struct actor *actor)
{
    struct board *board = actor->board;
    struct visit visit = acting_arrive(0);
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("x")};
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < ROUNDS / 2;) {
        struct wal_session *session = NULL;
        enum wal_status status =
            wal_session_create(visit.store, &options, &session, &error);

        if (status == WAL_EEXISTS) {
            usleep((useconds_t)(kit_random(&actor->random) % 500));
            continue;
        }
        racing_ok(status, &error, "wal_session_create");
        WAL__ASSERT(!atomic_exchange(&board->inside, true));
        WAL__ASSERT(racing_add(visit.store, session, "n", actor->number) == 0);
        WAL__ASSERT(racing_get(visit.store, session, "n", NULL) == 1);
        WAL__ASSERT(racing_turn(visit.store, session, actor->number) == 1);
        atomic_fetch_add(&board->made, 1);
        atomic_store(&board->inside, false);
        racing_ok(wal_session_delete(session, &error), &error, "delete");
        wal_session_close(session);
        acting_maybe_leave(&visit, &actor->random);
        i++;
    }
    acting_leave(&visit);
}

static void test_processes__id_is_used_by_one_at_a_time(void **state)
{
    (void)state;
    struct board *board = acting_begin("");
    struct wal_store *store;

    acting_run(board, want_one_id, WRITERS, NULL, 0);
    assert_int_equal(atomic_load(&board->made), WRITERS * ROUNDS / 2);
    store = kit_open("store", 0);
    wal_session_close(kit_create(store, "x"));
    kit_close(store);
    acting_end(board);
}

/* ------------------------------------------------------------- forks --- */

static void put_pairs(struct actor *actor)
{
    struct visit visit = acting_arrive(0);

    for (uint64_t i = 0; i < PAIRS; i++) {
        atomic_store(&actor->board->began, i + 1);
        racing_put_pair(visit.session, i);
        atomic_store(&actor->board->made, i + 1);
        acting_maybe_leave(&visit, &actor->random);
    }
    acting_leave(&visit);
}

static void fork_between(struct actor *actor)
{
    struct visit visit = acting_arrive(0);
    struct wal_slice head = {NULL, 0};
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < 5; i++) {
        struct wal_session *fork = NULL;
        uint64_t least = atomic_load(&actor->board->made);
        uint64_t most;
        uint64_t count;

        racing_ok(wal_session_fork(visit.session, head, NULL, &fork, &error),
                  &error, "wal_session_fork");
        most = atomic_load(&actor->board->began);
        usleep((useconds_t)(kit_random(&actor->random) % 500));
        count = racing_pairs(fork);
        WAL__ASSERT(count >= least && count <= most);
        racing_put_pair(fork, count);
        WAL__ASSERT(racing_pairs(fork) == count + 1);
        WAL__ASSERT(racing_pairs(visit.session) >= count);
        wal_session_close(fork);
    }
    acting_leave(&visit);
}

static void test_processes__fork_sees_the_documents_of_one_moment(void **state)
{
    (void)state;
    struct board *board = acting_begin("");
    struct visit visit;

    acting_run(board, put_pairs, 1, fork_between, READERS);
    visit = acting_arrive(0);
    assert_int_equal(racing_pairs(visit.session), PAIRS);
    acting_leave(&visit);
    acting_end(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_processes__every_change_counts_once),
        KIT_TEST(test_processes__head_is_a_lock),
        KIT_TEST(test_processes__batch_is_seen_whole_or_not_at_all),
        KIT_TEST(test_processes__redacted_is_not_given_any_more),
        KIT_TEST(test_processes__what_was_deleted_is_gone_for_all),
        KIT_TEST(test_processes__id_is_used_by_one_at_a_time),
        KIT_TEST(test_processes__fork_sees_the_documents_of_one_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
