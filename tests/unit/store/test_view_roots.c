/*
 * test_view_roots.c - the list of roots of views that a store keeps, by its
 * public calls (SPEC.md 10.7).
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/store_kit.h"

static enum wal_status add(struct wal_store *store, const char *dialect,
                           const char *root, uint32_t flags)
{
    return wal_store_add_view_root(store, kit_text(dialect), kit_text(root),
                                   flags, NULL, NULL);
}

struct listed {
    int count;
    int stop_at; /* the callback returns 7 then; 0: never */
    char text[256];
};

static int32_t note(void *ctx, struct wal_slice dialect, struct wal_slice root)
{
    struct listed *listed = ctx;

    assert_int_equal(((const char *)dialect.data)[dialect.size], '\0');
    assert_int_equal(((const char *)root.data)[root.size], '\0');
    (void)snprintf(listed->text, sizeof(listed->text), "%s %s",
                   (const char *)dialect.data, (const char *)root.data);
    return ++listed->count == listed->stop_at ? 7 : 0;
}

static int count(struct wal_store *store)
{
    struct listed listed = {0};

    assert_ok(wal_store_list_view_roots(store, note, &listed, NULL));
    return listed.count;
}

KIT_TEST(view_roots__are_added_listed_and_removed)
{
    struct wal_store *store = kit_store();
    struct listed listed = {0};
    int32_t is_new = 7;

    assert_int_equal(count(store), 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_store_add_view_root(store, kit_text("d"), kit_text("/a"),
                                          i == 0 ? 0 : WAL_STORE_VIEW_ROOT_SYNC,
                                          &is_new, NULL));
        assert_int_equal(is_new, i == 0);
    }
    assert_ok(wal_store_list_view_roots(store, note, &listed, NULL));
    assert_int_equal(listed.count, 1);
    assert_string_equal(listed.text, "d /a");
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_store_remove_view_root(store, kit_text("d"),
                                             kit_text("/a"), NULL));
        assert_int_equal(count(store), 0);
    }
}

KIT_TEST(view_roots__callback_stops_the_listing)
{
    struct wal_store *store = kit_store();
    struct listed listed = {.stop_at = 2};
    struct wal_error error = KIT_ERROR;

    for (const char *root = "/a\0/b\0/c\0"; *root != '\0'; root += 3) {
        assert_ok(add(store, "d", root, 0));
    }
    assert_int_equal(wal_store_list_view_roots(store, note, &listed, &error),
                     WAL_ECALLBACK);
    assert_int_equal(listed.count, 2);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(count(store), 3);
}

KIT_TEST(view_roots__of_a_reader)
{
    struct wal_store *store = kit_store();
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);

    assert_int_equal(add(reader, "d", "/a", WAL_STORE_VIEW_ROOT_WRITER),
                     WAL_EREADONLY);
    assert_int_equal(count(store), 0);
    assert_ok(add(reader, "d", "/a", 0));
    assert_ok(add(store, "d", "/b", WAL_STORE_VIEW_ROOT_WRITER));
    assert_int_equal(count(reader), 2);
}

KIT_TEST(view_roots__without_files_are_not_kept)
{
    const uint32_t flags[] = {WAL_OPEN_MEMORY | WAL_OPEN_CREATE, WAL_OPEN_NOOP};

    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_open("store", flags[i]);
        int32_t is_new = 7;

        assert_ok(wal_store_add_view_root(store, kit_text("d"), kit_text("/a"),
                                          WAL_STORE_VIEW_ROOT_WRITER, &is_new,
                                          NULL));
        assert_int_equal(is_new, 0);
        assert_int_equal(count(store), 0);
        assert_ok(wal_store_remove_view_root(store, kit_text("d"),
                                             kit_text("/a"), NULL));
        kit_close(store);
    }
    assert_int_not_equal(access("store", F_OK), 0);
}

static void refuses(struct wal_store *store, struct wal_slice dialect,
                    struct wal_slice root)
{
    struct wal_error error = KIT_ERROR;
    int32_t is_new = 7;

    assert_int_equal(
        wal_store_add_view_root(store, dialect, root, 0, &is_new, &error),
        WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "path");
    assert_int_equal(is_new, 7);
    assert_int_equal(wal_store_remove_view_root(store, dialect, root, &error),
                     WAL_EINVAL);
}

KIT_TEST(view_roots__misuse_is_refused)
{
    const struct wal_slice texts[] = {
        {NULL, 0}, {NULL, 1}, {"", 0}, {"/a\0b", 4}};
    struct wal_store *store = kit_store();
    struct wal_slice good[2] = {kit_text("d"), kit_text("/a")};
    char large[4096];

    memset(large, '/', sizeof(large));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        refuses(store, texts[i], good[1]);
        refuses(store, good[0], texts[i]);
    }
    refuses(store, (struct wal_slice){large, 32}, good[1]);
    refuses(store, good[0], (struct wal_slice){large, sizeof(large)});
    refuses(store, good[0], kit_text("relative"));
    assert_int_equal(add(store, "d", "/a", 4), WAL_EINVAL);
    assert_int_equal(add(NULL, "d", "/a", 0), WAL_EINVAL);
    assert_int_equal(wal_store_list_view_roots(store, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_store_list_view_roots(NULL, note, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_store_remove_view_root(NULL, good[0], good[1], NULL),
                     WAL_EINVAL);
    assert_int_equal(count(store), 0);
}
