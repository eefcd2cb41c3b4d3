/*
 * compare.c - compare a file with bytes, reading the file in windows.
 *
 * Short comparisons at rising offsets share one pread.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/cli.h"

#define WINDOW_SIZE ((size_t)128 << 10)

void cli_compare_init(struct cli_compare *window, int fd)
{
    *window = (struct cli_compare){.fd = fd, .bytes = cli_alloc(WINDOW_SIZE)};
}

void cli_compare_deinit(struct cli_compare *window)
{
    free(window->bytes);
    window->bytes = NULL;
}

/* Moves the window to the offset unless it contains it. Returns false at the
 * end of the file and when reading fails. */
static bool move_window(struct cli_compare *window, uint64_t offset)
{
    ssize_t got;

    if (offset >= window->offset && offset - window->offset < window->size) {
        return true;
    }
    got = pread(window->fd, window->bytes, WINDOW_SIZE, (off_t)offset);
    window->offset = offset;
    window->size = got > 0 ? (size_t)got : 0;
    return got > 0;
}

bool cli_compare_bytes(struct cli_compare *window, uint64_t offset,
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
