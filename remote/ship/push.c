/*
 * push.c - storing everything that is durable (writer.h).
 */
#include "engine/base/error.h"
#include "remote/ship/writer.h"

/* Whether everything up to a number, which the log has, was sent. */
static bool has_sent(const struct wal_remote_writer *writer, uint64_t durable)
{
    return durable > 0 &&
           writer->sent.places[WAL_PART_LOG].sequence >= durable;
}

/*
 * Sends until the log has no more, and acknowledges. Content that no entry
 * refers to yet has no number of the log: the source says when all of it was
 * read.
 */
static enum wal_status push(struct wal_remote_writer *writer, uint64_t durable,
                            struct wal_remote_push_result *result,
                            struct wal_error *error)
{
    bool is_sent = false;
    enum wal_status status = WAL_OK;

    while (status == WAL_OK &&
           (!is_sent || !wal__window_is_empty(&writer->window))) {
        if (!is_sent && !wal__writer_is_full(writer)) {
            uint64_t size = 0;

            status = wal__writer_send(writer, &size, error);
            is_sent = status == WAL_END || has_sent(writer, durable);
            if (status == WAL_END) {
                status = WAL_OK;
            }
        } else {
            status = wal__writer_acknowledge(writer, -1, result, error);
        }
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
