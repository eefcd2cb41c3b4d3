/*
 * inode.c - modes and times of one simulated file (sim_internal.h).
 * Invariant: a time is a tick of the disk's clock, no earlier than the tick
 * before the change. One thread at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/internal.h"

enum {
    tick_ns = 4000000
};

/* The clock, from which files get their times. */
int64_t sim__clock_ns(const struct sim_disk *disk)
{
    int64_t now = disk->boot_ms * 1000000 + (int64_t)disk->monotonic_ns;

    return now - now % tick_ns;
}

void sim__file_update_ctime(struct sim_file *file)
{
    int64_t now = sim__clock_ns(file->disk);

    file->ctime_ns = now - now % (int64_t)file->disk->time_granularity_ns;
}

void sim__file_update_mtime(struct sim_file *file)
{
    sim__file_update_ctime(file);
    file->mtime_ns = file->ctime_ns;
}

void sim__file_set_mode(struct sim_file *file, uint32_t mode)
{
    struct sim_change *change = sim__file_add_change(file, SIM_MODE);

    change->old_mode = file->mode;
    change->new_mode = mode;
    file->mode = mode;
    sim__file_update_ctime(file);
}

/* Copies everything but the content to a clone. */
void sim__file_copy_inode(const struct sim_file *from, struct sim_file *to)
{
    to->inode = from->inode;
    to->is_pipe = from->is_pipe;
    to->is_immutable = from->is_immutable;
    to->mode = from->mode;
    to->mtime_ns = from->mtime_ns;
    to->ctime_ns = from->ctime_ns;
    to->durable_mtime_ns = from->durable_mtime_ns;
    to->durable_ctime_ns = from->durable_ctime_ns;
    if (from->target != NULL) {
        to->target = strdup(from->target);
        WAL__ASSERT(to->target != NULL);
    }
}

struct wal__worktree_stat sim__tree_stat_of(const struct sim_file *file)
{
    struct wal__worktree_stat stat = {
        .kind = WAL__WORKTREE_REGULAR,
        .mode = file->mode,
        .size = file->size,
        .mtime_ns = file->mtime_ns,
        .ctime_ns = file->ctime_ns,
        .inode = file->inode,
        .device = 1,
    };

    if (file->is_directory) {
        stat.kind = WAL__WORKTREE_DIRECTORY;
    } else if (file->is_pipe) {
        stat.kind = WAL__WORKTREE_OTHER;
    } else if (file->target != NULL) {
        stat.kind = WAL__WORKTREE_SYMLINK;
        stat.size = strlen(file->target);
    }
    return stat;
}
