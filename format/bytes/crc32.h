/*
 * crc32.h - CRC-32 as zlib computes it: by carry-less multiplication where the processor supports
 * it, else by libdeflate where the build found it, else by zlib. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_BYTES_CRC32_H
#define AGENTWAL_FORMAT_BYTES_CRC32_H

#include "format/bytes/bytes.h"

/* Returns crc (0 at the start) continued over the bytes. data may be NULL when size is 0. */
uint32_t wal__crc32(uint32_t crc, const void *data, size_t size);

/* Computes the same function with zlib: the reference in tests of wal__crc32.
 */
uint32_t wal__crc32_zlib(uint32_t crc, const void *data, size_t size);

/* Returns the start value of the CRC of a structure at `offset` of a segment with this salt
 * (SPEC.md 2.3, Frame seed). */
uint32_t wal__crc32_seed(uint64_t salt, uint64_t offset);

/* Returns the hash of an id (SPEC.md 2.11). */
uint64_t wal__id_hash(const void *id, size_t size);

#endif
