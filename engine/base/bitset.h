/*
 * bitset.h - a set of 32-bit numbers, one bit each, in pages that are allocated
 * on demand: 4 KiB for 32,768 consecutive numbers. Suits numbers that are
 * assigned in sequence. One writer; concurrent readers need the caller's lock.
 */
#ifndef AGENTWAL_ENGINE_BASE_BITSET_H
#define AGENTWAL_ENGINE_BASE_BITSET_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"

struct wal__bitset {
    const struct wal__heap *heap;
    uint64_t **pages; /* a null page has no members */
    uint32_t page_count;
};

void wal__bitset_init(struct wal__bitset *bits, const struct wal__heap *heap);
void wal__bitset_deinit(struct wal__bitset *bits);

/* Allocates the page of the number, so that wal__bitset_set cannot fail.
 * WAL_ENOMEM leaves the set unchanged. */
enum wal_status wal__bitset_reserve(struct wal__bitset *bits,
                                    uint32_t number) WAL_MUST_USE;

/* Adds a number whose page was reserved. */
void wal__bitset_set(struct wal__bitset *bits, uint32_t number);

bool wal__bitset_contains(const struct wal__bitset *bits, uint32_t number);

#endif
