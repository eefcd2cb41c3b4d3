/*
 * spill.h - a heap whose large blocks lie in files without a name, so that the
 * system can write them out: what finds the entries of a session of millions
 * need not fit into memory. Where there is no place for such a file, blocks
 * come from the heap behind it, as small ones do.
 *
 * Invariant: a file has room for all of its block, so that touching it fails
 * on a damaged device alone. One thread at a time.
 */
#ifndef AGENTWAL_ENGINE_OS_SPILL_H
#define AGENTWAL_ENGINE_OS_SPILL_H

#include "engine/base/heap.h"

/* Smaller blocks are not worth a file. */
#define WAL__SPILL_SIZE ((size_t)4 << 20)

struct wal__spill_block {
    void *at;
    size_t size;
    int fd;
};

struct wal__spill {
    struct wal__heap heap; /* to ask for memory */
    const struct wal__heap *inner;
    const char *directory; /* on the disk that files go to */
    struct wal__spill_block *blocks;
    uint32_t count;
    uint32_t capacity;
};

/* `inner` and `directory` must outlive it. */
void wal__spill_init(struct wal__spill *spill, const struct wal__heap *inner,
                     const char *directory);

/* All blocks must have been freed. */
void wal__spill_deinit(struct wal__spill *spill);

#endif
