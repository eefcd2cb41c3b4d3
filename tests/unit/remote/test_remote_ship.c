/*
 * test_remote_ship.c - tests of writers and pulls by the states that they find: what another writer
 * did meanwhile, what a call that failed left, what the remote has lost.
 */
#include "tests/lib/remote/small_log.h"
#include "tests/lib/test.h"

/* A remote and the logs of two machines. */
struct place {
    struct memory_driver memory;
    struct small_log a;
    struct small_log b;
    struct wal_remote_writer writer; /* of the log a */
    struct wal_remote_writer other;  /* of the log b, unless zeroed */
};

static struct place place;

static void append(struct small_log *log, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        small_log_append(log, first + i);
    }
}

static enum wal_status push(struct wal_remote_writer *writer, struct wal_remote_push_result *result,
                            struct wal_error *error)
{
    struct wal_remote_push_result counts = WAL_INIT(wal_remote_push_result);
    enum wal_status status = wal__writer_push(writer, &counts, error);

    if (result != NULL) {
        *result = counts;
    }
    return status;
}

static int set_up(void **state)
{
    (void)state;
    memset(&place, 0, sizeof(place));
    memory_driver_init(&place.memory);
    small_log_init(&place.a);
    small_log_init(&place.b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wal__writer_deinit(&place.writer);
    wal__writer_deinit(&place.other);
    small_log_deinit(&place.a);
    small_log_deinit(&place.b);
    memory_driver_deinit(&place.memory);
    return 0;
}

/* Ten entries of the machine a in parts of two, stored. */
static void store_ten(void)
{
    place.a.per_part = 2;
    append(&place.a, 100, 10);
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.a, 1, false, NULL));
    assert_ok(push(&place.writer, NULL, NULL));
}

/* The machine b pulls, and takes over. */
static void take_over(void)
{
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    assert_ok(small_writer_start(&place.other, &place.memory, &place.b, 2, true, NULL));
}

static void assert_pulled(const struct small_log *log)
{
    struct wal_error error = KIT_ERROR;
    struct small_log pulled;
    enum wal_status status;

    small_log_init(&pulled);
    status = small_pull(&place.memory, &pulled, NULL, &error);
    if (status != WAL_OK) {
        print_error("%s: %s\n", error.file, error.text);
    }
    assert_ok(status);
    assert_logs_equal(&pulled, log);
    small_log_deinit(&pulled);
}

/* A pull to an empty log fails, and names the object. */
static void assert_damage(const char *name)
{
    struct wal_error error = KIT_ERROR;
    struct small_log pulled;

    small_log_init(&pulled);
    assert_int_equal(small_pull(&place.memory, &pulled, NULL, &error), WAL_ECORRUPT);
    assert_string_equal(error.file, name);
    small_log_deinit(&pulled);
}

#define UUID "a1020300000000000000000000000004"

/* --- shipping ----------------------------------------------------------- */

TEST_WITH(remote_ship__all_parts_are_pulled, set_up, tear_down)
{
    store_ten();
    assert_non_null(memory_find(&place.memory, UUID "/epoch/0000000000000001"));
    assert_non_null(memory_find(&place.memory, UUID "/part/0000000000000001/0000000000000005"));
    assert_int_equal(place.memory.count, 6);
    assert_pulled(&place.a);
}

TEST_WITH(remote_ship__next_push_ships_what_is_new, set_up, tear_down)
{
    struct wal_remote_push_result result;

    store_ten();
    assert_ok(push(&place.writer, &result, NULL));
    assert_int_equal(result.parts, 0);
    append(&place.a, 200, 3);
    assert_ok(push(&place.writer, &result, NULL));
    assert_int_equal(result.parts, 2);
    assert_int_equal(result.part, 7);
    assert_int_equal(result.sequence, 13);
    assert_pulled(&place.a);
}

TEST_WITH(remote_ship__same_writer_goes_on_in_its_epoch, set_up, tear_down)
{
    store_ten();
    append(&place.a, 200, 2);
    assert_ok(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL));
    assert_ok(push(&place.other, NULL, NULL));
    assert_int_equal(place.other.epoch, 1);
    assert_int_equal(place.memory.count, 7);
    assert_pulled(&place.a);
}

