/*
 * check_base.c - verifies bases and their segments (check.h).
 *
 * A segment that several bases name is read once: a base is made of the one
 * before it, so that they are those at its beginning.
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/history/fetch.h"
#include "remote/pull/check.h"

/* The base that is checked, and the one before it. */
struct work {
    struct wal__check *check;
    struct wal__base_list last;
    struct wal__buf last_ends; /* struct wal__position, after each segment */
    struct wal__base_list list;
    struct wal__buf list_ends;
};

static const struct wal__position *end_at(const struct wal__buf *ends,
                                          size_t at)
{
    return (const struct wal__position *)(const void *)ends->data + at;
}

/* How many segments the list has in common with the last one, of those that
 * were sound. */
static size_t count_known(const struct work *work)
{
    const size_t sound = work->last_ends.size / sizeof(struct wal__position);
    size_t count = wal__base_list_count(&work->list);
    size_t known = 0;

    if (count > sound) {
        count = sound;
    }
    while (known < count && memcmp(wal__base_list_at(&work->list, known),
                                   wal__base_list_at(&work->last, known),
                                   sizeof(struct wal__base_segment)) == 0) {
        known++;
    }
    return known;
}

static enum wal_status add_end(struct wal__buf *ends,
                               const struct wal__position *end,
                               struct wal_error *error)
{
    return wal__buf_append(ends, end, sizeof(*end)) == WAL_OK
               ? WAL_OK
               : wal__no_memory(error);
}

/* Verifies a segment that was read. What follows one that is not sound is
 * verified too, but not compared with it. */
static enum wal_status check_segment(struct work *work,
                                     struct wal_slice segment, const char *name,
                                     bool *follows, struct wal_error *error)
{
    const size_t count = work->list_ends.size / sizeof(struct wal__position);
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal__position before = {{{0}}};
    struct wal__position after;
    bool is_sound = false;
    enum wal_status status =
        wal__check_part(work->check, segment, name, &is_sound, &info, error);

    work->check->result.segments++;
    if (status != WAL_OK || !is_sound || !*follows) {
        *follows = *follows && is_sound;
        return status;
    }
    if (count > 0) {
        before = *end_at(&work->list_ends, count - 1);
    }
    after = wal__position_of(info.before);
    if (!wal__position_equal(&before, &after)) {
        *follows = false;
        return wal__check_report(work->check, name, WAL_ECORRUPT,
                                 "the segment does not follow the one before "
                                 "it in the base",
                                 error);
    }
    after = wal__position_of(info.after);
    return add_end(&work->list_ends, &after, error);
}

static enum wal_status read_segments(struct work *work,
                                     const struct wal__fetch_item *items,
                                     size_t count, struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__fetch *fetch = NULL;
    struct wal_slice segment = {NULL, 0};
    bool follows = true;
    enum wal_status status =
        wal__fetch_open(work->check->remote, items, count, &fetch, error);

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = wal__fetch_next(fetch, &segment, &own);
        if (status == WAL_OK) {
            status =
                check_segment(work, segment, items[i].name, &follows, error);
        } else if (status == WAL_ENOTFOUND || wal__check_is_damage(status)) {
            follows = false;
            status = wal__check_report(work->check, items[i].name, status,
                                       status == WAL_ENOTFOUND
                                           ? "the remote has lost the segment"
                                           : own.text,
                                       error);
        } else {
            wal__error_copy(error, &own);
        }
    }
    wal__fetch_close(fetch);
    return status;
}

/* Reads the segments that the base before it does not name. */
static enum wal_status check_segments(struct work *work,
                                      struct wal_error *error)
{
    const size_t known = count_known(work);
    struct wal__buf items;
    enum wal_status status = WAL_OK;

    wal__buf_init(&items, work->check->remote->heap);
    work->list_ends.size = 0;
    for (size_t i = 0; i < known && status == WAL_OK; i++) {
        status = add_end(&work->list_ends, end_at(&work->last_ends, i), error);
    }
    if (status == WAL_OK) {
        status = wal__base_items(work->check->uuid, &work->list, known, &items,
                                 error);
    }
    if (status == WAL_OK) {
        status = read_segments(
            work, (const struct wal__fetch_item *)(const void *)items.data,
            items.size / sizeof(struct wal__fetch_item), error);
    }
    wal__buf_deinit(&items);
    return status;
}

/* Reads and checks the base of this number, and makes it the last one. */
static enum wal_status check_base(struct work *work, uint64_t number,
                                  struct wal_error *error)
{
    struct wal__check *check = work->check;
    struct wal__store_object object = {.kind = WAL__OBJECT_BASE,
                                       .number = number};
    struct wal_error own = WAL_INIT(wal_error);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__base_list list;
    struct wal__buf ends;
    enum wal_status status =
        wal__base_read(check->remote, check->uuid, number, &work->list, &own);

    memcpy(object.uuid, check->uuid, sizeof(object.uuid));
    wal__store_object_format(&object, name);
    check->result.bases++;
    if (wal__check_is_damage(status)) {
        return wal__check_report(check, name, status, own.text, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
        return status == WAL_ENOTFOUND ? WAL_OK : status; /* collected */
    }
    status = check_segments(work, error);
    list = work->last;
    ends = work->last_ends;
    work->last = work->list;
    work->last_ends = work->list_ends;
    work->list = list;
    work->list_ends = ends;
    return status;
}

/* Keeps the newest base for the parts after it. */
static void take_last(struct work *work)
{
    struct wal__check *check = work->check;
    const size_t count = work->last_ends.size / sizeof(struct wal__position);

    check->base = work->last;
    check->has_base_end =
        count > 0 && count == wal__base_list_count(&work->last);
    if (check->has_base_end) {
        check->base_end = *end_at(&work->last_ends, count - 1);
    }
    wal__base_list_init(&work->last, check->remote->heap);
}

enum wal_status wal__check_bases(struct wal__check *check,
                                 struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_BASE};
    struct work work = {.check = check};
    uint64_t number = 0;
    enum wal_status status = WAL_OK;

    memcpy(object.uuid, check->uuid, sizeof(object.uuid));
    wal__base_list_init(&work.last, check->remote->heap);
    wal__base_list_init(&work.list, check->remote->heap);
    wal__buf_init(&work.last_ends, check->remote->heap);
    wal__buf_init(&work.list_ends, check->remote->heap);
    while (status == WAL_OK) {
        status =
            wal__remote_next(check->remote, &object, number, &number, error);
        if (status != WAL_OK || number == 0) {
            break;
        }
        status = check_base(&work, number, error);
    }
    take_last(&work);
    wal__base_list_deinit(&work.last);
    wal__base_list_deinit(&work.list);
    wal__buf_deinit(&work.last_ends);
    wal__buf_deinit(&work.list_ends);
    return status;
}
