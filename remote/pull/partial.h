/*
 * partial.h - a store that is read in the remote: what is asked of it is read, and no more (SPEC.md
 * 11.3).
 *
 * It has the newest base and all parts after it, as a pull would apply them. Of the segments of the
 * base it reads the beginnings, and blocks when they are needed; the parts after it are read whole,
 * as they have no index.
 *
 * Threads: one at a time.
 */
#ifndef AGENTWAL_REMOTE_PULL_PARTIAL_H
#define AGENTWAL_REMOTE_PULL_PARTIAL_H

#include "agentwal/remote.h"
#include "remote/history/remote.h"

struct wal__partial;

/* Opens a store of the remote for reading; key may be NULL. `directory` is for memory that is a
 * file. Close *partial with wal__partial_close, also after a failure, after *store. WAL_ENOTFOUND:
 * it has no base. */
enum wal_status wal__partial_open(struct wal_remote *remote, const uint8_t uuid[16],
                                  const struct wal_key *key, const char *directory,
                                  struct wal__partial **partial, struct wal_store **store,
                                  struct wal_error *error) WAL_MUST_USE;

/* The status of what the store answered `status` to: a read of the remote that failed meanwhile,
 * with its error, or else itself. */
enum wal_status wal__partial_status(const struct wal__partial *partial, enum wal_status status,
                                    struct wal_error *error) WAL_MUST_USE;

/* The bytes that were read of segments, indexes and parts. */
uint64_t wal__partial_bytes(const struct wal__partial *partial);

void wal__partial_close(struct wal__partial *partial);

#endif
