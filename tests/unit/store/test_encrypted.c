/*
 * test_encrypted.c - encrypted stores: what opens them, what their files show, and what is done to
 * them by somebody who has no key (SPEC.md 8).
 */
#include "agentwal.h"
#include "tests/lib/kit/store_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "engine/log/encrypt.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/bytes/crc32.h"

#define SECRET "thirty-two bytes of a random key"
#define WORD   "cleartext"

/* The tests of this file say themselves what is encrypted (tests/lib/encrypted.c). */
static int say_it_themselves(void **state)
{
    (void)state;
    return unsetenv("AGENTWAL_TEST_KEY");
}

TEST_FILE(say_it_themselves, NULL, NULL);

static enum wal_status open_with(const char *path, uint32_t kind, const char *bytes, uint32_t flags,
                                 struct wal_store **store)
{
    struct wal_key key = {.struct_size = sizeof(key),
                          .kind = kind,
                          .bytes = kit_text(bytes),
                          .label = kit_text("it")};
    struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .key = bytes != NULL ? &key : NULL};

    *store = NULL;
    return wal_open(path, &options, store, kit_error());
}

static struct wal_store *open_encrypted(const char *path)
{
    struct wal_store *store;

    assert_ok(open_with(path, WAL_KEY_SECRET, SECRET, WAL_OPEN_CREATE, &store));
    return kit_keep(store);
}

/* A store with all kinds of texts that a file could show. */
static void fill(struct wal_store *store)
{
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text(WORD "-session"),
                                          .cwd = kit_text("/" WORD "/cwd"),
                                          .project = kit_text(WORD "-project"),
                                          .title = kit_text(WORD " title"),
                                          .source = kit_text(WORD "-source"),
                                          .metadata = kit_text("{\"" WORD "\":1}")};
    struct wal_session *session = kit_create_with(store, &options);
    struct wal_entry entry;
    char large[400 * 1024];

    kit_append(session, WORD "-e1", NULL);
    memset(large, 'x', sizeof(large));
    memcpy(large, "\"" WORD, sizeof("\"" WORD) - 1);
    large[sizeof(large) - 2] = '"';
    large[sizeof(large) - 1] = '\0';
    entry = (struct wal_entry){.struct_size = sizeof(entry),
                               .id = kit_text(WORD "-e2"),
                               .type = kit_text(WORD "-type"),
                               .payload = kit_text(large)};
    assert_ok(kit_try_append(session, &entry, NULL, kit_error()));
    kit_session_close(session);
}

static const char *list_ids(struct wal_store *store, const char *id)
{
    struct wal_session *session = kit_session(store, id);
    const char *ids = kit_list_ids(session, NULL);

    kit_session_close(session);
    return ids;
}

/* The files of the store that have the bytes; prints them. */
static int count_files_with(const char *directory, const char *bytes)
{
    DIR *listing = opendir(directory);
    struct dirent *name;
    int count = 0;

    assert_non_null(listing);
    while ((name = readdir(listing)) != NULL) {
        char path[512];
        struct stat stat_of;

        if (name->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", directory, name->d_name);
        assert_int_equal(stat(path, &stat_of), 0);
        if (S_ISDIR(stat_of.st_mode)) {
            count += count_files_with(path, bytes);
        } else if (kit_find(path, bytes, strlen(bytes)) >= 0) {
            print_message("%s has it\n", path);
            count++;
        }
    }
    (void)closedir(listing);
    return count;
}

KIT_TEST(encrypted__no_file_has_a_text_of_it)
{
    struct wal_store *store = open_encrypted("store");

    fill(store);
    assert_int_equal(count_files_with("store", WORD), 0);
    kit_close(store); /* with indexes and a catalogue */
    assert_int_equal(count_files_with("store", WORD), 0);
    store = open_encrypted("store");
    assert_string_equal(kit_list_sessions(store, NULL), WORD "-session");
    (void)kit_compact(store, 0);
    kit_close(store);
    assert_int_equal(count_files_with("store", WORD), 0);
    store = open_encrypted("store");
    assert_string_equal(list_ids(store, WORD "-session"), WORD "-e1 " WORD "-e2");
    kit_close(store);
    kit_remove_indexes();
    store = open_encrypted("store");
    assert_string_equal(list_ids(store, WORD "-session"), WORD "-e1 " WORD "-e2");
}

KIT_TEST(encrypted__another_key_does_not_open_it)
{
    static const struct {
        uint32_t kind;
        const char *bytes;
        const char *says;
    } cases[] = {
        {0, NULL, "a key opens it"},
        {WAL_KEY_SECRET, "thirty-two bytes of another key.", "none of those"},
        {WAL_KEY_SECRET, "too short", "16 to 4096"},
        {WAL_KEY_PASSPHRASE, SECRET, "passphrase"},
    };
    struct wal_store *store = open_encrypted("store");

    kit_close(store);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(open_with("store", cases[i].kind, cases[i].bytes, 0, &store), WAL_EKEY);
        assert_non_null(strstr(kit_last_error()->text, cases[i].says));
        assert_null(strstr(kit_last_error()->text, SECRET));
    }
}

