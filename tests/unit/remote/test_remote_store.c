/*
 * test_remote_store.c - tests of the public calls of remotes, with stores and
 * replicas on a disk and a remote that is a directory: a store that is moved
 * from machine to machine, and one that is compacted while it is shipped.
 */
#include <sys/stat.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/remote.h"
#include "tests/lib/kit/store_kit.h"

static struct wal_remote *open_remote(void)
{
    struct wal_remote *remote = NULL;
    char here[3072];
    char url[4096];

    (void)mkdir("bucket", 0700);
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(url, sizeof(url), "file://%s/bucket", here);
    assert_int_equal(wal_remote_open(url, &remote, NULL), WAL_OK);
    return remote;
}

static void assert_ok(enum wal_status status, const struct wal_error *error)
{
    if (status != WAL_OK) {
        print_error("%s: %s\n", error->file, error->text);
    }
    assert_int_equal(status, WAL_OK);
}

/* What the writer that was opened last has sent. */
static struct {
    struct wal_remote_mark marks[WAL_REMOTE_MARKS];
    uint64_t count;
} kept;

static int32_t keep(void *ctx, const struct wal_remote_mark *marks,
                    uint64_t count)
{
    (void)ctx;
    memcpy(kept.marks, marks, (size_t)count * sizeof(marks[0]));
    kept.count = count;
    return 0;
}

static struct wal_remote_writer *open_writer(struct wal_remote *remote,
                                             struct wal_store *store,
                                             const uint8_t id[16])
{
    struct wal_remote_writer_options options =
        WAL_INIT(wal_remote_writer_options);
    struct wal_remote_writer *writer = NULL;
    struct wal_error error = KIT_ERROR;

    memcpy(options.writer, id, 16);
    options.part_size = 64 * 1024;
    options.marks = kept.marks;
    options.mark_count = kept.count;
    options.keep = keep;
    assert_ok(wal_remote_writer_open(remote, store, &options, &writer, &error),
              &error);
    return writer;
}

/* Makes what was appended durable, and stores it. */
static struct wal_remote_push_result push(struct wal_store *store,
                                          struct wal_remote_writer *writer)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);
    struct wal_error error = KIT_ERROR;

    assert_ok(wal_sync(store, &error), &error);
    assert_ok(wal_remote_push(writer, &result, &error), &error);
    return result;
}

static struct wal_remote_pull_result pull(struct wal_remote *remote,
                                          const char *path)
{
    struct wal_remote_pull_result result = WAL_INIT(wal_remote_pull_result);
    struct wal_error error = KIT_ERROR;

    assert_ok(wal_remote_pull(remote, path, NULL, &result, &error), &error);
    return result;
}

/* The entries of the session "a" in the replica are those of the store. */
static void assert_copied(struct wal_store *store, const char *path)
{
    struct wal_store *copy = kit_open(path, WAL_OPEN_READ_ONLY);
    struct wal_session *session = kit_session(store, "a");
    struct wal_session *other = kit_session(copy, "a");
    char *ids = strdup(kit_list_ids(session, NULL));

    assert_non_null(ids);
    assert_string_equal(kit_list_ids(other, NULL), ids);
    free(ids);
    wal_session_close(session);
    wal_session_close(other);
    kit_close(copy);
}

