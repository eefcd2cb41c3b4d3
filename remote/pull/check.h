/*
 * check.h - reading everything that a remote has of a store (wal_remote_check).
 *
 * Threads: one at a time per check.
 */
#ifndef AGENTWAL_REMOTE_PULL_CHECK_H
#define AGENTWAL_REMOTE_PULL_CHECK_H

#include "agentwal/remote.h"
#include "remote/base/base.h"
#include "remote/history/history.h"

/* wal_part_verify */
typedef enum wal_status wal__part_verify_fn(struct wal_slice part, struct wal_part_info *info,
                                            struct wal_error *error);

/* wal_part_check_index */
typedef enum wal_status wal__index_verify_fn(struct wal_slice index, struct wal_error *error);

/* The owner sets the fields before `base` and zeroes the others. */
struct wal__check {
    struct wal_remote *remote;
    wal__part_info_fn *info;
    wal__part_verify_fn *verify;
    wal__index_verify_fn *verify_index;
    uint8_t uuid[16];
    wal_remote_damage_fn *report; /* or NULL */
    void *report_ctx;
    struct wal__base_list base; /* the newest one; its part is 0: none */
    struct wal__position base_end;
    bool has_base_end;
    uint64_t last_epoch;
    struct wal_error first; /* the first damage */
    struct wal_remote_check_result result;
};

/* WAL_OK: all is sound. WAL_ECORRUPT: something is damaged or lost; each was reported. */
enum wal_status wal__check_run(struct wal__check *check, struct wal_error *error) WAL_MUST_USE;

#endif
