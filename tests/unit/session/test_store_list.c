/*
 * test_store_list.c - tests of lists of sessions: filters, lineage, deletion, the fields of each
 * session; lists that are continued after a cursor, and after the indexes were loaded again; and
 * their order: the times of entries, then the newest record, also while sessions move.
 */
#include <stdlib.h>

#include "engine/base/io.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/store_kit.h"

static void add_with(struct wal_store *store, const char *id, const char *cwd, const char *project,
                     const char *source, const char *parent)
{
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text(id),
                                          .cwd = kit_text(cwd),
                                          .project = kit_text(project),
                                          .source = kit_text(source),
                                          .parent_id = kit_text(parent),
                                          .metadata = kit_text("{\"m\":1}")};

    wal_session_close(kit_create_with(store, &options));
}

static void add(struct wal_store *store, const char *id, const char *parent)
{
    add_with(store, id, "", "", "", parent);
}

static struct wal_store *reopen(struct wal_store *store)
{
    kit_close(store);
    return kit_open("store", 0);
}

KIT_TEST(list__misuse_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {.struct_size = 4};
    struct wal_session_info info = {.struct_size = 4};
    struct wal_session_cursor *list = NULL;
    char cursor[WAL_CURSOR_TEXT_SIZE];

    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    options.struct_size = sizeof(options);
    options.flags = 1;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    options.flags = 4;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    options.flags = 0;
    options.cwd = kit_text("\xff");
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_open(store, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_open(NULL, NULL, &list, NULL), WAL_EINVAL);
    assert_null(list);
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_next(NULL, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_encode(list, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_encode(NULL, cursor, NULL), WAL_EINVAL);
    wal_session_cursor_close(list);
    wal_session_cursor_close(NULL);
}

/* -------------------------------------------------------------- lineage --- */

static const char *lineage(struct wal_store *store, const char *of)
{
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .flags = WAL_SESSION_CURSOR_LINEAGE,
                                                 .lineage_of = kit_text(of)};

    return kit_list_sessions(store, &options);
}

KIT_TEST(list__lineage_ends_where_it_repeats)
{
    struct wal_store *store = kit_store();

    add(store, "a", "c");
    add(store, "b", "a");
    add(store, "c", "b");
    add(store, "self", "self");
    add(store, "d", "self");
    assert_string_equal(lineage(store, "a"), "c b");
    assert_string_equal(lineage(store, "self"), "");
    assert_string_equal(lineage(store, "d"), "self");
}

KIT_TEST(list__lineage_of_an_unknown_session)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .flags = WAL_SESSION_CURSOR_LINEAGE,
                                                 .lineage_of = kit_text("x")};
    struct wal_session_cursor *list = NULL;

    assert_fails(wal_session_cursor_open(store, &options, &list, kit_error()), WAL_ENOTFOUND,
                 "\"x\"");
    add(store, "x", "");
    options.cwd = kit_text("/");
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    options.cwd.size = 0;
    options.prefix = kit_text("a");
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    options.prefix.size = 0;
    options.flags = 0;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    options.flags = WAL_SESSION_CURSOR_LINEAGE;
    options.changed_after = 1;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    options.changed_after = 0;
    options.lineage_of.size = 0;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    assert_null(list);
}

/* ----------------------------------------------------------- first text --- */

static void append_message(struct wal_session *session, const char *id, const char *text)
{
    char payload[128];
    struct wal_entry entry;

    (void)snprintf(payload, sizeof(payload), "{\"role\":\"user\",\"content\":\"%s\"}", text);
    entry = kit_entry(id, NULL, payload);
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
}

/* ------------------------------------------------------------- deletion --- */

static void add_many(struct wal_store *store, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        add_with(store, id, i % 2 == 0 ? "/even" : "/odd", "", "", "");
    }
}

