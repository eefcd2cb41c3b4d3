/*
 * pull_gap.c - what a part that is not there is (pull.h): one that a writer had
 * on the way when it was killed, or one that the remote has lost.
 *
 * A writer has WAL__PART_WINDOW parts on the way at most, and the floor of each
 * says which others were stored before. A fence has its place after all that
 * count, and an epoch that has anything comes after fences.
 */
#include "engine/base/error.h"
#include "remote/layout/part_object.h"
#include "remote/pull/pull.h"

/* Reads the floor from the end of an object. */
static enum wal_status read_floor(struct wal__pull *pull,
                                  const struct wal__store_object *part,
                                  uint64_t part_size, uint64_t *floor,
                                  struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal_slice slice = {NULL, 0};
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, pull->remote->heap);
    status = pull->remote->driver->calls->get(
        pull->remote->driver, name, part_size, WAL__PART_TRAILER_SIZE + 1,
        &bytes, error);
    if (status == WAL_OK) {
        status =
            wal__part_object_open((struct wal_slice){bytes.data, bytes.size},
                                  name, 0, &slice, floor, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

/* Whether a later object of the epoch says that the next part was stored. */
static enum wal_status ask(struct wal__pull *pull, uint64_t number,
                           bool *is_lost, struct wal_error *error)
{
    struct wal__store_object part = pull->next;
    struct wal__part_head head = {.fence = 0};
    uint64_t floor = 0;
    enum wal_status status;

    part.number = number;
    status =
        wal__history_head(pull->remote, pull->target.info, &part, &head, error);
    if (status == WAL_OK && head.fence == 0) {
        status = read_floor(pull, &part, head.info.size, &floor, error);
    }
    /* Parts that are removed are below a base. */
    if (status == WAL_ENOTFOUND || (status == WAL_OK && head.fence != 0)) {
        *is_lost = true;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        *is_lost = floor >= pull->next.number;
    }
    return status;
}

/* Whether an epoch after that of the next part has anything. */
static enum wal_status has_later_epoch(struct wal__pull *pull, bool *is_there,
                                       struct wal_error *error)
{
    struct wal__store_object later = pull->next;
    uint64_t number = 0;
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && number == 0 && later.epoch < pull->last_epoch) {
        later.epoch++;
        status = wal__remote_next(pull->remote, &later, 0, &number, error);
    }
    *is_there = number != 0;
    return status;
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
        status = ask(pull, wal__part_page_number(page, i - 1), is_lost, error);
    }
    return status == WAL_OK && !*is_lost ? has_later_epoch(pull, is_lost, error)
                                         : status;
}
