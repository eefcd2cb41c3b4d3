/*
 * test_store_expect.c - tests of the expected sequence: sessions that are removed or changed only
 * if they are as the caller saw them (agentwal.h), and of creating a session only if its directory
 * has none.
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "format/bytes/assert.h"

struct bench {
    struct wal_store *store;
    struct wal_store *other; /* as another process has it */
    struct wal_session *session;
    struct wal_session *fork; /* of it, at b */
    uint64_t seen;            /* last_sequence of the session */
};

static uint64_t look(struct wal_session *session)
{
    return kit_info(session).last_sequence;
}

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store(), .other = kit_store()};

    bench.session = kit_create(bench.store, "s");
    kit_append_all(bench.session, "a b c");
    (void)kit_put(bench.store, bench.session, "k", "1");
    bench.fork = kit_fork(bench.session, "b", "f");
    kit_append(bench.fork, "f1", NULL);
    bench.seen = look(bench.session);
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    wal_session_close(bench->fork);
    kit_close(bench->store);
    kit_close(bench->other);
}

static enum wal_status try_remove(struct wal_session *session, uint32_t flags, uint64_t expected,
                                  struct wal_error *error)
{
    struct wal_session_remove_options options = WAL_INIT(wal_session_remove_options);

    options.flags = flags | WAL_SESSION_REMOVE_EXPECT;
    options.expected_sequence = expected;
    return wal_session_remove(session, &options, error);
}

static void assert_conflict(const struct wal_error *error, uint64_t present)
{
    char actual[24];

    (void)snprintf(actual, sizeof(actual), "%llu", (unsigned long long)present);
    assert_error(error, WAL_ECONFLICT, "has changed");
    assert_int_equal(error->expectation, WAL_EXPECTATION_SEQUENCE);
    assert_string_equal(error->actual, actual);
}

/* --- what is a change ---------------------------------------------------- */

static void add_entry(struct bench *bench)
{
    kit_append(bench->session, "d", NULL);
}

static void add_entry_of_another_process(struct bench *bench)
{
    struct wal_session *session = kit_session(bench->other, "s");

    kit_append(session, "d", NULL);
    wal_session_close(session);
}

static void add_transcript_entry(struct bench *bench)
{
    struct wal_entry entry = kit_entry("t", NULL, "{}");

    entry.stream = 1;
    assert_ok(kit_try_append(bench->session, &entry, NULL, NULL));
}

static void add_delta(struct bench *bench)
{
    struct wal_entry entry = kit_entry("delta", NULL, "{}");

    entry.type = WAL_STR(WAL_TYPE_MESSAGE_DELTA_BATCH);
    assert_ok(kit_try_append(bench->session, &entry, NULL, NULL));
}

static void put_document(struct bench *bench)
{
    (void)kit_put(bench->store, bench->session, "k", "2");
}

static void delete_document(struct bench *bench)
{
    (void)kit_delete(bench->store, bench->session, "k");
}

static void move_head(struct bench *bench)
{
    kit_move_head(bench->session, "side", "a");
}

static void change_title(struct bench *bench)
{
    const struct wal_session_change change = kit_title("new");
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};

    assert_ok(wal_batch_commit(bench->session, &batch, NULL, NULL, NULL));
}

static void trash_and_undelete(struct bench *bench)
{
    assert_ok(wal_session_trash(bench->session, NULL));
    assert_ok(wal_session_undelete(bench->store, kit_text("s"), NULL));
}

static void redact(struct bench *bench)
{
    assert_ok(wal_session_redact(bench->session, kit_text("a"), kit_text(NULL), NULL, NULL));
}

static void redact_through_the_fork(struct bench *bench)
{
    assert_ok(wal_session_redact(bench->fork, kit_text("a"), kit_text(NULL), NULL, NULL));
}

static void mark_as_moved(struct bench *bench)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);

    move.flags = WAL_SESSION_MOVE_AWAY;
    move.number = 1;
    assert_ok(wal_session_set_move(bench->session, &move, NULL));
}

