/*
 * test_store_process.c - tests of several handles of one store, in one process
 * and in several, and of handles that fork() copied.
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/store_kit.h"

#include <signal.h>
#include <sys/wait.h>

#include "format/bytes/assert.h"

enum {
    TURNS = 200
};

/* Two handles of one store in this process. */
struct pair {
    struct wal_store *stores[2];
    struct wal_session *sessions[2];
};

static struct pair begin(void)
{
    struct pair pair;

    for (int i = 0; i < 2; i++) {
        pair.stores[i] = kit_store();
        pair.sessions[i] = i == 0 ? kit_create(pair.stores[0], "s")
                                  : kit_session(pair.stores[1], "s");
    }
    return pair;
}

static void end(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        wal_session_close(pair->sessions[i]);
        kit_close(pair->stores[i]);
    }
}

KIT_TEST(handles__see_each_others_entries)
{
    struct pair pair = begin();
    char before[16] = "";

    for (int i = 0; i < TURNS; i++) {
        struct wal_session *mine = pair.sessions[i % 2];
        struct wal_session *other = pair.sessions[1 - i % 2];
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(mine, id, NULL);
        assert_parent(other, id, before);
        assert_slice(kit_info(other).head, id);
        assert_int_equal(kit_info(other).entries, i + 1);
        (void)snprintf(before, sizeof(before), "%s", id);
    }
    end(&pair);
    pair.stores[0] = kit_open("store", 0);
    pair.sessions[0] = kit_session(pair.stores[0], "s");
    assert_int_equal(kit_info(pair.sessions[0]).entries, TURNS);
    wal_session_close(pair.sessions[0]);
    kit_close(pair.stores[0]);
}

KIT_TEST(handles__check_tails_and_ids_together)
{
    struct pair pair = begin();
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = WAL_WRITTEN,
                                         .flags = WAL_APPEND_EXPECT,
                                         .expected_tail = kit_text("a")};
    struct wal_error error = KIT_ERROR;
    struct wal_entry entry = kit_entry("c", NULL, "1");
    struct wal_session *session = NULL;
    struct wal_session_options taken = {.struct_size = sizeof(taken),
                                        .id = kit_text("t")};

    kit_append_all(pair.sessions[0], "a b");
    assert_int_equal(
        wal_append(pair.sessions[1], &entry, 1, &options, NULL, &error),
        WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    entry.id = kit_text("a");
    assert_int_equal(kit_try_append(pair.sessions[1], &entry, NULL, NULL),
                     WAL_EEXISTS);
    wal_session_close(kit_create(pair.stores[0], "t"));
    assert_int_equal(wal_session_create(pair.stores[1], &taken, &session, NULL),
                     WAL_EEXISTS);
    wal_session_close(kit_session(pair.stores[1], "t"));
    end(&pair);
}

KIT_TEST(handles__follow_through_segments)
{
    struct pair pair = begin();
    const size_t size = 256 * 1024;
    char *text = malloc(size + 1);
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_non_null(text);
    memset(text, ' ', size);
    text[0] = '1';
    text[size] = '\0';
    for (int i = 0; i < 60; i++) {
        char id[16];
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "e%d", i);
        entry = kit_entry(id, NULL, text);
        assert_ok(
            kit_try_append(pair.sessions[(i / 7) % 2], &entry, NULL, NULL));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_info(pair.sessions[i]).entries, 60);
        assert_parent(pair.sessions[i], "e59", "e58");
        assert_ok(wal_store_get_info(pair.stores[i], &info, NULL));
        assert_in_range(info.segments, 3, 20);
    }
    free(text);
    end(&pair);
}

KIT_TEST(handles__closing_one_does_not_affect_the_other)
{
    struct pair pair = begin();

    kit_append_all(pair.sessions[0], "a");
    kit_append_all(pair.sessions[1], "b");
    wal_session_close(pair.sessions[0]);
    kit_close(pair.stores[0]);
    kit_append_all(pair.sessions[1], "c");
    pair.stores[0] = kit_open("store", 0);
    pair.sessions[0] = kit_session(pair.stores[0], "s");
    assert_branch(pair.sessions[0], "a b c");
    kit_append_all(pair.sessions[0], "d");
    assert_branch(pair.sessions[1], "a b c d");
    end(&pair);
}

/* --------------------------------------------------------- processes --- */

/* A ball between processes: read waits for it, write passes it on. */
static void send_turn(int fd)
{
    WAL__ASSERT(write(fd, "x", 1) == 1);
}

static void receive_turn(int fd)
{
    char ball;

    WAL__ASSERT(read(fd, &ball, 1) == 1);
}

/* Whether an append that expects the process's own last entry as the tail gets
 * WAL_ECONFLICT and the tail that another process appended. */
static bool reports_the_tail(struct wal_session *session, int i)
{
    struct wal_error error = KIT_ERROR;
    const struct wal_entry entry = kit_entry("late", NULL, "{}");
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .flags = WAL_APPEND_EXPECT};
    char own[16] = "";
    char tail[16];

    if (i > 1) {
        (void)snprintf(own, sizeof(own), "e%d", i - 2);
    }
    (void)snprintf(tail, sizeof(tail), "e%d", i - 1);
    options.expected_tail = kit_text(own);
    return wal_append(session, &entry, 1, &options, NULL, &error) ==
               WAL_ECONFLICT &&
           strcmp(error.actual, tail) == 0;
}

