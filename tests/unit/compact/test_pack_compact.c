/*
 * test_pack_compact.c - tests of compacting the pack (SPEC.md 3.9): what of it goes and what stays,
 * by whom it is named, and who waits for whom.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "engine/log/locks.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/blob_store.h"
#include "tests/lib/kit/checkpoint_kit.h"
#include "tests/lib/kit/large_kit.h"
#include "tests/lib/put_unsynced.h"

enum { BIG = 300 * 1024 };

static struct wal_store_compact_result compact_some(struct wal_store *store, uint32_t flags,
                                                    uint32_t dead_percent)
{
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .flags = flags,
                                                      .dead_percent = dead_percent,
                                                      .rate = UINT64_MAX};

    assert_done(wal_store_compact(store, &options, &result, kit_error()));
    if (result.refused != 0) {
        fail_msg("%s: %s", result.refusal.file, result.refusal.text);
    }
    return result;
}

/* Bytes of the files in store/pack. */
static uint64_t pack_size(void)
{
    DIR *directory = opendir("store/pack");
    uint64_t size = 0;

    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        struct stat stat;

        if (fstatat(dirfd(directory), entry->d_name, &stat, 0) == 0 && S_ISREG(stat.st_mode)) {
            size += (uint64_t)stat.st_blocks * 512;
        }
    }
    (void)closedir(directory);
    return size;
}

static bool has(struct wal_store *store, const uint8_t digest[WAL_DIGEST_SIZE])
{
    struct wal_blob *blob = NULL;
    enum wal_status status = wal_blob_open(store, digest, &blob, kit_error());

    if (status == WAL_OK) {
        wal_blob_close(blob);
    } else {
        assert_int_equal(status, WAL_ENOTFOUND);
    }
    return status == WAL_OK;
}

/* Puts content as the engine does before a record names it. */
static struct wal__digest put_of_records(struct wal_store *store, const struct kit_content *content,
                                         const struct wal__digest *base)
{
    struct wal__blob_put_result result = {0};
    struct wal__digest digest;

    assert_ok(put_unsynced(store, (struct wal__span){content->data, (size_t)content->size}, base,
                           WAL__BLOB_OF_RECORDS, &digest, &result, NULL));
    return digest;
}

/* --- by whom content is named ------------------------------------------- */

/* The handle that compacts was opened before the store had content. */
KIT_TEST(pack__first_content_of_another_handle_goes)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(1, BIG, false);

    (void)put_of_records(kit_store(), &content, NULL);
    assert_int_equal(kit_compact(store, 0).dropped_contents, 1);
}

KIT_TEST(pack__content_of_a_caller_stays)
{
    struct wal_store *store = kit_store();
    struct kit_content small = kit_content(1, 1000, true);
    struct kit_content large = kit_content(2, 3 * KIT_MIB, true);
    uint8_t first[WAL_DIGEST_SIZE];
    uint8_t second[WAL_DIGEST_SIZE];

    kit_put_blob(store, &small, first);
    kit_put_blob(store, &large, second);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    kit_check_blob(store, first, &small);
    kit_check_blob(store, second, &large);
    kit_close(store);
    store = kit_store();
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    kit_check_blob(store, first, &small);
    kit_check_blob(store, second, &large);
}

/* The caller relies on what a record made: it is then the caller's too. */
KIT_TEST(pack__content_of_records_that_a_caller_puts_stays)
{
    struct wal_store *store = kit_store();
    struct kit_content small = kit_content(1, 1000, true);
    struct kit_content large = kit_content(2, 3 * KIT_MIB, true);
    uint8_t first[WAL_DIGEST_SIZE];
    uint8_t second[WAL_DIGEST_SIZE];

    (void)put_of_records(store, &small, NULL);
    (void)put_of_records(store, &large, NULL);
    kit_put_blob(store, &small, first);
    kit_put_blob(store, &large, second);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    kit_check_blob(store, first, &small);
    kit_check_blob(store, second, &large);
}

