/*
 * collect.c - removes parts, segments and bases (collect.h).
 *
 * A base is made of the one before it: what it names of the segments that were
 * made for that, or for an older one, that names too. So the list of the base
 * that is kept says which segments are kept, up to its number. Those that it
 * does not name are of older bases, or of processes that did not finish.
 */
#include "remote/base/collect.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "remote/history/fetch.h"
#include "remote/layout/layout.h"

enum {
    PAGE = 1000 /* objects that are removed after a listing */
};

struct work {
    struct wal_remote *remote;
    const uint8_t *uuid;
    uint64_t number;            /* of the base that is kept; 0: none */
    struct wal__base_list base; /* it, its segments sorted */
    struct wal__collect_result *result;
};

static struct wal__store_object object_of(const struct work *work,
                                          enum wal__store_object_kind kind)
{
    struct wal__store_object object = {.kind = kind};

    memcpy(object.uuid, work->uuid, sizeof(object.uuid));
    return object;
}

/* --- the base that is kept ---------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct wal__base_segment *one = a;
    const struct wal__base_segment *other = b;

    if (one->number != other->number) {
        return one->number < other->number ? -1 : 1;
    }
    return memcmp(one->id, other->id, sizeof(one->id));
}

/* Finds the newest base that is old enough: the last one before the first that
 * is not. */
static enum wal_status find_base(struct work *work, int64_t created_ms,
                                 struct wal_error *error)
{
    const struct wal__store_object bases = object_of(work, WAL__OBJECT_BASE);
    struct wal__base_list list;
    uint64_t number = 0;
    enum wal_status status = WAL_OK;

    wal__base_list_init(&list, work->remote->heap);
    while (status == WAL_OK) {
        status = wal__remote_next(work->remote, &bases, number, &number, error);
        if (status != WAL_OK || number == 0) {
            break;
        }
        status = wal__base_read(work->remote, work->uuid, number, &list, error);
        if (status == WAL_ENOTFOUND) {
            status = WAL_OK; /* another process has just removed it */
            continue;
        }
        if (status != WAL_OK || list.created_ms > created_ms) {
            break;
        }
        wal__base_list_deinit(&work->base);
        work->base = list;
        work->number = number;
        wal__base_list_init(&list, work->remote->heap);
    }
    wal__base_list_deinit(&list);
    if (status == WAL_OK && work->number > 0) {
        qsort(work->base.segments.data, wal__base_list_count(&work->base),
              sizeof(struct wal__base_segment), compare);
    }
    return status;
}

/* --- a page of objects -------------------------------------------------- */

/* Objects that are to be removed. */
struct garbage {
    const struct work *work;
    struct wal__buf items; /* struct wal__fetch_item */
    size_t count;
    char last[WAL__STORE_OBJECT_SIZE]; /* the name that was seen last */
    bool is_end; /* nothing more is to be removed after them */
    enum wal_status status;
};

/* Whether the object may be removed. Sets garbage->is_end at the first one
 * after all that may. */
typedef bool judge_fn(struct garbage *garbage,
                      const struct wal__store_object *object, uint64_t size);

/* A fence is smaller than any part. */
static bool judge_part(struct garbage *garbage,
                       const struct wal__store_object *part, uint64_t size)
{
    const struct wal__base_list *base = &garbage->work->base;

    garbage->is_end = part->epoch > base->epoch ||
                      (part->epoch == base->epoch &&
                       part->number + WAL__PART_WINDOW > base->part);
    return !garbage->is_end && size > WAL__FENCE_JSON_MAX;
}

/* One that was made for a newer base may be named yet. */
static bool judge_segment(struct garbage *garbage,
                          const struct wal__store_object *object, uint64_t size)
{
    const struct wal__base_list *base = &garbage->work->base;
    struct wal__base_segment segment = {.number = object->number};

    (void)size;
    memcpy(segment.id, object->id, sizeof(segment.id));
    garbage->is_end = object->number > garbage->work->number;
    return !garbage->is_end &&
           bsearch(&segment, base->segments.data, wal__base_list_count(base),
                   sizeof(segment), compare) == NULL;
}

