/*
 * history.h - what a remote has of a store: its epochs, lists of their parts, and where they end;
 * and where parts come from and go to: the log of a store, and a replica.
 *
 * Threads: any; one at a time per source, target and page.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_HISTORY_H
#define AGENTWAL_REMOTE_HISTORY_HISTORY_H

#include <stdbool.h>

#include "agentwal/replica.h"
#include "remote/history/fetch.h"
#include "remote/history/remote.h"
#include "remote/layout/layout.h"

/* What a part says of itself, from its first bytes: wal_part_get_info. */
typedef enum wal_status wal__part_info_fn(struct wal_slice head, struct wal_part_info *info,
                                          struct wal_error *error);

struct wal__part_source {
    /* wal_part_reader_next */
    enum wal_status (*next)(void *ctx, const struct wal__position *position, uint64_t max_size,
                            struct wal_slice *part, struct wal_part_info *info,
                            struct wal_error *error);
    /* wal_part_reader_next_to */
    enum wal_status (*next_to)(void *ctx, const struct wal__position *position,
                               const struct wal__position *end, uint64_t max_size,
                               struct wal_slice *part, struct wal_part_info *info,
                               struct wal_error *error);
    /* wal_part_reader_get_index; NULL: there are none. */
    enum wal_status (*index)(void *ctx, struct wal_slice *index, struct wal_error *error);
    /* The last sequence number that is durable. */
    enum wal_status (*durable)(void *ctx, uint64_t *sequence, struct wal_error *error);
    /* Waits until the last number that is durable is above `sequence`. WAL_EBUSY: the time is
     * over. */
    enum wal_status (*wait)(void *ctx, uint64_t sequence, int64_t timeout_ms,
                            struct wal_error *error);
    wal__part_info_fn *info;
    void *ctx;
};

struct wal__part_target {
    /* wal_replica_get_position, wal_replica_write, wal_replica_sync */
    enum wal_status (*position)(void *ctx, struct wal__position *position, struct wal_error *error);
    enum wal_status (*apply)(void *ctx, struct wal_slice part, struct wal_error *error);
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

/* Fills an empty one, and the id of the store; the owner closes the reader. WAL_EINVAL: it has no
 * files. */
enum wal_status wal__store_source_open(struct wal_store *store, struct wal__store_source *source,
                                       uint8_t uuid[16], struct wal_error *error) WAL_MUST_USE;
struct wal__part_source wal__part_source_of(struct wal__store_source *store);

/* Of a replica, which is the context. */
struct wal__part_target wal__part_target_of(struct wal_replica *replica);
struct wal__position wal__position_of(const struct wal_part_place places[WAL_PART_STREAMS]);

/* Whether they are the same, in the same segments. */
bool wal__position_equal(const struct wal__position *a, const struct wal__position *b);
bool wal__position_is_empty(const struct wal__position *position);
bool wal__position_is_within(const struct wal__position *a, const struct wal__position *b);

enum {
    WAL__PART_PAGE_MAX = 1000 /* objects, as object stores list them */
};

/* The owner initialises the buffers, and frees them. */
struct wal__part_page {
    struct wal__buf items;   /* struct wal__fetch_item */
    struct wal__buf numbers; /* uint64_t, rising */
    size_t count;
};

void wal__part_page_init(struct wal__part_page *page, const struct wal__heap *heap);
void wal__part_page_deinit(struct wal__part_page *page);

/* Lists the objects in the place of parts of part->epoch that have a number from part->number on.
 * Names of another form are left out. */
enum wal_status wal__part_page_read(struct wal_remote *remote, const struct wal__store_object *part,
                                    struct wal__part_page *page,
                                    struct wal_error *error) WAL_MUST_USE;
uint64_t wal__part_page_number(const struct wal__part_page *page, size_t at);
const struct wal__fetch_item *wal__part_page_items(const struct wal__part_page *page);

/* How many objects at the beginning have the numbers from `first` on, without a gap. */
size_t wal__part_page_run(const struct wal__part_page *page, uint64_t first);

/*
 * Where an epoch ends: before the first number that no object has, or at a fence. What has a higher
 * number was on the way when its writer ended, and was never acknowledged.
 */
struct wal__epoch_end {
    uint64_t number; /* of the last object; 0: none */
    uint64_t part;   /* of the last one that is no fence; 0: none */
    bool is_fenced;  /* the last object is a fence */
    bool has_more;   /* there are objects after the end */
};

/* Finds it; `part` names the store and the epoch, and a number from which the search begins: that
 * of an object which was there, or 0. It is found from any, with a LIST where the end is less than
 * 1,000 after it. WAL_ECORRUPT: an object before the end was lost, named in error->file. */
enum wal_status wal__epoch_end_find(struct wal_remote *remote, const struct wal__store_object *part,
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
enum wal_status wal__history_read(struct wal_remote *remote, wal__part_info_fn *info,
                                  const uint8_t uuid[16], struct wal__history *history,
                                  struct wal_error *error) WAL_MUST_USE;

/* Reads it without a LIST, where nothing is on the way after the part of the epoch. WAL_END:
 * something was stored after it, or it was not stored. */
enum wal_status wal__history_read_last(struct wal_remote *remote, wal__part_info_fn *info,
                                       const uint8_t uuid[16], uint64_t epoch, uint64_t number,
                                       struct wal__history *history,
                                       struct wal_error *error) WAL_MUST_USE;

/* An object in the place of a part, as far as its first bytes say. */
struct wal__part_head {
    uint64_t fence;            /* the epoch after it; 0: it is a part */
    struct wal_part_info info; /* of a part */
};

/* Reads it. WAL_ENOTFOUND, WAL_ECORRUPT. */
enum wal_status wal__history_head(struct wal_remote *remote, wal__part_info_fn *info,
                                  const struct wal__store_object *part, struct wal__part_head *head,
                                  struct wal_error *error) WAL_MUST_USE;

/* Reads the digest at the end of a part of this size. WAL_ECORRUPT: it is not there. */
enum wal_status wal__history_digest(struct wal_remote *remote, const struct wal__store_object *part,
                                    uint64_t size, uint8_t digest[WAL_DIGEST_SIZE],
                                    struct wal_error *error) WAL_MUST_USE;

/* Reads the floor at the end of the object of a part, of this size. */
enum wal_status wal__history_floor(struct wal_remote *remote, const struct wal__store_object *part,
                                   uint64_t size, uint64_t *floor,
                                   struct wal_error *error) WAL_MUST_USE;

/* Whether an epoch after that of the part, up to the last one, has anything. */
enum wal_status wal__history_has_later(struct wal_remote *remote,
                                       const struct wal__store_object *part, uint64_t last_epoch,
                                       bool *is_there, struct wal_error *error) WAL_MUST_USE;

/* Reads the newest epoch; *number is 0 when there is none. */
enum wal_status wal__history_read_epoch(struct wal_remote *remote, const uint8_t uuid[16],
                                        uint64_t *number, struct wal__epoch *epoch,
                                        struct wal_error *error) WAL_MUST_USE;

/* What a missing object is, where others after it are there. */
enum wal_status wal__history_missing(const char *name, struct wal_error *error);

#endif
