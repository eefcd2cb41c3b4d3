/*
 * io_memory.h - the table of io.h for WAL_OPEN_MEMORY: names in this process
 * over files of memfd_create(2). What has a handle or a map goes to
 * wal__io_posix: reads, writes, maps, locks and syncs are system calls on
 * anonymous memory. The differences:
 *
 * - Paths are relative and at most NAME_MAX bytes, without the components . and
 *   ..; "." is the root. Directories are neither renamed nor removed.
 * - A file that has a name has a descriptor, in addition to those of its
 *   handles. RLIMIT_NOFILE bounds their number, RLIMIT_FSIZE the files' size.
 * - Allocated bytes take memory when they are first written or mapped and read.
 *   When memory is exhausted a write is WAL_ENOSPACE or WAL_ENOMEM.
 * - Every handle opens its file anew, through /proc: byte locks belong to open
 *   file descriptions, and dup(2) makes none. Without /proc there is no table.
 *
 * In a child of fork() only a table that it creates itself may be used.
 */
#ifndef AGENTWAL_ENGINE_BASE_IO_MEMORY_H
#define AGENTWAL_ENGINE_BASE_IO_MEMORY_H

#include "engine/base/heap.h"
#include "engine/base/io.h"

/* Creates an empty table; forgets: as its field. Names are allocated from
 * the heap, which must outlive it. WAL_ENOMEM; WAL_EIO when /proc is not
 * mounted. */
enum wal_status wal__io_memory_create(const struct wal__heap *heap,
                                      bool forgets, struct wal__io **io,
                                      struct wal_error *error) WAL_MUST_USE;

/* Destroys the table and every name. Handles must be closed; a map stays valid
 * until it is unmapped. NULL does nothing. */
void wal__io_memory_destroy(struct wal__io *io);

#endif
