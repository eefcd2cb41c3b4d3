/*
 * record_text.h - the consecutive texts at the end of a payload (SPEC.md 2.5
 * to 2.8, 2.14, 2.15).
 *
 * Precondition: the caller has checked that the sizes of the texts add up to
 * the payload. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_RECORD_TEXT_H
#define AGENTWAL_FORMAT_SEGMENT_RECORD_TEXT_H

#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/fmt.h"

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
