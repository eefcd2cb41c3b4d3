/*
 * test_remote_store.c - tests of the public calls of remotes, with stores and replicas on a disk
 * and a remote that is a directory: a store that is moved from machine to machine, and one that is
 * compacted while it is shipped.
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
    assert_ok(wal_remote_open(url, &remote, NULL));
    return remote;
}

static void assert_no_error(enum wal_status status, const struct wal_error *error)
{
    if (status != WAL_OK) {
        print_error("%s: %s\n", error->file, error->text);
    }
    assert_ok(status);
}

/* What the writer that was opened last has sent. */
static struct {
    struct wal_remote_mark marks[WAL_REMOTE_MARKS];
    uint64_t count;
} kept;

static int32_t keep(void *ctx, const struct wal_remote_mark *marks, uint64_t count)
{
    (void)ctx;
    memcpy(kept.marks, marks, (size_t)count * sizeof(marks[0]));
    kept.count = count;
    return 0;
}

/* With the marks that were kept last. */
static struct wal_remote_writer *open_writer(struct wal_remote *remote, struct wal_store *store,
                                             const uint8_t id[16])
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    struct wal_remote_writer *writer = NULL;
    struct wal_error error = KIT_ERROR;

    memcpy(options.writer, id, 16);
    options.part_size = 64 * 1024;
    options.marks = kept.marks;
    options.mark_count = kept.count;
    options.keep = keep;
    assert_no_error(wal_remote_writer_open(remote, store, &options, &writer, &error), &error);
    return writer;
}

/* Makes what was appended durable, and stores it. */
static struct wal_remote_push_result push(struct wal_store *store, struct wal_remote_writer *writer)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);
    struct wal_error error = KIT_ERROR;

    assert_no_error(wal_sync(store, &error), &error);
    assert_no_error(wal_remote_push(writer, &result, &error), &error);
    return result;
}

static struct wal_remote_pull_result pull(struct wal_remote *remote, const char *path)
{
    struct wal_remote_pull_result result = WAL_INIT(wal_remote_pull_result);
    struct wal_error error = KIT_ERROR;

    assert_no_error(wal_remote_pull(remote, path, NULL, &result, &error), &error);
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

KIT_TEST(remote_store__moves_between_machines)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("m0", WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "a");
    uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);

    for (unsigned machine = 1; machine <= 20; machine++) {
        struct wal_remote_pull_options options = WAL_INIT(wal_remote_pull_options);
        struct wal_remote_pull_result result = WAL_INIT(wal_remote_pull_result);
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
        assert_no_error(wal_remote_pull(remote, path, &options, &result, kit_error()), kit_error());
        assert_copied(store, path);
        /* This one is fenced, and its entry stays here. */
        kit_append(session, "lost", NULL);
        assert_no_error(wal_sync(store, kit_error()), kit_error());
        assert_int_equal(wal_remote_push(writer, NULL, kit_error()), WAL_EFENCED);
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
    wal_remote_close(remote);
}

/* The marks of a take-over: the directory is no store yet. */
static int32_t keep_taken(void *ctx, const struct wal_remote_mark *marks, uint64_t count)
{
    struct wal_store *store = kit_open(ctx, WAL_OPEN_READ_ONLY);
    struct wal_store_info info = WAL_INIT(wal_store_info);

    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_int_equal(info.is_replica, 1);
    kit_close(store);
    assert_int_equal(count, 1);
    kept.marks[0] = marks[0];
    kept.count = 1;
    return 0;
}

static enum wal_status try_take_over(struct wal_remote *remote, char *path, uint8_t id,
                                     struct wal_remote_pull_result *result, struct wal_error *error)
{
    struct wal_remote_pull_options options = WAL_INIT(wal_remote_pull_options);

    *result = (struct wal_remote_pull_result)WAL_INIT(wal_remote_pull_result);
    *error = KIT_ERROR;
    options.flags = WAL_REMOTE_PULL_TAKE_OVER;
    options.writer[0] = id;
    options.keep = keep_taken;
    options.ctx = path;
    return wal_remote_pull(remote, path, &options, result, error);
}

