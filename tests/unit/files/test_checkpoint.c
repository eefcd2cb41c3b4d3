/*
 * test_checkpoint.c - tests of checkpoints (SPEC.md 5.13): making, reading, listing and deleting
 * them; differences between them, to the disk and over a session; their link to an entry of the
 * conversation; files that the caller gives and not the disk; and bad input, each kind of which has
 * a separate status and names the path, and no checkpoint is made.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "engine/files/checkpoint.h"
#include "engine/session/doc_cursor.h"
#include "tests/lib/kit/checkpoint_kit.h"

KIT_TEST(checkpoint__records_every_kind_of_state)
{
    static const char expected[] = "a/b/deep=in a\n empty= link->run.sh none- odd\n\xff=x "
                                   "run.sh(755)=#!/bin/sh\n";
    struct wal_checkpoint_info info;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a/b/deep", "in a\n");
    kit_write(&work, "empty", "");
    kit_write(&work, "run.sh", "#!/bin/sh\n");
    kit_write(&work, "odd\n\xff", "x");
    assert_int_equal(chmod(kit_path(&work, "run.sh"), 0755), 0);
    assert_int_equal(symlink("run.sh", kit_path(&work, "link")), 0);
    info = kit_checkpoint(&work, "c", "link none run.sh empty a/b/deep odd\n\xff");
    assert_int_equal(info.files, 6);
    assert_int_equal(info.bytes, 5 + 10 + 1 + 6);
    assert_int_equal(info.new_blobs, 5);
    assert_true(info.new_bytes > 0);
    assert_string_equal(kit_files(&work, work.session, "c"), expected);
    kit_work_reopen(&work, 0);
    assert_string_equal(kit_files(&work, work.session, "c"), expected);
}

KIT_TEST(checkpoint__without_paths_is_empty)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_checkpoint_info info = kit_checkpoint(&work, NULL, "");

    assert_int_equal(info.files, 0);
    assert_int_equal(info.id.size, 36);
}

KIT_TEST(checkpoint__large_and_binary_content)
{
    enum { SIZE = 3 * 1024 * 1024 + 77 };
    struct wal_file file = {.struct_size = sizeof(file)};
    struct wal_file_cursor *checkpoint;
    uint8_t *data = test_memory(SIZE);
    uint8_t *back = test_memory(SIZE);
    struct wal_blob *blob;
    uint64_t random = 7;
    uint64_t got = 0;

    struct kit_work work = kit_work_begin(0);

    for (int i = 0; i < SIZE; i++) {
        data[i] = (uint8_t)kit_random(&random);
    }
    kit_write_bytes(&work, "large", data, SIZE);
    kit_checkpoint(&work, "c", "large");
    kit_work_reopen(&work, 0);
    assert_ok(wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, NULL));
    assert_ok(wal_file_cursor_next(checkpoint, &file, NULL));
    assert_int_equal(file.size, SIZE);
    assert_ok(wal_blob_open(work.store, file.digest, &blob, NULL));
    assert_ok(wal_blob_read(blob, 0, back, SIZE, &got, NULL));
    assert_int_equal(got, SIZE);
    assert_memory_equal(data, back, SIZE);
    wal_blob_close(blob);
    wal_file_cursor_close(checkpoint);
}

KIT_TEST(checkpoint__counts_each_path_once)
{
    char paths[20000];

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "d/f", "1");
    kit_write(&work, "e", "2");
    snprintf(paths, sizeof(paths), "e d/f ./d//f %s/d/f %s/./e d/./f/", work.root, work.root);
    assert_int_equal(kit_checkpoint(&work, "c", paths).files, 2);
    assert_string_equal(kit_files(&work, work.session, "c"), "d/f=1 e=2");
}

KIT_TEST(checkpoint__explicit_root_overrides_the_working_directory)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};
    const struct wal_slice path = kit_text("f");
    char root[4200];

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "odd \xfe/f", "below");
    snprintf(root, sizeof(root), "%s/odd \xfe//", work.root);
    options.root = kit_text(root);
    options.id = kit_text("c");
    assert_ok(wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL));
    kit_work_reopen(&work, 0);
    assert_string_equal(kit_files(&work, work.session, "c"), "f=below");
    {
        struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
        struct wal_file_cursor *checkpoint;

        assert_ok(wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, NULL));
        assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
        root[strlen(root) - 2] = '\0';
        assert_slice(info.root, root);
        wal_file_cursor_close(checkpoint);
    }
}

/* --- adding -------------------------------------------------------------- */