static void delete_session(struct wal_store *store, const char *id)
{
    struct wal_session *session = kit_session(store, id);
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char expected[64];

    assert_ok(wal_session_delete(session, NULL));
    (void)snprintf(expected, sizeof(expected), "session \"%s\" was deleted", id);
    assert_fails(wal_session_get_info(session, &info, kit_error()), WAL_ENOTFOUND, expected);
    wal_session_close(session);
}

/* The lineage flags them as deleted; a fork still has their text. */
KIT_TEST(list__lineage_includes_deleted_sessions)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .flags = WAL_SESSION_CURSOR_LINEAGE,
                                                 .lineage_of = kit_text("fork")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session_cursor *list = NULL;

    append_message(session, "a", "hello");
    fork = kit_fork(session, "a", "fork");
    wal_session_close(session);
    delete_session(store, "s");
    add(store, "s", ""); /* another one */
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_session_cursor_open(store, &options, &list, NULL));
        assert_ok(wal_session_cursor_next(list, &info, NULL));
        assert_slice(info.id, "s");
        assert_int_equal(info.number, 1);
        assert_int_equal(info.flags, WAL_SESSION_DELETED);
        assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_END);
        wal_session_cursor_close(list);
        info = kit_info(fork);
        assert_int_equal(info.flags, WAL_SESSION_FORK);
        assert_slice(info.first_text, "hello");
        wal_session_close(fork);
        store = reopen(store);
        fork = kit_session(store, "fork");
    }
}

/* Of the session and of its fork, also when the redaction is undone: the text is not kept. */
KIT_TEST(list__redacted_first_message_is_flagged)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;

    assert_int_equal(kit_info(session).flags, 0);
    append_message(session, "a", "hello");
    assert_int_equal(kit_info(session).flags, 0);
    fork = kit_fork(session, "a", "fork");
    kit_redact(session, "a");
    assert_int_equal(kit_info(session).flags, WAL_SESSION_NO_TEXT);
    assert_int_equal(kit_info(fork).flags, WAL_SESSION_FORK | WAL_SESSION_NO_TEXT);
    assert_ok(wal_session_unredact(session, kit_text("a"), NULL));
    assert_int_equal(kit_info(session).flags, WAL_SESSION_NO_TEXT);
    wal_session_close(fork);
    wal_session_close(session);
}

enum { PAGES_TEXT = 4096 };

/* The next `count` ids of the list after `cursor`, which advances. */
static const char *page(struct wal_store *store, struct wal_session_cursor_options options,
                        int count, char *cursor)
{
    static char text[PAGES_TEXT];
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;

    text[0] = '\0';
    options.struct_size = sizeof(options);
    options.after = kit_text(cursor);
    assert_ok(wal_session_cursor_open(store, &options, &list, NULL));
    while (count-- > 0 && wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
        size_t size = strlen(text);

        (void)snprintf(text + size, sizeof(text) - size, "%s%.*s", size == 0 ? "" : " ",
                       (int)info.id.size, (const char *)info.id.data);
    }
    assert_ok(wal_session_cursor_encode(list, cursor, NULL));
    wal_session_cursor_close(list);
    return text;
}

static void append_to(struct wal_store *store, const char *id, const char *entry)
{
    struct wal_session *session = kit_session(store, id);

    kit_append(session, entry, NULL);
    wal_session_close(session);
}

KIT_TEST(list_pages__empty_cursor_is_the_front)
{
    struct wal_store *store = kit_store();
    const struct wal_session_cursor_options all = {.struct_size = sizeof(all)};
    char cursor[WAL_CURSOR_TEXT_SIZE] = "";

    add_many(store, 3);
    assert_string_equal(page(store, all, 0, cursor), "");
    assert_string_not_equal(cursor, "");
    assert_string_equal(page(store, all, 2, cursor), "s2 s1");
    assert_string_equal(page(store, all, 0, cursor), "");
    assert_string_equal(page(store, all, 2, cursor), "s0");
}

