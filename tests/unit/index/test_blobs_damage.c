/*
 * test_blobs_damage.c - tests of content that was damaged or lost on disk: it
 * is named, all other content is read, and the log goes on (SPEC.md 3.8); and
 * of content whose checksums are valid and that is not what its digest or its
 * index says: it is refused, and never returned (SPEC.md 2.18, 2.20, 5.12).
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agentwal/blob.h"
#include "engine/log/rotate.h"
#include "engine/session/session.h"
#include "tests/lib/kit/blob_kit.h"

enum {
    BLOBS = 40,
    SIZE = 300000
};

static uint8_t digests[BLOBS][WAL_DIGEST_SIZE];

/* Several segments of content, and a session; `closed`, or as if killed. */
/* Stores other content until closing does not end the newest segment. */
static void use_newest(struct wal_store *store)
{
    const struct wal__log *pack = &store->core.blobs.log;

    for (uint32_t i = BLOBS; wal__prealloc_has_excess(pack); i++) {
        struct kit_content content = kit_content(i, SIZE, false);
        uint8_t digest[WAL_DIGEST_SIZE];

        kit_put_blob(store, &content, digest);
        kit_content_free(&content);
    }
}

static void make_store(bool closed)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    for (uint32_t i = 0; i < BLOBS; i++) {
        struct kit_content content = kit_content(i, SIZE, false);
        char id[16];

        kit_put_blob(store, &content, digests[i]);
        kit_content_free(&content);
        (void)snprintf(id, sizeof(id), "e%u", i);
        kit_append(session, id, NULL);
    }
    assert_true(kit_store_info(store).pack_segments > 2);
    use_newest(store);
    wal_session_close(session);
    kit_close(store);
    if (!closed) {
        assert_int_equal(system("rm -f store/index/*"), 0);
    }
}

/* How many contents are as they were; the others must be refused with one of
 * two, and say which digest. */
static uint32_t read_all(struct wal_store *store, enum wal_status *why)
{
    uint32_t good = 0;

    for (uint32_t i = 0; i < BLOBS; i++) {
        struct kit_content content = kit_content(i, SIZE, false);
        struct wal_error error = KIT_ERROR;
        uint8_t *bytes = malloc(SIZE);
        struct wal_blob *blob = NULL;
        uint64_t got = 77;
        enum wal_status status =
            wal_blob_open(store, digests[i], &blob, &error);

        assert_non_null(bytes);
        if (status == WAL_OK) {
            status = wal_blob_read(blob, 0, bytes, SIZE, &got, &error);
        }
        if (status == WAL_OK) {
            assert_memory_equal(bytes, content.data, SIZE);
            good++;
        } else {
            char text[9];

            (void)snprintf(text, sizeof(text), "%02x%02x%02x%02x",
                           digests[i][0], digests[i][1], digests[i][2],
                           digests[i][3]);
            assert_error(&error, status, text);
            assert_true(status == WAL_ECORRUPT || status == WAL_ENOTFOUND);
            assert_int_equal(got, 77);
            if (status == WAL_ECORRUPT) {
                assert_non_null(strstr(error.file, "pack/"));
            }
            *why = status;
        }
        wal_blob_close(blob);
        free(bytes);
        kit_content_free(&content);
    }
    return good;
}

/* The log is as it was, and content is put and read. */
static void check_usable(struct wal_store *store)
{
    struct wal_session *session = kit_session(store, "s");
    struct kit_content content = kit_content(777, SIZE, false);
    uint8_t digest[WAL_DIGEST_SIZE];

    assert_int_equal(kit_info(session).entries, BLOBS);
    kit_put_blob(store, &content, digest);
    kit_check_blob(store, digest, &content);
    wal_session_close(session);
    kit_close(store);
    store = kit_store();
    kit_check_blob(store, digest, &content);
    kit_close(store);
    kit_content_free(&content);
}

static const char *segment(uint32_t number)
{
    static char path[64];

    (void)snprintf(path, sizeof(path), "store/pack/%016x.seg", number);
    return path;
}

/* The segment that was begun last. */
static uint32_t newest(void)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_READ_ONLY);
    uint32_t count = (uint32_t)kit_store_info(store).pack_segments;

    kit_close(store);
    return count;
}

static void flip(const char *path, off_t offset)
{
    int file = open(path, O_RDWR);
    uint8_t byte;

    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, offset), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
    (void)close(file);
}

static void zero(const char *path, off_t offset, size_t size)
{
    int file = open(path, O_RDWR);
    uint8_t *bytes = calloc(1, size);

    assert_true(file >= 0 && bytes != NULL);
    assert_int_equal(pwrite(file, bytes, size, offset), (ssize_t)size);
    (void)close(file);
    free(bytes);
}

KIT_TEST(damage__flipped_byte_loses_one_content)
{
    struct wal_store *store;
    enum wal_status why = WAL_OK;

    make_store(true);
    flip(segment(1), 200000);
    store = kit_store();
    assert_int_equal(read_all(store, &why), BLOBS - 1);
    assert_int_equal(why, WAL_ECORRUPT);
    check_usable(store);
}

KIT_TEST(damage__in_the_tail_below_its_watermark)
{
    struct wal_store *store;
    enum wal_status why = WAL_OK;

    make_store(false);
    flip(segment(newest()), 200000);
    store = kit_store();
    /* Recovery discarded it. */
    assert_int_equal(read_all(store, &why), BLOBS - 1);
    assert_int_equal(why, WAL_ENOTFOUND);
    check_usable(store);
}