/* A second process as the same writer, which nothing keeps out. */
TEST_WITH(remote_ship__two_processes_as_one_writer, set_up, tear_down)
{
    store_ten();
    assert_ok(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL));
    append(&place.a, 200, 1);
    assert_ok(push(&place.writer, NULL, NULL));
    append(&place.a, 300, 1);
    assert_fails(push(&place.other, NULL, kit_error()), WAL_EFENCED,
                 "another process writes as this writer");
    assert_int_equal(push(&place.other, NULL, kit_error()), WAL_EFENCED);
    wal__writer_deinit(&place.other);
    assert_ok(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL));
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.a);
}

/* The third part of five fails, those after it are stored, and the process is killed: what it had
 * on the way is not acknowledged, and is ignored. */
TEST_WITH(remote_ship__killed_with_parts_on_the_way, set_up, tear_down)
{
    place.a.parallel = 4;
    place.a.per_part = 2;
    append(&place.a, 100, 10);
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.a, 1, false, NULL));
    place.memory.fail_at = place.memory.calls + 3;
    assert_int_equal(push(&place.writer, NULL, NULL), WAL_EREMOTE);
    place.memory.fail_at = 0;
    assert_null(memory_find(&place.memory, UUID "/part/0000000000000001/0000000000000003"));
    assert_non_null(memory_find(&place.memory, UUID "/part/0000000000000001/0000000000000004"));
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    assert_int_equal(place.b.count, 4);
    append(&place.a, 200, 1);
    place.a.per_part = 3;
    assert_ok(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL));
    assert_int_equal(place.other.epoch, 2);
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.a);
    /* The former process was not dead. */
    assert_int_equal(push(&place.writer, NULL, NULL), WAL_EFENCED);
    assert_pulled(&place.a);
}

/* And another machine takes over from it. */
TEST_WITH(remote_ship__takeover_fences_the_gap, set_up, tear_down)
{
    place.a.parallel = 16;
    place.a.per_part = 1;
    append(&place.a, 100, 20);
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.a, 1, false, NULL));
    place.memory.fail_at = place.memory.calls + 2;
    assert_int_equal(push(&place.writer, NULL, NULL), WAL_EREMOTE);
    place.memory.fail_at = 0;
    take_over();
    assert_int_equal(place.b.count, 1);
    assert_non_null(memory_find(&place.memory, UUID "/part/0000000000000001/0000000000000010"));
    append(&place.b, 300, 3);
    assert_ok(push(&place.other, NULL, NULL));
    assert_int_equal(push(&place.writer, NULL, NULL), WAL_EFENCED);
    assert_pulled(&place.b);
}

/* Among the last parts, of which any could be on the way: the floor of a later one says that it was
 * stored. */
TEST_WITH(remote_ship__lost_part_is_no_gap, set_up, tear_down)
{
    static const char lost[] = UUID "/part/0000000000000001/0000000000000004";
    struct wal_error error = KIT_ERROR;

    store_ten();
    append(&place.a, 200, 1);
    assert_ok(push(&place.writer, NULL, NULL));
    memory_remove(&place.memory, lost);
    assert_damage(lost);
    append(&place.a, 300, 1);
    assert_int_equal(small_writer_start(&place.other, &place.memory, &place.a, 2, true, &error),
                     WAL_ECORRUPT);
    assert_string_equal(error.file, lost);
}

/* The listing has passed part 4 when that comes, and with it a part whose floor covers it. */
static void push_while_listing(void *ctx, const char *name)
{
    uint32_t *listings = ctx; /* until then */

    if (strcmp(name, UUID "/part/0000000000000001/0000000000000005") == 0 && --*listings == 0) {
        place.memory.listed = NULL;
        assert_ok(push(&place.writer, NULL, NULL));
    }
}

/* Finds the end while part 4 comes in one of the listings. */
static void find_end_while_listed(uint32_t listings, struct wal__epoch_end *end)
{
    struct wal__store_object part = {.kind = WAL__OBJECT_PART, .epoch = 1};

    place.a.per_part = 2;
    append(&place.a, 100, 12);
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.a, 1, false, NULL));
    place.memory.fail_at = place.memory.calls + 4;
    assert_int_equal(push(&place.writer, NULL, NULL), WAL_EREMOTE);
    place.memory.fail_at = 0;
    memcpy(part.uuid, small_uuid, sizeof(part.uuid));
    place.memory.listed = push_while_listing;
    place.memory.hook_ctx = &listings;
    assert_ok(wal__epoch_end_find(&place.memory.remote, &part, end, NULL));
    assert_null(place.memory.listed);
}

