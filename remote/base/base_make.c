/*
 * base_make.c - makes bases (base_make.h).
 *
 * A segment is stored before the base that names it. Its name is random, so
 * that two processes that make the same base do not get in each other's way:
 * one of them creates the list.
 */
#include "remote/base/base_make.h"

#include <string.h>

#include "engine/base/error.h"
#include "remote/base/collect.h"
#include "remote/history/machine.h"
#include "remote/history/part_page.h"

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
    struct wal__base_result *result;
};

/*
 * Leaves out the segments at the end of the list that are no larger than what
 * comes after them, so that all of them are few: each byte is stored a number
 * of times that grows with the logarithm of their size.
 */
static enum wal_status keep_segments(struct work *work, struct wal_error *error)
{
    size_t count = wal__base_list_count(&work->list);
    uint64_t after = MERGED;
    enum wal_status status = WAL_OK;

    while (count > 0) {
        struct wal_part_info info = WAL_INIT(wal_part_info);

        status = wal__base_head(work->remote, work->source->info, work->uuid,
                                &work->list, count - 1, &info, error);
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
    enum wal_status status = wal__machine_random(segment.id, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__base_list_add(&work->list, &segment);
    if (status == WAL_ENOMEM) {
        return wal__no_memory(error);
    }
    if (status != WAL_OK || part.size > WAL__OBJECT_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the store is too large for a base");
    }
    object = wal__base_object(work->uuid, &work->list,
                              wal__base_list_count(&work->list) - 1);
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
                                 &work->end->position, WAL__BASE_SEGMENT_SIZE,
                                 &part, &info, error);
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
    struct wal__store_object object = {.kind = WAL__OBJECT_BASE,
                                       .number = work->number};
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    struct wal__buf found;
    enum wal_status status;

    memcpy(object.uuid, work->uuid, sizeof(object.uuid));
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
        status = wal__remote_create(work->remote, name,
                                    (struct wal_slice){json.data, json.size},
                                    &found, error);
    }
    wal__buf_deinit(&json);
    wal__buf_deinit(&found);
    return status;
}

/* WAL_END: none is made. */
static enum wal_status make(struct work *work, enum wal__base_kind kind,
                            struct wal_error *error)
{
    const struct wal__base_end *end = work->end;
    const bool is_anew = kind != WAL__BASE_NEXT;
    bool has_end;
    bool is_same;
    enum wal_status status = wal__base_read_last(
        work->remote, work->uuid, &work->number, &work->list, error);

    if (status != WAL_OK) {
        return status;
    }
    has_end =
        work->number > 0 && wal__base_has(&work->list, end->epoch, end->part);
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
    status = create_list(work, error);
    return status == WAL_EEXISTS ? WAL_END : status;
}

enum wal_status
wal__base_make(struct wal_remote *remote, const struct wal__part_source *source,
               const uint8_t uuid[16], const struct wal__base_end *end,
               enum wal__base_kind kind, struct wal__base_result *result,
               struct wal_error *error)
{
    struct work work = {.remote = remote,
                        .source = source,
                        .uuid = uuid,
                        .end = end,
                        .result = result};
    enum wal_status status;

    *result = (struct wal__base_result){.number = 0};
    if (end->part == 0) {
        return WAL_OK;
    }
    wal__base_list_init(&work.list, remote->heap);
    status = make(&work, kind, error);
    wal__base_list_deinit(&work.list);
    if (status == WAL_OK) {
        result->number = work.number;
    }
    return status == WAL_END ? WAL_OK : status;
}

/* --- when --------------------------------------------------------------- */

/* Counts the parts from part->number on, until a base is due. */
static enum wal_status count_parts(struct wal_remote *remote,
                                   struct wal__store_object *part,
                                   uint64_t last_epoch, uint64_t *parts,
                                   struct wal_error *error)
{
    struct wal__part_page page;
    enum wal_status status = WAL_OK;

    wal__part_page_init(&page, remote->heap);
    while (status == WAL_OK && part->epoch <= last_epoch &&
           *parts < WAL__BASE_PARTS) {
        status = wal__part_page_read(remote, part, &page, error);
        *parts += page.count;
        part->epoch++;
        part->number = 1;
    }
    wal__part_page_deinit(&page);
    return status;
}

enum wal_status wal__base_count_parts(struct wal_remote *remote,
                                      const uint8_t uuid[16],
                                      const struct wal__base_end *end,
                                      uint64_t *parts, struct wal_error *error)
{
    struct wal__store_object part = {
        .kind = WAL__OBJECT_PART, .epoch = 1, .number = 1};
    struct wal__base_list list;
    uint64_t count = 0;
    uint64_t number = 0;
    enum wal_status status;

    memcpy(part.uuid, uuid, sizeof(part.uuid));
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
