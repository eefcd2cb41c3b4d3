/*
 * test_remote_layout.c - tests of the names of a store's objects, and of those
 * that are JSON.
 */
#include "agentwal/replica.h"
#include "remote/layout/object_json.h"
#include "tests/lib/kit/store_kit.h"

static const struct wal__heap *const heap = &wal__heap_libc;

static void assert_name(struct wal__store_object object, const char *name)
{
    struct wal__store_object parsed = {.epoch = 0};
    char text[WAL__STORE_OBJECT_SIZE];

    wal__store_object_format(&object, text);
    assert_string_equal(text, name);
    assert_true(wal__store_object_parse(name, &parsed));
    assert_memory_equal(&parsed, &object, sizeof(parsed));
}

static void test_remote_layout__name_of_each_kind(void **state)
{
    (void)state;
    assert_name(
        (struct wal__store_object){.kind = WAL__OBJECT_EPOCH, .epoch = 10},
        "00000000000000000000000000000000/epoch/000000000000000a");
    assert_name((struct wal__store_object){.kind = WAL__OBJECT_PART,
                                           .uuid = {0xab, [15] = 1},
                                           .epoch = 1,
                                           .number = UINT64_MAX >> 2},
                "ab000000000000000000000000000001/part/0000000000000001/"
                "3fffffffffffffff");
    assert_name((struct wal__store_object){.kind = WAL__OBJECT_SEGMENT,
                                           .stream = 1,
                                           .segment = 2,
                                           .identity = 3},
                "00000000000000000000000000000000/seg/1-0000000000000002-"
                "0000000000000003");
    assert_name(
        (struct wal__store_object){.kind = WAL__OBJECT_BASE, .number = 1},
        "00000000000000000000000000000000/base/0000000000000001");
}

static void test_remote_layout__other_name_is_refused(void **state)
{
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
        "00000000000000000000000000000000/part/0000000000000001/"
        "0000000000000000",
        "00000000000000000000000000000000/seg/2-0000000000000001-"
        "0000000000000001",
        "00000000000000000000000000000000/seg/",
        "00000000000000000000000000000000/base/1",
        "00000000000000000000000000000000/own/0000000000000001",
    };
    struct wal__store_object object;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(wal__store_object_parse(names[i], &object));
    }
}

static void test_remote_layout__uuid_with_and_without_hyphens(void **state)
{
    uint8_t uuid[16] = {0};
    char text[WAL__UUID_TEXT_SIZE];

    (void)state;
    assert_true(
        wal__uuid_parse("01234567-89ab-cdef-0123-456789abcdef", 36, uuid));
    wal__uuid_format(uuid, text);
    assert_string_equal(text, "0123456789abcdef0123456789abcdef");
    assert_true(wal__uuid_parse(text, 32, uuid));
    assert_false(wal__uuid_parse(text, 31, uuid));
    assert_false(
        wal__uuid_parse("01234567089ab-cdef-0123-456789abcdef", 36, uuid));
}

static struct wal_slice slice_of(const struct wal__buf *buf)
{
    return (struct wal_slice){buf->data, buf->size};
}

static void test_remote_layout__epoch_round_trip(void **state)
{
    struct wal__epoch epoch = {
        .writer = {1, 2, 3}, .host = "a \"host\"", .started_ms = 12};
    struct wal__epoch decoded;
    struct wal__buf buf;

    (void)state;
    wal__buf_init(&buf, heap);
    assert_int_equal(wal__epoch_encode(&epoch, &buf), WAL_OK);
    assert_int_equal(wal__epoch_decode(slice_of(&buf), "e", &decoded, NULL),
                     WAL_OK);
    assert_memory_equal(decoded.writer, epoch.writer, sizeof(epoch.writer));
    assert_string_equal(decoded.host, epoch.host);
    assert_int_equal(decoded.started_ms, epoch.started_ms);
    wal__buf_deinit(&buf);
}

static void test_remote_layout__damaged_epoch(void **state)
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

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(
            wal__epoch_decode(kit_text(texts[i]), "e", &epoch, &error),
            WAL_ECORRUPT);
        assert_string_equal(error.file, "e");
    }
    assert_int_equal(
        wal__epoch_decode(kit_text("{\"version\":2}"), "e", &epoch, &error),
        WAL_EVERSION);
}

