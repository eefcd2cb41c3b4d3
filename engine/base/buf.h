/*
 * buf.h - a growing byte buffer. init/deinit work on the caller's memory; a
 * zeroed struct with a heap is a valid empty buffer. One thread at a time.
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

/* Ensures capacity for `more` bytes after `size`; *end points to the first of
 * them until the next reserve or append. Size is unchanged. WAL_ENOMEM leaves
 * the buffer unchanged. */
enum wal_status wal__buf_reserve(struct wal__buf *buf, size_t more,
                                 uint8_t **end) WAL_MUST_USE;
/* Appends `size` bytes. data must not point into the buffer, which may move. */
enum wal_status wal__buf_append(struct wal__buf *buf, const void *data,
                                size_t size) WAL_MUST_USE;

#endif
