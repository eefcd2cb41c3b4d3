/*
 * test_store_open.c - tests of wal_open, wal_close and wal_store_get_info on the real system.
 */
#include "tests/lib/kit/store_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/segment/segment_fmt.h"

static enum wal_status try_open(const char *path, uint32_t flags, struct wal_error *error)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_store *store = NULL;
    enum wal_status status = wal_open(path, &options, &store, error);

    if (status == WAL_OK) {
        assert_non_null(store);
        assert_ok(wal_close(store, NULL));
    } else {
        assert_null(store);
        assert_int_equal(error->status, status);
        assert_true(error->text[0] != '\0');
    }
    return status;
}

static void expect_open(const char *path, uint32_t flags, enum wal_status status, const char *file,
                        const char *text)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(try_open(path, flags, &error), status);
    assert_error(&error, status, text);
    assert_string_equal(error.file, file);
}

/* ------------------------------------------------------------- paths --- */

KIT_TEST(open__store_is_created_only_with_the_flag)
{
    struct wal_store *store = NULL;
    struct wal_error error = KIT_ERROR;
    struct stat stat_of;

    assert_int_equal(wal_open("store", NULL, &store, &error), WAL_ENOTSTORE);
    assert_null(store);
    assert_error(&error, WAL_ENOTSTORE, "no store");
    assert_string_equal(error.file, "store");
    assert_int_not_equal(stat("store", &stat_of), 0);
    kit_close(kit_store());
    assert_ok(wal_open("store", NULL, &store, &error));
    kit_close(store);
}

KIT_TEST(open__modes_are_private)
{
    struct stat stat_of;
    static const struct {
        const char *path;
        mode_t mode;
    } parts[] = {
        {"store", 0700},          {"store/log", 0700},  {"store/index", 0700},
        {"store/MANIFEST", 0600}, {"store/LOCK", 0600}, {"store/log/0000000000000001.seg", 0600},
    };

    umask(0);
    kit_close(kit_store());
    umask(022);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        assert_int_equal(stat(parts[i].path, &stat_of), 0);
        assert_int_equal(stat_of.st_mode & 07777, parts[i].mode);
    }
}

static uint64_t disk_used;

static int add_disk(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)path;
    (void)kind;
    (void)walk;
    disk_used += (uint64_t)stat->st_blocks * 512;
    return 0;
}

KIT_TEST(open__empty_store_takes_about_a_mebibyte)
{
    kit_close(kit_store());
    disk_used = 0;
    assert_int_equal(nftw("store", add_disk, 8, FTW_PHYS), 0);
    assert_in_range(disk_used, 1, 1200 * 1024);
}

KIT_TEST(open__exclusive_refuses_a_store)
{
    uint32_t flags = WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE;

    kit_close(kit_open("store", flags));
    expect_open("store", flags, WAL_EEXISTS, "store", "already");
}

