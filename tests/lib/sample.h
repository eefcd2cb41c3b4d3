/*
 * sample.h - how many of the cases that it has a test tries.
 *
 * AGENTWAL_LONG tries them all. Otherwise it is a sample, a smaller one under
 * the address sanitizer, where a case takes ten times as long.
 */
#ifndef AGENTWAL_TESTS_SAMPLE_H
#define AGENTWAL_TESTS_SAMPLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sanitizers.h"

/* Whether AGENTWAL_LONG asks for every case. */
static inline int sample_is_whole(void)
{
    const char *text = getenv("AGENTWAL_LONG");

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0;
}

/* The distance between two cases that are tried. */
static inline uint32_t sample_stride(void)
{
    if (WITH_ADDRESS_SANITIZER) {
        return 8;
    }
    return sample_is_whole() ? 1 : 3;
}

#endif
