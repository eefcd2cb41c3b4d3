/*
 * line_reader.c - reads lines from a window. A line larger than the window may
 * grow is returned from a map of the file.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/line_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/map.h"

#define WINDOW_SIZE 65536
#define WINDOW_MAX  WAL__PIECE_SIZE

void wal__line_reader_init(struct wal__line_reader *reader,
                           const struct wal__heap *heap, int fd, uint64_t size,
                           bool is_opaque, uint64_t offset)
{
    *reader = (struct wal__line_reader){
        .heap = heap,
        .fd = fd,
        .is_opaque = is_opaque,
        .size = size,
        .offset = offset,
    };
}

static void unmap(struct wal__line_reader *reader)
{
    if (reader->mapped != NULL) {
        wal__guarded_unmap(reader->mapped, reader->mapped_size);
        reader->mapped = NULL;
    }
}

void wal__line_reader_deinit(struct wal__line_reader *reader)
{
    unmap(reader);
    wal__heap_free(reader->heap, reader->window);
    reader->window = NULL;
}

void wal__line_reader_seek(struct wal__line_reader *reader, uint64_t offset,
                           uint64_t line)
{
    unmap(reader);
    reader->offset = offset;
    reader->line = line;
    reader->begin = 0;
    reader->end = 0;
}

static ssize_t read_at(const struct wal__line_reader *reader, char *bytes,
                       size_t size, uint64_t offset)
{
    ssize_t got;

    if (size > reader->size - offset) {
        size = (size_t)(reader->size - offset);
    }
    do {
        got = pread(reader->fd, bytes, size, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        errno = ESTALE;
    }
    return got > 0 ? got : -1;
}

/* Reads more bytes after those in the window. Returns 1 if there were more, 0
 * at the end of the file, -1 if reading failed or the file became shorter. */
static int fill_window(struct wal__line_reader *reader)
{
    size_t buffered = reader->end - reader->begin;
    uint64_t read_offset = reader->offset + buffered;
    ssize_t got;

    if (read_offset >= reader->size) {
        return 0;
    }
    if (buffered > 0) {
        memmove(reader->window, reader->window + reader->begin, buffered);
    }
    reader->begin = 0;
    reader->end = buffered;
    if (buffered == reader->capacity) {
        size_t capacity =
            reader->capacity > 0 ? 2 * reader->capacity : WINDOW_SIZE;
        char *window =
            wal__heap_resize(reader->heap, reader->window, capacity, 1);
        if (window == NULL) {
            errno = ENOMEM;
            return -1;
        }
        reader->window = window;
        reader->capacity = capacity;
    }
    got = read_at(reader, reader->window + buffered,
                  reader->capacity - buffered, read_offset);
    if (got < 0) {
        return -1;
    }
    reader->end += (size_t)got;
    return 1;
}

static void return_piece(struct wal__line_reader *reader,
                         struct wal__piece *piece, size_t size,
                         bool has_newline)
{
    reader->line++;
    *piece = (struct wal__piece){
        .data = reader->window + reader->begin,
        .size = size,
        .offset = reader->offset,
        .line = reader->line,
        .has_newline = has_newline,
    };
    size += has_newline ? 1 : 0;
    reader->begin += size;
    reader->offset += size;
}

/* Advances *offset to the end of the line: its newline, or the end of the file.
 * Overwrites the window. Returns 1, or -1 with errno set. */
static int find_end(struct wal__line_reader *reader, uint64_t *offset,
                    bool *has_newline)
{
    const char *newline = NULL;

    while (newline == NULL && *offset < reader->size) {
        ssize_t got =
            read_at(reader, reader->window, reader->capacity, *offset);

        if (got < 0) {
            return -1;
        }
        newline = memchr(reader->window, '\n', (size_t)got);
        *offset += newline != NULL ? (uint64_t)(newline - reader->window)
                                   : (uint64_t)got;
    }
    *has_newline = newline != NULL;
    return 1;
}

/* Maps the line that begins in the window. Empties the window. */
static int return_mapped(struct wal__line_reader *reader,
                         struct wal__piece *piece)
{
    uint64_t begin = reader->offset;
    uint64_t end = begin + (reader->end - reader->begin);
    size_t page_offset = (size_t)(begin % (uint64_t)sysconf(_SC_PAGESIZE));
    bool has_newline = false;

    if (find_end(reader, &end, &has_newline) < 0) {
        return -1;
    }
    reader->mapped_size = page_offset + (size_t)(end - begin);
    reader->losses = wal__guarded_map_losses();
    reader->mapped =
        wal__guarded_map(reader->fd, (off_t)(begin - page_offset),
                         reader->mapped_size, PROT_READ, MAP_PRIVATE);
    if (reader->mapped == NULL) {
        return -1;
    }
    reader->begin = 0;
    reader->end = 0;
    return_piece(reader, piece, (size_t)(end - begin), has_newline);
    reader->begin = 0;
    piece->data = (const char *)reader->mapped + page_offset;
    return 1;
}

/* Returns the next piece of an opaque file. */
static int next_opaque_piece(struct wal__line_reader *reader,
                             struct wal__piece *piece)
{
    int more = 1;

    while (more > 0 && reader->end - reader->begin < WAL__PIECE_SIZE) {
        more = fill_window(reader);
    }
    if (more < 0) {
        return -1;
    }
    if (reader->end - reader->begin > 0) {
        size_t buffered = reader->end - reader->begin;

        return_piece(reader, piece,
                     buffered < WAL__PIECE_SIZE ? buffered : WAL__PIECE_SIZE,
                     false);
        return 1;
    }
    return 0;
}

int wal__line_reader_next(struct wal__line_reader *reader,
                          struct wal__piece *piece)
{
    size_t scanned = 0;

    if (reader->mapped != NULL && reader->losses != wal__guarded_map_losses()) {
        errno = ESTALE;
        return -1;
    }
    unmap(reader);
    if (reader->is_opaque) {
        return next_opaque_piece(reader, piece);
    }
    for (;;) {
        size_t buffered = reader->end - reader->begin;
        const char *start = NULL;
        const char *newline = NULL;
        int more;

        if (buffered > scanned) {
            start = reader->window + reader->begin;
            newline = memchr(start + scanned, '\n', buffered - scanned);
        }
        if (newline != NULL) {
            return_piece(reader, piece, (size_t)(newline - start), true);
            return 1;
        }
        scanned = buffered;
        if (buffered >= WINDOW_MAX) {
            return return_mapped(reader, piece);
        }
        more = fill_window(reader);
        if (more < 0) {
            return -1;
        }
        if (more == 0 && buffered == 0) {
            return 0;
        }
        if (more == 0) {
            return_piece(reader, piece, buffered, false);
            return 1;
        }
    }
}
