/*
 * test_bundle.c - tests of bundles on the real system: what comes back from one, and how each kind
 * of bad file is refused. What a process leaves that is killed while it writes or reads a bundle is
 * removed by the next one there; what a process that lives has is not, nor what only has such a
 * name (docs/machines.md).
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/transfer.h"
#include "format/bytes/crc32.h"
#include "format/index/bundle_fmt.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/describe_kit.h"
#include "tests/lib/kit/store_kit.h"

enum { LARGE = 300 * 1024 };

/* The store "store" with the session s, a fork f of it, and t, which has a large payload. */
static struct wal_store *make_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *s = kit_create(store, "s");
    struct wal_session *t = kit_create(store, "t");
    struct wal_session *f;
    struct kit_content content = kit_content(3, LARGE, true);
    struct wal_entry entry = kit_entry("large", NULL, "");

    kit_append_all(s, "a b c");
    f = kit_fork(s, "b", "f");
    kit_append_all(f, "x y");
    entry.flags = WAL_ENTRY_LINE;
    entry.payload = kit_slice(&content);
    assert_ok(wal_append(t, &entry, 1, NULL, NULL, NULL));
    kit_content_free(&content);
    wal_session_close(f);
    wal_session_close(s);
    wal_session_close(t);
    return store;
}

static enum wal_status try_write(struct wal_store *store, const char *ids, const char *path,
                                 struct wal_error *error)
{
    struct wal_slice sessions[4];
    struct wal_transfer_options options = {.struct_size = sizeof(options), .key = kit_test_key()};

    while (ids != NULL && *ids != '\0') {
        size_t size = strcspn(ids, " ");

        sessions[options.session_count++] = (struct wal_slice){ids, size};
        options.sessions = sessions;
        ids += size + (ids[size] == ' ');
    }
    *error = KIT_ERROR;
    return wal_bundle_write(store, kit_text(path), &options, NULL, error);
}

static void write_bundle(struct wal_store *store, const char *ids)
{
    assert_done(try_write(store, ids, "bundle", kit_error()));
}

static enum wal_status try_read(struct wal_store *store, const char *path,
                                struct wal_transfer_result *result, struct wal_error *error)
{
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .directory = WAL_STR("."), .key = kit_test_key()};

    *error = KIT_ERROR;
    *result = (struct wal_transfer_result){.struct_size = sizeof(*result)};
    return wal_bundle_read(store, kit_text(path), &options, result, error);
}

static struct wal_transfer_result read_bundle(struct wal_store *store)
{
    struct wal_transfer_result result;

    assert_done(try_read(store, "bundle", &result, kit_error()));
    return result;
}

/* Only these names are in the directory, separated by blanks. */
static void assert_names(const char *names)
{
    char line[512] = "";
    FILE *list = popen("ls -A | tr '\\n' ' '", "r");

    assert_non_null(list);
    assert_non_null(fgets(line, sizeof(line), list));
    pclose(list);
    assert_string_equal(line, names);
}

/* --- sound bundles -------------------------------------------------------- */

KIT_TEST(bundle__sessions_come_back)
{
    struct wal_store *store = make_store();
    struct wal_store *to = kit_open("to", WAL_OPEN_CREATE);
    struct wal_transfer_result result;

    write_bundle(store, "s t f");
    assert_int_equal(wal_bundle_detect(WAL_STR("bundle")), 1);
    result = read_bundle(to);
    assert_int_equal(result.created, 3);
    assert_same_stores(store, to);
    result = read_bundle(to);
    assert_int_equal(result.unchanged, 3);
    assert_int_equal(result.entries + result.documents, 0);
    kit_close(store);
    kit_close(to);
    assert_names("bundle store to ");
}

KIT_TEST(bundle__fork_comes_without_its_source)
{
    struct wal_store *store = make_store();
    struct wal_store *to = kit_open("to", WAL_OPEN_CREATE);

    write_bundle(store, "f");
    assert_int_equal(read_bundle(to).created, 1);
    assert_same_session(store, to, "f");
    assert_int_equal(kit_store_info(to).sessions, 1);
    assert_int_equal(read_bundle(to).unchanged, 1);
}

