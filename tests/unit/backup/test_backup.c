/*
 * test_backup.c - wal_store_backup (docs/keeping.md): what the copy has, what a second backup
 * writes, and the directories and stores that are refused, where nothing is changed.
 */
#include <sys/wait.h>

#include "engine/session/store.h"
#include "tests/lib/kit/backup_kit.h"

enum { LARGE = 100 * 1024 };

/* --- what the copy has -------------------------------------------------- */

KIT_TEST(backup__of_a_store_is_a_store)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    assert_int_equal(kit_backup_result.segments, 1);
    assert_int_equal(kit_backup_result.copied, 1);
    assert_int_equal(kit_backup_result.last_sequence, 6);
    assert_same_store("store", "copy");
    /* It is writable, as a store that was restored. */
    kit_append_to("copy", 5, 1, 10);
}

KIT_TEST(backup__without_news_writes_nothing)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_back_up("store", "copy/");
    assert_int_equal(kit_backup_result.bytes, 0);
    assert_int_equal(kit_backup_result.copied, 0);
    assert_int_equal(kit_backup_result.segments, 1);
    assert_int_equal(kit_backup_result.last_sequence, 6);
}

KIT_TEST(backup__of_few_entries_writes_them_alone)
{
    kit_append_to("store", 0, 8, LARGE);
    kit_back_up("store", "copy");
    kit_append_to("store", 8, 1, 10);
    kit_back_up("store", "copy");
    assert_in_range(kit_backup_result.bytes, 1, 20 * 1024);
    assert_same_store("store", "copy");
}

/* The names and bytes of all segments but the newest are equal. */
KIT_TEST(backup__of_ended_segments_is_equal_byte_for_byte)
{
    kit_append_to("store", 0, 5, LARGE);
    kit_back_up("store", "copy");
    kit_append_to("store", 5, 100, LARGE);
    kit_back_up("store", "copy");
    assert_true(kit_backup_result.segments >= 3);
    kit_run("cd store/log && for s in $(ls *.seg | head -n -2); do "
            "cmp $s ../../copy/log/$s || exit 1; done; test -f "
            "../../copy/log/0000000000000002.seg");
    assert_same_store("store", "copy");
}

KIT_TEST(backup__after_compaction_has_the_new_segments)
{
    kit_append_to("store", 0, 40, LARGE);
    kit_back_up("store", "copy");
    kit_append_to("store", 40, 5, LARGE);
    kit_compact_path("store");
    kit_back_up("store", "copy");
    assert_true(kit_backup_result.removed > 0);
    assert_same_store("store", "copy");
    kit_append_to("store", 45, 1, 10);
    kit_back_up("store", "copy");
    assert_in_range(kit_backup_result.bytes, 1, 20 * 1024);
    assert_same_store("store", "copy");
    kit_compact_path("store");
    kit_compact_path("store");
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
}

/* The newest segment of the copy is the one that compaction rewrote. */
KIT_TEST(backup__of_a_rewritten_newest_segment)
{
    kit_append_to("store", 0, 3, 10);
    kit_back_up("store", "copy");
    kit_compact_path("store");
    assert_true(kit_exists("store/log/0000000000000001.seg"));
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
    assert_false(kit_exists("copy/log/0000000000010002.seg"));
}

