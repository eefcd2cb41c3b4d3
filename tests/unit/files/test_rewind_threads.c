/*
 * test_rewind_threads.c - rewinds of several threads, through one handle of the
 * store and through two: one at a time, so that each finds all files as the one
 * before left them.
 */
#include <pthread.h>

#include "format/bytes/assert.h"
#include "tests/lib/kit/rewind_kit.h"

enum {
    THREADS = 4,
    ROUNDS = 12
};

struct worker {
    struct wal_store *store;
    unsigned number;
};

static void *work(void *arg)
{
    const struct worker *worker = arg;
    struct wal_session *session = NULL;

    WAL__ASSERT(wal_session_open(worker->store, kit_text("s"), &session,
                                 NULL) == WAL_OK);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct wal_rewind_result info = {.struct_size = sizeof(info)};
        const char *id = (worker->number + i) % 2 == 0 ? "c0" : "c1";

        WAL__ASSERT(wal_rewind(session, kit_text(id), NULL, &info, NULL,
                               NULL) == WAL_OK);
        /* All or none of the three were in the other state. */
        WAL__ASSERT(info.can_rewind == 1 &&
                    (info.files_changed == 0 || info.files_changed == 3));
    }
    wal_session_close(session);
    return NULL;
}

static void make_states(struct wal_session *session)
{
    tree_put("a", "0\n");
    tree_put("b", "0\n");
    tree_checkpoint(session, "c0", "a b c");
    tree_put("a", "1\n");
    tree_put("b", "1\n");
    tree_put("c", "1\n");
    tree_checkpoint(session, "c1", "a b c");
}

KIT_TEST(rewind_threads__one_at_a_time)
{
    struct wal_store *stores[2] = {kit_store(), NULL};
    struct wal_session *session = tree_session(stores[0]);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct kit_rewind_result answer;

    make_states(session);
    stores[1] = kit_store();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){stores[i % 2], i / 2};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]),
                         0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    answer = kit_rewind(session, "c0");
    assert_int_equal(answer.info.can_rewind, 1);
    tree_assert_content("a", "0\n");
    tree_assert_content("b", "0\n");
    assert_string_equal(tree_names(), "a b");
    wal_session_close(session);
    kit_close(stores[1]);
    kit_close(stores[0]);
}
