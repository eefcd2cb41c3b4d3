/*
 * check_parts.c - verifies the parts of each epoch, and that they follow each
 * other (check.h).
 *
 * A part that is not there is lost, unless a base has it; or unless the writer
 * may have had it on the way when it ended, together with those after it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/layout/layout.h"
#include "remote/pull/check.h"

struct walk {
    struct wal__check *check;
    struct wal__store_object at; /* the object that is looked at */
    uint64_t next;               /* the number that comes next in the epoch */
    bool is_fenced;
    bool has_last; /* the part before is known */
    struct wal__position last;
    uint64_t pending[WAL__PART_WINDOW]; /* numbers that may be on the way */
    size_t pending_count;
    struct wal__part_page page;
};

/* --- what is not there -------------------------------------------------- */

/* Whether the object is not there: it may have come since the listing. */
static enum wal_status is_gone(struct walk *walk, const char *name, bool *gone,
                               struct wal_error *error)
{
    struct wal_remote *remote = walk->check->remote;
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, remote->heap);
    status =
        remote->driver->calls->get(remote->driver, name, 0, 1, &bytes, &own);
    wal__buf_deinit(&bytes);
    *gone = status == WAL_ENOTFOUND;
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        wal__error_copy(error, &own);
        return status;
    }
    return WAL_OK;
}

/* Reports `count` objects from `number` of the epoch on. */
static enum wal_status report_lost(struct walk *walk, uint64_t number,
                                   uint64_t count, struct wal_error *error)
{
    struct wal__store_object lost = walk->at;
    struct wal_error text = WAL_INIT(wal_error);
    char name[WAL__STORE_OBJECT_SIZE];
    bool gone = false;
    enum wal_status status = WAL_OK;

    for (; status == WAL_OK && !gone && count > 0; number++, count--) {
        lost.number = number;
        wal__store_object_format(&lost, name);
        status = is_gone(walk, name, &gone, error);
    }
    if (status != WAL_OK || !gone) {
        return status;
    }
    if (count == 0) {
        return wal__check_report(walk->check, name, WAL_ENOTFOUND,
                                 "the remote has lost the object", error);
    }
    (void)!wal__fail(&text, WAL_ENOTFOUND,
                     "the remote has lost the object, and the %llu after it",
                     (unsigned long long)count);
    return wal__check_report(walk->check, name, WAL_ENOTFOUND, text.text,
                             error);
}

/* All that may be on the way up to this number was stored. */
static enum wal_status end_pending(struct walk *walk, uint64_t stored,
                                   struct wal_error *error)
{
    size_t kept = 0;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < walk->pending_count; i++) {
        if (walk->pending[i] > stored) {
            walk->pending[kept++] = walk->pending[i];
        } else if (status == WAL_OK) {
            status = report_lost(walk, walk->pending[i], 1, error);
        }
    }
    walk->pending_count = kept;
    return status;
}

/* Notes the numbers before walk->at that are not there. */
static enum wal_status skip_gap(struct walk *walk, struct wal_error *error)
{
    const struct wal__base_list *base = &walk->check->base;
    const uint64_t end = walk->at.number;
    uint64_t first = walk->next;
    enum wal_status status = WAL_OK;

    if (first < end) {
        walk->has_last = false;
    }
    if (walk->at.epoch < base->epoch) {
        first = end;
    } else if (walk->at.epoch == base->epoch && first <= base->part) {
        first = base->part + 1;
    }
    /* No window is so large. */
    if (end > WAL__PART_WINDOW) {
        status = end_pending(walk, end - WAL__PART_WINDOW, error);
        if (status == WAL_OK && first + WAL__PART_WINDOW <= end) {
            status = report_lost(walk, first,
                                 end - WAL__PART_WINDOW - first + 1, error);
            first = end - WAL__PART_WINDOW + 1;
        }
    }
    for (; first < end && status == WAL_OK; first++) {
        walk->pending[walk->pending_count++] = first;
    }
    return status;
}

/* --- one object --------------------------------------------------------- */

/* The parts before, or the base, lead to where the part begins; and it to where
 * the base ends. */
static enum wal_status compare(struct walk *walk,
                               const struct wal_part_info *info,
                               const char *name, struct wal_error *error)
{
    struct wal__check *check = walk->check;
    const struct wal__base_list *base = &check->base;
    const struct wal__position before = wal__position_of(info->before);
    const bool is_base = check->has_base_end && walk->at.epoch == base->epoch;
    enum wal_status status = WAL_OK;

    if (is_base && walk->at.number == base->part + 1) {
        walk->last = check->base_end;
        walk->has_last = true;
    }
    if (walk->has_last && !wal__position_equal(&walk->last, &before)) {
        status = wal__check_report(check, name, WAL_ECORRUPT,
                                   "the part does not follow the one before it",
                                   error);
    }
    walk->last = wal__position_of(info->after);
    walk->has_last = true;
    if (status == WAL_OK && is_base && walk->at.number == base->part &&
        !wal__position_equal(&walk->last, &check->base_end)) {
        status = wal__check_report(check, name, WAL_ECORRUPT,
                                   "the newest base does not lead to the end "
                                   "of the part",
                                   error);
    }
    return status;
}

