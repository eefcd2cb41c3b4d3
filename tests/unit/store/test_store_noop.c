/*
 * test_store_noop.c - tests of WAL_OPEN_NOOP (SPEC.md 5.11): sessions are kept until the store is
 * closed, and nothing that is added to them is.
 */
#include <dirent.h>

#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"

/* Of every test: a store, a session, and a heap that counts. */
static struct faulty_heap heap;
static struct wal_store *store;
static struct wal_session *session;
static struct wal_error error;

static const struct wal_slice none;

static int enter(void **state)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_NOOP};

    faulty_heap_init(&heap, &wal__heap_libc);
    error = KIT_ERROR;
    if (kit_set_up(state) != 0 ||
        wal__store_open(NULL, &options, &heap.heap, &wal__io_posix, &store, &error) != WAL_OK) {
        return -1;
    }
    session = kit_create(store, "s");
    return 0;
}

/* Expects that every handle is freed and no file was made. */
static int leave(void **state)
{
    DIR *directory = opendir(".");
    const struct dirent *entry;
    int result = 0;

    result |= wal_close(store, &error);
    result |= heap.live != 0;
    for (entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        result |= entry->d_name[0] != '.';
    }
    (void)closedir(directory);
    return kit_tear_down(state) | result;
}

/* ------------------------------------------------------------- store --- */

TEST_WITH(store_noop__opening_accesses_no_path, enter, leave)
{
    const char *const paths[] = {NULL, "", "no/such/directory", "/dev/null"};
    const uint32_t flags[] = {0, WAL_OPEN_CREATE, WAL_OPEN_READ_ONLY,
                              WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE,
                              WAL_OPEN_STRICT | WAL_OPEN_PREAD};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        for (size_t j = 0; j < sizeof(flags) / sizeof(flags[0]); j++) {
            const struct wal_open_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_OPEN_NOOP | flags[j]};
            struct wal_store *opened = NULL;

            assert_ok(wal_open(paths[i], &options, &opened, &error));
            wal_session_close(kit_create(opened, "x"));
            assert_ok(wal_close(opened, &error));
        }
    }
}

/* Neither the log nor the blob stream grows. */
TEST_WITH(store_noop__appends_take_no_memory, enter, leave)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    const struct wal_store_info empty = {.struct_size = sizeof(empty)};
    uint64_t written = atomic_load(&store->core.log.shared->written);
    uint8_t digest[WAL_DIGEST_SIZE];

    for (int i = 0; i < 100; i++) {
        char content[16];

        kit_append_all(session, "a b");
        (void)snprintf(content, sizeof(content), "content %d", i);
        assert_ok(wal_blob_put(store, kit_text(content), digest, &error));
    }
    assert_ok(wal_flush(store, &error));
    assert_ok(wal_sync(store, &error));
    assert_int_equal(atomic_load(&store->core.log.shared->written), written);
    assert_int_equal(atomic_load(&store->core.blobs.log.shared->written), 0);
    assert_ok(wal_store_get_info(store, &info, &error));
    assert_memory_equal(&info, &empty, sizeof(info));
    assert_ok(wal_store_accept_damage(store, &error));
}

/* A ticket completes, and the event loop is notified. */
TEST_WITH(store_noop__event_is_signalled, enter, leave)
{
    const struct wal_entry entry = kit_entry("a", NULL, "1");
    struct wal_ticket *ticket = NULL;
    char bytes[8];
    int32_t fd = -1;
    int32_t again = -1;

    assert_ok(wal_store_completion_fd(store, WAL_COMPLETION_PIPE, &fd, &error));
    assert_ok(wal_store_completion_fd(store, WAL_COMPLETION_PIPE, &again, &error));
    assert_int_equal(again, fd);
    kit_append_all(session, "b");
    assert_int_equal(read(fd, bytes, sizeof(bytes)), -1);
    assert_ok(wal_submit(session, &entry, 1, NULL, &ticket, &error));
    assert_ok(wal_ticket_wait(ticket, -1, NULL, &error));
    assert_ok(wal_flush(store, &error));
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 1);
    wal_ticket_destroy(ticket);
}

TEST_WITH(store_noop__migrating_finds_nothing_to_do, enter, leave)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_NOOP};
    struct wal_migrate_result result = {.struct_size = sizeof(result), .from = 9};

    assert_ok(wal_store_migrate("no/such", &options, &result, &error));
    assert_int_equal(result.from, result.to);
    assert_int_equal(result.sessions, 0);
    assert_ok(wal_store_migrate(NULL, &options, NULL, &error));
}

/* ----------------------------------------------------------- session --- */

TEST_WITH(store_noop__ids_are_generated_and_may_repeat, enter, leave)
{
    struct wal_session *made = NULL;
    struct wal_session_info info;

    wal_session_close(kit_create(store, "s"));
    assert_ok(wal_session_create(store, NULL, &made, &error));
    info = kit_info(made);
    assert_int_equal(info.id.size, 36);
    assert_int_equal(((const char *)info.id.data)[14], '7');
    assert_true(info.created_ms > 0);
    assert_int_equal(info.schema_version, 1);
    wal_session_close(made);
}

