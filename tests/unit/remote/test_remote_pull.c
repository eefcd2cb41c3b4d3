/*
 * test_remote_pull.c - tests of pulls by what the remote has: parts that were on the way when the
 * writer was killed, parts that are lost, and many parts, which are read at the same time.
 *
 * Then writers that race for a store, by a seed: each call of a machine may be interrupted by all
 * that another one does, PUTs fail before and after they are done, come later, in any order, and
 * are repeated, and machines are killed. AGENTWAL_SEED repeats a run; AGENTWAL_LONG makes ten times
 * as many takeovers.
 *
 * What must hold: an epoch has one winner; each entry that was acknowledged is at its number in the
 * end, and no number was acknowledged with two entries; nothing else is there, but what no one
 * answered; a follower sees nothing that it must take for damage.
 */
#include "remote/base/base.h"
#include "remote/history/remote.h"
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

static void create(const struct wal__store_object *object, struct wal_slice bytes)
{
    struct wal__driver *driver = &place.memory.driver;
    char name[WAL__STORE_OBJECT_SIZE];

    wal__store_object_format(object, name);
    assert_ok(driver->calls->put_if_absent(driver, name, bytes, NULL));
}

static struct wal__store_object object_of(enum wal__store_object_kind kind, uint64_t epoch,
                                          uint64_t number)
{
    struct wal__store_object object = {.kind = kind, .epoch = epoch, .number = number};

    memcpy(object.uuid, small_uuid, sizeof(object.uuid));
    return object;
}

static void create_epoch(uint64_t epoch)
{
    const struct wal__store_object object = object_of(WAL__OBJECT_EPOCH, epoch, 0);
    struct wal__buf json;

    wal__buf_init(&json, &wal__heap_libc);
    assert_ok(wal__epoch_encode(&(struct wal__epoch){.writer = {1}, .host = "h"}, &json));
    create(&object, (struct wal_slice){json.data, json.size});
    wal__buf_deinit(&json);
}

static void create_fence(uint64_t epoch, uint64_t number)
{
    const struct wal__store_object object = object_of(WAL__OBJECT_PART, epoch, number);
    struct wal__buf json;

    wal__buf_init(&json, &wal__heap_libc);
    assert_ok(wal__fence_encode(epoch + 1, &json));
    create(&object, (struct wal_slice){json.data, json.size});
    wal__buf_deinit(&json);
}

/* Stores the entry `entry` of the log, from 0, as a part. */
static void create_part(uint64_t epoch, uint64_t number, uint64_t entry, uint64_t floor)
{
    const struct wal__store_object object = object_of(WAL__OBJECT_PART, epoch, number);
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
    enum wal_status status = small_pull(&place.memory, &place.pulled, NULL, &error);

    if (status != WAL_OK) {
        print_error("%s: %s\n", error.file, error.text);
    }
    assert_ok(status);
    assert_int_equal(place.pulled.count, count);
}

static void assert_lost(const char *name)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(small_pull(&place.memory, &place.pulled, NULL, &error), WAL_ECORRUPT);
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
    const struct wal__store_object object = object_of(WAL__OBJECT_PART, epoch, number);
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
    assert_int_equal(small_pull(&place.memory, &place.pulled, NULL, &error), WAL_ECORRUPT);
    assert_string_equal(error.file, name);
    assert_int_equal(place.pulled.count, 1);
}

/* --- many parts --------------------------------------------------------- */

TEST_WITH(remote_pull__many_parts_are_read_together, set_up, tear_down)
{
    enum { COUNT = 5000 };

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
    static const uint64_t sizes[] = {10, WAL__FETCH_BYTES, 10, 5, 2 * (uint64_t)WAL__FETCH_BYTES,
                                     1};
    struct wal__fetch_item items[6];
    struct wal__fetch *fetch = NULL;
    struct wal_slice object;

    for (size_t i = 0; i < 6; i++) {
        const struct wal__store_object name = object_of(WAL__OBJECT_PART, 1, i + 1);
        const char text[] = {(char)('a' + (char)i), '\0'};

        create(&name, (struct wal_slice){text, 1});
        wal__store_object_format(&name, items[i].name);
        items[i].size = sizes[i];
    }
    place.memory.remote.readers = 8;
    for (size_t last = 0; last <= 6; last++) {
        assert_ok(wal__fetch_open(&place.memory.remote, items, 6, &fetch, NULL));
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
    struct wal__fetch_item items[3] = {{.name = "x"}, {.name = "y"}, {.name = "z"}};
    struct wal_error error = KIT_ERROR;
    struct wal__fetch *fetch = NULL;
    struct wal_slice object;

    place.memory.remote.readers = 2;
    assert_ok(wal__fetch_open(&place.memory.remote, items, 3, &fetch, NULL));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(wal__fetch_next(fetch, &object, &error), WAL_ENOTFOUND);
        assert_string_equal(error.file, items[i].name);
    }
    wal__fetch_close(fetch);
    wal__fetch_close(NULL);
}

