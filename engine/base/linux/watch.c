/*
 * watch.c - watching folders (system.h), by inotify(7). Any thread.
 */
#include <stdalign.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "engine/base/system.h"

#define EVENTS                                                                               \
    (IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_DELETE_SELF | \
     IN_MOVE_SELF)
#define FLAGS       (IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
#define BUFFER_SIZE 65536

int wal__system_watch_open(bool *sees_writes)
{
    *sees_writes = true;
    return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

int64_t wal__system_watch_add(int watch, const char *path)
{
    return inotify_add_watch(watch, path, EVENTS | FLAGS);
}

void wal__system_watch_remove(int watch, int64_t folder)
{
    (void)inotify_rm_watch(watch, (int)folder);
}

static int pass_on(const struct inotify_event *event, wal__system_watch_fn *each, void *ctx)
{
    const char *name = event->len > 0 ? event->name : "";

    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        return each(ctx, -1, WAL__WATCH_LOST, "");
    }
    if ((event->mask & IN_IGNORED) != 0) {
        return each(ctx, event->wd, WAL__WATCH_ENDED, "");
    }
    if ((event->mask & (IN_MOVED_FROM | IN_ISDIR)) == (IN_MOVED_FROM | IN_ISDIR)) {
        return each(ctx, event->wd, WAL__WATCH_LEFT, name);
    }
    if ((event->mask & (IN_MOVED_FROM | IN_DELETE_SELF)) != 0) {
        return 0;
    }
    return each(ctx, event->wd,
                (event->mask & IN_MOVE_SELF) != 0 ? WAL__WATCH_MOVED : WAL__WATCH_NAME, name);
}

int wal__system_watch_read(int watch, wal__system_watch_fn *each, void *ctx)
{
    alignas(struct inotify_event) char buffer[BUFFER_SIZE];
    int result = 0;
    ssize_t got;

    while (result == 0 && (got = read(watch, buffer, sizeof(buffer))) > 0) {
        for (char *at = buffer; result == 0 && at < buffer + got;) {
            const struct inotify_event *event = (void *)at;

            result = pass_on(event, each, ctx);
            at += sizeof(*event) + event->len;
        }
    }
    return result;
}
