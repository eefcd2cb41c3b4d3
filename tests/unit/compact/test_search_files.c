/*
 * test_search_files.c - tests of removing the index files of search that belong
 * to no segment (docs/search.md, Files).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "agentwal/admin.h"
#include "agentwal/record.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/index/search_file.h"
#include "tests/lib/kit/parts_kit.h"

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static bool exists(const char *path)
{
    struct stat ignored;

    return stat(path, &ignored) == 0;
}

static struct wal_segment_info first_segment(struct wal_store *store)
{
    struct wal_segment_cursor *cursor = NULL;
    struct wal_segment_info info = WAL_INIT(wal_segment_info);

    assert_ok(wal_segment_cursor_open(store, &cursor, NULL));
    assert_ok(wal_segment_cursor_next(cursor, &info, NULL));
    wal_segment_cursor_close(cursor);
    return info;
}

/* Writes the header of an index file of the segment; *path is its name. */
static void put_index(const char *store, const struct wal_segment_info *segment,
                      enum wal__search_kind kind, char path[128])
{
    struct wal__search_file file = {.kind = (uint32_t)kind,
                                    .id = segment->id,
                                    .identity = segment->identity,
                                    .page_count = 1};
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    char name[WAL__SEARCH_FILE_NAME];

    wal__search_file_encode(&file, bytes);
    wal__search_file_name(segment->id, kind, name);
    snprintf(path, 128, "%s/index/%s", store, name);
    write_file(path, bytes, sizeof(bytes));
}

static void compact(struct wal_store *store, uint32_t flags)
{
    struct wal_store_compact_options options =
        WAL_INIT(wal_store_compact_options);

    options.flags = flags;
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
}

KIT_TEST(names__of_both_kinds_and_others)
{
    static const struct {
        const char *name;
        bool is_one;
        bool is_temporary;
    } cases[] = {
        {"00000000000000ab.fts", true, false},
        {"00000000000000ab.deep.fts", true, false},
        {"00000000000000ab.fts.new-0123456789abcdef", true, true},
        {"00000000000000ab.deep.fts.new-0123456789abcdef", true, true},
        {"00000000000000ab.fts.new-0123456789abcde", false, false},
        {"00000000000000ab.fts.new-0123456789abcdef0", false, false},
        {"00000000000000ab.fts.new", false, false},
        {"00000000000000AB.fts", false, false},
        {"0000000000000ab.fts", false, false},
        {"00000000000000ab.idx", false, false},
        {"pack-00000000000000ab.idx", false, false},
        {"catalogue", false, false},
        {"", false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum wal__search_kind kind = WAL__SEARCH_TEXT;
        bool is_temporary = false;
        uint64_t id = 0;
        bool is_one =
            wal__search_file_is_name(cases[i].name, &id, &kind, &is_temporary);

        assert_int_equal(is_one, cases[i].is_one);
        if (is_one) {
            assert_int_equal(id, 0xab);
            assert_int_equal(is_temporary, cases[i].is_temporary);
            assert_int_equal(kind, strstr(cases[i].name, "deep") != NULL
                                       ? WAL__SEARCH_DEEP
                                       : WAL__SEARCH_TEXT);
        }
    }
}

KIT_TEST(header__each_damaged_byte_is_detected)
{
    const struct wal__search_file file = {.kind = WAL__SEARCH_DEEP,
                                          .id = 3,
                                          .identity = UINT64_MAX,
                                          .last_sequence = 5,
                                          .time_min = -1,
                                          .time_max = 6,
                                          .text_size = 7,
                                          .rows = 8,
                                          .page_count = 1025,
                                          .table_crc = 9};
    struct wal__search_file read;
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    const struct wal__span cut = {bytes, sizeof(bytes) - 1};

    wal__search_file_encode(&file, bytes);
    assert_int_equal(wal__search_file_decode(span, &read), WAL__FMT_OK);
    assert_int_equal(read.id, 3);
    assert_true(read.identity == UINT64_MAX);
    assert_int_equal(read.time_min, -1);
    assert_int_equal(read.page_count, 1025);
    assert_int_equal(wal__search_file_pages(&read), 4096 + 8192);
    assert_int_equal(wal__search_file_decode(cut, &read), WAL__FMT_SHORT);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= 0x10;
        assert_int_not_equal(wal__search_file_decode(span, &read), WAL__FMT_OK);
        bytes[i] ^= 0x10;
    }
}

KIT_TEST(compact__removes_the_index_of_a_replaced_segment)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_segment_info segment;
    char text[128];
    char deep[128];

    kit_append_all(session, "a b");
    segment = first_segment(store);
    put_index("store", &segment, WAL__SEARCH_TEXT, text);
    put_index("store", &segment, WAL__SEARCH_DEEP, deep);
    compact(store, 0);
    assert_false(exists(text));
    assert_false(exists(deep));
    segment = first_segment(store);
    put_index("store", &segment, WAL__SEARCH_TEXT, text);
    compact(store, 0);
    assert_true(exists(text)); /* nothing replaced it */
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(compact__removes_unfinished_and_damaged_files)
{
    static const char *const gone[] = {
        "store/index/0000000000000001.fts.new-0123456789abcdef",
        "store/index/0000000000000001.deep.fts",
        "store/index/00000000000000ff.fts",
    };
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append_all(session, "a b");
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        write_file(gone[i], "canary", 6);
    }
    write_file("store/index/other", "mine", 4);
    compact(store, WAL_STORE_COMPACT_ERASE);
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        assert_false(exists(gone[i]));
    }
    assert_true(exists("store/index/other"));
    wal_session_close(session);
    kit_close(store);
}

static const char draft[] =
    "store/index/0000000000000001.fts.new-0123456789abcdef";
static const char named[] = "store/index/0000000000000001.fts";

/* Its maker names the draft before it can be removed. */
static enum wal_status unlink_late(void *ctx, const char *path, int *sys_errno)
{
    if (strstr(path, ".fts.new-") != NULL) {
        assert_int_equal(rename(draft, named), 0);
    }
    return wal__io_posix.unlink(ctx, path, sys_errno);
}

KIT_TEST(compact__draft_that_gets_its_name_is_removed)
{
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal__io io = wal__io_posix;

    kit_append_all(session, "a b");
    wal_session_close(session);
    kit_close(store);
    io.unlink = unlink_late;
    assert_ok(
        wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    write_file(draft, "canary", 6);
    compact(store, WAL_STORE_COMPACT_ERASE);
    assert_false(exists(draft));
    assert_false(exists(named));
    kit_close(store);
}

KIT_TEST(compact__index_that_cannot_be_removed)
{
    static const char path[] = "store/index/00000000000000ff.fts";
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store_compact_options options =
        WAL_INIT(wal_store_compact_options);
    struct wal_error error = KIT_ERROR;

    kit_append_all(session, "a b");
    assert_int_equal(mkdir(path, 0700), 0); /* a directory in its place */
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    options.flags = WAL_STORE_COMPACT_ERASE;
    assert_int_not_equal(wal_store_compact(store, &options, NULL, &error),
                         WAL_OK);
    assert_non_null(strstr(error.file, "00000000000000ff.fts"));
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(backup__removes_the_index_of_a_replaced_segment)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_segment_info segment;
    char path[128];

    kit_append_all(session, "a b");
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, NULL));
    segment = first_segment(store);
    put_index("copy", &segment, WAL__SEARCH_TEXT, path);
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, NULL));
    assert_true(exists(path));
    compact(store, WAL_STORE_COMPACT_ERASE);
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, NULL));
    assert_false(exists(path));
    wal_session_close(session);
    kit_close(store);
}