/* Takes turns with the other process: sees its entry, appends under it. A
 * failure ends the process with an exit code. */
static int append_in_turns(int catch_fd, int throw_fd, int first, int turns)
{
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;

    if (wal_open("store", NULL, &store, &error) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, &error) != WAL_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (int i = first; i < turns; i += 2) {
        struct wal_append_result result = {.struct_size = sizeof(result)};
        struct wal_append_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_APPEND_EXPECT};
        struct wal_entry entry;
        char before[16] = "";
        char id[16];

        receive_turn(catch_fd);
        (void)snprintf(id, sizeof(id), "e%d", i);
        if (i > 0) {
            (void)snprintf(before, sizeof(before), "e%d", i - 1);
        }
        if (i > 0 && !reports_the_tail(session, i)) {
            return 5;
        }
        options.durability = (uint32_t)i / 2 % 2;
        options.expected_tail = kit_text(before);
        entry = kit_entry(id, NULL, "{}");
        if (wal_append(session, &entry, 1, &options, &result, &error) !=
            WAL_OK) {
            (void)fprintf(stderr, "%s: %s\n", id, error.text);
            return 2;
        }
        if (kit_info(session).entries != (uint64_t)i + 1) {
            return 3;
        }
        send_turn(throw_fd);
    }
    wal_session_close(session);
    return wal_close(store, &error) == WAL_OK ? 0 : 4;
}

static void expect_exit(pid_t child, int code)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

KIT_TEST(processes__append_in_turn)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    pid_t children[2];
    int pipes[2][2];

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    assert_int_equal(pipe(pipes[0]), 0);
    assert_int_equal(pipe(pipes[1]), 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            _exit(append_in_turns(pipes[i][0], pipes[1 - i][1], i, TURNS));
        }
    }
    send_turn(pipes[0][1]);
    expect_exit(children[0], 0);
    expect_exit(children[1], 0);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    for (int i = 0; i < TURNS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_slice(entry.id, id);
    }
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
    for (int i = 0; i < 2; i++) {
        (void)close(pipes[i][0]);
        (void)close(pipes[i][1]);
    }
}

/* Appends to a private session and to one shared by all, without pauses. */
static int append_to_both(int number, int count)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .lock_timeout_ms = 60000};
    struct wal_store *store = NULL;
    struct wal_session *common = NULL;
    struct wal_error error = KIT_ERROR;
    char id[32];

    if (wal_open("store", &options, &store, &error) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &common, &error) != WAL_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    (void)snprintf(id, sizeof(id), "own-%d", number);

    struct wal_session *own = kit_create(store, id);

    for (int i = 0; i < count; i++) {
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "p%d-%d", number, i);
        entry = kit_entry(id, NULL, "{\"some\":\"payload\"}");
        if (kit_try_append(i % 2 == 0 ? own : common, &entry, NULL, &error) !=
            WAL_OK) {
            (void)fprintf(stderr, "%s: %s\n", id, error.text);
            return 2;
        }
    }
    wal_session_close(own);
    wal_session_close(common);
    return wal_close(store, &error) == WAL_OK ? 0 : 3;
}

KIT_TEST(processes__append_concurrently)
{
    enum {
        PROCESSES = 4,
        COUNT = 1000
    };
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    pid_t children[PROCESSES];
    char id[32];

    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            _exit(append_to_both(i, COUNT));
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        expect_exit(children[i], 0);
    }
    for (int round = 0; round < 2; round++) {
        assert_int_equal(kit_info(session).entries, PROCESSES * COUNT / 2);
        for (int i = 0; i < PROCESSES; i++) {
            struct wal_session *own;

            (void)snprintf(id, sizeof(id), "own-%d", i);
            own = kit_session(store, id);
            assert_int_equal(kit_info(own).entries, COUNT / 2);
            (void)snprintf(id, sizeof(id), "p%d-%d", i, COUNT - 2);
            assert_slice(kit_info(own).head, id);
            wal_session_close(own);
        }
        wal_session_close(session);
        kit_close(store);
        store = kit_open("store", 0);
        session = kit_session(store, "s");
    }
    wal_session_close(session);
    kit_close(store);
}

/* -------------------------------------------------------------- fork --- */

