/*
 * test_remote_layout.c - tests of the names of a store's objects, and of those that are JSON.
 */
#include "agentwal/replica.h"
#include "format/bytes/bytes.h"
#include "remote/layout/layout.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"

static const struct wal__heap *const heap = &wal__heap_libc;

static void assert_name(struct wal__store_object object, const char *name)
{
    struct wal__store_object parsed = {.epoch = 0};
    char text[WAL__STORE_OBJECT_SIZE];

    wal__store_object_format(&object, text);
    assert_string_equal(text, name);
    assert_true(wal__store_object_parse(name, &parsed));
    assert_int_equal(parsed.kind, object.kind);
    assert_memory_equal(parsed.uuid, object.uuid, sizeof(parsed.uuid));
    assert_int_equal(parsed.epoch, object.epoch);
    assert_int_equal(parsed.number, object.number);
    assert_memory_equal(parsed.id, object.id, sizeof(parsed.id));
}

TEST(remote_layout__name_of_each_kind)
{
    assert_name((struct wal__store_object){.kind = WAL__OBJECT_EPOCH, .epoch = 10},
                "00000000000000000000000000000000/epoch/000000000000000a");
    assert_name((struct wal__store_object){.kind = WAL__OBJECT_PART,
                                           .uuid = {0xab, [15] = 1},
                                           .epoch = 1,
                                           .number = UINT64_MAX >> 2},
                "ab000000000000000000000000000001/part/0000000000000001/"
                "3fffffffffffffff");
    assert_name((struct wal__store_object){.kind = WAL__OBJECT_BASE, .number = 11},
                "00000000000000000000000000000000/base/000000000000000b");
    assert_name((struct wal__store_object){.kind = WAL__OBJECT_SEGMENT,
                                           .number = 1,
                                           .id = {0xcd, [15] = 2}},
                "00000000000000000000000000000000/seg/0000000000000001/"
                "cd000000000000000000000000000002");
    assert_name(
        (struct wal__store_object){
            .kind = WAL__OBJECT_OWN, .uuid = {[15] = 1}, .number = 2, .id = {0xcd, [15] = 3}},
        "00000000000000000000000000000001/own/"
        "cd000000000000000000000000000003/0000000000000002");
    assert_name((struct wal__store_object){.kind = WAL__OBJECT_BUNDLE, .number = 3, .id = {0xcd}},
                "00000000000000000000000000000000/bundle/"
                "cd000000000000000000000000000000/0000000000000003");
}

TEST(remote_layout__other_name_is_refused)
{
    static const char short_id[] = "00000000000000000000000000000000/seg/0000000000000001/"
                                   "0000000000000000000000000000000";
    static const char long_id[] = "00000000000000000000000000000000/seg/0000000000000001/"
                                  "000000000000000000000000000000000";
    static const char no_number[] = "00000000000000000000000000000000/seg/0000000000000000/"
                                    "00000000000000000000000000000000";
    static const char *const names[] = {
        "",
        "probe/1",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000/",
        "00000000000000000000000000000000/epoch/",
        "00000000000000000000000000000000/epoch/0000000000000000",
        "00000000000000000000000000000000/epoch/4000000000000000",
        "00000000000000000000000000000000/epoch/000000000000000A",
        "00000000000000000000000000000000/epoch/00000000000000001",
        "0000000000000000000000000000000g/epoch/0000000000000001",
        "00000000000000000000000000000000/part/0000000000000001",
        "00000000000000000000000000000000/seg/",
        "00000000000000000000000000000000/base/1",
        "00000000000000000000000000000000/base/0000000000000000",
        "00000000000000000000000000000000/base/0000000000000001/",
        "00000000000000000000000000000000/seg/0000000000000001",
        short_id,
        long_id,
        no_number,
        "00000000000000000000000000000000/own/0000000000000001",
        "00000000000000000000000000000000/own/cd00000000000000/1",
    };
    static const char part_zero[] = "00000000000000000000000000000000/part/0000000000000001/"
                                    "0000000000000000";
    static const char own_zero[] = "00000000000000000000000000000000/own/"
                                   "cd000000000000000000000000000003/0000000000000000";
    struct wal__store_object object;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(wal__store_object_parse(names[i], &object));
    }
    assert_false(wal__store_object_parse(part_zero, &object));
    assert_false(wal__store_object_parse(own_zero, &object));
}

