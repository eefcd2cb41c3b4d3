/*
 * crc32_fold.h - CRC-32 by carry-less multiplication, 64 bytes at a time, on
 * processors with VPCLMULQDQ and AVX-512. It computes the same function as zlib
 * and libdeflate, two to four times as fast as libdeflate, which folds 16 bytes
 * at a time. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_BYTES_CRC32_FOLD_H
#define AGENTWAL_FORMAT_BYTES_CRC32_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this processor has the instructions. */
bool wal__crc32_fold_supported(void);

/* Returns crc continued over the bytes. Call it only if
 * wal__crc32_fold_supported(). */
uint32_t wal__crc32_fold(uint32_t crc, const void *data, size_t size);

#endif