TEST_WITH(remote_ship__gap_is_filled_while_it_is_listed, set_up, tear_down)
{
    struct wal__store_object part = {.kind = WAL__OBJECT_PART, .epoch = 1};
    struct wal__epoch_end end = {.number = 0};

    find_end_while_listed(3, &end);
    assert_int_equal(end.number, 3);
    assert_true(end.has_more);
    memcpy(part.uuid, small_uuid, sizeof(part.uuid));
    assert_ok(wal__epoch_end_find(&place.memory.remote, &part, &end, NULL));
    assert_int_equal(end.number, 6);
}

/* One listing cannot tell whether the part was lost. */
TEST_WITH(remote_ship__gap_is_filled_in_the_first_listing, set_up, tear_down)
{
    struct wal__epoch_end end = {.number = 0};

    find_end_while_listed(1, &end);
    assert_int_equal(end.number, 6);
    assert_false(end.has_more);
}

/* Without marks a writer cannot know what a process before it sent. */
TEST_WITH(remote_ship__no_marks_make_an_epoch, set_up, tear_down)
{
    store_ten();
    place.a.mark_count = 0;
    append(&place.a, 200, 2);
    assert_ok(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL));
    assert_int_equal(place.other.epoch, 2);
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.a);
}

static int32_t refuse_marks(void *ctx, const struct wal_remote_mark *marks, uint64_t count)
{
    (void)ctx;
    (void)marks;
    (void)count;
    return 28;
}

