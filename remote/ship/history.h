/*
 * history.h - what a remote has of a store: its epochs, and where the parts
 * end.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_SHIP_HISTORY_H
#define AGENTWAL_REMOTE_SHIP_HISTORY_H

#include "remote/ship/log_parts.h"
#include "remote/ship/remote.h"

struct wal__history {
    uint64_t last_epoch;      /* the highest; 0: none */
    struct wal__epoch writer; /* of it */
    uint64_t number;          /* of the last object in that epoch; 0: none */
    bool is_fenced;           /* it is a fence */
    /* The last object that is no fence, in any epoch; 0: none. */
    uint64_t part_epoch;
    uint64_t part;
    struct wal__position position; /* after it */
};

/* Reads it, with up to a few requests for each epoch that has no part. */
enum wal_status wal__history_read(struct wal_remote *remote,
                                  wal__part_info_fn *info,
                                  const uint8_t uuid[16],
                                  struct wal__history *history,
                                  struct wal_error *error) WAL_MUST_USE;

/* An object in the place of a part, as far as its first bytes say. */
struct wal__part_head {
    uint64_t fence;            /* the epoch after it; 0: it is a part */
    struct wal_part_info info; /* of a part */
};

/* Reads it. WAL_ENOTFOUND, WAL_ECORRUPT. */
enum wal_status wal__history_head(struct wal_remote *remote,
                                  wal__part_info_fn *info,
                                  const struct wal__store_object *part,
                                  struct wal__part_head *head,
                                  struct wal_error *error) WAL_MUST_USE;

/* What a missing object is, where others after it are there. */
enum wal_status wal__history_missing(const char *name, struct wal_error *error);

#endif
