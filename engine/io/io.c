/*
 * io.c - what an errno means, and whole reads and writes over any table of
 * calls (io.h). No section of SPEC.md. Invariant: bytes are moved in order and
 * without a gap; a call that moves nothing is repeated a bounded number of
 * times. Threads as the table.
 */
#include "engine/io/io.h"

#include <errno.h>

/* Calls in a row that may move nothing before that counts as a failure. */
enum {
    idle_max = 64
};

enum wal_status wal__io_status(int error)
{
    switch (error) {
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

enum wal_status wal__io_read_full(const struct wal__io *io,
                                  struct wal__file *file, void *data,
                                  size_t size, uint64_t offset, size_t *got,
                                  int *sys_errno)
{
    size_t done = 0;
    int idle = 0;

    while (done < size) {
        size_t part = 0;
        enum wal_status status =
            io->pread(io->ctx, file, (uint8_t *)data + done, size - done,
                      offset + done, &part, sys_errno);

        if (status == WAL_OK && part > 0) {
            done += part;
            idle = 0;
            continue;
        }
        if (status == WAL_OK) {
            break;
        }
        if (*sys_errno != EAGAIN || ++idle == idle_max) {
            return status;
        }
    }
    *got = done;
    return WAL_OK;
}

/* What of a list of pieces is still to be written. */
struct rest {
    const struct iovec *iov;
    int count;
    size_t skip; /* bytes of the first piece that are written */
};

/* Leaves no empty piece in front, so that a write of nothing is a failure. */
static void advance(struct rest *rest, size_t put)
{
    while (rest->count > 0) {
        size_t left = rest->iov->iov_len - rest->skip;

        if (put < left) {
            rest->skip += put;
            return;
        }
        put -= left;
        rest->iov++;
        rest->count--;
        rest->skip = 0;
    }
}

/* One write: of all that is left, or of the end of a piece cut by the last. */
static enum wal_status write_some(const struct wal__io *io,
                                  struct wal__file *file,
                                  const struct rest *rest, uint64_t offset,
                                  size_t *put, int *sys_errno)
{
    if (rest->skip == 0) {
        return io->pwritev(io->ctx, file, rest->iov, rest->count, offset, put,
                           sys_errno);
    }

    struct iovec cut = {
        .iov_base = (uint8_t *)rest->iov->iov_base + rest->skip,
        .iov_len = rest->iov->iov_len - rest->skip,
    };

    return io->pwritev(io->ctx, file, &cut, 1, offset, put, sys_errno);
}

enum wal_status wal__io_write_full(const struct wal__io *io,
                                   struct wal__file *file,
                                   const struct iovec *iov, int count,
                                   uint64_t offset, int *sys_errno)
{
    struct rest rest = {.iov = iov, .count = count};
    int idle = 0;

    advance(&rest, 0);
    while (rest.count > 0) {
        size_t put = 0;
        enum wal_status status =
            write_some(io, file, &rest, offset, &put, sys_errno);

        if (status != WAL_OK && *sys_errno != EAGAIN) {
            return status;
        }
        if (status == WAL_OK && put > 0) {
            advance(&rest, put);
            offset += put;
            idle = 0;
            continue;
        }
        if (++idle == idle_max) {
            *sys_errno = status == WAL_OK ? EIO : EAGAIN;
            return WAL_EIO;
        }
    }
    return WAL_OK;
}
