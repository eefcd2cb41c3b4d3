/*
 * test_remote_pull.c - tests of pulls by what the remote has: parts that were
 * on the way when the writer was killed, parts that are lost, and many parts,
 * which are read at the same time.
 */
#include "remote/layout/layout.h"
#include "tests/lib/remote/small_log.h"
#include "tests/lib/test.h"

/* A log of which each entry is a part, and the remote. */
struct place {
    struct memory_driver memory;
    struct small_log log;
    struct small_log pulled;
};

static struct place place;

#define UUID "a1020300000000000000000000000004"

static int set_up(void **state)
{
    (void)state;
    memset(&place, 0, sizeof(place));
    memory_driver_init(&place.memory);
    small_log_init(&place.log);
    small_log_init(&place.pulled);
    place.log.per_part = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    small_log_deinit(&place.log);
    small_log_deinit(&place.pulled);
    memory_driver_deinit(&place.memory);
    return 0;
}

static void create(const struct wal__store_object *object,
                   struct wal_slice bytes)
{
    struct wal__driver *driver = &place.memory.driver;
    char name[WAL__STORE_OBJECT_SIZE];

    wal__store_object_format(object, name);
    assert_ok(driver->calls->put_if_absent(driver, name, bytes, NULL));
}

static struct wal__store_object object_of(enum wal__store_object_kind kind,
                                          uint64_t epoch, uint64_t number)
{
    struct wal__store_object object = {
        .kind = kind, .epoch = epoch, .number = number};

    memcpy(object.uuid, small_uuid, sizeof(object.uuid));
    return object;
}

static void create_epoch(uint64_t epoch)
{
    const struct wal__store_object object =
        object_of(WAL__OBJECT_EPOCH, epoch, 0);
    struct wal__buf json;

    wal__buf_init(&json, &wal__heap_libc);
    assert_ok(wal__epoch_encode(
        &(struct wal__epoch){.writer = {1}, .host = "h"}, &json));
    create(&object, (struct wal_slice){json.data, json.size});
    wal__buf_deinit(&json);
}

static void create_fence(uint64_t epoch, uint64_t number)
{
    const struct wal__store_object object =
        object_of(WAL__OBJECT_PART, epoch, number);
    struct wal__buf json;

    wal__buf_init(&json, &wal__heap_libc);
    assert_ok(wal__fence_encode(epoch + 1, &json));
    create(&object, (struct wal_slice){json.data, json.size});
    wal__buf_deinit(&json);
}

/* Stores the entry `entry` of the log, from 0, as a part. */
static void create_part(uint64_t epoch, uint64_t number, uint64_t entry,
                        uint64_t floor)
{
    const struct wal__store_object object =
        object_of(WAL__OBJECT_PART, epoch, number);
    const struct wal__part_source source = small_log_source(&place.log);
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal__position position = {{{0}}};
    struct wal_slice part = {NULL, 0};
    struct wal__buf bytes;

    if (entry > 0) {
        place.log.per_part = entry;
        assert_ok(source.next(source.ctx, NULL, 0, NULL, &info, NULL));
        position = wal__position_of(info.after);
        place.log.per_part = 1;
    }
    assert_ok(source.next(source.ctx, &position, 0, &part, NULL, NULL));
    wal__buf_init(&bytes, &wal__heap_libc);
    assert_ok(wal__buf_append(&bytes, part.data, (size_t)part.size));
    assert_ok(wal__part_object_seal(&bytes, floor));
    create(&object, (struct wal_slice){bytes.data, bytes.size});
    wal__buf_deinit(&bytes);
}

static void append(uint64_t count)
{
    while (count-- > 0) {
        small_log_append(&place.log, place.log.count + 100);
    }
}

static void assert_pulled(uint64_t count)
{
    struct wal_error error = KIT_ERROR;
    enum wal_status status =
        small_pull(&place.memory, &place.pulled, NULL, &error);

    if (status != WAL_OK) {
        print_error("%s: %s\n", error.file, error.text);
    }
    assert_ok(status);
    assert_int_equal(place.pulled.count, count);
}

static void assert_lost(const char *name)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(small_pull(&place.memory, &place.pulled, NULL, &error),
                     WAL_ECORRUPT);
    assert_string_equal(error.file, name);
    assert_error(&error, WAL_ECORRUPT, "has lost");
}

/* Parts [1, count], each after those before it were stored. */
static void create_parts(uint64_t count)
{
    append(count);
    create_epoch(1);
    for (uint64_t i = 1; i <= count; i++) {
        create_part(1, i, i - 1, i - 1);
    }
}

