/*
 * test_remote_base.c - tests of bases and of collection: what a pull does with them, what is
 * removed, and what a call that failed leaves; and of the check of a remote: each object of a
 * history is removed, and damaged, and must be named.
 */
#include "remote/base/base.h"
#include "remote/history/remote.h"
#include "remote/layout/layout.h"
#include "remote/pull/check.h"
#include "tests/lib/remote/small_log.h"
#include "tests/lib/test.h"

/* A remote, the log of a writer, and one that is pulled to. */
struct place {
    struct memory_driver memory;
    struct small_log log;
    struct small_log pulled;
    struct wal_remote_writer writer;
    struct wal_remote_check_result result;
    int32_t answer;    /* of the callback of a check */
    uint64_t reported; /* by it */
    char names[8][WAL__STORE_OBJECT_SIZE];
    enum wal_status statuses[8];
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
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.log, id, true, NULL));
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
    return (struct wal__base_end){
        .epoch = writer->last.epoch, .part = writer->last.part, .position = writer->position};
}

static enum wal_status try_base(bool is_anew, struct wal__base_result *result)
{
    const struct wal__part_source source = small_log_source(&place.log);
    const struct wal__base_end end = end_of(&place.writer);

    return wal__base_make(&place.memory.remote, &source, small_uuid, &end, is_anew, result, NULL);
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

    assert_ok(
        wal__collect(&place.memory.remote, small_uuid, wal__machine_unix_ms(), 0, &result, NULL));
    return result;
}

static uint64_t count_objects(const char *room)
{
    char prefix[64];
    uint64_t count = 0;

    snprintf(prefix, sizeof(prefix), UUID "/%s/", room);
    for (size_t i = 0; i < place.memory.count; i++) {
        count += strncmp(place.memory.objects[i].name, prefix, strlen(prefix)) == 0;
    }
    return count;
}

static struct wal_remote_pull_result pull(void)
{
    struct wal_remote_pull_result result = WAL_INIT(wal_remote_pull_result);
    struct wal_error error = KIT_ERROR;
    enum wal_status status = small_pull(&place.memory, &place.pulled, &result, &error);

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

/* From each position: with a base whose segments begin there or not, before and after what a former
 * writer had. */
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
    assert_int_equal(small_pull(&place.memory, &place.pulled, NULL, &error), WAL_ECORRUPT);
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
            assert_int_equal(small_pull(&place.memory, &place.pulled, NULL, &error), WAL_ECORRUPT);
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

    assert_ok(wal__base_count_parts(&place.memory.remote, small_uuid, &end, &parts, NULL));
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
    assert_ok(
        wal__collect(&place.memory.remote, small_uuid, now, WAL__COLLECT_AGE_MS, &result, NULL));
    assert_int_equal(result.parts, 0);
    assert_ok(wal__collect(&place.memory.remote, small_uuid, now + 2 * WAL__COLLECT_AGE_MS,
                           WAL__COLLECT_AGE_MS, &result, NULL));
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

static int32_t see(void *ctx, const struct wal_error *damage)
{
    (void)ctx;
    if (place.reported < 8) {
        memcpy(place.names[place.reported], damage->file, sizeof(place.names[0]));
        place.statuses[place.reported] = (enum wal_status)damage->status;
    }
    place.reported++;
    return place.answer;
}

static enum wal_status check(struct wal_error *error)
{
    struct wal__check run = {.remote = &place.memory.remote,
                             .info = small_log_source(&place.log).info,
                             .verify = small_log_verify,
                             .report = see,
                             .result = WAL_INIT(wal_remote_check_result)};
    enum wal_status status;

    memcpy(run.uuid, small_uuid, sizeof(run.uuid));
    place.reported = 0;
    memset(place.names, 0, sizeof(place.names));
    status = wal__check_run(&run, error);
    place.result = run.result;
    assert_int_equal(place.reported, place.result.damage);
    return status;
}

static enum wal_status make_and_collect(void)
{
    struct wal__base_result made;
    struct wal__collect_result result = {.parts = 0};
    enum wal_status status = try_base(false, &made);

    return status == WAL_OK ? wal__collect(&place.memory.remote, small_uuid, wal__machine_unix_ms(),
                                           0, &result, NULL)
                            : status;
}

/* A base and a collection after others, of which the call `at` fails. Returns whether there was
 * one. */
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
            assert_ok(check(NULL));
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

/* The check is clean but for one object. */
static void assert_found(const char *name, enum wal_status what)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(check(&error), WAL_ECORRUPT);
    assert_string_equal(error.file, name);
    assert_string_equal(place.names[0], name);
    assert_int_equal(place.statuses[0], what);
    assert_int_equal(place.reported, 1);
}

