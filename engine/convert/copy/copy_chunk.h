/*
 * copy_chunk.h - the entries in which a copy's lines are told (SPEC.md
 * 5.17), as bytes.
 *
 * Invariant: bytes of any kind may be unpacked; what does not hold together is
 * refused.
 *
 * Threads: no shared state.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_COPY_COPY_CHUNK_H
#define AGENTWAL_ENGINE_CONVERT_COPY_COPY_CHUNK_H

#include "agentwal.h"
#include "engine/convert/copy/line_delta.h"

struct wal__heap;

enum {
    WAL__COPY_CHUNK_MAX = WAL__DELTA_HEADER_SIZE + 4 * WAL__DELTA_PART_MAX +
                          WAL__DELTA_UUIDS_MAX * WAL__DELTA_UUID_SIZE +
                          WAL__DELTA_LINES_MAX
};

/* A chunk that was unpacked. Zeroed: none. */
struct wal__copy_chunk {
    uint32_t number;                 /* of the chunk, from 0 */
    bool is_last;                    /* the copy ends with it */
    struct wal__delta_reader reader; /* of the payload and memory */
    uint8_t *memory;
    const struct wal__heap *heap; /* null: the C library's */
};

/* WAL_ECORRUPT: it is none. */
enum wal_status wal__copy_chunk_decode(struct wal__copy_chunk *chunk,
                                       struct wal_slice payload);
void wal__copy_chunk_deinit(struct wal__copy_chunk *chunk);

/* Whether all of a chunk can be read, as far as it tells without the original.
 */
bool wal__copy_chunk_is_valid(struct wal_slice payload);

/* The chunk as bytes, in WAL__COPY_CHUNK_MAX bytes at most. */
enum wal_status wal__copy_chunk_encode(const struct wal__delta_chunk *chunk,
                                       uint32_t number, bool is_last,
                                       uint8_t *bytes, size_t *size);

#endif
