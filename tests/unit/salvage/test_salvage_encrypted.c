/*
 * test_salvage_encrypted.c - walcheck, walcat and salvages of encrypted stores: with the key they
 * see all of a store, and without it what needs none. What is not authentic is damage, and its
 * plaintext nowhere.
 */
#include <sys/stat.h>

#include "agentwal/admin.h"
#include "engine/session/session.h"
#include "format/segment/frame.h"
#include "tests/lib/kit/store_kit.h"

#define LOG "store/log/0000000000000001.seg"

static const char secret[] = "a secret of many bytes";

/* The store "store" with the session s of these entries, and the file "key". */
static void make(const char *ids)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *store = kit_open_by("store", WAL_OPEN_CREATE, &key);

    struct wal_session *session = kit_create_titled(store, "s", "canary title");

    kit_append_all(session, ids);
    wal_session_close(session);
    kit_close(store);
    kit_write_file("key", secret, sizeof(secret) - 1);
    assert_int_equal(chmod("key", 0600), 0);
}

/* The exit code of a tool, whose output is in "output"; -1: the tools are not built. */
static int run(const char *tool, const char *arguments, bool has_key)
{
    const char *folder = getenv("WALBIN");
    char command[600];
    int status;

    (void)snprintf(command, sizeof(command), "%s/%s", folder == NULL ? "" : folder, tool);
    if (access(command, X_OK) != 0) {
        return -1;
    }
    (void)snprintf(command, sizeof(command),
                   "unset AGENTWAL_KEY_FILE; %s %s/%s %s >output 2>&1 </dev/null",
                   has_key ? "AGENTWAL_KEY_FILE=key" : "", folder, tool, arguments);
    status = system(command);
    return WEXITSTATUS(status);
}

static void expect(const char *tool, const char *arguments, bool has_key, int code,
                   const char *text)
{
    const int ended = run(tool, arguments, has_key);

    if (ended >= 0) {
        assert_int_equal(ended, code);
        if (!kit_has_text("output", text)) {
            fail_msg("%s: no \"%s\" in %s", tool, text, test_file("output", &(size_t){0}));
        }
    }
}

static enum wal_status salvage(const struct wal_key *key, struct wal_salvage_result *result)
{
    const struct wal_salvage_options options = {.struct_size = sizeof(options), .key = key};

    *result = (struct wal_salvage_result){.struct_size = sizeof(*result)};
    return wal_salvage("store", "out", &options, result, kit_error());
}

/* --- a sound store -------------------------------------------------------- */

KIT_TEST(encrypted__sound_store_is_checked)
{
    make("a b c");
    expect("walcheck", "store", true, 0, "sound: 1 session, 4 records");
    expect("walcheck", "store", false, 0, "contents were not looked into");
    expect("walcheck", "--json store", false, 0, "\"sound\":true,\"contentsChecked\":false");
}

/* Which is encrypted by pages. */
KIT_TEST(encrypted__catalogue_is_checked)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *store = kit_open_by("store", WAL_OPEN_CREATE, &key);

    for (int i = 0; i < 300; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        wal_session_close(kit_create(store, id));
    }
    kit_write_file("key", secret, sizeof(secret) - 1);
    assert_int_equal(chmod("key", 0600), 0);
    assert_ok(wal__core_write_lock(&store->core, NULL));
    store->core.fold.slots_min = 1;
    wal__core_unlock(&store->core);
    kit_close(store);
    store = kit_open_by("store", 0, &key);
    (void)kit_compact(store, 0);
    for (int i = 0; i < 5000 && !kit_exists("store/index/catalogue"); i++) {
        kit_pause_ms(1);
    }
    kit_close(store);
    assert_true(kit_exists("store/index/catalogue"));
    expect("walcheck", "store", true, 0, "sound: 300 sessions");
    assert_false(kit_exists("output") && kit_has_text("output", "note: "));
    kit_flip("store/index/catalogue", 9000);
    expect("walcheck", "store", true, 0, "note: index/catalogue");
}

KIT_TEST(encrypted__compacted_store_is_checked)
{
    const struct wal_key key = kit_key(secret);
    struct wal_store *store;

    make("a b c");
    store = kit_open_by("store", 0, &key);
    (void)kit_compact(store, 0);
    kit_close(store);
    expect("walcheck", "store", true, 0, "sound: 1 session, 4 records");
    expect("walcheck", "store", false, 0, "contents were not looked into");
}

KIT_TEST(encrypted__frames_are_listed_without_contents)
{
    make("canary-a");
    expect("walcat", "--frames store", false, 0, "encrypted");
    if (run("walcat", "--frames store", false) >= 0) {
        assert_false(kit_has_text("output", "canary"));
        assert_int_equal(run("walcat", "--frames store", true), 0);
        assert_true(kit_has_text("output", "canary-a"));
    }
}

