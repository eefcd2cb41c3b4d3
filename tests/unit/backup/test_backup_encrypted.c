/*
 * test_backup_encrypted.c - backups of encrypted stores: the copy has the keys, and opens with them
 * alone.
 */
#include "tests/lib/kit/backup_kit.h"

static const char secret[] = "a secret of many bytes";

/* Backs the store "store" up to "copy", from a handle that only reads. */
static void back_up(void)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *store = kit_open_by("store", WAL_OPEN_READ_ONLY, &key);

    assert_done(wal_store_backup(store, "copy", NULL, NULL, kit_error()));
    kit_close(store);
}

static void append(const char *ids)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *store = kit_open_by("store", WAL_OPEN_CREATE, &key);
    struct wal_session *session;

    session = *kit_list_sessions(store, NULL) == '\0'
                  ? kit_create_titled(store, "s", "canary title")
                  : kit_session(store, "s");
    kit_append_all(session, ids);
    wal_session_close(session);
    kit_close(store);
}

static void assert_copy_has(const char *ids)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *copy = kit_open_by("copy", 0, &key);

    assert_all_entries(kit_session(copy, "s"), ids);
}

KIT_TEST(backup_encrypted__has_the_keys_and_no_text)
{
    const struct wal_key other = kit_key("another secret of many bytes");
    struct wal_store *store = NULL;

    append("canary-a canary-b");
    back_up();
    assert_fails(wal_open("copy", NULL, &store, kit_error()), WAL_EKEY, "a key opens it");
    {
        const struct wal_open_options options = {.struct_size = sizeof(options), .key = &other};

        assert_fails(wal_open("copy", &options, &store, kit_error()), WAL_EKEY, "none of those");
    }
    assert_copy_has("canary-a canary-b");
    assert_false(kit_has_text("copy", "canary"));
}

KIT_TEST(backup_encrypted__goes_on)
{
    append("a b");
    back_up();
    append("c");
    back_up();
    assert_copy_has("a b c");
}

/* Also where nothing else is new. */
KIT_TEST(backup_encrypted__brings_the_keys_up_to_date)
{
    append("a");
    back_up();
    kit_flip("copy/KEYS", 100);
    back_up();
    assert_int_equal(system("cmp -s store/KEYS copy/KEYS"), 0);
    assert_copy_has("a");
}