/* Verifies a part with its trailer. */
static enum wal_status check_part(struct walk *walk, struct wal_slice object,
                                  const char *name, struct wal_error *error)
{
    struct wal__check *check = walk->check;
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_error own = WAL_INIT(wal_error);
    struct wal_slice part = {NULL, 0};
    uint64_t floor = 0;
    bool is_sound = false;
    enum wal_status status = check->info(object, &info, &own);

    check->result.parts++;
    if (status == WAL_OK) {
        status =
            wal__part_object_open(object, name, info.size, &part, &floor, &own);
    }
    if (status != WAL_OK) {
        walk->has_last = false;
        return wal__check_report(check, name, status, own.text, error);
    }
    status = wal__check_part(check, part, name, &is_sound, &info, error);
    if (status == WAL_OK) {
        status = end_pending(walk, floor, error);
    }
    if (status != WAL_OK || !is_sound) {
        walk->has_last = false;
        return status;
    }
    if (walk->pending_count > 0) {
        return WAL_OK; /* it was not acknowledged */
    }
    check->result.epoch = walk->at.epoch;
    check->result.part = walk->at.number;
    check->result.sequence = info.after[WAL_PART_LOG].sequence;
    return compare(walk, &info, name, error);
}

static enum wal_status check_object(struct walk *walk, struct wal_slice object,
                                    const char *name, struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    uint64_t fence = 0;
    enum wal_status status = wal__fence_decode(object, name, &fence, &own);

    if (status != WAL_OK) {
        walk->has_last = false;
        return wal__check_report(walk->check, name, status, own.text, error);
    }
    if (fence == 0) {
        return check_part(walk, object, name, error);
    }
    walk->is_fenced = true;
    return end_pending(walk, UINT64_MAX, error);
}

/* --- an epoch ----------------------------------------------------------- */

/* Reads the objects of the page, up to a fence. */
static enum wal_status check_page(struct walk *walk, struct wal_error *error)
{
    const struct wal__fetch_item *items = wal__part_page_items(&walk->page);
    const size_t count = walk->page.count;
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__fetch *fetch = NULL;
    struct wal_slice object = {NULL, 0};
    enum wal_status status =
        wal__fetch_open(walk->check->remote, items, count, &fetch, error);

    for (size_t i = 0; i < count && status == WAL_OK && !walk->is_fenced; i++) {
        walk->at.number = wal__part_page_number(&walk->page, i);
        status = skip_gap(walk, error);
        if (status != WAL_OK) {
            break;
        }
        status = wal__fetch_next(fetch, &object, &own);
        if (status == WAL_OK) {
            status = check_object(walk, object, items[i].name, error);
        } else if (status == WAL_ENOTFOUND) {
            walk->has_last = false; /* collected meanwhile */
            status = WAL_OK;
        } else if (wal__check_is_damage(status)) {
            walk->has_last = false;
            status = wal__check_report(walk->check, items[i].name, status,
                                       own.text, error);
        } else {
            wal__error_copy(error, &own);
        }
        walk->next = walk->at.number + 1;
    }
    wal__fetch_close(fetch);
    return status;
}

/* Reports the fence that an epoch must have when a later one has anything. */
static enum wal_status check_end(struct walk *walk, struct wal_error *error)
{
    bool has_later = false;
    enum wal_status status =
        wal__history_has_later(walk->check->remote, &walk->at,
                               walk->check->last_epoch, &has_later, error);

    if (status != WAL_OK || !has_later) {
        return status;
    }
    walk->has_last = false;
    return report_lost(walk,
                       walk->pending_count > 0 ? walk->pending[0] : walk->next,
                       1, error);
}

static enum wal_status check_epoch(struct walk *walk, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    walk->next = 1;
    walk->is_fenced = false;
    walk->pending_count = 0;
    do {
        walk->at.number = walk->next;
        status = wal__part_page_read(walk->check->remote, &walk->at,
                                     &walk->page, error);
        if (status == WAL_OK) {
            status = check_page(walk, error);
        }
        /* What comes meanwhile, which may never end, is not read. */
    } while (status == WAL_OK && walk->page.count == WAL__PART_PAGE_MAX &&
             !walk->is_fenced);
    return status == WAL_OK && !walk->is_fenced ? check_end(walk, error)
                                                : status;
}

enum wal_status wal__check_parts(struct wal__check *check,
                                 struct wal_error *error)
{
    struct walk walk = {.check = check,
                        .at = {.kind = WAL__OBJECT_PART, .epoch = 1},
                        .has_last = true};
    enum wal_status status = WAL_OK;

    memcpy(walk.at.uuid, check->uuid, sizeof(walk.at.uuid));
    wal__part_page_init(&walk.page, check->remote->heap);
    for (; walk.at.epoch <= check->last_epoch && status == WAL_OK;
         walk.at.epoch++) {
        status = check_epoch(&walk, error);
    }
    wal__part_page_deinit(&walk.page);
    return status;
}