/* Each pull brings what the other one has added. */
KIT_TEST(remote_store__by_turns_in_two_directories)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("m0", WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "a");
    uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);

    for (unsigned turn = 1; turn <= 12; turn++) {
        struct wal_remote_pull_result result;
        char path[16];
        char entry[16];

        snprintf(entry, sizeof(entry), "e%u", turn);
        kit_append(session, entry, NULL);
        (void)push(store, writer);
        wal_remote_writer_close(writer);
        wal_session_close(session);
        kit_close(store);
        snprintf(path, sizeof(path), "m%u", turn % 2);
        id[0] = (uint8_t)(turn + 1);
        assert_no_error(try_take_over(remote, path, id[0], &result, kit_error()), kit_error());
        assert_int_equal(result.parts, 1);
        store = kit_open(path, 0);
        session = kit_session(store, "a");
        writer = open_writer(remote, store, id);
    }
    (void)pull(remote, "copy");
    assert_copied(store, "copy");
    wal_remote_writer_close(writer);
    wal_remote_close(remote);
}

/* It is refused, and nobody is fenced. */
KIT_TEST(remote_store__that_went_on_is_not_continued)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("m0", WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "a");
    const uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);
    struct wal_remote_pull_result result;

    kit_append(session, "e1", NULL);
    (void)push(store, writer);
    wal_remote_writer_close(writer);
    assert_no_error(try_take_over(remote, "m1", 2, &result, kit_error()), kit_error());
    for (int parts = 0; parts < 3; parts++) {
        const uint8_t other_id[16] = {2};
        struct wal_store *other = kit_open("m1", 0);
        struct wal_session *there = kit_session(other, "a");
        char entry[16];

        snprintf(entry, sizeof(entry), "own%d", parts);
        kit_append(session, entry, NULL);
        wal_session_close(session);
        kit_close(store);
        assert_fails(try_take_over(remote, "m0", 3, &result, kit_error()), WAL_EEXISTS,
                     "by itself");
        store = kit_open("m0", 0);
        session = kit_session(store, "a");
        snprintf(entry, sizeof(entry), "theirs%d", parts);
        kit_append(there, entry, NULL);
        writer = open_writer(remote, other, other_id);
        assert_int_equal(push(other, writer).epoch, 2);
        wal_remote_writer_close(writer);
        wal_session_close(there);
        kit_close(other);
    }
    wal_remote_close(remote);
}

KIT_TEST(remote_store__without_a_part_is_not_taken_over)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("m0", WAL_OPEN_CREATE);
    const uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);
    struct wal_remote_pull_result result;

    assert_fails(try_take_over(remote, "m1", 2, &result, kit_error()), WAL_ENOTFOUND,
                 "nothing of the store yet");
    wal_session_close(kit_create(store, "a"));
    assert_int_equal(push(store, writer).epoch, 1);
    wal_remote_writer_close(writer);
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
    assert_no_error(wal_blob_put(store, (struct wal_slice){bytes, sizeof(bytes)}, digest, &error),
                    &error);
}

/* Returns how many segments were rewritten. */
static uint64_t compact(struct wal_store *store)
{
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    struct wal_error error = KIT_ERROR;

    options.rate = UINT64_MAX;
    assert_no_error(wal_store_compact(store, &options, &result, &error), &error);
    return result.rewritten;
}

/* A replica follows while segments end, and are replaced. */
KIT_TEST(remote_store__compaction_while_shipping)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "a");
    const uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);
    char entry[16];

    for (unsigned i = 0; i < 60; i++) {
        snprintf(entry, sizeof(entry), "e%u", i);
        kit_append(session, entry, NULL);
        put_blob(store, i);
        if (i % 3 == 0) {
            (void)push(store, writer);
        }
        if (i % 20 == 19) {
            (void)compact(store);
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
    wal_remote_close(remote);
}

static struct wal_remote_compact_result compact_remote(struct wal_remote *remote,
                                                       struct wal_store *store, uint32_t flags)
{
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);
    struct wal_remote_compact_result result = WAL_INIT(wal_remote_compact_result);
    struct wal_error error = KIT_ERROR;

    options.flags = flags;
    options.keep_ms = 1;
    usleep(2000);
    assert_no_error(wal_remote_compact(remote, store, &options, &result, &error), &error);
    return result;
}

static void assert_sound(struct wal_remote *remote)
{
    struct wal_remote_check_result result = WAL_INIT(wal_remote_check_result);
    struct wal_error error = KIT_ERROR;

    assert_no_error(wal_remote_check(remote, NULL, NULL, NULL, &result, &error), &error);
    assert_true(result.parts > 0);
}

/* A replica follows, others are made anew, from bases, while the store and the remote are
 * compacted. */
