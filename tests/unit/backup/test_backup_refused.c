/*
 * test_backup_refused.c - the directories and stores that wal_store_backup
 * refuses (docs/keeping.md); nothing is changed then.
 */
#include "tests/lib/kit/backup_kit.h"

enum {
    LARGE = 100 * 1024
};

/* --- what is refused ---------------------------------------------------- */

KIT_TEST(backup__to_a_copy_with_new_records_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_append_to("copy", 5, 1, 10);
    kit_expect_refused("store", "copy", WAL_EEXISTS,
                       "has records that the store");
    kit_append_to("store", 5, 2, 10);
    kit_expect_refused("store", "copy", WAL_EEXISTS,
                       "has records that the store");
    kit_compact("store");
    kit_expect_refused("store", "copy", WAL_EEXISTS,
                       "has records that the store");
    kit_append_to("copy", 6, 40, LARGE);
    kit_expect_refused("store", "copy", WAL_EEXISTS,
                       "has records that the store");
}

KIT_TEST(backup__of_an_older_store_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "older");
    kit_append_to("store", 5, 5, 10);
    kit_back_up("store", "copy");
    kit_run("rm -r store && cp -r older store");
    kit_expect_refused("store", "copy", WAL_EEXISTS, "the store is older");
    kit_append_to("store", 5, 50, 10);
    kit_expect_refused("store", "copy", WAL_EEXISTS, "the store is older");
}

/* Both went on in the same segment. */
KIT_TEST(backup__of_a_store_with_another_history_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_run("cp -r store older");
    kit_append_to("store", 5, 5, 10);
    kit_back_up("store", "copy");
    kit_run("rm -r store && cp -r older store");
    kit_append_to("store", 5, 50, 20);
    assert_false(kit_exists("store/log/0000000000000003.seg"));
    kit_expect_refused("store", "copy", WAL_EEXISTS, "the store is older");
}

KIT_TEST(backup__to_another_store_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_append_to("other", 0, 1, 10);
    kit_expect_refused("store", "other", WAL_EEXISTS, "another store");
    kit_run("rm other/MANIFEST");
    kit_expect_refused("store", "other", WAL_EEXISTS, "without a manifest");
}

KIT_TEST(backup__to_other_files_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_run("mkdir copy && touch copy/file && touch plain");
    kit_expect_refused("store", "copy", WAL_EEXISTS, "other files");
    kit_expect_refused("store", "missing/copy", WAL_EEXISTS, "parent");
    kit_expect_refused("store", "plain", WAL_ENOTSTORE, "is a file");
    assert_false(kit_exists("copy/log"));
}

KIT_TEST(backup__inside_the_store_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_run("ln -s store/log link && ln -s store itself");
    kit_expect_refused("store", "store", WAL_EINVAL, "inside the store");
    kit_expect_refused("store", "itself", WAL_EINVAL, "inside the store");
    kit_expect_refused("store", "store/copy", WAL_EINVAL, "inside the store");
    kit_expect_refused("store", "store/log/copy/", WAL_EINVAL,
                       "inside the store");
    kit_expect_refused("store", "link/copy", WAL_EINVAL, "inside the store");
    assert_false(kit_exists("store/copy") || kit_exists("store/log/copy"));
}

KIT_TEST(backup__to_a_copy_that_is_open_is_refused)
{
    struct wal_store *copy;

    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    copy = kit_open("copy", 0);
    kit_expect_refused("store", "copy", WAL_ELOCKED, "has the copy open");
    kit_close(copy);
}

KIT_TEST(backup__to_a_damaged_copy_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_run("dd if=/dev/zero of=copy/log/0000000000000001.seg bs=1 seek=8 "
            "count=3000 conv=notrunc 2>/dev/null");
    kit_expect_refused("store", "copy", WAL_ECORRUPT, "is damaged");
}

KIT_TEST(backup__of_a_store_without_files_is_refused)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);

    assert_int_equal(wal_store_backup(NULL, "copy", NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(kit_try_backup(store, NULL), WAL_EINVAL);
    assert_int_equal(kit_try_backup(store, ""), WAL_EINVAL);
    {
        struct wal_store_backup_options options = {
            .struct_size = sizeof(options), .flags = 1};

        assert_int_equal(wal_store_backup(store, "copy", &options, NULL, NULL),
                         WAL_EINVAL);
    }
    kit_close(store);
    store = kit_open("noop", WAL_OPEN_NOOP);
    assert_int_equal(kit_try_backup(store, "copy"), WAL_EINVAL);
    kit_close(store);
    assert_false(kit_exists("copy"));
}
