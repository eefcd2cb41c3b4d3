/*
 * writer.c - shipping the log in parts (writer.h).
 *
 * A part is acknowledged when the remote has it at its number, all before it
 * are, and no writer is known to have a newer epoch. A number is taken once: by
 * this writer's part, or by the fence of the writer that takes over, which
 * reads what is before it.
 */
#include "remote/ship/writer.h"

#include <string.h>

#include "engine/base/error.h"
#include "remote/layout/layout.h"

enum {
    LOOK_MS = 30 * 1000, /* between looks for a newer epoch */
    /* While parts are many, a writer that takes over does not wait for that. */
    LOOK_PARTS = 16,
    LOOK_MIN_MS = 2000
};

/* --- marks -------------------------------------------------------------- */

/* Keeps the last part that is stored, and those on the way before `end`. */
static enum wal_status keep(struct wal_remote_writer *writer, uint64_t end,
                            struct wal_error *error)
{
    const struct wal__window *window = &writer->window;
    int32_t result = 0;

    writer->mark_count = 0;
    if (writer->last.part > 0) {
        writer->marks[writer->mark_count++] = writer->last;
    }
    for (uint64_t number = window->first; number < end; number++) {
        const struct wal__send *send =
            &window->sends[number % WAL__PART_WINDOW];
        struct wal_remote_mark mark = {.epoch = writer->epoch, .part = number};

        memcpy(mark.digest, send->digest, sizeof(mark.digest));
        writer->marks[writer->mark_count++] = mark;
    }
    if (writer->keep != NULL) {
        result =
            writer->keep(writer->keep_ctx, writer->marks, writer->mark_count);
    }
    return result == 0 ? WAL_OK
                       : wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                                      "the marks of the writer were not kept");
}

enum wal_status wal__writer_keep(struct wal_remote_writer *writer,
                                 struct wal_error *error)
{
    return keep(writer, writer->window.next, error);
}

/* --- sending ------------------------------------------------------------ */

uint64_t wal__writer_part_size(const struct wal_remote_writer *writer)
{
    return wal__flow_object_size(&writer->flow, writer->part_size);
}

bool wal__writer_is_full(const struct wal_remote_writer *writer)
{
    const struct wal__window *window = &writer->window;

    return window->next - window->first >= writer->parallel ||
           !wal__flow_has_room(&writer->flow, wal__window_bytes(window),
                               wal__writer_part_size(writer));
}

enum wal_status wal__writer_read(struct wal_remote_writer *writer,
                                 struct wal__send **place,
                                 struct wal_error *error)
{
    struct wal__send *send = wal__window_place(&writer->window);
    struct wal__store_object part = {.kind = WAL__OBJECT_PART,
                                     .epoch = writer->epoch,
                                     .number = send->number};
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice bytes = {NULL, 0};
    const bool is_first = wal__position_is_empty(&writer->sent);
    enum wal_status status = writer->source.next(
        writer->source.ctx, is_first ? NULL : &writer->sent,
        wal__writer_part_size(writer), &bytes, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    if (bytes.size + WAL__PART_TRAILER_SIZE > WAL__OBJECT_MAX ||
        bytes.size < WAL_DIGEST_SIZE) {
        return wal__fail(error, WAL_ETOOBIG,
                         "a part of %llu bytes is larger than an object may be",
                         (unsigned long long)bytes.size);
    }
    if (wal__buf_append(&send->bytes, bytes.data, (size_t)bytes.size) !=
        WAL_OK) {
        return wal__no_memory(error);
    }
    memcpy(send->digest,
           (const uint8_t *)bytes.data + bytes.size - WAL_DIGEST_SIZE,
           WAL_DIGEST_SIZE);
    send->after = wal__position_of(info.after);
    memcpy(part.uuid, writer->uuid, sizeof(part.uuid));
    wal__store_object_format(&part, send->name);
    *place = send;
    return WAL_OK;
}

enum wal_status wal__writer_send(struct wal_remote_writer *writer,
                                 struct wal__send *send,
                                 struct wal_error *error)
{
    enum wal_status status;

