/*
 * test_store_keys.c - the keys of encrypted stores (agentwal/keys.h): adding, removing and listing
 * them, a new data key, and the encryption of a store that has content; with KEYS damaged, cut
 * short and of another store; and where a process dies, a call fails or the power goes at any call
 * of them.
 */
#include "agentwal/keys.h"

#include <errno.h>
#include <setjmp.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/keys_file.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/sim/disk/sim.h"

#define FIRST  "the first secret of the store"
#define SECOND "the second secret of the store"

enum { LARGE = 300 * 1024 };

static struct wal_key secret(const char *text)
{
    return (struct wal_key){
        .struct_size = sizeof(struct wal_key), .kind = WAL_KEY_SECRET, .bytes = kit_text(text)};
}

static enum wal_status try_open(const char *path, const struct wal_key *key, uint32_t flags,
                                struct wal_store **store)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .key = key};

    return wal_open(path, &options, store, kit_error());
}

static struct wal_store *open_with(const char *path, const char *text)
{
    const struct wal_key key = secret(text);
    struct wal_store *store = NULL;

    assert_done(try_open(path, &key, WAL_OPEN_CREATE, &store));
    return kit_keep(store);
}

static void assert_refused(const char *path, const struct wal_key *key, enum wal_status status,
                           const char *text)
{
    struct wal_store *store = NULL;

    assert_fails(try_open(path, key, 0, &store), status, text);
    assert_null(store);
}

static int32_t list_key(void *ctx, const struct wal_store_key *key)
{
    char *at = (char *)ctx + strlen(ctx);

    assert_true(key->created_ms > 0);
    (void)snprintf(at, 64, "%u:%u:%.*s ", key->id, key->kind, (int)key->label.size,
                   (const char *)key->label.data);
    return 0;
}

/* ID:KIND:LABEL of each key, until the next call. */
static const char *list(const char *path)
{
    static char text[1024];

    text[0] = '\0';
    assert_done(wal_store_list_keys(path, list_key, text, kit_error()));
    return text;
}

KIT_TEST(keys__add_list_remove)
{
    const struct wal_key first = secret(FIRST);
    const struct wal_key second = {.struct_size = sizeof(second),
                                   .kind = WAL_KEY_PASSPHRASE,
                                   .bytes = kit_text("x"),
                                   .label = kit_text("mine")};
    struct wal_store *store = open_with("store", FIRST);
    uint32_t id = 0;

    assert_string_equal(list("store"), "1:1: ");
    assert_done(wal_store_add_key(store, &second, &id, kit_error()));
    assert_int_equal(id, 2);
    assert_string_equal(list("store"), "1:1: 2:2:mine ");
    assert_fails(wal_store_remove_key(store, 3, kit_error()), WAL_ENOTFOUND, "no key 3");
    assert_done(wal_store_remove_key(store, 1, kit_error()));
    assert_string_equal(list("store"), "2:2:mine ");
    assert_fails(wal_store_remove_key(store, 2, kit_error()), WAL_EINVAL, "last key");
    kit_session_close(kit_create_filled(store, "s", "a b")); /* the handle stays open */
    kit_close(store);
    assert_refused("store", &first, WAL_EKEY, "this key is none of those");
    assert_refused("store", NULL, WAL_EKEY, "a key opens it");
    assert_done(try_open("store", &second, 0, &store));
    kit_keep(store);
    assert_all_entries(kit_session(store, "s"), "a b");
}

