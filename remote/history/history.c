/*
 * history.c - what a remote has of a store (history.h).
 */
#include "remote/history/history.h"

#include <string.h>

#include "engine/base/error.h"

static struct wal__store_object object_of(const uint8_t uuid[16],
                                          enum wal__store_object_kind kind)
{
    struct wal__store_object object = {.kind = kind};

    memcpy(object.uuid, uuid, sizeof(object.uuid));
    return object;
}

enum wal_status wal__history_missing(const char *name, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                        "the remote has lost the object");
}

/* Puts the name of the object in place of that of the local file. */
static enum wal_status name_object(enum wal_status status, const char *name,
                                   struct wal_error *error)
{
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, 0, name, 0, "%s",
                                           error != NULL ? error->text : "");
}

enum wal_status wal__history_head(struct wal_remote *remote,
                                  wal__part_info_fn *info,
                                  const struct wal__store_object *part,
                                  struct wal__part_head *head,
                                  struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__part_head read = {.info = WAL_INIT(wal_part_info)};
    struct wal_slice slice;
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, remote->heap);
    status = remote->driver->calls->get(remote->driver, name, 0,
                                        WAL_PART_HEAD_SIZE, &bytes, error);
    slice = (struct wal_slice){bytes.data, bytes.size};
    if (status == WAL_OK) {
        status = wal__fence_decode(slice, name, &read.fence, error);
    }
    if (status == WAL_OK && read.fence == 0) {
        status = name_object(info(slice, &read.info, error), name, error);
        if (status == WAL_OK &&
            memcmp(read.info.uuid, part->uuid, sizeof(part->uuid)) != 0) {
            status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                                  "the part is of another store");
        }
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_OK) {
        *head = read;
    }
    return status;
}

