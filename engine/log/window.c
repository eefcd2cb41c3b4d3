/*
 * window.c - reading segments for scans (SPEC.md 3.4).
 */
#include "engine/log/window.h"

#include <string.h>

enum {
    WINDOW_SIZE = 1024 * 1024,
    PAGE_SIZE = 4096
};

void wal__window_init(struct wal__window *window, struct wal__segment *segment)
{
    memset(window, 0, sizeof(*window));
    window->segment = segment;
    window->ahead = WINDOW_SIZE;
    window->reads = segment->env->no_maps;
}

void wal__window_deinit(struct wal__window *window)
{
    if (window->bytes != NULL) {
        wal__heap_free(window->segment->env->heap, window->bytes);
    }
    window->bytes = NULL;
}

/* --- from the map ------------------------------------------------------- */

/* Brings the map up to `end` into memory, and some more while at it. */
static enum wal_status populate(struct wal__window *window, uint64_t from,
                                uint64_t end)
{
    const struct wal__io *io = window->segment->env->io;
    uint64_t capacity = window->segment->header.capacity;
    uint64_t ahead =
        end + window->ahead < capacity ? end + window->ahead : capacity;
    enum wal_status status;

    from = from / PAGE_SIZE * PAGE_SIZE;
    ahead = (ahead + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    end = (end + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    status = io->populate(io->ctx, window->map + from, ahead - from,
                          &window->sys_errno);
    if (status == WAL_OK) {
        window->populated = ahead;
    } else if (status == WAL_EIO) {
        /* A bad sector ahead is no error for what is wanted now. */
        status = io->populate(io->ctx, window->map + from, end - from,
                              &window->sys_errno);
    }
    return status;
}

static const uint8_t *fetch_mapped(struct wal__window *window, uint64_t offset,
                                   uint64_t size)
{
    uint64_t from = window->populated > offset ? window->populated : offset;

    if (window->map == NULL) {
        window->map = wal__segment_map(window->segment, NULL);
        if (window->map == NULL) {
            window->reads = true;
            return NULL;
        }
    }
    if (offset + size > window->populated) {
        window->status = populate(window, from, offset + size);
        if (window->status == WAL_EINVAL) {
            window->reads = true;
        }
        if (window->status != WAL_OK) {
            return NULL;
        }
    }
    return window->map + offset;
}

/* --- by reading --------------------------------------------------------- */

static bool grow(struct wal__window *window, uint64_t size)
{
    uint64_t capacity = WINDOW_SIZE;
    uint8_t *bytes;

    while (capacity < size) {
        capacity *= 2;
    }
    if (capacity <= window->capacity) {
        return true;
    }
    bytes = wal__heap_resize(window->segment->env->heap, window->bytes,
                             (size_t)capacity, 1);
    if (bytes == NULL) {
        window->status = WAL_ENOMEM;
        return false;
    }
    window->bytes = bytes;
    window->capacity = capacity;
    return true;
}

/* Keeps what the window holds of [offset, ...) and reads on behind it. */
static const uint8_t *fetch_read(struct wal__window *window, uint64_t offset,
                                 uint64_t size)
{
    struct wal__segment *segment = window->segment;
    const struct wal__io *io = segment->env->io;
    uint64_t want = segment->header.capacity - offset;
    uint64_t keep = 0;
    size_t got = 0;

    window->status = wal__segment_unpark(segment, NULL);
    if (window->status != WAL_OK || !grow(window, size)) {
        return NULL;
    }
    if (offset >= window->offset && offset < window->offset + window->size) {
        keep = window->offset + window->size - offset;
        memmove(window->bytes, window->bytes + (offset - window->offset),
                (size_t)keep);
    }
    window->offset = offset;
    window->size = keep;
    want = (want < window->capacity ? want : window->capacity) - keep;
    window->status =
        wal__io_read_full(io, segment->file, window->bytes + keep, (size_t)want,
                          offset + keep, &got, &window->sys_errno);
    if (window->status == WAL_EIO && want > size - keep) {
        /* A bad sector ahead is no error for what is wanted now. */
        window->status = wal__io_read_full(
            io, segment->file, window->bytes + keep, (size_t)(size - keep),
            offset + keep, &got, &window->sys_errno);
    }
    if (window->status != WAL_OK) {
        return NULL;
    }
    window->size = keep + got;
    return window->size >= size ? window->bytes : NULL;
}

const uint8_t *wal__window_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    struct wal__window *window = ctx;
    const uint8_t *bytes = NULL;

    if (offset + size > window->segment->header.capacity) {
        return NULL;
    }
    if (!window->reads) {
        bytes = fetch_mapped(window, offset, size);
    }
    if (!window->reads) {
        return bytes;
    }
    if (offset >= window->offset &&
        offset + size <= window->offset + window->size) {
        return window->bytes + (offset - window->offset);
    }
    return fetch_read(window, offset, size);
}
