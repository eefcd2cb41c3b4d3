/*
 * test_blobs_forged.c - content whose checksums are valid and that is not what
 * its digest or its index says: it is refused, and never returned (SPEC.md
 * 2.18, 2.20, 5.12).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "agentwal/blob.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"
#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/blob_kit.h"

enum {
    BLOBS = 6,
    LARGE = 1300000, /* bytes: several chunks, and a BLOB that lists them */
    SMALL = 3000,    /* bytes: one chunk */
    SEGMENTS_MAX = 9
};

static uint8_t digests[BLOBS][WAL_DIGEST_SIZE];

static uint32_t size_of(uint32_t number)
{
    return number < 2 ? LARGE : SMALL;
}

/* Closed, with the index of its newest segment in index/. */
static void make_store(void)
{
    struct wal_store *store = kit_store();

    for (uint32_t i = 0; i < BLOBS; i++) {
        struct kit_content content = kit_content(i, size_of(i), false);

        kit_put_blob(store, &content, digests[i]);
        kit_content_free(&content);
    }
    kit_close(store);
}

/* How many contents are refused; the others must be those that were put. */
static uint32_t refused(void)
{
    struct wal_store *store = kit_store();
    uint32_t count = 0;

    for (uint32_t i = 0; i < BLOBS; i++) {
        struct kit_content content = kit_content(i, size_of(i), false);
        uint8_t *bytes = malloc(LARGE);
        struct wal_blob *blob = NULL;
        uint64_t got = 0;
        enum wal_status status = wal_blob_open(store, digests[i], &blob, NULL);

        assert_non_null(bytes);
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
        free(bytes);
        kit_content_free(&content);
    }
    kit_close(store);
    return count;
}

/* The path of a segment, or of an index; NULL if there is no such file. */
static const char *path_of(const char *format, unsigned number)
{
    static char path[64];

    (void)snprintf(path, sizeof(path), format, number);
    return access(path, F_OK) == 0 ? path : NULL;
}

static uint8_t *load(const char *path, size_t *size)
{
    struct stat found;
    int file = open(path, O_RDONLY);
    uint8_t *bytes;

    assert_true(file >= 0);
    assert_int_equal(fstat(file, &found), 0);
    *size = (size_t)found.st_size;
    bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(pread(file, bytes, *size, 0), (ssize_t)*size);
    (void)close(file);
    return bytes;
}

static void save(const char *path, const uint8_t *bytes, size_t size)
{
    int file = open(path, O_WRONLY);

    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, size, 0), (ssize_t)size);
    (void)close(file);
}

/* Changes a byte in the content of every chunk, and its checksums. */
static uint32_t forge_chunks(const char *path)
{
    struct wal__segment_header header;
    struct wal__frame frame;
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    uint32_t changed = 0;
    size_t size;
    uint8_t *bytes = load(path, &size);

    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    while (wal__frame_decode(bytes + at, size - at, header.salt, at, &frame) ==
           WAL__FMT_OK) {
        uint8_t *payload = bytes + at + WAL__FRAME_SIZE;

        if (frame.type == WAL__FRAME_CHUNK) {
            payload[frame.stored_size - 5] ^= 1;
            frame.data_crc = wal__crc32(0, payload, frame.stored_size);
            wal__frame_encode(&frame, header.salt, at, bytes + at);
            changed++;
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    save(path, bytes, size);
    free(bytes);
    return changed;
}

KIT_TEST(forged__content_that_is_not_its_digest)
{
    uint32_t changed = 0;

    make_store();
    assert_int_equal(refused(), 0);
    for (unsigned i = 1; i < SEGMENTS_MAX; i++) {
        const char *path = path_of("store/pack/%016x.seg", i);

        changed += path == NULL ? 0 : forge_chunks(path);
    }
    assert_true(changed >= BLOBS);
    assert_int_equal(refused(), BLOBS);
}

/* Exchanges the offsets of each two records of a kind in turn. */
KIT_TEST(forged__index_that_names_other_records)
{
    struct wal__pack_index index;
    const char *path = NULL;
    uint8_t *good;
    uint32_t count;
    size_t size;

    make_store();
    for (unsigned i = SEGMENTS_MAX; path == NULL && i > 0; i--) {
        path = path_of("store/index/pack-%016x.idx", i);
    }
    assert_non_null(path);
    good = load(path, &size);
    assert_int_equal(
        wal__pack_index_decode((struct wal__span){good, size}, &index),
        WAL__FMT_OK);
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
        save(path, bytes, size);
        free(bytes);
        assert_in_range(refused(), 1, 4);
    }
    free(good);
}
