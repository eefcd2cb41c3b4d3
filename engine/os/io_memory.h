/*
 * io_memory.h - the table of io.h over this process's memory, for
 * WAL_OPEN_MEMORY: names, files, maps and locks as on a disk, but none of its
 * calls is a system call on a file. A file that is mapped does not move and so
 * cannot grow beyond what it was mapped or allocated with: WAL_ENOMEM. Names
 * begin in an empty root, whether a path has a slash in front or not.
 */
#ifndef AGENTWAL_ENGINE_OS_IO_MEMORY_H
#define AGENTWAL_ENGINE_OS_IO_MEMORY_H

#include "engine/base/heap.h"
#include "engine/os/io.h"

/* An empty table, whose names and handles come from the heap, which must
 * outlive it. WAL_ENOMEM. */
enum wal_status wal__io_memory_create(const struct wal__heap *heap,
                                      struct wal__io **io) WAL_MUST_USE;

/* With every file. Handles must be closed before; null is accepted. */
void wal__io_memory_destroy(struct wal__io *io);

#endif
