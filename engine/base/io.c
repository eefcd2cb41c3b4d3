/*
 * io.c - the status of an errno, complete reads and writes over any table, and a pool of random
 * bytes (io.h; SPEC.md 5.1). Invariant: bytes are transferred in order and without a gap; a call
 * that makes no progress is repeated a bounded number of times. Threads as the table.
 */
#include "engine/base/io.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"

/* Consecutive calls without progress that count as a failure. */
enum { stall_count_max = 64 };

enum wal_status wal__io_status(int sys_errno)
{
    switch (sys_errno) {
    case 0:
        return WAL_OK;
    case ENOENT:
    case ENOTDIR:
        return WAL_ENOTFOUND;
    case EEXIST:
        return WAL_EEXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return WAL_EREADONLY;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return WAL_ENOSPACE;
    case ENOMEM:
        return WAL_ENOMEM;
    default:
        return WAL_EIO;
    }
}

enum wal_status wal__io_read_full(const struct wal__io *io, struct wal__file *file, void *data,
                                  size_t size, uint64_t offset, size_t *bytes_read, int *sys_errno)
{
    size_t done = 0;
    int stall_count = 0;

    while (done < size) {
        size_t part = 0;
        enum wal_status status = io->pread(io->ctx, file, (uint8_t *)data + done, size - done,
                                           offset + done, &part, sys_errno);

        WAL__ASSERT(part <= size - done);
        if (status == WAL_OK && part > 0) {
            done += part;
            stall_count = 0;
            continue;
        }
        if (status == WAL_OK) {
            break;
        }
        if (*sys_errno != EAGAIN || ++stall_count == stall_count_max) {
            return status;
        }
    }
    *bytes_read = done;
    return WAL_OK;
}

/* The unwritten rest of a list of pieces. */
struct remaining {
    const struct iovec *iov;
    int count;
    size_t skip; /* bytes of the first piece that are written */
};

/* Also skips empty pieces at the front, so that a write of zero bytes always means no progress. */
static void advance_iov(struct remaining *remaining, size_t bytes_written)
{
    while (remaining->count > 0) {
        size_t left = remaining->iov->iov_len - remaining->skip;

        WAL__ASSERT(remaining->skip <= remaining->iov->iov_len);
        if (bytes_written < left) {
            remaining->skip += bytes_written;
            return;
        }
        bytes_written -= left;
        remaining->iov++;
        remaining->count--;
        remaining->skip = 0;
    }
    WAL__ASSERT(bytes_written == 0);
}

/* One write: of all remaining pieces, or of the rest of a piece that the last write cut. */
static enum wal_status write_once(const struct wal__io *io, struct wal__file *file,
                                  const struct remaining *remaining, uint64_t offset,
                                  size_t *bytes_written, int *sys_errno)
{
    if (remaining->skip == 0) {
        return io->pwritev(io->ctx, file, remaining->iov, remaining->count, offset, bytes_written,
                           sys_errno);
    }

    struct iovec cut = {
        .iov_base = (uint8_t *)remaining->iov->iov_base + remaining->skip,
        .iov_len = remaining->iov->iov_len - remaining->skip,
    };

    return io->pwritev(io->ctx, file, &cut, 1, offset, bytes_written, sys_errno);
}

enum wal_status wal__io_write_full(const struct wal__io *io, struct wal__file *file,
                                   const struct iovec *iov, int count, uint64_t offset,
                                   int *sys_errno)
{
    struct remaining remaining = {.iov = iov, .count = count};
    int stall_count = 0;

    advance_iov(&remaining, 0);
    while (remaining.count > 0) {
        size_t bytes_written = 0;
        enum wal_status status =
            write_once(io, file, &remaining, offset, &bytes_written, sys_errno);

        if (status != WAL_OK && *sys_errno != EAGAIN) {
            return status;
        }
        if (status == WAL_OK && bytes_written > 0) {
            advance_iov(&remaining, bytes_written);
            offset += bytes_written;
            stall_count = 0;
            continue;
        }
        if (++stall_count == stall_count_max) {
            *sys_errno = status == WAL_OK ? EIO : EAGAIN;
            return WAL_EIO;
        }
    }
    return WAL_OK;
}

void wal__env_path(const struct wal__env *env, char out[WAL__PATH_MAX], const char *format, ...)
{
    int root_size = snprintf(out, WAL__PATH_MAX, "%s/", env->root);
    va_list args;
    int size;

    WAL__ASSERT(root_size > 0 && root_size < WAL__PATH_MAX);
    va_start(args, format);
    size = vsnprintf(out + root_size, (size_t)(WAL__PATH_MAX - root_size), format, args);
    va_end(args);
    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX - root_size);
}

/* --- the machine -------------------------------------------------------- */

void wal__io_parse_boot_id(const char *text, uint8_t out[16])
{
    char digits[32];
    size_t count = 0;

    for (; *text != '\0' && count < sizeof(digits); text++) {
        char digit = *text;

        if (digit >= 'A' && digit <= 'F') {
            digit = "abcdef"[digit - 'A'];
        }
        if (memchr("0123456789abcdef", digit, 16) != NULL) {
            digits[count++] = digit;
        }
    }
    if (count < sizeof(digits) || !wal__hex_read(digits, 16, out)) {
        memset(out, 0, 16);
    }
}

/* --- random bytes ------------------------------------------------------- */

void wal__random_init(struct wal__random *random)
{
    pthread_mutex_init(&random->mutex, NULL);
    random->unused_size = 0;
}

void wal__random_deinit(struct wal__random *random)
{
    pthread_mutex_destroy(&random->mutex);
}

void wal__random_bytes(struct wal__random *random, const struct wal__io *io, void *out, size_t size)
{
    WAL__ASSERT(size <= WAL__RANDOM_POOL_SIZE);
    if (random == NULL) {
        io->random(io->ctx, out, size);
        return;
    }
    pthread_mutex_lock(&random->mutex);
    if (random->unused_size < size) {
        io->random(io->ctx, random->bytes, sizeof(random->bytes));
        random->unused_size = sizeof(random->bytes);
    }
    WAL__ASSERT(random->unused_size >= size);
    random->unused_size -= size;
    memcpy(out, random->bytes + random->unused_size, size);
    pthread_mutex_unlock(&random->mutex);
}

enum wal_status wal__env_replace_file(const struct wal__env *env, const char *name,
                                      const void *data, size_t size, int *sys_errno)
{
    const struct wal__io *io = env->io;
    struct iovec iov = {(void *)(uintptr_t)data, size};
    char path[WAL__PATH_MAX];
    char temporary[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    enum wal_status status;

    wal__env_path(env, path, "%s", name);
    wal__env_path(env, temporary, "%s.new", name);
    status = io->open(io->ctx, temporary, WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_TRUNCATE, &file,
                      sys_errno);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__io_write_full(io, file, &iov, 1, 0, sys_errno);
    if (status == WAL_OK) {
        status = io->sync(io->ctx, file, sys_errno);
    }
    io->close(io->ctx, file);
    return status == WAL_OK ? io->rename(io->ctx, temporary, path, sys_errno) : status;
}