/* Nothing is sent that was not marked before. */
TEST_WITH(remote_ship__marks_are_not_kept, set_up, tear_down)
{
    struct wal_error error = KIT_ERROR;

    store_ten();
    append(&place.a, 200, 2);
    place.writer.keep = refuse_marks;
    assert_int_equal(push(&place.writer, NULL, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 28);
    assert_int_equal(place.memory.count, 6);
}

/* A machine and its copy both go on. */
TEST_WITH(remote_ship__part_of_copy_with_other_past, set_up, tear_down)
{
    store_ten();
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    memcpy(place.b.marks, place.a.marks, sizeof(place.a.marks));
    place.b.mark_count = place.a.mark_count;
    assert_ok(small_writer_start(&place.other, &place.memory, &place.b, 1, false, NULL));
    append(&place.a, 200, 2);
    append(&place.b, 300, 2);
    assert_ok(push(&place.writer, NULL, NULL));
    assert_int_equal(push(&place.other, NULL, kit_error()), WAL_EFENCED);
    wal__writer_deinit(&place.other);
    assert_int_equal(small_writer_start(&place.other, &place.memory, &place.b, 1, false, NULL),
                     WAL_ECONFLICT);
    assert_pulled(&place.a);
}

/* The machine has pushed after it was copied: the mark of the copy is not that of the last part. */
TEST_WITH(remote_ship__copy_without_the_last_part, set_up, tear_down)
{
    store_ten();
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    memcpy(place.b.marks, place.a.marks, sizeof(place.a.marks));
    place.b.mark_count = place.a.mark_count;
    assert_int_equal(place.b.mark_count, 1);
    append(&place.a, 200, 2);
    assert_ok(push(&place.writer, NULL, NULL));
    append(&place.b, 300, 2);
    assert_fails(small_writer_start(&place.other, &place.memory, &place.b, 1, false, kit_error()),
                 WAL_ECONFLICT, "lacks what the remote has");
    assert_pulled(&place.a);
}

/* What fail_each_call tries. */
enum {
    FAILS_AFTER = 1, /* the call is done */
    TAKES_OVER = 2,
    RESTARTS = 4, /* the process is killed, and another one goes on */
    COMPACTED = 8,
    SEVERAL = 16 /* parts on the way at a time */
};

static enum wal_status start_other(unsigned how)
{
    enum wal_status status = WAL_EREMOTE;

    for (int i = 0; i < 3 && status == WAL_EREMOTE; i++) {
        wal__writer_deinit(&place.other);
        status = small_writer_start(&place.other, &place.memory, &place.b, 2,
                                    (how & TAKES_OVER) != 0, NULL);
    }
    return status;
}

/* A push, or a takeover, of which the call `at` fails. Returns whether there was one. */
static bool fail_call(unsigned how, uint64_t at)
{
    enum wal_status status;

    if ((how & TAKES_OVER) != 0) {
        store_ten();
        assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    }
    place.b.parallel = (how & SEVERAL) != 0 ? 3 : 1;
    place.b.per_part = 2;
    append(&place.b, 500, 9);
    place.b.compacted = (how & COMPACTED) != 0 ? place.b.count - 1 : 0;
    place.memory.fail_at = place.memory.calls + at;
    place.memory.fails_after = (how & FAILS_AFTER) != 0;
    status = start_other(how);
    assert_ok(status);
    status = push(&place.other, NULL, NULL);
    if (status == WAL_EREMOTE && (how & RESTARTS) != 0) {
        append(&place.b, 600, 1);
        assert_ok(start_other(how));
    }
    if (status == WAL_EREMOTE) {
        status = push(&place.other, NULL, NULL);
    }
    assert_ok(status);
    return place.memory.calls >= place.memory.fail_at;
}

TEST_WITH(remote_ship__each_call_fails, set_up, tear_down)
{
    for (unsigned how = 0; how < 32; how++) {
        bool has_failed = true;

        /* A store that was compacted where the remote ends is refused. */
        if ((how & TAKES_OVER) != 0 && (how & COMPACTED) != 0) {
            continue;
        }
        for (uint64_t at = 1; has_failed; at++) {
            tear_down(state);
            set_up(state);
            has_failed = fail_call(how, at);
            place.memory.fail_at = 0;
            assert_pulled(&place.b);
        }
    }
}

/* --- taking over -------------------------------------------------------- */

TEST_WITH(remote_ship__other_writer_needs_take_over, set_up, tear_down)
{
    store_ten();
    assert_fails(small_writer_start(&place.other, &place.memory, &place.a, 2, false, kit_error()),
                 WAL_EFENCED, "epoch 1");
    assert_int_equal(place.memory.count, 6);
}

TEST_WITH(remote_ship__old_writer_is_fenced_for_ever, set_up, tear_down)
{
    store_ten();
    take_over();
    append(&place.a, 200, 2);
    assert_fails(push(&place.writer, NULL, kit_error()), WAL_EFENCED, "epoch 2");
    append(&place.b, 300, 2);
    assert_ok(push(&place.other, NULL, NULL));
    assert_int_equal(push(&place.writer, NULL, kit_error()), WAL_EFENCED);
    assert_pulled(&place.b);
}

/* The part comes when the machine b has read the history. */
static void push_old_part(void *ctx, const char *call, const char *name)
{
    (void)ctx;
    if (strcmp(call, "create") == 0 && strstr(name, "/part/") != NULL) {
        place.memory.hook = NULL;
        assert_ok(push(&place.writer, NULL, NULL));
    }
}

TEST_WITH(remote_ship__part_comes_before_the_fence, set_up, tear_down)
{
    store_ten();
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    append(&place.a, 200, 2);
    place.memory.hook = push_old_part;
    /* What the machine b lacks was acknowledged. */
    assert_int_equal(small_writer_start(&place.other, &place.memory, &place.b, 2, true, NULL),
                     WAL_ECONFLICT);
    assert_non_null(memory_find(&place.memory, UUID "/part/0000000000000001/0000000000000007"));
    assert_pulled(&place.a);
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    assert_ok(small_writer_start(&place.other, &place.memory, &place.b, 2, false, NULL));
    append(&place.b, 300, 1);
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.b);
}

TEST_WITH(remote_ship__late_part_meets_the_fence, set_up, tear_down)
{
    store_ten();
    append(&place.a, 200, 2);
    place.memory.put_faults = 1000;
    for (uint64_t i = 0; place.memory.late_count == 0; i++) {
        place.memory.random = i;
        if (push(&place.writer, NULL, NULL) == WAL_OK) {
            append(&place.a, 200, 2);
        }
    }
    place.memory.put_faults = 0;
    take_over();
    memory_driver_settle(&place.memory);
    append(&place.b, 300, 1);
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.b);
}

TEST_WITH(remote_ship__older_store_changes_nothing, set_up, tear_down)
{
    store_ten();
    append(&place.b, 100, 9);
    assert_fails(small_writer_start(&place.other, &place.memory, &place.b, 2, true, kit_error()),
                 WAL_ECONFLICT, "lacks what the remote has");
    assert_int_equal(place.memory.count, 6);
    append(&place.a, 200, 1);
    assert_ok(push(&place.writer, NULL, NULL));
}

