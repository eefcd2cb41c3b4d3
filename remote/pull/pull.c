/*
 * pull.c - applying parts to a replica, in order (pull.h): those of each epoch, up to its fence, or
 * to the first that is not there.
 *
 * An epoch without a fence is the newest one that has parts.
 */
#include "remote/pull/pull.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/io.h"
#include "format/segment/segment_fmt.h"
#include "remote/layout/layout.h"

/* --- where it begins ------------------------------------------------------ */

/* Whether the object begins within the position. A fence does not say it, nor does a part that is
 * not there: the part before it does. Moves object->number to that; below `first` when there is
 * none. */
static enum wal_status begins_within(struct wal__pull *pull, struct wal__store_object *object,
                                     const struct wal__position *position, uint64_t first,
                                     bool *is_within, struct wal_error *error)
{
    for (; object->number >= first; object->number--) {
        struct wal__part_head head = {.fence = 0};
        enum wal_status status =
            wal__history_head(pull->remote, pull->target.info, object, &head, error);

        if (status == WAL_OK && head.fence == 0) {
            const struct wal__position before = wal__position_of(head.info.before);

            *is_within = wal__position_is_within(&before, position);
            return WAL_OK;
        }
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
    }
    *is_within = false;
    return WAL_OK;
}

/* Searches the numbers from `first` to `last` of an epoch. start->number is 0 when none begins
 * within the position. */
static enum wal_status search(struct wal__pull *pull, const struct wal__position *position,
                              uint64_t first, uint64_t last, struct wal__store_object *start,
                              struct wal_error *error)
{
    uint64_t found = 0;

    while (first <= last) {
        uint64_t middle = first + (last - first) / 2;
        bool is_within = false;
        enum wal_status status;

        start->number = middle;
        status = begins_within(pull, start, position, first, &is_within, error);
        if (status != WAL_OK) {
            return status;
        }
        if (is_within || start->number < first) {
            found = is_within ? start->number : found;
            first = middle + 1;
        } else {
            last = start->number - 1;
        }
    }
    start->number = found;
    return WAL_OK;
}

/* The lowest and the highest number of an epoch; 0: it has none. */
static enum wal_status find_range(struct wal__pull *pull, const struct wal__store_object *object,
                                  uint64_t *first, uint64_t *last, struct wal_error *error)
{
    struct wal__part_page *page = &pull->page;
    struct wal__store_object part = *object;
    enum wal_status status;

    part.number = 1;
    status = wal__part_page_read(pull->remote, &part, page, error);
    *first = 0;
    if (status != WAL_OK || page->count == 0) {
        return status;
    }
    *first = wal__part_page_number(page, 0);
    *last = wal__part_page_number(page, page->count - 1);
    return page->count < WAL__PART_PAGE_MAX ? WAL_OK
                                            : wal__remote_last(pull->remote, object, last, error);
}

/* Finds the part from which a target goes on that has something:
 * the last one that begins within its position. start->number is 0 when none
 * does. */
static enum wal_status pull_find_start(struct wal__pull *pull, const struct wal__position *position,
                                       struct wal__store_object *start, struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_PART, pull->uuid, 0, 0);
    enum wal_status status = WAL_OK;
    uint64_t first = 0;
    uint64_t last = 0;

    for (object.epoch = pull->last_epoch; object.epoch > 0; object.epoch--) {
        status = find_range(pull, &object, &first, &last, error);
        if (status == WAL_OK && first > 0) {
            status = search(pull, position, first, last, &object, error);
        } else {
            object.number = 0;
        }
        if (status != WAL_OK || object.number > 0) {
            break;
        }
    }
    if (status == WAL_OK) {
        *start = object;
    }
    return status;
}

/* Reads from MANIFEST what is asked of an encrypted store. */
static bool read_encrypted(const char *path, struct wal_store_info *info)
{
    const struct wal__io *io = &wal__io_posix;
    uint8_t bytes[WAL__MANIFEST_SIZE];
    struct wal__manifest manifest;
    struct wal__file *file = NULL;
    char name[WAL__PATH_MAX];
    size_t got = 0;
    int err = 0;
    bool is_read;

    if (snprintf(name, sizeof(name), "%s/MANIFEST", path) >= (int)sizeof(name) ||
        io->open(io->ctx, name, 0, &file, &err) != WAL_OK) {
        return false;
    }
    is_read = wal__io_read_full(io, file, bytes, sizeof(bytes), 0, &got, &err) == WAL_OK &&
              got == sizeof(bytes) &&
              (wal__manifest_decode(bytes, &manifest) == WAL__FMT_OK ||
               wal__manifest_decode(bytes + WAL__MANIFEST_SLOT_SIZE, &manifest) == WAL__FMT_OK);
    io->close(io->ctx, file);
    if (is_read) {
        memcpy(info->uuid, manifest.uuid, sizeof(info->uuid));
        info->is_replica = (manifest.features.ro_compat & WAL__RO_COMPAT_REPLICA) != 0;
    }
    return is_read;
}