/* Appends entries first to first + count - 1 of LARGE bytes that compression cannot shorten. */
static void append_random(uint32_t first, uint32_t count)
{
    struct wal_store *store = kit_open("store", first == 0 ? WAL_OPEN_CREATE : 0);
    struct wal_session *session = first == 0 ? kit_create(store, "s") : kit_session(store, "s");
    char *payload = malloc(LARGE + 1);
    uint64_t state = first + 1;

    assert_non_null(payload);
    memset(payload, '"', LARGE);
    payload[LARGE] = '\0';
    for (uint32_t i = first; i < first + count; i++) {
        struct wal_entry entry;
        char id[16];

        for (size_t k = 1; k < LARGE - 1; k++) {
            payload[k] = (char)('#' + kit_random(&state) % 57);
        }
        (void)snprintf(id, sizeof(id), "e%u", i);
        entry = kit_entry(id, NULL, payload);
        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
    free(payload);
    wal_session_close(session);
    kit_close(store);
}

/* A segment in the middle of the copy has the id of one that has all before it now. With less than
 * WAL__COMPACT_RUN_MAX it would be the last one. */
KIT_TEST(backup__of_a_segment_that_was_rewritten_again)
{
    struct wal_store *store;
    struct wal_session *session;

    append_random(0, 320);
    kit_compact_path("store");
    append_random(320, 10);
    kit_back_up("store", "copy");
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    kit_redact(session, "e0");
    wal_session_close(session);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    kit_close(store);
    kit_run("cd store/log && first=$(ls *.seg | head -n 1) && test -f ../../copy/log/$first && "
            "test $first != $(ls ../../copy/log | tail -n 1) && "
            "! cmp -s $first ../../copy/log/$first");
    kit_back_up("store", "copy");
    kit_run("cd store/log && for s in $(ls *.seg | head -n -1); do cmp $s ../../copy/log/$s || "
            "exit 1; done");
    assert_same_store("store", "copy");
}

KIT_TEST(backup__has_blobs)
{
    kit_append_to("store", 0, 2, 10);
    kit_back_up("store", "copy");
    kit_append_to("store", 2, 3, 400 * 1024);
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
    kit_run("cmp store/pack/0000000000000001.seg copy/pack/0000000000000001.seg");
}

KIT_TEST(backup__of_a_backup)
{
    kit_append_to("store", 0, 20, LARGE);
    kit_back_up("store", "copy");
    kit_back_up("copy", "second");
    assert_same_store("store", "second");
    kit_append_to("store", 20, 20, LARGE);
    kit_back_up("store", "copy");
    kit_back_up("copy", "second");
    assert_same_store("store", "second");
}

KIT_TEST(backup__of_a_writable_store_has_what_is_queued)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry = kit_entry("a", NULL, "{\"id\":\"a\"}");

    assert_ok(wal_append(session, &entry, 1, &options, NULL, NULL));
    assert_ok(kit_try_backup(store, "copy"));
    wal_session_close(session);
    kit_close(store);
    assert_same_store("store", "copy");
}

/* The handle has not read what another one has written since. */
KIT_TEST(backup__of_a_writable_store_has_what_another_has_written)
{
    struct wal_store *store = kit_bench("").store;
    struct wal_store *other = kit_store();
    struct wal_session *of_other = kit_session(other, "s");

    for (int i = 0; i < 3; i++) {
        kit_append_as(of_other, WAL_WRITTEN);
    }
    assert_ok(kit_try_backup(store, "copy"));
    assert_int_equal(kit_backup_result.last_sequence, kit_store_info(other).last_sequence);
    assert_same_store("store", "copy");
}

/* The entries of the session "s" that a handle which only reads takes for durable. */
static void assert_durable(const char *path, const char *ids)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_DURABLE};
    struct wal_store *store = kit_open(path, WAL_OPEN_READ_ONLY);
    struct wal_session *session = kit_session(store, "s");

    assert_string_equal(kit_list_ids(session, &options), ids);
    wal_session_close(session);
    kit_close(store);
}

static void append_durable(struct wal_session *session, const char *id)
{
    struct wal_entry entry = kit_entry(id, NULL, "{}");

    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
}

/* The last group of a store in use does not say that it is durable. */
KIT_TEST(backup__of_a_store_in_use_is_all_durable)
{
    struct wal_session *session = kit_create(kit_store(), "s");

    append_durable(session, "a");
    kit_back_up("store", "copy");
    assert_durable("copy", "a");
    /* Opened to write, the copy has a durable end in LOCK. */
    kit_close(kit_open("copy", 0));
    append_durable(session, "b");
    append_durable(session, "c");
    kit_back_up("store", "copy");
    assert_durable("copy", "a b c");
    kit_back_up("copy", "second");
    assert_durable("second", "a b c");
}

