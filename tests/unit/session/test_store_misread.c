/*
 * test_store_misread.c - a record that is read as damaged once, as when another
 * process replaced its file, and is whole when it is read again: no answer is
 * made of the first reading.
 */
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "tests/lib/kit/store_kit.h"

/* Which of the next readings returns other bytes; 0: none. */
static int misread_at;

static enum wal_status misread(void *ctx, struct wal__file *file, void *data,
                               size_t size, uint64_t offset, size_t *bytes_read,
                               int *sys_errno)
{
    enum wal_status status = wal__io_posix.pread(ctx, file, data, size, offset,
                                                 bytes_read, sys_errno);

    if (misread_at > 0 && --misread_at == 0) {
        memset(data, 0xee, size);
    }
    return status;
}

static struct wal_store *open_misread(struct wal__io *io)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE |
                                                      WAL_OPEN_PREAD};
    struct wal_store *store = NULL;

    *io = wal__io_posix;
    io->pread = misread;
    misread_at = 0;
    assert_ok(
        wal__store_open("store", &options, &wal__heap_libc, io, &store, NULL));
    return store;
}

KIT_TEST(misread__tail_of_a_conflict_is_read_again)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .flags = WAL_APPEND_EXPECT,
                                               .expected_tail =
                                                   kit_text("nobody")};
    const struct wal_entry entry = kit_entry("d", NULL, "{}");
    struct wal__io io;
    struct wal_store *store = open_misread(&io);
    struct wal_session *session = kit_create(store, "s");

    kit_append_all(session, "a b c");
    for (int at = 1; at <= 4; at++) {
        struct wal_error error = KIT_ERROR;

        misread_at = at;
        assert_int_equal(wal_append(session, &entry, 1, &options, NULL, &error),
                         WAL_ECONFLICT);
        assert_string_equal(error.actual, "c");
    }
    wal_session_close(session);
    kit_close(store);
}

/* Of the session and of a fork that took it. */
KIT_TEST(misread__title_of_a_redacted_entry_goes)
{
    bool is_misread = true;

    for (int at = 1; is_misread; at++) {
        struct wal_error error = KIT_ERROR;
        struct wal__io io;
        struct wal_store *store = open_misread(&io);
        struct wal_session *session;
        struct wal_session *fork;
        struct wal_entry entry =
            kit_entry("a", NULL, "{\"text\":\"the secret\"}");
        char id[32];

        (void)snprintf(id, sizeof(id), "s%d", at);
        session = kit_create_titled(store, id, "the secret");
        assert_ok(wal_append(session, &entry, 1, NULL, NULL, &error));
        (void)snprintf(id, sizeof(id), "f%d", at);
        fork = kit_fork(session, "a", id);
        assert_slice(kit_info(fork).title, "the secret");
        misread_at = at;
        assert_ok(wal_session_redact(session, kit_text("a"), kit_text(""), NULL,
                                     &error));
        is_misread = misread_at == 0;
        misread_at = 0;
        assert_slice(kit_info(session).title, "");
        assert_slice(kit_info(fork).title, "");
        wal_session_close(fork);
        wal_session_close(session);
        kit_close(store);
    }
}
