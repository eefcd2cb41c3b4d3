/*
 * pull_gap.c - what a part that is not there is (pull.h): one that a writer had
 * on the way when it was killed, or one that the remote has lost.
 *
 * A writer has WAL__PART_WINDOW parts on the way at most, and the floor of each
 * says which others were stored before. A fence has its place after all that
 * count, and an epoch that has anything comes after fences.
 */
#include "engine/base/error.h"
#include "remote/layout/layout.h"
#include "remote/pull/pull.h"

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

enum wal_status wal__pull_look_after(struct wal__pull *pull, bool *is_lost,
                                     struct wal_error *error)
{
    const struct wal__part_page *page = &pull->page;
    const size_t count = page->count;
    enum wal_status status = WAL_OK;

    *is_lost = count > 0 && wal__part_page_number(page, count - 1) >=
                                pull->next.number + WAL__PART_WINDOW;
    /* The highest has the highest floor, unless a fence is before it. */
    for (size_t i = count; i > 0 && !*is_lost && status == WAL_OK; i--) {
        status = ask(pull, i - 1, is_lost, error);
    }
    return status == WAL_OK && !*is_lost
               ? wal__history_has_later(pull->remote, &pull->next,
                                        pull->last_epoch, is_lost, error)
               : status;
}
