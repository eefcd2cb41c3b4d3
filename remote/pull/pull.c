/*
 * pull.c - applying parts to a replica, in order (pull.h): those of each epoch,
 * up to its fence, or to the first that is not there.
 *
 * An epoch without a fence is the newest one that has parts.
 */
#include "remote/pull/pull.h"

#include <string.h>

#include "engine/base/error.h"
#include "remote/layout/layout.h"

void wal__pull_deinit(struct wal__pull *pull)
{
    wal__part_page_deinit(&pull->page);
}

enum wal_status wal__pull_apply(struct wal__pull *pull, struct wal_slice part,
                                const char *name, struct wal_error *error)
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
                            "the object does not follow those before it: %s",
                            own.text);
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

/* --- parts -------------------------------------------------------------- */

/* Finds the part in an object. */
static enum wal_status open_part(const struct wal__pull *pull,
                                 struct wal_slice object, const char *name,
                                 struct wal_slice *part,
                                 struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_error own = WAL_INIT(wal_error);
    uint64_t floor = 0;
    enum wal_status status = pull->target.info(object, &info, &own);

    return status == WAL_OK ? wal__part_object_open(object, name, info.size,
                                                    part, &floor, error)
                            : wal__fail_at(error, status, 0, name, own.offset,
                                           "%s", own.text);
}

/* Applies an object in the place of the next part. */
static enum wal_status apply_object(struct wal__pull *pull,
                                    struct wal_slice object, const char *name,
                                    struct wal_error *error)
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
        status = wal__pull_apply(pull, part, name, error);
    }
    if (status == WAL_OK) {
        pull->result.epoch = pull->next.epoch;
        pull->result.part = pull->next.number++;
    }
    return status;
}

/* Applies the first `count` objects of the page, up to a fence. WAL_ENOTFOUND:
 * one was removed meanwhile. */
static enum wal_status apply_run(struct wal__pull *pull, size_t count,
                                 struct wal_error *error)
{
    const struct wal__fetch_item *items = wal__part_page_items(&pull->page);
    const uint64_t epoch = pull->next.epoch;
    struct wal__fetch *fetch = NULL;
    struct wal_slice object = {NULL, 0};
    enum wal_status status =
        wal__fetch_open(pull->remote, items, count, &fetch, error);

    for (size_t i = 0;
         i < count && status == WAL_OK && pull->next.epoch == epoch; i++) {
        status = wal__fetch_next(fetch, &object, error);
        if (status == WAL_OK) {
            status = apply_object(pull, object, items[i].name, error);
        }
    }
    wal__fetch_close(fetch);
    return status;
}

/*
 * The next part is not there. WAL_END: the parts end before it. WAL_OK: look
 * again, because it may have come meanwhile with others; or, the second time,
 * because a base was applied that has it.
 */
static enum wal_status skip_missing(struct wal__pull *pull, bool is_second,
                                    struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    bool is_lost = false;
    enum wal_status status = wal__pull_look_after(pull, &is_lost, error);

    if (status != WAL_OK || !is_lost) {
        return status == WAL_OK ? WAL_END : status;
    }
    if (!is_second) {
        return WAL_OK;
    }
    wal__store_object_format(&pull->next, name);
    status = wal__pull_start_again(pull, error);
    return status == WAL_END ? wal__history_missing(name, error) : status;
}

/* Whether all is applied that was there when the run got to the last epoch:
 * what comes meanwhile, which may never end, is for the next run. `count`
 * objects of the page, which is of the last epoch, were applied. *last is the
 * number with which the run ends, or 0. */
static enum wal_status is_at_end(struct wal__pull *pull, size_t count,
                                 uint64_t *last, bool *is_end,
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

static enum wal_status apply_parts(struct wal__pull *pull,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool was_missing = false;
    bool is_end = false;
    uint64_t last = 0;

    while (status == WAL_OK && !is_end &&
           pull->next.epoch <= pull->last_epoch) {
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

static enum wal_status read_last_epoch(struct wal__pull *pull,
                                       struct wal_error *error)
{
    struct wal__store_object epochs = {.kind = WAL__OBJECT_EPOCH};
    enum wal_status status;

    memcpy(epochs.uuid, pull->uuid, sizeof(epochs.uuid));
    status = wal__remote_last(pull->remote, &epochs, &pull->last_epoch, error);
    return status == WAL_OK && pull->last_epoch == 0
               ? wal__fail(error, WAL_ENOTFOUND,
                           "the remote has no store of this id")
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
        status = wal__pull_start(pull, error);
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
        status = wal__pull_erase(pull, error);
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
    return status == WAL_ECORRUPT || status == WAL_EVERSION ? run(pull, error)
                                                            : status;
}

enum wal_status wal__pull_has_more(struct wal__pull *pull, bool *has_more,
                                   struct wal_error *error)
{
    return wal__remote_has(pull->remote, &pull->next, has_more, error);
}
