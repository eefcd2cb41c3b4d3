/*
 * test_view_memory.c - the nth allocation of a flush fails: it returns
 * WAL_ENOMEM, and the next flush makes the view equal to a full export.
 */
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/view_kit.h"

static struct wal_view *open_view(struct wal_store *store,
                                  struct wal_session *session,
                                  const char *dialect,
                                  const struct wal__heap *heap)
{
    const struct wal__view_env env = {.heap = heap};
    const struct wal_view_options options = {.struct_size = sizeof(options),
                                             .dialect = kit_text(dialect),
                                             .root = kit_text("root")};
    struct wal_view *view = NULL;
    enum wal_status status =
        wal__view_open(store, session, &options, &env, &view, NULL);

    assert_true(status == WAL_OK || status == WAL_ENOMEM);
    assert_true((status == WAL_OK) == (view != NULL));
    return view;
}

static void make(struct wal_session *session, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        view_kit_row(session, i, i - 1, "text");
    }
}

/* Fails one allocation after the other in two flushes of one view. */
static void fail_each(const char *dialect, bool sticky)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_import(store, 0xFFFF);
    unsigned rows = 1;
    bool is_done = false;

    make(session, rows, 6);
    rows = 6;
    for (uint64_t n = 1; !is_done; n += 1 + n / 10) {
        struct faulty_heap faulty;
        struct wal_view *view;
        enum wal_status status;
        faulty_heap_init(&faulty, &wal__heap_libc);
        faulty_heap_fail(&faulty, n, sticky);
        view = open_view(store, session, dialect, &faulty.heap);
        for (unsigned i = 0; i < 2 && view != NULL; i++) {
            struct wal_error error = KIT_ERROR;
            status = wal_view_flush(view, NULL, &error);
            assert_true(status == WAL_OK || status == WAL_ENOMEM);
            if (i == 0) {
                make(session, rows, rows + 1);
                rows++;
            }
        }
        wal_view_close(view);
        assert_int_equal(faulty.live, 0);
        is_done = faulty.failures == 0;
        (void)view_kit_export(store, session, dialect, "root");
        view_kit_assert_full_export(store, session, dialect, "root");
    }
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(system("rm -rf store root"), 0);
}

KIT_TEST(view_memory__unchanged_lines)
{
    fail_each("claude", false);
    fail_each("claude", true);
}

KIT_TEST(view_memory__lines_that_may_continue)
{
    fail_each("pi", false);
}

KIT_TEST(view_memory__live_branch_and_documents)
{
    fail_each("spec11", false);
    fail_each("opencode", false);
}