KIT_TEST(backup__that_was_written_to_has_a_durable_end)
{
    const struct wal_append_options written = {.struct_size = sizeof(written),
                                               .durability = WAL_WRITTEN};
    int status = 0;
    pid_t process;

    kit_append_to("store", 0, 2, 10);
    kit_back_up("store", "copy");
    process = kit_start_process();
    if (process == 0) {
        struct wal_store *copy = kit_open("copy", 0);
        struct wal_session *session = kit_session(copy, "s");
        struct wal_entry entry = kit_entry("w", NULL, "{}");

        append_durable(session, "d");
        _exit(wal_append(session, &entry, 1, &written, NULL, NULL));
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
    assert_durable("copy", "e0 e1 d");
}

KIT_TEST(backup__of_a_store_without_lock_file)
{
    kit_append_to("store", 0, 5, 10);
    assert_int_equal(unlink("store/LOCK"), 0);
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
    assert_false(kit_exists("store/LOCK"));
}

KIT_TEST(backup__restored_by_copying_goes_on)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_run("rm -r store && cp -r copy store");
    kit_append_to("store", 5, 5, LARGE);
    kit_back_up("store", "second");
    assert_same_store("store", "second");
}

/* Reading the copy changes nothing in it. */
KIT_TEST(backup__of_a_copy_that_was_read_goes_on)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_close(kit_open("copy", WAL_OPEN_READ_ONLY));
    kit_append_to("store", 5, 1, 10);
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
}

/* Without its state the copy is compared with the store. */
KIT_TEST(backup__without_state_goes_on)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    assert_int_equal(unlink("copy/index/backup"), 0);
    kit_append_to("store", 5, 1, 10);
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
}

KIT_TEST(backup__removes_what_a_killed_one_was_writing)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_run("touch copy/log/0000000000000009.seg.new");
    kit_append_to("store", 5, 1, 10);
    kit_back_up("store", "copy");
    assert_false(kit_exists("copy/log/0000000000000009.seg.new"));
    assert_same_store("store", "copy");
}

/* MANIFEST is written last. */
KIT_TEST(backup__without_manifest_goes_on)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    assert_int_equal(unlink("copy/MANIFEST"), 0);
    kit_append_to("store", 5, 1, 10);
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
}

/* Bytes are copied as they are: the copy is as sound as the store. */
KIT_TEST(backup__of_a_damaged_segment_has_the_damage)
{
    kit_append_to("store", 0, 60, LARGE);
    kit_run("dd if=/dev/zero of=store/log/0000000000000002.seg bs=1 seek=4100 "
            "count=100 conv=notrunc 2>/dev/null");
    kit_back_up("store", "copy");
    kit_run("cmp store/log/0000000000000001.seg copy/log/0000000000000001.seg && "
            "cmp store/log/0000000000000002.seg copy/log/0000000000000002.seg");
    kit_append_to("store", 60, 1, 10);
    kit_back_up("store", "copy");
}

/* Opening it for writing makes a segment, files in index/ and a preallocated segment, and adds no
 * record. */
KIT_TEST(backup__of_a_copy_that_was_opened_goes_on)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    for (uint32_t i = 0; i < 3; i++) {
        kit_close(kit_open("copy", 0));
        kit_append_to("store", 5 + i, 1, 10);
        kit_back_up("store", "copy");
        assert_same_store("store", "copy");
        kit_run("cmp store/log/0000000000000001.seg copy/log/0000000000000001.seg");
    }
    kit_compact_path("copy");
    kit_expect_refused("store", "copy", WAL_EEXISTS, "it was written to");
}

/* The end of a store in use is not marked: opening the copy repeats its last groups in a new
 * segment. */
KIT_TEST(backup__of_a_copy_that_was_recovered_goes_on)
{
    struct wal_store *store;
    struct wal_session *session;

    kit_append_to("store", 0, 5, 10);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    kit_append(session, "a", NULL);
    assert_ok(kit_try_backup(store, "copy"));
    kit_close(kit_open("copy", 0));
    assert_true(kit_exists("copy/log/0000000000000002.seg"));
    kit_append(session, "b", NULL);
    assert_ok(kit_try_backup(store, "copy"));
    wal_session_close(session);
    kit_close(store);
    assert_same_store("store", "copy");
}

