/*
 * bytes.h - little-endian integers at any alignment (SPEC.md,
 * introduction).
 *
 * The caller has checked that the bytes are there. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_BYTES_BYTES_H
#define AGENTWAL_FORMAT_BYTES_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Ties the offset of one field to the end of the field before it. */
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

#endif
