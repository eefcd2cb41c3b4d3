/*
 * catalogue_overlay.c - a layer of changed summaries (catalogue_overlay.h,
 * SPEC.md 2.13).
 *
 * Invariant: slots are never removed or reordered, so that an iterator knows
 * from the count at init which slots it covers; keys[i] is the key of slots[i];
 * every step that can fail precedes the first change. Locks as in the header.
 */
#include "engine/index/catalogue_overlay.h"

#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "format/bytes/assert.h"

enum {
    HEAD_ID_CAPACITY_MIN = 36, /* a UUID */
    CAPACITY_MIN = 16
};

struct wal__overlay *wal__overlay_create(const struct wal__heap *heap)
{
    struct wal__overlay *overlay = wal__heap_zalloc(heap, sizeof(*overlay));

    if (overlay != NULL) {
        overlay->heap = heap;
        atomic_init(&overlay->references, 1);
        wal__hashmap_init(&overlay->by_number, heap);
        wal__hashmap_init(&overlay->by_id, heap);
    }
    return overlay;
}

struct wal__overlay *wal__overlay_retain(struct wal__overlay *overlay)
{
    if (overlay != NULL) {
        atomic_fetch_add_explicit(&overlay->references, 1,
                                  memory_order_relaxed);
    }
    return overlay;
}

void wal__overlay_release(struct wal__overlay *overlay)
{
    const struct wal__heap *heap;
    uint32_t before;

    if (overlay == NULL) {
        return;
    }
    /* What other holders read happens before the memory is freed. */
    before = atomic_fetch_sub_explicit(&overlay->references, 1,
                                       memory_order_acq_rel);
    WAL__ASSERT(before > 0);
    if (before > 1) {
        return;
    }
    heap = overlay->heap;
    for (uint32_t i = 0; i < overlay->count; i++) {
        wal__heap_free(heap, overlay->slots[i]);
    }
    wal__heap_free(heap, overlay->slots);
    wal__heap_free(heap, overlay->keys);
    wal__hashmap_deinit(&overlay->by_number);
    wal__hashmap_deinit(&overlay->by_id);
    wal__heap_free(heap, overlay);
}

uint64_t wal__overlay_size(const struct wal__overlay *overlay)
{
    uint64_t map_slots;

    if (overlay == NULL) {
        return 0;
    }
    map_slots = (uint64_t)overlay->by_number.capacity + overlay->by_id.capacity;
    return overlay->slot_bytes +
           overlay->capacity *
               (sizeof(*overlay->slots) + sizeof(*overlay->keys)) +
           map_slots * (sizeof(*overlay->by_id.hashes) +
                        sizeof(*overlay->by_id.values));
}

/* ----------------------------------------------------------- looking up --- */

bool wal__overlay_find(const struct wal__overlay *overlay, uint32_t number,
                       uint32_t *slot)
{
    uint32_t cursor = 0;
    bool found = overlay != NULL &&
                 wal__hashmap_find(&overlay->by_number, number, &cursor, slot);

    WAL__ASSERT(!found || (*slot < overlay->count &&
                           wal__summary_number(
                               overlay->slots[*slot]->summary) == number));
    return found;
}

void wal__overlay_get(const struct wal__overlay *overlay, uint32_t slot,
                      struct wal__summary *summary)
{
    const struct wal__overlay_slot *at = overlay->slots[slot];
    struct wal__span texts = {at->text, at->text_capacity};
    enum wal__fmt fmt;

    WAL__ASSERT(slot < overlay->count);
    fmt = wal__summary_decode(at->summary, texts, summary);
    WAL__ASSERT(fmt == WAL__FMT_OK);
    (void)fmt;
}

bool wal__overlay_find_id(const struct wal__overlay *overlay,
                          struct wal__span id, uint64_t hash, uint32_t *slot)
{
    uint32_t cursor = 0;
    uint32_t found;

    while (overlay != NULL &&
           wal__hashmap_find(&overlay->by_id, hash, &cursor, &found)) {
        struct wal__summary summary;

        wal__overlay_get(overlay, found, &summary);
        WAL__ASSERT(summary.id_hash == hash);
        if (wal__span_equal(summary.id, id) &&
            !wal__summary_is_hidden(&summary)) {
            *slot = found;
            return true;
        }
    }
    return false;
}

/* -------------------------------------------------------------- putting --- */

/* An encoded summary, before its slot is known. */
struct encoded {
    uint8_t summary[WAL__SUMMARY_SIZE];
    uint8_t text[WAL__SUMMARY_TEXT_MAX];
    size_t text_size;
    size_t text_capacity;
};

static void encode(const struct wal__summary *summary, struct encoded *encoded)
{
    size_t head_size = summary->head_id.size;

    encoded->text_size = wal__summary_text_size(summary);
    encoded->text_capacity = encoded->text_size;
    if (head_size < HEAD_ID_CAPACITY_MIN) {
        encoded->text_capacity += HEAD_ID_CAPACITY_MIN - head_size;
    }
    WAL__ASSERT(encoded->text_size <= sizeof(encoded->text));
    wal__summary_encode(summary, 0, encoded->summary, encoded->text);
}

