/*
 * xorshift.h - random numbers for tests, the same for the same seed on every
 * machine. One thread for each seed.
 */
#ifndef AGENTWAL_TESTS_LIB_XORSHIFT_H
#define AGENTWAL_TESTS_LIB_XORSHIFT_H

#include <stdint.h>

/* The next number of xorshift64*; the seed, which is not 0, becomes that of
 * the one after it. */
static inline uint64_t xorshift_next(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * UINT64_C(0x2545F4914F6CDD1D);
}

#endif