KIT_TEST(keys__refused)
{
    const struct wal_key short_key = secret("fifteen bytes..");
    const struct wal_key key = secret(SECOND);
    struct wal_key other = key;
    struct wal_store *store = kit_open("plain", WAL_OPEN_CREATE);

    assert_fails(wal_store_list_keys("plain", list_key, NULL, kit_error()), WAL_ENOTFOUND,
                 "not encrypted");
    assert_fails(wal_store_list_keys("none", list_key, NULL, kit_error()), WAL_ENOTSTORE, "");
    assert_fails(wal_store_add_key(store, &key, NULL, kit_error()), WAL_EINVAL, "not encrypted");
    assert_fails(wal_store_remove_key(store, 1, kit_error()), WAL_EINVAL, "not encrypted");
    assert_fails(wal_store_rotate_key(store, kit_error()), WAL_EINVAL, "not encrypted");
    kit_close(store);
    assert_refused("plain", &key, WAL_EKEY, "not encrypted");
    store = open_with("store", FIRST);
    assert_fails(wal_store_add_key(store, NULL, NULL, kit_error()), WAL_EINVAL, "null");
    assert_fails(wal_store_add_key(store, &short_key, NULL, kit_error()), WAL_EKEY, "15 bytes");
    other.kind = 3;
    assert_fails(wal_store_add_key(store, &other, NULL, kit_error()), WAL_EINVAL, "kind");
    other = key;
    other.label = kit_text("of thirty-three bytes: one too much");
    assert_fails(wal_store_add_key(store, &other, NULL, kit_error()), WAL_EINVAL, "label");
    for (int i = 1; i < 32; i++) {
        assert_done(wal_store_add_key(store, &key, NULL, kit_error()));
    }
    assert_fails(wal_store_add_key(store, &key, NULL, kit_error()), WAL_ELIMIT, "32 keys");
    for (int i = 1; i < 64; i++) {
        assert_done(wal_store_rotate_key(store, kit_error()));
    }
    assert_fails(wal_store_rotate_key(store, kit_error()), WAL_ELIMIT, "agentwal gc");
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_done(wal_store_rotate_key(store, kit_error()));
}

/* --- KEYS as it is found ------------------------------------------------------ */

static struct wal__env env_of(const char *path)
{
    struct wal__env env = {.heap = &wal__heap_libc, .io = &wal__io_posix};

    (void)snprintf(env.root, sizeof(env.root), "%s", path);
    return env;
}

static struct wal__keys_file read_keys(const char *path)
{
    const struct wal__env env = env_of(path);
    struct wal__keys_file file;

    assert_done(wal__keys_read(&env, &file, kit_error()));
    return file;
}

static enum wal_status open_keys(const uint8_t uuid[16], const char *text)
{
    const struct wal__env env = env_of("store");
    const struct wal_key key = secret(text);
    struct wal__keyring *keyring = NULL;
    enum wal_status status = wal__keys_open(&env, uuid, &key, &keyring, kit_error());

    assert_true(status == WAL_OK || keyring == NULL);
    wal__keyring_destroy(keyring);
    return status;
}

/* A store with two keys; its KEYS, of which `used` bytes of each copy count. */
struct image {
    uint8_t uuid[16];
    uint8_t bytes[WAL__KEYS_SIZE];
    size_t used;
};

static struct image make_image(void)
{
    const struct wal_key second = secret(SECOND);
    struct wal_store *store = open_with("store", FIRST);
    struct wal__keys_file keys;
    struct image image;
    FILE *file;

    assert_done(wal_store_add_key(store, &second, NULL, kit_error()));
    kit_close(store);
    keys = read_keys("store");
    memcpy(image.uuid, keys.uuid, sizeof(image.uuid));
    image.used =
        WAL__KEYS_HEADER_SIZE + 2 * WAL__KEY_SLOT_SIZE + WAL__DATA_KEY_SIZE + WAL__KEYS_MAC_SIZE;
    file = fopen("store/KEYS", "rb");
    assert_non_null(file);
    assert_int_equal(fread(image.bytes, 1, sizeof(image.bytes), file), sizeof(image.bytes));
    assert_int_equal(fgetc(file), EOF);
    (void)fclose(file);
    return image;
}

static bool is_refusal(enum wal_status status)
{
    return status == WAL_EKEY || status == WAL_ECORRUPT || status == WAL_EVERSION;
}

KIT_TEST(keys__every_byte_flipped)
{
    const struct image image = make_image();
    uint8_t bytes[WAL__KEYS_SIZE];

    for (size_t at = 0; at < image.used; at++) {
        for (unsigned bit = 0; bit < 8; bit += 7) {
            memcpy(bytes, image.bytes, sizeof(bytes));
            bytes[at] ^= (uint8_t)(1U << bit);
            kit_write_file("store/KEYS", bytes, sizeof(bytes));
            assert_true(is_refusal(open_keys(image.uuid, FIRST)) ||
                        open_keys(image.uuid, FIRST) == WAL_OK);
            bytes[WAL__KEYS_COPY_SIZE + at] ^= (uint8_t)(1U << bit);
            kit_write_file("store/KEYS", bytes, sizeof(bytes));
            assert_true(is_refusal(open_keys(image.uuid, FIRST)));
            assert_true(kit_last_error()->text[0] != '\0');
        }
    }
    kit_write_file("store/KEYS", image.bytes, sizeof(image.bytes));
    assert_ok(open_keys(image.uuid, FIRST));
    assert_ok(open_keys(image.uuid, SECOND));
}

