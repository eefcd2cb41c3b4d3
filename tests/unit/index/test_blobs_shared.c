/*
 * test_blobs_shared.c - tests of content that several threads, handles and
 * processes put at once (SPEC.md 5.12).
 */
#include <pthread.h>
#include <sys/wait.h>

#include "agentwal/blob.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/blob_kit.h"

enum {
    WRITERS = 4,
    CONTENTS = 60
};

static struct kit_content nth(uint32_t number)
{
    return kit_content(number, 1000 + number * 997u, number % 2 == 0);
}

KIT_TEST(shared__handle_finds_content_of_another)
{
    struct wal_store *stores[2] = {kit_store(), kit_store()};

    for (uint32_t i = 0; i < 40; i++) {
        struct kit_content content = nth(i);
        uint8_t digest[WAL_DIGEST_SIZE];
        uint64_t bytes;

        kit_put_blob(stores[i % 2], &content, digest);
        bytes = kit_store_info(stores[0]).pack_bytes;
        kit_check_blob(stores[1 - i % 2], digest, &content);
        kit_put_blob(stores[1 - i % 2], &content, digest);
        assert_int_equal(kit_store_info(stores[1]).pack_bytes, bytes);
        kit_content_free(&content);
    }
    kit_close(stores[0]);
    kit_close(stores[1]);
}

/* One that only reads follows those who write. */
KIT_TEST(shared__a_reader_follows)
{
    struct wal_store *store = kit_store();
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);
    struct wal_error error = KIT_ERROR;
    uint8_t digest[WAL_DIGEST_SIZE];

    for (uint32_t i = 0; i < 20; i++) {
        struct kit_content content = kit_content(i, 400000, false);

        kit_put_blob(store, &content, digest);
        kit_check_blob(reader, digest, &content);
        kit_content_free(&content);
    }
    assert_int_equal(wal_blob_put(reader, kit_text("x"), digest, &error),
                     WAL_EREADONLY);
    kit_close(store);
    kit_close(reader);
}

/* One writer of several: puts all contents, in a different order each. */
static void put_all(struct wal_store *store, uint32_t writer)
{
    for (uint32_t i = 0; i < CONTENTS; i++) {
        struct kit_content content = nth((i * 7 + writer * 13) % CONTENTS);
        struct wal_error error = KIT_ERROR;
        uint8_t digest[WAL_DIGEST_SIZE];

        WAL__ASSERT(wal_blob_put(store, kit_slice(&content), digest, &error) ==
                    WAL_OK);
        kit_content_free(&content);
    }
}

static void *run_writer(void *arg)
{
    static _Atomic uint32_t number;

    put_all(arg, number++);
    return NULL;
}

/* Every content is there, and is stored once. */
static void check_once(void)
{
    struct wal_store *store = kit_store();
    struct wal_store *alone = kit_open("alone", WAL_OPEN_CREATE);
    uint64_t shared_sequence;
    uint64_t bytes;

    put_all(alone, 0);
    for (uint32_t i = 0; i < CONTENTS; i++) {
        struct kit_content content = nth(i);
        uint8_t digest[WAL_DIGEST_SIZE];

        bytes = kit_store_info(store).pack_bytes;
        kit_put_blob(store, &content, digest);
        assert_int_equal(kit_store_info(store).pack_bytes, bytes);
        kit_check_blob(store, digest, &content);
        kit_content_free(&content);
    }
    /* Groups and their ends apart. */
    shared_sequence = kit_store_info(store).pack_bytes;
    bytes = kit_store_info(alone).pack_bytes;
    assert_true(shared_sequence < bytes + bytes / 10 + 65536);
    kit_close(alone);
    kit_close(store);
}

KIT_TEST(shared__threads_put_the_same)
{
    struct wal_store *store = kit_store();
    pthread_t threads[WRITERS];

    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_writer, store),
                         0);
    }
    for (int i = 0; i < WRITERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    kit_close(store);
    check_once();
}

KIT_TEST(shared__processes_put_the_same)
{
    pid_t children[WRITERS];

    kit_close(kit_store());
    for (uint32_t i = 0; i < WRITERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            struct wal_store *store = kit_store();

            put_all(store, i);
            if (i % 2 == 0) {
                kit_close(store); /* others die with it open */
            }
            _exit(0);
        }
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        int result = -1;

        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    check_once();
}

KIT_TEST(shared__child_of_fork_cannot_use_handles)
{
    struct wal_store *store = kit_store();
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_error error = KIT_ERROR;
    struct wal_blob *blob = NULL;
    int result = -1;
    pid_t child;

    assert_ok(wal_blob_put(store, kit_text("x"), digest, &error));
    child = fork();
    if (child == 0) {
        enum wal_status put =
            wal_blob_put(store, kit_text("y"), digest, &error);
        enum wal_status opened = wal_blob_open(store, digest, &blob, &error);

        _exit(put == WAL_EFORKED && opened == WAL_EFORKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    kit_close(store);
}