static void do_nothing(struct bench *bench)
{
    (void)bench;
}

static void fork_it(struct bench *bench)
{
    wal_session_close(kit_fork(bench->session, NULL, "g"));
}

static void append_to_the_fork(struct bench *bench)
{
    kit_append(bench->fork, "f2", NULL);
}

static void redact_in_the_fork(struct bench *bench)
{
    assert_ok(wal_session_redact(bench->fork, kit_text("f1"), kit_text(NULL), NULL, NULL));
}

static void claim(struct bench *bench)
{
    assert_ok(wal_session_claim(bench->session, NULL));
}

static void append_again(struct bench *bench)
{
    kit_append(bench->session, "c", NULL);
}

static void compact(struct bench *bench)
{
    assert_ok(wal_store_compact(bench->store, NULL, NULL, NULL));
}

static const struct {
    void (*change)(struct bench *bench);
    bool counts;
} changes[] = {
    {add_entry, true},
    {add_entry_of_another_process, true},
    {add_transcript_entry, true},
    {add_delta, true},
    {put_document, true},
    {delete_document, true},
    {move_head, true},
    {change_title, true},
    {trash_and_undelete, true},
    {redact, true},
    {redact_through_the_fork, true},
    {mark_as_moved, true},
    {do_nothing, false},
    {fork_it, false},
    {append_to_the_fork, false},
    {redact_in_the_fork, false},
    {claim, false},
    {append_again, false},
    {compact, false},
};

/* Removes the session after each change, as `flags` says. */
static void remove_after_each(uint32_t flags)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct bench bench = begin();
        struct wal_error error = KIT_ERROR;
        struct wal_session *session = NULL;
        struct wal_entry shared = {.struct_size = sizeof(shared)};
        enum wal_status status;

        changes[i].change(&bench);
        status = try_remove(bench.session, flags, bench.seen, &error);
        if (changes[i].counts) {
            assert_int_equal(status, WAL_ECONFLICT);
            assert_conflict(&error, look(bench.session));
            session = kit_session(bench.other, "s");
            wal_session_close(session);
            assert_ok(try_remove(bench.session, flags, look(bench.session), &error));
        } else {
            assert_ok(status);
        }
        assert_int_equal(wal_session_open(bench.other, kit_text("s"), &session, NULL),
                         (flags & WAL_SESSION_REMOVE_TRASH) != 0 ? WAL_ETRASHED : WAL_ENOTFOUND);
        assert_ok(wal_entry_get(bench.fork, kit_text("b"), &shared, NULL));
        end(&bench);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

KIT_TEST(expect__changed_session_is_not_deleted)
{
    remove_after_each(0);
}

KIT_TEST(expect__changed_session_is_not_trashed)
{
    remove_after_each(WAL_SESSION_REMOVE_TRASH);
}

/* --- removing ------------------------------------------------------------ */