KIT_TEST(encrypted__by_a_passphrase)
{
    struct wal_store *store;

    assert_ok(open_with("store", WAL_KEY_PASSPHRASE, "one", WAL_OPEN_CREATE, &store));
    kit_session_close(kit_create_filled(kit_keep(store), "s", "e"));
    kit_close(store);
    assert_int_equal(open_with("store", WAL_KEY_PASSPHRASE, "two", 0, &store), WAL_EKEY);
    assert_ok(open_with("store", WAL_KEY_PASSPHRASE, "one", WAL_OPEN_READ_ONLY, &store));
    assert_string_equal(list_ids(kit_keep(store), "s"), "e");
}

KIT_TEST(encrypted__a_key_for_a_store_that_is_not)
{
    struct wal_store *store = kit_open("plain", WAL_OPEN_CREATE);

    kit_close(store);
    assert_int_equal(open_with("plain", WAL_KEY_SECRET, SECRET, 0, &store), WAL_EKEY);
    assert_int_equal(open_with("plain", WAL_KEY_SECRET, SECRET, WAL_OPEN_CREATE, &store), WAL_EKEY);
    assert_ok(open_with("plain", WAL_KEY_SECRET, SECRET, WAL_OPEN_KEY_IF_NEEDED, &store));
    kit_keep(store);
}

KIT_TEST(encrypted__keys_are_gone)
{
    struct wal_store *store = open_encrypted("store");

    kit_close(store);
    assert_int_equal(rename("store/KEYS", "KEYS"), 0);
    assert_int_equal(open_with("store", WAL_KEY_SECRET, SECRET, 0, &store), WAL_EKEY);
    assert_non_null(strstr(kit_last_error()->text, "is gone"));
    assert_int_equal(rename("KEYS", "store/KEYS"), 0);
    kit_close(open_encrypted("store"));
}

KIT_TEST(encrypted__keys_of_another_store)
{
    struct wal_store *store;

    kit_close(open_encrypted("store"));
    kit_close(open_encrypted("other"));
    assert_int_equal(rename("other/KEYS", "store/KEYS"), 0);
    assert_int_equal(open_with("store", WAL_KEY_SECRET, SECRET, 0, &store), WAL_EKEY);
    assert_non_null(strstr(kit_last_error()->text, "another store"));
}

/* A copy of KEYS that is damaged is made up for by the other one. */
KIT_TEST(encrypted__keys_are_damaged)
{
    struct wal_store *store;

    kit_close(open_encrypted("store"));
    kit_flip("store/KEYS", 100);
    kit_close(open_encrypted("store"));
    kit_flip("store/KEYS", WAL__KEYS_COPY_SIZE + 200);
    assert_int_equal(open_with("store", WAL_KEY_SECRET, SECRET, 0, &store), WAL_ECORRUPT);
    kit_flip("store/KEYS", 100);
    kit_close(open_encrypted("store"));
    assert_int_equal(truncate("store/KEYS", 300), 0);
    assert_int_equal(open_with("store", WAL_KEY_SECRET, SECRET, 0, &store), WAL_ECORRUPT);
}

/* --- by somebody who may write to the disk ---------------------------------- */

/* The first segment, in memory. */
struct image {
    char path[64];
    uint8_t *bytes;
    size_t size;
    struct wal__segment_header header;
};

static struct image read_image(const char *store)
{
    struct image image = {.size = 0};
    struct stat stat_of;
    FILE *file;

