/*
 * cpu.c - asks the processor by CPUID, and the system, by XGETBV, for which registers it keeps when
 * it changes threads (cpu.h).
 */
#include "format/bytes/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

uint32_t wal__cpu_features;

#if defined(__x86_64__)

/* Bits of CPUID and of XCR0, as processors have them. */
enum {
    ONE_C = 1 << 1 | 1 << 19,       /* PCLMULQDQ, SSE4.1 */
    ONE_C_OSXSAVE = 1 << 27,        /* XGETBV may be used */
    SEVEN_B_AVX2 = 1 << 3 | 1 << 5, /* BMI1, AVX2 */
    SEVEN_C_CLMUL = 1 << 10,        /* VPCLMULQDQ */
    KEPT_YMM = 1 << 1 | 1 << 2,
    KEPT_ZMM = KEPT_YMM | 7 << 5
};
#define SEVEN_B_AVX512 (UINT32_C(1) << 16 | UINT32_C(1) << 31) /* F, VL */

static bool has_all(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

uint32_t wal__cpu_ask(void)
{
    uint32_t features = WAL__CPU_KNOWN;
    uint32_t a, b, one_c = 0, d, seven_b = 0, seven_c = 0;
    uint32_t kept = 0;

    if (__get_cpuid(1, &a, &b, &one_c, &d) != 0 && has_all(one_c, ONE_C_OSXSAVE)) {
        __asm__("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
    }
    if (__get_cpuid_count(7, 0, &a, &seven_b, &seven_c, &d) != 0 && has_all(kept, KEPT_YMM) &&
        has_all(seven_b, SEVEN_B_AVX2)) {
        features |= WAL__CPU_AVX2;
        if (has_all(kept, KEPT_ZMM) && has_all(one_c, ONE_C) && has_all(seven_b, SEVEN_B_AVX512) &&
            has_all(seven_c, SEVEN_C_CLMUL)) {
            features |= WAL__CPU_WIDE_CLMUL;
        }
    }
    __atomic_store_n(&wal__cpu_features, features, __ATOMIC_RELAXED);
    return features;
}

#else

uint32_t wal__cpu_ask(void)
{
    __atomic_store_n(&wal__cpu_features, WAL__CPU_KNOWN, __ATOMIC_RELAXED);
    return WAL__CPU_KNOWN;
}

#endif
