/*
 * index_snapshot.c - encodes and writes the indexes: a segment index, the index
 * file of the tail, the catalogue's snapshot (SPEC.md 2.12, 2.13, 3.6). State
 * lock.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

enum {
    SNAPSHOT_MIN = 1024 * 1024
};

void wal__core_catalogue_path(const struct wal__core *core,
                              char out[WAL__PATH_MAX])
{
    int size =
        snprintf(out, WAL__PATH_MAX, "%s/index/catalogue", core->env.root);

    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
}

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

uint64_t wal__core_log_growth(const struct wal__core *core)
{
    uint64_t end = atomic_load(&core->log.end);
    uint64_t from = wal__position_segment(core->snapshot_position);
    uint64_t growth = 0;

    for (uint32_t i = wal__log_segment_count(&core->log); i > 0; i--) {
        const struct wal__segment *segment =
            wal__log_segment_at(&core->log, i - 1);

        if (segment->id < from) {
            break;
        }
        growth += atomic_load(&segment->end);
    }
    if (from != 0 && end != 0) {
        growth -= wal__position_offset(core->snapshot_position);
    }
    return growth;
}

enum wal_status wal__core_write_catalogue(struct wal__core *core,
                                          uint64_t position, uint32_t chain,
                                          struct wal_error *error)
{
    struct wal__catalogue_header header = {0};
    struct wal__index_writer writer;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    wal__core_catalogue_path(core, path);
    header.position = position;
    header.last_sequence = core->log.last_sequence;
    header.chain = chain;
    header.last_session = core->catalogue.last_session;
    memcpy(header.uuid, core->log.uuid, sizeof(header.uuid));
    status = wal__index_writer_open(&writer, &core->env, path,
                                    core->control.is_first_opener);
    if (status == WAL_OK) {
        status = wal__catalogue_write(&core->catalogue, &header,
                                      wal__index_writer_write, &writer);
        status = wal__index_writer_close(&writer, status);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, writer.sys_errno, path, 0,
                            "cannot write the catalogue");
    }
    core->snapshot_position = position;
    return WAL_OK;
}

enum wal_status wal__core_write_indexes(struct wal__core *core,
                                        struct wal_error *error)
{
    struct wal__log *log = &core->log;
    uint64_t growth = wal__core_log_growth(core);
    enum wal_status status = WAL_OK;

    if (!wal__index_file_can_write_tail(log)) {
        return WAL_OK;
    }
    if (growth >= SNAPSHOT_MIN && growth >= 2 * core->snapshot.size) {
        status = wal__core_write_catalogue(core, atomic_load(&log->end),
                                           log->chain, error);
    }
    return status == WAL_OK ? wal__index_file_write_tail(log, error) : status;
}