KIT_TEST(open__file_in_place_of_the_directory)
{
    FILE *file = fopen("store", "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    expect_open("store", 0, WAL_ENOTSTORE, "store", "a file, not");
    expect_open("store", WAL_OPEN_CREATE, WAL_ENOTSTORE, "store", "a file, not");
    expect_open("store", WAL_OPEN_READ_ONLY, WAL_ENOTSTORE, "store", "a file, not");
}

KIT_TEST(open__manifest_that_is_a_directory)
{
    assert_int_equal(mkdir("store", 0700), 0);
    assert_int_equal(mkdir("store/MANIFEST", 0700), 0);
    expect_open("store", WAL_OPEN_CREATE, WAL_ENOTSTORE, "store/MANIFEST", "manifest");
}

KIT_TEST(open__directory_with_other_files_is_refused)
{
    FILE *file;
    struct stat stat_of;

    assert_int_equal(mkdir("store", 0700), 0);
    file = fopen("store/thesis.txt", "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    expect_open("store", 0, WAL_ENOTSTORE, "store", "no store");
    expect_open("store", WAL_OPEN_CREATE, WAL_ENOTSTORE, "store", "other files");
    assert_int_not_equal(stat("store/log", &stat_of), 0);
}

/* A creation does not write a MANIFEST for segments, which name the store
 * of the one that is gone. */
KIT_TEST(open__segments_without_manifest_are_no_leftover)
{
    kit_close(kit_open("store", WAL_OPEN_CREATE));
    assert_int_equal(unlink("store/MANIFEST"), 0);
    expect_open("store", 0, WAL_ENOTSTORE, "store", "no store");
    expect_open("store", WAL_OPEN_CREATE, WAL_ECORRUPT, "store", "MANIFEST");
    assert_int_not_equal(access("store/MANIFEST", F_OK), 0);
}

KIT_TEST(open__empty_directory_becomes_a_store)
{
    assert_int_equal(mkdir("store", 0700), 0);
    kit_close(kit_store());
    kit_close(kit_open("store", 0));
}

KIT_TEST(open__trailing_slashes_are_ignored)
{
    kit_close(kit_open("store//", WAL_OPEN_CREATE));
    kit_close(kit_open("./store/", 0));
}

KIT_TEST(open__missing_parent_is_not_created)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(try_open("none/store", WAL_OPEN_CREATE, &error), WAL_ENOTSTORE);
    assert_int_equal(error.sys_errno, ENOENT);
    assert_int_equal(try_open("none/store", 0, &error), WAL_ENOTSTORE);
}

KIT_TEST(open__interrupted_creation_is_finished)
{
    FILE *file;

    assert_int_equal(mkdir("store", 0700), 0);
    assert_int_equal(mkdir("store/log", 0700), 0);
    file = fopen("store/MANIFEST.new", "w");
    assert_non_null(file);
    assert_int_equal(fputs("half", file), 1);
    assert_int_equal(fclose(file), 0);
    expect_open("store", 0, WAL_ENOTSTORE, "store", "no store");
    kit_close(kit_store());
    kit_close(kit_open("store", 0));
}

/* ----------------------------------------------------------- options --- */

KIT_TEST(open__invalid_options_are_refused)
{
    struct wal_open_options good = {.struct_size = sizeof(good), .flags = WAL_OPEN_CREATE};
    struct wal_open_options bad[6] = {good, good, good, good, good, good};
    struct wal_store *store = NULL;
    struct stat stat_of;
    char *path;

    bad[0].struct_size = 0;
    bad[1].struct_size--;
    bad[2].struct_size++;
    bad[3].flags |= 1u << 31;
    bad[4].flags |= WAL_OPEN_READ_ONLY;
    bad[5].group_align = 1024;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(wal_open("store", &bad[i], &store, kit_error()), WAL_EINVAL);
        assert_null(store);
    }
    assert_int_equal(wal_open(NULL, &good, &store, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_open("", &good, &store, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_open("store", &good, NULL, kit_error()), WAL_EINVAL);
    path = test_memory(8192);
    memset(path, 'x', 8191);
    path[8191] = '\0';
    assert_int_equal(wal_open(path, &good, &store, kit_error()), WAL_EINVAL);
    assert_int_not_equal(stat("store", &stat_of), 0);
}

KIT_TEST(open__groups_have_the_requested_alignment)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = WAL_OPEN_CREATE};
    struct wal_store *store = NULL;
    struct wal_session *session;

    for (uint32_t align = 512; align <= 4096; align *= 8) {
        char path[32];
        uint64_t before;

        (void)snprintf(path, sizeof(path), "store-%u", align);
        options.group_align = align;
        assert_ok(wal_open(path, &options, &store, NULL));
        session = kit_create(store, "s");
        before = kit_store_info(store).log_bytes;
        kit_append(session, "a", NULL);
        assert_in_range(kit_store_info(store).log_bytes - before, align, 2 * align);
        wal_session_close(session);
        kit_close(store);
        store = kit_open(path, 0);
        session = kit_session(store, "s");
        kit_append(session, "b", NULL);
        assert_branch(session, "a b");
        wal_session_close(session);
        kit_close(store);
    }
}

/* --------------------------------------------------------- read only --- */

KIT_TEST(read_only__nothing_is_written)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *other = NULL;
    struct wal_entry entry = kit_entry("b", NULL, "1");
    struct wal_error error = KIT_ERROR;
    struct wal_slice head = {NULL, 0};

    kit_append(session, "a", NULL);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(unlink("store/LOCK"), 0);
    store = kit_open("store", WAL_OPEN_READ_ONLY);
    assert_int_equal(kit_store_info(store).status, WAL_EREADONLY);
    session = kit_session(store, "s");
    assert_branch(session, "a");
    assert_int_equal(kit_try_append(session, &entry, NULL, &error), WAL_EREADONLY);
    assert_error(&error, WAL_EREADONLY, "reading only");
    assert_string_equal(error.file, "store");
    assert_int_equal(wal_session_create(store, NULL, &other, &error), WAL_EREADONLY);
    assert_int_equal(wal_session_fork(session, head, NULL, &other, &error), WAL_EREADONLY);
    assert_int_equal(wal_session_accept_damage(session, &error), WAL_EREADONLY);
    assert_int_equal(wal_sync(store, &error), WAL_EREADONLY);
    wal_session_close(session);
    kit_close(store);
    assert_int_not_equal(access("store/LOCK", F_OK), 0);
}

