/*
 * fingerprint.h - tells whether bytes are the ones that were there.
 *
 * Not against an adversary. It goes on where it ended, so that a file that
 * grows is not read again.
 *
 * Threads: one thread at a time per fingerprint.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_FINGERPRINT_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: of no bytes. */
struct wal__fingerprint {
    uint64_t value; /* of the whole words */
    uint64_t part;  /* the bytes behind them, the first one lowest */
    uint64_t size;  /* of all bytes */
};

void wal__fingerprint_update(struct wal__fingerprint *fingerprint,
                             const void *data, size_t size);

static inline bool wal__fingerprint_equal(const struct wal__fingerprint *one,
                                          const struct wal__fingerprint *two)
{
    return one->value == two->value && one->part == two->part &&
           one->size == two->size;
}

#endif
