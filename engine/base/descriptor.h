/*
 * descriptor.h - rules for every file descriptor of the engine: system calls are retried after
 * EINTR, no descriptor is below 3, and a child of fork() does not keep those that have locks. And a
 * descriptor for event loops of the caller. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_DESCRIPTOR_H
#define AGENTWAL_ENGINE_BASE_DESCRIPTOR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/io.h"

/* Sets result to the result of a system call, repeated while it is EINTR. */
#define WAL__RETRY_EINTR(result, call) \
    do {                               \
        (result) = (call);             \
    } while ((result) < 0 && errno == EINTR)

/* Moves a descriptor that got the number of a closed standard stream above 2, so that output to
 * that stream does not land in a store or a work tree. Takes the result of open(2), a failure
 * included; returns the descriptor, or a negative number with errno set. The descriptor passed in
 * is closed when it is not returned. */
int wal__descriptor_above_stdio(int fd);

/* Opens a file without a name where temporary files are, close-on-exec. -1 with errno set. */
int wal__descriptor_temporary(void);

/* Sets, or tests, the lock of one byte (io.h), which belongs to the open file description: POSIX
 * has these locks since 2024. With `waits`, until no other conflicts. Negative with errno: EAGAIN
 * or EACCES for a conflict. */
int wal__descriptor_lock(int fd, uint64_t offset, enum wal__io_lock mode, bool waits);

/* --- in the child of fork() --------------------------------------------- */

/*
 * Closes descriptors in the child of fork(), before fork() returns there. A lock belongs to an open
 * file description, which parent and child share: a child that kept the descriptor would hold the
 * parent's locks after the parent died.
 */
struct wal__close_on_fork {
    struct wal__close_on_fork *next;
    struct wal__close_on_fork *previous;
    int *fd; /* null: not in the list. In a child *fd becomes -1 */
};

/* Adds the descriptor *fd; node and fd must stay valid until remove. False when memory is
 * exhausted. Adding a node that is in the list does nothing. */
bool wal__close_on_fork_add(struct wal__close_on_fork *node, int *fd);
/* Does nothing for a node that is not in the list. */
void wal__close_on_fork_remove(struct wal__close_on_fork *node);

/* Calls `each` for the names in a directory but "." and "..", until it fails: *sys_errno is 0 then.
 * Closes the descriptor; a negative one is a failure with errno. Any other failure is WAL_EIO. */
enum wal_status wal__descriptor_list(int fd, enum wal_status (*each)(void *arg, const char *name),
                                     void *arg, int *sys_errno);

/* --- descriptors of event loops ----------------------------------------- */

/* A descriptor that becomes readable when it is signalled: an eventfd, the read end of a pipe, or
 * one of a pair of sockets. The child of fork() has neither end. Open and close by one thread,
 * signal by any. */
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
bool wal__completion_fd_open(struct wal__completion_fd *completion, enum wal_completion_kind kind,
                             bool is_signalled, int *sys_errno);
/* Makes the descriptor readable, and never blocks: adds one to the count of an eventfd; otherwise
 * writes one byte, or none when there is no room. */
void wal__completion_fd_signal(const struct wal__completion_fd *completion);
/* Closes both ends; does nothing if they are not open. */
void wal__completion_fd_close(struct wal__completion_fd *completion);

#endif
