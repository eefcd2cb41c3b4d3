/*
 * test_abandoned_files.c - temporary files of processes that were killed, and
 * those that a process is writing, while other processes have the store open:
 * what a compaction does with them (SPEC.md 3.9, SPEC.md).
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "engine/log/control.h"
#include "tests/lib/kit/parts_kit.h"

enum {
    HELD_US = 300000
};

static const char canary[] = "CANARY-of-a-title-4711";

/* Returns how many segments it rewrote. */
static uint64_t compact(struct wal_store *store, uint32_t flags)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = flags, .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_store_compact(store, &options, &result, NULL));
    return result.rewritten;
}

static void write_file(const char *path)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(canary, 1, sizeof(canary), file), sizeof(canary));
    assert_int_equal(fclose(file), 0);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool has_canary(const char *path)
{
    static char bytes[256 * 1024];
    FILE *file = fopen(path, "re");
    size_t size;

    if (file == NULL) {
        return false;
    }
    size = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    return memmem(bytes, size, canary, sizeof(canary) - 1) != NULL;
}

/* A store with a catalogue that has the title of a session, which is deleted
 * since. */
static struct wal_store *make_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_titled(store, "s", canary);

    kit_append(session, "a", NULL);
    (void)compact(store, 0);
    assert_true(has_canary("store/index/catalogue"));
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    return store;
}

/* Locks a byte of LOCK, as a process that writes a file does. */
static int lock_byte(off_t byte)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int file = open("store/LOCK", O_RDWR | O_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    return file;
}

KIT_TEST(abandoned__files_go_though_others_have_the_store_open)
{
    const char *const paths[] = {"store/index/catalogue.new",
                                 "store/index/0000000000000001.idx.new",
                                 "store/index/pack-0000000000000001.idx.new",
                                 "store/log/0000000000000007.seg.new",
                                 "store/pack/0000000000000007.seg.new",
                                 "store/log/0000000000000001.rewrite"};
    const size_t count = sizeof(paths) / sizeof(paths[0]);
    struct wal_store *store = make_store();
    struct wal_store *other = kit_store();
    uint8_t digest[32];

    assert_ok(wal_blob_put(store, kit_text(canary), digest, NULL));
    for (size_t i = 0; i < count; i++) {
        write_file(paths[i]);
    }
    (void)compact(store, WAL_STORE_COMPACT_ERASE);
    for (size_t i = 0; i < count; i++) {
        if (exists(paths[i])) {
            fail_msg("%s is still there", paths[i]);
        }
    }
    assert_true(exists("store/index/catalogue"));
    assert_false(has_canary("store/index/catalogue"));
    kit_close(other);
    kit_close(store);
}

/* The first was killed before it wrote the catalogue; nothing is left to
 * rewrite for the second. */
KIT_TEST(erase__old_catalogue_goes_though_nothing_is_rewritten)
{
    struct wal_store *store = make_store();
    struct wal_store *other = kit_store();

    assert_int_equal(rename("store/index/catalogue", "old"), 0);
    while (compact(store, WAL_STORE_COMPACT_ERASE) > 0) {
    }
    assert_int_equal(rename("old", "store/index/catalogue"), 0);
    assert_true(has_canary("store/index/catalogue"));
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE), 0);
    assert_false(has_canary("store/index/catalogue"));
    kit_close(other);
    kit_close(store);
}

/* A process that has what was erased in memory writes a catalogue meanwhile. */
KIT_TEST(erase__waits_for_a_process_that_writes_a_catalogue)
{
    struct wal_store *store = make_store();
    int how;
    pid_t child;
    int says[2];
    char byte;

    assert_int_equal(pipe(says), 0);
    child = kit_start_process();
    if (child == 0) {
        (void)lock_byte(WAL__LOCK_CATALOGUE);
        write_file("store/index/catalogue.new");
        assert_int_equal(write(says[1], "l", 1), 1);
        (void)usleep(HELD_US);
        _exit(rename("store/index/catalogue.new", "store/index/catalogue"));
    }
    assert_int_equal(read(says[0], &byte, 1), 1);
    (void)compact(store, WAL_STORE_COMPACT_ERASE);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_true(exists("store/index/catalogue"));
    assert_false(has_canary("store/index/catalogue"));
    assert_false(exists("store/index/catalogue.new"));
    (void)close(says[0]);
    (void)close(says[1]);
    kit_close(store);
}

/* With the lock of its writers, nobody writes a temporary file. */
KIT_TEST(abandoned__files_that_a_process_writes_stay)
{
    struct wal_store *store = make_store();
    int held = lock_byte(WAL__LOCK_INDEX);

    write_file("store/index/0000000000000099.idx.new");
    (void)compact(store, 0);
    assert_true(exists("store/index/0000000000000099.idx.new"));
    (void)close(held);
    (void)compact(store, 0);
    assert_false(exists("store/index/0000000000000099.idx.new"));
    kit_close(store);
}
