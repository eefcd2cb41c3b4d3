/*
 * test_store_cut.c - another program cuts a file of a store that is open: no call ends the process,
 * and what was cut is reported (SPEC.md 4.6).
 */
#include "tests/lib/kit/store_kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "format/bytes/assert.h"

enum { SESSIONS = 4, ENTRIES = 40, BIG = 300000, FILES_MAX = 64, DAMAGE_EXIT = 3 };

static char names[FILES_MAX][600];
static int name_count;

/* Lists the files of a store, one folder deep. */
static void list_files(const char *folder, bool deeper)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char path[600];
        struct stat st;

        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        assert_int_equal(stat(path, &st), 0);
        if (S_ISDIR(st.st_mode) && deeper) {
            list_files(path, false);
        } else if (S_ISREG(st.st_mode)) {
            assert_true(name_count < FILES_MAX);
            (void)snprintf(names[name_count++], sizeof(names[0]), "%s", path);
        }
    }
    assert_int_equal(closedir(dir), 0);
}

static void append_big(struct wal_session *session, const char *id)
{
    static char payload[BIG];
    struct wal_entry entry = kit_entry(id, NULL, NULL);
    uint64_t random = 7;

    payload[0] = '"';
    for (size_t i = 1; i < BIG - 1; i++) {
        payload[i] = (char)('a' + kit_random(&random) % 26);
    }
    payload[BIG - 1] = '"';
    entry.payload = (struct wal_slice){payload, BIG};
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
}

/* A store with a compacted segment, an index file of a tail, a pack. */
static void make_store(void)
{
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    struct wal_store *store = kit_store();

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SESSIONS; i++) {
            char id[16];
            struct wal_session *session;

            (void)snprintf(id, sizeof(id), "s%d", i);
            session = round == 0 ? kit_create(store, id) : kit_session(store, id);
            for (int k = 0; k < ENTRIES; k++) {
                (void)snprintf(id, sizeof(id), "e%d-%d", round, k);
                kit_append(session, id, NULL);
            }
            append_big(session, round == 0 ? "big-0" : "big-1");
            wal_session_close(session);
        }
        if (round == 0) {
            assert_ok(wal_store_compact(store, &options, NULL, NULL));
        }
    }
    kit_close(store);
}

static enum wal_status append_as(struct wal_session *session, const char *id, uint32_t durability)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    struct wal_entry entry = kit_entry(id, NULL, "{}");

    return wal_append(session, &entry, 1, &options, NULL, NULL);
}

static bool is_expected(enum wal_status status)
{
    return status == WAL_OK || status == WAL_ECORRUPT || status == WAL_EIO ||
           status == WAL_EDAMAGED || status == WAL_ELOCKFILE || status == WAL_EPOISONED ||
           status == WAL_ENOTFOUND;
}

/* Reads each entry of the session; returns whether anything was reported. */
static bool read_all(struct wal_session *session)
{
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status = wal_entry_cursor_open(session, NULL, &cursor, NULL);
    uint64_t left = UINT64_MAX;
    bool reported = status != WAL_OK;

    while (cursor != NULL && status != WAL_END) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        WAL__ASSERT(status == WAL_END || is_expected(status));
        if (status != WAL_OK && status != WAL_END) {
            reported = true;
            if (wal_entry_cursor_remaining(cursor) == left) {
                break;
            }
        }
        left = wal_entry_cursor_remaining(cursor);
    }
    wal_entry_cursor_close(cursor);
    return reported;
}

/* Uses a store before and after its file is cut. */
static void use_store(const char *path, off_t size, uint32_t flags)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_store_compact_options compact = WAL_INIT(wal_store_compact_options);
    struct wal_session *sessions[SESSIONS];
    struct wal_store *store = NULL;
    struct wal_error error = KIT_ERROR;
    const bool is_lock = strcmp(path, "store/LOCK") == 0;
    enum wal_status status;
    bool reported = false;

    options.flags = flags;
    WAL__ASSERT(wal_open("store", &options, &store, &error) == WAL_OK);
    for (int i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        WAL__ASSERT(wal_session_open(store, kit_text(id), &sessions[i], &error) == WAL_OK);
        WAL__ASSERT(!read_all(sessions[i]));
        WAL__ASSERT((flags & WAL_OPEN_READ_ONLY) != 0 ||
                    append_as(sessions[i], "before", WAL_WRITTEN) == WAL_OK);
    }
    /* The index of a tail is removed by the first append. */
    WAL__ASSERT(truncate(path, size) == 0 || errno == ENOENT);
    if (is_lock) {
        (void)usleep(20000); /* LOCK is compared each 10 ms */
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SESSIONS; i++) {
            char id[16];

            reported = read_all(sessions[i]) || reported;
            if ((flags & WAL_OPEN_READ_ONLY) == 0) {
                (void)snprintf(id, sizeof(id), "after-%d", round);
                status = append_as(sessions[i], id, round == 0 ? WAL_WRITTEN : WAL_DURABLE);
                WAL__ASSERT(is_lock ? status == WAL_ELOCKFILE : is_expected(status));
            }
        }
        if (round == 0 && (flags & WAL_OPEN_READ_ONLY) == 0) {
            status = wal_store_compact(store, &compact, NULL, &error);
            WAL__ASSERT(is_expected(status));
        }
    }
    for (int i = 0; i < SESSIONS; i++) {
        wal_session_close(sessions[i]);
    }
    (void)!wal_close(store, &error);
    _exit(reported ? DAMAGE_EXIT : 0);
}

static void cut_each_file(uint32_t flags)
{
    int reports = 0;
    int made = 0;
    pid_t maker = kit_start_process();

    /* The handler of SIGBUS is installed by the first map of a process; that of the test program
     * comes with each test. */
    if (maker == 0) {
        make_store();
        _exit(0);
    }
    assert_int_equal(waitpid(maker, &made, 0), maker);
    assert_int_equal(made, 0);
    name_count = 0;
    list_files("store", true);
    assert_true(name_count >= 6);
    assert_int_equal(system("cp -a store first"), 0);
    for (int i = 0; i < 3 * name_count; i++) {
        struct stat st;
        int status = 0;
        pid_t child;

        assert_int_equal(stat(names[i / 3], &st), 0);
        child = kit_start_process();
        if (child == 0) {
            use_store(names[i / 3], i % 3 == 0 ? 0 : i % 3 == 1 ? 100 : st.st_size / 2, flags);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status)) {
            fail_msg("cutting %s ended the process: %d", names[i / 3], status);
        }
        assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == DAMAGE_EXIT);
        reports += WEXITSTATUS(status) == DAMAGE_EXIT;
        assert_int_equal(system("rm -r store && cp -a first store"), 0);
    }
    assert_true(reports > 0);
}

KIT_TEST(cut__each_file_of_a_writer)
{
    cut_each_file(0);
}

KIT_TEST(cut__each_file_of_a_reader)
{
    cut_each_file(WAL_OPEN_READ_ONLY);
}

KIT_TEST(cut__each_file_with_pread)
{
    cut_each_file(WAL_OPEN_PREAD);
}
