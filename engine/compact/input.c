/*
 * input.c - the segments that compaction reads, and their indexes (rewrite.h).
 */
#include <string.h>

#include "engine/compact/rewrite.h"

/* Copies the index that the store made of a segment whose own is lost. */
static enum wal_status copy_loaded(struct wal__core *core, uint64_t id,
                                   struct wal__index_slot *slot)
{
    const struct wal__index *index;
    struct wal__span bytes = {NULL, 0};
    enum wal_status status = wal__index_set_get(&core->indexes, id, &index);

    if (status != WAL_OK) {
        return status;
    }
    bytes.size =
        wal__index_size(index->header.session_count,
                        index->header.posting_count, index->header.text_size);
    slot->id = id;
    slot->owned = wal__heap_alloc(core->env.heap, bytes.size);
    if (slot->owned == NULL) {
        return WAL_ENOMEM;
    }
    memcpy(slot->owned, index->summaries - WAL__INDEX_HEADER_SIZE, bytes.size);
    bytes.data = slot->owned;
    return wal__index_decode(bytes, &slot->index) == WAL__FMT_OK
               ? WAL_OK
               : WAL_ENOTFOUND;
}

enum wal_status wal__compact_input_open(struct wal__core *core,
                                        struct wal__segment *segment,
                                        struct wal__compact_input *input)
{
    struct wal__span bytes;
    enum wal_status status = WAL_ENOTFOUND;

    memset(input, 0, sizeof(*input));
    input->segment = segment;
    if (segment->sealed) {
        status = wal__index_read_sealed(segment, &bytes);
        if (status == WAL_OK &&
            wal__index_decode(bytes, &input->slot.index) != WAL__FMT_OK) {
            status = WAL_ENOTFOUND;
        }
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__index_slot_open(&core->env, segment->id, core->log.uuid,
                                      &input->slot);
    }
    if (status == WAL_ENOTFOUND) {
        status = copy_loaded(core, segment->id, &input->slot);
    }
    if (status == WAL_OK &&
        (!wal__index_slot_is_current(&input->slot) ||
         input->slot.index.header.end != atomic_load(&segment->end))) {
        status = WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        wal__index_slot_deinit(&core->env, &input->slot);
    }
    return status;
}

void wal__compact_input_close(struct wal__core *core,
                              struct wal__compact_input *input)
{
    wal__index_slot_deinit(&core->env, &input->slot);
}