    (void)snprintf(image.path, sizeof(image.path), "%s/log/0000000000000001.seg", store);
    assert_int_equal(stat(image.path, &stat_of), 0);
    image.size = (size_t)stat_of.st_size;
    image.bytes = test_memory(image.size);
    file = fopen(image.path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(image.bytes, 1, image.size, file), image.size);
    (void)fclose(file);
    assert_int_equal(wal__segment_header_decode(image.bytes, &image.header), WAL__FMT_OK);
    return image;
}

static void write_image(const struct image *image)
{
    kit_write_file(image->path, image->bytes, image->size);
}

/* Finds the nth ENTRY; returns its offset. */
static uint64_t find_entry(const struct image *image, int nth, struct wal__frame *frame)
{
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;

    for (;;) {
        assert_int_equal(
            wal__frame_decode(image->bytes + at, image->size - at, image->header.salt, at, frame),
            WAL__FMT_OK);
        if (frame->type == WAL__FRAME_ENTRY && nth-- == 0) {
            return at;
        }
        at += wal__frame_total_size(frame->stored_size);
    }
}

/* Gives a frame the checksums that it would have. */
static void forge(struct image *image, uint64_t at, struct wal__frame *frame)
{
    frame->data_crc = wal__crc32(0, image->bytes + at + WAL__FRAME_SIZE, frame->stored_size);
    wal__frame_encode(frame, image->header.salt, at, image->bytes + at);
}

/* Makes a store with entries e1 to e3 of one size, closed, without derived files. */
static struct image make_store(const char *path)
{
    struct wal_store *store = open_encrypted(path);
    char command[128];

    kit_session_close(kit_create_filled(store, "s", "e1 e2 e3"));
    kit_close(store);
    (void)snprintf(command, sizeof(command), "rm -f %s/index/*", path);
    assert_int_equal(system(command), 0);
    return read_image(path);
}

/* The store gives nothing of the session that was changed. */
static void expect_damage(const char *path)
{
    struct wal_store *store;
    enum wal_status status = open_with(path, WAL_KEY_SECRET, SECRET, 0, &store);

    if (status == WAL_OK) {
        struct wal_session *session = kit_session(kit_keep(store), "s");
        struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
        struct wal_entry_cursor *cursor;
        struct wal_entry entry = {.struct_size = sizeof(entry)};

        status = wal_entry_cursor_open(session, &options, &cursor, kit_error());
        while (status == WAL_OK) {
            status = wal_entry_cursor_next(cursor, &entry, kit_error());
        }
    }
    assert_int_equal(status, WAL_ECORRUPT);
}

KIT_TEST(encrypted__a_flipped_bit_with_true_checksums)
{
    struct image image = make_store("store");
    struct wal__frame frame;
    uint64_t at = find_entry(&image, 1, &frame);

    image.bytes[at + WAL__FRAME_SIZE + 5] ^= 1;
    forge(&image, at, &frame);
    write_image(&image);
    expect_damage("store");
}

KIT_TEST(encrypted__a_changed_header)
{
    struct image image = make_store("store");
    struct wal__frame frame;
    uint64_t at = find_entry(&image, 2, &frame);

    frame.parent = 1;
    forge(&image, at, &frame);
    write_image(&image);
    expect_damage("store");
}

KIT_TEST(encrypted__two_entries_are_exchanged)
{
    struct image image = make_store("store");
    struct wal__frame first;
    struct wal__frame second;
    uint64_t at = find_entry(&image, 0, &first);
    uint64_t other = find_entry(&image, 1, &second);
    uint8_t *bytes = test_memory(first.stored_size);

    assert_int_equal(first.stored_size, second.stored_size);
    memcpy(bytes, image.bytes + at + WAL__FRAME_SIZE, first.stored_size);
    memcpy(image.bytes + at + WAL__FRAME_SIZE, image.bytes + other + WAL__FRAME_SIZE,
           first.stored_size);
    memcpy(image.bytes + other + WAL__FRAME_SIZE, bytes, first.stored_size);
    forge(&image, at, &first);
    forge(&image, other, &second);
    write_image(&image);
    expect_damage("store");
}