KIT_TEST(list_pages__invalid_cursor_is_refused)
{
    static const char *const wrong[] = {
        " ",
        "s1",
        "0000000000000001-0000000",
        "0000000000000001-000000010",
        "0000000000000001_00000001",
        "000000000000000g-00000001",
        "000000000000000A-00000001",
        "0000000000000001-0000000 ",
        "0000000000000001-00000000",
    };
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_session_cursor *list = NULL;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        options.after = kit_text(wrong[i]);
        assert_fails(wal_session_cursor_open(store, &options, &list, kit_error()), WAL_EINVAL,
                     "cursor");
    }
    options.after = (struct wal_slice){NULL, 25};
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    assert_null(list);
}

/* Makes the store load its indexes again, as after damage. */
static void reload(struct wal_store *store)
{
    assert_ok(wal__core_write_lock(&store->core, NULL));
    assert_ok(wal__core_load_indexes(&store->core, NULL));
    wal__core_unlock(&store->core);
}

/* No session twice, none missing, whatever was appended before. */
KIT_TEST(list_pages__continues_after_indexes_are_reloaded)
{
    enum { COUNT = 24 };

    for (int from = 0; from < 2; from++) {
        struct wal_store *store = kit_open(from == 0 ? "a" : "b", WAL_OPEN_CREATE);
        const struct wal_session_cursor_options all = {.struct_size = sizeof(all)};
        struct wal_session_cursor_options options = all;
        struct wal_session_info info = {.struct_size = sizeof(info)};
        char cursor[WAL_CURSOR_TEXT_SIZE] = "";
        struct wal_session_cursor *list = NULL;
        bool seen[COUNT] = {false};
        int count = 0;

        add_many(store, COUNT);
        (void)page(store, all, from * 5, cursor);
        options.after = kit_text(cursor);
        assert_ok(wal_session_cursor_open(store, &options, &list, NULL));
        while (wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
            char id[16] = "";
            int number;

            memcpy(id, info.id.data, info.id.size);
            number = atoi(id + 1);
            assert_in_range(number, 0, COUNT - 1 - from * 5);
            assert_false(seen[number]);
            seen[number] = true;
            count++;
            /* A session already returned, one still to come, and one of an earlier page. */
            (void)snprintf(id, sizeof(id), "e%d", count);
            append_to(store, count % 2 == 0 ? "s10" : "s2", id);
            append_to(store, "s21", id);
            (void)snprintf(id, sizeof(id), "n%d", count);
            add(store, id, "");
            if (count % 3 == 0) {
                reload(store);
            }
        }
        assert_int_equal(count, COUNT - from * 5);
        wal_session_cursor_close(list);
        kit_close(store);
    }
}

/* Flips a bit of every page of the catalogue but the first two and the last: a cursor that was just
 * opened has verified some of them. */