KIT_TEST(bundle__redacted_content_is_not_in_it)
{
    struct wal_store *store = kit_store();
    struct wal_session *s = kit_create(store, "s");
    struct wal_entry entry = kit_entry("a", NULL, "{\"v\":\"the-password\"}");

    assert_ok(wal_append(s, &entry, 1, NULL, NULL, NULL));
    assert_ok(wal_session_redact(s, WAL_STR("a"), WAL_STR("why"), NULL, NULL));
    write_bundle(store, "s");
    assert_int_not_equal(system("grep -qa the-password bundle"), 0);
}

KIT_TEST(bundle__existing_file_is_left)
{
    struct wal_store *store = make_store();

    assert_int_equal(system("echo mine > bundle"), 0);
    assert_int_equal(try_write(store, "s", "bundle", kit_error()), WAL_EEXISTS);
    assert_int_equal(system("grep -q mine bundle"), 0);
    kit_close(store);
    assert_names("bundle store ");
}

KIT_TEST(bundle__missing_session_writes_nothing)
{
    struct wal_store *store = make_store();
    struct wal_error error;

    assert_int_equal(try_write(store, "s none", "bundle", &error), WAL_ENOTFOUND);
    assert_string_equal(error.actual, "none");
    kit_close(store);
    assert_names("store ");
}

KIT_TEST(bundle__missing_directory_is_reported)
{
    struct wal_store *store = make_store();

    assert_int_equal(try_write(store, "s", "none/bundle", kit_error()), WAL_ENOTFOUND);
    kit_close(store);
    assert_names("store ");
}

/* --- bad files ------------------------------------------------------------ */

/* The file is refused so, and the store and the directory are as before. */
static void expect_refused(enum wal_status status, const char *text)
{
    struct wal_store *to = kit_open("to", WAL_OPEN_CREATE);
    uint64_t before = kit_store_info(to).last_sequence;
    struct wal_transfer_result result;

    assert_fails(try_read(to, "bad", &result, kit_error()), status, text);
    assert_int_equal(kit_store_info(to).last_sequence, before);
    kit_close(to);
    assert_int_equal(system("rm -rf to bad"), 0);
    assert_names("bundle store ");
}

/* Writes the bundle of s and t, and its copy "bad". */
static void make_bad(void)
{
    if (access("bundle", F_OK) != 0) {
        struct wal_store *store = make_store();

        write_bundle(store, "s t");
        kit_close(store);
    }
    assert_int_equal(system("cp bundle bad"), 0);
}

static off_t size_of(const char *path)
{
    struct stat stat_of;

    assert_int_equal(stat(path, &stat_of), 0);
    return stat_of.st_size;
}

