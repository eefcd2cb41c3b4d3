/*
 * prefetch.h - bytes that are about to be used, told to the processor: what the
 * caller made long before, or another thread had last, is not in its caches,
 * and it comes while something else is done. Any address will do. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_PREFETCH_H
#define AGENTWAL_ENGINE_BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

enum {
    WAL__CACHE_LINE_SIZE = 64, /* of the caches */
    /* The processor foresees what follows so many bytes itself. */
    WAL__PREFETCH_MAX = 2048
};

/* A caller may have given a size without bytes. */
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

/* One line, to be this processor's alone. Compilers give that for x86 only
 * where every processor of the build has the instruction, which does nothing
 * where it is not known. */
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