KIT_TEST(keys__every_size)
{
    const struct image image = make_image();

    for (size_t size = 0; size < image.used + 2; size++) {
        kit_write_file("store/KEYS", image.bytes, size);
        if (size < image.used) {
            assert_true(is_refusal(open_keys(image.uuid, SECOND)));
        } else {
            assert_ok(open_keys(image.uuid, SECOND));
        }
    }
    assert_int_equal(unlink("store/KEYS"), 0);
    assert_int_equal(open_keys(image.uuid, FIRST), WAL_EKEY);
    assert_non_null(strstr(kit_last_error()->text, "is gone"));
}

/* A library that does not know a feature says which the store has, and which it knows. */
KIT_TEST(keys__of_an_older_library)
{
    const struct wal_key first = secret(FIRST);
    const struct wal__env env = env_of("store");
    uint8_t bytes[WAL__MANIFEST_SIZE] = {0};
    struct wal__manifest manifest;
    char text[64];
    bool ignored;

    kit_close(open_with("store", FIRST));
    assert_done(wal__manifest_read(&env, &manifest, &ignored, kit_error()));
    manifest.features.incompat |= 1U << 30;
    wal__manifest_encode(&manifest, bytes);
    wal__manifest_encode(&manifest, bytes + WAL__MANIFEST_SLOT_SIZE);
    kit_write_file("store/MANIFEST", bytes, sizeof(bytes));
    (void)snprintf(text, sizeof(text), "features %#x; ", manifest.features.incompat);
    assert_refused("store", &first, WAL_EVERSION, text);
    (void)snprintf(text, sizeof(text), "features %#x", WAL__KNOWN_INCOMPAT | WAL__INCOMPAT_SHADOW);
    assert_refused("store", &first, WAL_EVERSION, text);
}

KIT_TEST(keys__of_another_store)
{
    const struct wal_key first = secret(FIRST);
    const struct image image = make_image();

    kit_close(open_with("other", FIRST));
    kit_write_file("other/KEYS", image.bytes, sizeof(image.bytes));
    assert_refused("other", &first, WAL_EKEY, "of another store");
    assert_fails(wal_store_list_keys("other", list_key, NULL, kit_error()), WAL_EKEY,
                 "of another store");
}

/* What somebody wrote who has no key is not taken over by a change. */
KIT_TEST(keys__forged_label_is_not_signed)
{
    struct wal_store *store = open_with("store", FIRST);
    struct wal__keys_file keys = read_keys("store");
    const struct wal_key second = secret(SECOND);
    uint8_t bytes[WAL__KEYS_SIZE] = {0};

    (void)snprintf(keys.slots[0].label, sizeof(keys.slots[0].label), "forged");
    (void)wal__keys_encode(&keys, bytes);
    memcpy(bytes + WAL__KEYS_COPY_SIZE, bytes, WAL__KEYS_COPY_SIZE);
    kit_write_file("store/KEYS", bytes, sizeof(bytes));
    assert_fails(wal_store_add_key(store, &second, NULL, kit_error()), WAL_ECORRUPT,
                 "something else");
    assert_fails(wal_store_rotate_key(store, kit_error()), WAL_ECORRUPT, "something else");
    (void)!kit_close_now(store, NULL);
}

KIT_TEST(keys__generation_rises)
{
    const struct wal_key second = secret(SECOND);
    struct wal_store *store = open_with("store", FIRST);

    assert_int_equal(read_keys("store").generation, 1);
    assert_done(wal_store_add_key(store, &second, NULL, kit_error()));
    assert_int_equal(read_keys("store").generation, 2);
    assert_done(wal_store_rotate_key(store, kit_error()));
    assert_int_equal(read_keys("store").generation, 3);
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_int_equal(read_keys("store").generation, 4);
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_int_equal(read_keys("store").generation, 4);
}

/* --- a new data key ------------------------------------------------------------- */

/* The data keys, as "1 2 ", until the next call. */
static const char *data_keys(const char *path)
{
    const struct wal__keys_file file = read_keys(path);
    static char text[256];
    size_t size = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < file.key_count; i++) {
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%u ", file.keys[i].id);
    }
    return text;
}

