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
    struct wal__buf encoded;
    enum wal_status status;
    uint8_t *at;

    header->last_session = core->catalogue.last_session;
    wal__buf_init(&encoded, core->env.heap);
    status = wal__tail_index_encode(&core->tail_index, header, summary_source,
                                    core, &encoded);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__buf_reserve(out, WAL__FRAME_SIZE + encoded.size, &at);
    if (status != WAL_OK) {
        goto done;
    }
    memset(at, 0, WAL__FRAME_SIZE);
    memcpy(at + WAL__FRAME_SIZE, encoded.data, encoded.size);
    out->size += WAL__FRAME_SIZE + encoded.size;
    WAL__ASSERT(out->size <= out->capacity);
done:
    wal__buf_deinit(&encoded);
    return status;
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
