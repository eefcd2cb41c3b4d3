/*
 * worktree_stat.c - converts struct stat to struct wal__worktree_stat
 * (worktree_stat.h). No section of SPEC.md. Times are exact until the year
 * 2262. Any thread.
 */
#include "engine/base/worktree_stat.h"

static enum wal__worktree_kind kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return WAL__WORKTREE_REGULAR;
    case S_IFLNK:
        return WAL__WORKTREE_SYMLINK;
    case S_IFDIR:
        return WAL__WORKTREE_DIRECTORY;
    default:
        return WAL__WORKTREE_OTHER;
    }
}

int64_t wal__worktree_time_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_nsec;
}

struct wal__worktree_stat wal__worktree_stat_of(const struct stat *st)
{
    return (struct wal__worktree_stat){
        .kind = kind_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = (uint64_t)st->st_size,
        .mtime_ns = wal__worktree_time_ns(&st->st_mtim),
        .ctime_ns = wal__worktree_time_ns(&st->st_ctim),
        .inode = (uint64_t)st->st_ino,
        .device = (uint64_t)st->st_dev,
    };
}