KIT_TEST(keys__rotated_then_compacted)
{
    struct wal_store *store = open_with("store", FIRST);
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct kit_content content = kit_content(1, LARGE, false);
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_store_compact_result result;

    kit_put_blob(store, &content, digest);
    kit_compact(store, 0); /* all are rewritten */
    assert_done(wal_store_rotate_key(store, kit_error()));
    assert_string_equal(data_keys("store"), "1 2 ");
    kit_append_all(session, "c");
    result = kit_compact(store, 0);
    assert_true(result.rewritten >= 3);
    assert_string_equal(data_keys("store"), "1 2 ");
    kit_write_file("store/remote.json", "{}", 2); /* parts there need the old one */
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_string_equal(data_keys("store"), "1 2 ");
    assert_int_equal(unlink("store/remote.json"), 0);
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_string_equal(data_keys("store"), "2 ");
    kit_session_close(session);
    kit_close(store);
    store = open_with("store", FIRST);
    assert_all_entries(kit_session(store, "s"), "a b c");
    kit_check_blob(store, digest, &content);
}

/* A data key stays as long as a segment needs it. */
KIT_TEST(keys__rotated_then_compacted_in_part)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .flags = WAL_STORE_COMPACT_ERASE,
                                                      .rate = UINT64_MAX,
                                                      .max_bytes = 1};
    struct wal_store *store = open_with("store", FIRST);

    kit_session_close(kit_create_filled(store, "s", "a b"));
    assert_done(wal_store_rotate_key(store, kit_error()));
    assert_done(wal_store_compact(store, &options, NULL, kit_error()));
    assert_string_equal(data_keys("store"), "1 2 ");
    kit_close(store);
    store = open_with("store", FIRST);
    assert_all_entries(kit_session(store, "s"), "a b");
}

/* Another process makes a key, and removes the old one, while this one has the store open. */
static void rotate_elsewhere(bool compacts)
{
    pid_t child = kit_start_process();

    if (child == 0) {
        const struct wal_store_compact_options erase = {
            .struct_size = sizeof(erase), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};
        const struct wal_key key = secret(FIRST);
        struct wal_store *store = NULL;
        bool is_done = try_open("store", &key, 0, &store) == WAL_OK &&
                       wal_store_rotate_key(store, NULL) == WAL_OK &&
                       (!compacts || wal_store_compact(store, &erase, NULL, NULL) == WAL_OK);

        _exit(is_done ? 0 : 1);
    }
    kit_expect_exit(child, 0);
}

KIT_TEST(keys__rotated_by_another_process)
{
    struct wal_store *store = open_with("store", FIRST);
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct kit_content content = kit_content(1, LARGE, false);
    uint8_t digest[WAL_DIGEST_SIZE];

    rotate_elsewhere(true);
    assert_string_equal(data_keys("store"), "2 ");
    /* The pack begins with it. */
    kit_put_blob(store, &content, digest);
    assert_all_entries(session, "a b");
    kit_append_all(session, "c");
    rotate_elsewhere(false);
    assert_all_entries(session, "a b c");
    kit_append_all(session, "d");
    kit_session_close(session);
    kit_close(store);
    assert_string_equal(data_keys("store"), "2 3 ");
    store = open_with("store", FIRST);
    assert_all_entries(kit_session(store, "s"), "a b c d");
    kit_check_blob(store, digest, &content);
}

/* --- a store that has content --------------------------------------------------- */

static enum wal_status encrypt_store(const char *path, const char *text)
{
    const struct wal_key key = secret(text);
    const struct wal_open_options options = {.struct_size = sizeof(options), .key = &key};

    return wal_store_encrypt(path, &options, kit_error());
}

static bool has_text(const char *text)
{
    static const char *const names[] = {"log/0000000000000001.seg", "log/0000000000000002.seg",
                                        "log/0000000000000003.seg", "index/catalogue",
                                        "index/0000000000000001.idx"};
    bool has = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "store/%s", names[i]);
        has |= kit_find(path, text, strlen(text)) >= 0;
    }
    return has;
}

