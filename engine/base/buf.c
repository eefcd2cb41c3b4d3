/*
 * buf.c - a growing byte buffer (buf.h). No section of SPEC.md. Invariant:
 * size <= capacity, and a failure leaves the buffer unchanged. One thread at a
 * time.
 */
#include "engine/base/buf.h"

#include <string.h>

#include "format/bytes/assert.h"

enum {
    capacity_min = 64
};

void wal__buf_init(struct wal__buf *buf, const struct wal__heap *heap)
{
    *buf = (struct wal__buf){.heap = heap};
}

void wal__buf_deinit(struct wal__buf *buf)
{
    wal__heap_free(buf->heap, buf->data);
    *buf = (struct wal__buf){.heap = buf->heap};
}

/* Doubles, so that appending n bytes copies O(n). */
static enum wal_status grow(struct wal__buf *buf, size_t needed)
{
    size_t capacity = capacity_min;

    if (buf->capacity > SIZE_MAX / 2) {
        capacity = SIZE_MAX;
    } else if (buf->capacity * 2 > capacity) {
        capacity = buf->capacity * 2;
    }
    if (capacity < needed) {
        capacity = needed;
    }

    uint8_t *data = wal__heap_resize(buf->heap, buf->data, capacity, 1);

    if (data == NULL) {
        return WAL_ENOMEM;
    }
    buf->data = data;
    buf->capacity = capacity;
    return WAL_OK;
}

enum wal_status wal__buf_reserve(struct wal__buf *buf, size_t more,
                                 uint8_t **end)
{
    WAL__ASSERT(buf->size <= buf->capacity);
    if (more > SIZE_MAX - buf->size) {
        return WAL_ENOMEM;
    }
    if (buf->data == NULL || buf->size + more > buf->capacity) {
        enum wal_status status = grow(buf, buf->size + more);

        if (status != WAL_OK) {
            return status;
        }
    }
    WAL__ASSERT(more <= buf->capacity - buf->size);
    *end = buf->data + buf->size;
    return WAL_OK;
}

enum wal_status wal__buf_append(struct wal__buf *buf, const void *data,
                                size_t size)
{
    uint8_t *end;
    enum wal_status status = wal__buf_reserve(buf, size, &end);

    if (status != WAL_OK) {
        return status;
    }
    /* memcpy must not get the null pointer that an empty slice may have. */
    if (size > 0) {
        memcpy(end, data, size);
        buf->size += size;
    }
    return WAL_OK;
}