KIT_TEST(checkpoint__first_state_of_a_path_is_kept)
{
    struct wal_checkpoint_info first;
    struct wal_checkpoint_info second;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "old");
    first = kit_checkpoint(&work, "c", "a new");
    kit_write(&work, "a", "newer");
    kit_write(&work, "b", "nearby");
    kit_write(&work, "new", "was not there");
    second = kit_checkpoint(&work, "c", "new a b");
    assert_string_equal(kit_files(&work, work.session, "c"), "a=old b=nearby new-");
    assert_int_equal(second.files, 3);
    assert_int_equal(second.bytes, 9);
    assert_int_equal(second.new_blobs, 2);
    assert_int_equal(second.created_ms, first.created_ms);
    assert_true(second.version > first.version);
}

KIT_TEST(checkpoint__duplicate_files_change_nothing)
{
    struct wal_checkpoint_info first;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "old");
    first = kit_checkpoint(&work, "c", "a");
    kit_write(&work, "a", "other");
    assert_int_equal(kit_checkpoint(&work, "c", "a").version, first.version);
    assert_int_equal(kit_checkpoint(&work, "c", "").version, first.version);
    assert_string_equal(kit_files(&work, work.session, "c"), "a=old");
}

/* --- many ---------------------------------------------------------------- */

KIT_TEST(checkpoints__are_listed_oldest_first)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    assert_string_equal(kit_checkpoints(work.session), "");
    kit_checkpoint(&work, "z", "a");
    kit_checkpoint(&work, "m", "a");
    kit_checkpoint(&work, "a", "a");
    kit_checkpoint(&work, "z", "b");
    assert_string_equal(kit_checkpoints(work.session), "z m a");
    assert_ok(wal_checkpoint_delete(work.session, kit_text("z"), NULL));
    assert_string_equal(kit_checkpoints(work.session), "m a");
    kit_checkpoint(&work, "z", "c");
    kit_work_reopen(&work, 0);
    assert_string_equal(kit_checkpoints(work.session), "m a z");
    assert_string_equal(kit_files(&work, work.session, "z"), "c-");
}

KIT_TEST(checkpoint__same_content_is_kept_once)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "same");
    kit_write(&work, "b", "same");
    kit_write(&work, "c", "same");
    assert_int_equal(kit_checkpoint(&work, "1", "a b").new_blobs, 1);
    assert_int_equal(kit_checkpoint(&work, "2", "a b c").new_blobs, 0);
}

/* --- on and off ---------------------------------------------------------- */

KIT_TEST(checkpoint__disabled_records_nothing)
{
    struct wal_checkpoint_info info;
    struct wal_session *fork;

    struct kit_work work = kit_work_begin(0);
    struct wal_session *source = work.session;

    kit_append(source, "e", NULL);
    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    assert_ok(wal_session_set_checkpointing(source, 0, NULL));
    kit_work_reopen(&work, 0);
    source = work.session;
    info = kit_checkpoint(&work, "d", "a no/../such");
    assert_int_equal(info.flags, WAL_CHECKPOINT_OFF);
    assert_int_equal(info.files, 0);
    assert_int_equal(info.id.size, 0);
    assert_string_equal(kit_checkpoints(source), "c");
    assert_string_equal(kit_files(&work, source, "c"), "a=1");
    fork = kit_fork(source, NULL, "f");
    assert_ok(wal_session_set_checkpointing(source, 7, NULL));
    assert_int_equal(kit_checkpoint(&work, "d", "a").flags, 0);
    work.session = fork;
    assert_int_equal(kit_checkpoint(&work, "d", "a").flags, WAL_CHECKPOINT_OFF);
    work.session = source;
}

