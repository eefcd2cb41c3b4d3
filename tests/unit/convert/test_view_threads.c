/*
 * test_view_threads.c - views of one session in several threads, each with its
 * own, two of them of the same files, while another thread appends.
 */
#include "tests/lib/kit/view_kit.h"

#include <pthread.h>

#include "format/bytes/assert.h"

enum {
    ROWS = 60,
    VIEWS = 4
};

struct viewer {
    struct wal_view *view;
    pthread_t thread;
};

static void *look(void *ctx)
{
    const struct viewer *viewer = ctx;
    struct wal_view_flush_result report = {.struct_size = sizeof(report)};

    while (report.entries < ROWS) {
        WAL__ASSERT(wal_view_flush(viewer->view, &report, NULL) == WAL_OK);
    }
    return NULL;
}

KIT_TEST(view_threads__each_thread_has_a_view)
{
    static const char *const dialects[VIEWS] = {"claude", "pi", "pi", "codex"};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_import(store, 0xFFFF);
    struct viewer viewers[VIEWS];

    for (unsigned i = 0; i < VIEWS; i++) {
        viewers[i].view = view_kit_open(store, session, dialects[i],
                                        i == 3 ? "codex" : "root");
        assert_int_equal(
            pthread_create(&viewers[i].thread, NULL, look, &viewers[i]), 0);
    }
    for (unsigned i = 1; i <= ROWS; i++) {
        view_kit_row(session, i, i - 1, "text");
    }
    for (unsigned i = 0; i < VIEWS; i++) {
        assert_int_equal(pthread_join(viewers[i].thread, NULL), 0);
        (void)view_kit_flush(viewers[i].view);
        wal_view_close(viewers[i].view);
    }
    (void)view_kit_export(store, session, "claude", "whole");
    (void)view_kit_export(store, session, "pi", "whole");
    view_kit_assert_equal("whole", "root");
    view_kit_assert_full_export(store, session, "codex", "codex");
    wal_session_close(session);
    kit_close(store);
}
