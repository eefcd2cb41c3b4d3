/*
 * completion_fd.c - eventfd(2), pipe2(2) and socketpair(2) (completion_fd.h).
 * No section of SPEC.md.
 */
#include "engine/base/completion_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "format/bytes/assert.h"

void wal__completion_fd_init(struct wal__completion_fd *completion)
{
    *completion = (struct wal__completion_fd){.read_fd = -1, .write_fd = -1};
}

/* Fills ends[]: the caller's end, then the one to write to. */
static int open_ends(enum wal_completion_kind kind, bool is_signalled,
                     int ends[2])
{
    if (kind == WAL_COMPLETION_PIPE) {
        return pipe2(ends, O_NONBLOCK | O_CLOEXEC);
    }
    if (kind == WAL_COMPLETION_SOCKET) {
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          0, ends);
    }
    ends[0] = eventfd(is_signalled, EFD_NONBLOCK | EFD_CLOEXEC);
    ends[1] = -1;
    return ends[0] < 0 ? -1 : 0;
}

bool wal__completion_fd_open(struct wal__completion_fd *completion,
                             enum wal_completion_kind kind, bool is_signalled,
                             int *sys_errno)
{
    int ends[2];

    WAL__ASSERT(completion->read_fd < 0);
    if (open_ends(kind, is_signalled, ends) < 0) {
        *sys_errno = errno;
        return false;
    }
    completion->kind = kind;
    completion->read_fd = ends[0];
    completion->write_fd = ends[1];
    if (!wal__close_on_fork_add(&completion->close_read,
                                &completion->read_fd) ||
        (ends[1] >= 0 && !wal__close_on_fork_add(&completion->close_write,
                                                 &completion->write_fd))) {
        wal__completion_fd_close(completion);
        *sys_errno = ENOMEM;
        return false;
    }
    if (is_signalled && kind != WAL_COMPLETION_EVENTFD) {
        wal__completion_fd_signal(completion);
    }
    return true;
}

/* A write fails when the count is at its limit, or there is no room for another
 * byte, and then the descriptor is readable already. A socket whose other end
 * the caller has closed raises no SIGPIPE. */
void wal__completion_fd_signal(const struct wal__completion_fd *completion)
{
    const uint64_t one = 1;
    ssize_t result;

    if (completion->kind == WAL_COMPLETION_SOCKET) {
        WAL__RETRY_EINTR(result,
                         send(completion->write_fd, &one, 1, MSG_NOSIGNAL));
    } else if (completion->kind == WAL_COMPLETION_PIPE) {
        WAL__RETRY_EINTR(result, write(completion->write_fd, &one, 1));
    } else {
        WAL__RETRY_EINTR(result, write(completion->read_fd, &one, sizeof(one)));
    }
    (void)result;
}

void wal__completion_fd_close(struct wal__completion_fd *completion)
{
    wal__close_on_fork_remove(&completion->close_read);
    wal__close_on_fork_remove(&completion->close_write);
    if (completion->read_fd >= 0) {
        (void)close(completion->read_fd);
    }
    if (completion->write_fd >= 0) {
        (void)close(completion->write_fd);
    }
    wal__completion_fd_init(completion);
}
