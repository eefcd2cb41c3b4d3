/*
 * fuzz.h - what the fuzz targets share.
 */
#ifndef AGENTWAL_TESTS_FUZZ_FUZZ_H
#define AGENTWAL_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target finds a fault where this does not hold. */
static inline void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

#endif
