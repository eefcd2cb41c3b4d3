/*
 * fmt.h - the result of decoding bytes, and borrowed byte ranges.
 *
 * format/ converts between bytes and structs. It does no I/O, reads no clock,
 * keeps no state and allocates nothing, so any thread may call any function.
 * It reports what is wrong with bytes; its callers decide what that means.
 */
#ifndef AGENTWAL_FORMAT_BYTES_FMT_H
#define AGENTWAL_FORMAT_BYTES_FMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/bytes/assert.h"

enum wal__fmt {
    WAL__FMT_OK = 0,
    WAL__FMT_ZERO,       /* all zeros: never written */
    WAL__FMT_SHORT,      /* the bytes end before the structure does */
    WAL__FMT_MAGIC,      /* not this kind of structure */
    WAL__FMT_HEADER_CRC, /* the structure's own checksum fails */
    WAL__FMT_DATA_CRC,   /* the payload's checksum or padding is wrong */
    WAL__FMT_VERSION,    /* a version unknown to this library */
    WAL__FMT_FEATURES,   /* an unknown incompatible feature bit */
    WAL__FMT_TYPE,       /* an unknown frame type that is not ignorable */
    WAL__FMT_FIELD       /* a field outside its range in SPEC.md */
};

/* Returns a constant phrase, e.g. "checksum of the header does not match". */
const char *wal__fmt_text(enum wal__fmt fmt);

/* Borrowed bytes. */
struct wal__span {
    const uint8_t *data;
    size_t size;
};

static inline bool wal__span_equal(struct wal__span a, struct wal__span b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Writes the bytes as 2 * size lower-case hexadecimal digits, and a NUL. */
void wal__hex_write(const void *bytes, size_t size, char *out);
/* Reads 2 * size such digits as `size` bytes. False: one is none. */
bool wal__hex_read(const void *digits, size_t size, void *bytes);

/* Rounds up to a multiple of `align`. */
static inline uint64_t wal__align_up(uint64_t value, uint64_t align)
{
    WAL__ASSERT(align > 0 && value <= UINT64_MAX - (align - 1));
    return (value + align - 1) / align * align;
}

#endif
