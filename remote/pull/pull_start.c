/*
 * pull_start.c - which store is pulled, and from which part a replica goes on
 * (pull.h). A part that was applied is applied again without effect, so that it
 * need not be exact.
 */
#include <string.h>

#include "remote/pull/pull.h"

/* Whether the object begins within the position. A fence does not say it, nor
 * does a part that is not there: the part before it does. Moves object->number
 * to that; below `first` when there is none. */
static enum wal_status begins_within(struct wal__pull *pull,
                                     struct wal__store_object *object,
                                     const struct wal__position *position,
                                     uint64_t first, bool *is_within,
                                     struct wal_error *error)
{
    for (; object->number >= first; object->number--) {
        struct wal__part_head head = {.fence = 0};
        enum wal_status status = wal__history_head(
            pull->remote, pull->target.info, object, &head, error);

        if (status == WAL_OK && head.fence == 0) {
            const struct wal__position before =
                wal__position_of(head.info.before);

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

/* Searches the numbers from `first` to `last` of an epoch. start->number is 0
 * when none begins within the position. */
static enum wal_status search(struct wal__pull *pull,
                              const struct wal__position *position,
                              uint64_t first, uint64_t last,
                              struct wal__store_object *start,
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
static enum wal_status find_range(struct wal__pull *pull,
                                  const struct wal__store_object *object,
                                  uint64_t *first, uint64_t *last,
                                  struct wal_error *error)
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
    return page->count < WAL__PART_PAGE_MAX
               ? WAL_OK
               : wal__remote_last(pull->remote, object, last, error);
}

enum wal_status wal__pull_find_start(struct wal__pull *pull,
                                     const struct wal__position *position,
                                     struct wal__store_object *start,
                                     struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_PART};
    enum wal_status status = WAL_OK;
    uint64_t first = 0;
    uint64_t last = 0;

    memcpy(object.uuid, pull->uuid, sizeof(object.uuid));
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

bool wal__pull_has_store(const char *path, struct wal_store_info *info)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY};
    struct wal_store *store = NULL;
    const bool result = wal_open(path, &options, &store, NULL) == WAL_OK &&
                        wal_store_get_info(store, info, NULL) == WAL_OK;

    return (store == NULL || wal_close(store, NULL) == WAL_OK) && result;
}

enum wal_status wal__pull_find_store(struct wal_remote *remote,
                                     const char *path, uint8_t uuid[16],
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