bool wal__pull_has_store(const char *path, struct wal_store_info *info)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY};
    struct wal_store *store = NULL;
    const enum wal_status status = wal_open(path, &options, &store, NULL);
    const bool result = status == WAL_EKEY
                            ? read_encrypted(path, info)
                            : status == WAL_OK && wal_store_get_info(store, info, NULL) == WAL_OK;

    return (store == NULL || wal_close(store, NULL) == WAL_OK) && result;
}

enum wal_status wal__pull_find_store(struct wal_remote *remote, const char *path, uint8_t uuid[16],
                                     struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);

    if (!wal__uuid_is_zero(uuid)) {
        return WAL_OK;
    }
    if (!wal__pull_has_store(path, &info)) {
        return wal__remote_find_store(remote, uuid, error);
    }
    memcpy(uuid, info.uuid, sizeof(info.uuid));
    return WAL_OK;
}

/* --- the base ------------------------------------------------------------- */

enum {
    FEW_PARTS = 256 /* are applied one by one, though a base has them */
};

static enum wal_status read_head(struct wal__pull *pull, const struct wal__base_list *base,
                                 size_t at, struct wal_part_info *info, struct wal_error *error)
{
    pull->lost = wal__base_object(pull->uuid, base, at);
    return wal__base_head(pull->remote, pull->target.info, pull->uuid, base, at, info, error);
}

/* Finds the last segment that begins within the position, by their heads; 0 when none does. */
static enum wal_status find_first(struct wal__pull *pull, const struct wal__base_list *base,
                                  const struct wal__position *position, size_t *first,
                                  struct wal_error *error)
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
static enum wal_status get_end(struct wal__pull *pull, const struct wal__base_list *base,
                               struct wal__position *end, struct wal_error *error)
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

/* Applies a part or a segment. An error of the bytes names the object. */
static enum wal_status pull_apply(struct wal__pull *pull, struct wal_slice part, const char *name,
                                  struct wal_error *error)
{
    const struct wal__part_target *target = &pull->target;
    struct wal__position before = {{{0}}};
    struct wal__position after = {{{0}}};
    struct wal_error own = WAL_INIT(wal_error);
    enum wal_status status = target->position(target->ctx, &before, &own);

    if (status == WAL_OK) {
        status = target->apply(target->ctx, part, &own);
    }
    if (status == WAL_ECORRUPT || status == WAL_EVERSION) {
        return wal__fail_at(error, status, 0, name, own.offset, "%s", own.text);
    }
    if (status == WAL_ECONFLICT) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the object does not follow those before it: %s", own.text);
    }
    if (status == WAL_OK) {
        status = target->position(target->ctx, &after, &own);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    } else if (!wal__position_is_within(&after, &before)) {
        /* What was applied before is not counted. */
        pull->result.bytes += part.size;
        pull->result.parts++;
    }
    return status;
}

static enum wal_status apply_segments(struct wal__pull *pull, const struct wal__fetch_item *items,
                                      size_t count, struct wal_error *error)
{
    struct wal__fetch *fetch = NULL;
    struct wal_slice segment = {NULL, 0};
    enum wal_status status = wal__fetch_open(pull->remote, items, count, &fetch, error);

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = wal__fetch_next(fetch, &segment, error);
        if (status == WAL_OK) {
            status = pull_apply(pull, segment, items[i].name, error);
        } else if (status == WAL_ENOTFOUND) {
            (void)!wal__store_object_parse(items[i].name, &pull->lost);
        }
    }
    wal__fetch_close(fetch);
    return status;
}

/* Applies of the base what the target lacks, and goes on with the part after it. WAL_ENOTFOUND: a
 * segment is not there. */
static enum wal_status apply_base(struct wal__pull *pull, const struct wal__base_list *base,
                                  struct wal_error *error)
{
    struct wal__position position = {{{0}}};
    struct wal__buf items;
    size_t first = 0;
    enum wal_status status = pull->target.position(pull->target.ctx, &position, error);