KIT_TEST(keys__encrypts_content)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct kit_content content = kit_content(1, LARGE, false);
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_session *session;

    kit_session_close(kit_create_titled(store, "s", "plaintext"));
    kit_put_blob(store, &content, digest);
    kit_close(store);
    assert_true(has_text("plaintext"));
    kit_write_file("store/remote.json", "{}", 2);
    assert_fails(encrypt_store("store", FIRST), WAL_EINVAL, "clear text");
    assert_int_equal(unlink("store/remote.json"), 0);
    assert_done(encrypt_store("store", FIRST));
    assert_true(read_keys("store").plain_ids[0] > 0 && read_keys("store").plain_ids[1] > 0);
    store = open_with("store", FIRST);
    session = kit_session(store, "s");
    kit_append_all(session, "a");
    kit_session_close(kit_create_titled(store, "t", "written later"));
    assert_false(has_text("written later"));
    kit_check_blob(store, digest, &content);
    kit_compact(store, 0);
    assert_false(has_text("plaintext"));
    assert_int_equal(read_keys("store").plain_ids[0], 0);
    assert_int_equal(read_keys("store").plain_ids[1], 0);
    kit_session_close(session);
    kit_close(store);
    assert_refused("store", NULL, WAL_EKEY, "a key opens it");
    store = open_with("store", FIRST);
    session = kit_session(store, "s");
    assert_all_entries(session, "a");
    kit_session_close(session);
    kit_check_blob(store, digest, &content);
    kit_close(store);
    assert_fails(encrypt_store("store", FIRST), WAL_EEXISTS, "encrypted already");
    assert_fails(encrypt_store("store", SECOND), WAL_EKEY, "none of those");
}

KIT_TEST(keys__encrypting_what_is_in_use_is_refused)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    pid_t child = kit_start_process();

    if (child == 0) {
        struct wal_error error = KIT_ERROR;
        const struct wal_key key = secret(FIRST);
        const struct wal_open_options options = {.struct_size = sizeof(options), .key = &key};
        enum wal_status status = wal_store_encrypt("store", &options, &error);

        _exit(status == WAL_ELOCKED && strstr(error.text, "other processes") != NULL ? 0 : 1);
    }
    kit_expect_exit(child, 0);
    assert_false(kit_exists("store/KEYS"));
    kit_session_close(kit_create_filled(store, "s", "a b"));
    kit_close(store);
    assert_done(encrypt_store("store", FIRST));
    store = open_with("store", FIRST);
    assert_all_entries(kit_session(store, "s"), "a b");
}

/* --- at each call ---------------------------------------------------------------- */

enum operation { ADD, REMOVE, ROTATE, COMPACT, ENCRYPT, OPERATIONS };

static jmp_buf death;

static enum wal_status open_on(struct sim_process *process, const struct wal__heap *heap,
                               uint32_t flags, struct wal_store **store)
{
    const struct wal_key key = secret(FIRST);
    const struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .key = &key};

    return wal__store_open("/store", &options, heap, sim_process_io(process), store, kit_error());
}

/* A store for the operation, of which the last process is gone. */
static struct sim_disk *make_disk(enum operation operation)
{
    struct sim_disk *disk = sim_disk_create(1000000 + (uint64_t)operation);
    struct sim_process *process = sim_process_create(disk);
    const struct wal_key second = secret(SECOND);
    const struct wal_open_options plain = {.struct_size = sizeof(plain), .flags = WAL_OPEN_CREATE};
    struct wal_store *store = NULL;

    if (operation == ENCRYPT) {
        assert_done(wal__store_open("/store", &plain, &wal__heap_libc, sim_process_io(process),
                                    &store, kit_error()));
    } else {
        assert_done(open_on(process, &wal__heap_libc, WAL_OPEN_CREATE, &store));
    }
    kit_session_close(kit_create_filled(store, "s", "a b"));
    if (operation == REMOVE) {
        assert_done(wal_store_add_key(store, &second, NULL, kit_error()));
    }
    if (operation == COMPACT) {
        kit_compact(store, 0);
        assert_done(wal_store_rotate_key(store, kit_error()));
    }
    assert_done(wal_close(store, kit_error()));
    sim_process_destroy(process);
    return disk;
}

