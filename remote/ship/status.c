/*
 * status.c - how far a remote is with a store (status.h).
 */
#include "remote/ship/status.h"

#include <string.h>

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

enum wal_status wal__status_read(struct wal_remote *remote,
                                 const struct wal__part_source *source,
                                 const uint8_t uuid[16],
                                 struct wal_remote_status *result,
                                 struct wal_error *error)
{
    struct wal__history history = {.last_epoch = 0};
    uint64_t durable = 0;
    enum wal_status status =
        wal__history_read(remote, source->info, uuid, &history, error);

    if (status == WAL_OK) {
        status = source->durable(source->ctx, &durable, error);
    }
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
    status = wal__writer_verify(source, &history.position, true, error);
    if (status == WAL_OK) {
        status = add_lag(source, history.position, &result->lag_bytes, error);
    }
    if (status == WAL_OK && durable > result->sequence) {
        result->lag_sequences = durable - result->sequence;
    }
    return status;
}