static void put_all_again(struct wal_store *store)
{
    for (uint32_t i = 0; i < BLOBS; i++) {
        struct kit_content content = kit_content(i, SIZE, false);
        uint8_t digest[WAL_DIGEST_SIZE];

        kit_put_blob(store, &content, digest);
        assert_memory_equal(digest, digests[i], sizeof(digest));
        kit_content_free(&content);
    }
}

/* The same content again is kept anew, where recovery lost it. */
KIT_TEST(damage__lost_content_can_be_put_again)
{
    struct wal_store *store;
    enum wal_status why = WAL_OK;

    make_store(false);
    flip(segment(newest()), 200000);
    store = kit_store();
    put_all_again(store);
    assert_int_equal(read_all(store, &why), BLOBS);
    check_usable(store);
}

/* Also if its record is there and cannot be read. */
KIT_TEST(damage__damaged_content_can_be_put_again)
{
    struct wal_store *store;
    enum wal_status why = WAL_OK;
    uint64_t bytes;

    make_store(true);
    flip(segment(1), 200000);
    store = kit_store();
    bytes = kit_store_info(store).pack_bytes;
    put_all_again(store);
    assert_int_equal(read_all(store, &why), BLOBS);
    assert_true(kit_store_info(store).pack_bytes > bytes);
    assert_true(kit_store_info(store).pack_bytes < bytes + 2 * SIZE);
    check_usable(store);
}

KIT_TEST(damage__index_frame_is_rebuilt)
{
    enum wal_status why = WAL_OK;
    struct wal_store *store;
    struct stat stat_of;

    make_store(true);
    assert_int_equal(stat(segment(1), &stat_of), 0);
    /* INDEX follows the last group; the trailer is at the very end. */
    zero(segment(1), stat_of.st_size - 64, 64);
    store = kit_store();
    assert_int_equal(read_all(store, &why), BLOBS);
    kit_close(store);
    assert_int_equal(access("store/index/pack-0000000000000001.idx", F_OK), 0);
    flip("store/index/pack-0000000000000001.idx", 120);
    store = kit_store();
    assert_int_equal(read_all(store, &why), BLOBS);
    check_usable(store);
}

KIT_TEST(damage__missing_segment)
{
    enum wal_status why = WAL_OK;
    struct wal_store *store;
    uint32_t good;

    make_store(true);
    assert_int_equal(unlink(segment(2)), 0);
    store = kit_store();
    good = read_all(store, &why);
    assert_true(good > 0 && good < BLOBS);
    assert_int_equal(why, WAL_ENOTFOUND);
    check_usable(store);
    store = kit_store();
    assert_int_equal(read_all(store, &why), good);
}

static void refused_strictly(void)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_STRICT};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    assert_int_equal(wal_open("store", &options, &store, &error), WAL_ECORRUPT);
    assert_null(store);
}

KIT_TEST(damage__missing_newest_segment)
{
    uint32_t last;
    enum wal_status why = WAL_OK;
    struct wal_store *store;
    uint32_t good;

    make_store(false);
    last = newest();
    assert_int_equal(unlink(segment(last)), 0);
    refused_strictly();
    store = kit_store();
    good = read_all(store, &why);
    assert_true(good > 0 && good < BLOBS);
    check_usable(store);
    /* Nothing is written under an id that was used. */
    assert_int_not_equal(access(segment(last), F_OK), 0);
    assert_int_equal(access(segment(last + 1), F_OK), 0);
    store = kit_store();
    assert_int_equal(read_all(store, &why), good);
}

KIT_TEST(damage__newest_segment_is_truncated_or_zeroed)
{
    for (int way = 0; way < 3; way++) {
        enum wal_status why = WAL_OK;
        struct wal_store *store;
        uint32_t last;
        uint32_t good;

        assert_int_equal(system("rm -rf store"), 0);
        make_store(false);
        last = newest();
        if (way == 0) {
            assert_int_equal(truncate(segment(last), 100000), 0);
        } else if (way == 1) {
            zero(segment(last), 0, 4096);
        } else {
            struct stat stat_of;

            assert_int_equal(stat(segment(last), &stat_of), 0);
            zero(segment(last), 0, (size_t)stat_of.st_size);
        }
        refused_strictly();
        store = kit_store();
        good = read_all(store, &why);
        assert_true(good > 0 && good < BLOBS);
        check_usable(store);
    }
}

/* What the log names durable is damage, not a tear, where it is missing. */
KIT_TEST(damage__truncated_stream)
{
    enum wal_status why = WAL_OK;
    struct wal_store *store;
    struct stat stat_of;
    uint32_t last;

    make_store(false);
    last = newest();
    assert_int_equal(stat(segment(last), &stat_of), 0);
    zero(segment(last), 8192, (size_t)stat_of.st_size - 8192);
    refused_strictly();
    store = kit_store();
    assert_true(read_all(store, &why) < BLOBS);
    assert_int_equal(why, WAL_ENOTFOUND);
    check_usable(store);
}

KIT_TEST(damage__missing_pack)
{
    enum wal_status why = WAL_OK;
    struct wal_store *store;

    make_store(true);
    assert_int_equal(system("rm -r store/pack"), 0);
    refused_strictly();
    store = kit_store();
    assert_int_equal(read_all(store, &why), 0);
    assert_int_equal(why, WAL_ENOTFOUND);
    check_usable(store);
}
