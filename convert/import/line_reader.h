/*
 * line_reader.h - reads a file as lines, in bounded memory.
 *
 * Invariant: pieces are contiguous: their bytes, each followed by a newline if
 * has_newline, are the file. A file that grows is read up to the size that it
 * had at the start.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_LINE_READER_H
#define AGENTWAL_CONVERT_IMPORT_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/heap.h"

/* Bytes in a piece of an opaque file; a longer line is mapped. */
#define WAL__PIECE_SIZE ((size_t)4 << 20)

struct wal__piece {
    const char *data; /* valid until the next call */
    size_t size;
    uint64_t offset;  /* in the file */
    uint64_t line;    /* line number, from 1 */
    bool has_newline; /* a newline follows */
};

struct wal__line_reader {
    const struct wal__heap *heap;
    int fd;
    bool is_opaque;  /* return pieces, ignore newlines */
    uint64_t size;   /* of the file at the start */
    uint64_t offset; /* of the first byte that was not returned */
    uint64_t line;
    char *window;
    size_t begin;
    size_t end;
    size_t capacity;
    void *mapped; /* a line longer than a window, or NULL */
    size_t mapped_size;
    uint32_t losses; /* of pages, when it was mapped */
};

void wal__line_reader_init(struct wal__line_reader *reader,
                           const struct wal__heap *heap, int fd, uint64_t size,
                           bool is_opaque, uint64_t offset);
void wal__line_reader_deinit(struct wal__line_reader *reader);

/* Continues at the given offset, the start of a line; `line` lines precede
 * it. */
void wal__line_reader_seek(struct wal__line_reader *reader, uint64_t offset,
                           uint64_t line);

/* Returns 1 and the next piece, 0 at the end of the file, or -1 with errno set;
 * ESTALE: the file became shorter. The piece before, if it has more than
 * WAL__PIECE_SIZE, may then have held zeros in the place of what went. */
int wal__line_reader_next(struct wal__line_reader *reader,
                          struct wal__piece *piece);

#endif