TEST_WITH(remote_ship__forked_store_changes_nothing, set_up, tear_down)
{
    store_ten();
    append(&place.b, 100, 9);
    append(&place.b, 999, 9);
    assert_int_equal(small_writer_start(&place.other, &place.memory, &place.b, 2, true, NULL),
                     WAL_ECONFLICT);
    assert_int_equal(place.memory.count, 6);
}

TEST_WITH(remote_ship__epochs_without_parts, set_up, tear_down)
{
    struct wal_remote_writer writer;

    store_ten();
    for (uint64_t id = 10; id < 15; id++) {
        assert_ok(small_writer_start(&writer, &place.memory, &place.a, id, true, NULL));
        wal__writer_deinit(&writer);
    }
    take_over();
    assert_int_equal(place.other.epoch, 7);
    append(&place.b, 300, 1);
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.b);
}

static void make_epoch(void *ctx, const char *call, const char *name)
{
    static const char epoch[] = UUID "/epoch/0000000000000002";
    static const char json[] = "{\"version\":1,\"writer\":\"00000000000000000000000000000009\","
                               "\"host\":\"h\",\"started\":1}";

    (void)ctx;
    (void)name;
    if (strcmp(call, "create") == 0) {
        struct wal__driver *driver = &place.memory.driver;

        place.memory.hook = NULL;
        memory_now_ms += 31000;
        assert_ok(driver->calls->put_if_absent(driver, epoch,
                                               (struct wal_slice){json, sizeof(json) - 1}, NULL));
    }
}

/* The part is stored, and not acknowledged. */
TEST_WITH(remote_ship__away_while_an_epoch_is_made, set_up, tear_down)
{
    store_ten();
    append(&place.a, 200, 1);
    place.memory.hook = make_epoch;
    assert_fails(push(&place.writer, NULL, kit_error()), WAL_EFENCED, "host h");
    assert_int_equal(push(&place.writer, NULL, kit_error()), WAL_EFENCED);
    assert_pulled(&place.a);
}

TEST_WITH(remote_ship__away_and_still_the_writer, set_up, tear_down)
{
    store_ten();
    memory_now_ms += 31000;
    append(&place.a, 200, 1);
    assert_ok(push(&place.writer, NULL, NULL));
    assert_pulled(&place.a);
}

/* The remote replaces the fence by the part, so that each push succeeds: the writer finds the other
 * one in its next look. */
TEST_WITH(remote_ship__fence_is_replaced, set_up, tear_down)
{
    enum wal_status status = WAL_OK;

    store_ten();
    take_over();
    place.memory.ignores_conditions = true;
    for (uint64_t i = 0; i < 4 && status == WAL_OK; i++) {
        memory_now_ms += 10 * 1000;
        append(&place.a, 200 + i, 1);
        status = push(&place.writer, NULL, kit_error());
        assert_true(status == WAL_OK || i == 3);
    }
    assert_int_equal(status, WAL_EFENCED);
}

static void count_epochs(void *ctx, const char *call, const char *name)
{
    uint64_t *count = ctx;

    *count += strcmp(call, "get") == 0 && strstr(name, "/epoch/") != NULL;
}

/* A writer that takes over waits for a look of the former one no longer than that has sent 16
 * parts. */
TEST_WITH(remote_ship__looks_after_16_parts, set_up, tear_down)
{
    uint64_t looks = 0;

    store_ten();
    place.memory.hook = count_epochs;
    place.memory.hook_ctx = &looks;
    append(&place.a, 200, 34);
    assert_ok(push(&place.writer, NULL, NULL));
    assert_int_equal(looks, 0);
    memory_now_ms += 2000;
    append(&place.a, 300, 2);
    assert_ok(push(&place.writer, NULL, NULL));
    assert_int_equal(looks, 1);
}

/* --- links -------------------------------------------------------------- */

