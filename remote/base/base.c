/*
 * base.c - reads and makes bases, and removes what they replace (base.h).
 */
#include "remote/base/base.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/system.h"
#include "remote/history/remote.h"

enum wal_status wal__base_read(struct wal_remote *remote, const uint8_t uuid[16], uint64_t number,
                               struct wal__base_list *list, struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_BASE, uuid, 0, number);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(&object, name);
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, name, WAL__BASE_JSON_MAX, &bytes, error);
    if (status == WAL_OK) {
        status =
            wal__base_list_decode((struct wal_slice){bytes.data, bytes.size}, name, list, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__base_read_last(struct wal_remote *remote, const uint8_t uuid[16],
                                    uint64_t *number, struct wal__base_list *list,
                                    struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_BASE, uuid, 0, 0);
    char name[WAL__STORE_OBJECT_SIZE];
    uint64_t found = 0;
    enum wal_status status;

    /* It is removed when there is a newer one. */
    do {
        object.number = found;
        status = wal__remote_last(remote, &object, &found, error);
        if (status == WAL_OK && found > 0) {
            status = wal__base_read(remote, uuid, found, list, error);
        }
    } while (status == WAL_ENOTFOUND && found != object.number);
    if (status == WAL_ENOTFOUND) {
        wal__store_object_format(&object, name);
        return wal__history_missing(name, error);
    }
    if (status == WAL_OK) {
        *number = found;
    }
    return status;
}

struct wal__store_object wal__base_object(const uint8_t uuid[16], const struct wal__base_list *list,
                                          size_t at)
{
    const struct wal__base_segment *segment = wal__base_list_at(list, at);
    struct wal__store_object object =
        wal__store_object_of(WAL__OBJECT_SEGMENT, uuid, 0, segment->number);

    memcpy(object.id, segment->id, sizeof(object.id));
    return object;
}

bool wal__base_index(const uint8_t uuid[16], const struct wal__base_list *list, size_t at,
                     struct wal__store_object *object)
{
    *object = wal__base_object(uuid, list, at);
    object->kind = WAL__OBJECT_INDEX;
    return at == 0 || wal__base_list_at(list, at - 1)->number != object->number;
}

enum wal_status wal__base_items(const uint8_t uuid[16], const struct wal__base_list *list,
                                size_t first, struct wal__buf *items, struct wal_error *error)
{
    for (size_t i = first; i < wal__base_list_count(list); i++) {
        const struct wal__store_object object = wal__base_object(uuid, list, i);
        /* Its size is not known: at most one is read ahead of the next. */
        struct wal__fetch_item item = {.size = WAL__FETCH_BYTES / 2};

        wal__store_object_format(&object, item.name);
        if (wal__buf_append(items, &item, sizeof(item)) != WAL_OK) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

enum wal_status wal__base_head(struct wal_remote *remote, wal__part_info_fn *info,
                               const uint8_t uuid[16], const struct wal__base_list *list, size_t at,
                               struct wal_part_info *segment, struct wal_error *error)
{
    const struct wal__store_object object = wal__base_object(uuid, list, at);
    struct wal__part_head head = {.fence = 0};
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status = wal__history_head(remote, info, &object, &head, error);

    wal__store_object_format(&object, name);
    if (status == WAL_OK && head.fence != 0) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the object is damaged: it is not a segment");
    }
    if (status == WAL_OK) {
        *segment = head.info;
    }
    return status;
}

/* --- collection ----------------------------------------------------------- */

/*
 * A base is made of the one before it: what it names of the segments that were made for that, or
 * for an older one, that names too. So the list of the base that is kept says which segments are
 * kept, up to its number. Those that it does not name are of older bases, or of processes that did
 * not finish.
 */

enum {
    PAGE = 1000 /* objects that are removed after a listing */
};

struct collecting {
    struct wal_remote *remote;
    const uint8_t *uuid;
    uint64_t number;            /* of the base that is kept; 0: none */
    struct wal__base_list base; /* it, its segments sorted */
    struct wal__collect_result *result;
};

static struct wal__store_object object_of(const struct collecting *work,
                                          enum wal__store_object_kind kind)
{
    struct wal__store_object object = wal__store_object_of(kind, work->uuid, 0, 0);

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

/* Finds the newest base that is old enough: the last one before the first that is not. */
static enum wal_status find_base(struct collecting *work, int64_t created_ms,
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
    const struct collecting *work;
    struct wal__buf items; /* struct wal__fetch_item */
    size_t count;
    char last[WAL__STORE_OBJECT_SIZE]; /* the name that was seen last */
    bool is_end;                       /* nothing more is to be removed after them */
    enum wal_status status;
};

/* Whether the object may be removed. Sets garbage->is_end at the first one after all that may. */
typedef bool judge_fn(struct garbage *garbage, const struct wal__store_object *object,
                      uint64_t size);

/* A fence is smaller than any part. */
static bool judge_part(struct garbage *garbage, const struct wal__store_object *part, uint64_t size)
{
    const struct wal__base_list *base = &garbage->work->base;

    garbage->is_end = part->epoch > base->epoch ||
                      (part->epoch == base->epoch && part->number + WAL__PART_WINDOW > base->part);
    return !garbage->is_end && size > WAL__FENCE_JSON_MAX;
}

/* One that was made for a newer base may be named yet. Indexes have the name of one. */
static bool judge_segment(struct garbage *garbage, const struct wal__store_object *object,
                          uint64_t size)
{
    const struct wal__base_list *base = &garbage->work->base;
    struct wal__base_segment segment = {.number = object->number};

    (void)size;
    memcpy(segment.id, object->id, sizeof(segment.id));
    garbage->is_end = object->number > garbage->work->number;
    return !garbage->is_end && bsearch(&segment, base->segments.data, wal__base_list_count(base),
                                       sizeof(segment), compare) == NULL;
}

static bool judge_base(struct garbage *garbage, const struct wal__store_object *base, uint64_t size)
{
    (void)size;
    garbage->is_end = base->number >= garbage->work->number;
    return !garbage->is_end;
}

/* It is a shortcut: without it the store is pulled. */
static bool judge_bundle(struct garbage *garbage, const struct wal__store_object *bundle,
                         uint64_t size)
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
                                       [WAL__OBJECT_BUNDLE] = judge_bundle,
                                       [WAL__OBJECT_INDEX] = judge_segment};
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
    return !garbage->is_end && garbage->status == WAL_OK && garbage->count < PAGE;
}

/* Lists what is to be removed of a kind, after garbage->last. */
static enum wal_status list_garbage(struct garbage *garbage, enum wal__store_object_kind kind,
                                    struct wal_error *error)
{
    const struct collecting *work = garbage->work;
    const struct wal__store_object object = object_of(work, kind);
    char prefix[WAL__STORE_OBJECT_SIZE];
    char after[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    wal__store_object_prefix(&object, prefix);
    memcpy(after, garbage->last, sizeof(after));
    garbage->items.size = 0;
    garbage->count = 0;
    status =
        work->remote->driver->calls->list(work->remote->driver, prefix, after, see, garbage, error);
    return status == WAL_OK && garbage->status != WAL_OK ? wal__no_memory(error) : status;
}

/* Removes all objects of the kind that may be removed. */
static enum wal_status remove_kind(struct collecting *work, enum wal__store_object_kind kind,
                                   uint64_t *removed, struct wal_error *error)
{
    struct garbage garbage = {.work = work, .count = PAGE};
    enum wal_status status = WAL_OK;

    wal__buf_init(&garbage.items, work->remote->heap);
    while (status == WAL_OK && garbage.count == PAGE && !garbage.is_end) {
        const struct wal__fetch_item *items;

        status = list_garbage(&garbage, kind, error);
        items = (const struct wal__fetch_item *)(const void *)garbage.items.data;
        for (size_t i = 0; i < garbage.count && status == WAL_OK; i++) {
            status =
                work->remote->driver->calls->remove(work->remote->driver, items[i].name, error);
            if (status == WAL_OK) {
                (*removed)++;
                work->result->bytes += items[i].size;
            }
        }
    }
    wal__buf_deinit(&garbage.items);
    return status;
}

enum wal_status wal__collect(struct wal_remote *remote, const uint8_t uuid[16], int64_t now_ms,
                             int64_t age_ms, struct wal__collect_result *result,
                             struct wal_error *error)
{
    struct collecting work = {.remote = remote, .uuid = uuid, .result = result};
    enum wal_status status;

    wal__base_list_init(&work.base, remote->heap);
    status = find_base(&work, now_ms - age_ms, error);
    if (status == WAL_OK && work.number > 0) {
        status = remove_kind(&work, WAL__OBJECT_PART, &result->parts, error);
        /* The lists first: killed here, none names a segment that is gone. */
        if (status == WAL_OK) {
            status = remove_kind(&work, WAL__OBJECT_BASE, &result->bases, error);
        }
        if (status == WAL_OK) {
            status = remove_kind(&work, WAL__OBJECT_SEGMENT, &result->segments, error);
        }
        if (status == WAL_OK) {
            status = remove_kind(&work, WAL__OBJECT_INDEX, &result->indexes, error);
        }
    }
    if (status == WAL_OK) {
        status = remove_kind(&work, WAL__OBJECT_BUNDLE, &result->bundles, error);
    }
    wal__base_list_deinit(&work.base);
    return status;
}

/* --- making bases --------------------------------------------------------- */

/*
 * A segment is stored before the base that names it. Its name is random, so that two processes that
 * make the same base do not get in each other's way: one of them creates the list.
 */

enum {
    MERGED = 1024 * 1024 /* bytes: smaller segments are always made anew */
};

struct work {
    struct wal_remote *remote;
    const struct wal__part_source *source;
    const uint8_t *uuid;
    const struct wal__base_end *end;
    uint64_t number;               /* of the base that is made */
    struct wal__base_list list;    /* the last one, then the new one */
    struct wal__position position; /* to which it leads */
    struct wal__buf indexes;       /* of its new segments */
    struct wal__base_result *result;
};

/*
 * Leaves out the segments at the end of the list that are no larger than what comes after them, so
 * that all of them are few: each byte is stored a number of times that grows with the logarithm of
 * their size.
 */
static enum wal_status keep_segments(struct work *work, struct wal_error *error)
{
    size_t count = wal__base_list_count(&work->list);
    uint64_t after = MERGED;
    enum wal_status status = WAL_OK;

    while (count > 0) {
        struct wal_part_info info = WAL_INIT(wal_part_info);

        status = wal__base_head(work->remote, work->source->info, work->uuid, &work->list,
                                count - 1, &info, error);
        if (status == WAL_ENOTFOUND) {
            /* Lost, or another process has made a base meanwhile. */
            work->list.segments.size = 0;
            return WAL_OK;
        }
        if (status != WAL_OK) {
            return status;
        }
        if (info.size > after) {
            work->position = wal__position_of(info.after);
            break;
        }
        after += info.size;
        if (after > WAL__BASE_SEGMENT_SIZE) {
            after = WAL__BASE_SEGMENT_SIZE;
        }
        count--;
    }
    work->list.segments.size = count * sizeof(struct wal__base_segment);
    return status;
}

static enum wal_status add_segment(struct work *work, struct wal_slice part,
                                   struct wal_error *error)
{
    struct wal__base_segment segment = {.number = work->number};
    struct wal__store_object object;
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf found;
    enum wal_status status;

    wal__system_random(segment.id, sizeof(segment.id));
    status = wal__base_list_add(&work->list, &segment);
    if (status == WAL_ENOMEM) {
        return wal__no_memory(error);
    }
    if (status != WAL_OK || part.size > WAL__OBJECT_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "the store is too large for a base");
    }
    object = wal__base_object(work->uuid, &work->list, wal__base_list_count(&work->list) - 1);
    wal__store_object_format(&object, name);
    wal__buf_init(&found, work->remote->heap);
    status = wal__remote_create(work->remote, name, part, &found, error);
    wal__buf_deinit(&found);
    if (status == WAL_OK) {
        work->result->segments++;
        work->result->bytes += part.size;
    }
    return status;
}

/* Takes the index of what ended before the segment that was read last. Without it a reader of few
 * bytes reads more. */
static enum wal_status add_index(struct work *work, struct wal_error *error)
{
    struct wal_slice index = {NULL, 0};
    enum wal_status status = work->source->index == NULL
                                 ? WAL_OK
                                 : work->source->index(work->source->ctx, &index, error);

    if (status == WAL_OK && index.size <= WAL__BASE_INDEX_SIZE - work->indexes.size &&
        wal__buf_append(&work->indexes, index.data, (size_t)index.size) != WAL_OK) {
        status = wal__no_memory(error);
    }
    return status;
}

/* Stores the indexes, under the name of the first segment that was made with them. */
static enum wal_status store_indexes(struct work *work, struct wal_error *error)
{
    const size_t first = wal__base_list_count(&work->list) - work->result->segments;
    struct wal__store_object object;
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf found;
    enum wal_status status;

    if (work->indexes.size == 0) {
        return WAL_OK;
    }
    (void)wal__base_index(work->uuid, &work->list, first, &object);
    wal__store_object_format(&object, name);
    wal__buf_init(&found, work->remote->heap);
    status = wal__remote_create(work->remote, name,
                                (struct wal_slice){work->indexes.data, work->indexes.size}, &found,
                                error);
    wal__buf_deinit(&found);
    return status;
}

/* Reads the log from the last segment that is kept up to the end. */
static enum wal_status add_segments(struct work *work, struct wal_error *error)
{
    const struct wal__part_source *source = work->source;
    enum wal_status status = WAL_OK;

    while (status == WAL_OK) {
        struct wal_part_info info = WAL_INIT(wal_part_info);
        struct wal_slice part = {NULL, 0};
        const bool is_first = wal__position_is_empty(&work->position);

        status = source->next_to(source->ctx, is_first ? NULL : &work->position,
                                 &work->end->position, WAL__BASE_SEGMENT_SIZE, &part, &info, error);
        if (status == WAL_OK) {
            status = add_index(work, error);
        }
        if (status == WAL_OK) {
            status = add_segment(work, part, error);
            work->position = wal__position_of(info.after);
        }
    }
    return status;
}

/* Creates the list. WAL_EEXISTS: another process has made the base. */
static enum wal_status create_list(struct work *work, struct wal_error *error)
{
    struct wal__store_object object =
        wal__store_object_of(WAL__OBJECT_BASE, work->uuid, 0, work->number);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    struct wal__buf found;
    enum wal_status status;

    wal__store_object_format(&object, name);
    work->list.created_ms = wal__machine_unix_ms();
    work->list.epoch = work->end->epoch;
    work->list.part = work->end->part;
    wal__buf_init(&json, work->remote->heap);
    wal__buf_init(&found, work->remote->heap);
    status = wal__base_list_encode(&work->list, &json);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status = wal__remote_create(work->remote, name, (struct wal_slice){json.data, json.size},
                                    &found, error);
    }
    wal__buf_deinit(&json);
    wal__buf_deinit(&found);
    return status;
}