enum {
    MACHINES = 3,
    DEPTH = 2 /* machines that interrupt each other */
};

struct machine {
    struct small_log log;
    struct wal_remote_writer writer;
    uint64_t shipped; /* entries up to the last end of a part that it knows */
    uint64_t id;      /* of the writer */
    bool is_writer;
    bool was_killed; /* and goes on as the same writer */
    bool is_active;  /* in a step that another machine interrupts */
};

static struct race {
    struct memory_driver memory;
    struct machine machines[MACHINES];
    struct small_log follower;
    uint64_t random;
    int depth;
    uint64_t next_entry;
    uint64_t next_writer;
    uint64_t takeovers;
    uint64_t fenced;
    uint64_t killed;
    uint64_t bases;
    uint64_t collected;     /* parts */
    uint64_t *acknowledged; /* the entry of each number, from 1 */
    uint64_t acknowledged_count;
    uint64_t *winners; /* of each epoch */
} race;

static uint64_t below(uint64_t limit)
{
    return rng_below(&race.random, limit);
}

static void stop(struct machine *machine)
{
    wal__writer_deinit(&machine->writer);
    machine->writer = (struct wal_remote_writer){.epoch = 0};
    machine->is_writer = false;
}

/* Pulls until the remote answers. */
static enum wal_status pull(struct small_log *log)
{
    struct wal_error error = KIT_ERROR;
    enum wal_status status;

    do {
        status = small_pull(&race.memory, log, NULL, &error);
    } while (status == WAL_EREMOTE);
    if (status == WAL_ECORRUPT) {
        print_error("%s: %s\n", error.file, error.text);
    }
    return status;
}

/* Brings a log up to date, anew when it is older than a base. */
static void update(struct small_log *log)
{
    enum wal_status status = pull(log);

    if (status == WAL_ECONFLICT) {
        small_log_cut(log, 0);
        status = pull(log);
    }
    assert_true(status == WAL_OK || status == WAL_ENOTFOUND);
}

/* What the machine has is replaced by what the remote has; of what it has of that, mostly it keeps
 * something. */
static void make_anew(struct machine *machine)
{
    struct small_log *log = &machine->log;
    uint64_t count = 0;

    while (count < machine->shipped && log->entries[count] == race.acknowledged[count]) {
        count++;
    }
    small_log_cut(log, count == machine->shipped && below(32) != 0 ? count : 0);
    log->compacted = 0;
    log->mark_count = 0;
    update(log);
    machine->shipped = log->count;
    log->per_part = below(4);
}

static void start(struct machine *machine)
{
    const bool goes_on = machine->was_killed;
    enum wal_status status;

    machine->was_killed = false;
    if (!goes_on) {
        make_anew(machine);
        machine->id = ++race.next_writer;
    }
    status = small_writer_start(&machine->writer, &race.memory, &machine->log, machine->id,
                                !goes_on, NULL);
    if (status != WAL_OK) {
        /* What it looks at may be collected, at once and not after a day. */
        assert_true(status == WAL_EREMOTE || status == WAL_EFENCED ||
                    (status == WAL_ECONFLICT && !goes_on) ||
                    (status == WAL_ECORRUPT && race.collected > 0));
        stop(machine);
        return;
    }
    /* A process that was killed with parts on the way makes an epoch too. */
    if (!goes_on || race.winners[machine->writer.epoch] == 0) {
        assert_int_equal(race.winners[machine->writer.epoch], 0);
        race.winners[machine->writer.epoch] = machine->id;
        race.takeovers++;
    }
    assert_int_equal(race.winners[machine->writer.epoch], machine->id);
    machine->is_writer = true;
}

/* The first `count` entries of the log are in the remote. */
static void acknowledge(const struct small_log *log, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (race.acknowledged[i] == 0) {
            race.acknowledged[i] = log->entries[i];
        }
        assert_int_equal(race.acknowledged[i], log->entries[i]);
    }
    if (count > race.acknowledged_count) {
        race.acknowledged_count = count;
    }
}

/* Makes a base, and removes what is below the newest one, as any process may at any time. */
static void make_base(struct machine *machine)
{
    const struct wal_remote_writer *writer = &machine->writer;
    const struct wal__part_source source = small_log_source(&machine->log);
    const struct wal__base_end end = {
        .epoch = writer->last.epoch, .part = writer->last.part, .position = writer->position};
    struct wal__collect_result collected = {.parts = 0};
    struct wal__base_result made;
    enum wal_status status =
        wal__base_make(&race.memory.remote, &source, small_uuid, &end, false, &made, NULL);

    if (status == WAL_OK && below(2) == 0) {
        status = wal__collect(&race.memory.remote, small_uuid, wal__machine_unix_ms(), 0,
                              &collected, NULL);
    }
    assert_true(status == WAL_OK || status == WAL_EREMOTE || status == WAL_ECORRUPT);
    race.bases += made.number > 0;
    race.collected += collected.parts;
}

