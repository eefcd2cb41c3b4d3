/*
 * damaged_block.h - the records of a rewritten segment of the damaged store, in
 * log order (SPEC.md 2.22, 2.23). A BLOCK has them session by session.
 *
 * Invariant: a block that cannot be read costs its own records alone.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_SALVAGE_DAMAGED_BLOCK_H
#define AGENTWAL_ENGINE_SALVAGE_DAMAGED_BLOCK_H

#include "engine/salvage/damaged_store.h"
#include "format/segment/block.h"

enum {
    WAL__DAMAGED_BLOCKS = 16 /* that are kept in memory */
};

/* A BLOCK whose records, or some of them, cannot be read. */
struct wal__damaged_bad_block {
    uint64_t offset;
    uint64_t size;
    uint32_t session; /* 0: not known */
};

struct wal__damaged_block {
    uint64_t offset; /* of the BLOCK; 0: none */
    struct wal__buf records;
};

struct wal__damaged_blocks {
    const struct wal__heap *heap;
    struct wal__buf list; /* where each record is */
    struct wal__buf bad;  /* struct wal__damaged_bad_block */
    struct wal__damaged_block cache[WAL__DAMAGED_BLOCKS];
    uint32_t next; /* of the cache, to be replaced */
};

void wal__damaged_blocks_init(struct wal__damaged_blocks *blocks,
                              const struct wal__heap *heap);
void wal__damaged_blocks_deinit(struct wal__damaged_blocks *blocks);

/* Adds the records of a BLOCK whose own checksums are valid. WAL_ENOMEM. */
enum wal_status
wal__damaged_blocks_add(struct wal__damaged_blocks *blocks,
                        const struct wal__damaged_segment *segment,
                        const struct wal__frame *frame, uint64_t offset,
                        const uint8_t *payload) WAL_MUST_USE;

/* Passes the records that were added to the visitor, by ascending sequence
 * number, each once. `file` is the segment's. WAL_ENOMEM, or what the visitor
 * returned. */
enum wal_status wal__damaged_blocks_visit(
    struct wal__damaged_blocks *blocks,
    const struct wal__damaged_segment *segment, struct wal__damaged_file *file,
    const struct wal__damaged_visitor *visitor) WAL_MUST_USE;

#endif