enum wal_status wal__history_digest(struct wal_remote *remote,
                                    const struct wal__store_object *part,
                                    uint64_t size,
                                    uint8_t digest[WAL_DIGEST_SIZE],
                                    struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status = WAL_OK;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, remote->heap);
    if (size >= WAL_DIGEST_SIZE) {
        status = remote->driver->calls->get(remote->driver, name,
                                            size - WAL_DIGEST_SIZE,
                                            WAL_DIGEST_SIZE, &bytes, error);
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__history_missing(name, error);
    } else if (status == WAL_OK && bytes.size < WAL_DIGEST_SIZE) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the object is damaged: it is cut off");
    } else if (status == WAL_OK) {
        memcpy(digest, bytes.data, WAL_DIGEST_SIZE);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__history_floor(struct wal_remote *remote,
                                   const struct wal__store_object *part,
                                   uint64_t size, uint64_t *floor,
                                   struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal_slice none;
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, remote->heap);
    status = remote->driver->calls->get(
        remote->driver, name, size - WAL__PART_TRAILER_SIZE,
        WAL__PART_TRAILER_SIZE + 1, &bytes, error);
    if (status == WAL_OK) {
        status =
            wal__part_object_open((struct wal_slice){bytes.data, bytes.size},
                                  name, 0, &none, floor, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__history_has_later(struct wal_remote *remote,
                                       const struct wal__store_object *part,
                                       uint64_t last_epoch, bool *is_there,
                                       struct wal_error *error)
{
    struct wal__store_object later = *part;
    uint64_t number = 0;
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && number == 0 && later.epoch < last_epoch) {
        later.epoch++;
        status = wal__remote_next(remote, &later, 0, &number, error);
    }
    *is_there = number != 0;
    return status;
}

/* --- the end of the parts ----------------------------------------------- */

/* Reads an epoch. WAL_ENOTFOUND. */
static enum wal_status read_epoch(struct wal_remote *remote,
                                  const struct wal__store_object *object,
                                  struct wal__epoch *epoch,
                                  struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(object, name);
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, name, WAL__EPOCH_JSON_MAX, &bytes, error);
    if (status == WAL_OK) {
        status = wal__epoch_decode((struct wal_slice){bytes.data, bytes.size},
                                   name, epoch, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__history_read_epoch(struct wal_remote *remote,
                                        const uint8_t uuid[16],
                                        uint64_t *number,
                                        struct wal__epoch *epoch,
                                        struct wal_error *error)
{
    struct wal__store_object object = object_of(uuid, WAL__OBJECT_EPOCH);
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status =
        wal__remote_last(remote, &object, &object.epoch, error);

    *number = object.epoch;
    if (status == WAL_OK && object.epoch > 0) {
        status = read_epoch(remote, &object, epoch, error);
    }
    if (status == WAL_ENOTFOUND) {
        wal__store_object_format(&object, name);
        status = wal__history_missing(name, error);
    }
    return status;
}

/* Reads what history.h says of the last part. WAL_ENOTFOUND. */
static enum wal_status read_last(struct wal_remote *remote,
                                 wal__part_info_fn *info,
                                 const struct wal__store_object *part,
                                 struct wal__history *history,
                                 struct wal_error *error)
{
    struct wal__part_head head = {.fence = 0};
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status =
        wal__history_head(remote, info, part, &head, error);

    if (status == WAL_OK && head.fence != 0) {
        wal__store_object_format(part, name);
        status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the object is damaged: it is a fence, and has "
                              "the size of a part");
    }
    if (status == WAL_OK) {
        history->part_epoch = part->epoch;
        history->part = part->number;
        history->part_size = head.info.size;
        history->position = wal__position_of(head.info.after);
    }
    return status;
}

/* Reads the last part of an epoch, if it has one. */
static enum wal_status read_part(struct wal_remote *remote,
                                 wal__part_info_fn *info,
                                 struct wal__store_object *part,
                                 struct wal__history *history,
                                 struct wal_error *error)
{
    struct wal__epoch_end end;
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status = wal__epoch_end_find(remote, part, &end, error);

    if (status == WAL_OK && part->epoch == history->last_epoch) {
        history->end = end;
    }
    if (status != WAL_OK || end.part == 0) {
        return status;
    }
    part->number = end.part;
    status = read_last(remote, info, part, history, error);
    if (status == WAL_ENOTFOUND) {
        wal__store_object_format(part, name);
        status = wal__history_missing(name, error);
    }
    return status;
}

enum wal_status
wal__history_read_last(struct wal_remote *remote, wal__part_info_fn *info,
                       const uint8_t uuid[16], uint64_t epoch, uint64_t number,
                       struct wal__history *history, struct wal_error *error)
{
    struct wal__store_object part = object_of(uuid, WAL__OBJECT_PART);
    struct wal__store_object made = object_of(uuid, WAL__OBJECT_EPOCH);
    struct wal__history read = {.last_epoch = epoch,
                                .end = {.number = number, .part = number}};
    bool is_there = false;
    enum wal_status status;

    made.epoch = epoch + 1;
    part.epoch = epoch;
    part.number = number + 1;
    status = wal__remote_has(remote, &made, &is_there, error);
    if (status == WAL_OK && !is_there) {
        status = wal__remote_has(remote, &part, &is_there, error);
    }
    if (status != WAL_OK || is_there) {
        return status == WAL_OK ? WAL_END : status;
    }
    made.epoch = epoch;
    part.number = number;
    status = read_epoch(remote, &made, &read.writer, error);
    if (status == WAL_OK) {
        status = read_last(remote, info, &part, &read, error);
    }
    if (status == WAL_OK) {
        *history = read;
    }
    return status == WAL_ENOTFOUND ? WAL_END : status;
}

enum wal_status wal__history_read(struct wal_remote *remote,
                                  wal__part_info_fn *info,
                                  const uint8_t uuid[16],
                                  struct wal__history *history,
                                  struct wal_error *error)
{
    struct wal__store_object part = object_of(uuid, WAL__OBJECT_PART);
    struct wal__history read = {.last_epoch = 0};
    enum wal_status status = wal__history_read_epoch(
        remote, uuid, &read.last_epoch, &read.writer, error);

    /* The writer of an epoch with a part has fenced those before it. */
    for (part.epoch = read.last_epoch;
         status == WAL_OK && part.epoch > 0 && read.part == 0; part.epoch--) {
        part.number = part.epoch == history->part_epoch ? history->part : 0;
        status = read_part(remote, info, &part, &read, error);
    }
    if (status == WAL_OK) {
        *history = read;
    }
    return status;
}