KIT_TEST(pack__payloads_stay_as_long_as_their_entries)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *other = kit_create(store, "other");
    char *kept = large_json(1, BIG);
    char *redacted = large_json(2, BIG);
    char *deleted = large_json(3, BIG);
    struct wal_store_compact_result result;

    large_append(session, "kept", kept, 0);
    large_append(session, "redacted", redacted, 0);
    large_append(other, "deleted", deleted, 0);
    assert_int_equal(kit_compact(store, 0).dropped_contents, 0);
    large_check(session, "kept", kept, 0);
    large_check(session, "redacted", redacted, 0);
    assert_ok(wal_session_redact(session, kit_text("redacted"), kit_text("why"), NULL, NULL));
    assert_ok(wal_session_delete(other, NULL));
    wal_session_close(other);
    result = kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_int_equal(result.dropped_contents, 2);
    large_check(session, "kept", kept, 0);
    wal_session_close(session);
    kit_close(store);
    store = kit_store();
    session = kit_session(store, "s");
    large_check(session, "kept", kept, 0);
}

static void delete_checkpoint(struct wal_session *session, const char *id)
{
    assert_ok(wal_checkpoint_delete(session, kit_text(id), NULL));
}

/* Also of a checkpoint with this id that is made after it. */
KIT_TEST(pack__files_of_deleted_checkpoints_go)
{
    for (uint32_t flags = 0; flags <= WAL_STORE_COMPACT_ERASE; flags += WAL_STORE_COMPACT_ERASE) {
        struct kit_work work = kit_work_begin(WAL_OPEN_CREATE);

        kit_write(&work, "a", "one");
        kit_write(&work, "b", "two");
        (void)kit_checkpoint(&work, "c1", "a");
        (void)kit_checkpoint(&work, "c1", "b");
        kit_write(&work, "b", "three");
        (void)kit_checkpoint(&work, "c2", "b");
        assert_int_equal(kit_compact(work.store, flags).dropped_contents, 0);
        delete_checkpoint(work.session, "c1");
        /* Its two lists of files, and two contents. */
        assert_int_equal(kit_compact(work.store, flags).dropped_contents, 4);
        assert_string_equal(kit_checkpoints(work.session), "c2");
        assert_string_equal(kit_files(&work, work.session, "c2"), "b=three");
        (void)kit_checkpoint(&work, "c1", "a");
        delete_checkpoint(work.session, "c2");
        assert_int_equal(kit_compact(work.store, flags).dropped_contents, 2);
        kit_work_reopen(&work, 0);
        assert_string_equal(kit_checkpoints(work.session), "c1");
        assert_string_equal(kit_files(&work, work.session, "c1"), "a=one");
        kit_work_end(&work);
        assert_int_equal(system("rm -r store work"), 0);
    }
}

/* A fork sees a checkpoint as it was at the fork, until it deletes it too. */
KIT_TEST(pack__files_of_deleted_checkpoints_that_forks_see)
{
    struct kit_work work = kit_work_begin(WAL_OPEN_CREATE);
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = kit_text("fork")};
    struct wal_session *fork = NULL;

    kit_append(work.session, "e", NULL);
    kit_write(&work, "a", "one");
    kit_wait_past_mtime(); /* so that the lists of c1 and c2 are equal */
    (void)kit_checkpoint(&work, "c1", "a");
    (void)kit_checkpoint(&work, "c2", "a");
    assert_ok(wal_session_fork(work.session, kit_text("e"), &options, &fork, NULL));
    kit_write(&work, "a", "two");
    (void)kit_checkpoint(&work, "c3", "a");
    delete_checkpoint(work.session, "c1");
    delete_checkpoint(work.session, "c3");
    delete_checkpoint(fork, "c2");
    /* The list and the file of c3. */
    assert_int_equal(kit_compact(work.store, WAL_STORE_COMPACT_ERASE).dropped_contents, 2);
    assert_string_equal(kit_checkpoints(fork), "c1");
    assert_string_equal(kit_files(&work, fork, "c1"), "a=one");
    assert_string_equal(kit_files(&work, work.session, "c2"), "a=one");
    delete_checkpoint(fork, "c1");
    assert_ok(wal_session_delete(work.session, NULL));
    /* No session sees c2 either: its list, which is that of c1, and a file. */
    assert_int_equal(kit_compact(work.store, WAL_STORE_COMPACT_ERASE).dropped_contents, 2);
    assert_string_equal(kit_checkpoints(fork), "");
    wal_session_close(fork);
}

