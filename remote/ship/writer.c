/*
 * writer.c - shipping the log in parts (writer.h).
 *
 * A part is acknowledged when the remote has it at its number and no writer is
 * known to have a newer epoch. A number is taken once: by this writer's part,
 * or by the fence of the writer that takes over, which reads what is before it.
 */
#include "remote/ship/writer.h"

#include <string.h>

#include "engine/base/error.h"
#include "remote/layout/part_object.h"

enum {
    LEASE_MS = 30000
};

static const uint64_t default_part_size = 8 * 1024 * 1024;

/* --- starting ----------------------------------------------------------- */

enum wal_status wal__writer_verify(const struct wal__part_source *source,
                                   const struct wal__position *position,
                                   bool is_known, struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    enum wal_status status;

    if (wal__position_is_empty(position)) {
        return WAL_OK;
    }
    status = source->next(source->ctx, position, 0, NULL, &info, error);
    if (status == WAL_END) {
        return WAL_OK;
    }
    if (status == WAL_OK && !is_known && (info.flags & WAL_PART_SEGMENT) != 0) {
        return wal__fail(
            error, WAL_ECONFLICT,
            "the store was compacted where the remote ends, at "
            "sequence number %llu, so that it cannot be known "
            "whether it has the same past; pull the remote to "
            "another directory and merge",
            (unsigned long long)position->places[WAL_PART_LOG].sequence);
    }
    if (status == WAL_ECONFLICT) {
        return wal__fail(
            error, WAL_ECONFLICT,
            "the store lacks what the remote has up to sequence "
            "number %llu: it is older, or went on from an earlier "
            "state; pull the remote to another directory and "
            "merge",
            (unsigned long long)position->places[WAL_PART_LOG].sequence);
    }
    return status;
}

/* Whether the remote ends where this writer has brought it. If it does not,
 * a part was stored without its knowledge, or the machine is an older state of
 * itself. */
static bool knows(const struct wal_remote_writer *writer,
                  const struct wal__history *history)
{
    return writer->known_epoch == history->part_epoch &&
           writer->known_part == history->part;
}

/* Goes on in the newest epoch, which this writer made before. */
static enum wal_status go_on(struct wal_remote_writer *writer,
                             struct wal__history *history,
                             struct wal_error *error)
{
    if (history->is_fenced) {
        return wal__fail(error, WAL_EFENCED,
                         "another writer is taking over the store");
    }
    /* It may have stopped before all others were fenced. */
    return history->number > 0
               ? WAL_OK
               : wal__takeover_fence(writer->remote, writer->source.info,
                                     writer->uuid, history, error);
}

enum wal_status wal__writer_start(struct wal_remote_writer *writer,
                                  bool takes_over, struct wal_error *error)
{
    struct wal_remote *remote = writer->remote;
    struct wal__history history = {.last_epoch = 0};
    enum wal_status status;
    bool own;

    wal__buf_init(&writer->pending, remote->heap);
    wal__buf_init(&writer->found, remote->heap);
    if (writer->part_size == 0) {
        writer->part_size = default_part_size;
    }
    writer->seen_ms = remote->now_ms();
    status = wal__history_read(remote, writer->source.info, writer->uuid,
                               &history, error);
    if (status != WAL_OK) {
        return status;
    }
    own = history.last_epoch > 0 &&
          memcmp(history.writer.writer, writer->writer, 16) == 0;
    if (history.last_epoch > 0 && !own && !takes_over) {
        return wal__takeover_report(&history, error);
    }
    /* Before anything changes there. */
    status = wal__writer_verify(&writer->source, &history.position,
                                own && knows(writer, &history), error);
    if (status == WAL_OK && own) {
        status = go_on(writer, &history, error);
    } else if (status == WAL_OK) {
        status = wal__takeover(remote, writer->source.info, writer->uuid,
                               writer->writer, &history, error);
    }
    if (status == WAL_OK && history.is_fenced) {
        status = wal__takeover_report(&history, error);
    }
    if (status == WAL_OK) {
        status = wal__writer_verify(&writer->source, &history.position,
                                    own && knows(writer, &history), error);
    }
    writer->epoch = history.last_epoch;
    writer->number = history.number + 1;
    writer->position = history.position;
    writer->last_epoch = history.part_epoch;
    writer->last_part = history.part;
    return status;
}

void wal__writer_deinit(struct wal_remote_writer *writer)
{
    wal__buf_deinit(&writer->pending);
    wal__buf_deinit(&writer->found);
}

/* --- sending ------------------------------------------------------------ */

/* Ends the writer. */
static enum wal_status become_fenced(struct wal_remote_writer *writer,
                                     struct wal_error *error)
{
    struct wal__history history = {.last_epoch = 0};

    writer->is_fenced = true;
    if (wal__history_read(writer->remote, writer->source.info, writer->uuid,
                          &history, NULL) == WAL_OK &&
        history.last_epoch > writer->epoch) {
        return wal__takeover_report(&history, error);
    }
    return wal__fail(error, WAL_EFENCED, "another writer has taken over");
}

/* After a pause, in which the writer may have been replaced and forgotten:
 * looks whether its epoch is the newest. */
