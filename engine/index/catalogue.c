/*
 * catalogue.c - looking sessions up, and the overlay of those that changed
 * (catalogue.h, SPEC.md 2.13).
 *
 * Invariants: a session's number and id never part; slots are never removed
 * or reordered, so that a cursor may hold their numbers; what can fail is done
 * before anything changes. The caller's lock: one writer, or any readers.
 */
#include "engine/index/catalogue.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/index/catalogue_parts.h"
#include "format/crc32.h"

enum {
    HEAD_ROOM = 36, /* a UUID */
    SLOTS_CAPACITY_MIN = 16
};

void wal__catalogue_init(struct wal__catalogue *catalogue,
                         const struct wal__heap *heap)
{
    *catalogue = (struct wal__catalogue){.heap = heap};
    wal__map_init(&catalogue->by_number, heap);
    wal__map_init(&catalogue->by_id, heap);
}

void wal__catalogue_deinit(struct wal__catalogue *catalogue)
{
    const struct wal__heap *heap = catalogue->heap;

    for (uint32_t i = 0; i < catalogue->slot_count; i++) {
        wal__heap_free(heap, catalogue->slots[i]);
    }
    wal__heap_free(heap, catalogue->slots);
    wal__map_deinit(&catalogue->by_number);
    wal__map_deinit(&catalogue->by_id);
    wal__snapshot_release(catalogue);
    wal__catalogue_init(catalogue, heap);
}

uint64_t wal__catalogue_overlay_size(const struct wal__catalogue *catalogue)
{
    uint64_t map_slots =
        (uint64_t)catalogue->by_number.capacity + catalogue->by_id.capacity;

    return catalogue->slot_bytes +
           catalogue->slot_capacity * sizeof(*catalogue->slots) +
           map_slots * (sizeof(*catalogue->by_id.hashes) +
                        sizeof(*catalogue->by_id.values));
}

/* ----------------------------------------------------------- looking up --- */

bool wal__catalogue_slot(const struct wal__catalogue *catalogue,
                         uint32_t number, uint32_t *slot)
{
    uint32_t cursor = 0;

    return wal__map_find(&catalogue->by_number, number, &cursor, slot);
}

enum wal_status wal__catalogue_get(const struct wal__catalogue *catalogue,
                                   uint32_t number,
                                   struct wal__summary *summary)
{
    uint32_t slot;

    if (wal__catalogue_slot(catalogue, number, &slot)) {
        *summary = catalogue->slots[slot]->summary;
        return WAL_OK;
    }
    return wal__snapshot_get(catalogue, number, summary);
}

enum wal_status wal__catalogue_find(const struct wal__catalogue *catalogue,
                                    struct wal__span id,
                                    struct wal__summary *summary)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    uint32_t cursor = 0;
    uint32_t slot;

    while (wal__map_find(&catalogue->by_id, hash, &cursor, &slot)) {
        if (wal__span_equal(catalogue->slots[slot]->summary.id, id)) {
            *summary = catalogue->slots[slot]->summary;
            return WAL_OK;
        }
    }
    return wal__snapshot_find(catalogue, id, summary);
}

/* -------------------------------------------------------------- putting --- */

static uint8_t *move_text(struct wal__span *text, uint8_t *at)
{
    if (text->size > 0) {
        memcpy(at, text->data, text->size);
    }
    text->data = at;
    return at + text->size;
}

static size_t slot_size(const struct wal__overlay_slot *slot)
{
    return sizeof(*slot) + slot->text_capacity;
}

static struct wal__overlay_slot *create_slot(const struct wal__heap *heap,
                                             const struct wal__summary *summary)
{
    size_t room = summary->head_id.size < HEAD_ROOM
                      ? HEAD_ROOM - summary->head_id.size
                      : 0;
    size_t capacity = wal__summary_text_size(summary) + room;
    struct wal__overlay_slot *slot =
        wal__heap_alloc(heap, sizeof(*slot) + capacity);
    uint8_t *at;

    if (slot == NULL) {
        return NULL;
    }
    slot->summary = *summary;
    slot->text_capacity = (uint32_t)capacity;
    at = move_text(&slot->summary.id, slot->text);
    at = move_text(&slot->summary.parent_id, at);
    at = move_text(&slot->summary.cwd, at);
    at = move_text(&slot->summary.project, at);
    at = move_text(&slot->summary.title, at);
    at = move_text(&slot->summary.source, at);
    (void)move_text(&slot->summary.head_id, at);
    return slot;
}

static bool is_same_text(struct wal__span a, struct wal__span b)
{
    return a.size == b.size && (a.size == 0 || a.data == b.data);
}

/* Whether all texts but the head's are those in the slot already, and the
 * head's has room. */
static bool fits_in_place(const struct wal__overlay_slot *slot,
                          const struct wal__summary *summary)
{
    const struct wal__summary *own = &slot->summary;

    return is_same_text(own->id, summary->id) &&
           is_same_text(own->parent_id, summary->parent_id) &&
           is_same_text(own->cwd, summary->cwd) &&
           is_same_text(own->project, summary->project) &&
           is_same_text(own->title, summary->title) &&
           is_same_text(own->source, summary->source) &&
           wal__summary_text_size(summary) <= slot->text_capacity;
}

