/*
 * base.c - reads bases (base.h).
 */
#include "remote/base/base.h"

#include <string.h>

#include "engine/base/error.h"

enum wal_status wal__base_read(struct wal_remote *remote,
                               const uint8_t uuid[16], uint64_t number,
                               struct wal__base_list *list,
                               struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_BASE,
                                       .number = number};
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    memcpy(object.uuid, uuid, sizeof(object.uuid));
    wal__store_object_format(&object, name);
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, name, WAL__BASE_JSON_MAX, &bytes, error);
    if (status == WAL_OK) {
        status = wal__base_list_decode(
            (struct wal_slice){bytes.data, bytes.size}, name, list, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__base_read_last(struct wal_remote *remote,
                                    const uint8_t uuid[16], uint64_t *number,
                                    struct wal__base_list *list,
                                    struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_BASE};
    char name[WAL__STORE_OBJECT_SIZE];
    uint64_t found = 0;
    enum wal_status status;

    memcpy(object.uuid, uuid, sizeof(object.uuid));
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

struct wal__store_object wal__base_object(const uint8_t uuid[16],
                                          const struct wal__base_list *list,
                                          size_t at)
{
    const struct wal__base_segment *segment = wal__base_list_at(list, at);
    struct wal__store_object object = {.kind = WAL__OBJECT_SEGMENT,
                                       .number = segment->number};

    memcpy(object.uuid, uuid, sizeof(object.uuid));
    memcpy(object.id, segment->id, sizeof(object.id));
    return object;
}

enum wal_status wal__base_items(const uint8_t uuid[16],
                                const struct wal__base_list *list, size_t first,
                                struct wal__buf *items, struct wal_error *error)
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

enum wal_status wal__base_head(struct wal_remote *remote,
                               wal__part_info_fn *info, const uint8_t uuid[16],
                               const struct wal__base_list *list, size_t at,
                               struct wal_part_info *segment,
                               struct wal_error *error)
{
    const struct wal__store_object object = wal__base_object(uuid, list, at);
    struct wal__part_head head = {.fence = 0};
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status =
        wal__history_head(remote, info, &object, &head, error);

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
