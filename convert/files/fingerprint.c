/*
 * fingerprint.c - the rolling checksum of view files (fingerprint.h, SPEC.md
 * 10.4).
 *
 * Invariant: each step is a bijection of the word, so that contents that differ
 * in one word only always have different fingerprints.
 *
 * Threads: one thread at a time per fingerprint.
 */
#include "convert/files/fingerprint.h"

#include <string.h>

static uint64_t mix_word(uint64_t value, uint64_t word)
{
    value = (value << 29 | value >> 35) ^ word;
    return value * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t load_le64(const uint8_t *at)
{
    uint64_t word = 0;

    for (unsigned i = 0; i < 8; i++) {
        word |= (uint64_t)at[i] << (8 * i);
    }
    return word;
}

void wal__fingerprint_update(struct wal__fingerprint *fingerprint,
                             const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t value;

    while (size > 0 && fingerprint->size % 8 != 0) {
        fingerprint->part |= (uint64_t)*at++ << (8 * (fingerprint->size++ % 8));
        size--;
        if (fingerprint->size % 8 == 0) {
            fingerprint->value =
                mix_word(fingerprint->value, fingerprint->part);
            fingerprint->part = 0;
        }
    }
    value = fingerprint->value;
    fingerprint->size += size;
    for (; size >= 8; size -= 8, at += 8) {
        value = mix_word(value, load_le64(at));
    }
    fingerprint->value = value;
    for (unsigned i = 0; i < size; i++) {
        fingerprint->part |= (uint64_t)at[i] << (8 * i);
    }
}