KIT_TEST(encrypted__an_entry_of_another_store)
{
    struct image image = make_store("store");
    struct image other = make_store("other");
    struct wal__frame frame;
    struct wal__frame stranger;
    uint64_t at = find_entry(&image, 1, &frame);

    (void)find_entry(&other, 1, &stranger);
    memcpy(image.bytes + at + WAL__FRAME_SIZE,
           other.bytes + find_entry(&other, 1, &stranger) + WAL__FRAME_SIZE, frame.stored_size);
    forge(&image, at, &frame);
    write_image(&image);
    expect_damage("store");
}

KIT_TEST(encrypted__a_segment_that_is_not)
{
    struct image image = make_store("store");
    struct wal_store *store;

    wal__encrypt_header(NULL, &image.header);
    wal__segment_header_encode(&image.header, image.bytes);
    write_image(&image);
    assert_int_equal(open_with("store", WAL_KEY_SECRET, SECRET, 0, &store), WAL_ECORRUPT);
    assert_non_null(strstr(kit_last_error()->text, "not encrypted"));
}

/* The catalogue is used, page by page: without the index of any segment the list is there. */
KIT_TEST(encrypted__the_catalogue_is_read_by_pages)
{
    struct wal_store *store = open_encrypted("store");
    enum { SESSIONS = 200 };

    for (int i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        kit_session_close(kit_create_filled(store, id, "e"));
    }
    assert_ok(wal__core_write_lock(&store->core, NULL));
    store->core.fold.slots_min = 1;
    wal__core_unlock(&store->core);
    assert_ok(wal__committer_rotate(&store->core.committer, kit_error()));
    kit_session_close(kit_create_filled(store, "last", "e"));
    for (int i = 0; i < 20000 && !kit_exists("store/index/catalogue"); i++) {
        kit_pause_ms(1);
    }
    assert_true(kit_exists("store/index/catalogue"));
    kit_close(store);
    store = open_encrypted("store");
    assert_non_null(store->core.catalogue.snapshot);
    assert_int_equal(store->core.catalogue.snapshot->header.session_count, SESSIONS);
    assert_string_equal(list_ids(store, "s77"), "e");
    kit_close(store);
}

/* An index file is bound to its store and its name. */
KIT_TEST(encrypted__files_of_others_are_made_anew)
{
    const char *own = "store/index/0000000000000001.idx";
    struct wal_store *store;

    for (int i = 0; i < 2; i++) {
        store = open_encrypted(i == 0 ? "store" : "other");
        kit_session_close(kit_create_filled(store, "s", i == 0 ? "e1 e2" : "e1"));
        kit_close(store);
    }
    assert_true(kit_exists(own));
    assert_int_equal(rename("other/index/0000000000000001.idx", own), 0);
    store = open_encrypted("store");
    assert_string_equal(list_ids(store, "s"), "e1 e2");
    kit_close(store);
}

/* The catalogue under the name of an index, and the reverse, is not what it says. */
KIT_TEST(encrypted__files_under_other_names)
{
    const uint8_t key_id[] = {1, 0, 0, 0};
    struct wal_store *store = open_encrypted("store");
    struct wal__keyring *keyring = store->core.env.keyring;
    const uint8_t plain[] = "content of the file";
    const struct wal__span in = {plain, sizeof(plain)};
    uint8_t stored[sizeof(plain) + 64];

    uint8_t out[sizeof(plain)];

    assert_int_equal(wal__encrypted_size(sizeof(plain), 0), sizeof(stored));
    assert_ok(wal__encrypt_file(keyring, "catalogue", in, stored));
    assert_memory_equal(stored + 8, key_id, sizeof(key_id));
    assert_ok(
        wal__decrypt_file(keyring, "catalogue", (struct wal__span){stored, sizeof(stored)}, out));
    assert_memory_equal(out, plain, sizeof(plain));
    assert_int_equal(wal__decrypt_file(keyring, "0000000000000001.idx",
                                       (struct wal__span){stored, sizeof(stored)}, out),
                     WAL_ECORRUPT);
    stored[8] = 2; /* no such data key, any more */
    assert_int_equal(
        wal__decrypt_file(keyring, "catalogue", (struct wal__span){stored, sizeof(stored)}, out),
        WAL_ECORRUPT);
    assert_int_equal(wal__decrypt_file(keyring, "catalogue", in, out), WAL_ECORRUPT);
    kit_close(store);
}
