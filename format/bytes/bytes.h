/*
 * bytes.h - little-endian integers at any alignment (SPEC.md, introduction), borrowed ranges of
 * bytes, the texts at the end of a payload, bytes in hexadecimal, and the result of decoding bytes.
 *
 * format/ converts between bytes and structs. It does no I/O, reads no clock, keeps no state and
 * allocates nothing, so any thread may call any function. It reports what is wrong with bytes; its
 * callers decide what that means.
 *
 * Precondition: the caller has checked that the bytes of an integer are there, and that the sizes
 * of texts add up to their payload.
 */
#ifndef AGENTWAL_FORMAT_BYTES_BYTES_H
#define AGENTWAL_FORMAT_BYTES_BYTES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/bytes/assert.h"

/* Ties the offset of a structure's last field to the end of the one before it: the other offsets
 * are sums, so that all of them are as SPEC.md has them. */
#define WAL__FOLLOWS(next, field, size) \
    static_assert((next) == (field) + (size), #next " does not follow " #field)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__

#define WAL__LE16(v) __builtin_bswap16(v)
#define WAL__LE32(v) __builtin_bswap32(v)
#define WAL__LE64(v) __builtin_bswap64(v)

#else

#define WAL__LE16(v) (v)
#define WAL__LE32(v) (v)
#define WAL__LE64(v) (v)

#endif

static inline uint16_t wal__get16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return WAL__LE16(value);
}

static inline uint32_t wal__get32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return WAL__LE32(value);
}

static inline uint64_t wal__get64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return WAL__LE64(value);
}

static inline void wal__put16(uint8_t *at, uint16_t value)
{
    value = WAL__LE16(value);
    memcpy(at, &value, sizeof(value));
}

static inline void wal__put32(uint8_t *at, uint32_t value)
{
    value = WAL__LE32(value);
    memcpy(at, &value, sizeof(value));
}

static inline void wal__put64(uint8_t *at, uint64_t value)
{
    value = WAL__LE64(value);
    memcpy(at, &value, sizeof(value));
}

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
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Orders by the bytes, as memcmp; of two that begin alike the shorter one is first. */
static inline int wal__span_compare(struct wal__span a, struct wal__span b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size == 0 ? 0 : memcmp(a.data, b.data, size);

    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* Writes the bytes as 2 * size lower-case hexadecimal digits, and a NUL. */
void wal__hex_write(const void *bytes, size_t size, char *out);
/* Reads 2 * size such digits as `size` bytes. False: one is none. */
bool wal__hex_read(const void *digits, size_t size, void *bytes);

/* Whether all bytes are 0. */
bool wal__is_zero(const uint8_t *at, size_t size);

/* Rounds up to a multiple of `align`. */
static inline uint64_t wal__align_up(uint64_t value, uint64_t align)
{
    WAL__ASSERT(align > 0 && value <= UINT64_MAX - (align - 1));
    return (value + align - 1) / align * align;
}

/* Write the size of a text, which must fit the field: 8, 16 or 32 bits. */
static inline void wal__put_text_size8(uint8_t *out, struct wal__span text)
{
    WAL__ASSERT(text.size <= UINT8_MAX);
    *out = (uint8_t)text.size;
}

static inline void wal__put_text_size16(uint8_t *out, struct wal__span text)
{
    WAL__ASSERT(text.size <= UINT16_MAX);
    wal__put16(out, (uint16_t)text.size);
}

static inline void wal__put_text_size32(uint8_t *out, struct wal__span text)
{
    WAL__ASSERT(text.size <= UINT32_MAX);
    wal__put32(out, (uint32_t)text.size);
}

/* Writes the text and returns the address of the next one. */
static inline uint8_t *wal__put_text(uint8_t *out, struct wal__span text)
{
    if (text.size > 0) {
        memcpy(out, text.data, text.size);
    }
    return out + text.size;
}

/* Returns the text of `size` bytes at *at and advances *at past it. */
static inline struct wal__span wal__get_text(const uint8_t **at, size_t size)
{
    struct wal__span text = {*at, size};

    *at += size;
    return text;
}

#endif