TEST(remote_flow__slow_link_has_few_bytes_on_the_way)
{
    const uint64_t mebi = 1024 * 1024;
    struct wal__flow flow;

    wal__flow_init(&flow, mebi, 128 * mebi);
    assert_int_equal(wal__flow_object_size(&flow, 8 * mebi), mebi / 2);
    /* One always may be on the way, of any size. */
    assert_true(wal__flow_has_room(&flow, 0, 64 * mebi));
    assert_true(wal__flow_has_room(&flow, mebi / 2, mebi / 2));
    assert_false(wal__flow_has_room(&flow, mebi / 2, mebi / 2 + 1));
    /* 1 Mbit/s: 1 MiB in 8 s. Nothing changes. */
    wal__flow_count(&flow, mebi / 2, false, 1000, 9000);
    assert_int_equal(flow.bytes, mebi);
    /* A whole segment of 64 MiB: what the link carries in 10 s. */
    wal__flow_count(&flow, 64 * mebi, false, 10000, 522000);
    assert_in_range(flow.bytes, mebi, 3 * mebi / 2);
    /* What was on the way at that time says nothing new. */
    wal__flow_count(&flow, mebi, false, 20000, 530000);
    wal__flow_count(&flow, mebi, true, 20000, 530000);
    assert_in_range(flow.bytes, mebi, 3 * mebi / 2);
    /* Failures, each of which was begun after the last. */
    for (uint64_t i = 0; i < 10; i++) {
        wal__flow_count(&flow, mebi, true, 600000 + i, 600000 + i);
    }
    assert_int_equal(flow.bytes, WAL__FLOW_MIN);
    assert_int_equal(wal__flow_object_size(&flow, 8 * mebi), WAL__FLOW_MIN);
    assert_int_equal(wal__flow_object_size(&flow, 1), 1);
}

TEST(remote_flow__fast_link_has_all)
{
    const uint64_t mebi = 1024 * 1024;
    struct wal__flow flow;
    uint32_t parts = 0;

    wal__flow_init(&flow, mebi, 128 * mebi);
    for (; flow.bytes < flow.max; parts++) {
        wal__flow_count(&flow, wal__flow_object_size(&flow, 8 * mebi), false, 0, 100);
        assert_true(parts < 100);
    }
    assert_in_range(parts, 8, 24);
    assert_int_equal(wal__flow_object_size(&flow, 8 * mebi), 8 * mebi);
    wal__flow_count(&flow, 8 * mebi, false, 0, 100);
    assert_int_equal(flow.bytes, flow.max);
}

/* --- compaction --------------------------------------------------------- */

TEST_WITH(remote_ship__compacted_store_ships_segments, set_up, tear_down)
{
    struct wal_remote_push_result result;

    append(&place.a, 100, 10);
    place.a.compacted = 8;
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.a, 1, false, NULL));
    assert_ok(push(&place.writer, &result, NULL));
    assert_int_equal(result.parts, 2);
    assert_pulled(&place.a);
    take_over();
    append(&place.b, 300, 2);
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.b);
}

/* Compaction has replaced what the remote ends in. */
TEST_WITH(remote_ship__compacted_while_it_was_away, set_up, tear_down)
{
    store_ten();
    append(&place.a, 200, 5);
    place.a.compacted = 12;
    assert_ok(push(&place.writer, NULL, NULL));
    assert_pulled(&place.a);
    /* Another writer cannot know whether it has the same past. */
    append(&place.a, 300, 5);
    place.a.compacted = 20;
    place.a.mark_count = 0;
    assert_fails(small_writer_start(&place.other, &place.memory, &place.a, 2, true, kit_error()),
                 WAL_ECONFLICT, "was compacted where the remote ends");
}

/* A machine that went on from an older state of itself, and was compacted, is as one whose log was
 * compacted where the remote ends, but for its marks. */
TEST_WITH(remote_ship__past_that_compaction_left_open, set_up, tear_down)
{
    struct wal_remote_mark mark;

    store_ten();
    append(&place.a, 200, 5);
    place.a.compacted = 12;
    assert_int_equal(place.a.mark_count, 1);
    mark = place.a.marks[0];
    place.a.marks[0].digest[0] ^= 1;
    assert_int_equal(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL),
                     WAL_ECONFLICT);
    place.a.mark_count = 0;
    assert_int_equal(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL),
                     WAL_ECONFLICT);
    place.a.marks[0] = mark;
    place.a.mark_count = 1;
    assert_ok(small_writer_start(&place.other, &place.memory, &place.a, 1, false, NULL));
    assert_int_equal(place.other.epoch, 1);
    assert_ok(push(&place.other, NULL, NULL));
    assert_pulled(&place.a);
}

