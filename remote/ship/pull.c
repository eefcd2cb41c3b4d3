/*
 * pull.c - applying segments and parts to a replica, in order (pull.h).
 *
 *   the segments of the newest base that counts
 *   the parts of its epoch after its mark, up to the fence
 *   the parts of each epoch after it, from 1, up to the fence
 *
 * An epoch without a fence is the newest one that has parts.
 */
#include "remote/ship/pull.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/base/sha256.h"

static struct wal_slice slice_of(const struct wal__buf *bytes)
{
    return (struct wal_slice){bytes->data, bytes->size};
}

void wal__pull_deinit(struct wal__pull *pull)
{
    wal__buf_deinit(&pull->bytes);
}

static enum wal_status report_older(struct wal_error *error)
{
    return wal__fail(error, WAL_ECONFLICT,
                     "the replica is older than what the remote keeps parts "
                     "of; pull to an empty directory");
}

/* Applies the bytes that were read. An error of the bytes names the object.
 * Counts them, unless they had been applied before. */
static enum wal_status apply(struct wal__pull *pull, const char *name,
                             uint64_t *count, struct wal_error *error)
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
    if (status == WAL_ECONFLICT && pull->may_be_older) {
        return report_older(error);
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
        ++*count;
    }
    return status;
}

/* --- segments ----------------------------------------------------------- */

static enum wal_status apply_segment(struct wal__pull *pull,
                                     struct wal__sha256_alg *sha256,
                                     const struct wal__base_segment *segment,
                                     struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_SEGMENT,
                                       .stream = segment->stream,
                                       .segment = segment->segment,
                                       .identity = segment->identity};
    struct wal__digest digest = {{0}};
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    memcpy(object.uuid, pull->uuid, sizeof(object.uuid));
    wal__store_object_format(&object, name);
    status = wal__remote_get(pull->remote, name, WAL__OBJECT_MAX, &pull->bytes,
                             error);
    if (status == WAL_ENOTFOUND) {
        return wal__history_missing(name, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__sha256(sha256,
                    (struct wal__span){pull->bytes.data, pull->bytes.size},
                    &digest) != WAL_OK) {
        return wal__no_memory(error);
    }
    if (pull->bytes.size != segment->size ||
        !wal__digest_equal(&digest, &segment->digest)) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the segment is not the one that the base lists");
    }
    return apply(pull, name, &pull->result.segments, error);
}

static enum wal_status apply_base(struct wal__pull *pull,
                                  const struct wal__base *base,
                                  struct wal_error *error)
{
    struct wal__sha256_alg sha256;
    enum wal_status status = WAL_OK;

    wal__sha256_alg_init(&sha256);
    for (uint32_t i = 0; status == WAL_OK && i < base->count; i++) {
        status = apply_segment(pull, &sha256, &base->segments[i], error);
    }
    wal__sha256_alg_deinit(&sha256);
    return status;
}

/* --- parts -------------------------------------------------------------- */

/* A base among the parts that are applied: everything in it must be there. */
static enum wal_status pass_base(struct wal__pull *pull, uint64_t number,
                                 struct wal_error *error)
{
    struct wal__position position = {{{0}}};
    struct wal__base base = {.count = 0};
    enum wal_status status =
        wal__history_base(pull->remote, pull->uuid, number, &base, error);

    if (status == WAL_OK) {
        status = pull->target.position(pull->target.ctx, &position, error);
        if (status == WAL_OK &&
            !wal__position_is_within(&base.position, &position)) {
            status = report_older(error);
        }
        wal__base_deinit(&base, pull->remote->heap);
    }
    return status;
}

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
    struct wal__mark mark = {.kind = WAL__MARK_NONE};
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    wal__store_object_format(part, name);
    status = wal__remote_get(pull->remote, name, WAL__OBJECT_MAX, &pull->bytes,
                             error);
    if (status == WAL_OK) {
        status = wal__mark_decode(slice_of(&pull->bytes), name, &mark, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (mark.kind == WAL__MARK_FENCE) {
        return WAL_END;
    }
    pull->result.epoch = part->epoch;
    pull->result.part = part->number;
    if (mark.kind == WAL__MARK_BASE) {
        return pass_base(pull, mark.number, error);
    }
    return apply(pull, name, &pull->result.parts, error);
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

/* Applies the base where the target lacks it, and finds the part after it. */
static enum wal_status start(struct wal__pull *pull, uint64_t last_epoch,
                             struct wal__store_object *part,
                             struct wal_error *error)
{
    struct wal__position position = {{{0}}};
    struct wal__base base = {.count = 0};
    bool is_empty;
    enum wal_status status =
        pull->target.position(pull->target.ctx, &position, error);

    if (status == WAL_OK) {
        status = wal__history_last_base(pull->remote, pull->target.info,
                                        pull->uuid, &base, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    is_empty = wal__position_is_empty(&position);
    if (base.number > 0 &&
        !wal__position_is_within(&base.position, &position)) {
        pull->may_be_older = !is_empty;
        status = apply_base(pull, &base, error);
        pull->may_be_older = false;
        is_empty = true;
    }
    part->epoch = base.number > 0 ? base.epoch : 1;
    part->number = base.number > 0 ? base.part : 1;
    if (status == WAL_OK && !is_empty) {
        status = wal__pull_find_start(pull, &position, part->epoch, last_epoch,
                                      part, error);
    }
    wal__base_deinit(&base, pull->remote->heap);
    return status;
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
