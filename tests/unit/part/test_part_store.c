/*
 * test_part_store.c - a store that is opened where its parts are: it answers as the store that they
 * were made of, reads no more of them than that takes, and nothing is believed that does not fit.
 */
#include "agentwal/replica.h"
#include "engine/care/part.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/describe_kit.h"
#include "tests/lib/kit/large_kit.h"
#include "tests/lib/kit/parts_kit.h"

enum { SESSIONS = 8, PARTS = 4096 };

/* The parts of a store in memory, with what was read of them. */
static struct {
    struct wal_store *store;
    struct wal_slice parts[PARTS];
    uint64_t count;
    struct wal_part_place at[WAL_PART_STREAMS]; /* to which they lead */
    struct wal_slice indexes[PARTS];
    uint64_t index_count;
    bool has_no_indexes; /* that are given */
    uint64_t size;
    uint64_t read;
    uint64_t reads;
    uint64_t fail_at; /* the read of this number fails; 0: none */
} world;

static enum wal_status read_part(void *ctx, uint64_t part, uint64_t offset, uint64_t size,
                                 void *data)
{
    assert_ptr_equal(ctx, &world);
    assert_true(part < world.count && offset <= world.parts[part].size &&
                size <= world.parts[part].size - offset);
    if (++world.reads == world.fail_at) {
        return WAL_EREMOTE;
    }
    world.read += size;
    memcpy(data, (const uint8_t *)world.parts[part].data + offset, (size_t)size);
    return WAL_OK;
}

static struct wal_slice copy_of(struct wal_slice slice)
{
    void *copy = malloc((size_t)slice.size);

    assert_non_null(copy);
    memcpy(copy, slice.data, (size_t)slice.size);
    return (struct wal_slice){copy, slice.size};
}

/* Adds entries to all sessions, and content. */
static void fill(unsigned round, size_t size)
{
    for (unsigned k = 0; k < SESSIONS; k++) {
        struct wal_session *session;
        char *payload = large_json(round * SESSIONS + k, size);
        char id[32];

        snprintf(id, sizeof(id), "s%u", k);
        session = round == 0 ? kit_create(world.store, id) : kit_session(world.store, id);
        snprintf(id, sizeof(id), "e%u", round);
        large_append(session, id, payload, 0);
        if (k == 1 && round % 16 == 3) {
            kit_redact(session, id);
        }
        wal_session_close(session);
    }
}

/* A store of several segments in both streams. */
static void fill_all(void)
{
    for (unsigned round = 0; round < 40; round++) {
        fill(round, round % 10 == 9 ? LARGE_MIN : 12 * 1024);
        if (round == 20) {
            struct wal_session *session = kit_session(world.store, "s2");

            wal_session_close(kit_fork(session, "e11", "fork"));
            wal_session_close(session);
        }
    }
}

static void drop_parts(void)
{
    for (uint64_t i = 0; i < world.count; i++) {
        free((void *)(uintptr_t)world.parts[i].data);
    }
    for (uint64_t i = 0; i < world.index_count; i++) {
        free((void *)(uintptr_t)world.indexes[i].data);
    }
    world.count = 0;
    world.index_count = 0;
    world.size = 0;
}

/* Adds what came since. */
static void make_more_parts(uint64_t max_size)
{
    struct wal_part_place *at = world.at;
    struct wal_part_reader *reader = NULL;
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice slice;

    assert_ok(wal_sync(world.store, NULL));
    assert_ok(wal_part_reader_open(world.store, &reader, NULL));
    while (wal_part_reader_next(reader, at, max_size, &slice, &info, NULL) == WAL_OK) {
        assert_true(world.count < PARTS);
        world.parts[world.count++] = copy_of(slice);
        world.size += slice.size;
        memcpy(at, info.after, sizeof(world.at));
        assert_ok(wal_part_reader_get_index(reader, &slice, NULL));
        assert_ok(wal_part_check_index(slice, NULL));
        if (slice.size > 0) {
            world.indexes[world.index_count++] = copy_of(slice);
        }
    }
    wal_part_reader_close(reader);
}

static void make_parts(uint64_t max_size)
{
    drop_parts();
    memset(world.at, 0, sizeof(world.at));
    make_more_parts(max_size);
}

static struct wal_parts parts_of_world(void)
{
    world.read = 0;
    world.reads = 0;
    return (struct wal_parts){.struct_size = sizeof(struct wal_parts),
                              .key = kit_test_key(),
                              .heads = world.parts,
                              .head_count = world.count,
                              .indexes = world.indexes,
                              .index_count = world.has_no_indexes ? 0 : world.index_count,
                              .read = read_part,
                              .ctx = &world};
}

static struct wal_store *open_parts(void)
{
    const struct wal_parts parts = parts_of_world();
    struct wal_store *store = NULL;

    assert_done(wal_open_parts(&parts, &store, kit_error()));
    return store;
}

