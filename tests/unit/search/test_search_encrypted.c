/*
 * test_search_encrypted.c - the indexes of encrypted stores: they are used as others are, and have
 * no text that the keys are not needed for.
 */
#include "format/index/search_file.h"
#include "tests/lib/search/search_kit.h"

static const char text_file[] = "store/index/0000000000000001.fts";
static const char secret[] = "a secret of many bytes";

static struct wal_store *open_store(void)
{
    const struct wal_key key = kit_key(secret);

    return kit_open_by("store", WAL_OPEN_CREATE, &key);
}

/* The store "store" with a session and its index. */
static void make_store(void)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create_titled(store, "a", "canarytitle");
    struct wal_search *search = kit_search(store);

    kit_say(session, "a1", "user", "canaryword of a message");
    assert_string_equal(kit_hits(search, "canaryword"), "a:a1");
    wal_search_close(search);
    wal_session_close(session);
    kit_close(store);
}

/* The hits of a word in a new search, and how many indexes were made for it. */
static const char *find(const char *word, uint64_t *built)
{
    struct wal_search_update_result result = WAL_INIT(wal_search_update_result);
    struct wal_store *store = open_store();
    struct wal_search *search = kit_search(store);
    const char *hits;

    assert_done(wal_search_update(search, NULL, &result, kit_error()));
    *built = result.built;
    hits = kit_hits(search, word);
    wal_search_close(search);
    kit_close(store);
    return hits;
}

KIT_TEST(search_encrypted__file_has_no_text)
{
    uint64_t built;

    make_store();
    assert_true(kit_exists(text_file));
    assert_false(kit_has_text("store", "canary"));
    assert_false(kit_has_text("store", "SQLite"));
    assert_string_equal(find("canaryword", &built), "a:a1");
    assert_int_equal(built, 0);
}

KIT_TEST(search_encrypted__file_is_extended)
{
    struct wal_store *store;
    struct wal_session *session;
    uint64_t built;

    make_store();
    store = open_store();
    session = kit_session(store, "a");
    kit_say(session, "a2", "user", "canaryword again");
    wal_session_close(session);
    kit_close(store);
    assert_string_equal(find("canaryword", &built), "a:a2 a:a1");
    assert_int_equal(built, 1);
    assert_string_equal(find("canaryword", &built), "a:a2 a:a1");
    assert_int_equal(built, 0);
    assert_false(kit_has_text("store", "canary"));
}

/* Flipped in what is encrypted, or in the header, which is in the clear. */
KIT_TEST(search_encrypted__changed_file_is_made_again)
{
    const off_t places[] = {WAL__SEARCH_FILE_PAGE + 5000, WAL__SEARCH_FILE_PAGE + 60};
    uint64_t built;

    make_store();
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        kit_flip(text_file, places[i]);
        assert_string_equal(find("canaryword", &built), "a:a1");
    }
    assert_false(kit_has_text("store", "canary"));
}

/* Adds to a count in the header, and makes its checksum fit. */
static uint64_t add_to_text_size(uint64_t added)
{
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    struct wal__search_file head;
    FILE *file = fopen(text_file, "r+e");

    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    assert_int_equal(wal__search_file_decode((struct wal__span){bytes, sizeof(bytes)}, &head),
                     WAL__FMT_OK);
    head.text_size += added;
    wal__search_file_encode(&head, bytes);
    rewind(file);
    assert_int_equal(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    assert_int_equal(fclose(file), 0);
    return head.text_size;
}

KIT_TEST(search_encrypted__header_of_another_file_is_refused)
{
    uint64_t size;
    uint64_t built;

    make_store();
    size = add_to_text_size(0);
    assert_int_equal(add_to_text_size(5), size + 5);
    assert_string_equal(find("canaryword", &built), "a:a1");
    assert_int_equal(add_to_text_size(0), size);
}

/* Of the time before the store was encrypted, or put there by others. */
KIT_TEST(search_encrypted__plain_file_is_removed)
{
    struct wal_store *store;
    struct wal_session *session;
    struct wal_search *search;
    uint64_t built;

    if (kit_test_key() != NULL) {
        return;
    }
    make_store();
    store = kit_open("plain", WAL_OPEN_CREATE);
    session = kit_create(store, "a");
    search = kit_search(store);
    kit_say(session, "a1", "user", "canaryword");
    assert_string_equal(kit_hits(search, "canaryword"), "a:a1");
    assert_int_equal(system("cp plain/index/*.fts store/index/"), 0);
    assert_true(kit_has_text("store", "SQLite"));
    assert_string_equal(find("canaryword", &built), "a:a1");
    assert_int_equal(built, 1);
    assert_false(kit_has_text("store", "SQLite"));
}
