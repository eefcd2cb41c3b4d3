/*
 * bitset.h - a set of 32-bit numbers, a bit for each, in pages that are made as
 * they are needed: for numbers that are given out one after the other. 4 KiB
 * for 32,768 of them that lie together. One writer; readers beside it need the
 * caller's lock.
 */
#ifndef AGENTWAL_ENGINE_BASE_BITSET_H
#define AGENTWAL_ENGINE_BASE_BITSET_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"

struct wal__bitset {
    const struct wal__heap *heap;
    uint64_t **pages; /* null: nothing in it */
    uint32_t page_count;
};

void wal__bitset_init(struct wal__bitset *bits, const struct wal__heap *heap);
void wal__bitset_deinit(struct wal__bitset *bits);

/* Makes room for the number, so that setting it cannot fail. */
enum wal_status wal__bitset_reserve(struct wal__bitset *bits,
                                    uint32_t number) WAL_MUST_USE;

/* Puts a number in; there is room for it. */
void wal__bitset_set(struct wal__bitset *bits, uint32_t number);

bool wal__bitset_contains(const struct wal__bitset *bits, uint32_t number);

#endif
