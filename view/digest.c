/*
 * digest.c - tells whether bytes are the ones that were there (SPEC.md 10.4).
 *
 * Invariant: each step is a bijection of the word, so that bytes that differ
 * in one word never have one digest.
 *
 * Threads: one thread at a time per digest.
 */
#include "view/digest.h"

#include <string.h>

static uint64_t step(uint64_t value, uint64_t word)
{
    value = (value << 29 | value >> 35) ^ word;
    return value * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t load(const uint8_t *at)
{
    uint64_t word = 0;

    for (unsigned i = 0; i < 8; i++) {
        word |= (uint64_t)at[i] << (8 * i);
    }
    return word;
}

void wal__digest_add(struct wal__digest *digest, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t value;

    while (size > 0 && digest->size % 8 != 0) {
        digest->part |= (uint64_t)*at++ << (8 * (digest->size++ % 8));
        size--;
        if (digest->size % 8 == 0) {
            digest->value = step(digest->value, digest->part);
            digest->part = 0;
        }
    }
    value = digest->value;
    digest->size += size;
    for (; size >= 8; size -= 8, at += 8) {
        value = step(value, load(at));
    }
    digest->value = value;
    for (unsigned i = 0; i < size; i++) {
        digest->part |= (uint64_t)at[i] << (8 * i);
    }
}
