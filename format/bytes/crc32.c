/*
 * crc32.c - checksums and the hash of ids (SPEC.md 2.3 Frame seed, 2.11).
 *
 * Carry-less multiplication, 64 bytes at a time, on processors with VPCLMULQDQ and AVX-512, is two
 * to four times as fast as libdeflate, which folds 16 bytes at a time. The bytes are a polynomial
 * over GF(2). The lowest bit of the first byte is its highest coefficient, so bit 0 of a register
 * is the highest coefficient too. Folding 128 bits forward by D bits multiplies their first half by
 * x^(D+63) and the second by x^(D-1), both modulo G: the product of two bit-reflected registers is
 * shifted by one bit.
 *
 * Invariant: the bytes on disk do not depend on the implementation of the CRC: all implementations
 * compute the same function. A register folded forward to the end of the bytes is congruent, modulo
 * G, to all bytes folded into it.
 */
#include "format/bytes/crc32.h"

#include <stdbool.h>
#include <zlib.h>

#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"

#ifdef AGENTWAL_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#if defined(__x86_64__)

#include <immintrin.h>

/* Clang 18 to 21 have the wide registers apart from AVX-512, and a build may leave them out. */
#if defined(__clang__) && __clang_major__ >= 18 && __clang_major__ < 22
#define WIDE_REGISTERS ",evex512"
#else
#define WIDE_REGISTERS ""
#endif

/* Only for processors on which crc32_fold_supported() is true. */
#define TARGET_CLMUL \
    __attribute__((target("sse4.1,pclmul,avx2,avx512f,avx512vl,vpclmulqdq" WIDE_REGISTERS)))

enum {
    BLOCK_SIZE = 16,
    WIDE_BLOCK_SIZE = 64,
    ACCUMULATORS = 4 /* independent registers hide the latency of clmul */
};

/* Both factors of a fold, named after its distance in bits. */
static const uint64_t by_128[2] = {0x65673b4600000000, 0x9ba54c6f00000000};
static const uint64_t by_512[2] = {0x653d982200000000, 0xcad38e8f00000000};
static const uint64_t by_1024[2] = {0x7d657a1000000000, 0x7406fa9500000000};
static const uint64_t by_2048[2] = {0x7cc8e1e700000000, 0x03f9f86300000000};
/* Fold each quarter of a wide register into the last, which is kept. */
static const uint64_t to_last[8] = {0x69ccfc0d00000000, 0x2a28386200000000, 0x9570d49500000000,
                                    0x01b5fd1d00000000, 0x65673b4600000000, 0x9ba54c6f00000000};

/* x^95 mod G; x^95 divided by G; G. */
static const uint64_t last_fold[2] = {0xccaa009e00000000, 0};
static const uint64_t quotient[2] = {0xb4e5b025f7011641, 0x1db710641};

TARGET_CLMUL static inline __m128i load(const void *at)
{
    return _mm_loadu_si128(at);
}

/* Folds x forward by the distance of the factors and adds y. */
TARGET_CLMUL static inline __m128i fold(__m128i x, __m128i factors, __m128i y)
{
    __m128i low = _mm_clmulepi64_si128(x, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(x, factors, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), y);
}

/* Returns x * x^32 mod G: reduces to 96 bits, then by Barrett reduction. */
TARGET_CLMUL static inline uint32_t reduce(__m128i x)
{
    __m128i divide = load(quotient);
    __m128i rest = _mm_slli_si128(_mm_srli_si128(x, 8), 4);
    __m128i product;

    x = _mm_xor_si128(_mm_clmulepi64_si128(x, load(last_fold), 0x00), rest);
    product = _mm_clmulepi64_si128(_mm_srli_si128(x, 4), divide, 0x00);
    product = _mm_clmulepi64_si128(product, divide, 0x10);
    return (uint32_t)_mm_extract_epi32(x, 3) ^ (uint32_t)_mm_extract_epi32(product, 2);
}

__extension__ typedef unsigned __int128 uint128;

/* Loads less than a register; the first byte becomes the lowest. */
static inline uint128 load_partial(const uint8_t *at, size_t size)
{
    uint128 words = 0;

    WAL__ASSERT(size < BLOCK_SIZE);
    if (size >= 8) {
        return wal__get64(at) | (uint128)wal__get64(at + size - 8) << 8 * (size - 8);
    }
    if (size >= 4) {
        return wal__get32(at) | (uint128)wal__get32(at + size - 4) << 8 * (size - 4);
    }
    for (size_t i = 0; i < size; i++) {
        words |= (uint128)at[i] << 8 * i;
    }
    return words;
}

/* Less than a register. Leading zeros do not change a CRC, so the bytes are shifted to the end of
 * the register. Bits of the sum beyond `size` bytes are not folded yet and are added to the
 * result. */
TARGET_CLMUL static uint32_t crc_short(uint32_t sum, const uint8_t *at, size_t size)
{
    uint128 words = (load_partial(at, size) ^ sum) << 8 * (BLOCK_SIZE - size);
    uint32_t left = size < sizeof(sum) ? sum >> 8 * size : 0;

    return left ^
           reduce(_mm_set_epi64x((int64_t)(uint64_t)(words >> 64), (int64_t)(uint64_t)words));
}

/* Folds the last `size` bytes, less than a register; x holds the bytes before them. x and the bytes
 * are shifted into two registers, the first of which begins with zeros. */