TEST_WITH(store_noop__open_or_create, enter, leave)
{
    struct wal_session_options options = {
        .struct_size = sizeof(options), .id = kit_text("one"), .cwd = kit_text("/cwd")};
    struct wal_session *opened = NULL;
    int32_t created = -1;

    assert_ok(wal_session_open_or_create(store, &options, &opened, &created, &error));
    assert_slice(kit_info(opened).id, "one");
    assert_int_equal(created, 0);
    wal_session_close(opened);
    options.id = kit_text("");
    assert_ok(wal_session_open_or_create(store, &options, &opened, &created, &error));
    assert_slice(kit_info(opened).cwd, "/cwd");
    assert_int_equal(created, 1);
    wal_session_close(opened);
}

struct asked {
    int calls;
    int32_t answer;
    struct wal_slice metadata;
};

static int32_t change(void *ctx, const struct wal_session_info *now,
                      struct wal_session_change *wanted)
{
    struct asked *asked = ctx;

    asked->calls++;
    assert_slice(now->id, "s");
    assert_int_equal(now->entries, 0);
    assert_int_equal(wanted->struct_size, sizeof(*wanted));
    wanted->fields = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE;
    wanted->title = kit_text("new");
    wanted->metadata = asked->metadata;
    return asked->answer;
}

TEST_WITH(store_noop__update_calls_its_function_once, enter, leave)
{
    struct asked asked = {.metadata = kit_text("{}")};

    assert_ok(wal_session_update(session, change, &asked, &error));
    assert_int_equal(asked.calls, 1);
    assert_slice(kit_info(session).title, "");
    asked.answer = 42;
    assert_int_equal(wal_session_update(session, change, &asked, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 42);
    asked.answer = 0;
    asked.metadata = kit_text("{");
    assert_int_equal(wal_session_update(session, change, &asked, &error), WAL_EBADJSON);
    assert_int_equal(asked.calls, 3);
    assert_int_equal(wal_session_update(session, NULL, NULL, &error), WAL_EINVAL);
}

TEST_WITH(store_noop__deleting_and_accepting_damage, enter, leave)
{
    assert_ok(wal_session_accept_damage(session, &error));
    assert_ok(wal_session_delete(session, &error));
    assert_int_equal(wal_session_delete(session, &error), WAL_ENOTFOUND);
    kit_append_all(session, "a");
}

/* ------------------------------------------------------------ append --- */

TEST_WITH(store_noop__entry_has_a_generated_id, enter, leave)
{
    struct wal_entry entry = kit_entry("", NULL, "1");
    struct wal_append_result result = {.struct_size = sizeof(result)};

    entry.id = none;
    assert_ok(kit_try_append(session, &entry, &result, &error));
    assert_int_equal(strlen(result.last_id), 36);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, &error));
}

TEST_WITH(store_noop__invalid_entries_are_refused, enter, leave)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_entry entry = kit_entry("a", NULL, "{");

    assert_int_equal(kit_try_append(session, &entry, &result, &error), WAL_EBADJSON);
    entry = kit_entry("a", NULL, "1");
    entry.type = none;
    assert_int_equal(kit_try_append(session, &entry, &result, &error), WAL_EINVAL);
    entry = kit_entry("a", NULL, "1");
    entry.struct_size--;
    assert_int_equal(kit_try_append(session, &entry, &result, &error), WAL_EINVAL);
    entry = kit_entry("a", NULL, "1");
    entry.stream = 256;
    assert_int_equal(kit_try_append(session, &entry, &result, &error), WAL_EINVAL);
    assert_int_equal(wal_append(session, &entry, 0, NULL, NULL, &error), WAL_EINVAL);
    assert_int_equal(wal_append(NULL, &entry, 1, NULL, NULL, &error), WAL_EINVAL);
    assert_int_equal(result.appended, 0);
}

TEST_WITH(store_noop__redacting_and_compacting, enter, leave)
{
    const struct wal_session_options into = {.struct_size = sizeof(into), .id = kit_text("f")};
    struct wal_compact_options options = {
        .struct_size = sizeof(options), .first_kept = kit_text("a"), .summary = kit_text("short")};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_session *fork = NULL;

    assert_ok(wal_session_redact(session, kit_text("a"), kit_text("why"), &result, &error));
    assert_int_equal(result.appended, 1);
    assert_int_equal(strlen(result.last_id), 36);
    result = (struct wal_append_result){.struct_size = sizeof(result)};
    assert_ok(wal_session_compact(session, &options, NULL, &result, &error));
    assert_int_equal(result.appended, 1);
    assert_int_equal(strlen(result.last_id), 36);
    options.into = &into;
    assert_ok(wal_session_compact(session, &options, &fork, &result, &error));
    assert_slice(kit_info(fork).id, "f");
    assert_slice(kit_info(fork).parent_id, "s");
    wal_session_close(fork);
    options.first_kept = none;
    assert_int_equal(wal_session_compact(session, &options, &fork, &result, &error), WAL_EINVAL);
}

