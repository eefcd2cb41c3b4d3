/*
 * log_parts.h - where parts come from and go to: the log of a store, and a
 * replica. The calls are those of agentwal/replica.h; a test has others.
 *
 * Threads: one at a time per source and target.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_LOG_PARTS_H
#define AGENTWAL_REMOTE_HISTORY_LOG_PARTS_H

#include <stdbool.h>

#include "agentwal/replica.h"
#include "remote/layout/layout.h"

/* What a part says of itself, from its first bytes: wal_part_get_info. */
typedef enum wal_status wal__part_info_fn(struct wal_slice head,
                                          struct wal_part_info *info,
                                          struct wal_error *error);

struct wal__part_source {
    /* wal_part_reader_next */
    enum wal_status (*next)(void *ctx, const struct wal__position *position,
                            uint64_t max_size, struct wal_slice *part,
                            struct wal_part_info *info,
                            struct wal_error *error);
    /* wal_part_reader_next_to */
    enum wal_status (*next_to)(void *ctx, const struct wal__position *position,
                               const struct wal__position *end,
                               uint64_t max_size, struct wal_slice *part,
                               struct wal_part_info *info,
                               struct wal_error *error);
    /* The last sequence number that is durable. */
    enum wal_status (*durable)(void *ctx, uint64_t *sequence,
                               struct wal_error *error);
    /* Waits until the last number that is durable is above `sequence`.
     * WAL_EBUSY: the time is over. */
    enum wal_status (*wait)(void *ctx, uint64_t sequence, int64_t timeout_ms,
                            struct wal_error *error);
    wal__part_info_fn *info;
    void *ctx;
};

struct wal__part_target {
    /* wal_replica_get_position, wal_replica_write, wal_replica_sync */
    enum wal_status (*position)(void *ctx, struct wal__position *position,
                                struct wal_error *error);
    enum wal_status (*apply)(void *ctx, struct wal_slice part,
                             struct wal_error *error);
    enum wal_status (*sync)(void *ctx, struct wal_error *error);
    /* wal_replica_needs */
    enum wal_status (*needs)(void *ctx, struct wal_slice begin, int32_t *needs,
                             struct wal_error *error);
    wal__part_info_fn *info;
    void *ctx;
};

/* Of a store, the context being struct wal__store_source. */
struct wal__store_source {
    struct wal_store *store;
    struct wal_part_reader *reader;
};
/* Fills an empty one, and the id of the store; the owner closes the reader.
 * WAL_EINVAL: it has no files. */
enum wal_status wal__store_source_open(struct wal_store *store,
                                       struct wal__store_source *source,
                                       uint8_t uuid[16],
                                       struct wal_error *error) WAL_MUST_USE;
struct wal__part_source wal__part_source_of(struct wal__store_source *store);

/* Of a replica, which is the context. */
struct wal__part_target wal__part_target_of(struct wal_replica *replica);

struct wal__position
wal__position_of(const struct wal_part_place places[WAL_PART_STREAMS]);

/* Whether they are the same, in the same segments. */
bool wal__position_equal(const struct wal__position *a,
                         const struct wal__position *b);
bool wal__position_is_empty(const struct wal__position *position);
/* Whether everything before `a` is before `b` too. */
bool wal__place_is_within(const struct wal_part_place *a,
                          const struct wal_part_place *b);
bool wal__position_is_within(const struct wal__position *a,
                             const struct wal__position *b);

#endif
