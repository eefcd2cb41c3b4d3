/*
 * test_checkpoint_import.c - tests of checkpoints whose files are given by the
 * caller, not read from disk (SPEC.md 5.13).
 */
#include "agentwal/blob.h"
#include "tests/lib/kit/checkpoint_kit.h"

#include <sys/stat.h>

static struct wal_file file_of(const struct kit_work *work, const char *path,
                               uint32_t kind, const char *content)
{
    struct wal_file file = {
        .struct_size = sizeof(file), .kind = kind, .path = kit_text(path)};

    if (content != NULL) {
        assert_ok(
            wal_blob_put(work->store, kit_text(content), file.digest, NULL));
    }
    return file;
}

static enum wal_status import(struct kit_work *work, const char *id,
                              const struct wal_file *files, uint64_t count,
                              struct wal_error *error)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options),
                                             .id = kit_text(id),
                                             .created_ms = 1234567890123};

    *error = (struct wal_error){.struct_size = sizeof(*error)};
    return wal_checkpoint_import(work->session, files, count, &options, NULL,
                                 error);
}

KIT_TEST(import__records_the_given_files)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file_cursor *checkpoint;
    struct wal_error error;

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
    assert_ok(import(&work, "c", files, 5, &error));
    kit_work_reopen(&work, 0);
    assert_string_equal(kit_files(&work, work.session, "c"),
                        "link->run.sh none- run.sh(755)=#!/bin/sh\n x/y=deep");
    assert_ok(
        wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, NULL));
    assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
    assert_int_equal(info.created_ms, 1234567890123);
    assert_int_equal(info.bytes, 10 + 6 + 4);
    wal_file_cursor_close(checkpoint);
    kit_work_end(&work);
}

KIT_TEST(import__can_be_rewound_to)
{
    struct wal_rewind_result info = {.struct_size = sizeof(info)};
    struct wal_error error;
    struct stat stat_now;

    struct kit_work work = kit_work_begin(0);
    const struct wal_file files[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "1\n2\n"),
        file_of(&work, "b", WAL_FILE_ABSENT, NULL),
    };

    kit_write(&work, "a", "2\n");
    kit_write(&work, "b", "x\n");
    assert_ok(import(&work, "c", files, 2, &error));
    assert_ok(wal_rewind(work.session, kit_text("c"), NULL, &info, NULL, NULL));
    assert_int_equal(info.can_rewind, 1);
    assert_int_equal(info.files_changed, 2);
    assert_int_equal(info.insertions, 1);
    assert_int_equal(info.deletions, 1);
    assert_int_equal(stat(kit_path(&work, "a"), &stat_now), 0);
    assert_int_equal(stat_now.st_size, 4);
    assert_int_equal(stat_now.st_mode & 07777, 0644);
    assert_int_equal(stat(kit_path(&work, "b"), &stat_now), -1);
    kit_work_end(&work);
}

/* Imported files have no times, so the file on disk is always read. */
KIT_TEST(import__is_never_reused_for_files_on_disk)
{
    struct wal_error error;

    struct kit_work work = kit_work_begin(0);
    const struct wal_file file = file_of(&work, "a", WAL_FILE_REGULAR, "given");

    kit_write(&work, "a", "disk");
    kit_wait_past_mtime();
    assert_ok(import(&work, "c", &file, 1, &error));
    kit_checkpoint(&work, "d", "a");
    assert_string_equal(kit_files(&work, work.session, "d"), "a=disk");
    kit_work_end(&work);
}

KIT_TEST(import__first_state_of_a_path_is_kept)
{
    struct wal_error error;

    struct kit_work work = kit_work_begin(0);
    const struct wal_file first =
        file_of(&work, "a", WAL_FILE_REGULAR, "first");
    const struct wal_file second[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "second"),
        file_of(&work, "b", WAL_FILE_REGULAR, "second"),
    };

    assert_ok(import(&work, "c", &first, 1, &error));
    assert_ok(import(&work, "c", second, 2, &error));
    assert_string_equal(kit_files(&work, work.session, "c"),
                        "a=first b=second");
    assert_string_equal(kit_checkpoints(work.session), "c");
    kit_work_end(&work);
}