/* --- together with others ------------------------------------------------ */

static int32_t compact_meanwhile(void *ctx, uint64_t done, uint64_t total)
{
    struct wal_store *store = ctx;

    assert_true(done <= total);
    assert_int_equal(wal_store_compact(store, NULL, NULL, NULL), WAL_ELOCKED);
    return 0;
}

static int32_t back_up_meanwhile(void *ctx, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    assert_int_equal(kit_try_backup(ctx, "copy"), WAL_ELOCKED);
    return 0;
}

static int32_t stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return 7;
}

KIT_TEST(backup__keeps_compaction_out)
{
    struct wal_store_backup_options options = {.struct_size = sizeof(options),
                                               .progress = compact_meanwhile};
    struct wal_store_compact_options compaction = {
        .struct_size = sizeof(compaction), .progress = back_up_meanwhile, .rate = UINT64_MAX};
    struct wal_store *store;
    struct wal_store *reader;

    kit_append_to("store", 0, 5, LARGE);
    store = kit_open("store", 0);
    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    options.ctx = store;
    assert_ok(wal_store_backup(store, "copy", &options, NULL, NULL));
    assert_ok(wal_store_backup(reader, "second", &options, NULL, NULL));
    compaction.ctx = reader;
    assert_ok(wal_store_compact(store, &compaction, NULL, NULL));
}

KIT_TEST(backup__stopped_by_the_caller_goes_on)
{
    struct wal_store_backup_options options = {.struct_size = sizeof(options), .progress = stop};
    struct wal_store *store;

    kit_append_to("store", 0, 5, LARGE);
    kit_back_up("store", "copy");
    kit_append_to("store", 5, 30, LARGE);
    store = kit_open("store", 0);
    kit_backup_error = KIT_ERROR;
    assert_int_equal(wal_store_backup(store, "copy", &options, NULL, &kit_backup_error),
                     WAL_ECALLBACK);
    assert_int_equal(kit_backup_error.sys_errno, 7);
    kit_close(store);
    {
        struct wal_store *copy = kit_open("copy", WAL_OPEN_READ_ONLY);

        assert_int_equal(kit_store_info(copy).last_sequence, 6);
        kit_close(copy);
    }
    kit_back_up("store", "copy");
    assert_same_store("store", "copy");
}

/* --- shared blocks ------------------------------------------------------- */

static struct wal__io sharing;

static uint32_t clones;

/* Copies, as a file system that cannot share would have to. */
static enum wal_status clone_by_copying(void *ctx, struct wal__file *from, struct wal__file *to,
                                        int *sys_errno)
{
    static uint8_t bytes[64 * 1024];
    uint64_t at = 0;
    size_t got = 0;

    clones++;
    do {
        struct iovec iov = {bytes, 0};

        if (sharing.pread(ctx, from, bytes, sizeof(bytes), at, &got, sys_errno) != WAL_OK) {
            return WAL_EIO;
        }
        iov.iov_len = got;
        if (got > 0 && wal__io_write_full(&sharing, to, &iov, 1, at, sys_errno) != WAL_OK) {
            return WAL_EIO;
        }
        at += got;
    } while (got > 0);
    return WAL_OK;
}

KIT_TEST(backup__shares_blocks_where_it_can)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY};
    struct wal_store *store = NULL;

    kit_append_to("store", 0, 60, LARGE);
    sharing = wal__io_posix;
    sharing.clone = clone_by_copying;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &sharing, &store, NULL));
    assert_ok(kit_try_backup(store, "copy"));
    kit_close(store);
    assert_true(clones > 0);
    assert_int_equal(clones, kit_backup_result.segments - 1);
    assert_true(kit_backup_result.shared_bytes >= 3 * 1024 * 1024);
    assert_same_store("store", "copy");
}

/* --- what is refused ---------------------------------------------------- */

