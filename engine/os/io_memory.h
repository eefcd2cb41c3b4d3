/*
 * io_memory.h - the table of io.h over this process's memory, for
 * WAL_OPEN_MEMORY: names, files, maps and locks as on a disk, without a system
 * call on a file. A mapped file does not move, and so cannot grow beyond the
 * size that it was mapped or allocated with: WAL_ENOMEM. Paths start at an
 * empty root, with or without a leading slash.
 */
#ifndef AGENTWAL_ENGINE_OS_IO_MEMORY_H
#define AGENTWAL_ENGINE_OS_IO_MEMORY_H

#include "engine/base/heap.h"
#include "engine/os/io.h"

/* Creates an empty table. Names and handles are allocated from the heap, which
 * must outlive it. WAL_ENOMEM. */
enum wal_status wal__io_memory_create(const struct wal__heap *heap,
                                      struct wal__io **io) WAL_MUST_USE;

/* Destroys the table and every file. All handles must be closed; NULL does
 * nothing. */
void wal__io_memory_destroy(struct wal__io *io);

#endif
