/*
 * part_index.c - indexes of segments, as they are kept where parts are (part.h): files of index/,
 * one after the other, without which opening a store there reads all of it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/care/part.h"
#include "engine/log/index_file.h"

/* Takes an index from the front of the bytes, and verifies it. */
bool wal__part_index_take(struct wal__span *bytes, struct wal__part_index *index)
{
    struct wal__index log;
    struct wal__pack_index pack;
    const uint8_t *at = bytes->data;
    uint64_t size;
    bool is_sound;

    if (bytes->size < WAL__INDEX_HEADER_SIZE) {
        return false;
    }
    index->stream = memcmp(at, "AGWALPIX", 8) == 0 ? WAL__LOG_ID_PACK : WAL__LOG_ID_LOG;
    size = index->stream == WAL__LOG_ID_PACK
               ? wal__pack_index_size(wal__get32(at + 12))
               : wal__index_size(wal__get32(at + 12), wal__get32(at + 16), wal__get32(at + 20));
    if (size > bytes->size) {
        return false;
    }
    index->bytes = (struct wal__span){at, (size_t)size};
    if (index->stream == WAL__LOG_ID_PACK) {
        is_sound = wal__pack_index_decode(index->bytes, &pack) == WAL__FMT_OK;
        index->header = is_sound ? pack.header : index->header;
    } else {
        is_sound = wal__index_decode(index->bytes, &log) == WAL__FMT_OK;
        index->header = is_sound ? log.header : index->header;
    }
    bytes->data += size;
    bytes->size -= (size_t)size;
    return is_sound;
}

bool wal__part_index_ends_at(const struct wal__part_index *index, const uint8_t uuid[16],
                             const struct wal__part_place *place)
{
    const struct wal__index_header *header = &index->header;

    return header->id == place->segment && header->end == place->offset &&
           header->chain == place->chain && header->last_sequence == place->sequence &&
           memcmp(header->uuid, uuid, sizeof(header->uuid)) == 0;
}

enum wal_status wal_part_check_index(struct wal_slice index, struct wal_error *error)
{
    struct wal__span bytes = {index.data, (size_t)index.size};
    struct wal__part_index found;

    if (index.data == NULL && index.size > 0) {
        return wal__invalid(error, "the bytes are null");
    }
    while (bytes.size > 0) {
        if (!wal__part_index_take(&bytes, &found)) {
            return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, index.size - bytes.size,
                                "the index of a segment is damaged");
        }
    }
    return WAL_OK;
}

/* Appends the index of the segment that ended at the place, if the store has it still. */
static enum wal_status append_index(struct wal__core *core, uint32_t stream,
                                    const struct wal__part_place *place, struct wal__buf *out)
{
    const struct wal__log *log = stream == WAL__LOG_ID_LOG ? &core->log : &core->blobs.log;
    struct wal__mapped_file mapped = {0};
    struct wal__segment *segment = NULL;
    struct wal__span bytes = {NULL, 0};
    struct wal__part_index found;
    char path[WAL__PATH_MAX];
    void *owned = NULL;
    enum wal_status status = wal__segment_open(&core->env, log->directory, place->segment,
                                               log->uuid, log->class, &segment, NULL);

    if (status == WAL_OK && segment->sealed) {
        status = wal__index_read_sealed(segment, &bytes, &owned);
    } else if (status == WAL_OK) {
        wal__index_path(&core->env, stream, place->segment, path);
        status = wal__mapped_file_open(&core->env, path, &mapped, NULL);
        bytes = (struct wal__span){mapped.at, (size_t)mapped.size};
    }
    if (status == WAL_OK && segment->header.salt == place->salt &&
        wal__part_index_take(&bytes, &found) && found.stream == stream &&
        wal__part_index_ends_at(&found, log->uuid, place)) {
        status = wal__buf_append(out, found.bytes.data, found.bytes.size);
    }
    wal__mapped_file_close(&core->env, &mapped);
    wal__heap_free(core->env.heap, owned);
    wal__segment_close(segment);
    return status == WAL_ENOMEM ? status : WAL_OK;
}

/* Appends the index of the newest segment up to the place, unless more records have come. */
static enum wal_status append_newest(struct wal__core *core, uint32_t stream,
                                     const struct wal__part_place *place,
                                     const struct wal__part_commit *commit, struct wal__buf *out)
{
    const bool is_log = stream == WAL__LOG_ID_LOG;
    const struct wal__log *log = is_log ? &core->log : &core->blobs.log;
    const struct wal__segment *segment;
    struct wal__index_header header;
    struct wal__buf bytes;
    enum wal_status status =
        is_log ? wal__core_write_lock(core, NULL) : wal__blob_store_write_lock(&core->blobs, NULL);

    if (status != WAL_OK) {
        return status == WAL_ENOMEM ? status : WAL_OK;
    }
    segment = log->tail_segment;
    if (segment != NULL && segment->id == place->segment && segment->header.salt == place->salt &&
        log->last_sequence == place->sequence) {
        wal__log_index_header(log, segment, &header);
        header.end = place->offset;
        header.chain = place->chain;
        header.commit_offset = (uint32_t)commit->offset;
        header.epoch = commit->epoch;
        wal__buf_init(&bytes, core->env.heap);
        status = log->client.encode_index(log->client.ctx, &header, &bytes);
        if (status == WAL_OK) {
            status =
                wal__buf_append(out, bytes.data + WAL__FRAME_SIZE, bytes.size - WAL__FRAME_SIZE);
        }
        wal__buf_deinit(&bytes);
    }
    if (is_log) {
        wal__core_unlock(core);
    } else {
        wal__blob_store_unlock(&core->blobs);
    }
    return status == WAL_ENOMEM ? status : WAL_OK;
}

enum wal_status wal__part_append_index(struct wal__core *core, const struct wal__part_head *head,
                                       const struct wal__part_commit *commits, struct wal__buf *out)
{
    enum wal_status status = WAL_OK;

    if (core->env.keyring != NULL) {
        return WAL_OK; /* an index has texts */
    }
    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK; i++) {
        const struct wal__part_place *before = &head->before[i];

        if (before->segment != 0 && before->segment != head->after[i].segment) {
            status = append_index(core, i, before, out);
        }
        if (status == WAL_OK && commits[i].offset != 0) {
            status = append_newest(core, i, &head->after[i], &commits[i], out);
        }
    }
    return status;
}