static void test_remote_layout__marks(void **state)
{
    struct wal__mark mark = {.kind = WAL__MARK_FENCE, .number = 7};
    struct wal__buf buf;

    (void)state;
    wal__buf_init(&buf, heap);
    assert_int_equal(wal__mark_encode(&mark, &buf), WAL_OK);
    assert_slice(slice_of(&buf), "{\"fence\":7}\n");
    mark = (struct wal__mark){.kind = WAL__MARK_BASE, .number = 8};
    buf.size = 0;
    assert_int_equal(wal__mark_encode(&mark, &buf), WAL_OK);
    assert_int_equal(wal__mark_decode(slice_of(&buf), "p", &mark, NULL),
                     WAL_OK);
    assert_int_equal(mark.kind, WAL__MARK_BASE);
    assert_int_equal(mark.number, 8);
    assert_int_equal(wal__mark_decode(kit_text("WALPART"), "p", &mark, NULL),
                     WAL_OK);
    assert_int_equal(mark.kind, WAL__MARK_NONE);
    wal__buf_deinit(&buf);
}

static void test_remote_layout__damaged_mark(void **state)
{
    static const char *const texts[] = {
        "{",
        "{}",
        "{\"fence\":0}",
        "{\"fence\":-1}",
        "{\"fence\":1.5}",
        "{\"fence\":\"1\"}",
        "{\"fence\":1,\"base\":1}",
        "{\"fence\":1,\"fence\":1}",
        "{\"fence\":1}x",
    };
    struct wal__mark mark;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(wal__mark_decode(kit_text(texts[i]), "p", &mark, NULL),
                         WAL_ECORRUPT);
    }
}

static void make_base(struct wal__base *base, struct wal__buf *json)
{
    struct wal__base_segment segment = {
        .segment = 1, .identity = UINT64_MAX, .size = 512};

    *base = (struct wal__base){.number = 3, .epoch = 4, .part = 5};
    base->position.places[WAL_PART_LOG] =
        (struct wal_part_place){1, 2, 3, 4, UINT32_MAX, 0};
    base->position.places[WAL_PART_CONTENT] =
        (struct wal_part_place){6, 7, 8, 9, 10, 0};
    memset(segment.digest.bytes, 0xcd, sizeof(segment.digest.bytes));
    assert_int_equal(wal__base_add(base, heap, &segment), WAL_OK);
    segment.stream = 1;
    assert_int_equal(wal__base_add(base, heap, &segment), WAL_OK);
    wal__buf_init(json, heap);
    assert_int_equal(wal__base_encode(base, json), WAL_OK);
}

static void test_remote_layout__base_round_trip(void **state)
{
    struct wal__base decoded = {.count = 0};
    struct wal__base base;
    struct wal__buf json;

    (void)state;
    make_base(&base, &json);
    assert_int_equal(
        wal__base_decode(slice_of(&json), "b", heap, &decoded, NULL), WAL_OK);
    assert_int_equal(decoded.number, 3);
    assert_int_equal(decoded.epoch, 4);
    assert_int_equal(decoded.part, 5);
    assert_int_equal(decoded.count, 2);
    assert_memory_equal(&decoded.position, &base.position,
                        sizeof(base.position));
    assert_memory_equal(decoded.segments, base.segments,
                        2 * sizeof(base.segments[0]));
    wal__base_deinit(&decoded, heap);
    wal__base_deinit(&base, heap);
    wal__buf_deinit(&json);
}

/* Each byte is changed, and each is the last. */
static void test_remote_layout__any_bytes_are_decoded_or_refused(void **state)
{
    struct wal__base decoded;
    struct wal__base base;
    struct wal__buf json;
    struct wal__epoch epoch;
    struct wal__mark mark;
    uint8_t *copy;

    (void)state;
    make_base(&base, &json);
    for (size_t i = 0; i < json.size * 4; i++) {
        static const uint8_t values[] = {'{', '"', '0', 0x80};
        size_t size = i < json.size ? i : json.size;
        struct wal_slice bytes;

        copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, json.data, size);
        if (i >= json.size) {
            copy[i % json.size] = values[i / json.size];
        }
        bytes = (struct wal_slice){copy, size};
        decoded = (struct wal__base){.count = 0};
        if (wal__base_decode(bytes, "b", heap, &decoded, NULL) == WAL_OK) {
            assert_true(i >= json.size - 1);
            wal__base_deinit(&decoded, heap);
        }
        (void)!wal__epoch_decode(bytes, "e", &epoch, NULL);
        (void)!wal__mark_decode(bytes, "p", &mark, NULL);
        free(copy);
    }
    wal__base_deinit(&base, heap);
    wal__buf_deinit(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remote_layout__name_of_each_kind),
        cmocka_unit_test(test_remote_layout__other_name_is_refused),
        cmocka_unit_test(test_remote_layout__uuid_with_and_without_hyphens),
        cmocka_unit_test(test_remote_layout__epoch_round_trip),
        cmocka_unit_test(test_remote_layout__damaged_epoch),
        cmocka_unit_test(test_remote_layout__marks),
        cmocka_unit_test(test_remote_layout__damaged_mark),
        cmocka_unit_test(test_remote_layout__base_round_trip),
        cmocka_unit_test(test_remote_layout__any_bytes_are_decoded_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
