/*
 * test_view_kill.c - a flush is killed before a change of the file system, or in the middle of a
 * write, and the next one too, while the log grows. The flush after them makes the view equal to a
 * full export, and leaves no other file. What one leaves that is cut short once is the subject of
 * tests/sim/view/test_view_power.c.
 */
#include "tests/lib/kit/view_kit.h"

#include <sys/wait.h>

#include "format/bytes/assert.h"

/* Where a flush is killed: before the nth step, or in it. */
struct death {
    unsigned at;
    unsigned steps;
    bool in_write;
};

static size_t die(void *ctx, size_t size)
{
    struct death *death = ctx;

    if (death->steps++ < death->at) {
        return size;
    }
    if (death->steps > death->at + 1 || !death->in_write || size < 2) {
        _exit(1);
    }
    return size / 2;
}

/* Flushes in a child process: 0 if the flush ended before the child died. */
static int flush_and_die(const char *dialect, unsigned at, bool in_write)
{
    struct death death = {.at = at, .in_write = in_write};
    const struct wal__view_env env = {.heap = &wal__heap_libc, .fault_hook = die, .ctx = &death};
    const struct wal_view_options options = {
        .struct_size = sizeof(options), .dialect = kit_text(dialect), .root = kit_text("root")};
    struct wal_open_options opening = {.struct_size = sizeof(opening), .flags = WAL_OPEN_READ_ONLY};
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_view *view = NULL;
    pid_t child = kit_start_process();
    int status = 0;

    if (child > 0) {
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        return WEXITSTATUS(status);
    }
    WAL__ASSERT(wal_open("store", &opening, &store, NULL) == WAL_OK);
    WAL__ASSERT(wal_session_open(store, kit_text(view_kit_id(0xFFFF)), &session, NULL) == WAL_OK);
    WAL__ASSERT(wal__view_open(store, session, &options, &env, &view, NULL) == WAL_OK);
    WAL__ASSERT(wal_view_flush(view, NULL, NULL) == WAL_OK);
    _exit(0);
}

/* No file is left but the view's files and state. */
static void expect_clean(void)
{
    assert_false(view_kit_has_temporary("root/.agentwal"));
}

/* Without a shell, which takes as long as the rest of a case. */
static void remove_all(void)
{
    view_kit_remove("store");
    view_kit_remove("root");
    view_kit_remove("fresh");
}

static void make(struct wal_session *session, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        view_kit_row(session, i, i - 1, i == 2 ? "a secret" : "text");
    }
}

/* A row that is not the view's last: what was written after its parent is written again where the
 * dialect has no branches. */
static void grow(struct wal_store *store, unsigned id, unsigned parent)
{
    struct wal_session *session = kit_session(store, view_kit_id(0xFFFF));

    view_kit_row(session, id, parent, "text");
    wal_session_close(session);
}

/* Kills a flush, and the next one; sets *first_died and *second_died. */
static void die_twice(const char *dialect, unsigned first, unsigned second, bool in_write,
                      bool *first_died, bool *second_died)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_import(store, 0xFFFF);

    make(session, 1, 5);
    (void)view_kit_export(store, session, dialect, "root");
    make(session, 5, 8);
    wal_session_close(session);
    kit_close(store);
    *first_died = flush_and_die(dialect, first, in_write) != 0;
    store = kit_store();
    grow(store, 8, 5);
    kit_close(store);
    *second_died = flush_and_die(dialect, second, in_write) != 0;
    store = kit_store();
    grow(store, 9, 4);
    session = kit_session(store, view_kit_id(0xFFFF));
    (void)view_kit_export(store, session, dialect, "root");
    view_kit_assert_full_export(store, session, dialect, "root");
    expect_clean();
    wal_session_close(session);
    kit_close(store);
    remove_all();
}

KIT_TEST(view_kill__twice)
{
    static const char *const dialects[] = {"codex", "pi", "spec11", "opencode"};
    uint64_t random = kit_seed();
    const bool is_long = getenv("AGENTWAL_LONG") != NULL;

    for (unsigned i = 0; i < 4; i++) {
        const unsigned step = is_long ? 1 : i == 0 ? 4 : 8; /* of Codex, pairs are few */
        bool first_died = true;
        unsigned pairs = 0;
        for (unsigned first = 0; first_died; first += 1 + (unsigned)(kit_random(&random) % step)) {
            bool second_died = true;
            unsigned second = (unsigned)(kit_random(&random) % step);
            for (; first_died && second_died; pairs++) {
                die_twice(dialects[i], first, second, kit_random(&random) % 2 == 0, &first_died,
                          &second_died);
                second += 1 + (unsigned)(kit_random(&random) % step);
            }
        }
        print_message("%s: died in %u pairs\n", dialects[i], pairs);
        assert_true(pairs > 10);
    }
}