/* --- documents ----------------------------------------------------------- */

KIT_TEST(checkpoint__is_not_listed_as_a_document)
{
    static const char key[] = "\0checkpoint/c";
    const struct wal_slice slice = {key, sizeof(key) - 1};
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_doc doc = {.struct_size = sizeof(doc), .key = slice};
    struct wal_batch batch = {.struct_size = sizeof(batch), .documents = &doc, .document_count = 1};
    struct wal_doc_cursor *docs;

    struct kit_work work = kit_work_begin(0);

    kit_checkpoint(&work, "c", "a");
    doc.value = kit_text("{}");
    assert_fails(wal_doc_put(work.store, work.session, &doc, NULL, kit_error()), WAL_EINVAL,
                 "reserved");
    assert_int_equal(wal_doc_put(work.store, NULL, &doc, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_delete(work.store, work.session, &doc, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_batch_commit(work.session, &batch, NULL, NULL, NULL), WAL_EINVAL);
    assert_ok(wal_doc_cursor_open(work.store, work.session, &options, &docs, NULL));
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_END);
    assert_int_equal(wal_doc_cursor_get(docs, slice, 0, &doc, NULL), WAL_EINVAL);
    wal_doc_cursor_close(docs);
    options.prefix = (struct wal_slice){key, 1};
    assert_int_equal(wal_doc_cursor_open(work.store, work.session, &options, &docs, NULL),
                     WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "c");
}

/* --- other stores -------------------------------------------------------- */

KIT_TEST(checkpoint__in_a_store_in_memory)
{
    struct kit_work work = kit_work_begin(WAL_OPEN_MEMORY);

    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    assert_string_equal(kit_files(&work, work.session, "c"), "a=1");
    kit_write(&work, "a", "2\n");
    assert_string_equal(kit_diff(work.session, "c", ""), "a +1 -1");
}

KIT_TEST(checkpoint__persistence_off_records_nothing)
{
    struct wal_file_change_cursor *changes;
    struct wal_file_cursor *checkpoint;
    struct wal_checkpoint_info info;

    struct kit_work work = kit_work_begin(WAL_OPEN_NOOP);

    kit_write(&work, "a", "1");
    info = kit_checkpoint(&work, "c", "a");
    assert_int_equal(info.files, 0);
    assert_int_equal(info.flags, 0);
    assert_string_equal(kit_checkpoints(work.session), "");
    assert_int_equal(wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, NULL),
                     WAL_ENOTFOUND);
    assert_ok(wal_checkpoint_delete(work.session, kit_text("c"), NULL));
    assert_ok(wal_session_set_checkpointing(work.session, 0, NULL));
    assert_int_equal(
        wal_checkpoint_diff(work.session, kit_text("c"), kit_text("d"), &changes, NULL),
        WAL_ENOTFOUND);
    assert_ok(wal_session_diff(work.session, &changes, NULL));
    assert_string_equal(kit_changes(changes), "");
    assert_int_equal(kit_try_checkpoint(&work, "c", "../x", kit_error()), WAL_EOUTSIDE);
}

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
    kit_checkpoint(&work, "1", "changed gone mode same binary link new turned only");
    kit_write(&work, "changed", "1\ntwo\n3\n4\n");
    assert_int_equal(unlink(kit_path(&work, "gone")), 0);
    assert_int_equal(chmod(kit_path(&work, "mode"), 0700), 0);
    kit_write_bytes(&work, "binary", "\0b", 2);
    assert_int_equal(unlink(kit_path(&work, "link")), 0);
    assert_int_equal(symlink("newer", kit_path(&work, "link")), 0);
    kit_write(&work, "new", "n\n");
    assert_int_equal(unlink(kit_path(&work, "turned")), 0);
    assert_int_equal(symlink("a", kit_path(&work, "turned")), 0);
    kit_checkpoint(&work, "2", "changed gone mode same binary link new turned other");
    assert_string_equal(kit_diff(work.session, "1", "2"),
                        "binary +0 -0 binary, changed +2 -1, gone +0 -2, "
                        "link +1 -1, mode +0 -0 mode same, new +1 -0, "
                        "turned +1 -3");
    assert_string_equal(kit_diff(work.session, "2", "1"),
                        "binary +0 -0 binary, changed +1 -2, gone +2 -0, "
                        "link +1 -1, mode +0 -0 mode same, new +0 -1, "
                        "turned +3 -1");
    assert_string_equal(kit_diff(work.session, "1", "1"), "");
}