TEST(remote_layout__uuid_with_and_without_hyphens)
{
    uint8_t uuid[16] = {0};
    char text[WAL__UUID_TEXT_SIZE];

    assert_true(wal__uuid_parse("01234567-89ab-cdef-0123-456789abcdef", 36, uuid));
    wal__hex_write(uuid, 16, text);
    assert_string_equal(text, "0123456789abcdef0123456789abcdef");
    assert_true(wal__uuid_parse(text, 32, uuid));
    assert_false(wal__uuid_parse(text, 31, uuid));
    assert_false(wal__uuid_parse("01234567089ab-cdef-0123-456789abcdef", 36, uuid));
}

static struct wal_slice slice_of(const struct wal__buf *buf)
{
    return (struct wal_slice){buf->data, buf->size};
}

TEST(remote_layout__epoch_round_trip)
{
    struct wal__epoch epoch = {.writer = {1, 2, 3}, .host = "a \"host\"", .started_ms = 12};
    struct wal__epoch decoded;
    struct wal__buf buf;

    wal__buf_init(&buf, heap);
    assert_ok(wal__epoch_encode(&epoch, &buf));
    assert_ok(wal__epoch_decode(slice_of(&buf), "e", &decoded, NULL));
    assert_memory_equal(decoded.writer, epoch.writer, sizeof(epoch.writer));
    assert_string_equal(decoded.host, epoch.host);
    assert_int_equal(decoded.started_ms, epoch.started_ms);
    wal__buf_deinit(&buf);
}

TEST(remote_layout__claim_round_trip)
{
    struct wal__own own = {.session = "s \xC3\xA9 \"x\"",
                           .move = 3,
                           .store = {9, [15] = 7},
                           .host = "desk",
                           .entry = "e1",
                           .sequence = 12,
                           .claimed_ms = 34};
    struct wal__own decoded;
    struct wal__buf buf;

    wal__buf_init(&buf, heap);
    assert_ok(wal__own_encode(&own, &buf));
    assert_ok(wal__own_decode(slice_of(&buf), "o", &decoded, NULL));
    assert_string_equal(decoded.session, own.session);
    assert_int_equal(decoded.move, 3);
    assert_memory_equal(decoded.store, own.store, sizeof(own.store));
    assert_string_equal(decoded.host, own.host);
    assert_string_equal(decoded.entry, own.entry);
    assert_int_equal(decoded.sequence, 12);
    assert_int_equal(decoded.claimed_ms, 34);
    wal__buf_deinit(&buf);
}

TEST(remote_layout__damaged_epoch)
{
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "{\"version\":1}",
        "{\"version\":0}",
        "{\"version\":1,\"version\":1}",
        "{\"version\":1,\"writer\":\"00\",\"host\":\"a\",\"started\":1}",
        "{\"version\":1,\"writer\":\"00000000000000000000000000000000\","
        "\"host\":\"a\\n\",\"started\":1}",
        "{\"version\":1,\"writer\":\"00000000000000000000000000000000\","
        "\"host\":\"a\",\"started\":-1}",
        "{\"version\":1,\"writer\":\"00000000000000000000000000000000\","
        "\"host\":\"a\",\"started\":1"};
    struct wal__epoch epoch;
    struct wal_error error = KIT_ERROR;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(wal__epoch_decode(kit_text(texts[i]), "e", &epoch, &error), WAL_ECORRUPT);
        assert_string_equal(error.file, "e");
    }
    assert_int_equal(wal__epoch_decode(kit_text("{\"version\":2}"), "e", &epoch, &error),
                     WAL_EVERSION);
}

TEST(remote_layout__fence_round_trip)
{
    struct wal__buf buf;
    uint64_t epoch = 0;

    wal__buf_init(&buf, heap);
    assert_ok(wal__fence_encode(7, &buf));
    assert_slice(slice_of(&buf), "{\"fence\":7}\n");
    assert_ok(wal__fence_decode(slice_of(&buf), "p", &epoch, NULL));
    assert_int_equal(epoch, 7);
    assert_ok(wal__fence_decode(kit_text("WALPART"), "p", &epoch, NULL));
    assert_int_equal(epoch, 0);
    wal__buf_deinit(&buf);
}