static void push(struct machine *machine)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);
    uint64_t count;
    enum wal_status status;

    for (uint64_t i = below(8); i > 0; i--) {
        small_log_append(&machine->log, ++race.next_entry);
    }
    count = machine->log.count;
    if (below(32) == 0) {
        machine->log.compacted = below(count + 1);
        machine->log.identity = ++race.next_entry;
    }
    memory_now_ms += below(16) == 0 ? 40000 : below(1000);
    status = wal__writer_push(&machine->writer, &result, NULL);
    if (status == WAL_OK) {
        acknowledge(&machine->log, count);
        machine->shipped = count;
        if (below(8) == 0) {
            make_base(machine);
        }
    } else if (status == WAL_EFENCED) {
        race.fenced++;
        stop(machine);
    } else {
        assert_int_equal(status, WAL_EREMOTE);
        if (below(4) == 0) {
            race.killed++;
            stop(machine);
            machine->was_killed = true;
        }
    }
}

static void step(struct machine *machine)
{
    machine->is_active = true;
    race.depth++;
    if (!machine->is_writer) {
        start(machine);
    } else {
        push(machine);
    }
    race.depth--;
    machine->is_active = false;
}

/* Another machine goes on in the middle of a call. */
static void interrupt(void *ctx, const char *call, const char *name)
{
    struct machine *machine = &race.machines[below(MACHINES)];
    uint64_t rest = strcmp(call, "create") == 0 ? 4 : 200;

    (void)ctx;
    (void)name;
    if (race.depth > 0 && race.depth < DEPTH && !machine->is_active && below(rest) == 0) {
        step(machine);
    }
}

static void set_up_race(uint64_t seed)
{
    race = (struct race){.random = seed};
    memory_driver_init(&race.memory);
    race.memory.random = seed + 1;
    race.memory.put_faults = 150;
    race.memory.other_faults = 100;
    race.memory.hook = interrupt;
    small_log_init(&race.follower);
    for (size_t i = 0; i < MACHINES; i++) {
        small_log_init(&race.machines[i].log);
    }
    race.acknowledged = calloc(SMALL_LOG_MAX, sizeof(uint64_t));
    race.winners = calloc(MEMORY_OBJECTS, sizeof(uint64_t));
    assert_true(race.acknowledged != NULL && race.winners != NULL);
}

static void tear_down_race(void)
{
    for (size_t i = 0; i < MACHINES; i++) {
        stop(&race.machines[i]);
        small_log_deinit(&race.machines[i].log);
    }
    small_log_deinit(&race.follower);
    memory_driver_deinit(&race.memory);
    free(race.acknowledged);
    free(race.winners);
}

/* The follower sees what is acknowledged. */
static void follow(void)
{
    uint64_t count = race.acknowledged_count;

    update(&race.follower);
    assert_true(race.follower.count >= count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(race.follower.entries[i], race.acknowledged[i]);
    }
}

/* All that is late comes, and a last writer stores a last entry. */
static void finish(void)
{
    struct machine *machine = &race.machines[0];
    struct small_log pulled;

    race.memory.hook = NULL;
    race.memory.put_faults = 0;
    race.memory.other_faults = 0;
    memory_driver_settle(&race.memory);
    stop(machine);
    machine->was_killed = false;
    start(machine);
    assert_true(machine->is_writer);
    small_log_append(&machine->log, ++race.next_entry);
    push(machine);
    follow();
    small_log_init(&pulled);
    assert_ok(pull(&pulled));
    assert_logs_equal(&pulled, &race.follower);
    assert_int_equal(pulled.count, race.acknowledged_count);
    small_log_deinit(&pulled);
}

static void run(uint64_t seed, uint64_t takeovers)
{
    set_up_race(seed);
    for (uint64_t i = 0; race.takeovers < takeovers; i++) {
        step(&race.machines[below(MACHINES)]);
        if (below(16) == 0) {
            follow();
        }
        if (race.memory.count > MEMORY_OBJECTS / 2) {
            break;
        }
    }
    finish();
    print_message("%llu takeovers, %llu writers fenced, %llu killed, %llu "
                  "entries acknowledged, %llu bases, %llu parts collected, %zu objects\n",
                  (unsigned long long)race.takeovers, (unsigned long long)race.fenced,
                  (unsigned long long)race.killed, (unsigned long long)race.acknowledged_count,
                  (unsigned long long)race.bases, (unsigned long long)race.collected,
                  race.memory.count);
    tear_down_race();
}

TEST(remote_race__takeovers)
{
    uint64_t seed = rng_seed(22);
    uint64_t runs = getenv("AGENTWAL_LONG") != NULL ? 100 : 10;

    for (uint64_t i = 0; i < runs; i++) {
        run(seed + i, 100);
    }
}

/* In one store, whose history grows. */
TEST(remote_race__takeovers_of_one_store)
{
    uint64_t seed = rng_seed(1000);

    run(seed, 1000);
}
