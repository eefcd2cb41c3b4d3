/*
 * crc32.h - CRC-32 as zlib computes it: by wide carry-less multiplication where
 * the processor can (crc32_fold.h), else by libdeflate where it was found at
 * build time.
 */
#ifndef AGENTWAL_FORMAT_BYTES_CRC32_H
#define AGENTWAL_FORMAT_BYTES_CRC32_H

#include "format/bytes/fmt.h"

/* Continues crc (0 to begin) over the bytes. */
uint32_t wal__crc32(uint32_t crc, const void *data, size_t size);

/* The same by zlib alone, the reference that wal__crc32 is tested against. */
uint32_t wal__crc32_zlib(uint32_t crc, const void *data, size_t size);

/* The start value of a structure at `offset` of a segment with this salt
 * (SPEC.md 2.3, Frame seed). */
uint32_t wal__crc32_seed(uint64_t salt, uint64_t offset);

/* Hash of an id (SPEC.md 2.11). */
uint64_t wal__id_hash(const void *id, size_t size);

#endif
