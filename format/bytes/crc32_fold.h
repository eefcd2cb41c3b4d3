/*
 * crc32_fold.h - CRC-32 by carry-less multiplication, 64 bytes at a time, on
 * processors that can: the function that zlib and libdeflate compute, two to
 * four times as fast as the latter, which takes 16 bytes at a time.
 */
#ifndef AGENTWAL_FORMAT_BYTES_CRC32_FOLD_H
#define AGENTWAL_FORMAT_BYTES_CRC32_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this processor can. */
bool wal__crc32_fold_supported(void);

/* Continues crc over the bytes, where the processor can. */
uint32_t wal__crc32_fold(uint32_t crc, const void *data, size_t size);

#endif
