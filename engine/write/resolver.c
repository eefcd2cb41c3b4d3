/*
 * resolver.c - finds the entries of an operation, those of the batch and those
 * that were appended before it (write_batch.h). Called by the leader, with the
 * state lock for writing.
 */
#include <string.h>

#include "engine/base/containers.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

struct wal__span wal__batch_payload(const struct wal__op *op, uint32_t frame)
{
    const struct wal__op_frame *at = &op->frames[frame];
    struct wal__span span = {op->bytes.data + at->offset + WAL__FRAME_SIZE,
                             at->frame.stored_size};

    WAL__ASSERT(frame < op->frame_count);
    WAL__ASSERT(at->offset + WAL__FRAME_SIZE + span.size <= op->bytes.size);
    return span;
}

uint32_t wal__resolver_find_in_batch(const struct wal__resolver *resolver,
                                     struct wal__span id)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    uint32_t cursor = 0;
    uint32_t item;

    while (wal__hashmap_find(&resolver->batch_ids, hash, &cursor, &item)) {
        struct wal__entry_record record;

        WAL__ASSERT(item < resolver->batch->entry_count);
        if (wal__entry_record_decode(wal__batch_payload(resolver->op, item),
                                     &record) == WAL__FMT_OK &&
            wal__span_equal(record.id, id)) {
            return item;
        }
    }
    return WAL__NO_ENTRY;
}

enum wal_status wal__resolver_find_entry(struct wal__resolver *resolver,
                                         struct wal__span id, uint32_t before,
                                         struct wal__entry_location *found)
{
    uint32_t item = wal__resolver_find_in_batch(resolver, id);

    /* An entry that existed before the batch may belong to another session. */
    if (item >= before ||
        resolver->sequences[item] < resolver->op->next_sequence) {
        return wal__core_find_id(resolver->core, resolver->batch->session, id,
                                 found, &resolver->op->error);
    }
    found->position = 0; /* not written yet */
    found->sequence = resolver->sequences[item];
    found->session = resolver->batch->session;
    found->stream = resolver->op->frames[item].frame.stream;
    if ((resolver->op->frames[item].frame.flags & WAL__FRAME_PROVISIONAL) !=
        0) {
        found->stream = WAL__DELTAS_OF(found->stream);
    }
    return WAL_OK;
}

enum wal_status wal__resolver_read_id(struct wal__resolver *resolver,
                                      uint32_t stream, uint64_t sequence,
                                      char out[256])
{
    struct wal__core *core = resolver->core;
    struct wal__entry_record record;
    struct wal__entry_location found;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__record_buf scratch;
    enum wal_status status;

    out[0] = '\0';
    if (sequence == 0) {
        return WAL_OK;
    }
    wal__record_buf_init(&scratch, core->env.heap);
    status = wal__core_find_sequence(core, resolver->batch->session, stream,
                                     sequence, &found, &resolver->op->error);
    if (status == WAL_OK) {
        status = wal__log_read(&core->log, found.position, &scratch, &frame,
                               &payload, &resolver->op->error);
    }
    if (status == WAL_OK &&
        wal__entry_record_decode(payload, &record) == WAL__FMT_OK) {
        WAL__ASSERT(record.id.size <= WAL__ID_MAX);
        memcpy(out, record.id.data, record.id.size);
        out[record.id.size] = '\0';
    }
    wal__record_buf_deinit(&scratch);
    return status == WAL_ENOTFOUND || status == WAL_ECORRUPT ? WAL_OK : status;
}
