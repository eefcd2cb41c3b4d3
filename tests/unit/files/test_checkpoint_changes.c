/*
 * test_checkpoint_changes.c - tests of differences between checkpoints, to the
 * disk, and over a session (SPEC.md 5.13).
 */
#include "tests/lib/kit/checkpoint_kit.h"

#include <sys/stat.h>

KIT_TEST(diff__reports_lines_modes_and_binary_files)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "changed", "1\n2\n3\n");
    kit_write(&work, "gone", "a\nb\n");
    kit_write(&work, "mode", "m\n");
    kit_write(&work, "same", "s\n");
    kit_write_bytes(&work, "binary", "\0a", 2);
    kit_write_bytes(&work, "binary mode", "\0a", 2);
    assert_int_equal(symlink("old", kit_path(&work, "link")), 0);
    kit_write(&work, "turned", "a\nb\nc\n");
    kit_checkpoint(&work, "1",
                   "changed gone mode same binary link new turned only");
    kit_write(&work, "changed", "1\ntwo\n3\n4\n");
    assert_int_equal(unlink(kit_path(&work, "gone")), 0);
    assert_int_equal(chmod(kit_path(&work, "mode"), 0700), 0);
    kit_write_bytes(&work, "binary", "\0b", 2);
    assert_int_equal(unlink(kit_path(&work, "link")), 0);
    assert_int_equal(symlink("newer", kit_path(&work, "link")), 0);
    kit_write(&work, "new", "n\n");
    assert_int_equal(unlink(kit_path(&work, "turned")), 0);
    assert_int_equal(symlink("a", kit_path(&work, "turned")), 0);
    kit_checkpoint(&work, "2",
                   "changed gone mode same binary link new turned other");
    assert_string_equal(kit_diff(work.session, "1", "2"),
                        "binary +0 -0 binary, changed +2 -1, gone +0 -2, "
                        "link +1 -1, mode +0 -0 mode same, new +1 -0, "
                        "turned +1 -3");
    assert_string_equal(kit_diff(work.session, "2", "1"),
                        "binary +0 -0 binary, changed +1 -2, gone +2 -0, "
                        "link +1 -1, mode +0 -0 mode same, new +0 -1, "
                        "turned +3 -1");
    assert_string_equal(kit_diff(work.session, "1", "1"), "");
    kit_work_end(&work);
}

KIT_TEST(diff__of_a_binary_file_s_mode_is_binary)
{
    struct kit_work work = kit_work_begin(0);

    kit_write_bytes(&work, "b", "\0a", 2);
    kit_checkpoint(&work, "1", "b");
    assert_int_equal(chmod(kit_path(&work, "b"), 0755), 0);
    assert_string_equal(kit_diff(work.session, "1", ""),
                        "b +0 -0 binary mode same");
    kit_work_end(&work);
}

KIT_TEST(diff__with_the_disk_reads_current_files)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_store_info info = {.struct_size = sizeof(info)};
    uint64_t pack;

    kit_write(&work, "a", "1\n");
    kit_write(&work, "b", "1\n");
    assert_int_equal(symlink("b", kit_path(&work, "l")), 0);
    kit_checkpoint(&work, "c", "a b l n");
    assert_ok(wal_store_get_info(work.store, &info, NULL));
    pack = info.pack_bytes;
    assert_string_equal(kit_diff(work.session, "c", ""), "");
    kit_write(&work, "a", "1\n2\n");
    kit_write(&work, "n", "1\n");
    assert_int_equal(unlink(kit_path(&work, "l")), 0);
    assert_int_equal(symlink("a", kit_path(&work, "l")), 0);
    assert_string_equal(kit_diff(work.session, "c", ""),
                        "a +1 -0, l +1 -1, n +1 -0");
    assert_ok(wal_store_get_info(work.store, &info, NULL));
    assert_int_equal(info.pack_bytes, pack); /* nothing of it is kept */
    kit_work_end(&work);
}

KIT_TEST(changes__compare_first_and_last_state)
{
    struct wal_file_change_cursor *changes;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1\n");
    kit_write(&work, "back", "1\n");
    kit_write(&work, "late", "1\n");
    kit_checkpoint(&work, "1", "a back");
    kit_write(&work, "a", "1\n2\n");
    kit_write(&work, "back", "2\n");
    kit_checkpoint(&work, "2", "a back late");
    kit_write(&work, "a", "1\n2\n3\n");
    kit_write(&work, "back", "1\n");
    assert_int_equal(unlink(kit_path(&work, "late")), 0);
    kit_checkpoint(&work, "3", "a back");
    kit_checkpoint(&work, "4", "late");
    assert_ok(wal_session_diff(work.session, &changes, NULL));
    assert_string_equal(kit_changes(changes), "a +2 -0, late +0 -1");
    kit_work_end(&work);
}

/* Two roots yield one path for the same file. */
KIT_TEST(changes__several_roots_are_separate)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};
    const struct wal_slice path = kit_text("f");
    struct wal_file_change_cursor *changes;
    char expected[8192];
    char root[4200];

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "d/f", "1\n");
    kit_write(&work, "g", "1\n");
    kit_checkpoint(&work, "1", "d/f g");
    kit_write(&work, "d/f", "1\n2\n");
    kit_write(&work, "g", "2\n");
    kit_checkpoint(&work, "2", "g");
    snprintf(root, sizeof(root), "%s/d", work.root);
    options.root = kit_text(root);
    assert_ok(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL));
    assert_ok(wal_session_diff(work.session, &changes, NULL));
    snprintf(expected, sizeof(expected), "f +1 -0, %s/g +1 -1", work.root);
    assert_string_equal(kit_changes(changes), expected);
    kit_work_end(&work);
}

KIT_TEST(changes__fork_includes_shared_changes)
{
    struct wal_file_change_cursor *changes;
    struct wal_session *source;

    struct kit_work work = kit_work_begin(0);

    source = work.session;
    kit_append(source, "e", NULL);
    kit_write(&work, "a", "1\n");
    kit_checkpoint(&work, "1", "a");
    work.session = kit_fork(source, NULL, "f");
    kit_write(&work, "a", "1\n2\n");
    kit_checkpoint(&work, "2", "a");
    assert_ok(wal_session_diff(work.session, &changes, NULL));
    assert_string_equal(kit_changes(changes), "a +1 -0");
    assert_ok(wal_session_diff(source, &changes, NULL));
    assert_string_equal(kit_changes(changes), "");
    wal_session_close(work.session);
    work.session = source;
    kit_work_end(&work);
}