static void test_remote_store__moves_between_machines(void **state)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("m0", WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "a");
    uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);

    (void)state;
    for (unsigned machine = 1; machine <= 20; machine++) {
        struct wal_remote_pull_options options =
            WAL_INIT(wal_remote_pull_options);
        struct wal_remote_pull_result result = WAL_INIT(wal_remote_pull_result);
        struct wal_error error = KIT_ERROR;
        char path[16];
        char entry[16];

        snprintf(entry, sizeof(entry), "e%u", machine);
        kit_append(session, entry, NULL);
        (void)push(store, writer);
        /* The next machine. */
        snprintf(path, sizeof(path), "m%u", machine);
        id[0] = (uint8_t)(machine + 1);
        options.flags = WAL_REMOTE_PULL_TAKE_OVER;
        memcpy(options.writer, id, sizeof(id));
        assert_ok(wal_remote_pull(remote, path, &options, &result, &error),
                  &error);
        assert_copied(store, path);
        /* This one is fenced, and its entry stays here. */
        kit_append(session, "lost", NULL);
        assert_ok(wal_sync(store, &error), &error);
        assert_int_equal(wal_remote_push(writer, NULL, &error), WAL_EFENCED);
        wal_remote_writer_close(writer);
        wal_session_close(session);
        kit_close(store);
        store = kit_open(path, 0);
        session = kit_session(store, "a");
        kept.marks[0] = result.mark;
        kept.count = 1;
        writer = open_writer(remote, store, id);
    }
    kit_append(session, "last", NULL);
    assert_int_equal(push(store, writer).epoch, 21);
    (void)pull(remote, "copy");
    assert_copied(store, "copy");
    wal_remote_writer_close(writer);
    wal_session_close(session);
    kit_close(store);
    wal_remote_close(remote);
}

static void put_blob(struct wal_store *store, uint64_t seed)
{
    struct wal_error error = KIT_ERROR;
    uint8_t bytes[40000];
    uint8_t digest[WAL_DIGEST_SIZE];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)kit_random(&seed);
    }
    assert_ok(wal_blob_put(store, (struct wal_slice){bytes, sizeof(bytes)},
                           digest, &error),
              &error);
}

static void compact(struct wal_store *store)
{
    struct wal_store_compact_options options =
        WAL_INIT(wal_store_compact_options);
    struct wal_error error = KIT_ERROR;

    options.rate = UINT64_MAX;
    assert_ok(wal_store_compact(store, &options, NULL, &error), &error);
}

/* A replica follows while segments end, and are replaced. */
static void test_remote_store__compaction_while_shipping(void **state)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "a");
    const uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);
    char entry[16];

    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        snprintf(entry, sizeof(entry), "e%u", i);
        kit_append(session, entry, NULL);
        put_blob(store, i);
        if (i % 3 == 0) {
            (void)push(store, writer);
        }
        if (i % 20 == 19) {
            compact(store);
        }
        if (i % 7 == 0) {
            (void)pull(remote, "replica");
        }
    }
    (void)push(store, writer);
    (void)pull(remote, "replica");
    assert_copied(store, "replica");
    (void)pull(remote, "new");
    assert_copied(store, "new");
    wal_remote_writer_close(writer);
    wal_session_close(session);
    kit_close(store);
    wal_remote_close(remote);
}

static void test_remote_store__bad_arguments(void **state)
{
    struct wal_remote_writer_options options =
        WAL_INIT(wal_remote_writer_options);
    struct wal_remote_pull_options pulls = WAL_INIT(wal_remote_pull_options);
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_remote_writer *writer = NULL;

    (void)state;
    assert_int_equal(wal_remote_open(NULL, &remote, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_probe(NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_push(NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_pull(remote, NULL, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_remote_get_status(remote, store, NULL, NULL),
                     WAL_EINVAL);
    options.flags = 4;
    assert_int_equal(
        wal_remote_writer_open(remote, store, &options, &writer, NULL),
        WAL_EINVAL);
    options.flags = 0;
    assert_int_equal(
        wal_remote_writer_open(NULL, store, &options, &writer, NULL),
        WAL_EINVAL);
    pulls.flags = WAL_REMOTE_PULL_TAKE_OVER; /* without a writer */
    assert_int_equal(wal_remote_pull(remote, "copy", &pulls, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_remote_pull(remote, "copy", NULL, NULL, NULL),
                     WAL_ENOTFOUND);
    assert_null(writer);
    wal_remote_writer_close(NULL);
    wal_remote_close(NULL);
    kit_close(store);
    wal_remote_close(remote);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_remote_store__moves_between_machines),
        KIT_TEST(test_remote_store__compaction_while_shipping),
        KIT_TEST(test_remote_store__bad_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