static enum wal_status renew(struct wal_remote_writer *writer,
                             uint64_t began_ms, struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_EPOCH};
    uint64_t newer = 0;
    enum wal_status status = WAL_OK;

    if (writer->remote->now_ms() - writer->seen_ms > LEASE_MS) {
        memcpy(object.uuid, writer->uuid, sizeof(object.uuid));
        began_ms = writer->remote->now_ms();
        status = wal__remote_next(writer->remote, &object, writer->epoch,
                                  &newer, error);
    }
    if (status == WAL_OK && newer > 0) {
        return become_fenced(writer, error);
    }
    if (status == WAL_OK) {
        writer->seen_ms = began_ms;
    }
    return status;
}

/* Sets where the object ends that has the number of the pending part.
 * WAL_EFENCED unless it begins where the writer is. */
static enum wal_status read_found(struct wal_remote_writer *writer,
                                  const char *name, struct wal__position *after,
                                  struct wal_error *error)
{
    const struct wal_slice found = {writer->found.data, writer->found.size};
    struct wal_part_info info = WAL_INIT(wal_part_info);
    uint64_t fence = 0;
    struct wal__position before;
    enum wal_status status = wal__fence_decode(found, name, &fence, error);

    if (status == WAL_OK && fence != 0) {
        return become_fenced(writer, error);
    }
    if (status == WAL_OK) {
        status = writer->source.info(found, &info, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    before = wal__position_of(info.before);
    if (!wal__position_is_within(&writer->position, &before) ||
        !wal__position_is_within(&before, &writer->position)) {
        writer->is_fenced = true;
        return wal__fail_at(error, WAL_EFENCED, 0, name, 0,
                            "another process writes as this writer");
    }
    *after = wal__position_of(info.after);
    return WAL_OK;
}

/*
 * Takes what has the number of the pending part as the next part, if the log
 * has that past: a process of the same writer sent it, which may be the one
 * before that was killed. The pending part is read again, from where it ends.
 */
static enum wal_status take_found(struct wal_remote_writer *writer,
                                  const char *name, struct wal_error *error)
{
    struct wal__position after = writer->position;
    enum wal_status status = read_found(writer, name, &after, error);

    if (status == WAL_OK) {
        status = wal__writer_verify(&writer->source, &after, false, error);
    }
    if (status == WAL_OK) {
        writer->pending_after = after;
    }
    return status;
}

enum wal_status wal__writer_send(struct wal_remote_writer *writer,
                                 struct wal_error *error)
{
    struct wal__store_object part = {.kind = WAL__OBJECT_PART,
                                     .epoch = writer->epoch,
                                     .number = writer->number};
    const uint64_t began_ms = writer->remote->now_ms();
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    memcpy(part.uuid, writer->uuid, sizeof(part.uuid));
    wal__store_object_format(&part, name);
    status = wal__remote_create(
        writer->remote, name,
        (struct wal_slice){writer->pending.data, writer->pending.size},
        &writer->found, error);
    if (status == WAL_EEXISTS) {
        status = take_found(writer, name, error);
    }
    if (status == WAL_OK) {
        status = renew(writer, began_ms, error);
    }
    if (status == WAL_OK) {
        writer->position = writer->pending_after;
        writer->last_epoch = writer->epoch;
        writer->last_part = writer->number++;
        writer->pending.size = 0;
    }
    return status;
}

/* --- pushing ------------------------------------------------------------ */

/* Reads the next part. WAL_END as wal_part_reader_next. */
static enum wal_status read_part(struct wal_remote_writer *writer,
                                 struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice part = {NULL, 0};
    const bool is_first = wal__position_is_empty(&writer->position);
    enum wal_status status = writer->source.next(
        writer->source.ctx, is_first ? NULL : &writer->position,
        writer->part_size, &part, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    if (part.size > WAL__OBJECT_MAX - WAL__PART_TRAILER_SIZE) {
        return wal__fail(error, WAL_ETOOBIG,
                         "a part of %llu bytes is larger than an object may be",
                         (unsigned long long)part.size);
    }
    if (wal__buf_append(&writer->pending, part.data, (size_t)part.size) !=
            WAL_OK ||
        wal__part_object_seal(&writer->pending, writer->number - 1) != WAL_OK) {
        writer->pending.size = 0;
        return wal__no_memory(error);
    }
    writer->pending_after = wal__position_of(info.after);
    return WAL_OK;
}

static enum wal_status push_part(struct wal_remote_writer *writer,
                                 struct wal_remote_push_result *result,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint64_t size;

    if (writer->pending.size == 0) {
        status = read_part(writer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    size = writer->pending.size;
    status = wal__writer_send(writer, error);
    if (status == WAL_OK) {
        result->parts++;
        result->bytes += size;
    }
    return status;
}

enum wal_status wal__writer_push(struct wal_remote_writer *writer,
                                 struct wal_remote_push_result *result,
                                 struct wal_error *error)
{
    uint64_t durable = 0;
    enum wal_status status;

    if (writer->is_fenced) {
        return wal__fail(error, WAL_EFENCED, "another writer has taken over");
    }
    status = writer->source.durable(writer->source.ctx, &durable, error);
    /* Content that no entry refers to yet has no number of the log: the source
     * says when all of it was read. */
    while (status == WAL_OK) {
        status = push_part(writer, result, error);
        if (status == WAL_OK && durable > 0 &&
            writer->position.places[WAL_PART_LOG].sequence >= durable &&
            writer->pending.size == 0) {
            status = WAL_END;
        }
    }
    result->epoch = writer->last_epoch;
    result->part = writer->last_part;
    result->sequence = writer->position.places[WAL_PART_LOG].sequence;
    return status == WAL_END ? WAL_OK : status;
}
