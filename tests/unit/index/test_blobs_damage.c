/*
 * test_blobs_damage.c - tests of content that was damaged or lost on disk: it is named, all other
 * content is read, and the log goes on (SPEC.md 3.8); and of content whose checksums are valid and
 * that is not what its digest or its index says: it is refused, and never returned (SPEC.md 2.18,
 * 2.20, 5.12).
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agentwal/blob.h"
#include "engine/log/rotate.h"
#include "engine/session/session.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"
#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/blob_kit.h"

enum { BLOBS = 40, SIZE = 300000 };

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

/* How many contents are as they were; the others must be refused with one of two, and say which
 * digest. */
static uint32_t read_all(struct wal_store *store, enum wal_status *why)
{
    uint32_t good = 0;

    for (uint32_t i = 0; i < BLOBS; i++) {
        struct kit_content content = kit_content(i, SIZE, false);
        struct wal_error error = KIT_ERROR;
        uint8_t *bytes = malloc(SIZE);
        struct wal_blob *blob = NULL;
        uint64_t got = 77;
        enum wal_status status = wal_blob_open(store, digests[i], &blob, &error);

        assert_non_null(bytes);
        if (status == WAL_OK) {
            status = wal_blob_read(blob, 0, bytes, SIZE, &got, &error);
        }
        if (status == WAL_OK) {
            assert_memory_equal(bytes, content.data, SIZE);
            good++;
        } else {
            char text[9];

            (void)snprintf(text, sizeof(text), "%02x%02x%02x%02x", digests[i][0], digests[i][1],
                           digests[i][2], digests[i][3]);
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
    kit_flip(segment(1), 200000);
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
    kit_flip(segment(newest()), 200000);
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
    }
}

/* The same content again is kept anew, where recovery lost it. */
KIT_TEST(damage__lost_content_can_be_put_again)
{
    struct wal_store *store;
    enum wal_status why = WAL_OK;

    make_store(false);
    kit_flip(segment(newest()), 200000);
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
    kit_flip(segment(1), 200000);
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
    kit_flip("store/index/pack-0000000000000001.idx", 120);
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
    struct wal_store *store = NULL;

    assert_int_equal(wal_open("store", &options, &store, kit_error()), WAL_ECORRUPT);
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

enum {
    FORGED_BLOBS = 6,
    LARGE = 1300000, /* bytes: several chunks, and a BLOB that lists them */
    SMALL = 3000,    /* bytes: one chunk */
    SEGMENTS_MAX = 9
};

static uint8_t forged_digests[FORGED_BLOBS][WAL_DIGEST_SIZE];

static uint32_t size_of(uint32_t number)
{
    return number < 2 ? LARGE : SMALL;
}

/* Closed, with the index of its newest segment in index/. */
static void make_large_and_small(void)
{
    struct wal_store *store = kit_store();

    for (uint32_t i = 0; i < FORGED_BLOBS; i++) {
        struct kit_content content = kit_content(i, size_of(i), false);

        kit_put_blob(store, &content, forged_digests[i]);
    }
    kit_close(store);
}

/* How many contents are refused; the others must be those that were put. */
static uint32_t refused(void)
{
    struct wal_store *store = kit_store();
    const void *mark = test_mark();
    uint32_t count = 0;

    for (uint32_t i = 0; i < FORGED_BLOBS; i++) {
        struct kit_content content = kit_content(i, size_of(i), false);
        uint8_t *bytes = test_memory(LARGE);
        struct wal_blob *blob = NULL;
        uint64_t got = 0;
        enum wal_status status = wal_blob_open(store, forged_digests[i], &blob, NULL);

        if (status == WAL_OK) {
            status = wal_blob_read(blob, 0, bytes, LARGE, &got, NULL);
        }
        if (status == WAL_OK) {
            assert_int_equal(got, content.size);
            assert_memory_equal(bytes, content.data, content.size);
        } else {
            assert_true(status == WAL_ECORRUPT || status == WAL_ENOTFOUND);
            count++;
        }
        wal_blob_close(blob);
    }
    kit_close(store);
    test_end_since(mark);
    return count;
}

/* The path of a segment, or of an index; NULL if there is no such file. */
static const char *path_of(const char *format, unsigned number)
{
    static char path[64];

    (void)snprintf(path, sizeof(path), format, number);
    return access(path, F_OK) == 0 ? path : NULL;
}

/* Changes a byte in the content of every chunk, and its checksums. */
static uint32_t forge_chunks(const char *path)
{
    struct wal__segment_header header;
    struct wal__frame frame;
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    uint32_t changed = 0;
    size_t size;
    uint8_t *bytes = (uint8_t *)test_file(path, &size);

    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    while (wal__frame_decode(bytes + at, size - at, header.salt, at, &frame) == WAL__FMT_OK) {
        uint8_t *payload = bytes + at + WAL__FRAME_SIZE;

        if (frame.type == WAL__FRAME_CHUNK) {
            payload[frame.stored_size - 5] ^= 1;
            frame.data_crc = wal__crc32(0, payload, frame.stored_size);
            wal__frame_encode(&frame, header.salt, at, bytes + at);
            changed++;
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    kit_write_file(path, bytes, size);
    return changed;
}

KIT_TEST(forged__content_that_is_not_its_digest)
{
    uint32_t changed = 0;

    make_large_and_small();
    assert_int_equal(refused(), 0);
    for (unsigned i = 1; i < SEGMENTS_MAX; i++) {
        const char *path = path_of("store/pack/%016x.seg", i);

        changed += path == NULL ? 0 : forge_chunks(path);
    }
    assert_true(changed >= FORGED_BLOBS);
    assert_int_equal(refused(), FORGED_BLOBS);
}

/* Exchanges the offsets of each two records of a kind in turn. */
KIT_TEST(forged__index_that_names_other_records)
{
    struct wal__pack_index index;
    const char *path = NULL;
    uint8_t *good;
    uint32_t count;
    size_t size;

    make_large_and_small();
    for (unsigned i = SEGMENTS_MAX; path == NULL && i > 0; i--) {
        path = path_of("store/index/pack-%016x.idx", i);
    }
    assert_non_null(path);
    good = (uint8_t *)test_file(path, &size);
    assert_int_equal(wal__pack_index_decode((struct wal__span){good, size}, &index), WAL__FMT_OK);
    count = (uint32_t)(size - (size_t)(index.offsets - good)) / 4;
    assert_true(count > 4);
    for (uint32_t rank = 0; rank + 1 < count; rank++) {
        uint8_t *bytes = malloc(size);
        uint8_t *one;
        uint8_t kept[4];

        assert_non_null(bytes);
        memcpy(bytes, good, size);
        one = bytes + (index.offsets - good) + (size_t)rank * 4;
        memcpy(kept, one, 4);
        memcpy(one, one + 4, 4);
        memcpy(one + 4, kept, 4);
        wal__put32(bytes + 104, wal__crc32(0, bytes + 112, size - 112));
        wal__put32(bytes + 108, wal__crc32(0, bytes, 108));
        kit_write_file(path, bytes, size);
        free(bytes);
        assert_in_range(refused(), 1, 4);
    }
}
