/*
 * test_transfer_encrypted.c - merges between encrypted stores and others, and encrypted bundles.
 */
#include "agentwal/transfer.h"
#include "tests/lib/kit/store_kit.h"

static const char secret[] = "a secret of many bytes";

static struct wal_key passphrase(const char *text)
{
    return (struct wal_key){
        .struct_size = sizeof(struct wal_key), .kind = WAL_KEY_PASSPHRASE, .bytes = kit_text(text)};
}

static struct wal_store *make(const char *path, bool is_encrypted)
{
    const struct wal_key key = kit_key(secret);

    return kit_open_by(path, WAL_OPEN_CREATE, is_encrypted ? &key : NULL);
}

/* With a session of this id. */
static struct wal_store *make_filled(const char *path, bool is_encrypted)
{
    struct wal_store *store = make(path, is_encrypted);

    wal_session_close(kit_create_filled(store, "canary-s", "canary-a canary-b"));
    return store;
}

static void merge(struct wal_store *from, struct wal_store *to)
{
    struct wal_session *session;

    assert_done(wal_store_merge(from, to, NULL, NULL, kit_error()));
    session = kit_session(to, "canary-s");
    assert_all_entries(session, "canary-a canary-b");
    wal_session_close(session);
}

KIT_TEST(transfer_encrypted__from_a_plain_store)
{
    struct wal_store *to = make("to", true);

    merge(make_filled("from", false), to);
    kit_close(to);
    assert_false(kit_has_text("to", "canary"));
}

KIT_TEST(transfer_encrypted__to_a_plain_store)
{
    merge(make_filled("from", true), make("to", false));
    assert_false(kit_has_text("from", "canary"));
}

KIT_TEST(transfer_encrypted__between_stores_of_other_keys)
{
    const struct wal_key key = kit_key("another secret of many bytes");
    struct wal_store *to = kit_open_by("to", WAL_OPEN_CREATE, &key);

    merge(make_filled("from", true), to);
    kit_close(to);
    assert_false(kit_has_text("to", "canary"));
}

/* --- bundles -------------------------------------------------------------- */

static enum wal_status write_bundle(struct wal_store *store, const struct wal_key *key,
                                    uint32_t flags)
{
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .flags = flags, .key = key};

    return wal_bundle_write(store, kit_text("bundle"), &options, NULL, kit_error());
}

static enum wal_status read_bundle(struct wal_store *store, const struct wal_key *key)
{
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .directory = WAL_STR("."), .key = key};

    return wal_bundle_read(store, kit_text("bundle"), &options, NULL, kit_error());
}

KIT_TEST(transfer_encrypted__bundle_is_opened_by_its_passphrase)
{
    const struct wal_key given = passphrase("correct horse");
    const struct wal_key wrong = passphrase("correct house");
    const struct wal_key key = kit_key(secret);
    struct wal_store *to = make("to", false);

    assert_done(write_bundle(make_filled("from", true), &given, 0));
    assert_int_equal(kit_find("bundle", "canary", 6), -1);
    assert_fails(read_bundle(to, NULL), WAL_EKEY, "the bundle is encrypted");
    assert_fails(read_bundle(to, &wrong), WAL_EKEY, "none of those");
    assert_fails(read_bundle(to, &key), WAL_EKEY, "none of those");
    assert_string_equal(kit_list_sessions(to, NULL), "");
    assert_done(read_bundle(to, &given));
    assert_all_entries(kit_session(to, "canary-s"), "canary-a canary-b");
}

KIT_TEST(transfer_encrypted__bundle_without_a_key_is_asked_for)
{
    struct wal_store *from = make_filled("from", true);

    assert_fails(write_bundle(from, NULL, 0), WAL_EKEY, "needs a key too");
    assert_false(kit_exists("bundle"));
    assert_done(write_bundle(from, NULL, WAL_TRANSFER_PLAIN));
    if (kit_test_key() == NULL) {
        assert_done(read_bundle(make("to", true), NULL));
    }
}

KIT_TEST(transfer_encrypted__bundle_of_a_plain_store_may_be_encrypted)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *from = make_filled("from", false);

    assert_done(write_bundle(from, &key, 0));
    assert_int_equal(kit_find("bundle", "canary", 6), -1);
    assert_done(read_bundle(make("to", false), &key));
}

KIT_TEST(transfer_encrypted__plain_bundle_takes_no_key)
{
    const struct wal_key key = kit_key(secret);

    if (kit_test_key() != NULL) {
        return;
    }
    assert_done(write_bundle(make_filled("from", false), NULL, 0));
    assert_fails(read_bundle(make("to", true), &key), WAL_EKEY, "is not encrypted");
}

KIT_TEST(transfer_encrypted__bundle_whose_keys_are_damaged_is_refused)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *to = make("to", false);

    assert_done(write_bundle(make_filled("from", true), &key, 0));
    kit_flip("bundle", kit_find("bundle", "AGWALKEY", 8) + 30);
    assert_fails(read_bundle(to, &key), WAL_ECORRUPT, "the checksum of KEYS");
}