TEST(remote_layout__damaged_fence)
{
    static const char *const texts[] = {
        "{",
        "{}",
        "{\"fence\":0}",
        "{\"fence\":-1}",
        "{\"fence\":1.5}",
        "{\"fence\":\"1\"}",
        "{\"fence\":1,\"fence\":1}",
        "{\"fence\":1}x",
    };
    uint64_t epoch;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(wal__fence_decode(kit_text(texts[i]), "p", &epoch, NULL), WAL_ECORRUPT);
    }
}

/* Each byte is changed, and each is the last. */
TEST(remote_layout__any_bytes_are_decoded_or_refused)
{
    struct wal__epoch epoch = {.host = "host", .started_ms = 1};
    struct wal__buf json;
    uint64_t fence;

    wal__buf_init(&json, heap);
    assert_ok(wal__epoch_encode(&epoch, &json));
    for (size_t i = 0; i < json.size * 4; i++) {
        static const uint8_t values[] = {'{', '"', '0', 0x80};
        size_t size = i < json.size ? i : json.size;
        uint8_t *copy = malloc(size + 1);
        struct wal_slice bytes = {copy, size};

        assert_non_null(copy);
        memcpy(copy, json.data, size);
        if (i >= json.size) {
            copy[i % json.size] = values[i / json.size];
        }
        if (wal__epoch_decode(bytes, "e", &epoch, NULL) == WAL_OK) {
            assert_true(i >= json.size - 1);
        }
        (void)!wal__fence_decode(bytes, "p", &fence, NULL);
        free(copy);
    }
    wal__buf_deinit(&json);
}

/* --- the object of a part ----------------------------------------------- */

TEST(remote_layout__part_object_round_trip)
{
    static const uint64_t floors[] = {0, 1, UINT64_MAX >> 2};
    struct wal__buf object;

    wal__buf_init(&object, heap);
    for (size_t i = 0; i < 3; i++) {
        struct wal_slice part = {NULL, 0};
        uint64_t floor = 77;

        object.size = 0;
        assert_ok(wal__buf_append(&object, "part", 4));
        assert_ok(wal__part_object_seal(&object, floors[i]));
        assert_int_equal(object.size, 4 + WAL__PART_TRAILER_SIZE);
        assert_ok(wal__part_object_open((struct wal_slice){object.data, object.size}, "p", 4, &part,
                                        &floor, NULL));
        assert_int_equal(floor, floors[i]);
        assert_int_equal(part.size, 4);
        assert_memory_equal(part.data, "part", 4);
    }
    wal__buf_deinit(&object);
}

/* Each size but the right one, and each byte of the trailer. */
TEST(remote_layout__damaged_part_object)
{
    struct wal_error error = KIT_ERROR;
    struct wal_slice part = {NULL, 0};
    uint64_t floor = 77;
    struct wal__buf object;

    wal__buf_init(&object, heap);
    assert_ok(wal__buf_append(&object, "part", 4));
    assert_ok(wal__part_object_seal(&object, 9));
    assert_ok(wal__buf_append(&object, "x", 1));
    for (size_t size = 0; size <= object.size; size++) {
        if (size != 4 + WAL__PART_TRAILER_SIZE) {
            assert_int_equal(wal__part_object_open((struct wal_slice){object.data, size}, "p", 4,
                                                   &part, &floor, &error),
                             WAL_ECORRUPT);
            assert_string_equal(error.file, "p");
        }
    }
    object.size--;
    for (size_t i = 4; i < object.size; i++) {
        object.data[i] ^= 1;
        assert_int_equal(wal__part_object_open((struct wal_slice){object.data, object.size}, "p", 4,
                                               &part, &floor, &error),
                         WAL_ECORRUPT);
        object.data[i] ^= 1;
    }
    assert_null(part.data);
    assert_int_equal(floor, 77);
    wal__buf_deinit(&object);
}

/* --- bases -------------------------------------------------------------- */

