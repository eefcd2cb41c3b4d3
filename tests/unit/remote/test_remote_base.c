/*
 * test_remote_base.c - tests of bases and of collection: what a pull does with
 * them, what is removed, and what a call that failed leaves.
 */
#include "remote/base/base.h"
#include "remote/history/remote.h"
#include "tests/lib/remote/small_log.h"
#include "tests/lib/test.h"

/* A remote, the log of a writer, and one that is pulled to. */
struct place {
    struct memory_driver memory;
    struct small_log log;
    struct small_log pulled;
    struct wal_remote_writer writer;
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
    wal__writer_deinit(&place.writer);
    small_log_deinit(&place.log);
    small_log_deinit(&place.pulled);
    memory_driver_deinit(&place.memory);
    return 0;
}

/* The writer `id` takes over. */
static void start(uint64_t id)
{
    wal__writer_deinit(&place.writer);
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.log, id,
                                 true, NULL));
}

/* Stores parts of one entry. */
static void push(uint64_t count)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);

    for (uint64_t i = 0; i < count; i++) {
        small_log_append(&place.log, place.log.count + 100);
    }
    assert_ok(wal__writer_push(&place.writer, &result, NULL));
}

static struct wal__base_end end_of(const struct wal_remote_writer *writer)
{
    return (struct wal__base_end){.epoch = writer->last.epoch,
                                  .part = writer->last.part,
                                  .position = writer->position};
}

static enum wal_status try_base(bool is_anew, struct wal__base_result *result)
{
    const struct wal__part_source source = small_log_source(&place.log);
    const struct wal__base_end end = end_of(&place.writer);

    return wal__base_make(&place.memory.remote, &source, small_uuid, &end,
                          is_anew, result, NULL);
}

static struct wal__base_result make_base(void)
{
    struct wal__base_result result;

    assert_ok(try_base(false, &result));
    return result;
}

/* Removes what is below the newest base. */
static struct wal__collect_result collect(void)
{
    struct wal__collect_result result = {.parts = 0};

    assert_ok(wal__collect(&place.memory.remote, small_uuid,
                           wal__machine_unix_ms(), 0, &result, NULL));
    return result;
}

static uint64_t count_objects(const char *room)
{
    char prefix[64];
    uint64_t count = 0;

    snprintf(prefix, sizeof(prefix), UUID "/%s/", room);
    for (size_t i = 0; i < place.memory.count; i++) {
        count +=
            strncmp(place.memory.objects[i].name, prefix, strlen(prefix)) == 0;
    }
    return count;
}

static struct wal_remote_pull_result pull(void)
{
    struct wal_remote_pull_result result = WAL_INIT(wal_remote_pull_result);
    struct wal_error error = KIT_ERROR;
    enum wal_status status =
        small_pull(&place.memory, &place.pulled, &result, &error);

    if (status != WAL_OK) {
        print_error("%s: %s\n", error.file, error.text);
    }
    assert_ok(status);
    assert_logs_equal(&place.pulled, &place.log);
    return result;
}

/* A pull to a log that has the first entries. */
static struct wal_remote_pull_result pull_from(uint64_t count)
{
    small_log_cut(&place.pulled, 0);
    for (uint64_t i = 0; i < count; i++) {
        small_log_append(&place.pulled, place.log.entries[i]);
    }
    return pull();
}

/* --- bases -------------------------------------------------------------- */

TEST_WITH(remote_base__pull_begins_with_it, set_up, tear_down)
{
    struct wal__base_result made;
    struct wal_remote_pull_result pulled;

    start(1);
    push(300);
    place.log.per_base = 100;
    made = make_base();
    assert_int_equal(made.number, 1);
    assert_int_equal(made.segments, 3);
    push(5);
    pulled = pull();
    assert_int_equal(pulled.parts, 3 + 5);
    assert_int_equal(pulled.part, 305);
}

TEST_WITH(remote_base__nothing_new, set_up, tear_down)
{
    start(1);
    assert_int_equal(make_base().number, 0);
    push(3);
    assert_int_equal(make_base().number, 1);
    place.memory.puts = 0;
    assert_int_equal(make_base().number, 0);
    assert_int_equal(place.memory.puts, 0);
    (void)pull();
}

/* Small segments are made anew, as one. */
TEST_WITH(remote_base__small_segments_are_merged, set_up, tear_down)
{
    start(1);
    for (uint64_t i = 1; i < 10; i++) {
        push(3);
        assert_int_equal(make_base().number, i);
        assert_int_equal(pull_from(0).parts, 1);
    }
}

/* From each position: with a base whose segments begin there or not, before
 * and after what a former writer had. */
TEST_WITH(remote_base__pull_from_each_position, set_up, tear_down)
{
    start(1);
    push(8);
    start(2);
    push(292);
    place.log.per_base = 70;
    (void)make_base();
    start(3);
    push(10);
    for (uint64_t count = 0; count <= 310; count++) {
        (void)pull_from(count);
    }
    assert_int_equal(pull_from(301).parts, 9);
    assert_int_equal(pull_from(290).parts, 20);
    (void)collect();
    assert_int_equal(count_objects("part/0000000000000001"), 1);
    for (uint64_t count = 0; count <= 310; count++) {
        (void)pull_from(count);
    }
}