KIT_TEST(import__missing_content_is_refused)
{
    struct wal_error error;

    struct kit_work work = kit_work_begin(0);
    struct wal_file files[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "there"),
        file_of(&work, "b", WAL_FILE_REGULAR, NULL),
    };

    memset(files[1].digest, 7, sizeof(files[1].digest));
    assert_int_equal(import(&work, "c", files, 2, &error), WAL_ENOTFOUND);
    assert_string_equal(error.file, "b");
    assert_string_equal(kit_checkpoints(work.session), "");
    files[1].kind = WAL_FILE_ABSENT; /* has none, whatever the digest */
    assert_ok(import(&work, "c", files, 2, &error));
    assert_string_equal(kit_files(&work, work.session, "c"), "a=there b-");
    kit_work_end(&work);
}

KIT_TEST(import__hostile_paths_are_refused)
{
    static const struct {
        const char *path;
        enum wal_status status;
    } cases[] = {
        {"../a", WAL_EOUTSIDE},        {"a/../../b", WAL_EOUTSIDE},
        {"/etc/passwd", WAL_EOUTSIDE}, {"", WAL_EINVAL},
        {".", WAL_ENOTFILE},
    };
    struct wal_error error;

    struct kit_work work = kit_work_begin(0);
    struct wal_file files[2] = {file_of(&work, "a", WAL_FILE_REGULAR, "a")};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        files[1] = files[0];
        files[1].path = kit_text(cases[i].path);
        assert_int_equal(import(&work, "c", files, 2, &error), cases[i].status);
        assert_string_equal(error.file, cases[i].path);
    }
    files[1].path = (struct wal_slice){"a\0b", 3};
    assert_int_equal(import(&work, "c", files, 2, &error), WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
    kit_work_end(&work);
}

KIT_TEST(import__contradictions_are_refused)
{
    struct wal_error error;

    struct kit_work work = kit_work_begin(0);
    struct wal_file files[] = {
        file_of(&work, "a", WAL_FILE_REGULAR, "one"),
        file_of(&work, "./a", WAL_FILE_REGULAR, "two"),
    };
    const struct wal_file empty = file_of(&work, "l", WAL_FILE_SYMLINK, "");

    assert_int_equal(import(&work, "c", files, 2, &error), WAL_EINVAL);
    assert_string_equal(error.file, "a");
    files[1] = files[0];
    files[1].mode = 0755;
    assert_int_equal(import(&work, "c", files, 2, &error), WAL_EINVAL);
    files[0].kind = 3;
    assert_int_equal(import(&work, "c", files, 1, &error), WAL_EINVAL);
    files[0].kind = WAL_FILE_REGULAR;
    files[0].mode = 010644;
    assert_int_equal(import(&work, "c", files, 1, &error), WAL_EINVAL);
    files[0].mode = 0;
    files[0].struct_size = 8;
    assert_int_equal(import(&work, "c", files, 1, &error), WAL_EINVAL);
    assert_int_equal(import(&work, "c", NULL, 1, &error), WAL_EINVAL);
    assert_int_equal(import(&work, "c", &empty, 1, &error), WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
    assert_ok(import(&work, "c", NULL, 0, &error));
    assert_string_equal(kit_checkpoints(work.session), "c");
    kit_work_end(&work);
}

KIT_TEST(import__disabled_records_nothing)
{
    struct wal_error error;

    struct kit_work work = kit_work_begin(0);
    const struct wal_file file = file_of(&work, "a", WAL_FILE_REGULAR, "a");

    assert_ok(wal_session_set_checkpointing(work.session, 0, NULL));
    assert_ok(import(&work, "c", &file, 1, &error));
    assert_string_equal(kit_checkpoints(work.session), "");
    kit_work_end(&work);
}