/* ----------------------------------------------------------- reading --- */

TEST_WITH(store_noop__lists_have_the_sessions, enter, leave)
{
    const struct wal_session_cursor_options options[] = {
        {.struct_size = sizeof(options[0])},
        {.struct_size = sizeof(options[0]), .prefix = kit_text("s")},
        {.struct_size = sizeof(options[0]),
         .flags = WAL_SESSION_CURSOR_LINEAGE,
         .lineage_of = kit_text("s")},
    };
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char cursor[WAL_CURSOR_TEXT_SIZE];

    for (size_t i = 0; i < 3; i++) {
        struct wal_session_cursor *list = NULL;

        assert_ok(wal_session_cursor_open(store, &options[i], &list, &error));
        if (options[i].flags != WAL_SESSION_CURSOR_LINEAGE) {
            assert_ok(wal_session_cursor_next(list, &info, &error));
            assert_slice(info.id, "s");
            assert_int_equal(info.entries, 0);
        }
        assert_int_equal(wal_session_cursor_next(list, &info, &error), WAL_END);
        assert_ok(wal_session_cursor_encode(list, cursor, &error));
        assert_true(strlen(cursor) < sizeof(cursor));
        wal_session_cursor_close(list);
    }
}

TEST_WITH(store_noop__cursors_are_empty, enter, leave)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .up_to = kit_text("no entry")};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *iter = NULL;

    assert_ok(wal_entry_cursor_open(session, &options, &iter, &error));
    assert_int_equal(wal_entry_cursor_remaining(iter), 0);
    assert_int_equal(wal_entry_cursor_next(iter, &entry, &error), WAL_END);
    assert_int_equal(wal_entry_cursor_get(iter, kit_text("a"), &entry, &error), WAL_ENOTFOUND);
    wal_entry_cursor_close(iter);
    iter = NULL;
    options.mode = 99;
    assert_int_equal(wal_entry_cursor_open(session, &options, &iter, &error), WAL_EINVAL);
    assert_null(iter);
}

TEST_WITH(store_noop__head_moves_are_accepted_and_discarded, enter, leave)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .flags = WAL_HEAD_EXPECT,
                            .name = kit_text("h"),
                            .entry_id = kit_text("a"),
                            .expected = kit_text("b")};
    struct wal_head_cursor *heads = NULL;
    char id[256] = "untouched";

    assert_ok(wal_head_move(session, &head, id, &error));
    assert_string_equal(id, "");
    assert_ok(wal_head_move(session, &head, NULL, &error));
    assert_int_equal(wal_head_get(session, 0, kit_text("h"), id, &error), WAL_ENOTFOUND);
    assert_int_equal(wal_head_get(session, 0, none, id, &error), WAL_ENOTFOUND);
    assert_ok(wal_head_cursor_open(session, &heads, &error));
    assert_int_equal(wal_head_cursor_next(heads, &head, &error), WAL_END);
    wal_head_cursor_close(heads);
    head.stream = 256;
    assert_int_equal(wal_head_move(session, &head, NULL, &error), WAL_EINVAL);
}

TEST_WITH(store_noop__content_is_digested_and_discarded, enter, leave)
{
    static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf}; /* its SHA-256 */
    struct wal_blob_writer *writer = NULL;
    uint8_t digest[WAL_DIGEST_SIZE] = {0};
    struct wal_blob *blob = NULL;
    uint64_t size = 0;

    assert_ok(wal_blob_put(store, kit_text("abc"), digest, &error));
    assert_memory_equal(digest, abc, sizeof(abc));
    assert_int_equal(wal_blob_open(store, digest, &blob, &error), WAL_ENOTFOUND);
    memset(digest, 0, sizeof(digest));
    assert_ok(wal_blob_create(store, &writer, &error));
    assert_ok(wal_blob_write(writer, kit_text("a"), &error));
    assert_ok(wal_blob_write(writer, kit_text("bc"), &error));
    assert_ok(wal_blob_finish(writer, digest, &size, &error));
    assert_memory_equal(digest, abc, sizeof(abc));
    assert_int_equal(size, 3);
    assert_int_equal(wal_blob_write(writer, kit_text("a"), &error), WAL_EINVAL);
    wal_blob_discard(writer);
}

TEST_WITH(store_noop__waiting_and_claiming, enter, leave)
{
    uint64_t sequence = UINT64_MAX / 2;

    assert_int_equal(wal_store_wait(store, &sequence, WAL_WRITTEN, 5, &error), WAL_EBUSY);
    assert_int_equal(wal_store_wait(store, &sequence, WAL_QUEUED, 0, &error), WAL_EINVAL);
    assert_int_equal(sequence, UINT64_MAX / 2);
    assert_ok(wal_session_claim(session, &error));
    assert_ok(wal_session_claim(session, &error));
    assert_ok(wal_session_unclaim(session, &error));
}