/* --- deltas ------------------------------------------------------------- */

/* A version of the content: some bytes of it are others. */
static struct kit_content version_of(const struct kit_content *content)
{
    struct kit_content version = {test_memory(content->size), content->size};

    memcpy(version.data, content->data, content->size);
    version.data[100] ^= 1;
    return version;
}

static uint8_t depth_of(struct wal_store *store, const struct wal__digest *digest)
{
    struct wal__buf content;
    uint8_t depth = 99;

    wal__buf_init(&content, &wal__heap_libc);
    assert_ok(wal__chunk_load(&store->core.blobs, digest, &content, &depth, NULL));
    wal__buf_deinit(&content);
    return depth;
}

/* The base was dropped: what is based on it is encoded anew. */
KIT_TEST(pack__a_delta_whose_base_goes_is_encoded_anew)
{
    struct wal_store *store = kit_store();
    struct kit_content base = kit_content(1, BIG, false);
    struct kit_content version = version_of(&base);
    struct wal__digest based = put_of_records(store, &base, NULL);
    struct wal__blob_put_result cost = {0};
    struct wal__digest digest;

    assert_ok(put_unsynced(store, (struct wal__span){version.data, (size_t)version.size}, &based,
                           WAL__BLOB_OF_CALLER, &digest, &cost, NULL));
    assert_int_equal(depth_of(store, &digest), 1);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_false(has(store, based.bytes));
    assert_int_equal(depth_of(store, &digest), 0);
    kit_check_blob(store, digest.bytes, &version);
}

/* --- guards ------------------------------------------------------------- */

/* Content that is put, and not named yet. */
KIT_TEST(pack__a_guard_makes_the_compaction_wait)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(1, 3 * KIT_MIB, false);
    struct wal_error error = KIT_ERROR;
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .rate = UINT64_MAX};
    struct wal_blob_writer *writer = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];

    assert_ok(wal_blob_create(store, &writer, NULL));
    assert_ok(wal_blob_write(writer, kit_slice(&content), NULL));
    assert_int_equal(wal_store_compact(store, &options, NULL, &error), WAL_ELOCKED);
    assert_error(&error, WAL_ELOCKED, "another thread is still storing");
    assert_int_equal(error.holder, (int32_t)getpid());
    assert_ok(wal_blob_finish(writer, digest, NULL, NULL));
    wal_blob_discard(writer);
    (void)kit_compact(store, 0);
    kit_check_blob(store, digest, &content);
}

/* Content for a checkpoint: it stays while the writer is there, then as long as the checkpoint of a
 * session that is not deleted names it. */
KIT_TEST(pack__content_that_is_to_be_named)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct kit_content content = kit_content(1, 3 * KIT_MIB, false);
    struct wal_file file = {.struct_size = sizeof(file),
                            .path = kit_text("file"),
                            .kind = WAL_FILE_REGULAR,
                            .mode = 0644};
    struct wal_checkpoint_options options = {.struct_size = sizeof(options),
                                             .id = kit_text("c"),
                                             .root = kit_text("/work"),
                                             .flags = WAL_CHECKPOINT_UNLINKED};
    const struct wal_store_compact_options gc = {.struct_size = sizeof(gc), .rate = UINT64_MAX};
    struct wal_blob_writer *writer = NULL;

    for (int named = 0; named < 2; named++) {
        assert_ok(wal_blob_create_named(store, &writer, NULL));
        assert_ok(wal_blob_write(writer, kit_slice(&content), NULL));
        assert_ok(wal_blob_finish(writer, file.digest, NULL, NULL));
        assert_int_equal(wal_store_compact(store, &gc, NULL, NULL), WAL_ELOCKED);
        if (named != 0) {
            assert_ok(wal_checkpoint_import(session, &file, 1, &options, NULL, NULL));
        }
        wal_blob_discard(writer);
        (void)kit_compact(store, 0);
        assert_int_equal(has(store, file.digest), named != 0);
    }
    kit_check_blob(store, file.digest, &content);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_false(has(store, file.digest));
}