KIT_TEST(read_only__opens_while_a_writer_has_it_open)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_store *reader;
    struct wal_session *seen;

    kit_append(session, "a", NULL);
    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    seen = kit_session(reader, "s");
    assert_branch(seen, "a");
    wal_session_close(seen);
    kit_close(reader);
    kit_append(session, "b", NULL);
    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    seen = kit_session(reader, "s");
    assert_branch(seen, "a b");
}

KIT_TEST(read_only__follows_a_writer)
{
    struct wal_store *writer = kit_store();
    struct wal_session *session = kit_create(writer, "s");
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);
    struct wal_session *seen = kit_session(reader, "s");

    kit_append_all(session, "a b");
    assert_branch(seen, "a b");
    wal_session_close(kit_create(writer, "t"));
    wal_session_close(kit_session(reader, "t"));
    kit_append_all(session, "c");
    assert_int_equal(kit_store_info(reader).tail, WAL_TAIL_CLEAN);
    assert_slice(kit_info(seen).head, "c");
    wal_session_close(session);
    kit_close(writer);
    assert_branch(seen, "a b c");
}

/* Runs a check as an unprivileged user; returns its exit code. */
static void run_unprivileged(int (*check)(void))
{
    pid_t child = kit_start_process();

    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(99);
        }
        _exit(check());
    }
    kit_expect_exit(child, 0);
}

static int read_without_permission(void)
{
    struct wal_error error = KIT_ERROR;
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_entry entry = kit_entry("b", NULL, "1");
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;

    if (wal_open("store", NULL, &store, &error) != WAL_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (wal_store_get_info(store, &info, NULL) != WAL_OK || info.status != WAL_EREADONLY) {
        return 2;
    }
    if (wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK) {
        return 3;
    }
    if (kit_info(session).entries != 1) {
        return 4;
    }
    if (kit_try_append(session, &entry, NULL, &error) != WAL_EREADONLY) {
        return 5;
    }
    wal_session_close(session);
    return wal_close(store, NULL) == WAL_OK ? 0 : 6;
}

static int create_without_permission(void)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = WAL_OPEN_CREATE};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;
    enum wal_status status = wal_open("other", &options, &store, &error);

    if (status != WAL_EREADONLY || error.sys_errno != EACCES || store != NULL ||
        error.text[0] == '\0') {
        (void)fprintf(stderr, "%d %d %s\n", status, error.sys_errno, error.text);
        return 1;
    }
    return 0;
}

static int open_without_search_permission(void)
{
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    if (wal_open("store", NULL, &store, &error) == WAL_OK || store != NULL ||
        error.sys_errno != EACCES) {
        return 1;
    }
    return 0;
}

static int allow_reading(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)stat;
    (void)walk;
    return chmod(path, kind == FTW_DP ? 0555 : 0444);
}

static int restore_mode(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)stat;
    (void)kind;
    (void)walk;
    return chmod(path, 0700);
}

KIT_TEST(read_only__store_without_write_permission_is_read)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append(session, "a", NULL);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(chmod(".", 0555), 0);
    assert_int_equal(chmod("..", 0755), 0);
    assert_int_equal(nftw("store", allow_reading, 8, FTW_DEPTH | FTW_PHYS), 0);
    run_unprivileged(read_without_permission);
    run_unprivileged(create_without_permission);
    assert_int_equal(chmod("store", 0), 0);
    run_unprivileged(open_without_search_permission);
    assert_int_equal(chmod("store", 0700), 0);
    assert_int_equal(nftw("store", restore_mode, 8, FTW_PHYS), 0);
    assert_int_equal(chmod(".", 0700), 0);
}

/* ---------------------------------------------------------- versions --- */

/* Writes the manifest again, changed. */
static void change_manifest(void (*change)(struct wal__manifest *))
{
    uint8_t bytes[WAL__MANIFEST_SIZE] = {0};
    struct wal__manifest manifest;
    int fd = open("store/MANIFEST", O_RDWR);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(wal__manifest_decode(bytes, &manifest), WAL__FMT_OK);
    change(&manifest);
    wal__manifest_encode(&manifest, bytes);
    assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_int_equal(close(fd), 0);
}

static void newer(struct wal__manifest *manifest)
{
    manifest->version = 7;
}

static void unknown_incompat(struct wal__manifest *manifest)
{
    manifest->features.incompat = 0x40;
}