KIT_TEST(remove__without_options_deletes)
{
    struct bench bench = begin();
    struct wal_session_remove_options options = WAL_INIT(wal_session_remove_options);

    options.flags = 1u << 2;
    assert_int_equal(wal_session_remove(bench.session, &options, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_session_remove(NULL, NULL, kit_error()), WAL_EINVAL);
    options.flags = WAL_SESSION_REMOVE_TRASH;
    options.expected_sequence = 1; /* without the flag it means nothing */
    assert_ok(wal_session_remove(bench.session, &options, NULL));
    assert_true((kit_info(bench.session).flags & WAL_SESSION_TRASHED) != 0);
    assert_ok(wal_session_remove(bench.session, NULL, NULL));
    assert_int_equal(wal_session_remove(bench.session, NULL, NULL), WAL_ENOTFOUND);
}

KIT_TEST(expect__entry_that_waits_is_refused_or_counts)
{
    struct bench bench = begin();
    const struct wal_append_options queued = {.struct_size = sizeof(queued),
                                              .durability = WAL_QUEUED};
    struct wal_entry entry = kit_entry("q", NULL, "{}");
    enum wal_status status;

    assert_ok(wal_append(bench.session, &entry, 1, &queued, NULL, NULL));
    status = try_remove(bench.session, 0, bench.seen, NULL);
    if (status == WAL_ECONFLICT) {
        assert_ok(wal_flush(bench.store, NULL));
        assert_branch(bench.session, "a b c q");
    } else {
        assert_ok(status);
        assert_int_equal(wal_flush(bench.store, NULL), WAL_ENOTFOUND);
    }
}

enum { ROUNDS = 200 };

/* Deletes a session in which it saw no entry. */
static void *delete_if_empty(void *arg)
{
    struct wal_store *store = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct wal_session_info info = {.struct_size = sizeof(info)};
        struct wal_session *session = NULL;
        enum wal_status status = wal_session_open(store, kit_text("r"), &session, NULL);

        if (status == WAL_OK) {
            status = wal_session_get_info(session, &info, NULL);
        }
        if (status == WAL_OK && info.entries == 0) {
            status = try_remove(session, 0, info.last_sequence, NULL);
        }
        WAL__ASSERT(status == WAL_OK || status == WAL_ENOTFOUND || status == WAL_ECONFLICT);
        wal_session_close(session);
    }
    return NULL;
}

KIT_TEST(expect__acknowledged_append_is_never_deleted)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    const struct wal_append_options written = {.struct_size = sizeof(written),
                                               .durability = WAL_WRITTEN};
    pthread_t thread;
    int kept = 0;

    assert_int_equal(pthread_create(&thread, NULL, delete_if_empty, other), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct wal_session_options options = WAL_INIT(wal_session_options);
        struct wal_session *session = NULL;
        struct wal_entry entry = kit_entry("e", NULL, "{}");
        enum wal_status status;

        options.id = kit_text("r");
        assert_ok(wal_session_open_or_create(store, &options, &session, NULL, NULL));
        status = wal_append(session, &entry, 1, &written, NULL, NULL);
        if (status == WAL_OK) {
            assert_branch(session, "e");
            assert_ok(wal_session_delete(session, NULL));
            kept++;
        } else {
            assert_int_equal(status, WAL_ENOTFOUND);
        }
        wal_session_close(session);
    }
    (void)pthread_join(thread, NULL);
    assert_true(kept > 0);
}

/* --- changing ------------------------------------------------------------ */

struct rename {
    struct bench *bench;
    void (*meanwhile)(struct bench *bench);
    uint64_t expected; /* 0: as it is now */
    int calls;
};

/* A batch that is written only if the session is as it was. */
static enum wal_status append_expecting(struct bench *bench, const char *id, uint64_t expected,
                                        struct wal_error *error)
{
    const struct wal_session_change change = {.struct_size = sizeof(change),
                                              .fields = WAL_CHANGE_EXPECT_SEQUENCE,
                                              .expected_sequence = expected};
    const struct wal_entry entry = kit_entry(id, NULL, "{}");
    const struct wal_doc doc = kit_doc("by", "\"batch\"");
    const struct wal_batch batch = {.struct_size = sizeof(batch),
                                    .entry_count = 1,
                                    .entries = &entry,
                                    .document_count = 1,
                                    .documents = &doc,
                                    .change = &change};

    return wal_batch_commit(bench->session, &batch, NULL, NULL, error);
}

KIT_TEST(expect__batch_is_written_if_nothing_has_changed)
{
    struct bench bench = begin();
    struct wal_error error = KIT_ERROR;
    uint64_t after;
    char *before;

    assert_ok(append_expecting(&bench, "d", bench.seen, &error));
    assert_branch(bench.session, "a b c d");
    after = look(bench.session);
    /* All of it is there: it is sent again. */
    before = kit_snapshot(bench.store, bench.session);
    assert_ok(append_expecting(&bench, "d", bench.seen, &error));
    assert_int_equal(append_expecting(&bench, "e", bench.seen, &error), WAL_ECONFLICT);
    assert_conflict(&error, after);
    assert_unchanged(bench.store, bench.session, before);
    assert_ok(append_expecting(&bench, "e", after, &error));
    assert_branch(bench.session, "a b c d e");
}

