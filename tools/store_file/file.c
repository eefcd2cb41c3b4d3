/*
 * file.c - read a file of a store, and its blocks (file.h).
 *
 * Invariant: window[0, length) holds the file's bytes from `offset`. The records of a block point
 * into its bytes.
 */
#include "tools/store_file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cli.h"

enum {
    WINDOW = 256 * 1024,
    BLOCK = 512 /* smallest unit that a disk fails to read */
};

const char *cli_file_error(int error)
{
    switch (error) {
    case ELOOP:
        return "it is a symbolic link";
    case EISDIR:
        return "it is a directory";
    case ENXIO:
        return "it is a FIFO, a socket or a device";
    default:
        return strerror(error);
    }
}

DIR *cli_directory_open(const char *path, int *error)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat status;
    DIR *directory = NULL;
    int fd = open(path, flags);

    *error = errno;
    if (fd >= 0) {
        directory = fdopendir(fd);
        *error = errno;
    } else if (*error == ENOTDIR && lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
        *error = ELOOP;
    }
    if (fd >= 0 && directory == NULL) {
        close(fd);
    }
    return directory;
}

static int open_file(struct cli_file *file, const char *path, int flags)
{
    struct stat status;

    *file = (struct cli_file){.fd = -1};
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (file->fd < 0) {
        return errno;
    }
    if (fstat(file->fd, &status) != 0) {
        int error = errno;

        cli_file_close(file);
        return error;
    }
    if (!S_ISREG(status.st_mode)) {
        cli_file_close(file);
        return S_ISDIR(status.st_mode) ? EISDIR : ENXIO;
    }
    file->size = (uint64_t)status.st_size;
    return 0;
}

int cli_file_open(struct cli_file *file, const char *path)
{
    return open_file(file, path, O_NOFOLLOW);
}

int cli_file_open_operand(struct cli_file *file, const char *path)
{
    return open_file(file, path, 0);
}

void cli_file_close(struct cli_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    free(file->window);
    *file = (struct cli_file){.fd = -1};
}

/* Moves the window to `offset` and keeps the bytes that it has from there. */
static void slide_window(struct cli_file *file, uint64_t offset)
{
    uint64_t kept = 0;

    if (offset >= file->offset && offset < file->offset + file->length) {
        kept = file->offset + file->length - offset;
        memmove(file->window, file->window + (offset - file->offset), (size_t)kept);
    }
    file->offset = offset;
    file->length = kept;
}

/* Reads once. Returns the number of bytes, 0 at the end of the file; *error is 0 or an errno
 * value. */
static uint64_t read_some(struct cli_file *file, uint64_t size, int *error)
{
    ssize_t got;

    do {
        got = pread(file->fd, file->window + file->length, (size_t)size,
                    (off_t)(file->offset + file->length));
    } while (got < 0 && errno == EINTR);
    *error = got < 0 ? errno : 0;
    return got < 0 ? 0 : (uint64_t)got;
}

/* Replaces an unreadable block by filler bytes. */
static void skip_block(struct cli_file *file, uint64_t size, int error)
{
    uint64_t at = file->offset + file->length;

    memset(file->window + file->length, CLI_FILE_FILLER, (size_t)size);
    file->error = error;
    file->error_offset = at;
    if (file->bad_end == 0 || at < file->bad_offset) {
        file->bad_offset = at;
    }
    if (at + size > file->bad_end) {
        file->bad_end = at + size;
    }
    file->length += size;
}

/* Reads until the window holds at least `min` bytes, and up to `max`. After an error it reads block
 * by block, to lose as little as possible. */
static bool fill_window(struct cli_file *file, uint64_t min, uint64_t max)
{
    while (file->length < min) {
        uint64_t at = file->offset + file->length;
        uint64_t block = BLOCK - at % BLOCK;
        uint64_t left = max - file->length;
        int error;
        uint64_t got = read_some(file, left, &error);

        if (error != 0) {
            block = block < left ? block : left;
            got = read_some(file, block, &error);
        }
        if (error == EIO) {
            skip_block(file, block, error);
            continue;
        }
        if (got == 0) {
            file->error = error != 0 ? error : ENODATA;
            file->error_offset = at;
            return false;
        }
        file->length += got;
    }
    return true;
}

const uint8_t *cli_file_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    struct cli_file *file = ctx;
    uint64_t want;

    if (offset > file->size || size > file->size - offset) {
        file->error = ENODATA;
        file->error_offset = offset;
        return NULL;
    }
    if (offset >= file->offset && offset + size <= file->offset + file->length) {
        return file->window + (offset - file->offset);
    }
    want = size < WINDOW / 2 ? WINDOW : size * 2;
    if (want > file->size - offset) {
        want = file->size - offset;
    }
    slide_window(file, offset);
    if (want > file->capacity) {
        file->window = cli_realloc(file->window, (size_t)want);
        file->capacity = want;
    }
    return fill_window(file, size, want) ? file->window : NULL;
}

/* --- blocks ------------------------------------------------------------- */

enum wal__fmt cli_block_unpack(struct cli_block *block, const struct wal__frame *frame,
                               const uint8_t *payload, uint64_t offset)
{
    struct wal__block decoded;
    enum wal__fmt fmt = wal__block_decode(frame, payload, &decoded);

    block->offset = 0;
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (block->capacity < decoded.raw_size) {
        block->bytes = cli_realloc(block->bytes, decoded.raw_size);
        block->capacity = decoded.raw_size;
    }
    if (decoded.is_compressed) {
        fmt = wal__block_decompress(&decoded, block->bytes);
    } else if (decoded.raw_size > 0) {
        memcpy(block->bytes, decoded.data.data, decoded.raw_size);
    }
    if (fmt == WAL__FMT_OK) {
        block->offset = offset;
        block->records = (struct wal__span){block->bytes, decoded.raw_size};
        block->count = decoded.count;
    }
    return fmt;
}

enum wal__fmt cli_block_read(struct cli_block *block, struct cli_file *file, uint64_t salt,
                             uint64_t offset)
{
    const uint8_t *at;
    struct wal__frame frame;
    enum wal__fmt fmt;

    if (block->offset == offset) {
        return WAL__FMT_OK;
    }
    at = cli_file_fetch(file, offset, WAL__FRAME_SIZE);
    fmt = at == NULL ? WAL__FMT_SHORT
                     : wal__frame_decode(at, file->size - offset, salt, offset, &frame);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (frame.type != WAL__FRAME_BLOCK) {
        return WAL__FMT_TYPE;
    }
    at = cli_file_fetch(file, offset, wal__frame_total_size(frame.stored_size));
    fmt = at == NULL ? WAL__FMT_SHORT : wal__frame_check_data(&frame, at + WAL__FRAME_SIZE);
    return fmt == WAL__FMT_OK ? cli_block_unpack(block, &frame, at + WAL__FRAME_SIZE, offset) : fmt;
}

void cli_block_deinit(struct cli_block *block)
{
    free(block->bytes);
    *block = (struct cli_block){.offset = 0};
}