static void read_only_feature(struct wal__manifest *manifest)
{
    manifest->features.ro_compat = 0x80;
}

static void compatible(struct wal__manifest *manifest)
{
    manifest->features.compat = 0x100;
}

KIT_TEST(version__newer_version_is_refused_with_both_numbers)
{
    kit_close(kit_store());
    change_manifest(newer);
    expect_open("store", 0, WAL_EVERSION, "store/MANIFEST", "version 7");
    expect_open("store", 0, WAL_EVERSION, "store/MANIFEST", "version 1");
    expect_open("store", WAL_OPEN_READ_ONLY, WAL_EVERSION, "store/MANIFEST", "version 7");
    expect_open("store", WAL_OPEN_CREATE, WAL_EVERSION, "store/MANIFEST", "version 7");
}

KIT_TEST(version__unknown_features_are_refused)
{
    kit_close(kit_store());
    change_manifest(unknown_incompat);
    expect_open("store", 0, WAL_EVERSION, "store/MANIFEST", "0x40");
}

KIT_TEST(version__unknown_write_features_open_read_only)
{
    struct wal_store *store;
    struct wal_session *session = NULL;

    kit_close(kit_store());
    change_manifest(read_only_feature);
    store = kit_open("store", 0);
    assert_int_equal(kit_store_info(store).status, WAL_EREADONLY);
    assert_int_equal(wal_session_create(store, NULL, &session, NULL), WAL_EREADONLY);
}

KIT_TEST(version__unknown_compatible_features_are_ignored)
{
    struct wal_store *store;

    kit_close(kit_store());
    change_manifest(compatible);
    store = kit_open("store", 0);
    wal_session_close(kit_create(store, "s"));
}

KIT_TEST(manifest__damage_of_both_slots_is_reported)
{
    int fd;

    kit_close(kit_store());
    fd = open("store/MANIFEST", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "?", 1, 20), 1);
    kit_close(kit_store()); /* one slot is enough */
    assert_int_equal(pwrite(fd, "?", 1, WAL__MANIFEST_SLOT_SIZE + 20), 1);
    assert_int_equal(close(fd), 0);
    expect_open("store", 0, WAL_ECORRUPT, "store/MANIFEST", "manifest");
}

/* ------------------------------------------------------------ status --- */

KIT_TEST(store_info__counts_operations)
{
    struct wal_store *store = kit_store();
    struct wal_store_info info = kit_store_info(store);
    struct wal_session *session;
    struct wal_entry entry = kit_entry("a", NULL, "1");

    assert_ok(info.status);
    assert_int_equal(info.format_version, 1);
    assert_int_equal(info.tail, WAL_TAIL_CLEAN);
    assert_int_equal(info.sessions, 0);
    assert_int_equal(info.last_sequence, 0);
    session = kit_create(store, "s");
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    info = kit_store_info(store);
    assert_int_equal(info.sessions, 1);
    assert_int_equal(info.last_sequence, 2);
    assert_int_equal(info.segments, 1);
    assert_int_equal(info.disk_bytes, 1024 * 1024);
    assert_in_range(info.log_bytes, 4097, 8192);
    assert_in_range(info.groups, 2, 6);
    assert_in_range(info.syncs, 2, 8);
    assert_int_equal(info.acknowledged, 2);
}

KIT_TEST(store_info__uuid_is_the_stores)
{
    struct wal_store *store = kit_store();
    struct wal_store_info first = kit_store_info(store);
    struct wal_store *other = kit_open("other", WAL_OPEN_CREATE);
    struct wal_store_info second = kit_store_info(other);

    assert_memory_not_equal(first.uuid, second.uuid, 16);
    kit_close(store);
    kit_close(other);
    store = kit_open("store", 0);
    second = kit_store_info(store);
    assert_memory_equal(first.uuid, second.uuid, 16);
}

KIT_TEST(store_info__misuse_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_store_info info = {.struct_size = sizeof(info) - 1};

    assert_int_equal(wal_store_get_info(store, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_store_get_info(store, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_store_get_info(NULL, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_sync(NULL, NULL), WAL_EINVAL);
    assert_ok(wal_close(NULL, NULL));
}

KIT_TEST(open__repeated_opening_is_one_store)
{
    for (int i = 0; i < 20; i++) {
        struct wal_store *store = kit_store();
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        wal_session_close(kit_create(store, id));
        assert_int_equal(kit_store_info(store).sessions, i + 1);
        assert_int_equal(kit_store_info(store).tail, WAL_TAIL_CLEAN);
        kit_close(store);
    }
}