TEST(remote_layout__base_round_trip)
{
    struct wal__base_list list;
    struct wal__base_list decoded;
    struct wal__buf json;

    wal__buf_init(&json, heap);
    wal__base_list_init(&list, heap);
    wal__base_list_init(&decoded, heap);
    list.created_ms = 1700000000000;
    list.epoch = 3;
    list.part = UINT64_MAX >> 2;
    for (uint64_t i = 1; i <= 300; i++) {
        const struct wal__base_segment segment = {.number = i, .id = {(uint8_t)i, [15] = 1}};

        assert_ok(wal__base_list_add(&list, &segment));
    }
    for (int i = 0; i < 2; i++) { /* it replaces what is there */
        json.size = 0;
        assert_ok(wal__base_list_encode(&list, &json));
        assert_ok(
            wal__base_list_decode((struct wal_slice){json.data, json.size}, "b", &decoded, NULL));
        assert_int_equal(decoded.created_ms, list.created_ms);
        assert_int_equal(decoded.epoch, list.epoch);
        assert_int_equal(decoded.part, list.part);
        assert_int_equal(decoded.segments.size, list.segments.size);
        assert_memory_equal(decoded.segments.data, list.segments.data, list.segments.size);
    }
    while (wal__base_list_count(&list) < WAL__BASE_SEGMENTS_MAX) {
        assert_ok(wal__base_list_add(&list, wal__base_list_at(&decoded, 7)));
    }
    assert_int_equal(wal__base_list_add(&list, wal__base_list_at(&decoded, 7)), WAL_ETOOBIG);
    json.size = 0;
    assert_ok(wal__base_list_encode(&list, &json));
    assert_true(json.size <= WAL__BASE_JSON_MAX);
    wal__buf_deinit(&json);
    wal__base_list_deinit(&list);
    wal__base_list_deinit(&decoded);
}

#define SEGMENT "\"seg/0000000000000001/00000000000000000000000000000001\""

#define BASE(version, created, epoch, part, segments)                                     \
    "{\"version\":" version ",\"created\":" created ",\"epoch\":" epoch ",\"part\":" part \
    ",\"segments\":[" segments "]}"

TEST(remote_layout__damaged_base)
{
    static const struct {
        const char *json;
        enum wal_status status;
    } bases[] = {
        {"", WAL_ECORRUPT},
        {"[]", WAL_ECORRUPT},
        {BASE("2", "1", "1", "1", SEGMENT), WAL_EVERSION},
        {BASE("1", "1", "0", "1", SEGMENT), WAL_ECORRUPT},
        {BASE("1", "1", "1", "0", SEGMENT), WAL_ECORRUPT},
        {BASE("1", "-1", "1", "1", SEGMENT), WAL_ECORRUPT},
        {BASE("1", "1", "1", "\"1\"", SEGMENT), WAL_ECORRUPT},
        {BASE("1", "1", "1", "1", ""), WAL_ECORRUPT},
        {BASE("1", "1", "1", "1", "1"), WAL_ECORRUPT},
        {BASE("1", "1", "1", "1", "\"seg/1\""), WAL_ECORRUPT},
        {BASE("1", "1", "1", "1", "\"base/0000000000000001\""), WAL_ECORRUPT},
        {BASE("1", "1", "1", "1", SEGMENT ",[]"), WAL_ECORRUPT},
        {"{\"version\":1,\"created\":1,\"epoch\":1,\"part\":1}", WAL_ECORRUPT},
        {"{\"version\":1,\"created\":1,\"epoch\":1,\"part\":1,"
         "\"segments\":{}}",
         WAL_ECORRUPT},
        {BASE("1", "1", "1", "1,\"more\":{}", SEGMENT "," SEGMENT), WAL_OK},
    };

    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        const size_t size = strlen(bases[i].json);
        struct wal__base_list list;
        char *copy = strdup(bases[i].json);

        assert_non_null(copy);
        wal__base_list_init(&list, heap);
        assert_int_equal(wal__base_list_decode((struct wal_slice){copy, size}, "b", &list, NULL),
                         bases[i].status);
        assert_int_equal(wal__base_list_count(&list), bases[i].status == WAL_OK ? 2 : 0);
        wal__base_list_deinit(&list);
        free(copy);
    }
}
