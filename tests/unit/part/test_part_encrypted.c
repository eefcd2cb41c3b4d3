/*
 * test_part_encrypted.c - parts of encrypted stores: they are read, verified and applied without a
 * key, have no text, and bring the keys along.
 */
#include "agentwal/replica.h"
#include "tests/lib/kit/store_kit.h"

static const char secret[] = "a secret of many bytes";

enum { PARTS_MAX = 8, PART_MAX = 64 * 1024 };

static struct {
    uint8_t bytes[PARTS_MAX][PART_MAX];
    struct wal_slice parts[PARTS_MAX];
    uint64_t count;
    struct wal_part_place position[WAL_PART_STREAMS];
} world;

static struct wal_store *open_store(void)
{
    const struct wal_key key = kit_key(secret);

    return kit_open_by("store", WAL_OPEN_CREATE, &key);
}

/* Adds a part with what is new in the store. */
static void read_part(struct wal_store *store)
{
    const struct wal_part_place *from = world.count == 0 ? NULL : world.position;
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_part_reader *reader = NULL;
    struct wal_slice part;

    assert_done(wal_part_reader_open(store, &reader, kit_error()));
    assert_done(wal_part_reader_next(reader, from, 0, &part, &info, kit_error()));
    assert_true(part.size <= PART_MAX && world.count < PARTS_MAX);
    memcpy(world.bytes[world.count], part.data, part.size);
    world.parts[world.count] = (struct wal_slice){world.bytes[world.count], part.size};
    world.count++;
    memcpy(world.position, info.after, sizeof(world.position));
    wal_part_reader_close(reader);
}

/* A part with the first two entries, and one with the third. */
static void make(void)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create_titled(store, "s", "canary title");

    world.count = 0;
    kit_append_all(session, "canary-a canary-b");
    assert_done(wal_sync(store, kit_error()));
    read_part(store);
    kit_append(session, "canary-c", "canary-b");
    assert_done(wal_sync(store, kit_error()));
    read_part(store);
    wal_session_close(session);
    kit_close(store);
}

static void apply(uint64_t rank)
{
    struct wal_replica *replica = NULL;

    assert_done(wal_replica_open("replica", &replica, kit_error()));
    assert_done(wal_replica_apply(replica, world.parts[rank], kit_error()));
    wal_replica_close(replica);
}

static void assert_replica_has(const char *ids)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *store = kit_open_by("replica", WAL_OPEN_READ_ONLY, &key);
    struct wal_session *session = kit_session(store, "s");

    assert_all_entries(session, ids);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(part_encrypted__replica_is_made_without_a_key)
{
    struct wal_store *store = NULL;

    make();
    for (uint64_t i = 0; i < world.count; i++) {
        assert_null(memmem(world.parts[i].data, world.parts[i].size, "canary", 6));
        assert_done(wal_part_verify(world.parts[i], NULL, kit_error()));
    }
    apply(0);
    assert_replica_has("canary-a canary-b");
    apply(1);
    assert_replica_has("canary-a canary-b canary-c");
    assert_false(kit_has_text("replica", "canary"));
    if (kit_test_key() == NULL) {
        const struct wal_open_options options = {.struct_size = sizeof(options),
                                                 .flags = WAL_OPEN_READ_ONLY};

        assert_fails(wal_open("replica", &options, &store, kit_error()), WAL_EKEY,
                     "a key opens it");
    }
}

/* Of two with one generation, the one that comes. */
KIT_TEST(part_encrypted__keys_come_with_each_part)
{
    make();
    apply(0);
    assert_int_equal(system("cmp -s store/KEYS replica/KEYS && : >replica/KEYS"), 0);
    apply(1);
    assert_int_equal(system("cmp -s store/KEYS replica/KEYS"), 0);
}

KIT_TEST(part_encrypted__promoted_replica_goes_on)
{
    const struct wal_key key = kit_key(secret);
    struct wal_replica *replica = NULL;
    struct wal_store *store;
    struct wal_session *session;

    make();
    apply(0);
    assert_done(wal_replica_open("replica", &replica, kit_error()));
    assert_done(wal_replica_promote(replica, kit_error()));
    store = kit_open_by("replica", 0, &key);
    session = kit_session(store, "s");
    kit_append(session, "canary-d", "canary-b");
    assert_all_entries(session, "canary-a canary-b canary-d");
    assert_false(kit_has_text("replica", "canary"));
}

static enum wal_status read_bytes(void *ctx, uint64_t part, uint64_t offset, uint64_t size,
                                  void *data)
{
    (void)ctx;
    memcpy(data, world.bytes[part] + offset, size);
    return WAL_OK;
}

KIT_TEST(part_encrypted__is_read_where_it_is)
{
    const struct wal_key key = kit_key(secret);
    struct wal_parts parts = {.struct_size = sizeof(parts), .heads = world.parts, .key = &key};
    struct wal_store *store = NULL;

    make();
    parts.head_count = world.count;
    parts.read = read_bytes;
    assert_done(wal_open_parts(&parts, &store, kit_error()));
    assert_all_entries(kit_session(kit_keep(store), "s"), "canary-a canary-b canary-c");
    if (kit_test_key() == NULL) {
        parts.key = NULL;
        assert_fails(wal_open_parts(&parts, &store, kit_error()), WAL_EKEY, "a key opens it");
    }
}
