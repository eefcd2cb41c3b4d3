/*
 * catalogue.c - looks sessions up, and keeps the overlay of changed summaries
 * (catalogue.h, SPEC.md 2.13).
 *
 * Invariants: the id of a number never changes, and no two visible sessions
 * have the same id; slots are never removed or reordered, so that an iterator
 * knows from the slot count at init which slots it covers; every step that can
 * fail precedes the first change. The caller's lock: one writer, or any
 * readers.
 */
#include "engine/index/catalogue.h"

#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    HEAD_ID_CAPACITY_MIN = 36, /* a UUID */
    SLOTS_CAPACITY_MIN = 16
};

const struct wal__span wal__store_id = {(const uint8_t *)"store", 5};

void wal__store_summary(struct wal__summary *summary)
{
    *summary =
        (struct wal__summary){.number = WAL__STORE_NUMBER, .id = wal__store_id};
}

void wal__catalogue_init(struct wal__catalogue *catalogue,
                         const struct wal__heap *heap)
{
    *catalogue = (struct wal__catalogue){.heap = heap};
    wal__hashmap_init(&catalogue->by_number, heap);
    wal__hashmap_init(&catalogue->by_id, heap);
}

void wal__catalogue_deinit(struct wal__catalogue *catalogue)
{
    const struct wal__heap *heap = catalogue->heap;

    for (uint32_t i = 0; i < catalogue->slot_count; i++) {
        wal__heap_free(heap, catalogue->slots[i]);
    }
    wal__heap_free(heap, catalogue->slots);
    wal__hashmap_deinit(&catalogue->by_number);
    wal__hashmap_deinit(&catalogue->by_id);
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

enum wal_status wal__catalogue_get(const struct wal__catalogue *catalogue,
                                   uint32_t number,
                                   struct wal__summary *summary)
{
    uint32_t slot;

    if (wal__catalogue_find_slot(catalogue, number, &slot)) {
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

    while (wal__hashmap_find(&catalogue->by_id, hash, &cursor, &slot)) {
        const struct wal__summary *found = &catalogue->slots[slot]->summary;

        WAL__ASSERT(slot < catalogue->slot_count && found->id_hash == hash);
        if (wal__span_equal(found->id, id) && !wal__summary_is_hidden(found)) {
            *summary = *found;
            return WAL_OK;
        }
    }
    return wal__snapshot_find(catalogue, id, summary);
}

/* -------------------------------------------------------------- putting --- */

static uint8_t *copy_text(struct wal__span *text, uint8_t *at)
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
    size_t room = summary->head_id.size < HEAD_ID_CAPACITY_MIN
                      ? HEAD_ID_CAPACITY_MIN - summary->head_id.size
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
    at = copy_text(&slot->summary.id, slot->text);
    at = copy_text(&slot->summary.parent_id, at);
    at = copy_text(&slot->summary.cwd, at);
    at = copy_text(&slot->summary.project, at);
    at = copy_text(&slot->summary.title, at);
    at = copy_text(&slot->summary.source, at);
    at = copy_text(&slot->summary.first_text, at);
    at = copy_text(&slot->summary.head_id, at);
    WAL__ASSERT((size_t)(at - slot->text) + room == capacity);
    return slot;
}

static bool is_same_text(struct wal__span a, struct wal__span b)
{
    return a.size == b.size && (a.size == 0 || a.data == b.data);
}

/* Whether all texts but the head's id are those in the slot, and the head's id
 * fits. */
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
           is_same_text(own->first_text, summary->first_text) &&
           wal__summary_text_size(summary) <= slot->text_capacity;
}

/* WAL_ECORRUPT when another visible session has the id. Hidden sessions may
 * share an id. */
static enum wal_status check_id(const struct wal__catalogue *catalogue,
                                const struct wal__summary *summary)
{
    struct wal__summary other;
    enum wal_status status;

    if (wal__summary_is_hidden(summary)) {
        return WAL_OK;
    }
    status = wal__catalogue_find(catalogue, summary->id, &other);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return status;
    }
    return other.number == summary->number ? WAL_OK : WAL_ECORRUPT;
}

/* Checks a summary that replaces another one of its number. */
static enum wal_status check_change(const struct wal__catalogue *catalogue,
                                    const struct wal__summary *from,
                                    const struct wal__summary *to)
{
    if (!wal__span_equal(from->id, to->id)) {
        return WAL_ECORRUPT;
    }
    return wal__summary_is_hidden(from) ? check_id(catalogue, to) : WAL_OK;
}

static void update_hidden_count(struct wal__catalogue *catalogue,
                                bool was_hidden,
                                const struct wal__summary *summary)
{
    catalogue->hidden_count += wal__summary_is_hidden(summary);
    catalogue->hidden_count -= was_hidden;
}

/* Sets the fields that do not come from the summary put. */
static void reset_slot_fields(struct wal__overlay_slot *slot, uint64_t id_hash)
{
    slot->summary.id_hash = id_hash;
    slot->summary.first_posting = 0;
    slot->summary.posting_count = 0;
}