/* Runs it on a store that is open, or encrypts the store; `then` appends in the same handle. */
static void run(struct sim_process *process, const struct wal__heap *heap, enum operation operation,
                struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};
    const struct wal_key first = secret(FIRST);
    const struct wal_key second = secret(SECOND);
    const struct wal_open_options open = {.struct_size = sizeof(open), .key = &first};

    switch (operation) {
    case ADD:
        (void)!wal_store_add_key(store, &second, NULL, NULL);
        break;
    case REMOVE:
        (void)!wal_store_remove_key(store, 2, NULL);
        break;
    case ROTATE:
        (void)!wal_store_rotate_key(store, NULL);
        break;
    case COMPACT:
        (void)!wal_store_compact(store, &options, NULL, NULL);
        break;
    case ENCRYPT:
    case OPERATIONS:
        (void)!wal__store_encrypt("/store", &open, heap, sim_process_io(process), NULL);
        break;
    }
}

/* The same with a fault; false: it did not come to that call. After a failure that the process
 * survives, an entry is appended. *appends: it was acknowledged. */
static bool run_with(struct sim_disk *disk, enum operation operation, struct sim_fault fault,
                     bool *appended)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    struct arena_heap arena;
    bool struck;

    *appended = false;
    arena_heap_init(&arena);
    sim_process_on_death(process, sim_jump, &death);
    if (operation != ENCRYPT) {
        assert_done(open_on(process, &arena.heap, 0, &store));
    }
    sim_process_add_fault(process, &fault);
    if (setjmp(death) == 0) {
        run(process, &arena.heap, operation, store);
    }
    struck = sim_process_counts(process)->faults > 0;
    if (!sim_process_is_dead(process) && store != NULL) {
        const struct wal_entry entry = kit_entry("c", NULL, "{}");

        sim_process_clear_faults(process);
        assert_done(wal_session_open(store, kit_text("s"), &session, kit_error()));
        *appended = wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;
        wal_session_close(session);
        (void)!wal_close(store, NULL);
    }
    sim_process_destroy(process);
    arena_heap_deinit(&arena);
    return struck;
}

/* The store has what it had, opens with its key, and takes entries. */
static void check(struct sim_disk *disk, bool appended)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_session *session;
    struct wal_store *store = NULL;

    assert_done(open_on(process, &wal__heap_libc, WAL_OPEN_KEY_IF_NEEDED, &store));
    session = kit_session(store, "s");
    assert_all_entries(session, appended ? "a b c" : "a b");
    kit_append_all(session, "d");
    kit_session_close(session);
    assert_done(wal_close(store, kit_error()));
    sim_process_destroy(process);
    process = sim_process_create(disk);
    assert_done(open_on(process, &wal__heap_libc, WAL_OPEN_KEY_IF_NEEDED, &store));
    session = kit_session(store, "s");
    assert_all_entries(session, appended ? "a b c d" : "a b d");
    kit_session_close(session);
    assert_done(wal_close(store, kit_error()));
    sim_process_destroy(process);
}

static void at_each_call(enum operation operation)
{
    static const enum sim_effect effects[] = {SIM_FAIL, SIM_KILL_BEFORE, SIM_KILL_AFTER};
    struct sim_disk *made = make_disk(operation);
    static uint64_t seed;

    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
        bool struck = true;

        for (uint64_t after = 0; struck; after++) {
            const struct sim_fault fault = {
                .call = SIM_ANY, .after = after, .effect = effects[i], .sys_errno = EIO};
            const struct sim_power_loss loss = {
                .landing = (enum sim_persistence)(after % SIM_PERSISTENCES)};
            struct sim_disk *disk = sim_disk_clone(made);
            struct sim_disk *cut;
            bool appended;

            sim_disk_set_seed(disk, ++seed); /* no nonce is used twice */
            struck = run_with(disk, operation, fault, &appended);
            cut = sim_disk_clone(disk);
            sim_disk_set_seed(cut, ++seed);
            sim_disk_power_loss(cut, &loss, after + 1);
            check(disk, appended);
            check(cut, appended);
            sim_disk_destroy(cut);
            sim_disk_destroy(disk);
        }
    }
    sim_disk_destroy(made);
}

KIT_TEST(keys__add_at_each_call)
{
    at_each_call(ADD);
}

KIT_TEST(keys__remove_at_each_call)
{
    at_each_call(REMOVE);
}

KIT_TEST(keys__rotate_at_each_call)
{
    at_each_call(ROTATE);
}

KIT_TEST(keys__compact_at_each_call)
{
    at_each_call(COMPACT);
}

KIT_TEST(keys__encrypt_at_each_call)
{
    at_each_call(ENCRYPT);
}
