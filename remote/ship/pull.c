/*
 * pull.c - applying parts to a replica, in order (pull.h): those of each epoch,
 * from 1, up to its fence.
 *
 * An epoch without a fence is the newest one that has parts.
 */
#include "remote/ship/pull.h"

#include <string.h>

#include "engine/base/error.h"

static struct wal_slice slice_of(const struct wal__buf *bytes)
{
    return (struct wal_slice){bytes->data, bytes->size};
}

void wal__pull_deinit(struct wal__pull *pull)
{
    wal__buf_deinit(&pull->bytes);
}

/* Applies the bytes that were read. An error of the bytes names the object.
 * Counts them, unless they had been applied before. */
static enum wal_status apply(struct wal__pull *pull, const char *name,
                             struct wal_error *error)
{
    const struct wal__part_target *target = &pull->target;
    struct wal__position before = {{{0}}};
    struct wal__position after = {{{0}}};
    struct wal_error own = WAL_INIT(wal_error);
    enum wal_status status = target->position(target->ctx, &before, &own);

    if (status == WAL_OK) {
        status = target->apply(target->ctx, slice_of(&pull->bytes), &own);
    }
    if (status == WAL_ECORRUPT || status == WAL_EVERSION) {
        return wal__fail_at(error, status, 0, name, own.offset, "%s", own.text);
    }
    if (status == WAL_ECONFLICT) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the object does not follow those before it: %s",
                            own.text);
    }
    if (status == WAL_OK) {
        status = target->position(target->ctx, &after, &own);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    } else if (!wal__position_is_within(&after, &before)) {
        pull->result.bytes += pull->bytes.size;
        pull->result.parts++;
    }
    return status;
}

/* --- parts -------------------------------------------------------------- */

/* Looks whether anything follows the object, which is not there. */
static enum wal_status find_later(struct wal__pull *pull,
                                  const struct wal__store_object *part,
                                  uint64_t last_epoch, bool *is_there,
                                  struct wal_error *error)
{
    struct wal__store_object later = *part;
    uint64_t number = 0;
    enum wal_status status =
        wal__remote_next(pull->remote, &later, part->number, &number, error);

    while (status == WAL_OK && number == 0 && later.epoch < last_epoch) {
        later.epoch++;
        status = wal__remote_next(pull->remote, &later, 0, &number, error);
    }
    *is_there = number != 0;
    return status;
}

/* Applies an object in the place of a part. WAL_END: it is a fence. */
static enum wal_status apply_part(struct wal__pull *pull,
                                  const struct wal__store_object *part,
                                  struct wal_error *error)
{
    uint64_t fence = 0;
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    wal__store_object_format(part, name);
    status = wal__remote_get(pull->remote, name, WAL__OBJECT_MAX, &pull->bytes,
                             error);
    if (status == WAL_OK) {
        status = wal__fence_decode(slice_of(&pull->bytes), name, &fence, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (fence != 0) {
        return WAL_END;
    }
    pull->result.epoch = part->epoch;
    pull->result.part = part->number;
    return apply(pull, name, error);
}

/* After WAL_ENOTFOUND: WAL_END where the parts end, WAL_OK to read the part
 * again, which may have come meanwhile with others. */
static enum wal_status check_end(struct wal__pull *pull,
                                 const struct wal__store_object *part,
                                 uint64_t last_epoch, bool was_there,
                                 struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    bool is_there = false;
    enum wal_status status;

    if (was_there) {
        wal__store_object_format(part, name);
        return wal__history_missing(name, error);
    }
    status = find_later(pull, part, last_epoch, &is_there, error);
    return status == WAL_OK && !is_there ? WAL_END : status;
}

static enum wal_status apply_parts(struct wal__pull *pull,
                                   struct wal__store_object *part,
                                   uint64_t last_epoch, struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    bool has_later = false;

    while (part->epoch <= last_epoch) {
        enum wal_status status = apply_part(pull, part, &own);

        if (status == WAL_ENOTFOUND) {
            status = check_end(pull, part, last_epoch, has_later, error);
            if (status != WAL_OK) {
                return status == WAL_END ? WAL_OK : status;
            }
            has_later = true;
            continue;
        }
        has_later = false;
        if (status == WAL_END) {
            part->epoch++;
            part->number = 1;
        } else if (status == WAL_OK) {
            part->number++;
        } else {
            wal__error_copy(error, &own);
            return status;
        }
    }
    return WAL_OK;
}

/* --- all of it ---------------------------------------------------------- */

/* Finds the part from which the target goes on. */
static enum wal_status start(struct wal__pull *pull, uint64_t last_epoch,
                             struct wal__store_object *part,
                             struct wal_error *error)
{
    struct wal__position position = {{{0}}};
    enum wal_status status =
        pull->target.position(pull->target.ctx, &position, error);

    part->epoch = 1;
    part->number = 1;
    return status == WAL_OK && !wal__position_is_empty(&position)
               ? wal__pull_find_start(pull, &position, part->epoch, last_epoch,
                                      part, error)
               : status;
}

enum wal_status wal__pull_run(struct wal__pull *pull, struct wal_error *error)
{
    struct wal__store_object part = {.kind = WAL__OBJECT_PART};
    struct wal__position position = {{{0}}};
    struct wal__store_object epochs = {.kind = WAL__OBJECT_EPOCH};
    uint64_t last_epoch = 0;
    enum wal_status status;

    memcpy(part.uuid, pull->uuid, sizeof(part.uuid));
    memcpy(epochs.uuid, pull->uuid, sizeof(epochs.uuid));
    pull->bytes.heap = pull->remote->heap;
    memcpy(pull->result.uuid, pull->uuid, sizeof(pull->result.uuid));
    status = wal__remote_last(pull->remote, &epochs, &last_epoch, error);
    if (status == WAL_OK && last_epoch == 0) {
        status = wal__fail(error, WAL_ENOTFOUND,
                           "the remote has no store of this id");
    }
    if (status == WAL_OK) {
        status = start(pull, last_epoch, &part, error);
    }
    if (status == WAL_OK) {
        status = apply_parts(pull, &part, last_epoch, error);
    }
    if (status == WAL_OK) {
        status = pull->target.position(pull->target.ctx, &position, error);
    }
    if (status == WAL_OK) {
        pull->result.sequence = position.places[WAL_PART_LOG].sequence;
    }
    return status;
}
