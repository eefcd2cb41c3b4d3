/*
 * index_snapshot.c - encodes and writes the indexes: a segment index, and on a
 * clean close the index file of the tail and the catalogue's snapshot (SPEC.md
 * 2.12, 2.13, 3.6). State lock.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

enum {
    SNAPSHOT_MIN = 1024 * 1024,
    /* Closing does not wait longer for the catalogue: without it, the next
     * opening merges more indexes. */
    CLOSE_NS = 500 * 1000 * 1000
};

static enum wal_status summary_source(void *ctx, uint32_t number,
                                      struct wal__summary *summary)
{
    struct wal__core *core = ctx;

    return wal__catalogue_get(&core->catalogue, number, summary);
}

enum wal_status wal__core_encode_tail_index(void *ctx,
                                            struct wal__index_header *header,
                                            struct wal__buf *out)
{
    struct wal__core *core = ctx;
    enum wal_status status;
    uint8_t *at;
    uint64_t bound = wal__tail_index_size_bound(&core->tail_index, 0, 0,
                                                core->tail_text_max);

    header->last_session = core->catalogue.last_session;
    /* Allocated once and moved in place: an index has megabytes, and memory
     * that is freed may stay with the process. */
    out->size = 0;
    status = wal__buf_reserve(out, bound + WAL__FRAME_SIZE, &at);
    if (status == WAL_OK) {
        status = wal__tail_index_encode(&core->tail_index, header,
                                        summary_source, core, out);
    }
    if (status == WAL_OK) {
        status = wal__buf_reserve(out, WAL__FRAME_SIZE, &at);
    }
    if (status != WAL_OK) {
        out->size = 0;
        return status;
    }
    memmove(out->data + WAL__FRAME_SIZE, out->data, out->size);
    memset(out->data, 0, WAL__FRAME_SIZE);
    out->size += WAL__FRAME_SIZE;
    WAL__ASSERT(out->size <= out->capacity);
    return WAL_OK;
}

/* Writes the catalogue up to the log's end when it has grown enough. */
static void write_catalogue(struct wal__core *core)
{
    const struct wal__io *io = core->env.io;
    const struct wal__log *log = &core->log;
    struct wal__catalogue_header header = {0};
    uint64_t growth = wal__core_log_growth(core);

    if (growth < SNAPSHOT_MIN || growth < 2 * wal__core_snapshot_size(core)) {
        return;
    }
    header.position = atomic_load(&log->end);
    header.last_sequence = log->last_sequence;
    header.chain = log->chain;
    header.generation = wal__log_generation(log);
    memcpy(header.uuid, log->uuid, sizeof(header.uuid));
    /* Derived: without it the next opening takes longer. */
    (void)!wal__core_write_catalogue(core, &core->catalogue, &header,
                                     io->monotonic_ns(io->ctx) + CLOSE_NS);
}

enum wal_status wal__core_write_indexes(struct wal__core *core,
                                        struct wal_error *error)
{
    if (!wal__index_file_can_write_tail(&core->log)) {
        return WAL_OK;
    }
    write_catalogue(core);
    return wal__index_file_write_tail(&core->log, error);
}