KIT_TEST(diff__of_a_binary_file_s_mode_is_binary)
{
    struct kit_work work = kit_work_begin(0);

    kit_write_bytes(&work, "b", "\0a", 2);
    kit_checkpoint(&work, "1", "b");
    assert_int_equal(chmod(kit_path(&work, "b"), 0755), 0);
    assert_string_equal(kit_diff(work.session, "1", ""), "b +0 -0 binary mode same");
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
    assert_ok(wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL));
    assert_ok(wal_session_diff(work.session, &changes, NULL));
    snprintf(expected, sizeof(expected), "f +1 -0, %s/g +1 -1", work.root);
    assert_string_equal(kit_changes(changes), expected);
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
}

/* What the last create or import reports. */
static struct wal_error failure = {.struct_size = sizeof(failure)};

/* The linked entry of a checkpoint, as a reader and the list have it; until the next call. */
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

static enum wal_status create(struct kit_work *work, const char *id, const char *entry,
                              uint32_t flags)
{
    const struct wal_slice paths[] = {kit_text("a")};
    const struct wal_checkpoint_options options = {.struct_size = sizeof(options),
                                                   .id = kit_text(id),
                                                   .entry_id = kit_text(entry),
                                                   .flags = flags};

    return wal_checkpoint_create(work->session, paths, 1, &options, NULL, &failure);
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
}

KIT_TEST(checkpoint_entry__of_imported_files)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_checkpoint_options options = {.struct_size = sizeof(options), .id = kit_text("i")};

    kit_append_all(work.session, "e1 e2");
    assert_ok(wal_checkpoint_import(work.session, NULL, 0, &options, NULL, &failure));
    assert_string_equal(entry_of(work.session, "i"), "e2");
    options.id = kit_text("j");
    options.entry_id = kit_text("e1");
    assert_ok(wal_checkpoint_import(work.session, NULL, 0, &options, NULL, &failure));
    assert_string_equal(entry_of(work.session, "j"), "e1");
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
    assert_error(&failure, WAL_EEXISTS, "another entry");
    assert_string_equal(failure.actual, "e1");
    assert_string_equal(entry_of(work.session, "c"), "e1");
}

KIT_TEST(checkpoint_entry__unknown_is_refused)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_entry aside = kit_entry("aside", NULL, "1");

    aside.stream = 3;
    assert_ok(wal_append(work.session, &aside, 1, NULL, NULL, NULL));
    assert_int_equal(create(&work, "c", "e1", 0), WAL_ENOTFOUND);
    assert_error(&failure, WAL_ENOTFOUND, "e1");
    assert_int_equal(create(&work, "c", "aside", 0), WAL_ENOTFOUND);
    kit_append_all(work.session, "e1");
    assert_int_equal(create(&work, "c", "e1", WAL_CHECKPOINT_UNLINKED), WAL_EINVAL);
    assert_int_equal(create(&work, "c", "", WAL_CHECKPOINT_OFF), WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
}

static void put_document(struct wal_session *session, const char *id, const char *json)
{
    uint8_t key[WAL__CHECKPOINT_KEY_MAX];
    const struct wal__span span = {(const uint8_t *)id, strlen(id)};
    const struct wal__span value = {(const uint8_t *)json, strlen(json)};

    assert_ok(wal__reserved_doc_put(session, wal__checkpoint_key(span, key), value,
                                    WAL__DOC_ANY_VERSION, NULL, &failure));
}

