/*
 * log_parts.c - the parts of a store and of a replica (log_parts.h).
 */
#include "remote/history/log_parts.h"

#include <string.h>

static const struct wal_part_place *
places_of(const struct wal__position *position)
{
    return position != NULL ? position->places : NULL;
}

/* --- a store ------------------------------------------------------------ */

static enum wal_status next(void *ctx, const struct wal__position *position,
                            uint64_t max_size, struct wal_slice *part,
                            struct wal_part_info *info, struct wal_error *error)
{
    struct wal__store_source *store = ctx;

    return wal_part_reader_next(store->reader, places_of(position), max_size,
                                part, info, error);
}

static enum wal_status next_to(void *ctx, const struct wal__position *position,
                               const struct wal__position *end,
                               uint64_t max_size, struct wal_slice *part,
                               struct wal_part_info *info,
                               struct wal_error *error)
{
    struct wal__store_source *store = ctx;

    return wal_part_reader_next_to(store->reader, places_of(position),
                                   places_of(end), max_size, part, info, error);
}

static enum wal_status durable(void *ctx, uint64_t *sequence,
                               struct wal_error *error)
{
    struct wal__store_source *store = ctx;
    uint64_t newest = 0;
    enum wal_status status =
        wal_store_wait(store->store, &newest, WAL_DURABLE, 0, error);

    if (status == WAL_OK || status == WAL_EBUSY) {
        *sequence = newest;
        status = WAL_OK;
    }
    return status;
}

static enum wal_status wait(void *ctx, uint64_t sequence, int64_t timeout_ms,
                            struct wal_error *error)
{
    struct wal__store_source *store = ctx;

    return wal_store_wait(store->store, &sequence, WAL_DURABLE, timeout_ms,
                          error);
}

enum wal_status wal__store_source_open(struct wal_store *store,
                                       struct wal__store_source *source,
                                       uint8_t uuid[16],
                                       struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    enum wal_status status = wal_store_get_info(store, &info, error);

    if (status == WAL_OK) {
        source->store = store;
        memcpy(uuid, info.uuid, sizeof(info.uuid));
        status = wal_part_reader_open(store, &source->reader, error);
    }
    return status;
}

struct wal__part_source wal__part_source_of(struct wal__store_source *store)
{
    return (struct wal__part_source){.next = next,
                                     .next_to = next_to,
                                     .durable = durable,
                                     .wait = wait,
                                     .info = wal_part_get_info,
                                     .ctx = store};
}

/* --- a replica ---------------------------------------------------------- */

static enum wal_status position(void *ctx, struct wal__position *position,
                                struct wal_error *error)
{
    return wal_replica_get_position(ctx, position->places, error);
}

static enum wal_status apply(void *ctx, struct wal_slice part,
                             struct wal_error *error)
{
    return wal_replica_write(ctx, part, error);
}

static enum wal_status make_durable(void *ctx, struct wal_error *error)
{
    return wal_replica_sync(ctx, error);
}

static enum wal_status needs(void *ctx, struct wal_slice begin, int32_t *result,
                             struct wal_error *error)
{
    return wal_replica_needs(ctx, begin, result, error);
}

struct wal__part_target wal__part_target_of(struct wal_replica *replica)
{
    return (struct wal__part_target){.position = position,
                                     .apply = apply,
                                     .sync = make_durable,
                                     .needs = needs,
                                     .info = wal_part_get_info,
                                     .ctx = replica};
}

/* --- positions ---------------------------------------------------------- */

struct wal__position
wal__position_of(const struct wal_part_place places[WAL_PART_STREAMS])
{
    struct wal__position position;

    memcpy(position.places, places, sizeof(position.places));
    return position;
}

bool wal__position_equal(const struct wal__position *a,
                         const struct wal__position *b)
{
    for (size_t i = 0; i < WAL_PART_STREAMS; i++) {
        const struct wal_part_place *one = &a->places[i];
        const struct wal_part_place *other = &b->places[i];

        if (one->segment != other->segment ||
            one->identity != other->identity || one->offset != other->offset ||
            one->sequence != other->sequence || one->chain != other->chain) {
            return false;
        }
    }
    return true;
}

static bool place_is_empty(const struct wal_part_place *place)
{
    return place->segment == 0 && place->offset == 0 && place->sequence == 0;
}

bool wal__position_is_empty(const struct wal__position *position)
{
    return place_is_empty(&position->places[WAL_PART_LOG]) &&
           place_is_empty(&position->places[WAL_PART_CONTENT]);
}

/* Compaction gives what is before a place other segments, not other numbers;
 * an index that ends a segment has none. */
bool wal__place_is_within(const struct wal_part_place *a,
                          const struct wal_part_place *b)
{
    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence;
    }
    if (a->segment != b->segment) {
        return a->segment < b->segment;
    }
    return a->offset <= b->offset;
}

bool wal__position_is_within(const struct wal__position *a,
                             const struct wal__position *b)
{
    return wal__place_is_within(&a->places[WAL_PART_LOG],
                                &b->places[WAL_PART_LOG]) &&
           wal__place_is_within(&a->places[WAL_PART_CONTENT],
                                &b->places[WAL_PART_CONTENT]);
}
