/*
 * push.c - storing everything that is durable (writer.h).
 */
#include "engine/base/error.h"
#include "remote/ship/writer.h"

/* Acknowledges all that is on the way. */
static enum wal_status drain(struct wal_remote_writer *writer,
                             struct wal_remote_push_result *result,
                             struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && !wal__window_is_empty(&writer->window)) {
        status = wal__writer_acknowledge(writer, -1, result, error);
    }
    return status;
}

/*
 * Reads the next part and sends it. The last one is sent alone, so that its
 * floor says of all others that they were stored. WAL_END: there is no more
 * that was durable.
 */
static enum wal_status send_next(struct wal_remote_writer *writer,
                                 uint64_t durable,
                                 struct wal_remote_push_result *result,
                                 struct wal_error *error)
{
    struct wal__send *place = NULL;
    bool is_last = false;
    enum wal_status status = wal__writer_read(writer, &place, error);

    /* Content that no entry refers to yet has no number of the log: the source
     * says when all of it was read. */
    if (status == WAL_OK) {
        is_last = durable > 0 &&
                  place->after.places[WAL_PART_LOG].sequence >= durable;
    }
    if (is_last) {
        status = drain(writer, result, error);
    }
    if (status == WAL_OK) {
        status = wal__writer_send(writer, place, error);
    }
    return status == WAL_OK && is_last ? WAL_END : status;
}

static enum wal_status push(struct wal_remote_writer *writer, uint64_t durable,
                            struct wal_remote_push_result *result,
                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK) {
        status = wal__writer_is_full(writer)
                     ? wal__writer_acknowledge(writer, -1, result, error)
                     : send_next(writer, durable, result, error);
    }
    return status == WAL_END ? drain(writer, result, error) : status;
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
    if (status == WAL_OK) {
        wal__window_send_again(&writer->window);
        status = push(writer, durable, result, error);
    }
    if (status == WAL_OK && writer->mark_count > 1) {
        status = wal__writer_keep(writer, error);
    }
    wal__window_settle(&writer->window);
    result->epoch = writer->last.epoch;
    result->part = writer->last.part;
    result->sequence = writer->position.places[WAL_PART_LOG].sequence;
    return status;
}
