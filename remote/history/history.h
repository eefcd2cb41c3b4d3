/*
 * history.h - what a remote has of a store: its epochs, and where the parts
 * end.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_HISTORY_H
#define AGENTWAL_REMOTE_HISTORY_HISTORY_H

#include "remote/history/log_parts.h"
#include "remote/history/remote.h"
#include "remote/layout/layout.h"

/*
 * Where an epoch ends: before the first number that no object has, or at a
 * fence. What has a higher number was on the way when its writer ended, and
 * was never acknowledged.
 */
struct wal__epoch_end {
    uint64_t number; /* of the last object; 0: none */
    uint64_t part;   /* of the last one that is no fence; 0: none */
    bool is_fenced;  /* the last object is a fence */
    bool has_more;   /* there are objects after the end */
};

/* Finds it; `part` names the store and the epoch, and a number from which the
 * search begins: that of an object which was there, or 0. It is found from any,
 * with a LIST where the end is less than 1,000 after it. WAL_ECORRUPT: an
 * object before the end was lost, named in error->file. */
enum wal_status wal__epoch_end_find(struct wal_remote *remote,
                                    const struct wal__store_object *part,
                                    struct wal__epoch_end *end,
                                    struct wal_error *error) WAL_MUST_USE;

struct wal__history {
    uint64_t last_epoch;       /* the highest; 0: none */
    struct wal__epoch writer;  /* of it */
    struct wal__epoch_end end; /* of it */
    /* The last object that is no fence, in any epoch; 0: none. */
    uint64_t part_epoch;
    uint64_t part;
    uint64_t part_size;            /* of the part, bytes */
    struct wal__position position; /* after it */
};

/* Reads it, with up to a few requests for each epoch that has no part. What
 * *history has as the last part before, or 0, is where the search begins. */
enum wal_status wal__history_read(struct wal_remote *remote,
                                  wal__part_info_fn *info,
                                  const uint8_t uuid[16],
                                  struct wal__history *history,
                                  struct wal_error *error) WAL_MUST_USE;

/* Reads it without a LIST, where nothing is on the way after the part of the
 * epoch. WAL_END: something was stored after it, or it was not stored. */
enum wal_status wal__history_read_last(struct wal_remote *remote,
                                       wal__part_info_fn *info,
                                       const uint8_t uuid[16], uint64_t epoch,
                                       uint64_t number,
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

/* Reads the digest at the end of a part of this size. WAL_ECORRUPT: it is not
 * there. */
enum wal_status wal__history_digest(struct wal_remote *remote,
                                    const struct wal__store_object *part,
                                    uint64_t size,
                                    uint8_t digest[WAL_DIGEST_SIZE],
                                    struct wal_error *error) WAL_MUST_USE;

/* Reads the floor at the end of the object of a part, of this size. */
enum wal_status wal__history_floor(struct wal_remote *remote,
                                   const struct wal__store_object *part,
                                   uint64_t size, uint64_t *floor,
                                   struct wal_error *error) WAL_MUST_USE;

/* Whether an epoch after that of the part, up to the last one, has anything. */
enum wal_status wal__history_has_later(struct wal_remote *remote,
                                       const struct wal__store_object *part,
                                       uint64_t last_epoch, bool *is_there,
                                       struct wal_error *error) WAL_MUST_USE;

/* Reads the newest epoch; *number is 0 when there is none. */
enum wal_status wal__history_read_epoch(struct wal_remote *remote,
                                        const uint8_t uuid[16],
                                        uint64_t *number,
                                        struct wal__epoch *epoch,
                                        struct wal_error *error) WAL_MUST_USE;

/* What a missing object is, where others after it are there. */
enum wal_status wal__history_missing(const char *name, struct wal_error *error);

#endif