/* Changes a byte of "bad". */
static void flip(off_t at)
{
    int fd = open("bad", O_RDWR);
    uint8_t byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x20;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

struct front {
    struct wal__bundle bundle;
    struct wal__bundle_file rows[8];
};

static struct front read_front(void)
{
    uint8_t bytes[WAL__BUNDLE_HEADER_SIZE + 8 * WAL__BUNDLE_FILE_SIZE];
    struct wal__bundle_table table;
    struct front front;
    int fd = open("bad", O_RDONLY);

    assert_true(read(fd, bytes, sizeof(bytes)) > WAL__BUNDLE_HEADER_SIZE);
    close(fd);
    assert_int_equal(wal__bundle_decode((struct wal__span){bytes, sizeof(bytes)}, &front.bundle),
                     WAL__FMT_OK);
    assert_true(front.bundle.file_count >= 3 && front.bundle.file_count <= 8);
    assert_int_equal(wal__bundle_table_decode(&front.bundle,
                                              (struct wal__span){bytes + WAL__BUNDLE_HEADER_SIZE,
                                                                 front.bundle.file_count *
                                                                     (size_t)WAL__BUNDLE_FILE_SIZE},
                                              &table),
                     WAL__FMT_OK);
    for (uint32_t i = 0; i < front.bundle.file_count; i++) {
        assert_int_equal(wal__bundle_table_next(&table, &front.rows[i]), WAL__FMT_OK);
    }
    return front;
}

/* Writes the front to "bad" with checksums that match. */
static void write_front(struct front *front)
{
    uint8_t bytes[WAL__BUNDLE_HEADER_SIZE + 8 * WAL__BUNDLE_FILE_SIZE];
    size_t size = front->bundle.file_count * (size_t)WAL__BUNDLE_FILE_SIZE;
    int fd = open("bad", O_RDWR);

    for (uint32_t i = 0; i < front->bundle.file_count && i < 8; i++) {
        wal__bundle_file_encode(&front->rows[i], bytes + WAL__BUNDLE_HEADER_SIZE +
                                                     (size_t)i * WAL__BUNDLE_FILE_SIZE);
    }
    if (front->bundle.file_count <= 8) {
        front->bundle.table_crc = wal__crc32(0, bytes + WAL__BUNDLE_HEADER_SIZE, size);
    }
    wal__bundle_encode(&front->bundle, bytes);
    size = front->bundle.file_count <= 8 ? size : 0;
    assert_int_equal(pwrite(fd, bytes, WAL__BUNDLE_HEADER_SIZE + size, 0),
                     WAL__BUNDLE_HEADER_SIZE + size);
    close(fd);
}

KIT_TEST(bundle__missing_file_is_refused)
{
    struct wal_store *to = kit_open("to", WAL_OPEN_CREATE);
    struct wal_transfer_result result;

    assert_int_equal(try_read(to, "none", &result, kit_error()), WAL_ENOTFOUND);
    assert_int_equal(try_read(to, ".", &result, kit_error()), WAL_ENOTFILE);
    assert_int_equal(wal_bundle_detect(WAL_STR("none")), 0);
    assert_int_equal(wal_bundle_detect(WAL_STR(".")), 0);
}

KIT_TEST(bundle__other_file_is_no_bundle)
{
    make_bad();
    assert_int_equal(system("echo '{\"type\":\"user\"}' > bad"), 0);
    assert_int_equal(wal_bundle_detect(WAL_STR("bad")), 0);
    expect_refused(WAL_EINVAL, "is not a bundle");
    assert_int_equal(system(": > bad"), 0);
    expect_refused(WAL_EINVAL, "is not a bundle");
}

KIT_TEST(bundle__cut_at_any_place_is_refused)
{
    off_t size;

    make_bad();
    size = size_of("bad");
    for (off_t at = size - 1; at > WAL__BUNDLE_HEADER_SIZE; at -= size / 9) {
        make_bad();
        assert_int_equal(truncate("bad", at), 0);
        expect_refused(WAL_ECORRUPT, "cut off");
    }
    make_bad();
    assert_int_equal(truncate("bad", WAL__BUNDLE_HEADER_SIZE - 1), 0);
    expect_refused(WAL_ECORRUPT, "cut off in its header");
}

KIT_TEST(bundle__bytes_after_the_end_are_refused)
{
    make_bad();
    assert_int_equal(system("echo >> bad"), 0);
    expect_refused(WAL_ECORRUPT, "bytes follow its end");
}

KIT_TEST(bundle__damaged_byte_anywhere_is_refused)
{
    off_t size;

    make_bad();
    size = size_of("bad");
    flip(20);
    expect_refused(WAL_ECORRUPT, "checksum of its header");
    make_bad();
    flip(WAL__BUNDLE_HEADER_SIZE + 9);
    expect_refused(WAL_ECORRUPT, "checksum of its table");
    for (off_t at = size - 1; at > 400; at -= size / 11) {
        make_bad();
        flip(at);
        expect_refused(WAL_ECORRUPT, "the checksum of ");
    }
}

KIT_TEST(bundle__newer_version_names_both)
{
    struct front front;

    make_bad();
    front = read_front();
    front.bundle.version = 7;
    write_front(&front);
    assert_int_equal(wal_bundle_detect(WAL_STR("bad")), 1);
    expect_refused(WAL_EVERSION, "version 7; this library reads version 2");
}

KIT_TEST(bundle__sizes_out_of_range_are_refused)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 100, (uint64_t)1 << 63, 1};
    struct front front;

    for (size_t i = 0; i < 4; i++) {
        make_bad();
        front = read_front();
        front.bundle.size = sizes[i];
        write_front(&front);
        expect_refused(WAL_ECORRUPT, "a field of its header");
        make_bad();
        front = read_front();
        front.rows[1].stored = sizes[i];
        write_front(&front);
        expect_refused(WAL_ECORRUPT, "row of its table");
        make_bad();
        front = read_front();
        front.rows[2].size = sizes[i];
        write_front(&front);
        expect_refused(WAL_ECORRUPT, "row of its table");
    }
    make_bad();
    front = read_front();
    front.bundle.file_count = UINT32_MAX;
    write_front(&front);
    expect_refused(WAL_ECORRUPT, "a field of its header");
    make_bad();
    front = read_front();
    front.bundle.file_count = 0;
    write_front(&front);
    expect_refused(WAL_ECORRUPT, "a field of its header");
}

