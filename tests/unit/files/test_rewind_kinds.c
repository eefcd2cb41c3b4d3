/*
 * test_rewind_kinds.c - a rewind where a directory became a file or a link since the checkpoint, or
 * the other way round (SPEC.md 5.13, 5.15): done, undone, killed, and refused where a directory
 * holds what no checkpoint has.
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/lib/kit/rewind_kit.h"

/* "c" has the file "a", the link "l" and, in directories, the files "t/u" and "t/v/w"; then "a" and
 * "l" are directories with files, and "t" is a file. */
static struct wal_session *make_crossed(struct wal_store *store)
{
    struct wal_session *session = tree_session(store);

    tree_directory("d");
    tree_directory("t");
    tree_directory("t/v");
    tree_put("a", "a of the checkpoint\n");
    tree_link("l", "d");
    tree_put("t/u", "u of the checkpoint\n");
    tree_put("t/v/w", "w of the checkpoint\n");
    tree_checkpoint(session, "c", "a a/e/x l l/y t t/u t/v/w");
    tree_remove("a");
    tree_remove("l");
    tree_remove("t/u");
    tree_remove("t/v/w");
    tree_remove("t/v");
    tree_remove("t");
    tree_directory("a");
    tree_directory("a/e");
    tree_directory("l");
    tree_put("a/e/x", "x before\n");
    tree_put("l/y", "y before\n");
    tree_put("t", "t before\n");
    return session;
}

static const char crossed[] = " a+1-0 a/e/x+0-1 l+1-0 l/y+0-1 t+0-1 t/u+1-0 t/v/w+1-0";

static void check_before(void)
{
    tree_assert_content("a/e/x", "x before\n");
    tree_assert_content("l/y", "y before\n");
    tree_assert_content("t", "t before\n");
    assert_string_equal(tree_names(), "a/ a/e/ a/e/x d/ l/ l/y t");
}

static void check_after(void)
{
    tree_assert_content("a", "a of the checkpoint\n");
    tree_assert_link("l", "d");
    tree_assert_content("t/u", "u of the checkpoint\n");
    tree_assert_content("t/v/w", "w of the checkpoint\n");
    assert_string_equal(tree_names(), "a d/ l t/ t/u t/v/ t/v/w");
}

KIT_TEST(rewind_kinds__directories_and_files_change_places)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_crossed(store);
    struct kit_rewind_result answer = kit_rewind(session, "c");

    assert_rewound(&answer, crossed);
    check_after();
    answer = kit_rewind(session, answer.undo);
    assert_int_equal(answer.info.can_rewind, 1);
    check_before();
    answer = kit_rewind(session, answer.undo);
    assert_rewound(&answer, crossed);
    check_after();
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, "");
}

KIT_TEST(rewind_kinds__empty_directory_in_place_of_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_crossed(store);
    struct kit_rewind_result answer;

    tree_remove("a/e/x");
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " a+1-0 l+1-0 l/y+0-1 t+0-1 t/u+1-0 t/v/w+1-0");
    check_after();
    answer = kit_rewind(session, answer.undo);
    tree_assert_content("a", NULL);
}

/* All are in one checkpoint, whichever of them is there. */
KIT_TEST(rewind_kinds__other_directories_are_kept)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_crossed(store);
    struct kit_rewind_result answer;

    tree_checkpoint(session, "c2", "a a/e/x t t/u");
    tree_put("a/e/x", "x2\n");
    answer = kit_rewind(session, "c2");
    assert_rewound(&answer, " a/e/x+1-1");
    check_before();
}

KIT_TEST(rewind_kinds__strangers_file_in_the_directory_refuses)
{
    static const char *const strangers[] = {"a/e/stranger", "l/stranger"};
    struct wal_store *store = kit_store();
    struct wal_session *session = make_crossed(store);
    struct kit_rewind_result answer;

    for (int i = 0; i < 2; i++) {
        tree_put(strangers[i], "stranger\n");
        answer = kit_rewind(session, "c");
        assert_rewind_refused(&answer, WAL_ENOTFILE, strangers[i]);
        tree_assert_content(strangers[i], "stranger\n");
        tree_remove(strangers[i]);
        check_before();
    }
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, crossed);
}

/* The checkpoint has no such file, so that it must stay. */
KIT_TEST(rewind_kinds__file_in_place_of_a_directory_that_is_not_named_refuses)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_directory("t");
    tree_put("t/u", "u\n");
    tree_checkpoint(session, "c", "t/u");
    tree_remove("t/u");
    tree_remove("t");
    tree_put("t", "stranger\n");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "t/u");
    tree_assert_content("t", "stranger\n");
}