/* While segments are condemned nothing in them is found in order to be named, and everything is
 * found in order to be read. */
KIT_TEST(pack__condemned_content_is_stored_again)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(1, BIG, false);
    struct wal__digest digest = put_of_records(store, &content, NULL);
    struct wal__blob_store *blobs = &store->core.blobs;
    struct wal__blob_put_result again = {0};
    struct wal__content_guard guard = {NULL, 0};
    uint64_t end = 0;
    uint64_t size = 0;

    assert_ok(wal__blob_store_rotate(blobs, NULL));
    assert_ok(wal__content_condemn(&store->core.control, 1, NULL));
    assert_true(has(store, digest.bytes));
    kit_check_blob(store, digest.bytes, &content);
    assert_ok(wal__blob_find_end(blobs, &digest, &end, NULL));
    assert_int_equal(end, 0);
    assert_ok(wal__content_guard_enter(&guard, &store->core.control, NULL));
    assert_ok(wal__blob_claim(blobs, &digest, &size, &end, NULL));
    wal__content_guard_leave(&guard);
    assert_int_equal(size, BIG);
    assert_true(wal__position_segment(end) > 1);
    assert_ok(put_unsynced(store, (struct wal__span){content.data, (size_t)content.size}, NULL,
                           WAL__BLOB_OF_RECORDS, &digest, &again, NULL));
    assert_int_equal(again.new_blobs, 0); /* it is there since the claim */
    wal__content_absolve(&store->core.control);
    kit_check_blob(store, digest.bytes, &content);
}

/* --- what stays without what it needs ----------------------------------- */

/* Stores a payload as records do, without a record that names it: two chunks in one segment, the
 * last chunk and the list in the next one. */
static struct wal__digest put_apart(struct wal_store *store, const char *payload)
{
    struct wal_blob_writer *writer = NULL;
    struct wal__digest digest;

    assert_ok(wal_blob_create_named(store, &writer, NULL));
    assert_ok(wal_blob_write(writer, kit_text(payload), NULL));
    assert_ok(wal__blob_store_rotate(&store->core.blobs, NULL));
    assert_ok(wal_blob_finish(writer, digest.bytes, NULL, NULL));
    wal_blob_discard(writer);
    return digest;
}

/* The content counts as not stored. */
static void check_incomplete(struct wal_store *store, const struct wal__digest *digest)
{
    uint64_t end = 99;

    assert_ok(wal__blob_find_end(&store->core.blobs, digest, &end, NULL));
    assert_int_equal(end, 0);
}

/* An entry that has the payload has all of it, also when the store is opened again; the store is
 * sound. */
static void check_append(struct wal_store *store, const char *payload)
{
    struct wal_session *session = kit_create(store, "s");

    kit_check_sound("store");
    large_append(session, "e", payload, 0);
    large_check(session, "e", payload, 0);
    wal_session_close(session);
    kit_close(store);
    kit_check_sound("store");
    store = kit_store();
    session = kit_session(store, "s");
    large_check(session, "e", payload, 0);
    wal_session_close(session);
    (void)kit_compact(store, 0);
    kit_close(store);
    kit_check_sound("store");
}

/* The segment of the list is not worth rewriting, that of the chunks is. */
KIT_TEST(pack__a_list_stays_and_its_chunks_go)
{
    struct wal_store *store = kit_store();
    struct kit_content filler = kit_content(1, 20 * KIT_MIB, false);
    char *payload = large_json(2, 3 * KIT_MIB);
    struct wal__digest digest = put_apart(store, payload);
    uint8_t ignored[WAL_DIGEST_SIZE];

    kit_put_blob(store, &filler, ignored);
    assert_int_equal(compact_some(store, 0, 90).dropped_contents, 2);
    assert_true(has(store, digest.bytes));
    check_incomplete(store, &digest);
    check_append(store, payload);
}