/* Three writers, two bases of which the second has a segment of the first, and parts after them. */
static void make_history(void)
{
    start(1);
    push(5);
    start(2);
    push(30);
    place.log.per_base = 30;
    assert_true(make_base().number > 0);
    push(4);
    start(3);
    push(4);
    assert_true(make_base().number > 0);
    push(3);
}

/* The writer stores a part before each listing of parts. */
static void push_before_listing(void *ctx, const char *call, const char *name)
{
    (void)ctx;
    if (strcmp(call, "list") == 0 && strstr(name, "/part/") != NULL) {
        push(1);
    }
}

TEST_WITH(remote_check__ends_while_parts_come, set_up, tear_down)
{
    make_history();
    place.memory.hook = push_before_listing;
    assert_ok(check(NULL));
    place.memory.hook = NULL;
}

/* The listing has passed part 4 when that comes, and with it one whose floor covers it. */
static void push_while_listing(void *ctx, const char *name)
{
    (void)ctx;
    if (strcmp(name, UUID "/part/0000000000000001/0000000000000005") == 0) {
        place.memory.listed = NULL;
        push(0);
    }
}

TEST_WITH(remote_check__gap_is_filled_while_it_is_listed, set_up, tear_down)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);

    start(1);
    for (uint64_t i = 0; i < 6; i++) {
        small_log_append(&place.log, 100 + i);
    }
    place.memory.fail_at = place.memory.calls + 4;
    assert_int_equal(wal__writer_push(&place.writer, &result, NULL), WAL_EREMOTE);
    place.memory.fail_at = 0;
    place.memory.listed = push_while_listing;
    assert_ok(check(NULL));
    assert_null(place.memory.listed);
    assert_int_equal(place.result.damage, 0);
}

TEST_WITH(remote_check__sound_history, set_up, tear_down)
{
    make_history();
    assert_ok(check(NULL));
    assert_int_equal(place.result.epochs, 3);
    assert_int_equal(place.result.bases, 2);
    assert_int_equal(place.result.parts, 5 + 34 + 7);
    assert_int_equal(place.result.epoch, 3);
    assert_int_equal(place.result.part, 7);
    assert_int_equal(place.result.sequence, 46);
}

TEST_WITH(remote_check__no_store, set_up, tear_down)
{
    assert_int_equal(check(NULL), WAL_ENOTFOUND);
}

/* What the remote does not need any more, or no one can miss. */
static bool is_needed(const char *name)
{
    static const char *const others[] = {
        UUID "/part/0000000000000003/0000000000000001", /* the base has it */
        UUID "/part/0000000000000003/0000000000000002",
        UUID "/part/0000000000000003/0000000000000003",
        UUID "/part/0000000000000003/0000000000000004",
        UUID "/part/0000000000000003/0000000000000007", /* the last one */
        UUID "/base/0000000000000001",
        UUID "/base/0000000000000002",
        UUID "/epoch/0000000000000003", /* the newest epoch */
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(name, others[i]) == 0) {
            return false;
        }
    }
    /* Below the base, but for the fences. */
    return strncmp(name, UUID "/part/0000000000000001", 54) != 0 &&
           strncmp(name, UUID "/part/0000000000000002", 54) != 0;
}

TEST_WITH(remote_check__each_lost_object, set_up, tear_down)
{
    size_t count = 1;
    size_t found = 0;

    for (size_t at = 0; at < count; at++) {
        char name[WAL__STORE_OBJECT_SIZE];

        tear_down(state);
        set_up(state);
        make_history();
        count = place.memory.count;
        memcpy(name, place.memory.objects[at].name, sizeof(name));
        memory_remove(&place.memory, name);
        if (is_needed(name)) {
            assert_found(name, WAL_ENOTFOUND);
            found++;
        } else {
            enum wal_status status = check(NULL);

            assert_true(status == WAL_OK || status == WAL_ECORRUPT);
        }
    }
    assert_true(found >= 2 + 2 + 2);
}

