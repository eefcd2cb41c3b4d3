/*
 * test_checkpoint_entry.c - tests of the link between a checkpoint and an entry
 * of the conversation (SPEC.md 5.13).
 */
#include "engine/files/checkpoint.h"
#include "tests/lib/kit/checkpoint_kit.h"

static struct wal_error error = {.struct_size = sizeof(error)};

/* The linked entry of a checkpoint, as a reader and the list have it; until the
 * next call. */
static const char *entry_of(struct wal_session *session, const char *id)
{
    static char found[WAL_ID_SIZE];
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;
    struct wal_file_cursor *files = NULL;
    struct wal_slice entry = {NULL, 0};

    assert_ok(wal_file_cursor_open(session, kit_text(id), &files, NULL));
    assert_ok(wal_checkpoint_get_info(files, &info, NULL));
    (void)snprintf(found, sizeof(found), "%.*s", (int)info.entry_id.size,
                   (const char *)info.entry_id.data);
    wal_file_cursor_close(files);
    assert_ok(wal_checkpoint_cursor_open(session, &list, NULL));
    do {
        assert_ok(wal_checkpoint_cursor_next(list, &info, NULL));
        entry = info.entry_id;
    } while (!kit_slice_is(info.id, id));
    assert_true(kit_slice_is(entry, found));
    wal_checkpoint_cursor_close(list);
    return found;
}

static enum wal_status create(struct kit_work *work, const char *id,
                              const char *entry, uint32_t flags)
{
    const struct wal_slice paths[] = {kit_text("a")};
    const struct wal_checkpoint_options options = {.struct_size =
                                                       sizeof(options),
                                                   .id = kit_text(id),
                                                   .entry_id = kit_text(entry),
                                                   .flags = flags};

    return wal_checkpoint_create(work->session, paths, 1, &options, NULL,
                                 &error);
}

KIT_TEST(checkpoint_entry__is_the_head_or_the_given_entry)
{
    struct kit_work work = kit_work_begin(0);
    const struct wal_entry quoted = kit_entry("\"e\\2\"", NULL, "1");

    kit_checkpoint(&work, "none", "a");
    assert_ok(wal_append(work.session, &quoted, 1, NULL, NULL, NULL));
    kit_append_all(work.session, "e3");
    kit_checkpoint(&work, "head", "a");
    assert_ok(create(&work, "given", "\"e\\2\"", 0));
    assert_ok(create(&work, "unlinked", "", WAL_CHECKPOINT_UNLINKED));
    kit_append_all(work.session, "e4");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(entry_of(work.session, "none"), "");
        assert_string_equal(entry_of(work.session, "head"), "e3");
        assert_string_equal(entry_of(work.session, "given"), "\"e\\2\"");
        assert_string_equal(entry_of(work.session, "unlinked"), "");
        kit_work_reopen(&work, 0);
    }
    kit_work_end(&work);
}

KIT_TEST(checkpoint_entry__of_imported_files)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_checkpoint_options options = {.struct_size = sizeof(options),
                                             .id = kit_text("i")};

    kit_append_all(work.session, "e1 e2");
    assert_ok(
        wal_checkpoint_import(work.session, NULL, 0, &options, NULL, &error));
    assert_string_equal(entry_of(work.session, "i"), "e2");
    options.id = kit_text("j");
    options.entry_id = kit_text("e1");
    assert_ok(
        wal_checkpoint_import(work.session, NULL, 0, &options, NULL, &error));
    assert_string_equal(entry_of(work.session, "j"), "e1");
    kit_work_end(&work);
}

/* The link is that of the first call, as are the states of files. */
KIT_TEST(checkpoint_entry__is_unchanged_when_files_are_added)
{
    struct kit_work work = kit_work_begin(0);

    kit_append_all(work.session, "e1");
    kit_checkpoint(&work, "c", "a");
    kit_append_all(work.session, "e2");
    kit_checkpoint(&work, "c", "b");
    assert_string_equal(entry_of(work.session, "c"), "e1");
    assert_ok(create(&work, "c", "e1", 0));
    assert_int_equal(create(&work, "c", "e2", 0), WAL_EEXISTS);
    assert_error(&error, WAL_EEXISTS, "another entry");
    assert_string_equal(error.actual, "e1");
    assert_string_equal(entry_of(work.session, "c"), "e1");
    kit_work_end(&work);
}

KIT_TEST(checkpoint_entry__unknown_is_refused)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_entry aside = kit_entry("aside", NULL, "1");

    aside.stream = 3;
    assert_ok(wal_append(work.session, &aside, 1, NULL, NULL, NULL));
    assert_int_equal(create(&work, "c", "e1", 0), WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "e1");
    assert_int_equal(create(&work, "c", "aside", 0), WAL_ENOTFOUND);
    kit_append_all(work.session, "e1");
    assert_int_equal(create(&work, "c", "e1", WAL_CHECKPOINT_UNLINKED),
                     WAL_EINVAL);
    assert_int_equal(create(&work, "c", "", WAL_CHECKPOINT_OFF), WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
    kit_work_end(&work);
}

static void put_document(struct wal_session *session, const char *id,
                         const char *json)
{
    uint8_t key[WAL__CHECKPOINT_KEY_MAX];
    const struct wal__span span = {(const uint8_t *)id, strlen(id)};
    const struct wal__span value = {(const uint8_t *)json, strlen(json)};

    assert_ok(wal__reserved_doc_put(session, wal__checkpoint_key(span, key),
                                    value, WAL__DOC_ANY_VERSION, NULL, &error));
}

/* The document of an older version has no such member; another one has a member
 * that this version does not know. */
KIT_TEST(checkpoint_entry__in_documents)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;
    static const char *const damaged[] = {"1", "\"\"", "\"a\\u0000\"", "null"};
    char json[512];

#define DOCUMENT                                                   \
    "{\"root\":\"/r\",\"list\":\"00000000000000000000000000000000" \
    "00000000000000000000000000000000\",\"files\":0,\"bytes\":0,"  \
    "\"newBlobs\":0,\"newBytes\":0,\"created\":1"
    put_document(work.session, "c", DOCUMENT "}");
    assert_ok(wal_checkpoint_cursor_open(work.session, &list, NULL));
    assert_ok(wal_checkpoint_cursor_next(list, &info, NULL));
    assert_int_equal(info.entry_id.size, 0);
    wal_checkpoint_cursor_close(list);
    put_document(work.session, "c", DOCUMENT ",\"later\":[1],\"entry\":\"e\"}");
    assert_ok(wal_checkpoint_cursor_open(work.session, &list, NULL));
    assert_ok(wal_checkpoint_cursor_next(list, &info, NULL));
    assert_true(kit_slice_is(info.entry_id, "e"));
    wal_checkpoint_cursor_close(list);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        (void)snprintf(json, sizeof(json), DOCUMENT ",\"entry\":%s}",
                       damaged[i]);
        put_document(work.session, "c", json);
        assert_ok(wal_checkpoint_cursor_open(work.session, &list, NULL));
        assert_int_equal(wal_checkpoint_cursor_next(list, &info, NULL),
                         WAL_ECORRUPT);
        wal_checkpoint_cursor_close(list);
    }
    kit_work_end(&work);
}
