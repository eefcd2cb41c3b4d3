/*
 * test_checkpoint.c - tests of making, reading, listing and deleting
 * checkpoints (SPEC.md 5.13).
 */
#include "agentwal/blob.h"
#include "tests/lib/kit/checkpoint_kit.h"

#include <sys/stat.h>

KIT_TEST(checkpoint__records_every_kind_of_state)
{
    static const char expected[] =
        "a/b/deep=in a\n empty= link->run.sh none- odd\n\xff=x "
        "run.sh(755)=#!/bin/sh\n";
    struct wal_checkpoint_info info;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a/b/deep", "in a\n");
    kit_write(&work, "empty", "");
    kit_write(&work, "run.sh", "#!/bin/sh\n");
    kit_write(&work, "odd\n\xff", "x");
    assert_int_equal(chmod(kit_path(&work, "run.sh"), 0755), 0);
    assert_int_equal(symlink("run.sh", kit_path(&work, "link")), 0);
    info =
        kit_checkpoint(&work, "c", "link none run.sh empty a/b/deep odd\n\xff");
    assert_int_equal(info.files, 6);
    assert_int_equal(info.bytes, 5 + 10 + 1 + 6);
    assert_int_equal(info.new_blobs, 5);
    assert_true(info.new_bytes > 0);
    assert_string_equal(kit_files(&work, work.session, "c"), expected);
    kit_work_reopen(&work, 0);
    assert_string_equal(kit_files(&work, work.session, "c"), expected);
    kit_work_end(&work);
}

KIT_TEST(checkpoint__without_paths_is_empty)
{
    struct kit_work work = kit_work_begin(0);
    struct wal_checkpoint_info info = kit_checkpoint(&work, NULL, "");

    assert_int_equal(info.files, 0);
    assert_int_equal(info.id.size, 36);
    kit_work_end(&work);
}

KIT_TEST(checkpoint__large_and_binary_content)
{
    enum {
        SIZE = 3 * 1024 * 1024 + 77
    };
    struct wal_file file = {.struct_size = sizeof(file)};
    struct wal_file_cursor *checkpoint;
    uint8_t *data = malloc(SIZE);
    uint8_t *back = malloc(SIZE);
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
    assert_ok(
        wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, NULL));
    assert_ok(wal_file_cursor_next(checkpoint, &file, NULL));
    assert_int_equal(file.size, SIZE);
    assert_ok(wal_blob_open(work.store, file.digest, &blob, NULL));
    assert_ok(wal_blob_read(blob, 0, back, SIZE, &got, NULL));
    assert_int_equal(got, SIZE);
    assert_memory_equal(data, back, SIZE);
    wal_blob_close(blob);
    wal_file_cursor_close(checkpoint);
    kit_work_end(&work);
    free(data);
    free(back);
}

KIT_TEST(checkpoint__counts_each_path_once)
{
    char paths[20000];

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "d/f", "1");
    kit_write(&work, "e", "2");
    snprintf(paths, sizeof(paths), "e d/f ./d//f %s/d/f %s/./e d/./f/",
             work.root, work.root);
    assert_int_equal(kit_checkpoint(&work, "c", paths).files, 2);
    assert_string_equal(kit_files(&work, work.session, "c"), "d/f=1 e=2");
    kit_work_end(&work);
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
    assert_ok(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL));
    kit_work_reopen(&work, 0);
    assert_string_equal(kit_files(&work, work.session, "c"), "f=below");
    {
        struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
        struct wal_file_cursor *checkpoint;

        assert_ok(wal_file_cursor_open(work.session, kit_text("c"), &checkpoint,
                                       NULL));
        assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
        root[strlen(root) - 2] = '\0';
        assert_slice(info.root, root);
        wal_file_cursor_close(checkpoint);
    }
    kit_work_end(&work);
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
    assert_string_equal(kit_files(&work, work.session, "c"),
                        "a=old b=nearby new-");
    assert_int_equal(second.files, 3);
    assert_int_equal(second.bytes, 9);
    assert_int_equal(second.new_blobs, 2);
    assert_int_equal(second.created_ms, first.created_ms);
    assert_true(second.version > first.version);
    kit_work_end(&work);
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
    kit_work_end(&work);
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
    kit_work_end(&work);
}