/* The same of a delta and its base. */
KIT_TEST(pack__a_delta_stays_and_its_base_goes)
{
    struct wal_store *store = kit_store();
    struct kit_content filler = kit_content(1, 20 * KIT_MIB, false);
    struct kit_content base = kit_content(2, BIG, false);
    struct kit_content version = version_of(&base);
    struct wal__blob_put_result again = {0};
    struct wal__digest digest = put_of_records(store, &base, NULL);
    uint8_t ignored[WAL_DIGEST_SIZE];

    assert_ok(wal__blob_store_rotate(&store->core.blobs, NULL));
    digest = put_of_records(store, &version, &digest);
    assert_int_equal(depth_of(store, &digest), 1);
    kit_put_blob(store, &filler, ignored);
    assert_int_equal(compact_some(store, 0, 90).dropped_contents, 1);
    assert_true(has(store, digest.bytes));
    check_incomplete(store, &digest);
    kit_check_sound("store");
    assert_ok(put_unsynced(store, (struct wal__span){version.data, (size_t)version.size}, NULL,
                           WAL__BLOB_OF_CALLER, &digest, &again, NULL));
    assert_int_equal(again.new_blobs, 1);
    kit_check_blob(store, digest.bytes, &version);
}

static void *run_compact(void *ctx)
{
    (void)kit_compact(ctx, 0);
    return NULL;
}

/* A writer that the compaction waits for ends without a record that names its content: its list is
 * in a segment that the compaction leaves. */
KIT_TEST(pack__content_is_finished_while_its_chunks_are_condemned)
{
    struct wal_store *store = kit_store();
    struct wal__control *control = &store->core.control;
    char *payload = large_json(2, 3 * KIT_MIB);
    struct wal_blob_writer *writer = NULL;
    struct wal__digest digest;
    struct kit_content found;
    pthread_t thread;

    assert_ok(wal_blob_create_named(store, &writer, NULL));
    assert_ok(wal_blob_write(writer, kit_text(payload), NULL));
    assert_int_equal(pthread_create(&thread, NULL, run_compact, store), 0);
    while (wal__content_condemned(control) == 0) {
        (void)usleep(1000);
    }
    assert_ok(wal_blob_finish(writer, digest.bytes, NULL, NULL));
    wal_blob_discard(writer);
    assert_int_equal(pthread_join(thread, NULL), 0);
    found = (struct kit_content){(uint8_t *)payload, strlen(payload)};
    kit_check_blob(store, digest.bytes, &found);
    check_append(store, payload);
}

static int32_t kill_self(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)total;
    if (done > 0) {
        (void)raise(SIGKILL);
    }
    return 0;
}