TEST_WITH(remote_base__store_of_another_past, set_up, tear_down)
{
    struct wal__base_result result;

    start(1);
    push(10);
    small_log_cut(&place.log, 5);
    assert_int_equal(try_base(false, &result), WAL_ECONFLICT);
    for (uint64_t i = 0; i < 5; i++) {
        small_log_append(&place.log, 999);
    }
    assert_int_equal(try_base(false, &result), WAL_ECONFLICT);
    assert_int_equal(count_objects("base"), 0);
}

TEST_WITH(remote_base__end_was_compacted, set_up, tear_down)
{
    struct wal__base_result result;

    start(1);
    push(10);
    for (uint64_t i = 0; i < 5; i++) {
        small_log_append(&place.log, 999);
    }
    place.log.compacted = 12;
    assert_ok(try_base(false, &result));
    assert_int_equal(result.number, 0);
    assert_int_equal(count_objects("base"), 0);
}

/* A base that another process makes at the same time. */
static void make_other_base(void *ctx, const char *call, const char *name)
{
    (void)ctx;
    if (strcmp(call, "create") == 0 && strstr(name, "/base/") != NULL) {
        place.memory.hook = NULL;
        assert_int_equal(make_base().number, 1);
    }
}

TEST_WITH(remote_base__two_make_one, set_up, tear_down)
{
    start(1);
    push(10);
    place.memory.hook = make_other_base;
    assert_int_equal(make_base().number, 0);
    assert_int_equal(count_objects("base"), 1);
    assert_int_equal(count_objects("seg"), 2);
    (void)pull();
    push(10);
    (void)make_base();
    assert_int_equal(collect().segments, 2);
    (void)pull_from(0);
}

TEST_WITH(remote_base__made_anew, set_up, tear_down)
{
    struct wal__base_result result;

    start(1);
    push(40);
    place.log.per_base = 10;
    (void)make_base();
    place.log.per_base = 0;
    place.log.compacted = 30;
    assert_ok(try_base(true, &result));
    assert_int_equal(result.number, 2);
    assert_int_equal(result.segments, 2);
    assert_int_equal(collect().segments, 4);
    assert_int_equal(pull_from(0).parts, 2);
    (void)pull_from(12);
}

TEST_WITH(remote_base__damaged, set_up, tear_down)
{
    static const char name[] = UUID "/base/0000000000000001";
    struct wal_error error = KIT_ERROR;

    start(1);
    push(3);
    (void)make_base();
    memory_find(&place.memory, name)->data[0] = '[';
    assert_int_equal(small_pull(&place.memory, &place.pulled, NULL, &error),
                     WAL_ECORRUPT);
    assert_string_equal(error.file, name);
}

TEST_WITH(remote_base__lost_segment, set_up, tear_down)
{
    struct wal_error error = KIT_ERROR;

    start(1);
    push(3);
    (void)make_base();
    for (size_t i = 0; i < place.memory.count; i++) {
        if (strstr(place.memory.objects[i].name, "/seg/") != NULL) {
            char name[WAL__STORE_OBJECT_SIZE];

            memcpy(name, place.memory.objects[i].name, sizeof(name));
            memory_remove(&place.memory, name);
            assert_int_equal(
                small_pull(&place.memory, &place.pulled, NULL, &error),
                WAL_ECORRUPT);
            assert_string_equal(error.file, name);
            return;
        }
    }
    fail();
}

/* --- when --------------------------------------------------------------- */

static uint64_t count_parts(void)
{
    const struct wal__base_end end = end_of(&place.writer);
    uint64_t parts = UINT64_MAX;

    assert_ok(wal__base_count_parts(&place.memory.remote, small_uuid, &end,
                                    &parts, NULL));
    return parts;
}

TEST_WITH(remote_base__is_due_after_many_parts, set_up, tear_down)
{
    start(1);
    push(900);
    assert_int_equal(count_parts(), 900);
    start(2); /* the fence counts */
    push(98);
    assert_int_equal(count_parts(), WAL__BASE_PARTS - 1);
    push(1);
    assert_true(count_parts() >= WAL__BASE_PARTS);
    (void)make_base();
    assert_int_equal(count_parts(), 0);
    push(3);
    assert_int_equal(count_parts(), 3);
}

/* --- collection --------------------------------------------------------- */

TEST_WITH(remote_collect__nothing_without_an_old_base, set_up, tear_down)
{
    struct wal__collect_result result = {.parts = 0};
    int64_t now = wal__machine_unix_ms();

    start(1);
    push(100);
    assert_int_equal(collect().parts, 0);
    (void)make_base();
    assert_ok(wal__collect(&place.memory.remote, small_uuid, now,
                           WAL__COLLECT_AGE_MS, &result, NULL));
    assert_int_equal(result.parts, 0);
    assert_ok(wal__collect(&place.memory.remote, small_uuid,
                           now + 2 * WAL__COLLECT_AGE_MS, WAL__COLLECT_AGE_MS,
                           &result, NULL));
    assert_int_equal(result.parts, 84);
}