/* --- pulling ------------------------------------------------------------ */

TEST_WITH(remote_pull__goes_on_from_each_position, set_up, tear_down)
{
    store_ten();
    take_over();
    place.b.per_part = 3;
    append(&place.b, 300, 10);
    assert_ok(push(&place.other, NULL, NULL));
    for (uint64_t count = 0; count <= 10; count += 2) {
        struct wal_remote_pull_result result;

        small_log_cut(&place.a, count);
        assert_ok(small_pull(&place.memory, &place.a, &result, NULL));
        assert_int_equal(result.parts, (10 - count) / 2 + 4);
        assert_int_equal(result.sequence, 20);
        assert_logs_equal(&place.a, &place.b);
    }
    small_log_cut(&place.a, 13);
    assert_ok(small_pull(&place.memory, &place.a, NULL, NULL));
    assert_logs_equal(&place.a, &place.b);
}

/* The writer stores a part before each listing. */
static void push_before_listing(void *ctx, const char *call, const char *name)
{
    (void)ctx;
    if (strcmp(call, "list") == 0 && strstr(name, "/part/") != NULL) {
        append(&place.a, 900, 1);
        assert_ok(push(&place.writer, NULL, NULL));
    }
}

TEST_WITH(remote_pull__ends_while_parts_come, set_up, tear_down)
{
    store_ten();
    place.memory.hook = push_before_listing;
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    assert_true(place.b.count > 10);
    assert_true(place.b.count < 20);
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    place.memory.hook = NULL;
    assert_ok(small_pull(&place.memory, &place.b, NULL, NULL));
    assert_logs_equal(&place.a, &place.b);
}

TEST_WITH(remote_pull__lost_objects, set_up, tear_down)
{
    static const char *const lost[] = {
        UUID "/part/0000000000000001/0000000000000001",
        UUID "/part/0000000000000001/0000000000000003",
        UUID "/part/0000000000000001/0000000000000005",
        UUID "/part/0000000000000001/0000000000000006", /* the fence */
        UUID "/part/0000000000000002/0000000000000001",
    };

    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        tear_down(state);
        set_up(state);
        store_ten();
        take_over();
        place.b.per_part = 3;
        append(&place.b, 300, 10);
        assert_ok(push(&place.other, NULL, NULL));
        memory_remove(&place.memory, lost[i]);
        assert_damage(lost[i]);
    }
}

TEST_WITH(remote_pull__damaged_part, set_up, tear_down)
{
    static const char name[] = UUID "/part/0000000000000001/0000000000000003";

    store_ten();
    memory_find(&place.memory, name)->size--;
    assert_damage(name);
    memory_find(&place.memory, name)->size = 0;
    assert_damage(name);
}

/* The line loses the end of a part, once. */
static void lose_end(void *ctx, const char *call, const char *name)
{
    unsigned *gets = ctx;
    struct memory_object *part =
        memory_find(&place.memory, UUID "/part/0000000000000001/0000000000000003");

    if (strcmp(call, "get") != 0 || strcmp(name, part->name) != 0) {
        return;
    }
    if (++*gets <= 2) {
        part->size = *gets == 1 ? part->size - 1 : part->size + 1;
    }
}

TEST_WITH(remote_pull__damaged_line, set_up, tear_down)
{
    unsigned gets = 0;

    store_ten();
    place.memory.hook = lose_end;
    place.memory.hook_ctx = &gets;
    assert_pulled(&place.a);
    assert_true(gets > 1);
}

/* Two parts that have changed places. */
TEST_WITH(remote_pull__part_that_does_not_follow, set_up, tear_down)
{
    static const char name[] = UUID "/part/0000000000000001/0000000000000002";
    struct memory_object *second;
    struct memory_object *third;
    uint8_t *data;

    store_ten();
    second = memory_find(&place.memory, name);
    third = second + 1;
    data = second->data;
    second->data = third->data;
    third->data = data;
    assert_damage(name);
}