/* A name is a class and a number: others do not exist. */
KIT_TEST(bundle__names_out_of_range_are_refused)
{
    struct front front;

    make_bad();
    front = read_front();
    front.rows[1].file_class = 3;
    write_front(&front);
    expect_refused(WAL_ECORRUPT, "row of its table");
    make_bad();
    front = read_front();
    front.rows[1].id = 0;
    write_front(&front);
    expect_refused(WAL_ECORRUPT, "row of its table");
    make_bad();
    front = read_front();
    front.rows[2] = front.rows[1]; /* twice */
    write_front(&front);
    expect_refused(WAL_ECORRUPT, "row of its table");
    make_bad();
    front = read_front();
    front.rows[0].file_class = WAL__BUNDLE_LOG; /* no manifest */
    write_front(&front);
    expect_refused(WAL_ECORRUPT, "row of its table");
}

/* A bundle that is sound as a file, of a store that is not. */
KIT_TEST(bundle__bad_store_inside_changes_nothing)
{
    struct front front;
    uint8_t bytes[WAL__MANIFEST_SIZE];
    int fd;

    make_bad();
    front = read_front();
    fd = open("bad", O_RDWR);
    memset(bytes, 'x', sizeof(bytes));
    assert_int_equal(
        pwrite(fd, bytes, front.rows[0].stored,
               WAL__BUNDLE_HEADER_SIZE + (off_t)front.bundle.file_count * WAL__BUNDLE_FILE_SIZE),
        front.rows[0].stored);
    close(fd);
    front.rows[0].crc = wal__crc32(0, bytes, front.rows[0].stored);
    write_front(&front);
    expect_refused(WAL_ENOTSTORE, "");
}

static int32_t kill_here(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    (void)raise(SIGKILL);
    return 0;
}

static int32_t stop_here(void *ctx, uint64_t done, uint64_t total)
{
    bool *has_stopped = ctx;

    (void)done;
    (void)total;
    if (!*has_stopped) {
        *has_stopped = true;
        (void)raise(SIGSTOP);
    }
    return 0;
}

static enum wal_status transfer(const char *store_path, bool writes, const char *path,
                                wal_transfer_progress_fn *progress)
{
    bool has_stopped = false;
    const struct wal_transfer_options options = {.struct_size = sizeof(options),
                                                 .key = kit_test_key(),
                                                 .directory = WAL_STR("."),
                                                 .progress = progress,
                                                 .ctx = &has_stopped};
    struct wal_store *store = kit_open(store_path, WAL_OPEN_CREATE);
    struct wal_error error = KIT_ERROR;
    enum wal_status status = writes
                                 ? wal_bundle_write(store, kit_text(path), &options, NULL, &error)
                                 : wal_bundle_read(store, kit_text(path), &options, NULL, &error);

    if (status != WAL_OK) {
        (void)fprintf(stderr, "%s: %s\n", error.file, error.text);
    }
    (void)!wal_close(store, NULL);
    return status;
}

