/*
 * cpu.h - what the processor has beyond the baseline of x86-64. The compilers' own function for it
 * is missing in the runtime library of some. Any thread.
 */
#ifndef AGENTWAL_FORMAT_BYTES_CPU_H
#define AGENTWAL_FORMAT_BYTES_CPU_H

#include <stdbool.h>
#include <stdint.h>

enum wal__cpu_feature {
    WAL__CPU_AVX2 = 1,       /* with BMI1 */
    WAL__CPU_WIDE_CLMUL = 2, /* AVX-512 F and VL, VPCLMULQDQ, PCLMULQDQ, SSE4.1 */
    WAL__CPU_KNOWN = 4
};

/* enum wal__cpu_feature; 0: not asked yet. */
extern uint32_t wal__cpu_features;

/* Asks the processor, which does not change. */
uint32_t wal__cpu_ask(void);

static inline bool wal__cpu_has(enum wal__cpu_feature feature)
{
    uint32_t features = __atomic_load_n(&wal__cpu_features, __ATOMIC_RELAXED);

    return ((features != 0 ? features : wal__cpu_ask()) & feature) != 0;
}

#endif
