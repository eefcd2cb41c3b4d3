/*
 * pull_base.c - applying a base to a replica (pull.h), from the first segment
 * that has something for it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/pull/pull.h"

enum {
    FEW_PARTS = 256 /* are applied one by one, though a base has them */
};

static enum wal_status read_head(struct wal__pull *pull,
                                 const struct wal__base_list *base, size_t at,
                                 struct wal_part_info *info,
                                 struct wal_error *error)
{
    pull->lost = wal__base_object(pull->uuid, base, at);
    return wal__base_head(pull->remote, pull->target.info, pull->uuid, base, at,
                          info, error);
}

/* Finds the last segment that begins within the position, by their heads; 0
 * when none does. */
static enum wal_status find_first(struct wal__pull *pull,
                                  const struct wal__base_list *base,
                                  const struct wal__position *position,
                                  size_t *first, struct wal_error *error)
{
    size_t low = 0;
    size_t high = wal__base_list_count(base);

    while (low + 1 < high) {
        struct wal_part_info info = WAL_INIT(wal_part_info);
        struct wal__position before;
        size_t middle = low + (high - low) / 2;
        enum wal_status status = read_head(pull, base, middle, &info, error);

        if (status != WAL_OK) {
            return status;
        }
        before = wal__position_of(info.before);
        if (wal__position_is_within(&before, position)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *first = low;
    return WAL_OK;
}

/* The position to which a base leads. */
static enum wal_status get_end(struct wal__pull *pull,
                               const struct wal__base_list *base,
                               struct wal__position *end,
                               struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    size_t count = wal__base_list_count(base);
    enum wal_status status = WAL_OK;

    if (count > 0) {
        status = read_head(pull, base, count - 1, &info, error);
    }
    if (status == WAL_OK) {
        *end = wal__position_of(info.after);
    }
    return status;
}

static enum wal_status apply_segments(struct wal__pull *pull,
                                      const struct wal__fetch_item *items,
                                      size_t count, struct wal_error *error)
{
    struct wal__fetch *fetch = NULL;
    struct wal_slice segment = {NULL, 0};
    enum wal_status status =
        wal__fetch_open(pull->remote, items, count, &fetch, error);

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = wal__fetch_next(fetch, &segment, error);
        if (status == WAL_OK) {
            status = wal__pull_apply(pull, segment, items[i].name, error);
        } else if (status == WAL_ENOTFOUND) {
            (void)!wal__store_object_parse(items[i].name, &pull->lost);
        }
    }
    wal__fetch_close(fetch);
    return status;
}

/* Applies of the base what the target lacks, and goes on with the part after
 * it. WAL_ENOTFOUND: a segment is not there. */
static enum wal_status apply_base(struct wal__pull *pull,
                                  const struct wal__base_list *base,
                                  struct wal_error *error)
{
    struct wal__position position = {{{0}}};
    struct wal__buf items;
    size_t first = 0;
    enum wal_status status =
        pull->target.position(pull->target.ctx, &position, error);

    wal__buf_init(&items, pull->remote->heap);
    if (status == WAL_OK && !wal__position_is_empty(&position)) {
        status = find_first(pull, base, &position, &first, error);
    }
    if (status == WAL_OK) {
        status = wal__base_items(pull->uuid, base, first, &items, error);
    }
    if (status == WAL_OK) {
        status = apply_segments(
            pull, (const struct wal__fetch_item *)(const void *)items.data,
            items.size / sizeof(struct wal__fetch_item), error);
    }
    wal__buf_deinit(&items);
    if (status == WAL_OK && wal__position_is_empty(&position)) {
        pull->erased = base->erased;
    }
    if (status == WAL_OK) {
        pull->next.epoch = base->epoch;
        pull->next.number = base->part + 1;
        pull->result.epoch = base->epoch;
        pull->result.part = base->part;
    }
    return status;
}

/* Whether the base is the way from the part, which begins within the position:
 * not when the target is a store, few parts are left, or it leads to what the
 * target has. */
static enum wal_status is_way(struct wal__pull *pull,
                              const struct wal__base_list *base,
                              const struct wal__position *position,
                              const struct wal__store_object *part,
                              bool *is_way, struct wal_error *error)
{
    struct wal__position end = {{{0}}};
    enum wal_status status = WAL_OK;

    if (part->number == 0) {
        *is_way = true;
    } else if (pull->is_store ||
               !wal__base_has(base, part->epoch, part->number) ||
               (part->epoch == base->epoch &&
                part->number + FEW_PARTS > base->part)) {
        *is_way = false;
    } else {
        status = get_end(pull, base, &end, error);
        *is_way = !wal__position_is_within(&end, position);
    }
    return status;
}

/* Applies the base, or sets the next part. */
static enum wal_status choose(struct wal__pull *pull, uint64_t number,
                              const struct wal__base_list *base,
                              struct wal_error *error)
{
    struct wal__store_object part = {.kind = WAL__OBJECT_PART};
    struct wal__position position = {{{0}}};
    bool takes_base = false;
    enum wal_status status =
        pull->target.position(pull->target.ctx, &position, error);

    memcpy(part.uuid, pull->uuid, sizeof(part.uuid));
    pull->base_erased = base->erased;
    if (status == WAL_OK && !wal__position_is_empty(&position)) {
        status = wal__pull_find_start(pull, &position, &part, error);
    }
    if (status == WAL_OK && number > 0) {
        status = is_way(pull, base, &position, &part, &takes_base, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    pull->next = part;
    if (part.number == 0) {
        pull->next.epoch = 1;
        pull->next.number = 1;
    }
    return takes_base ? apply_base(pull, base, error) : WAL_OK;
}

/* WAL_END: the base has not the next part. */
static enum wal_status replace(struct wal__pull *pull, uint64_t number,
                               const struct wal__base_list *base,
                               struct wal_error *error)
{
    return number > 0 &&
                   wal__base_has(base, pull->next.epoch, pull->next.number)
               ? apply_base(pull, base, error)
               : WAL_END;
}

/* --- what was erased ---------------------------------------------------- */

/* Whether the target has a segment of the base, or some, from which compaction
 * has made it since; *stream is that of the segment. */
static enum wal_status look_at_segment(struct wal__pull *pull,
                                       const struct wal__base_list *base,
                                       size_t at, int32_t *needs,
                                       size_t *stream, struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice begin;
    struct wal__buf bytes;
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    pull->lost = wal__base_object(pull->uuid, base, at);
    wal__store_object_format(&pull->lost, name);
    wal__buf_init(&bytes, pull->remote->heap);
    status = pull->remote->driver->calls->get(
        pull->remote->driver, name, 0, WAL_PART_BEGIN_SIZE, &bytes, error);
    begin = (struct wal_slice){bytes.data, bytes.size};
    if (status == WAL_OK) {
        status = pull->target.info(begin, &info, error);
    }
    if (status == WAL_OK) {
        const struct wal__position before = wal__position_of(info.before);
        const struct wal__position after = wal__position_of(info.after);

        *stream =
            memcmp(&before.places[WAL_PART_LOG], &after.places[WAL_PART_LOG],
                   sizeof(before.places[0])) != 0
                ? WAL_PART_LOG
                : WAL_PART_CONTENT;
        status = pull->target.needs(pull->target.ctx, begin, needs, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

/* The log before the content: what is erased there is named by nothing then. */
static enum wal_status erase(struct wal__pull *pull, uint64_t number,
                             const struct wal__base_list *base,
                             struct wal_error *error)
{
    const size_t count = wal__base_list_count(base);
    const struct wal__fetch_item *items;
    struct wal__buf all;   /* items */
    struct wal__buf later; /* those of the content */
    enum wal_status status;

    if (number == 0 || base->erased == 0 || base->erased == pull->erased) {
        return WAL_OK;
    }
    wal__buf_init(&later, pull->remote->heap);
    wal__buf_init(&all, pull->remote->heap);
    status = wal__base_items(pull->uuid, base, 0, &all, error);
    items = (const void *)all.data;
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        size_t stream = WAL_PART_LOG;
        int32_t needs = 0;

        status = look_at_segment(pull, base, i, &needs, &stream, error);
        if (status != WAL_OK || needs == 0) {
            continue;
        }
        if (stream == WAL_PART_LOG) {
            status = apply_segments(pull, &items[i], 1, error);
        } else if (wal__buf_append(&later, &items[i], sizeof(items[i])) !=
                   WAL_OK) {
            status = wal__no_memory(error);
        }
    }
    if (status == WAL_OK) {
        status =
            apply_segments(pull, (const void *)later.data,
                           later.size / sizeof(struct wal__fetch_item), error);
    }
    wal__buf_deinit(&later);
    wal__buf_deinit(&all);
    if (status == WAL_OK) {
        pull->erased = base->erased;
    }
    return status;
}

/* --- the newest base ---------------------------------------------------- */

typedef enum wal_status step_fn(struct wal__pull *pull, uint64_t number,
                                const struct wal__base_list *base,
                                struct wal_error *error);

/* Does the step with the newest base; again when another process has made one
 * meanwhile, and removed segments that it does not name. */
static enum wal_status with_base(struct wal__pull *pull, step_fn *step,
                                 struct wal_error *error)
{
    struct wal__base_list base;
    char name[WAL__STORE_OBJECT_SIZE];
    uint64_t number = 0;
    uint64_t last = 0;
    enum wal_status status;

    wal__base_list_init(&base, pull->remote->heap);
    do {
        last = number;
        status = wal__base_read_last(pull->remote, pull->uuid, &number, &base,
                                     error);
        if (status == WAL_OK) {
            status = step(pull, number, &base, error);
        }
    } while (status == WAL_ENOTFOUND && number != last);
    wal__base_list_deinit(&base);
    if (status == WAL_ENOTFOUND) {
        wal__store_object_format(&pull->lost, name);
        return wal__history_missing(name, error);
    }
    return status;
}

enum wal_status wal__pull_start(struct wal__pull *pull, struct wal_error *error)
{
    return with_base(pull, choose, error);
}

enum wal_status wal__pull_start_again(struct wal__pull *pull,
                                      struct wal_error *error)
{
    return with_base(pull, replace, error);
}

enum wal_status wal__pull_erase(struct wal__pull *pull, struct wal_error *error)
{
    return with_base(pull, erase, error);
}