KIT_TEST(backup__to_a_copy_with_new_records_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_append_to("copy", 5, 1, 10);
    kit_expect_refused("store", "copy", WAL_EEXISTS, "has records that the store");
    kit_append_to("store", 5, 2, 10);
    kit_expect_refused("store", "copy", WAL_EEXISTS, "has records that the store");
    kit_compact_path("store");
    kit_expect_refused("store", "copy", WAL_EEXISTS, "has records that the store");
    kit_append_to("copy", 6, 40, LARGE);
    kit_expect_refused("store", "copy", WAL_EEXISTS, "has records that the store");
}

KIT_TEST(backup__of_an_older_store_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "older");
    kit_append_to("store", 5, 5, 10);
    kit_back_up("store", "copy");
    kit_run("rm -r store && cp -r older store");
    kit_expect_refused("store", "copy", WAL_EEXISTS, "the store is older");
    kit_append_to("store", 5, 50, 10);
    kit_expect_refused("store", "copy", WAL_EEXISTS, "the store is older");
}

/* Both went on in the same segment. */
KIT_TEST(backup__of_a_store_with_another_history_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_run("cp -r store older");
    kit_append_to("store", 5, 5, 10);
    kit_back_up("store", "copy");
    kit_run("rm -r store && cp -r older store");
    kit_append_to("store", 5, 50, 20);
    assert_false(kit_exists("store/log/0000000000000003.seg"));
    kit_expect_refused("store", "copy", WAL_EEXISTS, "the store is older");
}

KIT_TEST(backup__to_another_store_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_append_to("other", 0, 1, 10);
    kit_expect_refused("store", "other", WAL_EEXISTS, "another store");
    kit_run("rm other/MANIFEST");
    kit_expect_refused("store", "other", WAL_EEXISTS, "without a manifest");
}

KIT_TEST(backup__to_other_files_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_run("mkdir copy && touch copy/file && touch plain");
    kit_expect_refused("store", "copy", WAL_EEXISTS, "other files");
    kit_expect_refused("store", "missing/copy", WAL_EEXISTS, "parent");
    kit_expect_refused("store", "plain", WAL_ENOTSTORE, "is a file");
    assert_false(kit_exists("copy/log"));
}

KIT_TEST(backup__inside_the_store_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_run("ln -s store/log link && ln -s store itself");
    kit_expect_refused("store", "store", WAL_EINVAL, "inside the store");
    kit_expect_refused("store", "itself", WAL_EINVAL, "inside the store");
    kit_expect_refused("store", "store/copy", WAL_EINVAL, "inside the store");
    kit_expect_refused("store", "store/log/copy/", WAL_EINVAL, "inside the store");
    kit_expect_refused("store", "link/copy", WAL_EINVAL, "inside the store");
    assert_false(kit_exists("store/copy") || kit_exists("store/log/copy"));
}

KIT_TEST(backup__to_a_copy_that_is_open_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    (void)kit_open("copy", 0);
    kit_expect_refused("store", "copy", WAL_ELOCKED, "has the copy open");
}

KIT_TEST(backup__to_a_damaged_copy_is_refused)
{
    kit_append_to("store", 0, 5, 10);
    kit_back_up("store", "copy");
    kit_run("dd if=/dev/zero of=copy/log/0000000000000001.seg bs=1 seek=8 "
            "count=3000 conv=notrunc 2>/dev/null");
    kit_expect_refused("store", "copy", WAL_ECORRUPT, "is damaged");
}

KIT_TEST(backup__of_a_store_without_files_is_refused)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);

    assert_int_equal(wal_store_backup(NULL, "copy", NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(kit_try_backup(store, NULL), WAL_EINVAL);
    assert_int_equal(kit_try_backup(store, ""), WAL_EINVAL);
    {
        struct wal_store_backup_options options = {.struct_size = sizeof(options), .flags = 1};

        assert_int_equal(wal_store_backup(store, "copy", &options, NULL, NULL), WAL_EINVAL);
    }
    kit_close(store);
    store = kit_open("noop", WAL_OPEN_NOOP);
    assert_int_equal(kit_try_backup(store, "copy"), WAL_EINVAL);
    kit_close(store);
    assert_false(kit_exists("copy"));
}