    wal__buf_init(&items, pull->remote->heap);
    if (status == WAL_OK && !wal__position_is_empty(&position)) {
        status = find_first(pull, base, &position, &first, error);
    }
    if (status == WAL_OK) {
        status = wal__base_items(pull->uuid, base, first, &items, error);
    }
    if (status == WAL_OK) {
        status = apply_segments(pull, (const struct wal__fetch_item *)(const void *)items.data,
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

/* Whether the base is the way from the part, which begins within the position: not when the target
 * is a store, few parts are left, or it leads to what the target has. */
static enum wal_status is_way(struct wal__pull *pull, const struct wal__base_list *base,
                              const struct wal__position *position,
                              const struct wal__store_object *part, bool *is_way,
                              struct wal_error *error)
{
    struct wal__position end = {{{0}}};
    enum wal_status status = WAL_OK;

    if (part->number == 0) {
        *is_way = true;
    } else if (pull->is_store || !wal__base_has(base, part->epoch, part->number) ||
               (part->epoch == base->epoch && part->number + FEW_PARTS > base->part)) {
        *is_way = false;
    } else {
        status = get_end(pull, base, &end, error);
        *is_way = !wal__position_is_within(&end, position);
    }
    return status;
}

/* Sets the next part, and applies the base when that is the way there. */
static enum wal_status choose(struct wal__pull *pull, uint64_t number,
                              const struct wal__base_list *base, struct wal_error *error)
{
    struct wal__store_object part = wal__store_object_of(WAL__OBJECT_PART, pull->uuid, 0, 0);
    struct wal__position position = {{{0}}};
    bool takes_base = false;
    enum wal_status status = pull->target.position(pull->target.ctx, &position, error);

    pull->base_erased = base->erased;
    if (status == WAL_OK && !wal__position_is_empty(&position)) {
        status = pull_find_start(pull, &position, &part, error);
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

/* Applies the base if it has the next part, which is not there any more, and goes on after it.
 * WAL_END: it has not. */
static enum wal_status replace(struct wal__pull *pull, uint64_t number,
                               const struct wal__base_list *base, struct wal_error *error)
{
    return number > 0 && wal__base_has(base, pull->next.epoch, pull->next.number)
               ? apply_base(pull, base, error)
               : WAL_END;
}

/* --- what was erased ---------------------------------------------------- */

/* Whether the target has a segment of the base, or some, from which compaction has made it since;
 * *stream is that of the segment. */
static enum wal_status look_at_segment(struct wal__pull *pull, const struct wal__base_list *base,
                                       size_t at, int32_t *needs, size_t *stream,
                                       struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice begin;
    struct wal__buf bytes;
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    pull->lost = wal__base_object(pull->uuid, base, at);
    wal__store_object_format(&pull->lost, name);
    wal__buf_init(&bytes, pull->remote->heap);
    status = pull->remote->driver->calls->get(pull->remote->driver, name, 0, WAL_PART_BEGIN_SIZE,
                                              &bytes, error);
    begin = (struct wal_slice){bytes.data, bytes.size};
    if (status == WAL_OK) {
        status = pull->target.info(begin, &info, error);
    }
    if (status == WAL_OK) {
        const struct wal__position before = wal__position_of(info.before);
        const struct wal__position after = wal__position_of(info.after);

        *stream = memcmp(&before.places[WAL_PART_LOG], &after.places[WAL_PART_LOG],
                         sizeof(before.places[0])) != 0
                      ? WAL_PART_LOG
                      : WAL_PART_CONTENT;
        status = pull->target.needs(pull->target.ctx, begin, needs, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

/* Replaces segments of the target, which has all that the base has, by those of the base that were
 * made of them when something was erased. The log before the content: what is erased there is named
 * by nothing then. */
static enum wal_status erase(struct wal__pull *pull, uint64_t number,
                             const struct wal__base_list *base, struct wal_error *error)
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
        } else if (wal__buf_append(&later, &items[i], sizeof(items[i])) != WAL_OK) {
            status = wal__no_memory(error);
        }
    }
    if (status == WAL_OK) {
        status = apply_segments(pull, (const void *)later.data,
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
                                const struct wal__base_list *base, struct wal_error *error);

/* Does the step with the newest base; again when another process has made one meanwhile, and
 * removed segments that it does not name. */
static enum wal_status with_base(struct wal__pull *pull, step_fn *step, struct wal_error *error)
{
    struct wal__base_list base;
    char name[WAL__STORE_OBJECT_SIZE];
    uint64_t number = 0;
    uint64_t last = 0;
    enum wal_status status;

    wal__base_list_init(&base, pull->remote->heap);
    do {
        last = number;
        status = wal__base_read_last(pull->remote, pull->uuid, &number, &base, error);
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

/* --- a part that is not there --------------------------------------------- */

/*
 * A writer has WAL__PART_WINDOW parts on the way at most, and the floor of each says which others
 * were stored before. A fence has its place after all that count, and an epoch that has anything
 * comes after fences.
 */

/* Whether the object at `at` of the page says that the next part was stored. */
static enum wal_status ask(struct wal__pull *pull, size_t at, bool *is_lost,
                           struct wal_error *error)
{
    const uint64_t size = wal__part_page_items(&pull->page)[at].size;
    struct wal__store_object part = pull->next;
    uint64_t floor = 0;
    enum wal_status status;

    if (size <= WAL__FENCE_JSON_MAX) {
        *is_lost = true;
        return WAL_OK;
    }
    part.number = wal__part_page_number(&pull->page, at);
    status = wal__history_floor(pull->remote, &part, size, &floor, error);
    /* Parts that are removed are below a base. */
    *is_lost = status == WAL_ENOTFOUND || floor >= pull->next.number;
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Whether the next part, which is not in the page, must be there:
 * something that is there says that it was stored. */
static enum wal_status pull_look_after(struct wal__pull *pull, bool *is_lost,
                                       struct wal_error *error)
{
    const struct wal__part_page *page = &pull->page;
    const size_t count = page->count;
    enum wal_status status = WAL_OK;

    *is_lost =
        count > 0 && wal__part_page_number(page, count - 1) >= pull->next.number + WAL__PART_WINDOW;
    /* The highest has the highest floor, unless a fence is before it. */
    for (size_t i = count; i > 0 && !*is_lost && status == WAL_OK; i--) {
        status = ask(pull, i - 1, is_lost, error);
    }
    return status == WAL_OK && !*is_lost
               ? wal__history_has_later(pull->remote, &pull->next, pull->last_epoch, is_lost, error)
               : status;
}

/* --- parts ---------------------------------------------------------------- */

void wal__pull_deinit(struct wal__pull *pull)
{
    wal__part_page_deinit(&pull->page);
}

/* Finds the part in an object. */
static enum wal_status open_part(const struct wal__pull *pull, struct wal_slice object,
                                 const char *name, struct wal_slice *part, struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_error own = WAL_INIT(wal_error);
    uint64_t floor = 0;
    enum wal_status status = pull->target.info(object, &info, &own);

    return status == WAL_OK ? wal__part_object_open(object, name, info.size, part, &floor, error)
                            : wal__fail_at(error, status, 0, name, own.offset, "%s", own.text);
}

/* Applies an object in the place of the next part. */
static enum wal_status apply_object(struct wal__pull *pull, struct wal_slice object,
                                    const char *name, struct wal_error *error)
{
    struct wal_slice part = {NULL, 0};
    uint64_t fence = 0;
    enum wal_status status = wal__fence_decode(object, name, &fence, error);

    if (status == WAL_OK && fence != 0) {
        pull->next.epoch++;
        pull->next.number = 1;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = open_part(pull, object, name, &part, error);
    }
    if (status == WAL_OK) {
        status = pull_apply(pull, part, name, error);
    }
    if (status == WAL_OK) {
        pull->result.epoch = pull->next.epoch;
        pull->result.part = pull->next.number++;
    }
    return status;
}

/* Applies the first `count` objects of the page, up to a fence. WAL_ENOTFOUND: one was removed
 * meanwhile. */
static enum wal_status apply_run(struct wal__pull *pull, size_t count, struct wal_error *error)
{
    const struct wal__fetch_item *items = wal__part_page_items(&pull->page);
    const uint64_t epoch = pull->next.epoch;
    struct wal__fetch *fetch = NULL;
    struct wal_slice object = {NULL, 0};
    enum wal_status status = wal__fetch_open(pull->remote, items, count, &fetch, error);

    for (size_t i = 0; i < count && status == WAL_OK && pull->next.epoch == epoch; i++) {
        status = wal__fetch_next(fetch, &object, error);
        if (status == WAL_OK) {
            status = apply_object(pull, object, items[i].name, error);
        }
    }
    wal__fetch_close(fetch);
    return status;
}

/*
 * The next part is not there. WAL_END: the parts end before it. WAL_OK: look again, because it may
 * have come meanwhile with others; or, the second time, because a base was applied that has it.
 */
static enum wal_status skip_missing(struct wal__pull *pull, bool is_second, struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    bool is_lost = false;
    enum wal_status status = pull_look_after(pull, &is_lost, error);

    if (status != WAL_OK || !is_lost) {
        return status == WAL_OK ? WAL_END : status;
    }
    if (!is_second) {
        return WAL_OK;
    }
    wal__store_object_format(&pull->next, name);
    status = with_base(pull, replace, error);
    return status == WAL_END ? wal__history_missing(name, error) : status;
}

/* Whether all is applied that was there when the run got to the last epoch: what comes meanwhile,
 * which may never end, is for the next run. `count` objects of the page, which is of the last
 * epoch, were applied. *last is the number with which the run ends, or 0. */
static enum wal_status is_at_end(struct wal__pull *pull, size_t count, uint64_t *last, bool *is_end,
                                 struct wal_error *error)
{
    struct wal__store_object part = pull->next;
    enum wal_status status = WAL_OK;

    if (pull->page.count < WAL__PART_PAGE_MAX) {
        *is_end = count == pull->page.count;
        return WAL_OK;
    }
    if (*last == 0) {
        part.epoch = pull->last_epoch;
        status = wal__remote_last(pull->remote, &part, last, error);
    }
    *is_end = status == WAL_OK && pull->next.number > *last;
    return status;
}

static enum wal_status apply_parts(struct wal__pull *pull, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool was_missing = false;
    bool is_end = false;
    uint64_t last = 0;

    while (status == WAL_OK && !is_end && pull->next.epoch <= pull->last_epoch) {
        const struct wal__store_object next = pull->next;
        size_t count;

        status = wal__part_page_read(pull->remote, &next, &pull->page, error);
        if (status != WAL_OK) {
            return status;
        }
        count = wal__part_page_run(&pull->page, next.number);
        if (count > 0) {
            status = apply_run(pull, count, error);
            was_missing = false;
            if (status == WAL_OK && next.epoch == pull->last_epoch) {
                status = is_at_end(pull, count, &last, &is_end, error);
            }
            if (status == WAL_ENOTFOUND) {
                status = WAL_OK; /* the next listing lacks it */
            }
        } else {
            status = skip_missing(pull, was_missing, error);
            was_missing = !was_missing;
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

/* --- all of it ---------------------------------------------------------- */

static enum wal_status read_last_epoch(struct wal__pull *pull, struct wal_error *error)
{
    struct wal__store_object epochs = wal__store_object_of(WAL__OBJECT_EPOCH, pull->uuid, 0, 0);
    enum wal_status status;

    status = wal__remote_last(pull->remote, &epochs, &pull->last_epoch, error);
    return status == WAL_OK && pull->last_epoch == 0
               ? wal__fail(error, WAL_ENOTFOUND, "the remote has no store of this id")
               : status;
}

static enum wal_status run(struct wal__pull *pull, struct wal_error *error)
{
    struct wal__position position = {{{0}}};
    enum wal_status status = read_last_epoch(pull, error);

    if (pull->page.items.heap == NULL) {
        wal__part_page_init(&pull->page, pull->remote->heap);
    }
    memcpy(pull->result.uuid, pull->uuid, sizeof(pull->result.uuid));
    if (status == WAL_OK && pull->next.number == 0) {
        status = with_base(pull, choose, error);
        if (status != WAL_OK) {
            pull->next.number = 0; /* the next run starts again */
        }
    }
    if (status == WAL_OK) {
        status = apply_parts(pull, error);
    }
    if (status == WAL_OK) {
        status = pull->target.sync(pull->target.ctx, error);
    }
    if (status == WAL_OK && pull->target.needs != NULL &&
        (pull->looks_at_base || pull->base_erased != pull->erased)) {
        status = with_base(pull, erase, error);
        pull->looks_at_base &= status != WAL_OK;
        pull->base_erased = pull->erased;
    }
    if (status == WAL_OK) {
        status = pull->target.position(pull->target.ctx, &position, error);
    }
    if (status == WAL_OK) {
        pull->result.sequence = position.places[WAL_PART_LOG].sequence;
    }
    return status;
}

enum wal_status wal__pull_run(struct wal__pull *pull, struct wal_error *error)
{
    enum wal_status status = run(pull, error);

    /* What is read again does not have what a line changed. */
    return status == WAL_ECORRUPT || status == WAL_EVERSION ? run(pull, error) : status;
}

enum wal_status wal__pull_has_more(struct wal__pull *pull, bool *has_more, struct wal_error *error)
{
    return wal__remote_has(pull->remote, &pull->next, has_more, error);
}
