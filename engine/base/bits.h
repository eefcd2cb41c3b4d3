/*
 * bits.h - a set of 32-bit numbers, a bit for each, in pages that are made as
 * they are needed: for numbers that are given out one after the other. 4 KiB
 * for 32,768 of them that lie together. One writer; readers beside it need the
 * caller's lock.
 */
#ifndef WAL_BASE_BITS_H
#define WAL_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"

struct wal__bits {
    const struct wal__heap *heap;
    uint64_t **pages; /* null: nothing in it */
    uint32_t page_count;
};

void wal__bits_init(struct wal__bits *bits, const struct wal__heap *heap);
void wal__bits_deinit(struct wal__bits *bits);

/* Makes room for the number, so that setting it cannot fail. */
enum wal_status wal__bits_reserve(struct wal__bits *bits,
                                  uint32_t number) WAL_MUST_USE;

/* Puts a number in; there is room for it. */
void wal__bits_set(struct wal__bits *bits, uint32_t number);

bool wal__bits_has(const struct wal__bits *bits, uint32_t number);

#endif
