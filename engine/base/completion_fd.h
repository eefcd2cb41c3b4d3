/*
 * completion_fd.h - a descriptor for event loops of the caller that becomes
 * readable when it is signalled: an eventfd, the read end of a pipe, or one of
 * a pair of sockets. The child of fork() has neither end. Open and close by one
 * thread, signal by any.
 */
#ifndef AGENTWAL_ENGINE_BASE_COMPLETION_FD_H
#define AGENTWAL_ENGINE_BASE_COMPLETION_FD_H

#include "agentwal.h"
#include "engine/base/close_on_fork.h"

struct wal__completion_fd {
    enum wal_completion_kind kind;
    int read_fd;  /* for the caller; -1: not open */
    int write_fd; /* -1: an eventfd, which has one end */
    struct wal__close_on_fork close_read;
    struct wal__close_on_fork close_write;
};

/* Initialises *completion as not open. */
void wal__completion_fd_init(struct wal__completion_fd *completion);
/* Opens the descriptors, non-blocking and close-on-exec, readable already if
 * is_signalled. False with the errno in *sys_errno: nothing is open.
 * *completion must not move afterwards. */
bool wal__completion_fd_open(struct wal__completion_fd *completion,
                             enum wal_completion_kind kind, bool is_signalled,
                             int *sys_errno);
/* Makes the descriptor readable, and never blocks: adds one to the count of an
 * eventfd; otherwise writes one byte, or none when there is no room. */
void wal__completion_fd_signal(const struct wal__completion_fd *completion);
/* Closes both ends; does nothing if they are not open. */
void wal__completion_fd_close(struct wal__completion_fd *completion);

#endif
