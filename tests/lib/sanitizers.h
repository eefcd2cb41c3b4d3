/*
 * sanitizers.h - which sanitizer the tests are built with, and how many of the cases that it has a
 * test tries: all with AGENTWAL_LONG, otherwise a sample, which is smaller under the address
 * sanitizer, where a case takes ten times as long.
 */
#ifndef AGENTWAL_TESTS_SANITIZERS_H
#define AGENTWAL_TESTS_SANITIZERS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#define SANITIZERS_FEATURE(name) __has_feature(name)
#else
#define SANITIZERS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZERS_FEATURE(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#else
#define WITH_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || SANITIZERS_FEATURE(thread_sanitizer)
#define WITH_THREAD_SANITIZER 1
#else
#define WITH_THREAD_SANITIZER 0
#endif

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
        return 24;
    }
    return sample_is_whole() ? 1 : 6;
}

#endif
