/*
 * descriptor.c - descriptors above the standard streams, those that children of fork() close
 * (SPEC.md 4.1), those of event loops, and those of directories (descriptor.h).
 *
 * Invariants: a descriptor below 3 is closed, whether or not it could be duplicated. The list of
 * descriptors is consistent in the child, since its mutex is held across fork(). Any thread.
 */
#include "engine/base/descriptor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/system.h"
#include "format/bytes/assert.h"

int wal__descriptor_above_stdio(int fd)
{
    int moved;
    int error;

    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    error = errno;
    (void)close(fd);
    errno = error;
    return moved;
}

int wal__descriptor_temporary(void)
{
    const char *folder = getenv("TMPDIR");
    char name[PATH_MAX];
    int fd;

    folder = folder != NULL && folder[0] == '/' ? folder : P_tmpdir;
    fd = wal__system_unnamed_file(folder);
    if (fd >= 0 || errno != EOPNOTSUPP) {
        return fd;
    }
    if (snprintf(name, sizeof(name), "%s/agentwal-XXXXXX", folder) >= (int)sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkstemp(name);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)unlink(name);
    }
    return fd;
}

int wal__descriptor_lock(int fd, uint64_t offset, enum wal__io_lock mode, bool waits)
{
    static const short types[] = {
        [WAL__IO_LOCK_NONE] = F_UNLCK,
        [WAL__IO_LOCK_SHARED] = F_RDLCK,
        [WAL__IO_LOCK_EXCLUSIVE] = F_WRLCK,
        [WAL__IO_LOCK_TEST] = F_WRLCK,
    };
    struct flock lock = {
        .l_type = types[mode],
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset,
        .l_len = 1,
    };
    int result;

    if (mode != WAL__IO_LOCK_TEST) {
        return fcntl(fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
    }
    result = fcntl(fd, F_OFD_GETLK, &lock);
    if (result == 0 && lock.l_type != F_UNLCK) {
        errno = EAGAIN;
        return -1;
    }
    return result;
}

/* --- in the child of fork() --------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wal__close_on_fork *first;
static bool is_registered; /* the fork handlers are installed */

static void atfork_prepare(void)
{
    pthread_mutex_lock(&mutex);
}

static void atfork_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void atfork_child(void)
{
    for (struct wal__close_on_fork *node = first; node != NULL; node = node->next) {
        (void)close(*node->fd);
        *node->fd = -1;
    }
    pthread_mutex_unlock(&mutex);
}

static void register_atfork(void)
{
    is_registered = pthread_atfork(atfork_prepare, atfork_parent, atfork_child) == 0;
}

bool wal__close_on_fork_add(struct wal__close_on_fork *node, int *fd)
{
    if (pthread_once(&once, register_atfork) != 0 || !is_registered) {
        return false;
    }
    pthread_mutex_lock(&mutex);
    if (node->fd == NULL) {
        node->fd = fd;
        node->previous = NULL;
        node->next = first;
        if (first != NULL) {
            WAL__ASSERT(first->previous == NULL);
            first->previous = node;
        }
        first = node;
    }
    pthread_mutex_unlock(&mutex);
    return true;
}

void wal__close_on_fork_remove(struct wal__close_on_fork *node)
{
    pthread_mutex_lock(&mutex);
    if (node->fd != NULL) {
        WAL__ASSERT(node->previous != NULL || first == node);
        if (node->next != NULL) {
            node->next->previous = node->previous;
        }
        if (node->previous != NULL) {
            node->previous->next = node->next;
        } else {
            first = node->next;
        }
        node->fd = NULL;
    }
    pthread_mutex_unlock(&mutex);
}

/* --- directories --------------------------------------------------------- */

/* The next name; NULL at the end, and on failure with the errno in *error. */
static const char *next_name(DIR *directory, int *error)
{
    const struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(directory);
    } while (entry != NULL &&
             (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    *error = entry == NULL ? errno : 0;
    return entry == NULL ? NULL : entry->d_name;
}

enum wal_status wal__descriptor_list(int fd, enum wal_status (*each)(void *arg, const char *name),
                                     void *arg, int *sys_errno)
{
    enum wal_status status = WAL_OK;
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const char *name;

    *sys_errno = errno;
    if (directory == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return WAL_EIO;
    }
    do {
        name = next_name(directory, sys_errno);
        if (name != NULL) {
            status = each(arg, name);
        }
    } while (name != NULL && status == WAL_OK);
    (void)closedir(directory);
    return *sys_errno == 0 ? status : WAL_EIO;
}

/* --- descriptors of event loops ----------------------------------------- */

void wal__completion_fd_init(struct wal__completion_fd *completion)
{
    *completion = (struct wal__completion_fd){.read_fd = -1, .write_fd = -1};
}

/* Fills ends[]: the caller's end, then the one to write to. */
static int open_ends(enum wal_completion_kind kind, bool is_signalled, int ends[2])
{
    if (kind == WAL_COMPLETION_PIPE) {
        return wal__system_pipe(ends);
    }
    if (kind == WAL_COMPLETION_SOCKET) {
        return wal__system_socket_pair(ends);
    }
    ends[0] = wal__system_event(is_signalled);
    ends[1] = -1;
    return ends[0] < 0 ? -1 : 0;
}

bool wal__completion_fd_open(struct wal__completion_fd *completion, enum wal_completion_kind kind,
                             bool is_signalled, int *sys_errno)
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
    if (!wal__close_on_fork_add(&completion->close_read, &completion->read_fd) ||
        (ends[1] >= 0 &&
         !wal__close_on_fork_add(&completion->close_write, &completion->write_fd))) {
        wal__completion_fd_close(completion);
        *sys_errno = ENOMEM;
        return false;
    }
    if (is_signalled && kind != WAL_COMPLETION_EVENTFD) {
        wal__completion_fd_signal(completion);
    }
    return true;
}

/* A write fails when the count is at its limit, or there is no room for another byte, and then the
 * descriptor is readable already. A socket whose other end the caller has closed raises no
 * SIGPIPE. */
void wal__completion_fd_signal(const struct wal__completion_fd *completion)
{
    const uint64_t one = 1;
    ssize_t result;

    if (completion->kind == WAL_COMPLETION_SOCKET) {
        WAL__RETRY_EINTR(result, send(completion->write_fd, &one, 1, MSG_NOSIGNAL));
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
