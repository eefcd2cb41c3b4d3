/*
 * prefetch.h - software prefetch: loads bytes into the caches before they are
 * used, while other work is done. Pays for bytes that were written long ago or
 * by another thread. Any address is allowed; a bad one is ignored. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_PREFETCH_H
#define AGENTWAL_ENGINE_BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

enum {
    WAL__CACHE_LINE_SIZE = 64,
    /* Bytes per call; the hardware prefetcher covers what follows. */
    WAL__PREFETCH_MAX = 2048
};

/* A caller of the public API may pass NULL with a size. */
static inline size_t wal__prefetch_size(const void *bytes, uint64_t size)
{
    if (bytes == NULL) {
        return 0;
    }
    return size < WAL__PREFETCH_MAX ? (size_t)size : WAL__PREFETCH_MAX;
}

static inline void wal__prefetch_read(const void *bytes, uint64_t size)
{
    const uint8_t *line = bytes;
    size_t end = wal__prefetch_size(bytes, size);

    for (size_t i = 0; i < end; i += WAL__CACHE_LINE_SIZE) {
        __builtin_prefetch(&line[i], 0);
    }
}

/* Fetches one line for exclusive ownership. __builtin_prefetch(line, 1) emits
 * prefetchw only if the build targets processors that all have it; processors
 * without it execute it as a no-op, so it is always used here. */
static inline void wal__prefetch_line_write(const uint8_t *line)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
}

static inline void wal__prefetch_write(const void *bytes, uint64_t size)
{
    size_t end = wal__prefetch_size(bytes, size);

    for (size_t i = 0; i < end; i += WAL__CACHE_LINE_SIZE) {
        wal__prefetch_line_write((const uint8_t *)bytes + i);
    }
}

#endif