KIT_TEST(expect__submitted_batch_expects_the_sequence_alone)
{
    struct bench bench = begin();
    struct wal_session_change change = {.struct_size = sizeof(change),
                                        .fields = WAL_CHANGE_EXPECT_SEQUENCE,
                                        .expected_sequence = bench.seen};
    const struct wal_entry entry = kit_entry("d", NULL, "{}");
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = &entry, .change = &change};
    struct wal_error error = KIT_ERROR;
    struct wal_ticket *ticket = NULL;

    change_title(&bench);
    assert_ok(wal_batch_submit(bench.session, &batch, NULL, &ticket, &error));
    assert_int_equal(wal_ticket_wait(ticket, -1, NULL, &error), WAL_ECONFLICT);
    assert_conflict(&error, look(bench.session));
    wal_ticket_destroy(ticket);
    change.expected_sequence = look(bench.session);
    assert_ok(wal_batch_submit(bench.session, &batch, NULL, &ticket, &error));
    assert_ok(wal_ticket_wait(ticket, -1, NULL, &error));
    wal_ticket_destroy(ticket);
    assert_branch(bench.session, "a b c d");
    change.fields |= WAL_CHANGE_TITLE;
    assert_int_equal(wal_batch_submit(bench.session, &batch, NULL, &ticket, &error), WAL_EINVAL);
}

/* --- one session of a directory ------------------------------------------ */

enum { DIRECTORIES = 40, OPENERS = 4 };

struct opener {
    struct wal_store *store;
    atomic_int *waiting; /* callers that are not at this directory yet */
    char ids[DIRECTORIES][WAL_ID_SIZE];
    int created;
};

static void *open_or_create_each(void *arg)
{
    struct opener *opener = arg;

    for (int i = 0; i < DIRECTORIES; i++) {
        struct wal_session_options options = WAL_INIT(wal_session_options);
        struct wal_session_info info = {.struct_size = sizeof(info)};
        struct wal_session *session = NULL;
        int32_t created = 0;
        char cwd[32];

        (void)snprintf(cwd, sizeof(cwd), "/directory/%d", i);
        options.cwd = kit_text(cwd);
        (void)atomic_fetch_sub(&opener->waiting[i], 1);
        while (atomic_load(&opener->waiting[i]) > 0) {
        }
        WAL__ASSERT(wal_session_open_or_create(opener->store, &options, &session, &created, NULL) ==
                    WAL_OK);
        WAL__ASSERT(wal_session_get_info(session, &info, NULL) == WAL_OK);
        memcpy(opener->ids[i], info.id.data, (size_t)info.id.size);
        opener->created += created;
        wal_session_close(session);
    }
    return NULL;
}

KIT_TEST(open_or_create__callers_get_one_session)
{
    static struct opener openers[OPENERS];
    static atomic_int waiting[DIRECTORIES];
    pthread_t threads[OPENERS];
    int created = 0;

    memset(openers, 0, sizeof(openers));
    for (int i = 0; i < DIRECTORIES; i++) {
        atomic_store(&waiting[i], OPENERS);
    }
    for (int i = 0; i < OPENERS; i++) {
        /* Pairs of threads share a handle. */
        openers[i].store = i % 2 == 0 ? kit_store() : openers[i - 1].store;
        openers[i].waiting = waiting;
    }
    for (int i = 0; i < OPENERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_or_create_each, &openers[i]), 0);
    }
    for (int i = 0; i < OPENERS; i++) {
        (void)pthread_join(threads[i], NULL);
        created += openers[i].created;
        for (int k = 0; k < DIRECTORIES; k++) {
            assert_string_equal(openers[i].ids[k], openers[0].ids[k]);
        }
    }
    assert_int_equal(created, DIRECTORIES);
    for (int i = 0; i < OPENERS; i += 2) {
        kit_close(openers[i].store);
    }
}
