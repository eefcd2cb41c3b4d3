/*
 * walconv_read - lines out of a window that grows as far as a line may.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli.h"

#define WINDOW_SIZE 65536

void walconv_reader_init(struct walconv_reader *reader, int fd, uint64_t size,
                         bool is_whole, uint64_t offset)
{
    *reader = (struct walconv_reader){
        .fd = fd,
        .is_whole = is_whole,
        .size = size,
        .offset = offset,
        .capacity = WINDOW_SIZE,
    };
    reader->window = cli_alloc(reader->capacity);
}

void walconv_reader_deinit(struct walconv_reader *reader)
{
    free(reader->window);
    reader->window = NULL;
}

/* Reads more behind what the window holds. 1: there is more; 0: the file has
 * ended; -1: it cannot be read, or is shorter than it was. */
static int fill(struct walconv_reader *reader)
{
    size_t held = reader->end - reader->begin;
    uint64_t at = reader->offset + held;
    size_t room;
    ssize_t got;

    if (at >= reader->size) {
        return 0;
    }
    memmove(reader->window, reader->window + reader->begin, held);
    reader->begin = 0;
    reader->end = held;
    if (held == reader->capacity) {
        reader->capacity *= 2;
        reader->window = cli_grow(reader->window, reader->capacity);
    }
    room = reader->capacity - held;
    if (room > reader->size - at) {
        room = (size_t)(reader->size - at);
    }
    do {
        got = pread(reader->fd, reader->window + held, room, (off_t)at);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        errno = ESTALE;
    }
    if (got <= 0) {
        return -1;
    }
    reader->end += (size_t)got;
    return 1;
}

static void give(struct walconv_reader *reader, struct walconv_piece *piece,
                 size_t size, bool has_newline)
{
    bool is_first = reader->is_whole || !reader->is_inside;

    if (is_first) {
        reader->line++;
    }
    *piece = (struct walconv_piece){
        .data = reader->window + reader->begin,
        .size = size,
        .offset = reader->offset,
        .line = reader->line,
        .is_first = is_first,
        .has_newline = has_newline,
    };
    size += has_newline ? 1 : 0;
    reader->begin += size;
    reader->offset += size;
}

int walconv_reader_next(struct walconv_reader *reader,
                        struct walconv_piece *piece)
{
    bool in_pieces = reader->is_whole || reader->is_inside;
    size_t most = in_pieces ? WALCONV_PIECE_SIZE : WALCONV_LINE_SIZE + 1;
    size_t scanned = 0;

    for (;;) {
        const char *from = reader->window + reader->begin;
        size_t held = reader->end - reader->begin;
        size_t within = held < most ? held : most;
        const char *newline = NULL;
        int more;

        if (!reader->is_whole && within > scanned) {
            newline = memchr(from + scanned, '\n', within - scanned);
        }
        if (newline != NULL) {
            give(reader, piece, (size_t)(newline - from), true);
            piece->is_long = reader->is_inside;
            reader->is_inside = false;
            return 1;
        }
        scanned = within;
        if (held >= most) {
            give(reader, piece, WALCONV_PIECE_SIZE, false);
            piece->is_long = !reader->is_whole;
            reader->is_inside = !reader->is_whole;
            return 1;
        }
        more = fill(reader);
        if (more < 0) {
            return -1;
        }
        if (more == 0 && held == 0) {
            return 0;
        }
        if (more == 0) {
            give(reader, piece, held, false);
            piece->is_long = reader->is_inside;
            return 1;
        }
    }
}