/* WAL_END: none is made. */
static enum wal_status make(struct work *work, enum wal__base_kind kind, struct wal_error *error)
{
    const struct wal__base_end *end = work->end;
    const bool is_anew = kind != WAL__BASE_NEXT;
    bool has_end;
    bool is_same;
    enum wal_status status =
        wal__base_read_last(work->remote, work->uuid, &work->number, &work->list, error);

    if (status != WAL_OK) {
        return status;
    }
    has_end = work->number > 0 && wal__base_has(&work->list, end->epoch, end->part);
    is_same = end->epoch == work->list.epoch && end->part == work->list.part;
    if (has_end && !(is_anew && is_same)) {
        return WAL_END;
    }
    work->number++;
    if (is_anew) {
        work->list.segments.size = 0;
        if (kind == WAL__BASE_ERASED) {
            work->list.erased = work->number;
        }
    } else {
        status = keep_segments(work, error);
    }
    if (status == WAL_OK) {
        status = add_segments(work, error);
    }
    if (status != WAL_END) {
        return status == WAL_EBUSY ? WAL_END : status;
    }
    if (!wal__position_equal(&work->position, &work->end->position)) {
        return WAL_END;
    }
    status = store_indexes(work, error);
    if (status == WAL_OK) {
        status = create_list(work, error);
    }
    return status == WAL_EEXISTS ? WAL_END : status;
}

