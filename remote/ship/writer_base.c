/*
 * writer_base.c - whole segments and a base, where the log can no longer be had
 * in parts from where the remote ends: compaction has rewritten it (writer.h).
 *
 * The base counts once its mark has the next number of the epoch: a writer that
 * is fenced between the two leaves a base that no one reads.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/sha256.h"
#include "remote/ship/writer.h"

static enum wal_status put_segment(struct wal_remote_writer *writer,
                                   const struct wal__base_segment *segment,
                                   struct wal_slice bytes,
                                   struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_SEGMENT,
                                       .stream = segment->stream,
                                       .segment = segment->segment,
                                       .identity = segment->identity};
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    memcpy(object.uuid, writer->uuid, sizeof(object.uuid));
    wal__store_object_format(&object, name);
    status =
        wal__remote_create(writer->remote, name, bytes, &writer->found, error);
    return status == WAL_EEXISTS
               ? wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the remote has the segment with other content")
               : status;
}

/* Uploads the next segment after base->position, and lists it. WAL_END. */
static enum wal_status add_segment(struct wal_remote_writer *writer,
                                   struct wal__sha256_alg *sha256,
                                   struct wal__base *base,
                                   struct wal_remote_push_result *result,
                                   struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal__base_segment segment = {.stream = 0};
    const struct wal_part_place *place;
    struct wal_slice bytes = {NULL, 0};
    enum wal_status status = writer->source.segment(
        writer->source.ctx, base->count == 0 ? NULL : &base->position, &bytes,
        &info, error);

    if (status != WAL_OK) {
        return status;
    }
    if (bytes.size > WAL__OBJECT_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "a segment of %llu bytes is larger than an object may "
                         "be",
                         (unsigned long long)bytes.size);
    }
    segment.stream = wal__place_is_within(&info.after[WAL_PART_CONTENT],
                                          &info.before[WAL_PART_CONTENT])
                         ? WAL_PART_LOG
                         : WAL_PART_CONTENT;
    place = &info.after[segment.stream];
    segment.segment = place->segment;
    segment.identity = place->identity;
    segment.size = bytes.size;
    status =
        wal__sha256(sha256, (struct wal__span){bytes.data, (size_t)bytes.size},
                    &segment.digest);
    if (status == WAL_OK) {
        status = wal__base_add(base, writer->remote->heap, &segment);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot list the segments");
    }
    base->position = wal__position_of(info.after);
    result->segments++;
    result->bytes += bytes.size;
    return put_segment(writer, &segment, bytes, error);
}

/* Stores the base with the next number that is free. */
static enum wal_status put_base(struct wal_remote_writer *writer,
                                struct wal__base *base, struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_BASE};
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    enum wal_status status;

    memcpy(object.uuid, writer->uuid, sizeof(object.uuid));
    wal__buf_init(&json, writer->remote->heap);
    status = wal__remote_last(writer->remote, &object, &object.number, error);
    if (status == WAL_OK) {
        base->number = ++object.number;
        wal__store_object_format(&object, name);
        status =
            wal__base_encode(base, &json) == WAL_OK
                ? wal__remote_create(writer->remote, name,
                                     (struct wal_slice){json.data, json.size},
                                     &writer->found, error)
                : wal__no_memory(error);
    }
    wal__buf_deinit(&json);
    if (status == WAL_EEXISTS) {
        status = wal__fail_at(error, WAL_EREMOTE, 0, name, 0,
                              "another writer made the base at the same time");
    }
    return status;
}

/* Makes the mark of the base pending. */
static enum wal_status set_mark(struct wal_remote_writer *writer,
                                const struct wal__base *base,
                                struct wal_error *error)
{
    const struct wal__mark mark = {.kind = WAL__MARK_BASE,
                                   .number = base->number};

    writer->pending_after = base->position;
    if (wal__mark_encode(&mark, &writer->pending) != WAL_OK) {
        writer->pending.size = 0;
        return wal__no_memory(error);
    }
    return WAL_OK;
}

enum wal_status wal__writer_ship_base(struct wal_remote_writer *writer,
                                      struct wal_remote_push_result *result,
                                      struct wal_error *error)
{
    struct wal__base base = {.epoch = writer->epoch, .part = writer->number};
    struct wal__sha256_alg sha256;
    enum wal_status status = WAL_OK;

    wal__sha256_alg_init(&sha256);
    while (status == WAL_OK) {
        status = add_segment(writer, &sha256, &base, result, error);
    }
    wal__sha256_alg_deinit(&sha256);
    if (status == WAL_END && base.count == 0) {
        status = wal__fail(error, WAL_ECORRUPT,
                           "the log has neither parts nor segments after "
                           "where the remote ends");
    }
    if (status == WAL_END) {
        status = put_base(writer, &base, error);
    }
    if (status == WAL_OK) {
        status = set_mark(writer, &base, error);
    }
    wal__base_deinit(&base, writer->remote->heap);
    return status == WAL_OK ? wal__writer_send(writer, error) : status;
}