    if (wal__part_object_seal(&send->bytes, writer->window.first - 1) !=
        WAL_OK) {
        return wal__no_memory(error);
    }
    /* It is one of those that are on the way before it is. */
    status = keep(writer, writer->window.next + 1, error);
    if (status == WAL_OK) {
        writer->sent = send->after;
        wal__window_send(&writer->window,
                         writer->is_inline ? 0 : writer->parallel);
    }
    return status;
}

/* --- acknowledging ------------------------------------------------------ */

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

/* The number of a part has something else: a fence, or what another process
 * sent as this writer. */
static enum wal_status meet_other(struct wal_remote_writer *writer,
                                  const struct wal__send *send,
                                  struct wal_error *error)
{
    const struct wal_slice found = {send->found.data, send->found.size};
    uint64_t fence = 0;
    enum wal_status status =
        wal__fence_decode(found, send->name, &fence, error);

    if (status != WAL_OK) {
        return status;
    }
    if (fence != 0) {
        return become_fenced(writer, error);
    }
    writer->is_fenced = true;
    return wal__fail_at(error, WAL_EFENCED, 0, send->name, 0,
                        "another process writes as this writer");
}

/* Looks from time to time whether the epoch is the newest, whatever succeeds:
 * the writer may have been replaced and forgotten in a pause, or by a remote
 * that does not refuse its parts; and one that takes over waits for its end. */
static enum wal_status look(struct wal_remote_writer *writer, uint64_t part,
                            struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_EPOCH,
                                       .epoch = writer->epoch + 1};
    const uint64_t now_ms = writer->remote->now_ms();
    const uint64_t since_ms = now_ms - writer->looked_ms;
    bool is_there = false;
    enum wal_status status;

    if (since_ms <= LOOK_MS &&
        (since_ms < LOOK_MIN_MS || part < writer->looked_part + LOOK_PARTS)) {
        return WAL_OK;
    }
    memcpy(object.uuid, writer->uuid, sizeof(object.uuid));
    status = wal__remote_has(writer->remote, &object, &is_there, error);
    if (status == WAL_OK && is_there) {
        return become_fenced(writer, error);
    }
    if (status == WAL_OK) {
        writer->looked_ms = now_ms;
        writer->looked_part = part;
    }
    return status;
}

/* The oldest part, which is done. */
static enum wal_status acknowledge(struct wal_remote_writer *writer,
                                   const struct wal__send *send,
                                   struct wal_error *error)
{
    enum wal_status status = send->status;

    wal__flow_count(&writer->flow, send->bytes.size, status == WAL_EREMOTE,
                    send->began_ms, send->ended_ms);
    if (status == WAL_EEXISTS) {
        return meet_other(writer, send, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &send->error);
        return status;
    }
    status = look(writer, send->number, error);
    if (status == WAL_OK) {
        writer->position = send->after;
        writer->last.epoch = writer->epoch;
        writer->last.part = send->number;
        memcpy(writer->last.digest, send->digest, sizeof(send->digest));
        wal__window_take(&writer->window);
    }
    return status;
}

enum wal_status wal__writer_acknowledge(struct wal_remote_writer *writer,
                                        int64_t timeout_ms,
                                        struct wal_remote_push_result *result,
                                        struct wal_error *error)
{
    struct wal__send *send = wal__window_wait(&writer->window, timeout_ms);
    enum wal_status status = WAL_OK;

    if (writer->is_fenced) {
        return wal__fail(error, WAL_EFENCED, "another writer has taken over");
    }
    for (; status == WAL_OK && send != NULL;
         send = wal__window_wait(&writer->window, 0)) {
        const uint64_t size = send->bytes.size - WAL__PART_TRAILER_SIZE;

        status = acknowledge(writer, send, error);
        if (status == WAL_OK) {
            result->parts++;
            result->bytes += size;
        }
    }
    result->epoch = writer->last.epoch;
    result->part = writer->last.part;
    result->sequence = writer->position.places[WAL_PART_LOG].sequence;
    return status;
}
