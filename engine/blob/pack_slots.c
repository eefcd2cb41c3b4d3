/*
 * pack_slots.c - the indexes of the pack segments before the tail (SPEC.md
 * 3.6): mapped from the segment's INDEX frame or from index/pack-ID.idx, or
 * kept in memory. They are opened when a digest is first looked up, so that a
 * store whose blobs nobody asks for opens as if it had none.
 *
 * State lock for writing.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blobs_parts.h"

void wal__pack_slot_deinit(const struct wal__env *env,
                           struct wal__pack_slot *slot)
{
    wal__mapped_file_close(env, &slot->mapped);
    wal__heap_free(env->heap, slot->owned);
    memset(slot, 0, sizeof(*slot));
}

void wal__pack_slots_drop(struct wal__blobs *blobs)
{
    for (uint32_t i = 0; i < blobs->slot_count; i++) {
        wal__pack_slot_deinit(blobs->env, &blobs->slots[i]);
    }
    wal__heap_free(blobs->env->heap, blobs->slots);
    blobs->slots = NULL;
    blobs->slot_count = 0;
    blobs->slot_capacity = 0;
    blobs->complete = false;
}

static uint32_t lower_bound(const struct wal__blobs *blobs, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = blobs->slot_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (blobs->slots[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool has_slot(const struct wal__blobs *blobs, uint64_t id)
{
    uint32_t at = lower_bound(blobs, id);

    return at < blobs->slot_count && blobs->slots[at].id == id;
}

/* Takes the slot over. */
static enum wal_status insert(struct wal__blobs *blobs,
                              const struct wal__pack_slot *slot)
{
    uint32_t at = lower_bound(blobs, slot->id);
    struct wal__pack_slot *slots =
        wal__heap_room(blobs->env->heap, blobs->slots, blobs->slot_count,
                       &blobs->slot_capacity, sizeof(*slots));

    if (slots == NULL) {
        return WAL_ENOMEM;
    }
    blobs->slots = slots;
    memmove(&blobs->slots[at + 1], &blobs->slots[at],
            (blobs->slot_count - at) * sizeof(*slot));
    blobs->slots[at] = *slot;
    blobs->slot_count++;
    return WAL_OK;
}

enum wal_status wal__pack_slots_keep(struct wal__blobs *blobs, uint64_t id,
                                     struct wal__span bytes)
{
    struct wal__pack_slot slot = {.id = id};
    struct wal__span copy;
    enum wal_status status = WAL_ENOMEM;

    slot.owned = wal__heap_alloc(blobs->env->heap, bytes.size);
    if (slot.owned != NULL) {
        memcpy(slot.owned, bytes.data, bytes.size);
        copy.data = slot.owned;
        copy.size = bytes.size;
        status = wal__pack_index_decode(copy, &slot.index) == WAL__FMT_OK
                     ? insert(blobs, &slot)
                     : WAL_ECORRUPT;
    }
    if (status != WAL_OK) {
        wal__pack_slot_deinit(blobs->env, &slot);
    }
    return status;
}

/* The INDEX frame of a sealed segment, in its map. */
static enum wal_status open_sealed(struct wal__segment *segment,
                                   struct wal__pack_slot *slot)
{
    struct wal__span bytes;
    enum wal_status status = wal__index_sealed(segment, &bytes);

    if (status != WAL_OK) {
        return status;
    }
    return wal__pack_index_decode(bytes, &slot->index) == WAL__FMT_OK
               ? WAL_OK
               : WAL_ENOTFOUND;
}

enum wal_status wal__pack_file_open(const struct wal__blobs *blobs, uint64_t id,
                                    struct wal__pack_slot *slot)
{
    char path[WAL__PATH_MAX];
    struct wal__span bytes;
    enum wal_status status;

    memset(slot, 0, sizeof(*slot));
    slot->id = id;
    wal__index_path(blobs->env, WAL__STREAM_PACK, id, path);
    status = wal__mapped_file_open(blobs->env, path, &slot->mapped, NULL);
    if (status == WAL_ENOMEM || status == WAL_EIO) {
        return status;
    }
    if (status != WAL_OK) {
        return WAL_ENOTFOUND;
    }
    bytes.data = slot->mapped.at;
    bytes.size = slot->mapped.size;
    if (wal__pack_index_decode(bytes, &slot->index) != WAL__FMT_OK ||
        slot->index.header.id != id ||
        memcmp(slot->index.header.uuid, blobs->log.uuid, 16) != 0) {
        wal__pack_slot_deinit(blobs->env, slot);
        return WAL_ENOTFOUND;
    }
    return WAL_OK;
}

/* The slot of a segment from what stands in it or beside it. */
static enum wal_status open_slot(struct wal__blobs *blobs,
                                 struct wal__segment *segment)
{
    struct wal__pack_slot slot = {.id = segment->id};
    enum wal_status status = wal__segment_refresh(segment);

    if (status == WAL_OK) {
        status = segment->sealed ? open_sealed(segment, &slot) : WAL_ENOTFOUND;
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__pack_file_open(blobs, segment->id, &slot);
    }
    if (status == WAL_OK &&
        atomic_load(&segment->end) == WAL__SEGMENT_HEADER_SIZE) {
        /* The OPEN that would say where it ended was lost. */
        atomic_store(&segment->end, slot.index.header.end);
    }
    if (status == WAL_OK &&
        (slot.index.header.id != segment->id ||
         slot.index.header.end != atomic_load(&segment->end))) {
        status = WAL_ENOTFOUND;
    }
    if (status == WAL_OK) {
        status = insert(blobs, &slot);
    }
    if (status != WAL_OK) {
        wal__pack_slot_deinit(blobs->env, &slot);
    }
    return status;
}

/* Reads the segment, and gives it an index, beside it or in memory. */
static enum wal_status rebuild(struct wal__blobs *blobs,
                               struct wal__segment *segment,
                               struct wal_error *error)
{
    struct wal__pack_tail found;
    enum wal_status status;

    wal__pack_tail_init(&found, blobs->env->heap);
    blobs->applied = &found;
    status = wal__log_rebuild(&blobs->log, segment, error);
    blobs->applied = &blobs->tail;
    wal__pack_tail_deinit(&found);
    if (status == WAL_OK && !has_slot(blobs, segment->id)) {
        status = open_slot(blobs, segment);
    }
    return status;
}

enum wal_status wal__pack_slots_complete(struct wal__blobs *blobs,
                                         struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    if (blobs->complete) {
        return WAL_OK;
    }
    if (count > 0 && !log->tail->sealed) {
        count--;
    }
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__segment *segment = wal__log_segment_at(log, i);

        if (has_slot(blobs, segment->id)) {
            continue;
        }
        status = open_slot(blobs, segment);
        if (status == WAL_ENOTFOUND) {
            status = rebuild(blobs, segment, error);
        }
        if (status != WAL_OK) {
            return wal__fail(error, status, 0, segment->path, 0,
                             "the index of a segment of blobs cannot be read");
        }
    }
    blobs->complete = true;
    return WAL_OK;
}
