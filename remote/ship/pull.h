/*
 * pull.h - a replica of what a remote has of a store (SPEC.md 11.3).
 *
 * Threads: one at a time per pull.
 */
#ifndef AGENTWAL_REMOTE_SHIP_PULL_H
#define AGENTWAL_REMOTE_SHIP_PULL_H

#include "agentwal/remote.h"
#include "remote/ship/history.h"

/* The owner sets the first three fields and zeroes the others. */
struct wal__pull {
    struct wal_remote *remote;
    struct wal__part_target target;
    uint8_t uuid[16];
    struct wal__buf bytes; /* of the object that is applied */
    struct wal_remote_pull_result result;
};

/* Brings the target up to date. May be called again, for what came since.
 * Free it with wal__pull_deinit. */
enum wal_status wal__pull_run(struct wal__pull *pull,
                              struct wal_error *error) WAL_MUST_USE;
void wal__pull_deinit(struct wal__pull *pull);

/* Finds the object from which a target goes on that has something: the last
 * part that begins within its position, or the first one of all. */
enum wal_status wal__pull_find_start(struct wal__pull *pull,
                                     const struct wal__position *position,
                                     uint64_t first_epoch, uint64_t last_epoch,
                                     struct wal__store_object *start,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