static void fill_slot(struct wal__overlay_slot *slot,
                      const struct encoded *encoded)
{
    WAL__ASSERT(encoded->text_size <= slot->text_capacity);
    memcpy(slot->summary, encoded->summary, sizeof(slot->summary));
    memcpy(slot->text, encoded->text, encoded->text_size);
}

static size_t slot_size(const struct wal__overlay_slot *slot)
{
    return sizeof(*slot) + slot->text_capacity;
}

static struct wal__overlay_slot *create_slot(struct wal__overlay *overlay,
                                             const struct encoded *encoded)
{
    struct wal__overlay_slot *slot =
        wal__heap_alloc(overlay->heap, sizeof(*slot) + encoded->text_capacity);

    if (slot != NULL) {
        slot->text_capacity = (uint32_t)encoded->text_capacity;
        fill_slot(slot, encoded);
        overlay->slot_bytes += slot_size(slot);
    }
    return slot;
}

static void set_key(struct wal__overlay *overlay, uint32_t slot,
                    const struct wal__summary *summary)
{
    overlay->keys[slot] = wal__summary_list_key(summary);
    if (wal__summary_is_hidden(summary)) {
        overlay->keys[slot].number = 0;
    }
}

static enum wal_status replace(struct wal__overlay *overlay, uint32_t index,
                               const struct encoded *encoded)
{
    struct wal__overlay_slot *old = overlay->slots[index];
    struct wal__overlay_slot *slot;

    if (encoded->text_size <= old->text_capacity) {
        fill_slot(old, encoded);
        return WAL_OK;
    }
    slot = create_slot(overlay, encoded);
    if (slot == NULL) {
        return WAL_ENOMEM;
    }
    WAL__ASSERT(overlay->slot_bytes >= slot_size(old));
    overlay->slot_bytes -= slot_size(old);
    overlay->slots[index] = slot;
    wal__heap_free(overlay->heap, old);
    return WAL_OK;
}

static enum wal_status reserve(struct wal__overlay *overlay)
{
    uint32_t capacity = overlay->capacity;
    struct wal__overlay_slot **slots;
    struct wal__list_key *keys;
    enum wal_status status = wal__hashmap_reserve(&overlay->by_number, 1);

    if (status == WAL_OK) {
        status = wal__hashmap_reserve(&overlay->by_id, 1);
    }
    if (status != WAL_OK || overlay->count < capacity) {
        return status;
    }
    WAL__ASSERT(overlay->count == capacity && capacity <= UINT32_MAX / 2);
    /* The maps bound the capacity far below an overflow. */
    capacity = capacity == 0 ? CAPACITY_MIN : capacity * 2;
    slots = wal__heap_resize(overlay->heap, overlay->slots, capacity,
                             sizeof(*slots));
    if (slots == NULL) {
        return WAL_ENOMEM;
    }
    overlay->slots = slots;
    keys =
        wal__heap_resize(overlay->heap, overlay->keys, capacity, sizeof(*keys));
    if (keys == NULL) {
        return WAL_ENOMEM;
    }
    overlay->keys = keys;
    overlay->capacity = capacity;
    return WAL_OK;
}

static enum wal_status insert(struct wal__overlay *overlay,
                              const struct wal__summary *summary,
                              const struct encoded *encoded)
{
    uint32_t index = overlay->count;
    struct wal__overlay_slot *slot;
    enum wal_status status = reserve(overlay);

    if (status != WAL_OK) {
        return status;
    }
    slot = create_slot(overlay, encoded);
    if (slot == NULL) {
        return WAL_ENOMEM;
    }
    WAL__ASSERT(index < overlay->capacity);
    status = wal__hashmap_add(&overlay->by_number, summary->number, index);
    WAL__ASSERT(status == WAL_OK);
    status = wal__hashmap_add(&overlay->by_id, summary->id_hash, index);
    WAL__ASSERT(status == WAL_OK);
    overlay->slots[index] = slot;
    overlay->count++;
    WAL__ASSERT(overlay->by_number.count == overlay->count &&
                overlay->by_id.count == overlay->count);
    return WAL_OK;
}

enum wal_status wal__overlay_put(struct wal__overlay *overlay,
                                 const struct wal__summary *summary)
{
    struct encoded encoded;
    uint32_t slot = overlay->count;
    enum wal_status status;

    encode(summary, &encoded);
    status = wal__overlay_find(overlay, summary->number, &slot)
                 ? replace(overlay, slot, &encoded)
                 : insert(overlay, summary, &encoded);
    if (status == WAL_OK) {
        set_key(overlay, slot, summary);
    }
    return status;
}