static void damage_catalogue(const char *store)
{
    char path[64];
    FILE *file;
    long size;

    (void)snprintf(path, sizeof(path), "%s/index/catalogue", store);
    file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    assert_true(size > 8 * 4096L);
    for (long at = 2 * 4096L + 100; at < size - 4096; at += 4096) {
        int byte;

        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        byte = fgetc(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    }
    assert_int_equal(fclose(file), 0);
}

/* A store of 200 sessions, and a catalogue, which is written for 1 MiB. */
static struct wal_store *make_with_catalogue(const char *path, int count)
{
    enum { SIZE = 200 * 1024 };
    struct wal_store *store = kit_open(path, WAL_OPEN_CREATE);
    char *payload = malloc(SIZE);
    struct wal_session *session;
    struct wal_entry entry;

    assert_non_null(payload);
    memset(payload, ' ', SIZE);
    payload[0] = '1';
    add_many(store, count);
    session = kit_create(store, "filler");
    entry = kit_entry("e", NULL, "1");
    entry.payload = (struct wal_slice){payload, SIZE};
    for (int i = 0; i < 8; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        entry.id = kit_text(id);
        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
    free(payload);
    wal_session_close(session);
    kit_close(store);
    return kit_open(path, 0);
}

/* The catalogue that a cursor reads is damaged, and a session of the page before changes: none is
 * returned twice, none is missing. */
KIT_TEST(list_pages__continues_after_damage)
{
    enum { COUNT = 200, PAGE = 50 };

    for (int from = 0; from < 2; from++) {
        const char *path = from == 0 ? "a" : "b";
        struct wal_store *store = make_with_catalogue(path, COUNT);
        struct wal_session_cursor_options options = {.struct_size = sizeof(options)};
        struct wal_session_info info = {.struct_size = sizeof(info)};
        char cursor[WAL_CURSOR_TEXT_SIZE] = "";
        struct wal_session_cursor *list = NULL;
        bool seen[COUNT] = {false};
        enum wal_status status;
        int count = 0;

        (void)page(store, options, from * PAGE, cursor);
        options.after = kit_text(cursor);
        assert_ok(wal_session_cursor_open(store, &options, &list, NULL));
        damage_catalogue(path);
        append_to(store, "s198", "moved");
        while ((status = wal_session_cursor_next(list, &info, NULL)) == WAL_OK) {
            char id[16] = "";
            int number;

            memcpy(id, info.id.data, info.id.size);
            number = atoi(id + 1);
            if (strcmp(id, "filler") != 0) {
                assert_in_range(number, 0, COUNT - (from == 0 ? 1 : PAGE));
                assert_false(seen[number]);
                seen[number] = true;
                count++;
            }
        }
        assert_int_equal(status, WAL_END);
        assert_int_equal(count, from == 0 ? COUNT : COUNT - PAGE + 1);
        assert_true(store->core.rebuild_from_log);
        wal_session_cursor_close(list);
        kit_close(store);
    }
}

/* A session that could not be returned is returned by the next call, and not skipped. */
KIT_TEST(list_pages__failed_allocation_skips_none)
{
    enum { COUNT = 40 };
    const struct wal_open_options create = {
        .struct_size = sizeof(create), .flags = WAL_OPEN_CREATE, .idle_mark_ms = 600000};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct faulty_heap heap;
    struct wal_store *store = NULL;
    struct wal_session_cursor *list = NULL;
    int failures = 0;

    faulty_heap_init(&heap, &wal__heap_libc);
    assert_ok(wal__store_open("store", &create, &heap.heap, &wal__io_posix, &store, NULL));
    add_many(store, COUNT);
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    for (int i = COUNT - 1; i >= 0; i--) {
        enum wal_status status = WAL_ENOMEM;
        char id[16];

        /* Each is returned once all its memory is allocated; the next attempt keeps what the one
         * before it allocated. */
        for (uint64_t nth = 1; status == WAL_ENOMEM; nth = nth % 2 + 1) {
            faulty_heap_fail(&heap, nth, false);
            status = wal_session_cursor_next(list, &info, NULL);
            failures += status == WAL_ENOMEM;
        }
        faulty_heap_fail(&heap, 0, false);
        assert_ok(status);
        (void)snprintf(id, sizeof(id), "s%d", i);
        assert_slice(info.id, id);
    }
    assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_END);
    assert_true(failures > 2);
    wal_session_cursor_close(list);
    kit_close(store);
    assert_int_equal(heap.live, 0);
}

/* What an older library wrote, and what no library writes. */
KIT_TEST(list_times__other_positions_are_refused)
{
    static const char *const texts[] = {
        "0000000000000003-00000001",
        "00000000000003e8-0000000000000003-0000000",
        "00000000000003e8-0000000000000003-00000001x",
        "00000000000003e8_0000000000000003-00000001",
        "00000000000003e8-0000000000000003_00000001",
        "00000000000003E8-0000000000000003-00000001",
        "0000000000000000-0000000000000003-00000000",
        "00000000000003e8-0000000000000000-00000000",
    };

    struct wal_store *store = kit_store();
    struct wal_session_cursor *list = NULL;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                           .after = kit_text(texts[i])};

        assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL), WAL_EINVAL);
    }
    assert_null(list);
}
