/*
 * pull.h - a replica of what a remote has of a store (SPEC.md 11.3).
 *
 * Threads: one at a time per pull.
 */
#ifndef AGENTWAL_REMOTE_PULL_PULL_H
#define AGENTWAL_REMOTE_PULL_PULL_H

#include "agentwal/remote.h"
#include "remote/base/base.h"
#include "remote/history/history.h"

/* The owner sets the first four fields and zeroes the others. */
struct wal__pull {
    struct wal_remote *remote;
    struct wal__part_target target;
    uint8_t uuid[16];
    bool is_store;                 /* the target was written to: it takes the next part only */
    struct wal__store_object next; /* part; its number is 0: not known yet */
    uint64_t last_epoch;           /* the newest one */
    struct wal__part_page page;    /* of the parts from `next` on */
    struct wal__store_object lost; /* a segment that was not there */
    /* The base of what was erased (wal__base_list) that the target has, and that of the newest base
     * when it was read last; and whether the next run reads it again. */
    uint64_t erased;
    uint64_t base_erased;
    bool looks_at_base;
    struct wal_remote_pull_result result;
};

/* Brings the target up to date. May be called again, for what came since.
 * Free it with wal__pull_deinit. */
enum wal_status wal__pull_run(struct wal__pull *pull, struct wal_error *error) WAL_MUST_USE;
void wal__pull_deinit(struct wal__pull *pull);

/* Whether the next part is there, after a run that succeeded: one request. */
enum wal_status wal__pull_has_more(struct wal__pull *pull, bool *has_more,
                                   struct wal_error *error) WAL_MUST_USE;

/* Whether a store or a replica that can be read is there. */
bool wal__pull_has_store(const char *path, struct wal_store_info *info);

/* Sets an id of zeroes to that of the store or the replica that is there, or else to that of the
 * only store of the remote. */
enum wal_status wal__pull_find_store(struct wal_remote *remote, const char *path, uint8_t uuid[16],
                                     struct wal_error *error) WAL_MUST_USE;

#endif