KIT_TEST(checkpoint__same_content_is_kept_once)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "same");
    kit_write(&work, "b", "same");
    kit_write(&work, "c", "same");
    assert_int_equal(kit_checkpoint(&work, "1", "a b").new_blobs, 1);
    assert_int_equal(kit_checkpoint(&work, "2", "a b c").new_blobs, 0);
    kit_work_end(&work);
}

KIT_TEST(checkpoint__of_a_fork_is_separate)
{
    struct wal_session *fork;

    struct kit_work work = kit_work_begin(0);
    struct wal_session *source = work.session;

    kit_append(source, "e", NULL);
    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    fork = kit_fork(source, NULL, "f");
    kit_checkpoint(&work, "later", "a");
    assert_string_equal(kit_checkpoints(fork), "c");
    work.session = fork;
    kit_write(&work, "b", "2");
    kit_checkpoint(&work, "c", "b");
    kit_checkpoint(&work, "own", "b");
    assert_string_equal(kit_checkpoints(fork), "c own");
    assert_string_equal(kit_files(&work, fork, "c"), "a=1 b=2");
    assert_string_equal(kit_files(&work, source, "c"), "a=1");
    assert_string_equal(kit_checkpoints(source), "c later");
    assert_ok(wal_checkpoint_delete(source, kit_text("c"), NULL));
    assert_string_equal(kit_files(&work, fork, "c"), "a=1 b=2");
    wal_session_close(fork);
    work.session = source;
    kit_work_end(&work);
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
    wal_session_close(fork);
    kit_work_end(&work);
}

/* --- documents ----------------------------------------------------------- */

KIT_TEST(checkpoint__is_not_listed_as_a_document)
{
    static const char key[] = "\0checkpoint/c";
    const struct wal_slice slice = {key, sizeof(key) - 1};
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_doc doc = {.struct_size = sizeof(doc), .key = slice};
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &doc, .document_count = 1};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs;

    struct kit_work work = kit_work_begin(0);

    kit_checkpoint(&work, "c", "a");
    doc.value = kit_text("{}");
    assert_int_equal(wal_doc_put(work.store, work.session, &doc, NULL, &error),
                     WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "reserved");
    assert_int_equal(wal_doc_put(work.store, NULL, &doc, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_doc_delete(work.store, work.session, &doc, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_batch_commit(work.session, &batch, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_ok(
        wal_doc_cursor_open(work.store, work.session, &options, &docs, NULL));
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_END);
    assert_int_equal(wal_doc_cursor_get(docs, slice, 0, &doc, NULL),
                     WAL_EINVAL);
    wal_doc_cursor_close(docs);
    options.prefix = (struct wal_slice){key, 1};
    assert_int_equal(
        wal_doc_cursor_open(work.store, work.session, &options, &docs, NULL),
        WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "c");
    kit_work_end(&work);
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
    kit_work_end(&work);
}

KIT_TEST(checkpoint__persistence_off_records_nothing)
{
    struct wal_error error = KIT_ERROR;
    struct wal_file_change_cursor *changes;
    struct wal_file_cursor *checkpoint;
    struct wal_checkpoint_info info;

    struct kit_work work = kit_work_begin(WAL_OPEN_NOOP);

    kit_write(&work, "a", "1");
    info = kit_checkpoint(&work, "c", "a");
    assert_int_equal(info.files, 0);
    assert_int_equal(info.flags, 0);
    assert_string_equal(kit_checkpoints(work.session), "");
    assert_int_equal(
        wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, NULL),
        WAL_ENOTFOUND);
    assert_ok(wal_checkpoint_delete(work.session, kit_text("c"), NULL));
    assert_ok(wal_session_set_checkpointing(work.session, 0, NULL));
    assert_int_equal(wal_checkpoint_diff(work.session, kit_text("c"),
                                         kit_text("d"), &changes, NULL),
                     WAL_ENOTFOUND);
    assert_ok(wal_session_diff(work.session, &changes, NULL));
    assert_string_equal(kit_changes(changes), "");
    assert_int_equal(kit_try_checkpoint(&work, "c", "../x", &error),
                     WAL_EOUTSIDE);
    kit_work_end(&work);
}