static void assert_refused(enum wal_status expected, const char *text)
{
    const struct wal_parts parts = parts_of_world();
    struct wal_store *store = NULL;

    assert_fails(wal_open_parts(&parts, &store, kit_error()), expected, text);
    assert_null(store);
}

/* It answers as the store does. */
static void assert_same(void)
{
    struct wal_store *opened = open_parts();

    assert_same_stores(world.store, opened);
    assert_ok(wal_close(opened, NULL));
}

static int set_up(void **state)
{
    int result = kit_set_up(state);

    memset(&world, 0, sizeof(world));
    world.store = kit_store();
    return result;
}

static int tear_down(void **state)
{
    drop_parts();
    return kit_tear_down(state);
}

#define PARTS_TEST(name) TEST_WITH(name, set_up, tear_down)

/* --- reading -------------------------------------------------------------- */

PARTS_TEST(part_store__answers_as_the_store)
{
    static const uint64_t sizes[] = {0, 64 * 1024, 64 * 1024 * 1024};

    fill_all();
    for (size_t i = 0; i < 3; i++) {
        make_parts(sizes[i]);
        assert_true(world.index_count > 1);
        assert_same();
        world.has_no_indexes = true;
        assert_same();
        world.has_no_indexes = false;
    }
}

PARTS_TEST(part_store__of_one_part)
{
    fill(0, 100);
    make_parts(0);
    assert_int_equal(world.count, 1);
    assert_same();
}

/* Whole segments come in place of those that compaction has replaced. */
PARTS_TEST(part_store__of_a_compacted_store)
{
    fill_all();
    (void)kit_compact(world.store, 0);
    make_parts(64 * 1024 * 1024);
    assert_same();
    fill(40, 12 * 1024);
    make_parts(64 * 1024);
    assert_same();
}

/* Also where parts have something of what was replaced. */
PARTS_TEST(part_store__compacted_between_parts)
{
    for (unsigned round = 0; round < 40; round++) {
        fill(round, 12 * 1024);
        make_more_parts(64 * 1024 * 1024);
        if (round % 8 == 7) {
            fill(40 + round, 12 * 1024);
            (void)kit_compact(world.store, 0);
        }
    }
    make_more_parts(64 * 1024 * 1024);
    assert_same();
}

/* With its indexes opening reads few bytes, and so does a session. */
PARTS_TEST(part_store__with_indexes_little_is_read)
{
    struct wal_store *store;

    fill_all();
    for (unsigned round = 40; round < 44; round++) {
        fill(round, 12 * 1024);
    }
    make_parts(64 * 1024 * 1024);
    store = open_parts();
    assert_true(world.read < world.count * 64 * 1024);
    assert_same_session(world.store, store, "s3");
    assert_true(world.read < world.size / 2);
    assert_ok(wal_close(store, NULL));
    world.has_no_indexes = true;
    assert_ok(wal_close(open_parts(), NULL));
    assert_true(world.read > world.size / 2);
}

PARTS_TEST(part_store__is_only_read)
{
    const struct wal_entry entry = kit_entry("more", NULL, "{}");
    struct wal_session *session;
    struct wal_store *store;

    fill(0, 100);
    make_parts(0);
    store = open_parts();
    session = kit_session(store, "s0");
    assert_int_equal(wal_append(session, &entry, 1, NULL, NULL, NULL), WAL_EREADONLY);
    wal_session_close(session);
    assert_ok(wal_close(store, NULL));
}

/* --- what does not fit ---------------------------------------------------- */

PARTS_TEST(part_store__parts_that_do_not_follow)
{
    struct wal_slice part;

    fill_all();
    make_parts(256 * 1024);
    assert_true(world.count > 8);
    part = world.parts[4];
    world.parts[4] = world.parts[5];
    world.parts[5] = part;
    assert_refused(WAL_ECORRUPT, "does not follow");
    world.parts[5] = world.parts[4];
    world.parts[4] = part;
    assert_same();
    /* One that was there before changes nothing, as one that is applied twice. */
    world.parts[world.count] = copy_of(world.parts[3]);
    world.count++;
    assert_same();
    /* The beginning is missing. */
    part = world.parts[0];
    world.parts[0] = world.parts[1];
    assert_refused(WAL_ECORRUPT, "does not follow");
    world.parts[0] = part;
    *(uint8_t *)(uintptr_t)world.parts[2].data ^= 1;
    assert_refused(WAL_ECORRUPT, "damaged");
}

