/*
 * spill.h - a heap whose large blocks are mapped unnamed files, so that the
 * system can write them out: the index of a session with millions of entries
 * need not fit into memory. Small blocks come from an inner heap, and large
 * ones too if no file can be created.
 *
 * Invariant: a file has disk space for its whole block, so that only a damaged
 * device makes an access fail. One thread at a time.
 */
#ifndef AGENTWAL_ENGINE_BASE_SPILL_H
#define AGENTWAL_ENGINE_BASE_SPILL_H

#include "engine/base/heap.h"

/* Blocks of this size and above are files. */
#define WAL__SPILL_SIZE ((size_t)4 << 20)

struct wal__spill_block {
    void *at;
    size_t size;
    int fd;
};

struct wal__spill {
    struct wal__heap heap; /* the heap that callers use */
    const struct wal__heap *inner;
    const char *directory; /* where the files are created */
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