enum wal_status wal__base_make(struct wal_remote *remote, const struct wal__part_source *source,
                               const uint8_t uuid[16], const struct wal__base_end *end,
                               enum wal__base_kind kind, struct wal__base_result *result,
                               struct wal_error *error)
{
    struct work work = {
        .remote = remote, .source = source, .uuid = uuid, .end = end, .result = result};
    enum wal_status status;

    *result = (struct wal__base_result){.number = 0};
    if (end->part == 0) {
        return WAL_OK;
    }
    wal__base_list_init(&work.list, remote->heap);
    wal__buf_init(&work.indexes, remote->heap);
    status = make(&work, kind, error);
    wal__buf_deinit(&work.indexes);
    wal__base_list_deinit(&work.list);
    if (status == WAL_OK) {
        result->number = work.number;
    }
    return status == WAL_END ? WAL_OK : status;
}

/* --- when --------------------------------------------------------------- */

/* Counts the parts from part->number on, until a base is due. */
static enum wal_status count_parts(struct wal_remote *remote, struct wal__store_object *part,
                                   uint64_t last_epoch, uint64_t *parts, struct wal_error *error)
{
    struct wal__part_page page;
    enum wal_status status = WAL_OK;

    wal__part_page_init(&page, remote->heap);
    while (status == WAL_OK && part->epoch <= last_epoch && *parts < WAL__BASE_PARTS) {
        status = wal__part_page_read(remote, part, &page, error);
        *parts += page.count;
        part->epoch++;
        part->number = 1;
    }
    wal__part_page_deinit(&page);
    return status;
}

enum wal_status wal__base_count_parts(struct wal_remote *remote, const uint8_t uuid[16],
                                      const struct wal__base_end *end, uint64_t *parts,
                                      struct wal_error *error)
{
    struct wal__store_object part = wal__store_object_of(WAL__OBJECT_PART, uuid, 1, 1);
    struct wal__base_list list;
    uint64_t count = 0;
    uint64_t number = 0;
    enum wal_status status;

    wal__base_list_init(&list, remote->heap);
    status = wal__base_read_last(remote, uuid, &number, &list, error);
    if (status == WAL_OK && number > 0) {
        part.epoch = list.epoch;
        part.number = list.part + 1;
    }
    wal__base_list_deinit(&list);
    if (status == WAL_OK) {
        status = count_parts(remote, &part, end->epoch, &count, error);
    }
    if (status == WAL_OK) {
        *parts = count;
    }
    return status;
}