static int use_inherited_handles(struct wal_store *store,
                                 struct wal_session *session)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_session_info session_info = {.struct_size =
                                                sizeof(session_info)};
    struct wal_entry entry = kit_entry("x", NULL, "1");
    struct wal_error error = KIT_ERROR;
    struct wal_slice none = {NULL, 0};
    struct wal_session *other = NULL;
    struct wal_ticket *ticket = NULL;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session_cursor *list = NULL;
    const enum wal_status answers[] = {
        wal_store_get_info(store, &info, &error),
        wal_session_create(store, NULL, &other, &error),
        wal_session_open(store, kit_text("s"), &other, &error),
        wal_session_get_info(session, &session_info, &error),
        wal_session_fork(session, none, NULL, &other, &error),
        wal_session_accept_damage(session, &error),
        wal_session_cursor_open(store, NULL, &list, &error),
        wal_append(session, &entry, 1, NULL, NULL, &error),
        wal_submit(session, &entry, 1, NULL, &ticket, &error),
        wal_entry_cursor_open(session, NULL, &cursor, &error),
        wal_sync(store, &error),
        wal_close(store, &error),
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (answers[i] != WAL_EFORKED) {
            (void)fprintf(stderr, "call %zu: %d\n", i, answers[i]);
            return 1;
        }
    }
    return strstr(error.text, "parent") == NULL ? 2 : 0;
}

static int open_separately(void)
{
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_entry entry = kit_entry("child", NULL, "1");

    if (wal_open("store", NULL, &store, NULL) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK ||
        wal_append(session, &entry, 1, NULL, NULL, NULL) != WAL_OK) {
        return 3;
    }
    wal_session_close(session);
    return wal_close(store, NULL) == WAL_OK ? 0 : 4;
}

KIT_TEST(fork__handles_of_the_parent_are_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    pid_t child;

    kit_append(session, "a", NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int code = use_inherited_handles(store, session);

        _exit(code != 0 ? code : open_separately());
    }
    expect_exit(child, 0);
    kit_append(session, "b", NULL);
    assert_branch(session, "a child b");
    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_branch(session, "a child b");
    wal_session_close(session);
    kit_close(store);
}

/* A child that survives its parent holds no lock. */
KIT_TEST(fork__surviving_child_holds_no_lock)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    int ball[2];
    pid_t child;

    assert_int_equal(pipe(ball), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        receive_turn(ball[0]);
        _exit(0);
    }
    kit_append(session, "a", NULL);
    wal_session_close(session);
    kit_close(store);
    for (int i = 0; i < 3; i++) {
        char id[16];

        store = kit_open("store", 0);
        session = kit_session(store, "s");
        (void)snprintf(id, sizeof(id), "b%d", i);
        kit_append(session, id, NULL);
        wal_session_close(session);
        kit_close(store);
    }
    send_turn(ball[1]);
    expect_exit(child, 0);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_branch(session, "a b0 b1 b2");
    wal_session_close(session);
    kit_close(store);
    (void)close(ball[0]);
    (void)close(ball[1]);
}

/* Appends until it is killed, with a child that only waits for the end of a
 * pipe. */
static void append_and_fork(int waits_fd, int count_fd, int round)
{
    struct wal_store *store = kit_open("store", 0);
    struct wal_session *session = kit_session(store, "s");
    pid_t child = fork();

    WAL__ASSERT(child >= 0);
    if (child == 0) {
        char end;

        (void)close(count_fd);
        (void)!read(waits_fd, &end, 1);
        _exit(0);
    }
    for (int i = 0;; i++) {
        struct wal_entry entry;
        char id[32];

        (void)snprintf(id, sizeof(id), "%d-%d", round, i);
        entry = kit_entry(id, NULL, "{}");
        WAL__ASSERT(wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK);
        WAL__ASSERT(write(count_fd, &i, sizeof(i)) == sizeof(i));
    }
}

static void kill_process_with_child(int round, uint64_t *random)
{
    struct wal_error error = KIT_ERROR;
    struct wal_entry entry;
    struct wal_store *store;
    struct wal_session *session;
    int waits[2];
    int counts[2];
    int status;
    int last = -1;
    char id[32];
    pid_t child;

    assert_int_equal(pipe(waits), 0);
    assert_int_equal(pipe(counts), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(waits[1]);
        (void)close(counts[0]);
        append_and_fork(waits[0], counts[1], round);
    }
    (void)close(counts[1]);
    assert_int_equal(read(counts[0], &last, sizeof(last)), sizeof(last));
    usleep((useconds_t)(kit_random(random) % 5000));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    while (read(counts[0], &last, sizeof(last)) == sizeof(last)) {
    }
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    (void)snprintf(id, sizeof(id), "after-%d", round);
    entry = kit_entry(id, NULL, "{}");
    if (wal_append(session, &entry, 1, NULL, NULL, &error) != WAL_OK) {
        fail_msg("round %d: %s", round, error.text);
    }
    (void)snprintf(id, sizeof(id), "%d-%d", round, last);
    entry = kit_entry(id, NULL, "{}");
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    (void)snprintf(id, sizeof(id), "after-%d", round);
    assert_slice(kit_info(session).head, id); /* the other one was known */
    wal_session_close(session);
    kit_close(store);
    (void)close(waits[0]);
    (void)close(waits[1]);
    (void)close(counts[0]);
}

/* A killed process holds no lock either, though a child of it survives. */
KIT_TEST(fork__child_of_a_killed_process_holds_no_lock)
{
    struct wal_store *store = kit_store();
    uint64_t random = kit_seed();

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    for (int round = 0; round < 20; round++) {
        kill_process_with_child(round, &random);
    }
}