static bool judge_base(struct garbage *garbage,
                       const struct wal__store_object *base, uint64_t size)
{
    (void)size;
    garbage->is_end = base->number >= garbage->work->number;
    return !garbage->is_end;
}

/* It is a shortcut: without it the store is pulled. */
static bool judge_bundle(struct garbage *garbage,
                         const struct wal__store_object *bundle, uint64_t size)
{
    (void)garbage;
    (void)bundle;
    (void)size;
    return true;
}

static bool see(void *ctx, const char *name, uint64_t size)
{
    static judge_fn *const judges[] = {[WAL__OBJECT_PART] = judge_part,
                                       [WAL__OBJECT_BASE] = judge_base,
                                       [WAL__OBJECT_SEGMENT] = judge_segment,
                                       [WAL__OBJECT_BUNDLE] = judge_bundle};
    struct garbage *garbage = ctx;
    struct wal__fetch_item item = {.size = size};
    struct wal__store_object object;

    if (!wal__store_object_parse(name, &object)) {
        return true;
    }
    memcpy(garbage->last, name, strlen(name) + 1);
    if (judges[object.kind](garbage, &object, size)) {
        memcpy(item.name, name, strlen(name) + 1);
        garbage->status = wal__buf_append(&garbage->items, &item, sizeof(item));
        garbage->count++;
    }
    return !garbage->is_end && garbage->status == WAL_OK &&
           garbage->count < PAGE;
}

/* Lists what is to be removed of a kind, after garbage->last. */
static enum wal_status list_garbage(struct garbage *garbage,
                                    enum wal__store_object_kind kind,
                                    struct wal_error *error)
{
    const struct work *work = garbage->work;
    const struct wal__store_object object = object_of(work, kind);
    char prefix[WAL__STORE_OBJECT_SIZE];
    char after[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    wal__store_object_prefix(&object, prefix);
    memcpy(after, garbage->last, sizeof(after));
    garbage->items.size = 0;
    garbage->count = 0;
    status = work->remote->driver->calls->list(work->remote->driver, prefix,
                                               after, see, garbage, error);
    return status == WAL_OK && garbage->status != WAL_OK ? wal__no_memory(error)
                                                         : status;
}

/* Removes all objects of the kind that may be removed. */
static enum wal_status remove_kind(struct work *work,
                                   enum wal__store_object_kind kind,
                                   uint64_t *removed, struct wal_error *error)
{
    struct garbage garbage = {.work = work, .count = PAGE};
    enum wal_status status = WAL_OK;

    wal__buf_init(&garbage.items, work->remote->heap);
    while (status == WAL_OK && garbage.count == PAGE && !garbage.is_end) {
        const struct wal__fetch_item *items;

        status = list_garbage(&garbage, kind, error);
        items =
            (const struct wal__fetch_item *)(const void *)garbage.items.data;
        for (size_t i = 0; i < garbage.count && status == WAL_OK; i++) {
            status = work->remote->driver->calls->remove(work->remote->driver,
                                                         items[i].name, error);
            if (status == WAL_OK) {
                (*removed)++;
                work->result->bytes += items[i].size;
            }
        }
    }
    wal__buf_deinit(&garbage.items);
    return status;
}

enum wal_status wal__collect(struct wal_remote *remote, const uint8_t uuid[16],
                             int64_t now_ms, int64_t age_ms,
                             struct wal__collect_result *result,
                             struct wal_error *error)
{
    struct work work = {.remote = remote, .uuid = uuid, .result = result};
    enum wal_status status;

    wal__base_list_init(&work.base, remote->heap);
    status = find_base(&work, now_ms - age_ms, error);
    if (status == WAL_OK && work.number > 0) {
        status = remove_kind(&work, WAL__OBJECT_PART, &result->parts, error);
        if (status == WAL_OK) {
            status = remove_kind(&work, WAL__OBJECT_SEGMENT, &result->segments,
                                 error);
        }
        if (status == WAL_OK) {
            status =
                remove_kind(&work, WAL__OBJECT_BASE, &result->bases, error);
        }
    }
    if (status == WAL_OK) {
        status =
            remove_kind(&work, WAL__OBJECT_BUNDLE, &result->bundles, error);
    }
    wal__base_list_deinit(&work.base);
    return status;
}
