/*
 * replica.h - a directory to which parts are applied: a store that can be read,
 * and is always a verified prefix of the one that it follows (SPEC.md 11.2).
 *
 * Invariant: MANIFEST has the bit `replica`, so that every process opens the
 * store to read, and takes what follows an invalid frame at a tail for torn.
 * Content is synced before the log that refers to it is written, and a segment
 * before the next one of its stream is begun: so a loss of power leaves a
 * prefix, whatever was not synced yet.
 *
 * Threads: one at a time.
 */
#ifndef AGENTWAL_ENGINE_CARE_REPLICA_H
#define AGENTWAL_ENGINE_CARE_REPLICA_H

#include "agentwal/replica.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/care/part.h"

struct wal__replica {
    struct wal__env env;
    struct wal__sha256_alg sha256_alg;
    struct wal__file *lock;
    bool takes_store; /* an ordinary store may become the replica */
    bool is_store;    /* it has a MANIFEST */
    bool is_ordinary; /* without the bit: no part has been applied since */
    struct wal__manifest manifest;
    struct wal__log logs[WAL__PART_STREAMS]; /* env, directory and ids only */
    bool needs_find; /* `places` are not known, or not durable */
    /* The newest segment was installed by a call that may have failed: it is
     * installed again when it is applied again. */
    bool has_doubt[WAL__PART_STREAMS];
    /* Where the copied bytes end. All of them are durable, but for what was
     * written to these segments; 0: none. */
    struct wal__part_place places[WAL__PART_STREAMS];
    uint64_t unsynced[WAL__PART_STREAMS];
    struct wal__buf bytes; /* of a segment, to compare */
    struct wal__scan_result facts;
};

/* wal_replica_open on this heap and this system, which outlive it; with
 * takes_store wal_replica_open_store. The replica is zeroed by the caller but
 * for that; deinit is valid after success and failure. */
enum wal_status wal__replica_init(struct wal__replica *replica,
                                  const char *path,
                                  const struct wal__heap *heap,
                                  const struct wal__io *io,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__replica_deinit(struct wal__replica *replica);

/* Finds the places where they may have changed, and makes what is there
 * durable. */
enum wal_status wal__replica_locate(struct wal__replica *replica,
                                    struct wal_error *error) WAL_MUST_USE;

/* wal_replica_write. */
enum wal_status wal__replica_apply(struct wal__replica *replica,
                                   struct wal__span part,
                                   struct wal_error *error) WAL_MUST_USE;

/* Makes what was applied durable. */
enum wal_status wal__replica_sync(struct wal__replica *replica,
                                  struct wal_error *error) WAL_MUST_USE;

/* Returns whether a whole segment, of which `bytes` is the beginning, would
 * replace what the replica has: wal_replica_needs. */
enum wal_status wal__replica_needs(struct wal__replica *replica,
                                   struct wal__span bytes, bool *needs,
                                   struct wal_error *error) WAL_MUST_USE;

enum wal_status wal__replica_promote(struct wal__replica *replica,
                                     struct wal_error *error) WAL_MUST_USE;

/* As wal_replica_open, or wal_replica_open_store, with the heap and the system
 * given; both must outlive it. */
enum wal_status wal__replica_open(const char *path, bool takes_store,
                                  const struct wal__heap *heap,
                                  const struct wal__io *io,
                                  struct wal_replica **replica,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
