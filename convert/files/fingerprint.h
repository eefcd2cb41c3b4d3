/*
 * fingerprint.h - a rolling 64-bit checksum of a file's bytes, to detect
 * whether they changed (SPEC.md 10.4).
 *
 * It is no protection against an adversary. It can be continued, so that a
 * growing file is not read again.
 *
 * Threads: one thread at a time per fingerprint.
 */
#ifndef AGENTWAL_CONVERT_FILES_FINGERPRINT_H
#define AGENTWAL_CONVERT_FILES_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: the fingerprint of no bytes. */
struct wal__fingerprint {
    uint64_t value; /* of the complete words */
    uint64_t part;  /* the remaining bytes, little-endian */
    uint64_t size;  /* number of bytes */
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
