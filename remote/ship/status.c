/*
 * status.c - how far a remote is with a store (status.h).
 */
#include "remote/ship/status.h"

#include <string.h>

#include "engine/base/error.h"
#include "remote/ship/writer.h"

/* Adds up the parts after the position. */
static enum wal_status add_lag(const struct wal__part_source *source,
                               struct wal__position position, uint64_t *bytes,
                               struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    *bytes = 0;
    while (status == WAL_OK) {
        struct wal_part_info info = WAL_INIT(wal_part_info);
        const struct wal__position *from =
            wal__position_is_empty(&position) ? NULL : &position;
        struct wal_slice part = {NULL, 0};

        status = source->next(source->ctx, from, 0, &part, &info, error);
        if (status == WAL_OK) {
            *bytes += part.size;
            position = wal__position_of(info.after);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Fills what the remote has of a store; *position is its end. */
static enum wal_status fill(struct wal_remote *remote, wal__part_info_fn *info,
                            const uint8_t uuid[16],
                            struct wal_remote_status *result,
                            struct wal__position *position,
                            struct wal_error *error)
{
    struct wal__history history = {.last_epoch = 0};
    enum wal_status status =
        wal__history_read(remote, info, uuid, &history, error);

    if (status != WAL_OK) {
        return status;
    }
    result->epoch = history.last_epoch;
    memcpy(result->writer, history.writer.writer, sizeof(result->writer));
    memcpy(result->host, history.writer.host, sizeof(result->host));
    result->started_ms = history.writer.started_ms;
    result->part_epoch = history.part_epoch;
    result->part = history.part;
    result->sequence = history.position.places[WAL_PART_LOG].sequence;
    *position = history.position;
    return WAL_OK;
}

enum wal_status wal__status_read(struct wal_remote *remote,
                                 const struct wal__part_source *source,
                                 const uint8_t uuid[16],
                                 struct wal_remote_status *result,
                                 struct wal_error *error)
{
    struct wal__position position;
    uint64_t durable = 0;
    enum wal_status status =
        fill(remote, source->info, uuid, result, &position, error);

    if (status == WAL_OK) {
        status = source->durable(source->ctx, &durable, error);
    }
    if (status == WAL_OK) {
        status = wal__writer_verify(source, &position, true, error);
    }
    if (status == WAL_OK) {
        status = add_lag(source, position, &result->lag_bytes, error);
    }
    if (status == WAL_OK && durable > result->sequence) {
        result->lag_sequences = durable - result->sequence;
    }
    return status;
}

/* --- the stores of a remote --------------------------------------------- */

enum wal_status wal__status_list(struct wal_remote *remote,
                                 wal__part_info_fn *info,
                                 wal_remote_store_fn *report, void *ctx,
                                 struct wal_error *error)
{
    struct wal__store_object object = {.kind = 0};
    enum wal_status status = wal__remote_next_store(remote, &object, error);
    int32_t result = 0;

    while (status == WAL_OK && object.kind != 0 && result == 0) {
        struct wal_remote_status found = WAL_INIT(wal_remote_status);
        struct wal__position position;

        status = fill(remote, info, object.uuid, &found, &position, error);
        if (status == WAL_OK) {
            result = report(ctx, object.uuid, &found);
            status = wal__remote_next_store(remote, &object, error);
        }
    }
    return status == WAL_OK && result != 0
               ? wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                              "the list of stores was ended by its callback")
               : status;
}
