/*
 * test_store_limits.c - tests of the refusals of wal_append: sizes, invalid texts, and wrong use.
 */
#include "tests/lib/kit/store_kit.h"

enum { MEBIBYTE = 1024 * 1024 };

struct bench {
    struct wal_store *store;
    struct wal_session *session;
    struct wal_error error;
};

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};

    bench.session = kit_create(bench.store, "s");
    kit_append(bench.session, "a", NULL);
    return bench;
}

/* No refused append changed anything. */
static void end(struct bench *bench)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_all_entries(bench->session, "a");
    assert_ok(wal_store_get_info(bench->store, &info, NULL));
    assert_ok(info.status);
    assert_int_equal(info.last_sequence, 2);
    kit_append(bench->session, "z", NULL);
    assert_branch(bench->session, "a z");
    wal_session_close(bench->session);
    kit_close(bench->store);
}

static void refused(struct bench *bench, struct wal_entry entry, enum wal_status status,
                    const char *text)
{
    bench->error = KIT_ERROR;
    assert_int_equal(wal_append(bench->session, &entry, 1, NULL, NULL, &bench->error), status);
    assert_error(&bench->error, status, text);
}

static char *blanks(size_t size)
{
    char *text = test_memory(size + 1);

    memset(text, ' ', size);
    text[size] = '\0';
    return text;
}

KIT_TEST(payload__is_json)
{
    struct bench bench = begin();
    static const char *const bad[] = {
        "",     " ",        "{",     "{\"a\":1,}",     "nul",    "1 2",     "\"\xff\"", "01",
        "[1,]", "\"\x01\"", "{1:2}", "\xef\xbb\xbf{}", "tru\0e", "\"\\ud8", "NaN"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refused(&bench, kit_entry("b", NULL, bad[i]), WAL_EBADJSON, "payload");
    }
    end(&bench);
}

KIT_TEST(payload__of_any_kind_of_json)
{
    static const char *const good[] = {"null", "true", "-0.5e3", "\"x\"", "[]", " {} ", "[[[1]]]"};
    struct wal_session *session = kit_create(kit_store(), "s");

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct wal_entry entry = kit_entry(NULL, NULL, good[i]);

        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
}

/* What is in line counts. */
KIT_TEST(batch__size_limit_is_32_mib)
{
    struct bench bench = begin();
    char *text = blanks(256 * 1024);
    struct wal_entry entries[128];

    text[0] = '1';
    for (int i = 0; i < 128; i++) {
        entries[i] = kit_entry(NULL, NULL, text);
    }
    bench.error = KIT_ERROR;
    assert_int_equal(wal_append(bench.session, entries, 128, NULL, NULL, &bench.error),
                     WAL_ETOOBIG);
    assert_error(&bench.error, WAL_ETOOBIG, "batch");
    end(&bench);
    bench.store = kit_open("store", 0);
    bench.session = kit_session(bench.store, "s");
    assert_ok(wal_append(bench.session, entries, 127, NULL, NULL, NULL));
    assert_int_equal(kit_info(bench.session).entries, 2 + 127);
}

KIT_TEST(batch__item_count_is_bounded)
{
    struct bench bench = begin();
    struct wal_entry entry = kit_entry("b", NULL, "1");

    bench.error = KIT_ERROR;
    assert_int_equal(wal_append(bench.session, &entry, 0, NULL, NULL, &bench.error), WAL_EINVAL);
    assert_error(&bench.error, WAL_EINVAL, "nothing");
    assert_int_equal(wal_append(bench.session, NULL, 1, NULL, NULL, &bench.error), WAL_EINVAL);
    assert_int_equal(wal_append(bench.session, &entry, 512 * 1024 + 1, NULL, NULL, &bench.error),
                     WAL_ETOOBIG);
    assert_error(&bench.error, WAL_ETOOBIG, "524289");
    end(&bench);
}

KIT_TEST(texts__are_bounded)
{
    struct bench bench = begin();
    char *text = blanks(2 * MEBIBYTE);
    struct wal_entry entry = kit_entry("b", NULL, "1");
    struct wal_slice long_text = {text, 256};

    entry.id = long_text;
    refused(&bench, entry, WAL_ETOOBIG, "id");
    entry = kit_entry("b", NULL, "1");
    entry.parent_id = long_text;
    refused(&bench, entry, WAL_ETOOBIG, "parent");
    entry = kit_entry("b", NULL, "1");
    entry.type = long_text;
    refused(&bench, entry, WAL_ETOOBIG, "type");
    entry = kit_entry("b", NULL, "1");
    entry.run_id = long_text;
    refused(&bench, entry, WAL_ETOOBIG, "run");
    entry = kit_entry("b", NULL, "1");
    entry.timestamp = (struct wal_slice){text, 65};
    refused(&bench, entry, WAL_ETOOBIG, "timestamp");
    entry = kit_entry("b", NULL, "1");
    text[0] = '{';
    text[1] = '}';
    entry.meta = (struct wal_slice){text, MEBIBYTE + 1};
    refused(&bench, entry, WAL_ETOOBIG, "meta");
    end(&bench);
}