/* Compacts in another process, which is killed once it has replaced a segment, or ends. */
static void compact_in_child(bool is_killed)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .rate = UINT64_MAX,
                                                      .progress = is_killed ? kill_self : NULL};
    pid_t child = kit_start_process();
    int result = 0;

    if (child == 0) {
        struct wal_store *store = kit_store();
        struct wal_error error = KIT_ERROR;

        if (wal_store_compact(store, &options, NULL, &error) != WAL_OK) {
            (void)fprintf(stderr, "%s\n", error.text);
            _exit(1);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(WIFSIGNALED(result), is_killed);
    assert_true(is_killed || WEXITSTATUS(result) == 0);
}

static struct wal_store *compacting;
static uint32_t opens_left; /* of files of the pack, before its tail is ended and replaced */

static enum wal_status open_late(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    if (compacting != NULL && strstr(path, "/pack") != NULL && opens_left-- == 0) {
        struct wal_store *store = compacting;

        compacting = NULL;
        assert_ok(wal__blob_store_rotate(&store->core.blobs, NULL));
        assert_int_not_equal(compact_some(store, 0, 0).rewritten, 0);
    }
    return wal__io_posix.open(ctx, path, flags, file, sys_errno);
}

/* Before each of the files that it opens. */
KIT_TEST(pack__tail_is_replaced_while_another_opens_the_store)
{
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal__io io = wal__io_posix;
    struct wal_store *other = NULL;
    uint32_t nth = 0;

    io.open = open_late;
    while (compacting == NULL) {
        struct wal_store *store = kit_store();
        struct kit_content dead = kit_content(2 * nth + 1, BIG, false);
        struct kit_content kept = kit_content(2 * nth + 2, BIG, false);
        uint8_t digest[WAL_DIGEST_SIZE];

        (void)put_of_records(store, &dead, NULL);
        kit_put_blob(store, &kept, digest);
        compacting = store;
        opens_left = nth++;
        assert_done(wal__store_open("store", &options, &wal__heap_libc, &io, &other, kit_error()));
        kit_check_blob(other, digest, &kept);
        kit_close(other);
        kit_close(store);
        kit_content_free(&dead);
        kit_content_free(&kept);
    }
    assert_in_range(nth, 4, 100);
    compacting = NULL;
}

/* What it replaced is not known to a process that has looked before. */
KIT_TEST(pack__a_compaction_was_killed_before_others_knew)
{
    struct wal_store *store = kit_store();
    char *payload = large_json(2, LARGE_MIN);
    const struct kit_content content = {(uint8_t *)payload, strlen(payload)};
    struct kit_content filler = kit_content(1, BIG, false);
    struct wal__digest digest = put_of_records(store, &content, NULL);
    uint8_t ignored[WAL_DIGEST_SIZE];

    kit_put_blob(store, &filler, ignored);
    assert_ok(wal__blob_store_rotate(&store->core.blobs, NULL));
    kit_check_blob(store, digest.bytes, &content);
    compact_in_child(true);
    compact_in_child(false); /* which finds nothing to replace */
    check_append(store, payload);
}

/* A torn write left OPEN without its COMMIT. */
KIT_TEST(pack__segment_without_a_group_is_left)
{
    static const uint8_t zeros[3000];

    for (int has_rest = 0; has_rest < 2; has_rest++) {
        const struct wal_store_compact_options erase = {
            .struct_size = sizeof(erase), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};
        struct wal_store_compact_result result = {.struct_size = sizeof(result)};
        struct kit_content content = kit_content(1, 1000, false);
        struct wal_store *store = kit_store();
        uint8_t digest[WAL_DIGEST_SIZE];
        int fd;

        kit_put_blob(store, &content, digest);
        kit_close(store);
        assert_int_equal(system("rm -f store/index/*"), 0);
        fd = open("store/pack/0000000000000001.seg", O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 4096 + 88), sizeof(zeros));
        if (has_rest != 0) {
            assert_int_equal(pwrite(fd, "rest", 4, 8192), 4);
        }
        (void)close(fd);
        store = kit_store();
        kit_put_blob(store, &content, digest);
        assert_ok(wal_store_compact(store, NULL, &result, NULL));
        assert_int_equal(result.refused, 0);
        assert_ok(wal_store_compact(store, &erase, &result, NULL));
        assert_int_equal(result.refused, has_rest);
        kit_check_blob(store, digest, &content);
        kit_close(store);
        assert_int_equal(system("rm -r store"), 0);
        kit_content_free(&content);
    }
}

/* --- space -------------------------------------------------------------- */

KIT_TEST(pack__space_comes_back)
{
    struct wal_store *store = kit_store();
    uint64_t most = 0;

    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t i = 0; i < 20; i++) {
            struct kit_content content = kit_content(round * 100 + i, BIG, false);

            (void)put_of_records(store, &content, NULL);
            kit_content_free(&content);
        }
        (void)kit_compact(store, 0);
        most = pack_size() > most ? pack_size() : most;
    }
    assert_true(most <= 2 * KIT_MIB);
}

KIT_TEST(pack__again_changes_nothing)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(1, BIG, false);
    uint8_t digest[WAL_DIGEST_SIZE];

    kit_put_blob(store, &content, digest);
    (void)kit_compact(store, 0);
    assert_int_equal(kit_compact(store, 0).rewritten, 0);
    assert_int_equal(kit_compact(store, WAL_STORE_COMPACT_DRY_RUN).rewritten, 0);
    kit_check_blob(store, digest, &content);
}
