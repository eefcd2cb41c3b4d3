/*
 * golden_content.h - what the golden stores hold.
 *
 * The sessions alpha, with the entries a1 to a5, and beta, with b1 to b5, each
 * entry under the one before; gamma is a fork of alpha at a3, with g1 and g2.
 * Stores of three segments have L1 to L5 in beta and a6 in alpha too; a few
 * have another entry, which their damage is about.
 */
#ifndef WAL_TESTS_GOLDEN_CONTENT_H
#define WAL_TESTS_GOLDEN_CONTENT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/assert.h"

#define GOLDEN_TIME "2026-01-01T00:00:00.000Z"

enum {
    GOLDEN_LARGE = 600 * 1000
};

/* The payload of an entry, to be freed; one that is called L... is large. */
static inline char *golden_payload(const char *id)
{
    size_t large = id[0] == 'L' ? GOLDEN_LARGE : 40;
    char *payload = malloc(large + 64);
    int size;

    WAL__ASSERT(payload != NULL);
    size = sprintf(payload, "{\"id\":\"%s\",\"text\":\"", id);
    memset(payload + size, 'x', large);
    strcpy(payload + size + large, "\"}");
    return payload;
}

#endif