/* Indexes of the store as it was, or of another one, are ignored. */
PARTS_TEST(part_store__indexes_that_do_not_fit)
{
    struct wal_slice indexes[PARTS];
    struct wal_slice parts[PARTS];
    const uint64_t before = 64 * 1024 * 1024;
    uint64_t index_count;
    uint64_t count;

    fill_all();
    make_parts(before);
    count = world.count;
    index_count = world.index_count;
    memcpy(parts, world.parts, sizeof(parts));
    memcpy(indexes, world.indexes, sizeof(indexes));
    world.count = 0;
    world.index_count = 0;
    (void)kit_compact(world.store, 0);
    fill(40, 12 * 1024);
    make_parts(before);
    memcpy(world.indexes + world.index_count, indexes, (size_t)index_count * sizeof(indexes[0]));
    world.index_count += index_count;
    assert_same();
    world.index_count -= index_count;
    kit_close(world.store);
    assert_int_equal(system("rm -rf store"), 0);
    world.store = kit_store();
    fill(0, 12 * 1024);
    make_parts(before);
    memcpy(world.indexes + world.index_count, indexes, (size_t)index_count * sizeof(indexes[0]));
    world.index_count += index_count;
    assert_same();
    world.index_count -= index_count;
    for (uint64_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)parts[i].data);
    }
    for (uint64_t i = 0; i < index_count; i++) {
        free((void *)(uintptr_t)indexes[i].data);
    }
}

PARTS_TEST(part_store__damaged_indexes_are_found)
{
    const uint8_t none[8] = {0};
    struct wal_slice index;

    assert_ok(wal_part_check_index((struct wal_slice){NULL, 0}, NULL));
    assert_int_equal(wal_part_check_index((struct wal_slice){NULL, 1}, NULL), WAL_EINVAL);
    assert_int_equal(wal_part_check_index((struct wal_slice){none, 8}, NULL), WAL_ECORRUPT);
    fill_all();
    make_parts(64 * 1024 * 1024);
    for (uint64_t i = 0; i < world.index_count; i++) {
        index = world.indexes[i];
        index.size--;
        assert_fails(wal_part_check_index(index, kit_error()), WAL_ECORRUPT, "index");
        *((uint8_t *)(uintptr_t)index.data + index.size / 2) ^= 4;
        index.size++;
        assert_fails(wal_part_check_index(index, kit_error()), WAL_ECORRUPT, "index");
    }
    assert_same();
}

/* Each read fails once: opening fails, or what is read of the store does, or all is as without. */
PARTS_TEST(part_store__a_read_fails)
{
    bool struck = true;

    fill(0, 2000);
    fill(1, LARGE_MIN);
    make_parts(4096);
    for (uint64_t nth = 1; struck; nth++) {
        const struct wal_parts parts = parts_of_world();
        struct wal_store *store = NULL;
        struct wal_session *session = NULL;
        enum wal_status status;

        world.fail_at = nth;
        status = wal_open_parts(&parts, &store, kit_error());
        if (status == WAL_OK && wal_session_open(store, WAL_STR("s1"), &session, NULL) == WAL_OK) {
            struct wal_entry entry = WAL_INIT(wal_entry);

            status = wal_entry_get(session, WAL_STR("e1"), &entry, kit_error());
            wal_session_close(session);
        }
        struck = world.reads >= nth;
        assert_true(status == WAL_OK || struck);
        assert_true(status == WAL_OK || status == WAL_EIO || status == WAL_ECORRUPT);
        world.fail_at = 0;
        if (store != NULL) {
            assert_ok(wal_close(store, NULL));
        }
    }
}

PARTS_TEST(part_store__no_memory)
{
    enum wal_status status = WAL_ENOMEM;

    fill(0, 2000);
    fill(1, LARGE_MIN);
    make_parts(4096);
    for (uint64_t nth = 1; status == WAL_ENOMEM; nth++) {
        const struct wal_parts parts = parts_of_world();
        struct wal_store *store = NULL;
        struct faulty_heap faulty;

        faulty_heap_init(&faulty, &wal__heap_libc);
        faulty_heap_fail(&faulty, nth, false);
        status = wal__parts_open(&parts, &faulty.heap, &store, kit_error());
        if (store != NULL) {
            assert_ok(wal_close(store, NULL));
        }
        assert_int_equal(atomic_load(&faulty.live), 0);
    }
    assert_ok(status);
}

PARTS_TEST(part_store__misuse_is_refused)
{
    struct wal_parts parts = parts_of_world();
    struct wal_store *store = NULL;
    struct wal_slice index;

    assert_int_equal(wal_open_parts(NULL, &store, NULL), WAL_EINVAL);
    assert_int_equal(wal_open_parts(&parts, NULL, NULL), WAL_EINVAL);
    /* No parts, no store. */
    assert_int_equal(wal_open_parts(&parts, &store, NULL), WAL_ENOTSTORE);
    parts.read = NULL;
    assert_int_equal(wal_open_parts(&parts, &store, NULL), WAL_EINVAL);
    parts = parts_of_world();
    parts.heads = NULL;
    parts.head_count = 1;
    assert_int_equal(wal_open_parts(&parts, &store, NULL), WAL_EINVAL);
    assert_int_equal(wal_part_reader_get_index(NULL, &index, NULL), WAL_EINVAL);
}
