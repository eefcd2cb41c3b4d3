/*
 * tree_stat.h - from the system's own structures to those of tree.h. Any
 * thread.
 */
#ifndef WAL_IO_TREE_STAT_H
#define WAL_IO_TREE_STAT_H

#include <sys/stat.h>
#include <time.h>

#include "engine/io/tree.h"

int64_t wal__tree_time_ns(const struct timespec *time);
struct wal__tree_stat wal__tree_stat_of(const struct stat *st);

#endif