/* A checkpoint that no disk can be in, as an import may make it. */
KIT_TEST(rewind_kinds__checkpoint_with_a_file_below_a_file_refuses)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct wal_file files[2] = {
        {.struct_size = sizeof(files[0]), .kind = WAL_FILE_REGULAR, .path = kit_text("a")},
        {.struct_size = sizeof(files[0]), .kind = WAL_FILE_REGULAR, .path = kit_text("a/x")}};
    struct wal_checkpoint_options options = {.struct_size = sizeof(options), .id = kit_text("i")};
    struct kit_rewind_result answer;

    tree_put("b", "content\n");
    tree_checkpoint(session, "c", "b");
    for (int i = 0; i < 2; i++) {
        const char *digest = tree_digest("content\n", 8);

        for (int k = 0; k < 32; k++) {
            const char pair[3] = {digest[2 * k], digest[2 * k + 1], '\0'};

            files[i].digest[k] = (uint8_t)strtoul(pair, NULL, 16);
        }
    }
    assert_ok(wal_checkpoint_import(session, files, 2, &options, NULL, kit_error()));
    answer = kit_rewind(session, "i");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "a/x");
    assert_string_equal(tree_names(), "b");
}

/* What is recorded is where it leads to, and a rewind changes that. */
KIT_TEST(rewind_kinds__path_through_a_link_that_is_not_named_is_rewound_where_it_leads_to)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_directory("d");
    tree_put("d/y", "y\n");
    tree_link("l", "d");
    tree_checkpoint(session, "c", "l/y l/new");
    tree_put("d/y", "y after\n");
    tree_put("d/new", "new\n");
    tree_remove("l");
    tree_directory("l");
    tree_put("l/y", "another\n");
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " d/new+0-1 d/y+1-1");
    tree_assert_content("d/y", "y\n");
    assert_string_equal(tree_names(), "d/ d/y l/ l/y");
}

/* --- killed -------------------------------------------------------------- */

/* Closes the store, and dies right before the call; false when there was none. */
static bool die_crossed(enum tree_crash_point call, uint32_t nth)
{
    struct wal_store *store = kit_store();

    wal_session_close(make_crossed(store));
    kit_close(store);
    return tree_crash_rewind("c", call, nth);
}

static struct kit_rewind_result settle(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");
    struct kit_rewind_result answer = kit_rewind(session, "none such");

    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    wal_session_close(session);
    kit_close(store);
    return answer;
}

static void clear(void)
{
    assert_int_equal(system("rm -r tree store"), 0);
}

KIT_TEST(rewind_kinds__killed_before_each_change)
{
    /* Three files are removed, and four put in place. */
    for (uint32_t i = 0; die_crossed(TREE_UNLINK, i); i++) {
        assert_in_range(i, 0, 2);
        settle();
        if (i == 0) {
            check_before();
        } else {
            check_after();
        }
        clear();
    }
    check_after();
    clear();
    for (uint32_t i = 0; die_crossed(TREE_RENAME, i); i++) {
        assert_in_range(i, 0, 3);
        settle();
        check_after();
        clear();
    }
    check_after();
}

/* "a/e/x" and "l/y" are gone, so that the others are brought after; what is in the way stays. */
KIT_TEST(rewind_kinds__killed_and_a_strangers_file_since)
{
    static const char *const strangers[] = {"a/e/stranger", "a/e/x"};
    struct kit_rewind_result answer;

    for (int i = 0; i < 2; i++) {
        assert_true(die_crossed(TREE_UNLINK, 2));
        tree_assert_content("a/e/x", NULL);
        tree_put(strangers[i], "stranger\n");
        (void)settle();
        tree_assert_content(strangers[i], "stranger\n");
        tree_assert_link("l", "d");
        tree_assert_content("t/v/w", "w of the checkpoint\n");
        clear();
    }
    /* In the place of a directory. */
    assert_true(die_crossed(TREE_RENAME, 0));
    assert_int_equal(system("rm -r tree/t"), 0);
    tree_put("t", "stranger\n");
    answer = settle();
    assert_int_equal(answer.info.changed_elsewhere, 1);
    tree_assert_content("t", "stranger\n");
    tree_assert_content("a", "a of the checkpoint\n");
    assert_string_equal(tree_names(), "a d/ l t");
}
