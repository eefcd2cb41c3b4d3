/*
 * fuzz_frame.c - decodes any bytes as a frame. An accepted frame is inside the input and encodes to
 * the same header.
 *
 * Input: salt (8 bytes), offset (8 bytes), then the segment from there on. The header is read as it
 * is, then with a checksum that holds, so that mutations get past rule 3.
 */
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "tests/fuzz/fuzz.h"

enum { PREFIX_SIZE = 16 };

static enum wal__fmt read_frame(const uint8_t *at, size_t size, uint64_t salt, uint64_t offset)
{
    struct wal__frame frame;
    struct wal__frame again;
    uint8_t header[WAL__FRAME_SIZE];
    enum wal__fmt fmt = wal__frame_decode(at, size, salt, offset, &frame);

    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    check(wal__frame_total_size(frame.stored_size) <= size);
    again = frame;
    wal__frame_encode(&again, salt, offset, header);
    check(memcmp(header, at, sizeof(header)) == 0);
    check(again.header_crc == frame.header_crc);
    (void)wal__frame_chain_crc(0, &frame);
    return wal__frame_check_data(&frame, at + WAL__FRAME_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t salt;
    uint64_t offset;
    uint32_t seed;
    uint8_t *copy;

    if (size < PREFIX_SIZE) {
        return 0;
    }
    salt = wal__get64(data);
    offset = wal__get64(data + 8);
    data += PREFIX_SIZE;
    size -= PREFIX_SIZE;
    (void)read_frame(data, size, salt, offset);
    if (size < WAL__FRAME_SIZE) {
        return 0;
    }
    copy = malloc(size);
    check(copy != NULL);
    memcpy(copy, data, size);
    seed = wal__crc32_seed(salt, offset);
    wal__put32(copy, wal__crc32(seed, copy + 4, WAL__FRAME_SIZE - 4));
    check(read_frame(copy, size, salt, offset) != WAL__FMT_HEADER_CRC);
    free(copy);
    return 0;
}