TEST_WITH(remote_collect__fences_and_epochs_remain, set_up, tear_down)
{
    struct wal__collect_result result;

    for (uint64_t id = 1; id <= 5; id++) {
        start(id);
        push(50);
    }
    (void)make_base();
    push(3);
    result = collect();
    assert_int_equal(result.parts, 4 * 50 + 34);
    assert_int_equal(count_objects("epoch"), 5);
    assert_int_equal(count_objects("part"), 4 + 16 + 3);
    assert_int_equal(collect().parts, 0);
    (void)pull();
    (void)pull_from(120);
    start(6);
    push(3);
    (void)pull();
    assert_int_equal(count_objects("part"), 5 + 16 + 6);
}

/* More than a listing has. */
TEST_WITH(remote_collect__many_parts, set_up, tear_down)
{
    start(1);
    push(2500);
    (void)make_base();
    assert_int_equal(collect().parts, 2500 - 16);
    (void)pull();
}

TEST_WITH(remote_collect__older_bases_and_their_segments, set_up, tear_down)
{
    start(1);
    for (uint64_t i = 1; i <= 5; i++) {
        push(20);
        assert_int_equal(make_base().number, i);
    }
    assert_int_equal(count_objects("seg"), 5);
    assert_int_equal(collect().bases, 4);
    assert_int_equal(count_objects("seg"), 1);
    assert_int_equal(count_objects("base"), 1);
    push(20);
    assert_int_equal(make_base().number, 6);
    (void)pull();
}

/* A pull that began before. */
static void collect_now(void *ctx, const char *call, const char *name)
{
    (void)ctx;
    if (strcmp(call, "get") == 0 && strstr(name, "00000000064") != NULL) {
        place.memory.hook = NULL;
        push(50);
        (void)make_base();
        assert_true(collect().parts > 0);
    }
}

TEST_WITH(remote_collect__while_a_pull_goes_on, set_up, tear_down)
{
    for (uint32_t readers = 0; readers <= 4; readers += 4) {
        tear_down(state);
        set_up(state);
        start(1);
        push(300);
        place.memory.remote.readers = readers;
        place.memory.hook = collect_now;
        (void)pull();
        assert_null(place.memory.hook);
    }
}

/* --- failures ----------------------------------------------------------- */

static enum wal_status make_and_collect(void)
{
    struct wal__base_result made;
    struct wal__collect_result result = {.parts = 0};
    enum wal_status status = try_base(false, &made);

    return status == WAL_OK
               ? wal__collect(&place.memory.remote, small_uuid,
                              wal__machine_unix_ms(), 0, &result, NULL)
               : status;
}

/* A base and a collection after others, of which the call `at` fails. Returns
 * whether there was one. */
static bool fail_call(uint64_t at, bool fails_after)
{
    enum wal_status status;

    start(1);
    push(30);
    place.log.per_base = 9;
    (void)make_base();
    start(2);
    push(40);
    place.log.per_base = 0;
    place.memory.fail_at = place.memory.calls + at;
    place.memory.fails_after = fails_after;
    status = make_and_collect();
    assert_true(status == WAL_OK || status == WAL_EREMOTE);
    return place.memory.calls >= place.memory.fail_at;
}

TEST_WITH(remote_collect__each_call_fails, set_up, tear_down)
{
    for (unsigned fails_after = 0; fails_after < 2; fails_after++) {
        bool has_failed = true;

        for (uint64_t at = 1; has_failed; at++) {
            tear_down(state);
            set_up(state);
            has_failed = fail_call(at, fails_after != 0);
            place.memory.fail_at = 0;
            for (uint64_t count = 0; count <= 70; count += 7) {
                (void)pull_from(count);
            }
            /* Another process goes on. */
            push(1);
            assert_ok(make_and_collect());
            assert_int_equal(count_objects("base"), 1);
            assert_int_equal(count_objects("seg"), 1);
            assert_int_equal(count_objects("part"), 1 + 16);
            (void)pull_from(0);
            start(3);
            push(1);
            (void)pull_from(20);
        }
    }
}

TEST_WITH(remote_base__each_call_of_a_pull_fails, set_up, tear_down)
{
    bool has_failed = true;

    for (uint64_t at = 1; has_failed; at++) {
        enum wal_status status;

        tear_down(state);
        set_up(state);
        start(1);
        push(40);
        place.log.per_base = 7;
        (void)make_base();
        push(3);
        (void)collect();
        place.memory.fail_at = place.memory.calls + at;
        status = small_pull(&place.memory, &place.pulled, NULL, NULL);
        has_failed = place.memory.calls >= place.memory.fail_at;
        assert_int_equal(status, has_failed ? WAL_EREMOTE : WAL_OK);
        place.memory.fail_at = 0;
        (void)pull();
    }
}
