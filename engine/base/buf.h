/*
 * buf.h - growing bytes. init/deinit work on the caller's memory; a zeroed
 * struct with a heap is a valid empty one. One thread at a time.
 */
#ifndef AGENTWAL_ENGINE_BASE_BUF_H
#define AGENTWAL_ENGINE_BASE_BUF_H

#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"

struct wal__buf {
    const struct wal__heap *heap;
    uint8_t *data;
    size_t size;
    size_t capacity;
};

void wal__buf_init(struct wal__buf *buf, const struct wal__heap *heap);
void wal__buf_deinit(struct wal__buf *buf);

/* Room for `more` bytes behind size; *at points there. Size is unchanged. */
enum wal_status wal__buf_reserve(struct wal__buf *buf, size_t more,
                                 uint8_t **at) WAL_MUST_USE;
/* data is not in the buffer itself, which may move. */
enum wal_status wal__buf_append(struct wal__buf *buf, const void *data,
                                size_t size) WAL_MUST_USE;

#endif
