/*
 * fmt.h - what format/ says of bytes, and the slices it works on.
 *
 * format/ turns bytes into structs and back. It does no I/O, reads no clock,
 * keeps no state and allocates nothing, so every function may be called from
 * any thread. It says what is wrong with bytes; what that means is decided by
 * its callers.
 */
#ifndef AGENTWAL_FORMAT_BYTES_FMT_H
#define AGENTWAL_FORMAT_BYTES_FMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum wal__fmt {
    WAL__FMT_OK = 0,
    WAL__FMT_ZERO,       /* nothing was ever written here */
    WAL__FMT_SHORT,      /* the bytes end before the structure does */
    WAL__FMT_MAGIC,      /* another kind of bytes */
    WAL__FMT_HEADER_CRC, /* the structure's own checksum fails */
    WAL__FMT_DATA_CRC,   /* the payload's checksum or padding fails */
    WAL__FMT_VERSION,    /* a version that this library does not know */
    WAL__FMT_FEATURES,   /* an incompatible feature bit it does not know */
    WAL__FMT_TYPE,       /* an unknown frame type that is not ignorable */
    WAL__FMT_FIELD       /* a field outside its range in SPEC.md */
};

/* A constant phrase, e.g. "checksum of the header does not match". */
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

/* The next multiple of `align`, which is not 0. */
static inline uint64_t wal__align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

#endif
