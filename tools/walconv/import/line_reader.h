/*
 * line_reader.h - a file as lines, in memory of bounded size.
 *
 * Invariant: pieces follow each other without a gap: each piece's bytes, and a
 * newline where it has one, are the file. A file that changes beyond the size
 * it had when reading began is read up to that size.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_LINE_READER_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a file that is not made of lines. */
#define WALCONV_PIECE_SIZE ((size_t)4 << 20)

struct walconv_piece {
    const char *data; /* until the next call */
    size_t size;
    uint64_t offset;  /* in the file */
    uint64_t line;    /* its number, from 1 */
    bool has_newline; /* one follows */
};

struct walconv_reader {
    int fd;
    bool is_opaque;  /* pieces, whatever lines there are */
    uint64_t size;   /* of the file */
    uint64_t offset; /* of the window's first byte that was not given yet */
    uint64_t line;
    char *window;
    size_t begin;
    size_t end;
    size_t capacity;
    void *mapped; /* a line that is longer than a window, or null */
    size_t mapped_size;
};

void walconv_reader_init(struct walconv_reader *reader, int fd, uint64_t size,
                         bool is_opaque, uint64_t offset);
void walconv_reader_deinit(struct walconv_reader *reader);

/* Goes on at the beginning of a line, of which `line` are before it. */
void walconv_reader_seek(struct walconv_reader *reader, uint64_t offset,
                         uint64_t line);

/* 1: *piece is the next one; 0: the file has ended; -1: errno says why not. */
int walconv_reader_next(struct walconv_reader *reader,
                        struct walconv_piece *piece);

#endif