static void remove_part(uint64_t epoch, uint64_t number)
{
    const struct wal__store_object object =
        object_of(WAL__OBJECT_PART, epoch, number);
    char name[WAL__STORE_OBJECT_SIZE];

    wal__store_object_format(&object, name);
    memory_remove(&place.memory, name);
}

/* --- gaps --------------------------------------------------------------- */

TEST_WITH(remote_pull__gap_ends_the_parts, set_up, tear_down)
{
    create_parts(3);
    append(4);
    create_part(1, 5, 4, 3);
    create_part(1, 7, 6, 3);
    assert_pulled(3);
    assert_pulled(3);
    create_part(1, 4, 3, 3);
    assert_pulled(5);
}

TEST_WITH(remote_pull__gap_at_the_beginning, set_up, tear_down)
{
    append(3);
    create_epoch(1);
    create_part(1, 2, 1, 0);
    create_part(1, 3, 2, 0);
    assert_pulled(0);
    create_part(1, 1, 0, 0);
    assert_pulled(3);
}

/* A later part says that all up to its floor were stored. */
TEST_WITH(remote_pull__part_below_a_floor_is_lost, set_up, tear_down)
{
    create_parts(3);
    append(4);
    create_part(1, 5, 4, 4);
    assert_lost(UUID "/part/0000000000000001/0000000000000004");
    assert_int_equal(place.pulled.count, 3);
}

/* Not the last one: that one was made before. */
TEST_WITH(remote_pull__floor_of_any_later_part_counts, set_up, tear_down)
{
    create_parts(3);
    append(5);
    create_part(1, 6, 5, 4);
    create_part(1, 8, 7, 2);
    assert_lost(UUID "/part/0000000000000001/0000000000000004");
}

/* The window is full of those after it. */
TEST_WITH(remote_pull__part_before_the_window_is_lost, set_up, tear_down)
{
    create_parts(1);
    append(18);
    create_part(1, 2 + WAL__PART_WINDOW - 1, WAL__PART_WINDOW, 1);
    assert_pulled(1);
    create_part(1, 2 + WAL__PART_WINDOW, WAL__PART_WINDOW + 1, 1);
    assert_lost(UUID "/part/0000000000000001/0000000000000002");
}

TEST_WITH(remote_pull__part_before_a_fence_is_lost, set_up, tear_down)
{
    create_parts(3);
    create_epoch(2);
    create_fence(1, 5);
    assert_lost(UUID "/part/0000000000000001/0000000000000004");
}

/* The fence is in the first gap. */
TEST_WITH(remote_pull__objects_after_a_fence_are_ignored, set_up, tear_down)
{
    create_parts(3);
    append(3);
    create_part(1, 5, 4, 3);
    create_part(1, 6, 5, 3);
    create_epoch(2);
    create_fence(1, 4);
    assert_pulled(3);
    small_log_cut(&place.log, 3);
    small_log_append(&place.log, 999);
    create_part(2, 1, 3, 0);
    assert_pulled(4);
    assert_logs_equal(&place.pulled, &place.log);
    for (uint64_t count = 0; count < 4; count++) {
        small_log_cut(&place.pulled, count);
        assert_pulled(4);
        assert_logs_equal(&place.pulled, &place.log);
    }
}

/* A takeover that was killed before it made a fence. */
TEST_WITH(remote_pull__gap_and_an_epoch_without_parts, set_up, tear_down)
{
    create_parts(3);
    append(2);
    create_part(1, 5, 4, 3);
    create_epoch(2);
    assert_pulled(3);
}

TEST_WITH(remote_pull__gap_and_an_epoch_with_parts, set_up, tear_down)
{
    create_parts(3);
    append(2);
    create_part(1, 5, 4, 3);
    create_epoch(2);
    create_part(2, 1, 3, 0);
    assert_lost(UUID "/part/0000000000000001/0000000000000004");
}

/* The part comes after the listing that lacks it. */
static void create_missing(void *ctx, const char *call, const char *name)
{
    (void)ctx;
    if (strcmp(call, "get") == 0 && strstr(name, "0000000006") != NULL) {
        place.memory.hook = NULL;
        create_part(1, 4, 3, 3);
    }
}

TEST_WITH(remote_pull__part_that_came_meanwhile, set_up, tear_down)
{
    create_parts(3);
    append(3);
    create_part(1, 5, 4, 3);
    create_part(1, 6, 5, 5);
    place.memory.hook = create_missing;
    assert_pulled(6);
    assert_null(place.memory.hook);
}

