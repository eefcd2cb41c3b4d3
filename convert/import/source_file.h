/*
 * source_file.h - the file of a source while it is imported.
 *
 * The lock: one import at a time reads a file, in any process.
 *
 * Lines: a file is read as lines, in bounded memory. Invariant: pieces are
 * contiguous: their bytes, each followed by a newline if has_newline, are the
 * file. A file that grows is read up to the size that it had at the start.
 *
 * The probe detects a file's dialect and session from its beginning. It ends
 * when both are determined, or after WAL__PROBE_LINES lines or WAL__PROBE_SIZE
 * bytes. Later bytes do not change the result. Invariant: equal bytes give
 * equal probes.
 *
 * Threads: one thread at a time per descriptor or struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_SOURCE_FILE_H
#define AGENTWAL_CONVERT_IMPORT_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "agentwal.h"
#include "convert/import/import.h"
#include "convert/model/dialect.h"
#include "convert/source/json_string.h"
#include "engine/base/heap.h"

/* --- regular files ------------------------------------------------------- */

/* Opens a regular file in a directory (or AT_FDCWD) without following a
 * symbolic link. Returns -1 with errno set, ELOOP when it is not a regular
 * file. */
int wal__file_open_regular(int directory, const char *name, struct stat *stat);

/* Reads `size` bytes, or up to the end of the file. Returns the count, or -1
 * with errno set. */
ssize_t wal__file_read_full(int fd, void *data, size_t size);

/* --- the file ------------------------------------------------------------ */

/*
 * Waits until no other import, in any process, reads the file: both would add
 * its new lines. The lock ends with the descriptor. A program that keeps the
 * lock for more than ten seconds, and a file system without locks, do not
 * prevent the import. WAL_ECALLBACK: the progress callback stopped it.
 */
enum wal_status wal__source_file_lock(struct wal__import *import, int fd,
                                      const char *name,
                                      struct wal_error *error) WAL_MUST_USE;

/* Reduces *size, that of the file, to the end of its last complete line.
 * Returns 0, or -1 with errno set. */
int wal__source_file_end(int fd, uint64_t *size);

/* --- lines --------------------------------------------------------------- */

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

/* --- the probe ----------------------------------------------------------- */

#define WAL__PROBE_LINES 4096
#define WAL__PROBE_SIZE  ((uint64_t)16 << 20)

struct wal__file_probe {
    const struct wal__dialect *dialect;
    uint64_t end;       /* offset at which the probe ended */
    bool is_at_end;     /* that is the end of the file */
    uint64_t nonblank;  /* lines that are not blank */
    uint64_t parsed;    /* of these, valid JSON */
    uint64_t first;     /* number of the first of these; or 0 */
    bool is_opaque;     /* most non-blank lines are not JSON */
    bool has_mainline;  /* a line of the conversation is not in a side chain */
    bool has_sidechain; /* a line is in a side chain */
    char *session;      /* in the arena; these are NULL when not found */
    char *cwd;
    char *created;
    char *parent; /* id of the session that the client forked */
};

/* Returns true if both describe the same session. */
bool wal__file_probe_equal(const struct wal__file_probe *a,
                           const struct wal__file_probe *b);

/* Probes the file into *probe, which the caller zeroes. `forced`: assume this
 * dialect, unless NULL. Returns 0, or -1 with errno set. */
int wal__file_probe(struct wal__heap_arena *arena, int fd, uint64_t size,
                    const struct wal__dialect *forced,
                    struct wal__file_probe *probe);

/* Counts the lines of a file. Returns 0, or -1 with errno set. */
int wal__file_count_lines(const struct wal__heap *heap, int fd, uint64_t size,
                          uint64_t *lines);

#endif
