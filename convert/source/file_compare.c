/*
 * file_compare.c - compares a file with bytes, reading the file in windows.
 *
 * Short comparisons at rising offsets share one pread.
 *
 * Threads: one thread at a time per window.
 */
#include "convert/source/file_compare.h"

#include <string.h>
#include <unistd.h>

#define WINDOW_SIZE ((size_t)128 << 10)

static const struct wal__heap *
window_heap(const struct wal__file_compare *window)
{
    return window->heap != NULL ? window->heap : &wal__heap_libc;
}

void wal__file_compare_deinit(struct wal__file_compare *window)
{
    wal__heap_free(window_heap(window), window->bytes);
    window->bytes = NULL;
}

/* Moves the window to the offset unless it contains it. Returns false at the
 * end of the file, when reading fails, and without memory. */
static bool move_window(struct wal__file_compare *window, uint64_t offset)
{
    ssize_t got;

    if (offset >= window->offset && offset - window->offset < window->size) {
        return true;
    }
    if (window->bytes == NULL) {
        window->bytes = wal__heap_alloc(window_heap(window), WINDOW_SIZE);
        window->has_failed = window->bytes == NULL;
    }
    if (window->has_failed) {
        return false;
    }
    got = pread(window->fd, window->bytes, WINDOW_SIZE, (off_t)offset);
    window->offset = offset;
    window->size = got > 0 ? (size_t)got : 0;
    window->has_ended = got == 0;
    return got > 0;
}

bool wal__file_compare_bytes(struct wal__file_compare *window, uint64_t offset,
                             const void *data, size_t size)
{
    const char *bytes = data;

    while (size > 0) {
        size_t at;
        size_t common;

        if (!move_window(window, offset)) {
            return false;
        }
        at = (size_t)(offset - window->offset);
        common = window->size - at < size ? window->size - at : size;
        if (memcmp(window->bytes + at, bytes, common) != 0) {
            return false;
        }
        bytes += common;
        offset += common;
        size -= common;
    }
    return true;
}
