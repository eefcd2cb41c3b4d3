/*
 * bundle_leftovers.c - what processes that were killed left of bundles
 * (bundle.h, docs/bundles.md).
 *
 * Invariant: nothing is removed while its lock is held: the system frees the
 * lock of a process that ends, however it ends. Nor what another user made: the
 * directory may be one that all write to.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/transfer/bundle_leftovers.h"

#include "engine/transfer/bundle.h"
#include "engine/transfer/record_copy.h"

enum {
    ATTEMPTS = 100,
    DIGITS = 16
};

static const char prefix[] = ".agentwal-";

/* Whether the path still is the name of the file. */
static bool has_name(const struct wal__io *io, struct wal__file *file,
                     const char *path)
{
    struct wal__io_stat named;
    struct wal__io_stat opened;
    int err = 0;

    return io->path_stat(io->ctx, path, &named, &err) == WAL_OK &&
           io->stat(io->ctx, file, &opened, &err) == WAL_OK &&
           named.inode == opened.inode && named.device == opened.device;
}

enum wal_status wal__bundle_create_locked(const struct wal__io *io,
                                          const char *path,
                                          struct wal__file **file,
                                          int *sys_errno)
{
    enum wal_status status = WAL_EEXISTS;

    /* Before it is locked, another process may take it for a leftover. */
    for (int i = 0; i < ATTEMPTS; i++) {
        int ignored = 0;

        status = io->open(io->ctx, path,
                          WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE,
                          file, sys_errno);
        if (status == WAL_OK &&
            io->lock(io->ctx, *file, 0, WAL__IO_LOCK_EXCLUSIVE, &ignored) !=
                WAL_ELOCKED &&
            has_name(io, *file, path)) {
            return WAL_OK;
        }
        if (status == WAL_OK) {
            io->close(io->ctx, *file);
            *file = NULL;
            status = WAL_ELOCKED;
        } else if (status != WAL_EEXISTS) {
            break;
        }
        (void)sched_yield();
    }
    return status;
}

/* Whether this user made the file, or the directory. */
static bool is_own(const char *path, bool is_directory)
{
    struct stat stat;

    return lstat(path, &stat) == 0 && stat.st_uid == geteuid() &&
           (is_directory ? S_ISDIR(stat.st_mode) : S_ISREG(stat.st_mode));
}

/* Whether it is `.agentwal-`, 16 digits, and this ending. */
static bool has_form(const char *name, const char *ending)
{
    const char *digits = name + sizeof(prefix) - 1;

    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
           strspn(digits, "0123456789abcdef") == DIGITS &&
           strcmp(digits + DIGITS, ending) == 0;
}

struct removal {
    const struct wal__io *io;
    const char *place;
};

/* Removes a file that no process has locked; before it, the directory that a
 * lock file is of. */
static enum wal_status remove_leftover(void *arg, const char *name)
{
    const struct removal *removal = arg;
    const struct wal__io *io = removal->io;
    bool is_lock = has_form(name, ".lock");
    char path[WAL__PATH_MAX];
    struct wal__file *file;
    int err = 0;
    int size;

    size = snprintf(path, sizeof(path), "%s/%s", removal->place, name);
    if ((!is_lock && !has_form(name, ".tmp")) || size < 0 ||
        size >= (int)sizeof(path) || !is_own(path, false) ||
        io->open(io->ctx, path, WAL__IO_WRITE, &file, &err) != WAL_OK) {
        return WAL_OK;
    }
    if (io->lock(io->ctx, file, 0, WAL__IO_LOCK_EXCLUSIVE, &err) == WAL_OK &&
        has_name(io, file, path)) {
        char directory[WAL__PATH_MAX];

        snprintf(directory, sizeof(directory), "%.*s",
                 size - (int)strlen(".lock"), path);
        if (is_lock && is_own(directory, true)) {
            wal__copy_remove_store(io, directory);
        }
        (void)!io->unlink(io->ctx, path, &err);
    }
    io->close(io->ctx, file);
    return WAL_OK;
}

void wal__bundle_remove_leftovers(const struct wal__io *io, const char *place)
{
    struct removal removal = {.io = io, .place = place};
    int err = 0;

    (void)!io->list(io->ctx, place, remove_leftover, &removal, &err);
}

const char *wal__bundle_default_place(void)
{
    const char *place = getenv("TMPDIR");

    return place == NULL || place[0] == '\0' ? "/tmp" : place;
}

void wal__bundle_sweep(const char *place)
{
    wal__bundle_remove_leftovers(&wal__io_posix, place);
}
