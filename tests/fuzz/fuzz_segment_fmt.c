/*
 * fuzz_segment_fmt.c - any bytes as a manifest slot, a segment header and a trailer: what is
 * accepted encodes to the same bytes.
 *
 * Input: the first bytes of the structure; zeros follow. Each is decoded unchanged, then with a
 * valid checksum, so that mutations pass that check.
 */
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/segment_fmt.h"
#include "tests/fuzz/fuzz.h"

#define SALT           UINT64_C(0x1122334455667788)
#define TRAILER_OFFSET UINT64_C(1048512)

enum { BLOCK_SIZE = 4096, MANIFEST_CRC = 60, HEADER_CRC = 80, TRAILER_CRC = 60 };

static void read_manifest(const uint8_t *block)
{
    uint8_t again[WAL__MANIFEST_SLOT_SIZE];
    struct wal__manifest manifest;

    if (wal__manifest_decode(block, &manifest) == WAL__FMT_OK) {
        wal__manifest_encode(&manifest, again);
        check(memcmp(again, block, MANIFEST_CRC + 4) == 0);
    }
}

static void read_header(const uint8_t *block)
{
    uint8_t again[WAL__SEGMENT_HEADER_SIZE];
    struct wal__segment_header header;
    enum wal__fmt fmt = wal__segment_header_decode(block, &header);
    int copies = wal__segment_header_copies(block);

    check(copies >= 0 && copies <= 2);
    check(fmt != WAL__FMT_OK || copies > 0);
    if (fmt == WAL__FMT_OK) {
        wal__segment_header_encode(&header, again);
        check(memcmp(again, block, HEADER_CRC + 4) == 0 ||
              memcmp(again, block + WAL__SEGMENT_HEADER_COPY, HEADER_CRC + 4) == 0);
    }
}

static void read_trailer(const uint8_t *block)
{
    uint8_t again[WAL__TRAILER_SIZE];
    struct wal__trailer trailer;

    if (wal__trailer_decode(block, SALT, TRAILER_OFFSET, &trailer) == WAL__FMT_OK) {
        wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, again);
        check(memcmp(again, block, sizeof(again)) == 0);
    }
}

static void read_with_checksums(uint8_t *block)
{
    uint32_t seed = wal__crc32_seed(SALT, TRAILER_OFFSET);

    wal__put32(block + MANIFEST_CRC, wal__crc32(0, block, MANIFEST_CRC));
    read_manifest(block);
    wal__put32(block + TRAILER_CRC, wal__crc32(seed, block, TRAILER_CRC));
    read_trailer(block);
}

static void read_header_with_checksum(uint8_t *block)
{
    wal__put32(block + HEADER_CRC, wal__crc32(0, block, HEADER_CRC));
    read_header(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *block = calloc(1, BLOCK_SIZE);

    check(block != NULL);
    if (size > BLOCK_SIZE) {
        size = BLOCK_SIZE;
    }
    if (size > 0) {
        memcpy(block, data, size);
    }
    read_manifest(block);
    read_header(block);
    read_trailer(block);
    read_header_with_checksum(block);
    read_with_checksums(block);
    free(block);
    return 0;
}