/* The number of names that begin as those of temporary stores do. */
static uint32_t count_temporary(void)
{
    DIR *directory = opendir(".");
    uint32_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        count += strncmp(entry->d_name, ".agentwal-", 10) == 0;
    }
    (void)closedir(directory);
    return count;
}

static void make_small_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b c");

    wal_session_close(session);
    kit_close(store);
}

/* A child that transfers until the progress function ends or stops it. */
static pid_t start(const char *store, bool writes, const char *path,
                   wal_transfer_progress_fn *progress)
{
    pid_t child = kit_start_process();
    int code;

    if (child == 0) {
        _exit(transfer(store, writes, path, progress) == WAL_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, WUNTRACED), child);
    assert_true(WIFSTOPPED(code) || (WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL));
    return child;
}

KIT_TEST(leftovers__of_a_killed_writer)
{
    make_small_store();
    for (int i = 0; i < 2; i++) {
        (void)start("store", true, "first", kill_here);
        assert_true(count_temporary() >= 2);
    }
    assert_ok(transfer("store", true, "second", NULL));
    assert_int_equal(count_temporary(), 0);
    assert_int_equal(access("first", F_OK), -1);
}

KIT_TEST(leftovers__of_a_killed_reader)
{
    make_small_store();
    assert_ok(transfer("store", true, "bundle", NULL));
    (void)start("other", false, "bundle", kill_here);
    assert_true(count_temporary() >= 2);
    assert_ok(transfer("other", false, "bundle", NULL));
    assert_int_equal(count_temporary(), 0);
}

KIT_TEST(leftovers__of_a_process_that_lives_stay)
{
    uint32_t before;
    pid_t child;
    int code;

    make_small_store();
    child = start("store", true, "first", stop_here);
    before = count_temporary();
    assert_true(before >= 2);
    assert_ok(transfer("store", true, "second", NULL));
    assert_int_equal(count_temporary(), before);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_int_equal(count_temporary(), 0);
    assert_ok(transfer("other", false, "first", NULL));
}

static void make_file(const char *name)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

/* An unfinished bundle, and the store of a lock file, are removed; a directory without one, a link,
 * and the files of others are not. */
KIT_TEST(leftovers__only_what_is_of_bundles)
{
    static const char *const kept[] = {
        ".agentwal-0123456789abcdef",          ".agentwal-0123456789abcde.tmp",
        ".agentwal-0123456789abcdef0.tmp",     ".agentwal-0123456789ABCDEF.tmp",
        ".agentwal-pi-0123456789abcdef.1.tmp", ".agentwal-3333333333333333.lock",
        "agentwal-0123456789abcdef.tmp",       "precious/file",
    };

    make_small_store();
    assert_int_equal(mkdir("precious", 0700), 0);
    make_file("precious/file");
    assert_int_equal(mkdir(".agentwal-0123456789abcdef", 0700), 0);
    for (size_t i = 1; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (i != 5) {
            make_file(kept[i]);
        }
    }
    /* A lock file that is a link, and one whose directory is a link. */
    assert_int_equal(symlink("precious/file", kept[5]), 0);
    make_file(".agentwal-2222222222222222.lock");
    assert_int_equal(symlink("precious", ".agentwal-2222222222222222"), 0);
    make_file(".agentwal-1111111111111111.lock");
    assert_int_equal(mkdir(".agentwal-1111111111111111", 0700), 0);
    make_file(".agentwal-1111111111111111/MANIFEST");
    make_file(".agentwal-4444444444444444.tmp");
    assert_ok(transfer("store", true, "bundle", NULL));
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        struct stat stat;

        if (lstat(kept[i], &stat) != 0) {
            fail_msg("%s is gone", kept[i]);
        }
    }
    assert_int_equal(access(".agentwal-1111111111111111.lock", F_OK), -1);
    assert_int_equal(access(".agentwal-1111111111111111", F_OK), -1);
    assert_int_equal(access(".agentwal-4444444444444444.tmp", F_OK), -1);
    assert_int_equal(access("precious/file", F_OK), 0);
}
