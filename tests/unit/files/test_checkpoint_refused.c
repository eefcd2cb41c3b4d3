/*
 * test_checkpoint_refused.c - bad input of checkpoints: each has a separate
 * status and names the path, and no checkpoint is made (SPEC.md 5.13).
 */
#include "tests/lib/kit/checkpoint_kit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Refused with this status and path; nothing was made. */
static void refuse(struct kit_work *work, const char *paths,
                   enum wal_status status, const char *file)
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
    kit_work_end(&work);
}

KIT_TEST(checkpoint__path_through_a_link_is_refused)
{
    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "d/a", "1");
    assert_int_equal(symlink("d", kit_path(&work, "in")), 0);
    assert_int_equal(symlink("/etc", kit_path(&work, "out")), 0);
    refuse(&work, "d/a in/a", WAL_EOUTSIDE, "in/a");
    refuse(&work, "d/a out/passwd", WAL_EOUTSIDE, "out/passwd");
    kit_work_end(&work);
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
    assert_int_equal(mkfifo(kit_path(&work, "pipe"), 0600), 0);
    refuse(&work, "d/a d", WAL_ENOTFILE, "d");
    refuse(&work, "d/a pipe", WAL_ENOTFILE, "pipe");
    make_socket(kit_path(&work, "socket"));
    refuse(&work, "d/a socket", WAL_ENOTFILE, "socket");
    kit_work_end(&work);
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
    kit_work_end(&work);
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
    assert_int_equal(wal_checkpoint_create(NULL, &path, 1, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(
        wal_checkpoint_create(work.session, NULL, 1, NULL, NULL, NULL),
        WAL_EINVAL);
    options.struct_size--;
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
        WAL_EINVAL);
    options.struct_size++;
    options.id = kit_text(id);
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
        WAL_ETOOBIG);
    options.id = kit_text("\xff");
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
        WAL_EINVAL);
    options.id = kit_text("c");
    options.root = kit_text("relative");
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, &error),
        WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "absolute");
    options.root = kit_text("/no/such/place");
    error = KIT_ERROR;
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, &error),
        WAL_ENOTFOUND);
    assert_string_equal(error.file, "/no/such/place");
    options.root = kit_text("");
    path = kit_text("");
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
        WAL_EINVAL);
    path.data = "a\0b";
    path.size = 3;
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, NULL),
        WAL_EINVAL);
    assert_string_equal(kit_checkpoints(work.session), "");
    kit_work_end(&work);
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
    kit_work_end(&work);
}

KIT_TEST(checkpoint__of_a_session_without_a_root_is_refused)
{
    struct wal_error error = KIT_ERROR;

    struct kit_work work = kit_work_begin(0);
    struct wal_session *with = work.session;

    work.session = kit_create(work.store, "bare");
    assert_int_equal(kit_try_checkpoint(&work, "c", "a", &error), WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "no root");
    wal_session_close(work.session);
    work.session = with;
    kit_work_end(&work);
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
    assert_int_equal(
        wal_checkpoint_create(work.session, &path, 1, &options, NULL, &error),
        WAL_EEXISTS);
    assert_string_equal(error.actual, work.root);
    assert_string_equal(kit_files(&work, work.session, "c"), "a=1");
    kit_work_end(&work);
}

KIT_TEST(checkpoint__unknown_id_is_not_found)
{
    struct wal_file_cursor *checkpoint;
    struct wal_file_change_cursor *changes;
    struct wal_error error = KIT_ERROR;

    struct kit_work work = kit_work_begin(0);

    kit_checkpoint(&work, "c", "a");
    assert_int_equal(
        wal_file_cursor_open(work.session, kit_text("d"), &checkpoint, &error),
        WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "\"d\"");
    assert_int_equal(
        wal_file_cursor_open(work.session, kit_text(""), &checkpoint, NULL),
        WAL_EINVAL);
    assert_int_equal(wal_checkpoint_delete(work.session, kit_text("d"), &error),
                     WAL_ENOTFOUND);
    assert_ok(wal_checkpoint_delete(work.session, kit_text("c"), NULL));
    assert_int_equal(wal_checkpoint_delete(work.session, kit_text("c"), NULL),
                     WAL_ENOTFOUND);
    assert_int_equal(wal_checkpoint_diff(work.session, kit_text("c"),
                                         kit_text("c"), &changes, NULL),
                     WAL_ENOTFOUND);
    kit_work_end(&work);
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
    assert_int_equal(wal_checkpoint_diff(work.session, kit_text("c"),
                                         kit_text(""), &changes, &error),
                     WAL_ECORRUPT);
    assert_error(&error, WAL_ECORRUPT, "\"a\"");
    assert_non_null(strstr(error.file, "pack"));
    assert_null(changes);
    assert_string_equal(kit_checkpoints(work.session), "c");
    kit_work_end(&work);
}

/* It does not prevent the next checkpoint either. */
KIT_TEST(checkpoint__damaged_list_is_reported)
{
    struct wal_file_cursor *checkpoint = NULL;
    struct wal_error error = KIT_ERROR;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    kit_work_end(&work);
    damage("AGWALFIL");
    work.store = kit_open("store", 0);
    work.session = kit_session(work.store, "s");
    assert_int_equal(
        wal_file_cursor_open(work.session, kit_text("c"), &checkpoint, &error),
        WAL_ECORRUPT);
    assert_error(&error, WAL_ECORRUPT, "list of files");
    assert_null(checkpoint);
    assert_int_equal(kit_try_checkpoint(&work, "c", "b", NULL), WAL_ECORRUPT);
    kit_checkpoint(&work, "d", "a");
    assert_string_equal(kit_files(&work, work.session, "d"), "a=1");
    kit_work_end(&work);
}

KIT_TEST(checkpoint__read_only_store_is_refused)
{
    struct wal_error error = KIT_ERROR;

    struct kit_work work = kit_work_begin(0);

    kit_write(&work, "a", "1");
    kit_checkpoint(&work, "c", "a");
    kit_work_reopen(&work, WAL_OPEN_READ_ONLY);
    assert_int_equal(kit_try_checkpoint(&work, "d", "a", &error),
                     WAL_EREADONLY);
    assert_int_equal(wal_session_set_checkpointing(work.session, 0, NULL),
                     WAL_EREADONLY);
    assert_int_equal(wal_checkpoint_delete(work.session, kit_text("c"), NULL),
                     WAL_EREADONLY);
    assert_string_equal(kit_files(&work, work.session, "c"), "a=1");
    assert_string_equal(kit_diff(work.session, "c", ""), "");
    kit_work_end(&work);
}