KIT_TEST(encrypted__sound_store_is_salvaged)
{
    const struct wal_key key = kit_key(secret);
    struct wal_salvage_result result;
    struct wal_store *out = NULL;

    make("canary-a canary-b");
    assert_done(salvage(&key, &result));
    assert_int_equal(result.losses, 0);
    assert_false(kit_has_text("out", "canary"));
    assert_int_equal(system("cmp -s store/KEYS out/KEYS"), 256);
    assert_fails(wal_open("out", NULL, &out, kit_error()), WAL_EKEY, "");
    assert_all_entries(kit_session(kit_open_by("out", 0, &key), "s"), "canary-a canary-b");
}

KIT_TEST(encrypted__salvage_without_the_key_is_refused)
{
    const struct wal_key other = kit_key("another secret of many bytes");
    struct wal_salvage_result result;

    make("a");
    assert_fails(salvage(NULL, &result), WAL_EKEY, "its key is needed");
    assert_fails(salvage(&other, &result), WAL_EKEY, "none of those");
    assert_false(kit_exists("out"));
    assert_int_equal(system("rm store/MANIFEST store/KEYS"), 0);
    assert_fails(salvage(NULL, &result), WAL_EKEY, "its key is needed");
}

KIT_TEST(encrypted__salvage_of_a_plain_store_takes_no_key)
{
    const struct wal_key key = kit_key(secret);
    struct wal_salvage_result result;

    if (kit_test_key() != NULL) {
        return;
    }
    kit_close(kit_store());
    assert_fails(salvage(&key, &result), WAL_EKEY, "is not encrypted");
}

/* --- damage --------------------------------------------------------------- */

/* A frame whose checksums fit, and whose tag does not. */
KIT_TEST(encrypted__forged_frame_is_damage)
{
    const struct wal_key key = kit_key(secret);
    struct wal_salvage_result result;

    make("canary-a canary-b");
    kit_forge(LOG, WAL__FRAME_ENTRY);
    assert_int_equal(system("rm -r store/index/*"), 0);
    expect("walcheck", "store", true, 1, "was not encrypted by a key of this store");
    assert_false(kit_has_text("output", "canary-"));
    expect("walcheck", "store", false, 0, "contents were not looked into");
    assert_done(salvage(&key, &result));
    assert_int_equal(result.losses, 1);
    assert_all_entries(kit_session(kit_open_by("out", 0, &key), "s"), "canary-a");
}

KIT_TEST(encrypted__salvage_without_manifest)
{
    const struct wal_key key = kit_key(secret);
    struct wal_salvage_result result;

    make("a b");
    assert_int_equal(system("rm store/MANIFEST"), 0);
    assert_done(salvage(&key, &result));
    assert_all_entries(kit_session(kit_open_by("out", 0, &key), "s"), "a b");
}

/* The key of a segment is made of the salt in its header. */
KIT_TEST(encrypted__lost_headers_cost_the_segment)
{
    const struct wal_key key = kit_key(secret);
    struct wal_salvage_result result;

    make("a b");
    assert_int_equal(system("dd if=/dev/zero of=" LOG " bs=4096 count=1 conv=notrunc 2>/dev/null"),
                     0);
    expect("walcheck", "store", true, 1, "its key is lost with both copies of the header");
    expect("walcheck", "store", false, 1, "both copies of the header are damaged");
    assert_done(salvage(&key, &result));
    assert_int_equal(result.entries, 0);
    assert_true(result.losses > 0);
}

KIT_TEST(encrypted__lost_keys_are_damage)
{
    make("a");
    assert_int_equal(system("mv store/KEYS keys"), 0);
    expect("walcheck", "store", false, 1, "nothing that is encrypted can be read");
    assert_int_equal(system("mv keys store/KEYS"), 0);
    kit_flip("store/KEYS", 90);
    expect("walcheck", "store", true, 1, "one copy of the keys is damaged");
    kit_flip("store/KEYS", 12288 + 90);
    expect("walcheck", "store", true, 1, "nothing that is encrypted can be read");
}

KIT_TEST(encrypted__wrong_key_is_refused)
{
    make("a");
    kit_write_file("key", "another secret of many bytes", 28);
    expect("walcheck", "store", true, 1, "none of those that open the store");
}

/* Flipped bits are found without the key, too. */
KIT_TEST(encrypted__checksums_need_no_key)
{
    make("a b");
    kit_flip(LOG, 4096 + 600);
    expect("walcheck", "store", false, 1, "damaged:");
}