TEST_WITH(remote_pull__goes_on_from_a_position_beyond_a_gap, set_up, tear_down)
{
    create_parts(40);
    for (uint64_t number = 2; number < 30; number += 3) {
        remove_part(1, number);
    }
    small_log_cut(&place.pulled, 0);
    for (uint64_t i = 0; i < 33; i++) {
        small_log_append(&place.pulled, i + 100);
    }
    assert_pulled(40);
    assert_logs_equal(&place.pulled, &place.log);
}

TEST_WITH(remote_pull__damaged_trailer, set_up, tear_down)
{
    static const char name[] = UUID "/part/0000000000000001/0000000000000002";
    struct wal_error error = KIT_ERROR;
    struct memory_object *object;

    create_parts(3);
    object = memory_find(&place.memory, name);
    object->data[object->size - 1] ^= 1;
    assert_int_equal(small_pull(&place.memory, &place.pulled, NULL, &error),
                     WAL_ECORRUPT);
    assert_string_equal(error.file, name);
    assert_int_equal(place.pulled.count, 1);
}

/* --- many parts --------------------------------------------------------- */

TEST_WITH(remote_pull__many_parts_are_read_together, set_up, tear_down)
{
    enum {
        COUNT = 5000
    };

    create_parts(COUNT);
    place.memory.remote.readers = WAL__FETCH_READERS;
    place.memory.delay_us = 1000;
    place.memory.calls = 0;
    assert_pulled(COUNT);
    assert_logs_equal(&place.pulled, &place.log);
    assert_true(place.memory.most_readers > 4);
    assert_true(place.memory.most_readers <= WAL__FETCH_READERS);
    assert_true(place.memory.calls < COUNT + 20);
}

/* One after the other, and with threads. */
TEST_WITH(remote_pull__each_call_fails, set_up, tear_down)
{
    for (uint32_t readers = 0; readers <= 4; readers += 4) {
        bool has_failed = true;

        for (uint64_t at = 1; has_failed; at++) {
            enum wal_status status;

            tear_down(state);
            set_up(state);
            create_parts(30);
            append(3);
            create_part(1, 32, 31, 30);
            place.memory.remote.readers = readers;
            place.memory.fail_at = place.memory.calls + at;
            status = small_pull(&place.memory, &place.pulled, NULL, NULL);
            has_failed = place.memory.calls >= place.memory.fail_at;
            assert_true(status == WAL_OK || status == WAL_EREMOTE);
            assert_true(has_failed || status == WAL_OK);
            place.memory.fail_at = 0;
            assert_pulled(30);
        }
    }
}

/* Objects that are larger than what may be read ahead. */
TEST_WITH(remote_fetch__large_objects, set_up, tear_down)
{
    static const uint64_t sizes[] = {
        10, WAL__FETCH_BYTES, 10, 5, 2 * (uint64_t)WAL__FETCH_BYTES, 1};
    struct wal__fetch_item items[6];
    struct wal__fetch *fetch = NULL;
    struct wal_slice object;

    for (size_t i = 0; i < 6; i++) {
        const struct wal__store_object name =
            object_of(WAL__OBJECT_PART, 1, i + 1);
        const char text[] = {(char)('a' + (char)i), '\0'};

        create(&name, (struct wal_slice){text, 1});
        wal__store_object_format(&name, items[i].name);
        items[i].size = sizes[i];
    }
    place.memory.remote.readers = 8;
    for (size_t last = 0; last <= 6; last++) {
        assert_ok(
            wal__fetch_open(&place.memory.remote, items, 6, &fetch, NULL));
        for (size_t i = 0; i < last; i++) {
            assert_ok(wal__fetch_next(fetch, &object, NULL));
            assert_int_equal(*(const char *)object.data, 'a' + (int)i);
        }
        if (last == 6) {
            assert_int_equal(wal__fetch_next(fetch, &object, NULL), WAL_END);
        }
        wal__fetch_close(fetch);
    }
}

TEST_WITH(remote_fetch__missing_object, set_up, tear_down)
{
    struct wal__fetch_item items[3] = {
        {.name = "x"}, {.name = "y"}, {.name = "z"}};
    struct wal_error error = KIT_ERROR;
    struct wal__fetch *fetch = NULL;
    struct wal_slice object;

    place.memory.remote.readers = 2;
    assert_ok(wal__fetch_open(&place.memory.remote, items, 3, &fetch, NULL));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(wal__fetch_next(fetch, &object, &error),
                         WAL_ENOTFOUND);
        assert_string_equal(error.file, items[i].name);
    }
    wal__fetch_close(fetch);
    wal__fetch_close(NULL);
}
