/*
 * record_text.h - the texts that close a payload, one behind the other
 * (SPEC.md 2.5 to 2.8, 2.14, 2.15).
 *
 * Nothing is bounded here: the caller has checked that the sizes add up to the
 * payload. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_RECORD_TEXT_H
#define AGENTWAL_FORMAT_SEGMENT_RECORD_TEXT_H

#include <string.h>

#include "format/bytes/fmt.h"

/* Writes the text; gives where the next one goes. */
static inline uint8_t *wal__put_text(uint8_t *out, struct wal__span text)
{
    if (text.size > 0) {
        memcpy(out, text.data, text.size);
    }
    return out + text.size;
}

/* The text of `size` bytes at *at, which moves behind it. */
static inline struct wal__span wal__get_text(const uint8_t **at, size_t size)
{
    struct wal__span text = {*at, size};

    *at += size;
    return text;
}

#endif
