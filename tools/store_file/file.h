/*
 * file.h - a file of a store read as it is: by pread, a window at a
 * time, so that a bad sector is an error and not a signal.
 *
 * Invariant: nothing is written, and nothing beyond the size that the file had
 * when it was opened is read.
 *
 * Threads: a struct cli_file belongs to one thread.
 */
#ifndef AGENTWAL_TOOLS_STORE_FILE_FILE_H
#define AGENTWAL_TOOLS_STORE_FILE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that cannot be read stand in the window as this one, which begins no
 * valid frame, so that a scan steps over them and goes on. */
enum {
    CLI_FILE_FILLER = 0xa5
};

struct cli_file {
    int fd;
    uint64_t size;
    uint8_t *window;
    uint64_t capacity;
    uint64_t offset;       /* of the window, */
    uint64_t length;       /* so many bytes of it are read */
    int error;             /* errno of the last read that failed, or 0, */
    uint64_t error_offset; /* and where it was */
    uint64_t bad_offset;   /* of the first bytes that cannot be read, */
    uint64_t bad_end;      /* and behind the last ones; 0: all were read */
};

/* Opens a regular file; answers 0 or an errno. */
int cli_file_open(struct cli_file *file, const char *path);
void cli_file_close(struct cli_file *file);

/* Bytes [offset, offset + size), until the next call; null when they cannot be
 * read. For struct wal__scan_source; ctx is the file. */
const uint8_t *cli_file_fetch(void *ctx, uint64_t offset, uint64_t size);

#endif