/* The document of an older version has no such member; another one has a member that this version
 * does not know. */
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
        (void)snprintf(json, sizeof(json), DOCUMENT ",\"entry\":%s}", damaged[i]);
        put_document(work.session, "c", json);
        assert_ok(wal_checkpoint_cursor_open(work.session, &list, NULL));
        assert_int_equal(wal_checkpoint_cursor_next(list, &info, NULL), WAL_ECORRUPT);
        wal_checkpoint_cursor_close(list);
    }
}

static struct wal_file file_of(const struct kit_work *work, const char *path, uint32_t kind,
                               const char *content)
{
    struct wal_file file = {.struct_size = sizeof(file), .kind = kind, .path = kit_text(path)};

    if (content != NULL) {
        assert_ok(wal_blob_put(work->store, kit_text(content), file.digest, NULL));
    }
    return file;
}

static enum wal_status import(struct kit_work *work, const char *id, const struct wal_file *files,
                              uint64_t count)
{
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options), .id = kit_text(id), .created_ms = 1234567890123};

    failure = KIT_ERROR;
    return wal_checkpoint_import(work->session, files, count, &options, NULL, &failure);
}

KIT_TEST(import__records_the_given_files)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file_cursor *checkpoint;

    struct kit_work work = kit_work_begin(0);
    char absolute[5000];
    struct wal_file files[5];

    snprintf(absolute, sizeof(absolute), "%s//x/./y", work.root);
    files[0] = file_of(&work, "run.sh", WAL_FILE_REGULAR, "#!/bin/sh\n");
    files[0].mode = 0755;
    files[1] = file_of(&work, "none", WAL_FILE_ABSENT, NULL);
    files[2] = file_of(&work, "link", WAL_FILE_SYMLINK, "run.sh");
    files[3] = file_of(&work, absolute, WAL_FILE_REGULAR, "deep");
    files[4] = file_of(&work, "x/y", WAL_FILE_REGULAR, "deep");
    assert_ok(import(&work, "c", files, 5));
    kit_work_reopen(&work, 0);
    assert_string_equal(kit_files(&work, work.session, "c"),
                        "link->run.sh none- run.sh(755)=#!/bin/sh\n x/y=deep");
    assert_ok(wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, NULL));
    assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
    assert_int_equal(info.created_ms, 1234567890123);
    assert_int_equal(info.bytes, 10 + 6 + 4);
    wal_file_cursor_close(checkpoint);
}

KIT_TEST(import__can_be_rewound_to)
{
    struct wal_rewind_result info = {.struct_size = sizeof(info)};
    struct stat stat_now;

    struct kit_work work = kit_work_begin(0);
    const struct wal_file files[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "1\n2\n"),
        file_of(&work, "b", WAL_FILE_ABSENT, NULL),
    };

    kit_write(&work, "a", "2\n");
    kit_write(&work, "b", "x\n");
    assert_ok(import(&work, "c", files, 2));
    assert_ok(wal_rewind(work.session, kit_text("c"), NULL, &info, NULL, NULL));
    assert_int_equal(info.can_rewind, 1);
    assert_int_equal(info.files_changed, 2);
    assert_int_equal(info.insertions, 1);
    assert_int_equal(info.deletions, 1);
    assert_int_equal(stat(kit_path(&work, "a"), &stat_now), 0);
    assert_int_equal(stat_now.st_size, 4);
    assert_int_equal(stat_now.st_mode & 07777, 0644);
    assert_int_equal(stat(kit_path(&work, "b"), &stat_now), -1);
}

/* Imported files have no times, so the file on disk is always read. */
KIT_TEST(import__is_never_reused_for_files_on_disk)
{
    struct kit_work work = kit_work_begin(0);
    const struct wal_file file = file_of(&work, "a", WAL_FILE_REGULAR, "given");

    kit_write(&work, "a", "disk");
    kit_wait_past_mtime();
    assert_ok(import(&work, "c", &file, 1));
    kit_checkpoint(&work, "d", "a");
    assert_string_equal(kit_files(&work, work.session, "d"), "a=disk");
}

