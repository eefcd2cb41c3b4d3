/*
 * golden.h - stores kept as compact files, for tests of what old and damaged stores are taken for.
 *
 * A golden file is a list of the store's files; of each its size and the sectors of 512 bytes that
 * are not zero. Numbers are little-endian:
 *
 *   "AGWALGLD", u32 files; for each: u16 size of the path, the path, u64 size,
 *   u32 pieces; for each: u64 offset, u32 sectors, u8 kind; kind 0: the bytes
 *   follow; kind 1: one byte follows that fills all of them
 *
 * The last piece of a file may reach beyond its end; those bytes are zero.
 */
#ifndef AGENTWAL_TESTS_LIB_GOLDEN_H
#define AGENTWAL_TESTS_LIB_GOLDEN_H

#include "tests/sim/disk/sim.h"

/* Writes the files below `root` of the disk, but LOCK, to a golden file. */
void golden_save(struct sim_disk *disk, const char *root, const char *path);

/* Lays the store of a golden file out below `root` of the disk. */
void golden_load(struct sim_disk *disk, const char *root, const char *path);

#endif
