/*
 * test_store_unreadable.c - tests of appends while the log cannot be read: they
 * fail with WAL_EIO, and never with an answer that guesses the unread state.
 */
#include "tests/lib/kit/store_kit.h"

#include <errno.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/session.h"
#include "engine/session/store.h"

static uint64_t unreadable_end; /* 0: the whole log is readable */

static enum wal_status read_some(void *ctx, struct wal__file *file, void *data,
                                 size_t size, uint64_t offset, size_t *got,
                                 int *sys_errno)
{
    if (offset < unreadable_end) {
        *sys_errno = EIO;
        return WAL_EIO;
    }
    return wal__io_posix.pread(ctx, file, data, size, offset, got, sys_errno);
}

/* An open store with the entries "a" and "b", whose log can no longer be read
 * before its present end. */
static struct wal_store *open_unreadable(struct wal__io *io,
                                         struct wal_session **session)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_PREAD};
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;

    *session = kit_create(store, "s");
    kit_append_all(*session, "a b");
    wal_session_close(*session);
    kit_close(store);
    *io = wal__io_posix;
    io->pread = read_some;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, io, &store,
                              &error));
    *session = kit_session(store, "s");
    assert_branch(*session, "a b");
    unreadable_end = atomic_load(&store->core.log.tail_segment->end);
    return store;
}

static enum wal_status expecting(struct wal_session *session, const char *tail,
                                 struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN,
                                               .flags = WAL_APPEND_EXPECT,
                                               .expected_tail = kit_text(tail)};
    const struct wal_entry entry = kit_entry("c", NULL, "{}");

    return wal_append(session, &entry, 1, &options, NULL, error);
}

/* An empty tail would mean that the session has no entries. */
KIT_TEST(unreadable__tail_is_not_reported_as_empty)
{
    static const char *const tails[] = {"", "unknown"};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *session;
    struct wal__io io;
    struct wal_store *store = open_unreadable(&io, &session);

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(expecting(session, tails[i], &error), WAL_EIO);
    }
    unreadable_end = 0;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(expecting(session, tails[i], &error), WAL_ECONFLICT);
        assert_string_equal(error.actual, "b");
    }
    assert_ok(expecting(session, "b", &error));
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(unreadable__head_is_not_reported_as_missing)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .flags = WAL_HEAD_EXPECT,
                            .entry_id = kit_text(""),
                            .expected = kit_text("")};
    struct wal_error error = KIT_ERROR;
    struct wal_session *session;
    struct wal__io io;
    struct wal_store *store = open_unreadable(&io, &session);

    /* `main` has no record that would be read first. */
    head.name = kit_text("main");
    assert_int_equal(wal_head_move(session, &head, NULL, &error), WAL_EIO);
    unreadable_end = 0;
    assert_int_equal(wal_head_move(session, &head, NULL, &error),
                     WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    wal_session_close(session);
    kit_close(store);
}
