/*
 * test_transfer_meanwhile.c - merges while others write to what they make:
 * whatever was acknowledged is there afterwards (agentwal/transfer.h).
 */
#include "tests/lib/kit/parts_kit.h"

#include "agentwal/transfer.h"

/* What another handle does at a step of the merge. */
struct writer {
    struct wal_store *store;
    uint64_t at; /* number of the call of progress, from 1 */
    uint64_t calls;
    bool is_written;
};

static int32_t write_at_step(void *ctx, uint64_t done, uint64_t total)
{
    struct writer *writer = ctx;
    struct wal_entry entry = kit_entry("agent", NULL, "{}");
    struct wal_session *session = NULL;

    (void)done;
    (void)total;
    writer->calls++;
    if (writer->calls == writer->at &&
        wal_session_open(writer->store, WAL_STR("gone"), &session, NULL) ==
            WAL_OK) {
        writer->is_written =
            wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;
        wal_session_close(session);
    }
    return 0;
}

/* A session that is deleted, and its fork, which needs it. */
static struct wal_store *make_source(void)
{
    struct wal_store *store = kit_open("from", WAL_OPEN_CREATE);
    struct wal_session *gone = kit_create(store, "gone");
    struct wal_session *fork;

    kit_append_all(gone, "a b c");
    fork = kit_fork(gone, "b", "fork");
    kit_append_all(fork, "d e f");
    assert_ok(wal_session_delete(gone, NULL));
    wal_session_close(fork);
    wal_session_close(gone);
    return store;
}

static void merge(struct wal_store *from, struct wal_store *to,
                  struct writer *writer)
{
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);
    struct wal_error error = KIT_ERROR;

    options.progress = write_at_step;
    options.ctx = writer;
    if (wal_store_merge(from, to, &options, NULL, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
}

KIT_TEST(merge__source_of_a_fork_that_others_write_to)
{
    struct wal_store *from = make_source();
    unsigned written = 0;

    for (uint64_t at = 1;; at++) {
        struct wal_store *to = kit_store();
        struct writer writer = {.store = kit_store(), .at = at};
        struct wal_session *session = NULL;
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        enum wal_status status;

        merge(from, to, &writer);
        session = kit_session(to, "fork");
        assert_branch(session, "a b d e f");
        wal_session_close(session);
        session = NULL;
        status = wal_session_open(to, kit_text("gone"), &session, NULL);
        assert_int_equal(status, writer.is_written ? WAL_OK : WAL_ENOTFOUND);
        if (writer.is_written) {
            assert_ok(wal_entry_get(session, kit_text("agent"), &entry, NULL));
            written++;
        }
        wal_session_close(session);
        kit_close(writer.store);
        kit_close(to);
        assert_int_equal(system("rm -rf store"), 0);
        if (writer.calls < at) {
            break;
        }
    }
    assert_true(written > 0);
    kit_close(from);
}

/* --- the store that is read ----------------------------------------------- */

/* Appends to the session "s" of the store that is read, which has a to c with
 * the head main at b, and none in the session "empty". */
static int32_t append_at_step(void *ctx, uint64_t done, uint64_t total)
{
    struct writer *writer = ctx;

    (void)done;
    (void)total;
    writer->calls++;
    if (writer->calls == writer->at) {
        struct wal_session *session = kit_session(writer->store, "s");
        struct wal_session *empty = kit_session(writer->store, "empty");

        kit_append(session, "d", "b");
        kit_append(session, "e", "d");
        kit_move_head(session, "old", "a");
        kit_move_head(session, "new", "e");
        kit_move_head(session, "try", "d");
        kit_append(empty, "f", "");
        wal_session_close(empty);
        wal_session_close(session);
        writer->is_written = true;
    }
    return 0;
}

static struct wal_store *make_store_in_use(void)
{
    struct wal_store *store = kit_open("from", WAL_OPEN_CREATE);
    struct wal_session *empty = kit_create(store, "empty");
    struct wal_session *session = kit_create(store, "s");

    kit_append_all(session, "a b c");
    kit_move_head(session, "main", "b");
    kit_move_head(session, "try", "c");
    wal_session_close(session);
    wal_session_close(empty);
    return store;
}

static void assert_heads(struct wal_store *store, const char *id,
                         const char *heads)
{
    struct wal_session *session = kit_session(store, id);

    assert_string_equal(kit_heads(session), heads);
    wal_session_close(session);
}

static void merge_all(struct wal_store *from, struct wal_store *to,
                      struct writer *writer)
{
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);
    struct wal_error error = KIT_ERROR;

    options.progress = append_at_step;
    options.ctx = writer;
    assert_ok(wal_store_merge(from, to, &options, &result, &error));
    assert_int_equal(result.refused, 0);
}

KIT_TEST(merge__of_a_store_that_others_write_to)
{
    unsigned written = 0;

    for (uint64_t at = 1;; at++) {
        struct wal_store *from = make_store_in_use();
        struct wal_store *to = kit_store();
        struct writer writer = {.store = kit_open("from", 0), .at = at};
        struct writer none = {.at = 0};

        merge_all(from, to, &writer);
        if (at == 1) {
            assert_heads(to, "s", "main=b new=b old=a try=b");
            assert_heads(to, "empty", "");
        }
        merge_all(from, to, &none);
        assert_heads(to, "s",
                     writer.is_written ? "main=e new=e old=a try=d"
                                       : "main=b try=c");
        assert_heads(to, "empty", writer.is_written ? "main=f" : "");
        written += writer.is_written;
        kit_close(writer.store);
        kit_close(to);
        kit_close(from);
        assert_int_equal(system("rm -rf store from"), 0);
        if (!writer.is_written) {
            break;
        }
    }
    assert_true(written > 1);
}