TEST_WITH(remote_pull__no_store, set_up, tear_down)
{
    uint8_t uuid[16];

    assert_int_equal(small_pull(&place.memory, &place.b, NULL, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal__remote_find_store(&place.memory.remote, uuid, NULL), WAL_ENOTFOUND);
}

TEST_WITH(remote_pull__one_store_or_several, set_up, tear_down)
{
    static const char other[] = "b0000000000000000000000000000000/epoch/0000000000000001";
    struct wal__driver *driver = &place.memory.driver;
    uint8_t uuid[16];

    store_ten();
    assert_ok(wal__remote_find_store(&place.memory.remote, uuid, NULL));
    assert_memory_equal(uuid, small_uuid, sizeof(uuid));
    assert_ok(driver->calls->put_if_absent(driver, other, WAL_STR("x"), NULL));
    assert_int_equal(wal__remote_find_store(&place.memory.remote, uuid, NULL), WAL_EINVAL);
}

/* --- the rest ----------------------------------------------------------- */

TEST_WITH(remote_ship__last_of_many_parts, set_up, tear_down)
{
    static const uint64_t counts[] = {0, 1, 999, 1000, 1001, 2000, 2001, 9000};
    struct wal__store_object object = {.kind = WAL__OBJECT_PART, .epoch = 1};
    struct wal__driver *driver = &place.memory.driver;
    uint64_t number = 0;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint64_t last = 0;

        while (number < counts[i]) {
            char name[WAL__STORE_OBJECT_SIZE];

            object.number = ++number;
            wal__store_object_format(&object, name);
            assert_ok(driver->calls->put_if_absent(driver, name, WAL_STR("x"), NULL));
        }
        place.memory.calls = 0;
        assert_ok(wal__remote_last(&place.memory.remote, &object, &last, NULL));
        assert_int_equal(last, counts[i]);
        assert_true(place.memory.calls < 20);
    }
}

/* The end of many parts is searched from where it was before. */
TEST_WITH(remote_ship__takeover_after_many_parts, set_up, tear_down)
{
    struct wal__history history = {.last_epoch = 0};
    const uint8_t writer[16] = {7};

    place.a.per_part = 1;
    append(&place.a, 1, 3500);
    assert_ok(small_writer_start(&place.writer, &place.memory, &place.a, 1, false, NULL));
    assert_ok(push(&place.writer, NULL, NULL));
    assert_ok(wal__history_read(&place.memory.remote, place.writer.source.info, small_uuid,
                                &history, NULL));
    place.memory.calls = 0;
    assert_ok(wal__takeover(&place.memory.remote, place.writer.source.info, small_uuid, writer,
                            &history, NULL));
    assert_int_equal(history.part, 3500);
    /* The epoch twice; 2 listings and a fence; the epoch again, its parts, and the last part. */
    assert_int_equal(place.memory.calls, 10);
}

TEST_WITH(remote_ship__lag, set_up, tear_down)
{
    struct wal_remote_status status = WAL_INIT(wal_remote_status);
    const struct wal__part_source source = small_log_source(&place.a);

    append(&place.a, 1, 3);
    assert_ok(wal__status_read(&place.memory.remote, &source, small_uuid, &status, NULL));
    assert_int_equal(status.epoch, 0);
    assert_int_equal(status.lag_sequences, 3);
    store_ten();
    append(&place.a, 1, 3);
    assert_ok(wal__status_read(&place.memory.remote, &source, small_uuid, &status, NULL));
    assert_int_equal(status.epoch, 1);
    assert_int_equal(status.part, 7);
    assert_int_equal(status.lag_sequences, 3);
    assert_true(status.lag_bytes > 3 * sizeof(uint64_t));
    small_log_cut(&place.a, 2);
    assert_int_equal(wal__status_read(&place.memory.remote, &source, small_uuid, &status, NULL),
                     WAL_ECONFLICT);
}

/* No epoch is begun on it. */
TEST_WITH(remote_ship__remote_that_ignores_conditions, set_up, tear_down)
{
    append(&place.a, 100, 1);
    place.memory.ignores_conditions = true;
    assert_fails(small_writer_start(&place.writer, &place.memory, &place.a, 1, false, kit_error()),
                 WAL_EINVAL, "ignores If-None-Match");
}

TEST_WITH(remote_probe__refuses_what_ignores_conditions, set_up, tear_down)
{
    assert_ok(wal__remote_probe(&place.memory.remote, kit_error()));
    assert_int_equal(place.memory.count, 0);
    place.memory.ignores_conditions = true;
    assert_fails(wal__remote_probe(&place.memory.remote, kit_error()), WAL_EINVAL,
                 "ignores If-None-Match");
}