KIT_TEST(texts__of_maximum_size_round_trip)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    char *text = blanks(MEBIBYTE);
    struct wal_entry entry = kit_entry(NULL, NULL, "1");
    struct wal_entry_cursor *cursor = NULL;

    text[0] = '{';
    text[1] = '}';
    entry.id = (struct wal_slice){text, 255};
    entry.type = (struct wal_slice){text, 255};
    entry.run_id = (struct wal_slice){text, 255};
    entry.timestamp = (struct wal_slice){text, 64};
    entry.meta = (struct wal_slice){text, MEBIBYTE};
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    entry = (struct wal_entry){.struct_size = sizeof(entry)};
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_int_equal(entry.id.size, 255);
    assert_int_equal(entry.type.size, 255);
    assert_int_equal(entry.run_id.size, 255);
    assert_int_equal(entry.timestamp.size, 64);
    assert_int_equal(entry.meta.size, MEBIBYTE);
    assert_memory_equal(entry.meta.data, text, MEBIBYTE);
    wal_entry_cursor_close(cursor);
}

KIT_TEST(texts__are_utf8)
{
    struct bench bench = begin();
    struct wal_entry good = kit_entry("b", NULL, "1");
    struct wal_slice bad = kit_text("x\xff");
    struct wal_entry entry = good;

    entry.id = bad;
    refused(&bench, entry, WAL_EINVAL, "id is not UTF-8");
    entry = good;
    entry.parent_id = bad;
    refused(&bench, entry, WAL_EINVAL, "parent's id is not UTF-8");
    entry = good;
    entry.type = bad;
    refused(&bench, entry, WAL_EINVAL, "type is not UTF-8");
    entry = good;
    entry.timestamp = bad;
    refused(&bench, entry, WAL_EINVAL, "timestamp is not UTF-8");
    entry = good;
    entry.run_id = bad;
    refused(&bench, entry, WAL_EINVAL, "run id is not UTF-8");
    entry = good;
    entry.meta = kit_text("[]");
    refused(&bench, entry, WAL_EBADJSON, "meta");
    end(&bench);
}

KIT_TEST(entry__misuse_is_refused)
{
    struct bench bench = begin();
    struct wal_entry good = kit_entry("b", NULL, "1");
    struct wal_entry entry = good;

    entry.struct_size--;
    refused(&bench, entry, WAL_EINVAL, "struct_size");
    entry = good;
    entry.flags = 1u << 20;
    refused(&bench, entry, WAL_EINVAL, "flags");
    entry = good;
    entry.flags = WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;
    refused(&bench, entry, WAL_EINVAL, "flags");
    entry = good;
    entry.flags = WAL_ENTRY_ROOT;
    entry.parent_id = kit_text("a");
    refused(&bench, entry, WAL_EINVAL, "root");
    entry = good;
    entry.stream = 256;
    refused(&bench, entry, WAL_EINVAL, "256");
    entry = good;
    entry.id.size = 0;
    refused(&bench, entry, WAL_EINVAL, "empty");
    entry = good;
    entry.type.size = 0;
    refused(&bench, entry, WAL_EINVAL, "type");
    entry = good;
    entry.id.data = NULL;
    refused(&bench, entry, WAL_EINVAL, "is NULL");
    entry = good;
    entry.payload.data = NULL;
    entry.payload.size = 1;
    refused(&bench, entry, WAL_EINVAL, "is NULL");
    entry.flags = WAL_ENTRY_LINE;
    refused(&bench, entry, WAL_EINVAL, "is NULL");
    end(&bench);
}

KIT_TEST(options__misuse_is_refused)
{
    struct bench bench = begin();
    struct wal_append_options good = {.struct_size = sizeof(good)};
    struct wal_append_options bad[5] = {good, good, good, good, good};
    struct wal_append_result result = {.struct_size = sizeof(result) - 1};
    struct wal_entry entry = kit_entry("b", NULL, "1");
    char tail[257];

    memset(tail, 't', 256);
    tail[256] = '\0';
    bad[0].struct_size = 0;
    bad[1].durability = 4;
    bad[2].flags = 1u << 9;
    bad[3].flags = WAL_APPEND_EXPECT;
    bad[3].expected_tail = kit_text("\xff");
    bad[4].flags = WAL_APPEND_EXPECT;
    bad[4].expected_tail = kit_text(tail);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(wal_append(bench.session, &entry, 1, &bad[i], NULL, NULL),
                         i < 4 ? WAL_EINVAL : WAL_ETOOBIG);
    }
    assert_int_equal(wal_append(bench.session, &entry, 1, &good, &result, NULL), WAL_EINVAL);
    assert_int_equal(wal_append(NULL, &entry, 1, &good, NULL, NULL), WAL_EINVAL);
    end(&bench);
}
