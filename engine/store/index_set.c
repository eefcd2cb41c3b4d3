/*
 * index_set.c - the indexes of the segments before the tail (SPEC.md 3.6). All of them are derived:
 * an invalid index is treated as missing.
 *
 * Invariant: slots ascend by id, each id once. State lock for writing, except for
 * wal__index_slot_open.
 */
#include "engine/store/index_set.h"

#include <string.h>

#include "engine/base/containers.h"
#include "format/bytes/assert.h"

void wal__index_set_init(struct wal__index_set *set, const struct wal__env *env,
                         struct wal__log *log)
{
    memset(set, 0, sizeof(*set));
    set->env = env;
    set->log = log;
}

void wal__index_slot_deinit(const struct wal__env *env, struct wal__index_slot *slot)
{
    wal__mapped_file_close(env, &slot->mapped);
    wal__heap_free(env->heap, slot->owned);
    memset(slot, 0, sizeof(*slot));
}

void wal__index_set_deinit(struct wal__index_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        wal__index_slot_deinit(set->env, &set->slots[i]);
    }
    if (set->slots != NULL) {
        wal__heap_free(set->env->heap, set->slots);
    }
    set->slots = NULL;
    set->count = 0;
    set->capacity = 0;
}

/* Rank of the first slot whose id is at least this one. */
static uint32_t lower_bound(const struct wal__index_set *set, uint64_t id)
{
    return (uint32_t)wal__lower_bound(set->slots, set->count, sizeof(set->slots[0]),
                                      offsetof(struct wal__index_slot, id), id);
}

/* Moves the slot into the set. */
static enum wal_status insert(struct wal__index_set *set, struct wal__index_slot *slot)
{
    uint32_t at = lower_bound(set, slot->id);

    WAL__ASSERT(at == set->count || set->slots[at].id > slot->id);
    if (!WAL__HEAP_GROW(set->env->heap, set->slots, set->count, set->capacity)) {
        return WAL_ENOMEM;
    }
    memmove(&set->slots[at + 1], &set->slots[at], (set->count - at) * sizeof(*slot));
    set->slots[at] = *slot;
    set->count++;
    return WAL_OK;
}

/* Decodes the INDEX frame of a sealed segment, in its map. */
static enum wal_status open_sealed(struct wal__segment *segment, struct wal__index_slot *slot)
{
    struct wal__span bytes;
    enum wal_status status = wal__index_read_sealed(segment, &bytes, &slot->owned);

    if (status != WAL_OK) {
        return status;
    }
    return wal__index_decode_any(bytes, &slot->index) == WAL__FMT_OK ? WAL_OK : WAL_ENOTFOUND;
}

enum wal_status wal__index_slot_open(const struct wal__env *env, uint64_t id,
                                     const uint8_t uuid[16], struct wal__index_slot *slot)
{
    char path[WAL__PATH_MAX];
    struct wal__span bytes;
    enum wal_status status;

    memset(slot, 0, sizeof(*slot));
    slot->id = id;
    wal__index_path(env, WAL__LOG_ID_LOG, id, path);
    status = wal__index_file_open(env, path, &slot->mapped, NULL);
    if (status == WAL_ENOMEM || status == WAL_EIO) {
        return status;
    }
    if (status != WAL_OK) {
        return WAL_ENOTFOUND;
    }
    bytes.data = slot->mapped.at;
    bytes.size = slot->mapped.size;
    if (wal__index_decode_any(bytes, &slot->index) != WAL__FMT_OK || slot->index.header.id != id ||
        memcmp(slot->index.header.uuid, uuid, 16) != 0) {
        wal__index_slot_deinit(env, slot);
        return WAL_ENOTFOUND;
    }
    return WAL_OK;
}

/* The OPEN of the next segment, which names this segment's end, may have been lost; then the index
 * names it. */
static void use_end(struct wal__segment *segment, const struct wal__index_slot *slot)
{
    if (atomic_load(&segment->end) == WAL__SEGMENT_HEADER_SIZE) {
        atomic_store(&segment->end, slot->index.header.end);
    }
}

/* Opens the segment's INDEX, or else its file in index/, of the present version. */
static enum wal_status open_index(const struct wal__index_set *set, struct wal__segment *segment,
                                  struct wal__index_slot *slot)
{
    uint64_t id = segment->id;
    enum wal_status status = segment->sealed ? open_sealed(segment, slot) : WAL_ENOTFOUND;

    slot->id = id;
    if (status == WAL_OK && !wal__index_slot_is_current(slot)) {
        use_end(segment, slot);
        status = WAL_ENOTFOUND;
    }
    if (status == WAL_ENOTFOUND) {
        wal__index_slot_deinit(set->env, slot);
        status = wal__index_slot_open(set->env, id, set->log->uuid, slot);
    }
    if (status != WAL_OK) {
        return status;
    }
    use_end(segment, slot);
    return wal__index_slot_is_current(slot) && slot->index.header.id == id &&
                   slot->index.header.end == atomic_load(&segment->end)
               ? WAL_OK
               : WAL_ENOTFOUND;
}

enum wal_status wal__index_set_get(struct wal__index_set *set, uint64_t id,
                                   const struct wal__index **index)
{
    struct wal__segment *segment = wal__log_segment(set->log, id);
    uint32_t at = lower_bound(set, id);
    struct wal__index_slot slot = {0};
    enum wal_status status;

    if (at < set->count && set->slots[at].id == id) {
        *index = &set->slots[at].index;
        return WAL_OK;
    }
    if (segment == NULL) {
        return WAL_ENOTFOUND;
    }
    status = wal__segment_refresh(segment);
    if (status != WAL_OK) {
        return status;
    }
    status = open_index(set, segment, &slot);
    if (status == WAL_OK) {
        status = insert(set, &slot);
    }
    if (status != WAL_OK) {
        wal__index_slot_deinit(set->env, &slot);
        return status;
    }
    WAL__ASSERT(set->slots[lower_bound(set, id)].id == id);
    *index = &set->slots[lower_bound(set, id)].index;
    return WAL_OK;
}

enum wal_status wal__index_set_put(struct wal__index_set *set, uint64_t id, struct wal__span bytes)
{
    struct wal__index_slot slot = {0};
    struct wal__span copy;
    enum wal_status status;

    slot.id = id;
    slot.owned = wal__heap_alloc(set->env->heap, bytes.size);
    if (slot.owned == NULL) {
        return WAL_ENOMEM;
    }
    memcpy(slot.owned, bytes.data, bytes.size);
    copy.data = slot.owned;
    copy.size = bytes.size;
    status =
        wal__index_decode(copy, &slot.index) == WAL__FMT_OK ? insert(set, &slot) : WAL_ECORRUPT;
    if (status != WAL_OK) {
        wal__index_slot_deinit(set->env, &slot);
    }
    return status;
}