KIT_TEST(import__first_state_of_a_path_is_kept)
{
    struct kit_work work = kit_work_begin(0);
    const struct wal_file first = file_of(&work, "a", WAL_FILE_REGULAR, "first");
    const struct wal_file second[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "second"),
        file_of(&work, "b", WAL_FILE_REGULAR, "second"),
    };

    assert_ok(import(&work, "c", &first, 1));
    assert_ok(import(&work, "c", second, 2));
    assert_string_equal(kit_files(&work, work.session, "c"), "a=first b=second");
    assert_string_equal(kit_checkpoints(work.session), "c");
}

KIT_TEST(import__missing_content_is_refused)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_file files[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "there"),
        file_of(&work, "b", WAL_FILE_REGULAR, NULL),
    };

    memset(files[1].digest, 7, sizeof(files[1].digest));
    assert_int_equal(import(&work, "c", files, 2), WAL_ENOTFOUND);
    assert_string_equal(failure.file, "b");
    assert_string_equal(kit_checkpoints(work.session), "");
    files[1].kind = WAL_FILE_ABSENT; /* has none, whatever the digest */
    assert_ok(import(&work, "c", files, 2));
    assert_string_equal(kit_files(&work, work.session, "c"), "a=there b-");
}

KIT_TEST(import__hostile_paths_are_refused)
{
    static const struct {
        const char *path;
        enum wal_status status;
    } cases[] = {
        {"../a", WAL_EOUTSIDE}, {"a/../../b", WAL_EOUTSIDE}, {"/etc/passwd", WAL_EOUTSIDE},
        {"", WAL_EINVAL},       {".", WAL_ENOTFILE},
    };

    struct kit_work work = kit_work_begin(0);
    struct wal_file files[2] = {file_of(&work, "a", WAL_FILE_REGULAR, "a")};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        files[1] = files[0];
        files[1].path = kit_text(cases[i].path);
        assert_int_equal(import(&work, "c", files, 2), cases[i].status);
        assert_string_equal(failure.file, cases[i].path);
    }
    files[1].path = (struct wal_slice){"a\0b", 3};
    assert_int_equal(import(&work, "c", files, 2), WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
}

KIT_TEST(import__contradictions_are_refused)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_file files[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "one"),
        file_of(&work, "./a", WAL_FILE_REGULAR, "two"),
    };
    const struct wal_file empty = file_of(&work, "l", WAL_FILE_SYMLINK, "");

    assert_int_equal(import(&work, "c", files, 2), WAL_EINVAL);
    assert_string_equal(failure.file, "a");
    files[1] = files[0];
    files[1].mode = 0755;
    assert_int_equal(import(&work, "c", files, 2), WAL_EINVAL);
    files[0].kind = 3;
    assert_int_equal(import(&work, "c", files, 1), WAL_EINVAL);
    files[0].kind = WAL_FILE_REGULAR;
    files[0].mode = 010644;
    assert_int_equal(import(&work, "c", files, 1), WAL_EINVAL);
    files[0].mode = 0;
    files[0].struct_size = 8;
    assert_int_equal(import(&work, "c", files, 1), WAL_EINVAL);
    assert_int_equal(import(&work, "c", NULL, 1), WAL_EINVAL);
    assert_int_equal(import(&work, "c", &empty, 1), WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
    assert_ok(import(&work, "c", NULL, 0));
    assert_string_equal(kit_checkpoints(work.session), "c");
}

KIT_TEST(import__disabled_records_nothing)
{
    struct kit_work work = kit_work_begin(0);
    const struct wal_file file = file_of(&work, "a", WAL_FILE_REGULAR, "a");

    assert_ok(wal_session_set_checkpointing(work.session, 0, NULL));
    assert_ok(import(&work, "c", &file, 1));
    assert_string_equal(kit_checkpoints(work.session), "");
}

/* Refused with this status and path; nothing was made. */
static void refuse(struct kit_work *work, const char *paths, enum wal_status status,
                   const char *file)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(kit_try_checkpoint(work, "c", paths, &error), status);
    assert_int_equal(error.status, status);
    assert_string_equal(error.file, file);
    assert_true(error.text[0] != '\0');
    assert_string_equal(kit_checkpoints(work->session), "");
}

