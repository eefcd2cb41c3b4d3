/*
 * memfs_byte_lock.h - the lock bytes of files in memory: advisory locks that
 * belong to a handle, as open file description locks do. The calls need the
 * mutex of memfs.h.
 */
#ifndef AGENTWAL_ENGINE_OS_MEMFS_BYTE_LOCK_H
#define AGENTWAL_ENGINE_OS_MEMFS_BYTE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/os/memfs.h"

/* Acquires the byte at `offset` for the holder, an address that identifies the
 * handle, or converts the lock that it has. 0, EAGAIN when another holder's
 * lock conflicts, or ENOMEM; a failure changes nothing. */
int wal__memfs_byte_lock_acquire(struct wal__memfs *fs,
                                 struct wal__memfs_node *node,
                                 const void *holder, uint64_t offset,
                                 bool exclusive);
/* Whether another holder's lock conflicts with such a lock. */
bool wal__memfs_byte_lock_conflicts(const struct wal__memfs_node *node,
                                    const void *holder, uint64_t offset,
                                    bool exclusive);
/* Releases the holder's lock of the byte; does nothing if there is none. */
void wal__memfs_byte_lock_release(struct wal__memfs *fs,
                                  struct wal__memfs_node *node,
                                  const void *holder, uint64_t offset);
/* Releases all locks of the holder on the file. */
void wal__memfs_byte_lock_release_all(struct wal__memfs *fs,
                                      struct wal__memfs_node *node,
                                      const void *holder);

#endif
