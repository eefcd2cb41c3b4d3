/*
 * crc32.c - checksums and the hash of ids (SPEC.md 2.3 Frame seed, 2.11).
 *
 * Invariant: the bytes on disk do not depend on the implementation of the CRC:
 * all implementations compute the same function. Threads: any.
 */
#include "format/bytes/crc32.h"

#include <zlib.h>

#include "format/bytes/crc32_fold.h"

#ifdef AGENTWAL_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#define SEED_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)
#define FNV_BASIS       UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME       UINT64_C(0x100000001b3)
#define MIX_MULTIPLIER  UINT64_C(0xd6e8feb86659fd93)

uint32_t wal__crc32_zlib(uint32_t crc, const void *data, size_t size)
{
    /* zlib returns the initial value, not crc, for a NULL pointer. */
    if (size == 0) {
        return crc;
    }
    return (uint32_t)crc32_z(crc, data, size);
}

uint32_t wal__crc32(uint32_t crc, const void *data, size_t size)
{
    if (wal__crc32_fold_supported()) {
        return wal__crc32_fold(crc, data, size);
    }
#ifdef AGENTWAL_HAVE_LIBDEFLATE
    if (size == 0) {
        return crc;
    }
    return libdeflate_crc32(crc, data, size);
#else
    return wal__crc32_zlib(crc, data, size);
#endif
}

uint32_t wal__crc32_seed(uint64_t salt, uint64_t offset)
{
    uint64_t x = salt ^ (offset * SEED_MULTIPLIER);

    return (uint32_t)(x ^ (x >> 32));
}

uint64_t wal__id_hash(const void *id, size_t size)
{
    const uint8_t *bytes = id;
    uint64_t hash = FNV_BASIS;

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * FNV_PRIME;
    }
    hash ^= hash >> 32;
    hash *= MIX_MULTIPLIER;
    return hash ^ (hash >> 32);
}