KIT_TEST(remote_store__bases_while_shipping)
{
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "a");
    const uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);
    uint64_t bases = 0;
    uint64_t removed = 0;
    uint64_t compacted = 0;

    for (unsigned i = 0; i < 120; i++) {
        char text[16];

        snprintf(text, sizeof(text), "e%u", i);
        kit_append(session, text, NULL);
        put_blob(store, i);
        if (i % 2 == 0) {
            (void)push(store, writer);
        }
        if (i % 30 == 20) {
            /* Ends a segment of which much is unused. */
            wal_remote_writer_close(writer);
            wal_session_close(session);
            kit_close(store);
            store = kit_open("store", 0);
            session = kit_session(store, "a");
            writer = open_writer(remote, store, id);
        }
        if (i % 30 == 29) {
            (void)push(store, writer);
            compacted += compact(store);
        }
        if (i % 8 == 0) {
            struct wal_remote_compact_result result =
                compact_remote(remote, store,
                               i % 16 == 0 ? WAL_REMOTE_COMPACT_NOW
                                           : WAL_REMOTE_COMPACT_NOW | WAL_REMOTE_COMPACT_ANEW);

            bases += result.base > 0;
            removed += result.removed_parts;
            assert_sound(remote);
        }
        if (i % 7 == 0) {
            (void)pull(remote, "replica");
        }
        if (i % 10 == 0) {
            snprintf(text, sizeof(text), "new%u", i);
            (void)pull(remote, text);
            (void)push(store, writer);
            (void)pull(remote, text);
            assert_copied(store, text);
        }
        if (i % 50 == 0) {
            (void)pull(remote, "old");
        }
    }
    assert_true(bases > 10 && removed > 20 && compacted > 2);
    (void)push(store, writer);
    (void)pull(remote, "replica");
    assert_copied(store, "replica");
    (void)pull(remote, "old");
    assert_copied(store, "old");
    assert_sound(remote);
    wal_remote_writer_close(writer);
    wal_remote_close(remote);
}

struct followed {
    struct wal_store *store;
    struct wal_session *session;
    struct wal_remote_writer *writer;
    unsigned looks;
};

/* Ships one entry before each of the next looks. */
static int32_t ship_more(void *ctx, const struct wal_remote_pull_result *result,
                         const struct wal_error *failure)
{
    struct followed *followed = ctx;
    char entry[16];

    assert_null(failure);
    if (followed->looks > 0) {
        assert_copied(followed->store, "follower");
        assert_true(result->parts >= followed->looks);
    }
    snprintf(entry, sizeof(entry), "f%u", followed->looks);
    kit_append(followed->session, entry, NULL);
    (void)push(followed->store, followed->writer);
    return ++followed->looks == 3;
}

KIT_TEST(remote_store__follower)
{
    const uint8_t id[16] = {1};
    struct wal_remote *remote = open_remote();
    struct followed followed = {.looks = 0};

    followed.store = kit_open("store", WAL_OPEN_CREATE);
    followed.session = kit_create(followed.store, "a");
    followed.writer = open_writer(remote, followed.store, id);
    (void)push(followed.store, followed.writer);
    assert_no_error(wal_remote_follow(remote, "follower", NULL, ship_more, &followed, kit_error()),
                    kit_error());
    assert_int_equal(followed.looks, 3);
    wal_remote_writer_close(followed.writer);
    wal_remote_close(remote);
}

