/*
 * watch.c - watching folders (system.h), by kqueue(2). It needs a descriptor for each folder, of
 * which a process has few, and reports new and removed names only: the caller scans as well, and is
 * woken early for the folders that it watched first. Any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/event.h>
#include <unistd.h>

#include "engine/base/system.h"

enum { FOLDERS_MAX = 64 };

/* The folders of all watches. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct watched {
    int fd; /* also the number; 0: free */
    int watch;
    dev_t device;
    ino_t inode;
} folders[FOLDERS_MAX];

int wal__system_watch_open(bool *sees_writes)
{
    int fd = kqueue();

    *sees_writes = false;
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return fd;
}

/* With the mutex: the folder, or else a free place, or NULL. */
static struct watched *find_place(int watch, const struct stat *st)
{
    struct watched *place = NULL;

    for (int i = 0; i < FOLDERS_MAX; i++) {
        if (folders[i].fd == 0) {
            place = place == NULL ? &folders[i] : place;
        } else if (folders[i].watch == watch && folders[i].device == st->st_dev &&
                   folders[i].inode == st->st_ino) {
            return &folders[i];
        }
    }
    return place;
}

/* With the mutex. */
static int64_t add(int watch, int fd)
{
    struct watched *place;
    struct kevent change;
    struct stat st;

    if (fstat(fd, &st) < 0) {
        return -1;
    }
    place = find_place(watch, &st);
    if (place == NULL) {
        errno = EMFILE;
        return -1;
    }
    if (place->fd != 0) {
        return place->fd;
    }
    EV_SET(&change, (uintptr_t)fd, EVFILT_VNODE, EV_ADD | EV_CLEAR,
           NOTE_WRITE | NOTE_EXTEND | NOTE_DELETE | NOTE_RENAME | NOTE_REVOKE, 0, NULL);
    if (kevent(watch, &change, 1, NULL, 0, NULL) < 0) {
        return -1;
    }
    *place = (struct watched){fd, watch, st.st_dev, st.st_ino};
    return fd;
}

int64_t wal__system_watch_add(int watch, const char *path)
{
    struct stat st;
    int fd;
    int64_t folder;
    int error;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    fd = open(path, O_EVTONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    (void)pthread_mutex_lock(&mutex);
    folder = add(watch, fd);
    error = errno;
    (void)pthread_mutex_unlock(&mutex);
    if (folder != fd) {
        (void)close(fd);
        errno = error;
    }
    return folder;
}

void wal__system_watch_remove(int watch, int64_t folder)
{
    (void)pthread_mutex_lock(&mutex);
    for (int i = 0; i < FOLDERS_MAX; i++) {
        if (folders[i].fd == folder && folders[i].watch == watch) {
            folders[i] = (struct watched){0};
            (void)close((int)folder);
        }
    }
    (void)pthread_mutex_unlock(&mutex);
}

int wal__system_watch_read(int watch, wal__system_watch_fn *each, void *ctx)
{
    const struct timespec now = {0};
    struct kevent event;
    int result = 0;

    while (result == 0 && kevent(watch, NULL, 0, &event, 1, &now) > 0) {
        int64_t folder = (int64_t)event.ident;

        if ((event.fflags & (NOTE_DELETE | NOTE_REVOKE)) != 0) {
            wal__system_watch_remove(watch, folder);
            result = each(ctx, folder, WAL__WATCH_ENDED, "");
        } else {
            result =
                each(ctx, folder,
                     (event.fflags & NOTE_RENAME) != 0 ? WAL__WATCH_MOVED : WAL__WATCH_NAME, "");
        }
    }
    return result;
}
