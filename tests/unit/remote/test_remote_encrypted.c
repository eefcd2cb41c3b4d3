/*
 * test_remote_encrypted.c - encrypted stores in a remote: it has no text of them, a replica needs
 * no key, and a session is brought with the key.
 */
#include "agentwal/admin.h"
#include "agentwal/remote.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/remote/memory_driver.h"

static const char secret[] = "a secret of many bytes";

static struct {
    struct memory_driver memory;
    struct wal_store *store;
    uint8_t uuid[16];
} world;

static struct wal_remote *const remote = &world.memory.remote;

static struct wal_store *open_store(const char *path, uint32_t flags)
{
    const struct wal_key key = kit_key(secret);

    return kit_open_by(path, flags, &key);
}

static void push(void)
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    struct wal_remote_writer *writer = NULL;

    options.writer[0] = 1;
    options.parallel = 1;
    options.flags = WAL_REMOTE_TAKE_OVER;
    assert_done(wal_sync(world.store, kit_error()));
    assert_done(wal_remote_writer_open(remote, world.store, &options, &writer, kit_error()));
    assert_done(wal_remote_push(writer, NULL, kit_error()));
    assert_done(wal_remote_put_sessions(remote, world.store, kit_error()));
    wal_remote_writer_close(writer);
}

/* A remote with the store "store", which has a session of two entries. */
static void begin(void)
{
    struct wal_session *session;

    memory_driver_init(&world.memory);
    world.store = open_store("store", WAL_OPEN_CREATE);
    memcpy(world.uuid, kit_store_info(world.store).uuid, 16);
    session = kit_create_titled(world.store, "canary-s", "canary title");
    kit_append_all(session, "canary-a canary-b");
    wal_session_close(session);
    push();
}

static void end(void)
{
    kit_close(world.store);
    memory_driver_deinit(&world.memory);
}

/* But in claims, which name a session and its last entry. */
static void assert_no_text(void)
{
    for (size_t i = 0; i < world.memory.count; i++) {
        const struct memory_object *object = &world.memory.objects[i];

        if (strstr(object->name, "/own/") == NULL &&
            memmem(object->data, object->size, "canary", 6) != NULL) {
            fail_msg("%s has a text", object->name);
        }
    }
}

static void pull(void)
{
    struct wal_remote_pull_options options = WAL_INIT(wal_remote_pull_options);

    assert_done(wal_remote_pull(remote, "replica", &options, NULL, kit_error()));
}

static void assert_replica_has(const char *ids)
{
    struct wal_store *replica = open_store("replica", WAL_OPEN_READ_ONLY);
    struct wal_session *session = kit_session(replica, "canary-s");

    assert_all_entries(session, ids);
    wal_session_close(session);
    kit_close(replica);
}

KIT_TEST(remote_encrypted__has_no_text)
{
    begin();
    assert_true(world.memory.count > 2);
    assert_no_text();
    end();
}

/* Also the second time, where its id is read without the key. */
KIT_TEST(remote_encrypted__is_pulled_without_the_key)
{
    struct wal_session *session;

    begin();
    pull();
    assert_replica_has("canary-a canary-b");
    session = kit_session(world.store, "canary-s");
    kit_append(session, "canary-c", "canary-b");
    wal_session_close(session);
    push();
    pull();
    assert_replica_has("canary-a canary-b canary-c");
    assert_false(kit_has_text("replica", "canary"));
    end();
}

static void make_base(void)
{
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);

    options.flags = WAL_REMOTE_COMPACT_NOW;
    assert_done(wal_remote_compact(remote, world.store, &options, NULL, kit_error()));
}

static enum wal_status resume(struct wal_store *to, const struct wal_key *key)
{
    struct wal_remote_resume_options options = WAL_INIT(wal_remote_resume_options);

    options.session = WAL_STR("canary-s");
    options.directory = WAL_STR("remotes");
    options.key = key;
    memcpy(options.uuid, world.uuid, sizeof(options.uuid));
    return wal_remote_resume(remote, to, &options, NULL, kit_error());
}

static void bring(bool has_base)
{
    const struct wal_key key = kit_key(secret);
    const struct wal_key other = kit_key("another secret of many bytes");
    struct wal_store *to;
    struct wal_session *session;

    begin();
    to = kit_open_by("to", WAL_OPEN_CREATE, &other);
    if (has_base) {
        make_base();
    }
    assert_fails(resume(to, NULL), WAL_EKEY, "");
    assert_int_equal(system("rm -rf remotes"), 0);
    assert_done(resume(to, &key));
    session = kit_session(to, "canary-s");
    assert_all_entries(session, "canary-a canary-b");
    wal_session_close(session);
    kit_close(to);
    assert_no_text();
    assert_false(kit_has_text("to", "canary"));
    assert_false(kit_has_text("remotes", "canary"));
    end();
}

KIT_TEST(remote_encrypted__session_is_brought_by_a_replica)
{
    if (kit_test_key() == NULL) {
        bring(false);
    }
}

KIT_TEST(remote_encrypted__session_is_read_where_it_is)
{
    if (kit_test_key() == NULL) {
        bring(true);
    }
}