TARGET_CLMUL static inline __m128i fold_partial(__m128i x, const uint8_t *at, size_t size)
{
    static const uint8_t shuffle_masks[3 * BLOCK_SIZE] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    __m128i tail_mask = load(shuffle_masks + BLOCK_SIZE + size);
    __m128i first = _mm_shuffle_epi8(x, load(shuffle_masks + size));
    __m128i second =
        _mm_blendv_epi8(_mm_shuffle_epi8(x, tail_mask), load(at + size - BLOCK_SIZE), tail_mask);

    return fold(first, load(by_128), second);
}

TARGET_CLMUL static inline uint32_t finish(__m128i x, const uint8_t *at, size_t size)
{
    while (size >= BLOCK_SIZE) {
        x = fold(x, load(by_128), load(at));
        at += BLOCK_SIZE;
        size -= BLOCK_SIZE;
    }
    if (size > 0) {
        x = fold_partial(x, at, size);
    }
    return reduce(x);
}

TARGET_CLMUL static inline __m512i load_wide(const uint8_t *at)
{
    return _mm512_loadu_si512(at);
}

TARGET_CLMUL static inline __m512i broadcast(const uint64_t factors[2])
{
    return _mm512_broadcast_i32x4(load(factors));
}

TARGET_CLMUL static inline __m512i fold_wide(__m512i x, __m512i factors, __m512i y)
{
    __m512i low = _mm512_clmulepi64_epi128(x, factors, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(x, factors, 0x11);

    return _mm512_ternarylogic_epi64(low, high, y, 0x96); /* XOR of three */
}

/* Folds the four quarters of a wide register into one. */
TARGET_CLMUL static inline __m128i reduce_to_128(__m512i x)
{
    __m512i last = _mm512_maskz_mov_epi64(0xc0, x);
    __m256i half;

    x = fold_wide(x, _mm512_loadu_si512(to_last), last);
    half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* From BLOCK_SIZE bytes on. */
TARGET_CLMUL static uint32_t crc_medium(uint32_t sum, const uint8_t *at, size_t size)
{
    __m128i x = _mm_xor_si128(load(at), _mm_cvtsi32_si128((int32_t)sum));

    WAL__ASSERT(size >= BLOCK_SIZE);
    return finish(x, at + BLOCK_SIZE, size - BLOCK_SIZE);
}

/* From WIDE_BLOCK_SIZE bytes on. */
TARGET_CLMUL static uint32_t crc_long(uint32_t sum, const uint8_t *at, size_t size)
{
    const __m512i next = broadcast(by_512);
    __m512i x = _mm512_castsi128_si512(_mm_cvtsi32_si128((int32_t)sum));

    WAL__ASSERT(size >= WIDE_BLOCK_SIZE);
    x = _mm512_xor_si512(_mm512_zextsi128_si512(_mm512_castsi512_si128(x)), load_wide(at));
    if (size >= ACCUMULATORS * WIDE_BLOCK_SIZE) {
        const __m512i far = broadcast(by_2048);
        const __m512i near = broadcast(by_1024);
        __m512i y = load_wide(at + WIDE_BLOCK_SIZE);
        __m512i z = load_wide(at + 2 * WIDE_BLOCK_SIZE);
        __m512i w = load_wide(at + 3 * WIDE_BLOCK_SIZE);

        for (; size >= 2 * ACCUMULATORS * WIDE_BLOCK_SIZE; size -= ACCUMULATORS * WIDE_BLOCK_SIZE) {
            at += ACCUMULATORS * WIDE_BLOCK_SIZE;
            x = fold_wide(x, far, load_wide(at));
            y = fold_wide(y, far, load_wide(at + WIDE_BLOCK_SIZE));
            z = fold_wide(z, far, load_wide(at + 2 * WIDE_BLOCK_SIZE));
            w = fold_wide(w, far, load_wide(at + 3 * WIDE_BLOCK_SIZE));
        }
        z = fold_wide(x, near, z);
        w = fold_wide(y, near, w);
        x = fold_wide(z, next, w);
        at += (ACCUMULATORS - 1) * WIDE_BLOCK_SIZE;
        size -= (ACCUMULATORS - 1) * WIDE_BLOCK_SIZE;
    }
    for (; size >= 2 * WIDE_BLOCK_SIZE; size -= WIDE_BLOCK_SIZE) {
        at += WIDE_BLOCK_SIZE;
        x = fold_wide(x, next, load_wide(at));
    }
    WAL__ASSERT(size >= WIDE_BLOCK_SIZE && size < 2 * WIDE_BLOCK_SIZE);
    return finish(reduce_to_128(x), at + WIDE_BLOCK_SIZE, size - WIDE_BLOCK_SIZE);
}

static bool crc32_fold_supported(void)
{
    return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("pclmul");
}

TARGET_CLMUL static uint32_t crc32_fold(uint32_t crc, const void *data, size_t size)
{
    uint32_t sum = ~crc;

    if (size >= WIDE_BLOCK_SIZE) {
        return ~crc_long(sum, data, size);
    }
    if (size >= BLOCK_SIZE) {
        return ~crc_medium(sum, data, size);
    }
    return size == 0 ? crc : ~crc_short(sum, data, size);
}

#else

static bool crc32_fold_supported(void)
{
    return false;
}

static uint32_t crc32_fold(uint32_t crc, const void *data, size_t size)
{
    return wal__crc32_zlib(crc, data, size);
}

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
    if (crc32_fold_supported()) {
        return crc32_fold(crc, data, size);
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
