/*
 * tree.h - work trees on a simulated disk as tests hold them: made and compared from outside. What
 * is made here is durable; nothing is counted or traced. Paths are of the disk. A process reaches a
 * tree by the table `tree` of its io: sync_all() settles bytes, sizes and modes of the tree's files
 * and no name, sync_directories() names; a new file's mode, a link's target and an inode come with
 * its name. Modes hold for every process; the owner's bits count. One thread at a time.
 */
#ifndef AGENTWAL_TESTS_SIM_DISK_TREE_H
#define AGENTWAL_TESTS_SIM_DISK_TREE_H

#include "engine/base/worktree.h"
#include "tests/sim/disk/sim.h"

/* One name of a tree. */
struct sim_tree_entry {
    const char *path; /* below the root */
    enum wal__worktree_kind kind;
    uint32_t mode;       /* 0: the usual, and any when compared */
    const char *content; /* a link's target; null: empty, any when compared */
};

/* Makes the root and what is in the table, in its order, parents included. What is there already is
 * replaced; ABSENT removes it. */
void sim_tree_make(struct sim_disk *disk, const char *root, const struct sim_tree_entry *entries,
                   size_t count);
/* Whether the tree holds this and nothing else, directories above and absent names apart; else says
 * in *why what differs. */
bool sim_tree_equals(struct sim_disk *disk, const char *root, const struct sim_tree_entry *entries,
                     size_t count, char *why, size_t size);
/* Whether the name is as the entry says. */
bool sim_tree_has(struct sim_disk *disk, const char *root, const struct sim_tree_entry *entry);
/* False where nothing is. */
bool sim_tree_stat(struct sim_disk *disk, const char *path, struct wal__worktree_stat *out);
void sim_tree_set_mode(struct sim_disk *disk, const char *path, uint32_t mode);
/* Immutable, or no more. */
void sim_tree_set_immutable(struct sim_disk *disk, const char *path, bool fixed);
/* Times of files are rounded down to this; the clock itself ticks every 4 ms. sim_disk_advance()
 * lets time go by. */
void sim_disk_set_time_granularity(struct sim_disk *disk, uint64_t ns);

#endif
