/*
 * prealloc.h - the segment that comes next (SPEC.md 3.5); for rotate.c.
 *
 * Who may call: who holds the lease and the lock of spares.
 */
#ifndef AGENTWAL_ENGINE_LOG_PREALLOC_H
#define AGENTWAL_ENGINE_LOG_PREALLOC_H

#include "engine/log/log.h"

/* Doubles from 1 MiB to 32 MiB; more only for a group that needs it. Large
 * groups of blobs come one after the other. */
uint64_t wal__prealloc_next_capacity(const struct wal__log *log,
                                     uint64_t needed);

/* The spare that stands ready, or one made now, without zeros, since a writer
 * waits. The id is in *id. */
enum wal_status wal__prealloc_obtain(struct wal__log *log, uint64_t needed,
                                     uint64_t *id,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