KIT_TEST(checkpoint__path_out_of_the_root_is_refused)
{
    char inside[8192];

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    refuse(&work, "a ../work/a", WAL_EOUTSIDE, "../work/a");
    refuse(&work, "a b/../a", WAL_EOUTSIDE, "b/../a");
    refuse(&work, "a /etc/passwd", WAL_EOUTSIDE, "/etc/passwd");
    snprintf(inside, sizeof(inside), "%sside/a", work.root);
    refuse(&work, inside, WAL_EOUTSIDE, inside);
    refuse(&work, ".", WAL_ENOTFILE, ".");
    refuse(&work, work.root, WAL_ENOTFILE, work.root);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_true(strlen(path) < sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(close(fd), 0);
}

KIT_TEST(checkpoint__special_files_are_refused)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "d/a", "1");
    kit_write(&work, "e/a", "1");
    assert_int_equal(mkfifo(kit_path(&work, "pipe"), 0600), 0);
    refuse(&work, "d/a e", WAL_ENOTFILE, "e");
    refuse(&work, "d/a pipe", WAL_ENOTFILE, "pipe");
    make_socket(kit_path(&work, "socket"));
    refuse(&work, "d/a socket", WAL_ENOTFILE, "socket");
}

/* Run by a superuser, who may read anything, it says so instead. */
KIT_TEST(checkpoint__unreadable_file_is_refused)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    kit_write(&work, "locked/b", "2");
    assert_int_equal(chmod(kit_path(&work, "a"), 0), 0);
    if (open(kit_path(&work, "a"), O_RDONLY) >= 0) {
        assert_int_equal(geteuid(), 0);
        assert_int_equal(kit_checkpoint(&work, "c", "a").files, 1);
        kit_work_end(&work);
        return;
    }
    refuse(&work, "a", WAL_EACCESS, "a");
    assert_int_equal(chmod(kit_path(&work, "locked"), 0), 0);
    refuse(&work, "locked/b", WAL_EACCESS, "locked/b");
    assert_int_equal(chmod(kit_path(&work, "locked"), 0755), 0);
}

KIT_TEST(checkpoint__invalid_arguments_are_refused)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};
    struct wal_slice path = kit_text("a");
    struct wal_error error = KIT_ERROR;
    char id[257];

    struct kit_work work = kit_work_begin(0);

    memset(id, 'x', 256);
    id[256] = '\0';
    assert_int_equal(wal_checkpoint_create(NULL, &path, 1, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_checkpoint_create(work.session, NULL, 1, NULL, NULL, NULL), WAL_EINVAL);
    options.struct_size--;
    assert_int_equal(wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
                     WAL_EINVAL);
    options.struct_size++;
    options.id = kit_text(id);
    assert_int_equal(wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
                     WAL_ETOOBIG);
    options.id = kit_text("\xff");
    assert_int_equal(wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
                     WAL_EINVAL);
    options.id = kit_text("c");
    options.root = kit_text("relative");
    assert_fails(wal_checkpoint_create(work.session, &path, 1, &options, NULL, kit_error()),
                 WAL_EINVAL, "absolute");
    options.root = kit_text("/no/such/place");
    error = KIT_ERROR;
    assert_int_equal(wal_checkpoint_create(work.session, &path, 1, &options, NULL, &error),
                     WAL_ENOTFOUND);
    assert_string_equal(error.file, "/no/such/place");
    options.root = kit_text("");
    path = kit_text("");
    assert_int_equal(wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
                     WAL_EINVAL);
    path.data = "a\0b";
    path.size = 3;
    assert_int_equal(wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
                     WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
}

KIT_TEST(checkpoint__too_long_path_is_refused)
{
    char path[9000];

    struct kit_work work = kit_work_begin(0);

    for (size_t i = 0; i < sizeof(path); i++) {
        path[i] = i % 200 == 199 ? '/' : 'p';
    }
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(kit_try_checkpoint(&work, "c", path, NULL), WAL_ETOOBIG);
    path[4097] = '\0';
    assert_int_equal(kit_try_checkpoint(&work, "c", path, NULL), WAL_ETOOBIG);
}

KIT_TEST(checkpoint__of_a_session_without_a_root_is_refused)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_session *with = work.session;

    work.session = kit_create(work.store, "bare");
    assert_fails(kit_try_checkpoint(&work, "c", "a", kit_error()), WAL_EINVAL, "no root");
    wal_session_close(work.session);
    work.session = with;
}