static enum wal_status replace(struct wal__catalogue *catalogue, uint32_t index,
                               const struct wal__summary *summary)
{
    struct wal__overlay_slot *old = catalogue->slots[index];
    size_t head_offset = (size_t)(old->summary.head_id.data - old->text);
    uint64_t id_hash = old->summary.id_hash;
    bool was_hidden = wal__summary_is_hidden(&old->summary);
    struct wal__overlay_slot *slot;
    enum wal_status status = check_change(catalogue, &old->summary, summary);

    if (status != WAL_OK) {
        return status;
    }
    if (fits_in_place(old, summary)) {
        uint8_t *to = old->text + head_offset;

        WAL__ASSERT(head_offset + summary->head_id.size <= old->text_capacity);
        if (summary->head_id.size > 0) {
            memmove(to, summary->head_id.data, summary->head_id.size);
        }
        old->summary = *summary;
        old->summary.head_id.data = to;
        reset_slot_fields(old, id_hash);
        update_hidden_count(catalogue, was_hidden, summary);
        return WAL_OK;
    }
    slot = create_slot(catalogue->heap, summary);
    if (slot == NULL) {
        return WAL_ENOMEM;
    }
    reset_slot_fields(slot, id_hash);
    WAL__ASSERT(catalogue->slot_bytes >= slot_size(old));
    catalogue->slot_bytes += slot_size(slot);
    catalogue->slot_bytes -= slot_size(old);
    catalogue->slots[index] = slot;
    update_hidden_count(catalogue, was_hidden, summary);
    wal__heap_free(catalogue->heap, old);
    return WAL_OK;
}

/* Checks a summary whose number has no slot: *is_new if the snapshot does not
 * have it either, *was_hidden if it is hidden there. WAL_ECORRUPT when number
 * and id contradict the snapshot or the overlay. */
static enum wal_status check_new(const struct wal__catalogue *catalogue,
                                 const struct wal__summary *summary,
                                 bool *is_new, bool *was_hidden)
{
    struct wal__summary row;
    enum wal_status status =
        wal__snapshot_get(catalogue, summary->number, &row);

    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return status;
    }
    *is_new = status == WAL_ENOTFOUND;
    *was_hidden = !*is_new && wal__summary_is_hidden(&row);
    return *is_new ? check_id(catalogue, summary)
                   : check_change(catalogue, &row, summary);
}

static enum wal_status reserve_slot(struct wal__catalogue *catalogue)
{
    uint32_t capacity = catalogue->slot_capacity;
    enum wal_status status = wal__hashmap_reserve(&catalogue->by_number, 1);

    if (status == WAL_OK) {
        status = wal__hashmap_reserve(&catalogue->by_id, 1);
    }
    if (status != WAL_OK || catalogue->slot_count < capacity) {
        return status;
    }
    WAL__ASSERT(catalogue->slot_count == capacity &&
                capacity <= UINT32_MAX / 2);
    /* The maps bound the capacity far below an overflow. */
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
    uint64_t id_hash = wal__id_hash(summary->id.data, summary->id.size);
    uint32_t index = catalogue->slot_count;
    struct wal__overlay_slot *slot;
    bool is_new;
    bool was_hidden;
    enum wal_status status =
        check_new(catalogue, summary, &is_new, &was_hidden);

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
    reset_slot_fields(slot, id_hash);
    WAL__ASSERT(index < catalogue->slot_capacity);
    status = wal__hashmap_add(&catalogue->by_number, summary->number, index);
    WAL__ASSERT(status == WAL_OK);
    status = wal__hashmap_add(&catalogue->by_id, id_hash, index);
    WAL__ASSERT(status == WAL_OK);
    catalogue->slots[index] = slot;
    catalogue->slot_count++;
    WAL__ASSERT(catalogue->by_number.count == catalogue->slot_count &&
                catalogue->by_id.count == catalogue->slot_count);
    catalogue->slot_bytes += slot_size(slot);
    catalogue->session_count += is_new;
    update_hidden_count(catalogue, was_hidden, summary);
    if (catalogue->last_session < summary->number &&
        summary->number != WAL__STORE_NUMBER) {
        catalogue->last_session = summary->number;
    }
    return WAL_OK;
}

enum wal_status wal__catalogue_put(struct wal__catalogue *catalogue,
                                   const struct wal__summary *summary)
{
    uint32_t slot;

    if (!wal__summary_is_valid(summary) ||
        (summary->number == WAL__STORE_NUMBER &&
         !wal__span_equal(summary->id, wal__store_id))) {
        return WAL_ECORRUPT;
    }
    return wal__catalogue_find_slot(catalogue, summary->number, &slot)
               ? replace(catalogue, slot, summary)
               : insert(catalogue, summary);
}

enum wal_status wal__catalogue_mark_damaged(struct wal__catalogue *catalogue,
                                            uint32_t number)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        wal__store_summary(&summary);
        status = WAL_OK;
    }
    if (status != WAL_OK || (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return status;
    }
    summary.flags |= WAL__SUMMARY_DAMAGED;
    return wal__catalogue_put(catalogue, &summary);
}
