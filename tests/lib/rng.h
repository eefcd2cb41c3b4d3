/*
 * rng.h - random numbers for tests: splitmix64, the same for the same seed on every machine. One
 * thread for each state.
 */
#ifndef AGENTWAL_TESTS_LIB_RNG_H
#define AGENTWAL_TESTS_LIB_RNG_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The next number. Any state starts a full period, zero too. */
static inline uint64_t rng_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number below the limit, which is not 0. */
static inline uint64_t rng_below(uint64_t *state, uint64_t limit)
{
    return rng_next(state) % limit;
}

/* AGENTWAL_SEED, or the fallback where it is not set. Prints the seed, so that a failure can be
 * repeated. */
static inline uint64_t rng_seed(uint64_t fallback)
{
    const char *text = getenv("AGENTWAL_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : fallback;

    (void)printf("AGENTWAL_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

#endif
