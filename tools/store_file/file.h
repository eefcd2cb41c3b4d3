/*
 * file.h - read a file of a store with pread, a window at a time. With pread an unreadable sector
 * is an error; in a map it would be a signal. And the records of a BLOCK of a rewritten segment
 * (SPEC.md 2.23).
 *
 * Invariant: nothing is written, and nothing is read beyond the size that the file had when it was
 * opened.
 *
 * Threads: a struct belongs to one thread.
 */
#ifndef AGENTWAL_TOOLS_STORE_FILE_FILE_H
#define AGENTWAL_TOOLS_STORE_FILE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/segment/frame.h"

/* Replaces unreadable bytes in the window. No valid frame begins with it, so that a scan skips
 * them. */
enum {
    CLI_FILE_FILLER = 0xa5
};

struct cli_file {
    int fd;
    uint64_t size;
    uint8_t *window;
    uint64_t capacity;
    uint64_t offset;       /* of the window in the file */
    uint64_t length;       /* valid bytes in the window */
    int error;             /* errno value of the last failed read, or 0 */
    uint64_t error_offset; /* offset of that read */
    uint64_t bad_offset;   /* start of the first unreadable block */
    uint64_t bad_end;      /* end of the last unreadable block; 0: none */
};

/* Opens a regular file, never by a symbolic link, and never waits. Returns 0 or an errno value. */
int cli_file_open(struct cli_file *file, const char *path);

/* As cli_file_open, but follows a link that the user named. */
int cli_file_open_operand(struct cli_file *file, const char *path);

/* The text of such an errno value: what is there instead of a file. */
const char *cli_file_error(int error);

/* Opens a directory of a store, never by a symbolic link. Null: *error is the errno value. */
DIR *cli_directory_open(const char *path, int *error);
void cli_file_close(struct cli_file *file);

/* Returns bytes [offset, offset + size), valid until the next call; NULL when they cannot be read.
 * The function of a struct wal__scan_source whose ctx is the file. */
const uint8_t *cli_file_fetch(void *ctx, uint64_t offset, uint64_t size);

/* The records of one BLOCK, in memory. Zeroed it is empty. */
struct cli_block {
    uint64_t offset; /* of the BLOCK in its segment; 0: none */
    struct wal__span records;
    uint32_t count;
    uint8_t *bytes;
    size_t capacity;
};

/* Decodes and decompresses the payload of the BLOCK at `offset`, whose checksums were verified. The
 * records are copied. */
enum wal__fmt cli_block_unpack(struct cli_block *block, const struct wal__frame *frame,
                               const uint8_t *payload, uint64_t offset);

/* Reads the BLOCK at `offset` of a segment file, unless *block has it. WAL__FMT_SHORT also when it
 * cannot be read. */
enum wal__fmt cli_block_read(struct cli_block *block, struct cli_file *file, uint64_t salt,
                             uint64_t offset);
void cli_block_deinit(struct cli_block *block);

#endif
