/*
 * test_rewind_refused.c - rewinds that cannot be done: the error says why,
 * no file is touched, none is left over, no checkpoint is made.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/lib/kit/rewind_kit.h"

static int count_checkpoints(struct wal_session *session)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;
    int count = 0;

    assert_ok(wal_checkpoint_cursor_open(session, &list, NULL));
    while (wal_checkpoint_cursor_next(list, &info, NULL) == WAL_OK) {
        count++;
    }
    wal_checkpoint_cursor_close(list);
    return count;
}

/* Two files changed since checkpoint "c". */
static struct wal_session *make_changed(struct wal_store *store)
{
    struct wal_session *session = tree_session(store);

    tree_directory("d");
    tree_put("a", "old a\n");
    tree_put("d/b", "old b\n");
    tree_checkpoint(session, "c", "a d/b");
    tree_put("a", "new a\n");
    tree_put("d/b", "new b\n");
    return session;
}

static void check_untouched(struct wal_session *session)
{
    tree_assert_content("a", "new a\n");
    assert_int_equal(count_checkpoints(session), 1);
}

KIT_TEST(rewind_refused__unknown_checkpoint)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer = kit_rewind(session, "none such");

    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    check_untouched(session);
    tree_assert_content("d/b", "new b\n");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_refused__checkpoints_off)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    assert_ok(wal_session_set_checkpointing(session, 0, NULL));
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "off");
    check_untouched(session);
    assert_ok(wal_session_set_checkpointing(session, 1, NULL));
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " a+1-1 d/b+1-1");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_refused__persistence_off)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_NOOP);
    struct wal_session *session = kit_create(store, "s");
    struct wal_rewind_options options = {.struct_size = sizeof(options),
                                         .root = kit_text("relative")};
    struct wal_file_change_cursor *changes = NULL;
    struct wal_error error = KIT_ERROR;
    struct kit_rewind_result answer = kit_rewind(session, "c");

    assert_rewind_refused(&answer, WAL_ENOTFOUND, "no checkpoint \"c\"");
    assert_int_equal(
        wal_rewind(session, kit_text("c"), &options, NULL, &changes, &error),
        WAL_EINVAL);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_refused__invalid_arguments)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct wal_rewind_options options = {.struct_size = sizeof(options),
                                         .flags = 8};
    struct wal_file_change_cursor *changes = NULL;
    struct wal_rewind_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;

    assert_int_equal(
        wal_rewind(session, kit_text("c"), &options, NULL, &changes, &error),
        WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "flags");
    options.flags = 0;
    options.root = kit_text("not/absolute");
    assert_int_equal(
        wal_rewind(session, kit_text("c"), &options, NULL, &changes, &error),
        WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "absolute");
    options.root = kit_text("");
    options.struct_size--;
    assert_int_equal(
        wal_rewind(session, kit_text("c"), &options, NULL, &changes, &error),
        WAL_EINVAL);
    assert_int_equal(
        wal_rewind(session, kit_text(""), NULL, NULL, &changes, &error),
        WAL_EINVAL);
    assert_int_equal(
        wal_rewind(NULL, kit_text("c"), NULL, NULL, &changes, &error),
        WAL_EINVAL);
    result.struct_size--;
    assert_int_equal(
        wal_rewind(session, kit_text("c"), NULL, &result, &changes, &error),
        WAL_EINVAL);
    assert_null(changes);
    check_untouched(session);
    wal_session_close(session);
    kit_close(store);
}

/* --- contents ------------------------------------------------------------ */

/* Bytes that no compression makes smaller. */
static void fill(uint8_t *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(kit_random(&seed) >> 56);
    }
}

KIT_TEST(rewind_refused__damaged_content_changes_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;
    uint8_t first[4096];
    uint8_t second[4096];

    fill(first, sizeof(first), 1);
    fill(second, sizeof(second), 2);
    tree_put_bytes("a", first, sizeof(first));
    tree_put_bytes("b", second, sizeof(second));
    tree_put("c", "c\n");
    tree_checkpoint(session, "c", "a b c");
    tree_put("a", "new a\n");
    tree_put("b", "new b\n");
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(tree_flip_content(second, sizeof(second)), 1);

    store = kit_store();
    session = kit_session(store, "s");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ECORRUPT, "b: its content ");
    /* SHA-256 of what `b` held, as sha256sum says it. */
    assert_non_null(strstr(answer.error, tree_digest(second, sizeof(second))));
    tree_assert_content("a", "new a\n");
    tree_assert_content("b", "new b\n");
    assert_string_equal(tree_names(), "a b c");
    assert_int_equal(count_checkpoints(session), 1);
    /* It is no obstacle to what does not need it. */
    tree_remove("b");
    tree_put_bytes("b", second, sizeof(second));
    answer = kit_rewind(session, "c");
    assert_int_equal(answer.info.can_rewind, 1);
    wal_session_close(session);
    kit_close(store);
}

/* --- places -------------------------------------------------------------- */

KIT_TEST(rewind_refused__directory_in_place_of_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    tree_remove("d/b");
    tree_directory("d/b");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "d/b");
    check_untouched(session);
    assert_string_equal(tree_names(), "a d/ d/b/");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_refused__parent_is_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    tree_remove("d/b");
    tree_remove("d");
    tree_put("d", "in the way\n");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "d/b");
    check_untouched(session);
    tree_assert_content("d", "in the way\n");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_refused__parent_is_a_link)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    assert_int_equal(mkdir("outside", 0777), 0);
    tree_remove("d/b");
    tree_remove("d");
    tree_link("d", "../outside");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_EOUTSIDE, "d/b");
    check_untouched(session);
    assert_int_equal(rmdir("outside"), 0);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_refused__pipe_in_place_of_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    tree_remove("d/b");
    assert_int_equal(mkfifo(tree_path("d/b"), 0666), 0);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "d/b");
    check_untouched(session);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_refused__missing_root)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    assert_int_equal(rename("tree", "moved"), 0);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "tree");
    assert_int_equal(rename("moved", "tree"), 0);
    check_untouched(session);
    wal_session_close(session);
    kit_close(store);
}

/* Whether a superuser is bound by permission bits as others are. */
static void be_bound(bool bound)
{
    const uint32_t powers = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    assert_int_equal(syscall(SYS_capget, &head, data), 0);
    if (bound) {
        data[0].effective &= ~powers;
    } else {
        data[0].effective |= data[0].permitted & powers;
    }
    assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

KIT_TEST(rewind_refused__directory_without_write_permission)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    be_bound(true);
    tree_chmod("d", 0555);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_EACCESS, "d/b");
    check_untouched(session);
    tree_chmod("d", 0777);
    tree_chmod("d/b", 0);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_EACCESS, "d/b");
    check_untouched(session);
    assert_string_equal(tree_names(), "a d/ d/b");
    tree_chmod("d/b", 0644);
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " a+1-1 d/b+1-1");
    wal_session_close(session);
    kit_close(store);
    be_bound(false);
}
