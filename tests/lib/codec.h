/*
 * codec.h - what the tests of codecs share: random texts, payloads in blocks of exactly their size,
 * so that the address sanitizer sees a read beyond the end, and tables of changes to a valid
 * payload.
 */
#ifndef AGENTWAL_TESTS_LIB_CODEC_H
#define AGENTWAL_TESTS_LIB_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "format/bytes/bytes.h"
#include "tests/lib/test.h"

/* What a decoder says, in the rows of a table. */
enum {
    OK = WAL__FMT_OK,
    SHORT = WAL__FMT_SHORT,
    MAGIC = WAL__FMT_MAGIC,
    DATA_CRC = WAL__FMT_DATA_CRC,
    VERSION = WAL__FMT_VERSION,
    FIELD = WAL__FMT_FIELD
};

/* It may write to the bytes, which are a copy, as to make a checksum right. */
typedef enum wal__fmt codec_decode_fn(struct wal__span bytes);

/* A number of `width` bytes at `offset`, and what is said of the payload that has it. */
struct codec_change {
    size_t offset;
    size_t width;
    uint64_t value;
    int expected;
};

/* `min` to `max` random bytes, at most a MiB, often one of the two. */
struct wal__span codec_text(size_t min, size_t max);
void codec_assert_same_text(struct wal__span a, struct wal__span b);

/* Freed when the test ends. */
uint8_t *codec_block(size_t size);

enum wal__fmt codec_decode_with(codec_decode_fn *decode, struct wal__span payload, size_t offset,
                                size_t width, uint64_t value);
void codec_assert_changes(codec_decode_fn *decode, struct wal__span payload,
                          const struct codec_change *changes, size_t count);
#define CODEC_ASSERT_CHANGES(decode, payload, changes) \
    codec_assert_changes(decode, payload, changes, sizeof(changes) / sizeof((changes)[0]))

/* Cut, it is SHORT inside its fixed part and FIELD in its texts; longer, it is FIELD. */
void codec_assert_size_is_exact(codec_decode_fn *decode, struct wal__span payload,
                                size_t fixed_size);

#endif