KIT_TEST(remote_store__bad_arguments_of_care)
{
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);
    struct wal_remote_pull_options pulls = WAL_INIT(wal_remote_pull_options);
    struct wal_remote_check_result result = {.struct_size = 1};
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);

    assert_int_equal(wal_remote_compact(NULL, store, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_compact(remote, NULL, NULL, NULL, NULL), WAL_EINVAL);
    options.flags = WAL_REMOTE_COMPACT_ANEW;
    assert_int_equal(wal_remote_compact(remote, store, &options, NULL, NULL), WAL_EINVAL);
    options.flags = 4;
    assert_int_equal(wal_remote_compact(remote, store, &options, NULL, NULL), WAL_EINVAL);
    options.flags = 0;
    options.keep_ms = UINT64_MAX;
    assert_int_equal(wal_remote_compact(remote, store, &options, NULL, NULL), WAL_EINVAL);
    /* Nothing was pushed. */
    assert_ok(wal_remote_compact(remote, store, NULL, NULL, NULL));
    assert_int_equal(wal_remote_check(NULL, NULL, NULL, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_check(remote, NULL, NULL, NULL, &result, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_check(remote, NULL, NULL, NULL, NULL, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_remote_follow(remote, "copy", NULL, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_follow(remote, NULL, NULL, ship_more, NULL, NULL), WAL_EINVAL);
    pulls.flags = WAL_REMOTE_PULL_TAKE_OVER;
    pulls.writer[0] = 1;
    assert_int_equal(wal_remote_follow(remote, "copy", &pulls, ship_more, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_follow(remote, "copy", NULL, ship_more, NULL, NULL), WAL_ENOTFOUND);
    wal_remote_close(remote);
}

static uint32_t is_replica(struct wal_store *store)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_error error = KIT_ERROR;

    assert_no_error(wal_store_get_info(store, &info, &error), &error);
    return info.is_replica;
}

/* A replica that became the writer would end the other one, and have nothing to ship. */
KIT_TEST(remote_store__replica_does_not_write)
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    const uint8_t id[16] = {1};
    struct wal_remote_writer *writer = open_writer(remote, store, id);
    struct wal_remote_writer *other = NULL;
    struct wal_store *copy;

    wal_session_close(kit_create(store, "a"));
    (void)push(store, writer);
    (void)pull(remote, "copy");
    copy = kit_open("copy", 0);
    assert_int_equal(is_replica(copy), 1);
    assert_int_equal(is_replica(store), 0);
    options.flags = WAL_REMOTE_TAKE_OVER;
    assert_fails(wal_remote_writer_open(remote, copy, &options, &other, kit_error()), WAL_EREADONLY,
                 "is a replica");
    assert_null(other);
    assert_int_equal(push(store, writer).epoch, 1);
    wal_remote_writer_close(writer);
    wal_remote_close(remote);
}

struct list {
    uint8_t uuids[4][16];
    uint64_t sequences[4];
    int32_t count;
    int32_t end_at; /* this call returns 7; 0: none */
};

static int32_t add_store(void *ctx, const uint8_t uuid[16], const struct wal_remote_status *status)
{
    struct list *list = ctx;

    assert_int_equal(status->epoch, 1);
    assert_true(status->host[0] != '\0' && status->started_ms > 0);
    memcpy(list->uuids[list->count], uuid, 16);
    list->sequences[list->count++] = status->sequence;
    return list->count == list->end_at ? 7 : 0;
}

KIT_TEST(remote_store__list_has_each_store)
{
    struct wal_remote *remote = open_remote();
    struct wal_error error = KIT_ERROR;
    struct list list = {.count = 0};
    uint8_t id[16] = {0};

    assert_no_error(wal_remote_list(remote, add_store, &list, &error), &error);
    assert_int_equal(list.count, 0);
    for (unsigned i = 0; i < 3; i++) {
        char path[16];
        struct wal_remote_writer *writer;
        struct wal_store *store;

        snprintf(path, sizeof(path), "s%u", i);
        store = kit_open(path, WAL_OPEN_CREATE);
        wal_session_close(kit_create(store, "a"));
        id[0] = (uint8_t)(i + 1);
        kept.count = 0;
        writer = open_writer(remote, store, id);
        (void)push(store, writer);
        wal_remote_writer_close(writer);
        kit_close(store);
    }
    assert_no_error(wal_remote_list(remote, add_store, &list, &error), &error);
    assert_int_equal(list.count, 3);
    for (int32_t i = 0; i < 3; i++) {
        assert_true(list.sequences[i] > 0);
        assert_true(i == 0 || memcmp(list.uuids[i - 1], list.uuids[i], 16) < 0);
    }
    list = (struct list){.end_at = 2};
    assert_int_equal(wal_remote_list(remote, add_store, &list, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(list.count, 2);
    wal_remote_close(remote);
}

KIT_TEST(remote_store__bad_arguments)
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    struct wal_remote_pull_options pulls = WAL_INIT(wal_remote_pull_options);
    struct wal_remote *remote = open_remote();
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_remote_writer *writer = NULL;

    assert_int_equal(wal_remote_open(NULL, &remote, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_probe(NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_push(NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_pull(remote, NULL, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_get_status(remote, store, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_list(remote, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_list(NULL, add_store, NULL, NULL), WAL_EINVAL);
    options.flags = 4;
    assert_int_equal(wal_remote_writer_open(remote, store, &options, &writer, NULL), WAL_EINVAL);
    options.flags = 0;
    assert_int_equal(wal_remote_writer_open(NULL, store, &options, &writer, NULL), WAL_EINVAL);
    pulls.flags = WAL_REMOTE_PULL_TAKE_OVER; /* without a writer */
    assert_int_equal(wal_remote_pull(remote, "copy", &pulls, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_pull(remote, "copy", NULL, NULL, NULL), WAL_ENOTFOUND);
    assert_null(writer);
    wal_remote_writer_close(NULL);
    wal_remote_close(NULL);
    wal_remote_close(remote);
}