static enum wal_status replace(struct wal__catalogue *catalogue, uint32_t at,
                               const struct wal__summary *summary)
{
    struct wal__overlay_slot *old = catalogue->slots[at];
    const uint8_t *head = old->summary.head_id.data;
    struct wal__overlay_slot *slot;

    if (!wal__span_equal(old->summary.id, summary->id)) {
        return WAL_ECORRUPT;
    }
    if (fits_in_place(old, summary)) {
        uint8_t *to = old->text + (head - old->text);

        if (summary->head_id.size > 0) {
            memmove(to, summary->head_id.data, summary->head_id.size);
        }
        old->summary = *summary;
        old->summary.head_id.data = to;
        return WAL_OK;
    }
    slot = create_slot(catalogue->heap, summary);
    if (slot == NULL) {
        return WAL_ENOMEM;
    }
    catalogue->slot_bytes += slot_size(slot);
    catalogue->slot_bytes -= slot_size(old);
    catalogue->slots[at] = slot;
    wal__heap_free(catalogue->heap, old);
    return WAL_OK;
}

/* Whether the session is in neither snapshot nor overlay; WAL_ECORRUPT when
 * its number and id contradict the snapshot or the overlay. */
static enum wal_status check_new(const struct wal__catalogue *catalogue,
                                 const struct wal__summary *summary,
                                 bool *is_new)
{
    struct wal__summary other;
    enum wal_status status =
        wal__snapshot_get(catalogue, summary->number, &other);

    if (status == WAL_OK) {
        *is_new = false;
        return wal__span_equal(other.id, summary->id) ? WAL_OK : WAL_ECORRUPT;
    }
    if (status != WAL_ENOTFOUND) {
        return status;
    }
    *is_new = true;
    status = wal__catalogue_find(catalogue, summary->id, &other);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    return status == WAL_OK ? WAL_ECORRUPT : status;
}

static enum wal_status reserve_slot(struct wal__catalogue *catalogue)
{
    uint32_t capacity = catalogue->slot_capacity;
    enum wal_status status = wal__map_reserve(&catalogue->by_number, 1);

    if (status == WAL_OK) {
        status = wal__map_reserve(&catalogue->by_id, 1);
    }
    if (status != WAL_OK || catalogue->slot_count < capacity) {
        return status;
    }
    /* Their number is bounded by the maps, far below what would overflow. */
    capacity = capacity == 0 ? SLOTS_CAPACITY_MIN : capacity * 2;

    struct wal__overlay_slot **slots = wal__heap_resize(
        catalogue->heap, catalogue->slots, capacity, sizeof(*slots));

    if (slots == NULL) {
        return WAL_ENOMEM;
    }
    catalogue->slots = slots;
    catalogue->slot_capacity = capacity;
    return WAL_OK;
}

static enum wal_status insert(struct wal__catalogue *catalogue,
                              const struct wal__summary *summary)
{
    uint32_t at = catalogue->slot_count;
    struct wal__overlay_slot *slot;
    bool is_new;
    enum wal_status status = check_new(catalogue, summary, &is_new);

    if (status == WAL_OK) {
        status = reserve_slot(catalogue);
    }
    if (status != WAL_OK) {
        return status;
    }
    slot = create_slot(catalogue->heap, summary);
    if (slot == NULL) {
        return WAL_ENOMEM;
    }
    status = wal__map_add(&catalogue->by_number, summary->number, at);
    WAL__ASSERT(status == WAL_OK);
    status = wal__map_add(&catalogue->by_id, summary->id_hash, at);
    WAL__ASSERT(status == WAL_OK);
    catalogue->slots[at] = slot;
    catalogue->slot_count++;
    catalogue->slot_bytes += slot_size(slot);
    catalogue->session_count += is_new;
    if (catalogue->last_session < summary->number) {
        catalogue->last_session = summary->number;
    }
    return WAL_OK;
}

enum wal_status wal__catalogue_put(struct wal__catalogue *catalogue,
                                   const struct wal__summary *summary)
{
    struct wal__summary next = *summary;
    uint32_t slot;

    if (!wal__summary_is_valid(summary)) {
        return WAL_ECORRUPT;
    }
    next.first_posting = 0;
    next.posting_count = 0;
    if (wal__catalogue_slot(catalogue, next.number, &slot)) {
        next.id_hash = catalogue->slots[slot]->summary.id_hash;
        return replace(catalogue, slot, &next);
    }
    next.id_hash = wal__id_hash(next.id.data, next.id.size);
    return insert(catalogue, &next);
}

enum wal_status wal__catalogue_mark_damaged(struct wal__catalogue *catalogue,
                                            uint32_t number)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status != WAL_OK || (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return status;
    }
    summary.flags |= WAL__SUMMARY_DAMAGED;
    return wal__catalogue_put(catalogue, &summary);
}
