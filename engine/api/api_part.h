/*
 * api_part.h - opening a replica on another system than the real one: for
 * tests.
 */
#ifndef AGENTWAL_ENGINE_API_API_PART_H
#define AGENTWAL_ENGINE_API_API_PART_H

#include "agentwal/replica.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"

/* As wal_replica_open, or wal_replica_open_store, with the heap and the system
 * given; both must outlive it. */
enum wal_status wal__replica_open(const char *path, bool takes_store,
                                  const struct wal__heap *heap,
                                  const struct wal__io *io,
                                  struct wal_replica **replica,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