TEST_WITH(remote_check__each_damaged_object, set_up, tear_down)
{
    size_t count = 1;

    for (size_t at = 0; at < count; at++) {
        for (unsigned how = 0; how < 3; how++) {
            struct memory_object *object;
            struct wal_error error = KIT_ERROR;

            tear_down(state);
            set_up(state);
            make_history();
            count = place.memory.count;
            object = &place.memory.objects[at];
            if (how == 0) {
                object->size -= 2; /* more than a newline */
            } else if (how == 1) {
                object->data[0] ^= 0x20;
            } else if (object->size > 256) {
                /* The last entry, before a trailer that there may be. */
                object->data[object->size - 1 - WAL__PART_TRAILER_SIZE] ^= 1;
            } else {
                object->data[object->size / 2] = '\n'; /* in a text */
            }
            assert_int_equal(check(&error), WAL_ECORRUPT);
            assert_string_equal(error.file, object->name);
            assert_string_equal(place.names[0], object->name);
        }
    }
}

/* Two parts that have changed places. */
TEST_WITH(remote_check__parts_in_another_order, set_up, tear_down)
{
    struct memory_object *second;
    uint8_t *data;

    start(1);
    push(5);
    second = memory_find(&place.memory, UUID "/part/0000000000000001/"
                                             "0000000000000002");
    data = second[0].data;
    second[0].data = second[1].data;
    second[1].data = data;
    assert_int_equal(check(NULL), WAL_ECORRUPT);
    assert_string_equal(place.names[0], UUID "/part/0000000000000001/0000000000000002");
}

TEST_WITH(remote_check__many_lost_parts_are_one_report, set_up, tear_down)
{
    struct wal_error error = KIT_ERROR;

    start(1);
    push(100);
    for (unsigned i = 11; i <= 80; i++) {
        char name[WAL__STORE_OBJECT_SIZE];

        snprintf(name, sizeof(name), UUID "/part/0000000000000001/%016x", i);
        memory_remove(&place.memory, name);
    }
    assert_int_equal(check(&error), WAL_ECORRUPT);
    assert_string_equal(error.file, UUID "/part/0000000000000001/000000000000000b");
    assert_error(&error, WAL_ECORRUPT, "and the 54 after it");
    assert_int_equal(place.reported, 1 + 15);
}

static void create(const char *name, const char *text)
{
    struct wal__driver *driver = &place.memory.driver;

    assert_ok(
        driver->calls->put_if_absent(driver, name, (struct wal_slice){text, strlen(text)}, NULL));
}

/* What a writer that was killed had on the way is no damage. */
TEST_WITH(remote_check__gap_at_the_end, set_up, tear_down)
{
    static const char name[] = UUID "/part/0000000000000001/0000000000000004";
    struct memory_object *object;

    start(1);
    push(5);
    object = memory_find(&place.memory, name) + 1;
    object->size -= WAL__PART_TRAILER_SIZE;
    {
        struct wal__buf bytes;

        wal__buf_init(&bytes, &wal__heap_libc);
        assert_ok(wal__part_object_seal(&bytes, 3));
        memcpy(object->data + object->size, bytes.data, bytes.size);
        object->size += bytes.size;
        wal__buf_deinit(&bytes);
    }
    memory_remove(&place.memory, name);
    assert_ok(check(NULL));
    assert_int_equal(place.result.part, 3);
    /* Another writer has taken over, and the fence is lost. */
    create(UUID "/epoch/0000000000000002",
           "{\"version\":1,\"writer\":\"00000000000000000000000000000009\","
           "\"host\":\"h\",\"started\":1}");
    assert_ok(check(NULL));
    create(name, "{\"fence\":2}");
    create(UUID "/part/0000000000000002/0000000000000001", "{\"fence\":3}");
    assert_ok(check(NULL));
    memory_remove(&place.memory, name);
    assert_found(name, WAL_ENOTFOUND);
}

TEST_WITH(remote_check__callback_ends_it, set_up, tear_down)
{
    struct wal_error error = KIT_ERROR;

    make_history();
    place.memory.objects[place.memory.count - 1].data[0] ^= 1;
    place.answer = 7;
    assert_int_equal(check(&error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
}

TEST_WITH(remote_check__each_call_fails, set_up, tear_down)
{
    bool has_failed = true;

    for (uint64_t at = 1; has_failed; at++) {
        enum wal_status status;

        tear_down(state);
        set_up(state);
        make_history();
        place.memory.remote.readers = at % 2 == 0 ? 4 : 0;
        place.memory.fail_at = place.memory.calls + at;
        status = check(NULL);
        has_failed = place.memory.calls >= place.memory.fail_at;
        assert_true(status == WAL_OK || status == WAL_EREMOTE);
        assert_true(has_failed || status == WAL_OK);
        assert_int_equal(place.reported, 0);
    }
}
