/*
 * epoch_end.c - where the parts of an epoch end (history.h).
 *
 * A writer sends a part when all up to WAL__PART_WINDOW numbers before it are
 * stored, so that only among the last ones of an epoch any can be missing
 * without being lost.
 */
#include "engine/base/error.h"
#include "remote/history/history.h"
#include "remote/history/part_page.h"

/*
 * WAL_ECORRUPT when the missing number was stored once: a fence is after it,
 * which got the first number that was free; or the floor of a later part is not
 * below it. `at` is the rank of the first object after it in the page. What is
 * after `last` may have come while the page was read, and the missing one too.
 */
static enum wal_status check_missing(struct wal_remote *remote,
                                     struct wal__store_object object,
                                     const struct wal__part_page *page,
                                     size_t at, uint64_t missing, uint64_t last,
                                     struct wal_error *error)
{
    uint64_t floor = 0;
    enum wal_status status = WAL_OK;
    char name[WAL__STORE_OBJECT_SIZE];

    for (; at < page->count && wal__part_page_number(page, at) <= last &&
           status == WAL_OK && floor < missing;
         at++) {
        const uint64_t size = wal__part_page_items(page)[at].size;

        object.number = wal__part_page_number(page, at);
        if (size <= WAL__FENCE_JSON_MAX) {
            floor = missing;
        } else {
            status = wal__history_floor(remote, &object, size, &floor, error);
        }
    }
    if (status == WAL_OK && floor >= missing) {
        object.number = missing;
        wal__store_object_format(&object, name);
        status = wal__history_missing(name, error);
    }
    return status;
}

/* Finds the end among the objects of the page, from the number after
 * found->number on. */
static enum wal_status find(struct wal_remote *remote,
                            const struct wal__store_object *part,
                            const struct wal__part_page *page, uint64_t last,
                            struct wal__epoch_end *found,
                            struct wal_error *error)
{
    size_t at = 0;

    while (at < page->count &&
           wal__part_page_number(page, at) <= found->number) {
        at++;
    }
    for (; at < page->count && !found->is_fenced &&
           wal__part_page_number(page, at) == found->number + 1;
         at++) {
        found->number++;
        found->is_fenced =
            wal__part_page_items(page)[at].size <= WAL__FENCE_JSON_MAX;
        found->part = found->is_fenced ? found->part : found->number;
    }
    found->has_more = found->number < last;
    return found->has_more && !found->is_fenced
               ? check_missing(remote, *part, page, at, found->number + 1, last,
                               error)
               : WAL_OK;
}

/* Where to begin: before the last ones, among which any can be missing. */
static struct wal__epoch_end begin_before(uint64_t last)
{
    const uint64_t number =
        last > WAL__PART_WINDOW ? last - WAL__PART_WINDOW : 0;

    return (struct wal__epoch_end){.number = number, .part = number};
}

/* Finds it in one listing. WAL_END: that is not enough, because it is not the
 * last page, or has a gap. One listing does not show whether an object in a gap
 * was lost: the object may have come while the names after it were listed. */
static enum wal_status find_at_once(struct wal_remote *remote,
                                    const struct wal__store_object *first,
                                    struct wal__part_page *page,
                                    struct wal__epoch_end *found,
                                    struct wal_error *error)
{
    enum wal_status status = wal__part_page_read(remote, first, page, error);
    uint64_t last = 0;

    if (status != WAL_OK || page->count == WAL__PART_PAGE_MAX) {
        return status == WAL_OK ? WAL_END : status;
    }
    if (page->count > 0) {
        last = wal__part_page_number(page, page->count - 1);
    }
    *found = begin_before(last);
    if (found->number + 1 < first->number) {
        return WAL_END;
    }
    for (size_t i = 0; i < page->count; i++) {
        if (wal__part_page_number(page, i) > found->number &&
            wal__part_page_number(page, i) + page->count - i != last + 1) {
            return WAL_END;
        }
    }
    status = find(remote, first, page, last, found, error);
    return status == WAL_OK && found->number < last ? WAL_END : status;
}

enum wal_status wal__epoch_end_find(struct wal_remote *remote,
                                    const struct wal__store_object *part,
                                    struct wal__epoch_end *end,
                                    struct wal_error *error)
{
    struct wal__store_object first = *part;
    struct wal__epoch_end found = {.number = 0};
    struct wal__part_page page;
    uint64_t last = 0;
    enum wal_status status;

    first.number = begin_before(part->number).number + 1;
    wal__part_page_init(&page, remote->heap);
    status = find_at_once(remote, &first, &page, &found, error);
    if (status == WAL_END) {
        status = wal__remote_last(remote, part, &last, error);
        found = begin_before(last);
        if (status == WAL_OK && last > 0) {
            first.number = found.number + 1;
            status = wal__part_page_read(remote, &first, &page, error);
        }
        if (status == WAL_OK) {
            status = find(remote, part, &page, last, &found, error);
        }
    }
    wal__part_page_deinit(&page);
    if (status == WAL_OK) {
        *end = found;
    }
    return status;
}