KIT_TEST(checkpoint__adding_with_another_root_is_refused)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};
    const struct wal_slice path = kit_text("a");
    struct wal_error error = KIT_ERROR;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    options.id = kit_text("c");
    options.root = kit_text("/");
    assert_int_equal(wal_checkpoint_create(work.session, &path, 1, &options, NULL, &error),
                     WAL_EEXISTS);
    assert_string_equal(error.actual, work.root);
    assert_string_equal(kit_files(&work, work.session, "c"), "a=1");
}

/* Changes a byte of every occurrence of the text in the blob stream. */
static void damage(const char *text)
{
    size_t size = strlen(text);
    int changed = 0;
    FILE *pipe = popen("find store/pack -type f", "r");
    char path[4096];

    assert_non_null(pipe);
    while (fgets(path, sizeof(path), pipe) != NULL) {
        static char bytes[8 << 20];
        FILE *file;
        size_t got;

        path[strcspn(path, "\n")] = '\0';
        file = fopen(path, "r+b");
        assert_non_null(file);
        got = fread(bytes, 1, sizeof(bytes), file);
        for (size_t i = 0; i + size <= got; i++) {
            if (memcmp(bytes + i, text, size) == 0) {
                assert_int_equal(fseek(file, (long)i, SEEK_SET), 0);
                assert_int_equal(fputc('#', file), '#');
                changed++;
            }
        }
        assert_int_equal(fclose(file), 0);
    }
    assert_int_equal(pclose(pipe), 0);
    assert_true(changed > 0);
}

KIT_TEST(checkpoint__damaged_content_is_reported_with_its_file)
{
    struct wal_file_change_cursor *changes = NULL;
    struct wal_error error = KIT_ERROR;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "the text of file a\n");
    kit_write(&work, "b", "another\n");
    kit_checkpoint(&work, "c", "a b");
    kit_work_end(&work);
    damage("the text of file a");
    work.store = kit_open("store", 0);
    work.session = kit_session(work.store, "s");
    kit_write(&work, "a", "new\n");
    assert_int_equal(
        wal_checkpoint_diff(work.session, kit_text("c"), kit_text(""), &changes, &error),
        WAL_ECORRUPT);
    assert_error(&error, WAL_ECORRUPT, "\"a\"");
    assert_non_null(strstr(error.file, "pack"));
    assert_null(changes);
    assert_string_equal(kit_checkpoints(work.session), "c");
}

/* It does not prevent the next checkpoint either. */
KIT_TEST(checkpoint__damaged_list_is_reported)
{
    struct wal_file_cursor *checkpoint = NULL;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    kit_work_end(&work);
    damage("AGWALFIL");
    work.store = kit_open("store", 0);
    work.session = kit_session(work.store, "s");
    assert_fails(wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, kit_error()),
                 WAL_ECORRUPT, "list of files");
    assert_null(checkpoint);
    assert_int_equal(kit_try_checkpoint(&work, "c", "b", NULL), WAL_ECORRUPT);
    kit_checkpoint(&work, "d", "a");
    assert_string_equal(kit_files(&work, work.session, "d"), "a=1");
}

KIT_TEST(checkpoint__read_only_store_is_refused)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    kit_work_reopen(&work, WAL_OPEN_READ_ONLY);
    assert_int_equal(kit_try_checkpoint(&work, "d", "a", kit_error()), WAL_EREADONLY);
    assert_int_equal(wal_session_set_checkpointing(work.session, 0, NULL), WAL_EREADONLY);
    assert_int_equal(wal_checkpoint_delete(work.session, kit_text("c"), NULL), WAL_EREADONLY);
    assert_string_equal(kit_files(&work, work.session, "c"), "a=1");
    assert_string_equal(kit_diff(work.session, "c", ""), "");
}
