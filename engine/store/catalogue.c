/*
 * catalogue.c - the state of every session, in layers (catalogue.h, SPEC.md
 * 2.13): looks sessions up, puts their summaries, applies records of the log
 * (2.5 to 2.8) and iterates, newest first. catalogue_snapshot.c reads and
 * writes the mapped layer.
 *
 * An overlay is a layer in memory. Its slots are never removed or reordered, so that an iterator
 * knows from the count at init which slots it covers; keys[i] is the key of slots[i]. A record
 * changes a copy of the session's summary, which is put after every check.
 *
 * Lists. A session with a slot at init is returned from the heap of slots and skipped in the
 * snapshot; a session that got a slot later is returned at its position in the snapshot. Both
 * sources are ordered by the keys at init, and are those of init, whatever layers the catalogue has
 * since. With a source filter all sessions may come from the heap.
 *
 * Invariants: the id of a number never changes, and no two visible sessions have the same id; a
 * frozen layer is never changed; every step that can fail precedes the first change; by_source has
 * each session that was visible with a source when its number was indexed, also those that were
 * deleted since. The caller's lock: one writer, or any readers; an iterator belongs to one thread.
 */
#include "engine/store/catalogue.h"

#include <assert.h>
#include <string.h>

#include "engine/store/catalogue_internal.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/payload/first_text.h"
#include "format/payload/timestamp.h"

/* --- overlays ----------------------------------------------------------- */

enum {
    HEAD_ID_CAPACITY_MIN = 36, /* a UUID */
    CAPACITY_MIN = 16
};

/* Returns an empty layer with one reference, or NULL without memory. */
static struct wal__overlay *overlay_create(const struct wal__heap *heap)
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

/* NULL is allowed, and returned. */
static struct wal__overlay *overlay_retain(struct wal__overlay *overlay)
{
    if (overlay != NULL) {
        atomic_fetch_add_explicit(&overlay->references, 1, memory_order_relaxed);
    }
    return overlay;
}

static void overlay_release(struct wal__overlay *overlay)
{
    const struct wal__heap *heap;
    uint32_t before;

    if (overlay == NULL) {
        return;
    }
    /* What other holders read happens before the memory is freed. */
    before = atomic_fetch_sub_explicit(&overlay->references, 1, memory_order_acq_rel);
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

/* The heap memory of the layer in bytes; NULL: 0. */
static uint64_t overlay_size(const struct wal__overlay *overlay)
{
    uint64_t map_slots;

    if (overlay == NULL) {
        return 0;
    }
    map_slots = (uint64_t)overlay->by_number.capacity + overlay->by_id.capacity;
    return overlay->slot_bytes +
           overlay->capacity * (sizeof(*overlay->slots) + sizeof(*overlay->keys)) +
           map_slots * (sizeof(*overlay->by_id.hashes) + sizeof(*overlay->by_id.values));
}

/* Finds the slot of the visible session with the id, likewise. */
static bool overlay_find_id(const struct wal__overlay *overlay, struct wal__span id, uint64_t hash,
                            uint32_t *slot)
{
    uint32_t cursor = 0;
    uint32_t found;

    while (overlay != NULL && wal__hashmap_find(&overlay->by_id, hash, &cursor, &found)) {
        struct wal__summary summary;

        wal__overlay_get(overlay, found, &summary);
        WAL__ASSERT(summary.id_hash == hash);
        if (wal__span_equal(summary.id, id) && !wal__summary_is_hidden(&summary)) {
            *slot = found;
            return true;
        }
    }
    return false;
}

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

static void fill_slot(struct wal__overlay_slot *slot, const struct encoded *encoded)
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

static void set_key(struct wal__overlay *overlay, uint32_t slot, const struct wal__summary *summary)
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
    slots = wal__heap_resize(overlay->heap, overlay->slots, capacity, sizeof(*slots));
    if (slots == NULL) {
        return WAL_ENOMEM;
    }
    overlay->slots = slots;
    keys = wal__heap_resize(overlay->heap, overlay->keys, capacity, sizeof(*keys));
    if (keys == NULL) {
        return WAL_ENOMEM;
    }
    overlay->keys = keys;
    overlay->capacity = capacity;
    return WAL_OK;
}

static enum wal_status insert(struct wal__overlay *overlay, const struct wal__summary *summary,
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

/* Adds or replaces the slot of the summary's session. The summary is valid, and its texts may be
 * those of the slot. WAL_ENOMEM leaves the layer unchanged. */
static enum wal_status overlay_put(struct wal__overlay *overlay, const struct wal__summary *summary)
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

/* --- the catalogue ------------------------------------------------------ */

static const struct wal__span store_id = {(const uint8_t *)"store", 5};

/* The summary of the store before its first record. */
static void store_summary(struct wal__summary *summary)
{
    *summary = (struct wal__summary){.number = WAL__STORE_NUMBER, .id = store_id};
}

void wal__catalogue_init(struct wal__catalogue *catalogue, const struct wal__heap *heap)
{
    *catalogue = (struct wal__catalogue){.heap = heap};
    wal__hashmap_init(&catalogue->by_source, heap);
    wal__buf_init(&catalogue->sources, heap);
}

void wal__catalogue_deinit(struct wal__catalogue *catalogue)
{
    overlay_release(catalogue->overlay);
    overlay_release(catalogue->frozen);
    wal__snapshot_release(catalogue->snapshot);
    wal__hashmap_deinit(&catalogue->by_source);
    wal__buf_deinit(&catalogue->sources);
    wal__catalogue_init(catalogue, catalogue->heap);
}

uint64_t wal__catalogue_overlay_size(const struct wal__catalogue *catalogue)
{
    return overlay_size(catalogue->overlay) + overlay_size(catalogue->frozen);
}

/* --- layers ------------------------------------------------------------- */

void wal__catalogue_attach(struct wal__catalogue *catalogue, struct wal__snapshot *snapshot)
{
    WAL__ASSERT(catalogue->snapshot == NULL && catalogue->overlay == NULL);
    catalogue->snapshot = snapshot;
    catalogue->last_session = snapshot->header.last_session;
    catalogue->visible_count = snapshot->header.session_count - snapshot->header.hidden_count;
}

void wal__catalogue_share(const struct wal__catalogue *image, struct wal__catalogue *copy)
{
    WAL__ASSERT(image->overlay == NULL);
    *copy = *image;
    wal__hashmap_init(&copy->by_source, copy->heap);
    wal__buf_init(&copy->sources, copy->heap);
    copy->sources_indexed = 0;
    (void)wal__snapshot_retain(copy->snapshot);
    (void)overlay_retain(copy->frozen);
}

void wal__catalogue_freeze(struct wal__catalogue *catalogue, struct wal__catalogue *image)
{
    WAL__ASSERT(catalogue->frozen == NULL);
    catalogue->frozen = catalogue->overlay;
    catalogue->overlay = NULL;
    wal__catalogue_share(catalogue, image);
}

void wal__catalogue_thaw(struct wal__catalogue *catalogue)
{
    WAL__ASSERT(catalogue->overlay == NULL);
    catalogue->overlay = catalogue->frozen;
    catalogue->frozen = NULL;
}

void wal__catalogue_adopt(struct wal__catalogue *catalogue, struct wal__snapshot *snapshot)
{
    wal__snapshot_release(catalogue->snapshot);
    overlay_release(catalogue->frozen);
    catalogue->snapshot = snapshot;
    catalogue->frozen = NULL;
}

/* --- looking up --------------------------------------------------------- */

/* Finds the summary in the overlay or the frozen layer; false, with *summary untouched, when it is
 * in neither. */
static bool catalogue_get_changed(const struct wal__catalogue *catalogue, uint32_t number,
                                  struct wal__summary *summary)
{
    const struct wal__overlay *layer = catalogue->overlay;
    uint32_t slot;
    bool found = wal__overlay_find(layer, number, &slot);

    if (!found) {
        layer = catalogue->frozen;
        found = wal__overlay_find(layer, number, &slot);
    }
    if (found) {
        wal__overlay_get(layer, slot, summary);
    }
    return found;
}

enum wal_status wal__catalogue_get(const struct wal__catalogue *catalogue, uint32_t number,
                                   struct wal__summary *summary)
{
    return catalogue_get_changed(catalogue, number, summary)
               ? WAL_OK
               : wal__snapshot_get(catalogue->snapshot, number, summary);
}

enum wal_status wal__catalogue_is_in_snapshot(const struct wal__catalogue *catalogue,
                                              uint32_t number, bool *found)
{
    uint32_t rank;
    enum wal_status status = wal__snapshot_find_rank(catalogue->snapshot, number, &rank);

    *found = status == WAL_OK;
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

enum wal_status wal__catalogue_find(const struct wal__catalogue *catalogue, struct wal__span id,
                                    struct wal__summary *summary)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    uint32_t newer;
    uint32_t slot;

    if (overlay_find_id(catalogue->overlay, id, hash, &slot)) {
        wal__overlay_get(catalogue->overlay, slot, summary);
        return WAL_OK;
    }
    if (overlay_find_id(catalogue->frozen, id, hash, &slot)) {
        wal__overlay_get(catalogue->frozen, slot, summary);
        if (!wal__overlay_find(catalogue->overlay, summary->number, &newer)) {
            return WAL_OK;
        }
    }
    return wal__snapshot_find(catalogue, id, summary);
}

/* --- putting ------------------------------------------------------------ */

/* WAL_ECORRUPT when another visible session has the id. Hidden sessions may share an id. */
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
                                    const struct wal__summary *from, const struct wal__summary *to)
{
    if (!wal__span_equal(from->id, to->id)) {
        return WAL_ECORRUPT;
    }
    return wal__summary_is_hidden(from) ? check_id(catalogue, to) : WAL_OK;
}

/* Checks a summary against the present one of its number, and reports whether that is visible. */
static enum wal_status check_put(const struct wal__catalogue *catalogue,
                                 const struct wal__summary *summary, bool *was_visible)
{
    struct wal__summary present;
    enum wal_status status = wal__catalogue_get(catalogue, summary->number, &present);

    *was_visible = status == WAL_OK && !wal__summary_is_hidden(&present);
    if (status == WAL_ENOTFOUND) {
        return check_id(catalogue, summary);
    }
    return status == WAL_OK ? check_change(catalogue, &present, summary) : status;
}

/* Puts a summary that was checked. */
static enum wal_status put_checked(struct wal__catalogue *catalogue,
                                   const struct wal__summary *summary, bool was_visible)
{
    struct wal__summary put = *summary;
    enum wal_status status;

    if (catalogue->overlay == NULL) {
        catalogue->overlay = overlay_create(catalogue->heap);
    }
    if (catalogue->overlay == NULL) {
        return WAL_ENOMEM;
    }
    put.id_hash = wal__id_hash(put.id.data, put.id.size);
    put.first_posting = 0;
    put.posting_count = 0;
    status = overlay_put(catalogue->overlay, &put);
    if (status != WAL_OK) {
        return status;
    }
    catalogue->visible_count += !wal__summary_is_hidden(&put);
    catalogue->visible_count -= was_visible;
    if (catalogue->last_session < put.number && put.number != WAL__STORE_NUMBER) {
        catalogue->last_session = put.number;
    }
    return WAL_OK;
}

static bool is_valid(const struct wal__summary *summary)
{
    return wal__summary_is_valid(summary) &&
           (summary->number != WAL__STORE_NUMBER || wal__span_equal(summary->id, store_id));
}

enum wal_status wal__catalogue_put(struct wal__catalogue *catalogue,
                                   const struct wal__summary *summary)
{
    bool was_visible;
    enum wal_status status =
        is_valid(summary) ? check_put(catalogue, summary, &was_visible) : WAL_ECORRUPT;

    return status == WAL_OK ? put_checked(catalogue, summary, was_visible) : status;
}

enum wal_status wal__catalogue_put_indexed(struct wal__catalogue *catalogue,
                                           const struct wal__summary *summary)
{
    struct wal__summary present;

    if (!is_valid(summary)) {
        return WAL_ECORRUPT;
    }
    /* Looking up its id in the snapshot would cost more than all the rest. */
    return wal__catalogue_get(catalogue, summary->number, &present) == WAL_ENOTFOUND
               ? put_checked(catalogue, summary, false)
               : wal__catalogue_put(catalogue, summary);
}

enum wal_status wal__catalogue_mark_damaged(struct wal__catalogue *catalogue, uint32_t number)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        store_summary(&summary);
        status = WAL_OK;
    }
    if (status != WAL_OK || (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return status;
    }
    summary.flags |= WAL__SUMMARY_DAMAGED;
    return wal__catalogue_put(catalogue, &summary);
}

/* --- sources ------------------------------------------------------------ */

static struct wal__catalogue_source *source_at(const struct wal__catalogue *catalogue,
                                               uint32_t rank)
{
    return (struct wal__catalogue_source *)(void *)catalogue->sources.data + rank;
}

/* Finds the first session with the hash. */
static bool find_source(const struct wal__catalogue *catalogue, uint64_t hash, uint32_t *rank)
{
    uint32_t cursor = 0;

    return wal__hashmap_find(&catalogue->by_source, hash, &cursor, rank);
}

static enum wal_status add_source(struct wal__catalogue *catalogue, uint64_t hash, uint32_t number)
{
    const uint32_t rank =
        (uint32_t)(catalogue->sources.size / sizeof(struct wal__catalogue_source));
    const struct wal__catalogue_source added = {.number = number, .last = rank};
    enum wal_status status = wal__buf_append(&catalogue->sources, &added, sizeof(added));
    uint32_t first;

    if (status != WAL_OK) {
        return status;
    }
    if (find_source(catalogue, hash, &first)) {
        source_at(catalogue, source_at(catalogue, first)->last)->next = rank;
        source_at(catalogue, first)->last = rank;
        return WAL_OK;
    }
    status = wal__hashmap_add(&catalogue->by_source, hash, rank);
    if (status != WAL_OK) {
        catalogue->sources.size -= sizeof(added);
    }
    return status;
}

enum wal_status wal__catalogue_index_sources(struct wal__catalogue *catalogue)
{
    while (catalogue->sources_indexed < catalogue->last_session) {
        uint32_t number = catalogue->sources_indexed + 1;
        struct wal__summary summary;
        enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

        if (status == WAL_OK && summary.source.size > 0 && !wal__summary_is_hidden(&summary)) {
            status = add_source(catalogue, wal__id_hash(summary.source.data, summary.source.size),
                                number);
        }
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
        catalogue->sources_indexed = number;
    }
    return WAL_OK;
}

/* --- applying records --------------------------------------------------- */

/* The first user message is searched in this many own entries. */
enum { FIRST_TEXT_ENTRIES_MAX = 64 };

static_assert((int)WAL__FIRST_TEXT_MAX == (int)WAL__SUMMARY_FIRST_MAX,
              "a summary has room for a first text");

/* A record and the changed copy of its session's summary. */
struct change {
    const struct wal__catalogue *catalogue;
    const struct wal__log_record *record;
    struct wal__summary summary;
    uint8_t first[WAL__FIRST_TEXT_MAX]; /* holds a new summary.first_text */
};

/* A session without entries was last active when it was created. */
static void set_created(struct change *change, int64_t created_ms, bool is_new)
{
    struct wal__summary *summary = &change->summary;
    int64_t time_ms = wal__session_time_believed(created_ms, change->record->clock_ms);

    if (is_new || time_ms < summary->created_ms) {
        summary->created_ms = time_ms;
    }
    if (is_new) {
        summary->updated_ms = time_ms;
    }
}

static void add_activity(struct change *change, struct wal__span time)
{
    struct wal__summary *summary = &change->summary;
    int64_t time_ms = wal__session_time_of_entry(time, change->record->clock_ms);

    if ((summary->flags & WAL__SUMMARY_ACTIVE) == 0 || time_ms > summary->updated_ms) {
        summary->updated_ms = time_ms;
    }
    if (time_ms < summary->created_ms) {
        summary->created_ms = time_ms;
    }
    summary->flags |= WAL__SUMMARY_ACTIVE;
}

static enum wal_status apply_session(struct change *change)
{
    const struct wal__log_record *record = change->record;
    struct wal__summary *summary = &change->summary;
    struct wal__session_record session;

    if (wal__session_record_decode(record->payload, record->version, &session) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if (summary->id.size > 0 && !wal__span_equal(summary->id, session.id)) {
        return WAL_ECORRUPT;
    }
    set_created(change, session.created_ms, summary->id.size == 0);
    summary->id = session.id;
    summary->cwd = session.cwd;
    summary->project = session.project;
    summary->title = session.title;
    summary->parent_id = session.parent_id;
    summary->source = session.source;
    summary->schema_version = session.schema_version;
    summary->session_position = record->position;
    summary->flags &= ~(uint32_t)(WAL__SUMMARY_FORK | WAL__SUMMARY_TRASHED | WAL__SUMMARY_MOVED);
    if ((session.flags & WAL__SESSION_RECORD_FORK) != 0) {
        summary->flags |= WAL__SUMMARY_FORK;
    }
    if ((session.flags & WAL__SESSION_RECORD_TRASHED) != 0) {
        summary->flags |= WAL__SUMMARY_TRASHED;
    }
    if ((session.flags & WAL__SESSION_RECORD_MOVED) != 0) {
        summary->flags |= WAL__SUMMARY_MOVED;
    }
    return WAL_OK;
}

/* The summary of another session that a FORK names. */
static enum wal_status get_fork_session(const struct change *change, uint32_t number,
                                        struct wal__summary *other)
{
    enum wal_status status;

    if (number == change->summary.number || number == WAL__STORE_NUMBER) {
        return WAL_ECORRUPT;
    }
    status = wal__catalogue_get(change->catalogue, number, other);
    return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
}

/* Sets the head and the first user message of a fork of stream 0. */
static void init_from_source(struct change *change, const struct wal__fork_record *fork,
                             const struct wal__summary *source)
{
    struct wal__summary *summary = &change->summary;
    uint64_t point = change->record->frame->parent;

    summary->head_sequence = point;
    summary->head_id = fork->entry_id;
    if (source->first_sequence != 0 && source->first_sequence <= point) {
        summary->first_sequence = source->first_sequence;
        summary->first_owner = source->first_owner;
        summary->first_text.size = 0;
    }
}

static enum wal_status apply_fork(struct change *change)
{
    const struct wal__log_record *record = change->record;
    struct wal__summary *summary = &change->summary;
    struct wal__fork_record fork;
    struct wal__summary owner;
    struct wal__summary source;
    enum wal_status status;

    if (wal__fork_record_decode(record->payload, &fork) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    status = get_fork_session(change, fork.owner, &owner);
    if (status == WAL_OK) {
        status = get_fork_session(change, fork.source, &source);
    }
    if (status != WAL_OK) {
        return status;
    }
    summary->flags |= WAL__SUMMARY_FORK;
    summary->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    summary->fork_sequence = record->frame->parent;
    summary->fork_record = record->frame->sequence;
    summary->fork_owner = fork.owner;
    summary->fork_source = fork.source;
    summary->inherited = fork.inherited;
    summary->depth = fork.depth;
    if (fork.stream == 0) {
        init_from_source(change, &fork, &source);
    }
    return WAL_OK;
}

static void find_first_text(struct change *change, const struct wal__entry_record *entry)
{
    struct wal__summary *summary = &change->summary;
    size_t size;

    if (wal__first_text(entry->payload, change->first, &size)) {
        WAL__ASSERT(size <= sizeof(change->first));
        summary->first_text = (struct wal__span){change->first, size};
        summary->first_owner = summary->number;
        summary->first_sequence = change->record->frame->sequence;
    }
}

/* Keeps the flag while each entry of stream 0 is under the one before it. */
static void apply_straight(struct wal__summary *summary, const struct wal__frame *frame)
{
    bool continues =
        (frame->flags & WAL__FRAME_MOVES_HEAD) != 0 && frame->parent == summary->head_sequence;

    if (summary->entries == 0 && continues && summary->head_sequence == summary->fork_sequence) {
        summary->flags |= WAL__SUMMARY_STRAIGHT;
    } else if (!continues) {
        summary->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    }
}

static enum wal_status apply_entry(struct change *change)
{
    const struct wal__frame *frame = change->record->frame;
    struct wal__summary *summary = &change->summary;
    bool moves_head = (frame->flags & WAL__FRAME_MOVES_HEAD) != 0;
    bool may_be_first = summary->first_sequence == 0 && summary->entries < FIRST_TEXT_ENTRIES_MAX;
    struct wal__entry_record entry;

    if (wal__entry_record_decode(change->record->payload, &entry) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if ((frame->flags & WAL__FRAME_PROVISIONAL) != 0) {
        return WAL_OK; /* compaction may drop it: nothing is said of it */
    }
    add_activity(change, entry.time);
    if (frame->stream != 0) {
        return WAL_OK;
    }
    apply_straight(summary, frame);
    summary->entries++;
    if (moves_head) {
        summary->head_sequence = frame->sequence;
        summary->head_id = entry.id;
    }
    if (may_be_first) {
        find_first_text(change, &entry);
    }
    return WAL_OK;
}

static enum wal_status apply_head(struct change *change)
{
    static const struct wal__span name = {(const uint8_t *)"main", 4};
    const struct wal__frame *frame = change->record->frame;
    struct wal__summary *summary = &change->summary;
    struct wal__head_record head;

    if (wal__head_record_decode(change->record->payload, &head) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if (frame->stream == 0 && wal__span_equal(head.name, name)) {
        summary->head_sequence = head.entry_id.size > 0 ? frame->parent : 0;
        summary->head_id = head.entry_id;
        summary->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    }
    return WAL_OK;
}

/* The entry stays the first user message; it has no text any more. */
static void apply_redact(struct change *change)
{
    struct wal__summary *summary = &change->summary;

    if (summary->first_sequence == change->record->frame->parent) {
        summary->first_text.size = 0;
    }
}

static enum wal_status apply_type(struct change *change)
{
    switch (change->record->frame->type) {
    case WAL__FRAME_SESSION:
        return apply_session(change);
    case WAL__FRAME_FORK:
        return apply_fork(change);
    case WAL__FRAME_ENTRY:
        return apply_entry(change);
    case WAL__FRAME_HEAD:
        return apply_head(change);
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        change->summary.documents++;
        return WAL_OK;
    case WAL__FRAME_REDACT:
        apply_redact(change);
        return WAL_OK;
    case WAL__FRAME_TOMBSTONE:
        change->summary.flags |= WAL__SUMMARY_DELETED;
        return WAL_OK;
    case WAL__FRAME_ACCEPT:
        change->summary.flags &= ~(uint32_t)WAL__SUMMARY_DAMAGED;
        return WAL_OK;
    default:
        return WAL_OK;
    }
}

/* Whether the record belongs to a session. A type of a newer library does if its frame has a
 * sequence and a session. */
static bool is_session_record(const struct wal__frame *frame)
{
    switch (frame->type) {
    case WAL__FRAME_SESSION:
    case WAL__FRAME_ENTRY:
    case WAL__FRAME_FORK:
    case WAL__FRAME_HEAD:
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
    case WAL__FRAME_REDACT:
    case WAL__FRAME_TOMBSTONE:
    case WAL__FRAME_ACCEPT:
    case WAL__FRAME_RESTORE:
        return true;
    default:
        return wal__frame_is_sequenced(frame->type) && frame->session != 0;
    }
}

/* Whether the store itself may have records of this type: it has no entries, only documents. */
static bool is_store_record(uint8_t type)
{
    switch (type) {
    case WAL__FRAME_SESSION:
    case WAL__FRAME_ENTRY:
    case WAL__FRAME_FORK:
    case WAL__FRAME_HEAD:
    case WAL__FRAME_REDACT:
    case WAL__FRAME_TOMBSTONE:
    case WAL__FRAME_RESTORE:
        return false;
    default:
        return true;
    }
}

/* Copies the summary that the record changes, or starts a new one. */
static enum wal_status load_summary(struct change *change)
{
    const struct wal__frame *frame = change->record->frame;
    bool is_store = frame->session == WAL__STORE_NUMBER;
    enum wal_status status;

    if (is_store && !is_store_record(frame->type)) {
        return WAL_ECORRUPT;
    }
    status = wal__catalogue_get(change->catalogue, frame->session, &change->summary);
    if (status != WAL_ENOTFOUND) {
        return status;
    }
    if (is_store) {
        store_summary(&change->summary);
        change->summary.created_ms = change->record->clock_ms;
        return WAL_OK;
    }
    change->summary = (struct wal__summary){.number = frame->session};
    return frame->type == WAL__FRAME_SESSION ? WAL_OK : WAL_ECORRUPT;
}

/* flags: added to the summary. */
static enum wal_status apply(struct wal__catalogue *catalogue, const struct wal__log_record *record,
                             uint32_t flags)
{
    struct change change;
    enum wal_status status;

    if (!is_session_record(record->frame)) {
        return WAL_OK;
    }
    change.catalogue = catalogue;
    change.record = record;
    status = load_summary(&change);
    if (status == WAL_OK) {
        status = apply_type(&change);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (change.summary.number == WAL__STORE_NUMBER) {
        change.summary.updated_ms = record->clock_ms;
    }
    change.summary.flags |= flags;
    change.summary.last_sequence = record->frame->sequence;
    change.summary.bytes += wal__frame_total_size(record->frame->stored_size);
    return wal__catalogue_put(catalogue, &change.summary);
}

enum wal_status wal__catalogue_apply(struct wal__catalogue *catalogue,
                                     const struct wal__log_record *record)
{
    return apply(catalogue, record, 0);
}

enum wal_status wal__catalogue_apply_deleted(struct wal__catalogue *catalogue,
                                             const struct wal__log_record *record)
{
    return apply(catalogue, record, WAL__SUMMARY_DELETED);
}

enum wal_status wal__catalogue_set_segment(struct wal__catalogue *catalogue, uint32_t number,
                                           uint64_t segment)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status != WAL_OK || summary.segment == segment) {
        return status;
    }
    summary.segment = segment;
    return wal__catalogue_put(catalogue, &summary);
}

/* --- lists -------------------------------------------------------------- */

static struct wal__list_key list_key_from_item(const struct wal__heapsort_item *item)
{
    return (struct wal__list_key){
        .updated_ms = (int64_t)(item->key ^ UINT64_C(1) << 63),
        .sequence = item->tie,
        .number = ~item->value,
    };
}

static bool matches_text(struct wal__span filter, struct wal__span text)
{
    return filter.size == 0 || wal__span_equal(filter, text);
}

static bool has_prefix(struct wal__span prefix, struct wal__span id)
{
    return prefix.size == 0 ||
           (prefix.size <= id.size && memcmp(prefix.data, id.data, prefix.size) == 0);
}

static bool is_changed(const struct wal__catalogue_filter *filter,
                       const struct wal__summary *summary)
{
    return filter->changed_after == 0 || summary->updated_ms > filter->changed_after;
}

static bool matches(const struct wal__catalogue_filter *filter, const struct wal__summary *summary)
{
    return is_changed(filter, summary) &&
           (filter->recorded_after == 0 || summary->last_sequence > filter->recorded_after) &&
           matches_text(filter->cwd, summary->cwd) &&
           matches_text(filter->project, summary->project) &&
           matches_text(filter->source, summary->source) &&
           matches_text(filter->parent_id, summary->parent_id) &&
           has_prefix(filter->prefix, summary->id);
}

/* Whether the filter needs more than the list key. */
static bool is_filtered(const struct wal__catalogue_filter *filter)
{
    return filter->changed_after != 0 || filter->recorded_after != 0 ||
           filter->cwd.size + filter->project.size + filter->prefix.size + filter->source.size +
                   filter->parent_id.size >
               0;
}

static bool slot_matches(const struct wal__catalogue_filter *filter,
                         const struct wal__overlay *layer, uint32_t slot)
{
    struct wal__summary summary;

    if (layer->keys[slot].number == 0 ||
        !wal__list_key_is_after(&layer->keys[slot], &filter->after)) {
        return false;
    }
    if (!is_filtered(filter)) {
        return true;
    }
    wal__overlay_get(layer, slot, &summary);
    return matches(filter, &summary);
}

/* Adds the slots of a layer that match, and that `newer` does not hide. */
static void add_slots(struct wal__catalogue_iter *iter, const struct wal__overlay *layer,
                      const struct wal__overlay *newer)
{
    for (uint32_t i = 0; layer != NULL && i < layer->count; i++) {
        uint32_t slot;

        if (slot_matches(&iter->filter, layer, i) &&
            !wal__overlay_find(newer, layer->keys[i].number, &slot)) {
            iter->items[iter->item_count++] = wal__list_key_to_item(&layer->keys[i]);
        }
    }
}

static enum wal_status init_heap(struct wal__catalogue_iter *iter,
                                 const struct wal__catalogue *catalogue)
{
    uint32_t count = wal__catalogue_overlay_count(catalogue);

    if (count == 0) {
        return WAL_OK;
    }
    iter->items = wal__heap_resize(catalogue->heap, NULL, count, sizeof(*iter->items));
    if (iter->items == NULL) {
        return WAL_ENOMEM;
    }
    add_slots(iter, catalogue->overlay, NULL);
    add_slots(iter, catalogue->frozen, catalogue->overlay);
    WAL__ASSERT(iter->item_count <= count);
    wal__heapsort_make_heap(iter->items, iter->item_count);
    return WAL_OK;
}

/* Whether by_source has every session. */
static bool has_sources(const struct wal__catalogue *catalogue)
{
    return catalogue->sources_indexed == catalogue->last_session;
}

/* Adds the session to the heap when it passes the filter; `capacity` items have room. */
static enum wal_status add_session(struct wal__catalogue_iter *iter,
                                   const struct wal__catalogue *catalogue, uint32_t number,
                                   uint32_t capacity)
{
    struct wal__summary summary;
    struct wal__list_key key;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    key = wal__summary_list_key(&summary);
    if (!wal__summary_is_hidden(&summary) && wal__list_key_is_after(&key, &iter->filter.after) &&
        matches(&iter->filter, &summary)) {
        WAL__ASSERT(iter->item_count < capacity);
        iter->items[iter->item_count++] = wal__list_key_to_item(&key);
    }
    return WAL_OK;
}

/* Makes the heap of the sessions of by_source, which has every session. */
static enum wal_status init_source_heap(struct wal__catalogue_iter *iter,
                                        const struct wal__catalogue *catalogue)
{
    uint64_t hash = wal__id_hash(iter->filter.source.data, iter->filter.source.size);
    enum wal_status status = WAL_OK;
    uint32_t capacity = 0;
    uint32_t first;
    uint32_t rank;

    WAL__ASSERT(has_sources(catalogue));
    if (!find_source(catalogue, hash, &first)) {
        return WAL_OK;
    }
    rank = first;
    do {
        capacity++;
        rank = source_at(catalogue, rank)->next;
    } while (rank != 0);
    iter->items = wal__heap_resize(catalogue->heap, NULL, capacity, sizeof(*iter->items));
    if (iter->items == NULL) {
        return WAL_ENOMEM;
    }
    rank = first;
    do {
        status = add_session(iter, catalogue, source_at(catalogue, rank)->number, capacity);
        rank = source_at(catalogue, rank)->next;
    } while (rank != 0 && status == WAL_OK);
    if (status != WAL_OK) {
        wal__heap_free(catalogue->heap, iter->items);
        iter->items = NULL;
        return status;
    }
    wal__heapsort_make_heap(iter->items, iter->item_count);
    return WAL_OK;
}

/* Finds the first item of the snapshot's section by binary search. */
static enum wal_status seek_snapshot(struct wal__catalogue_iter *iter)
{
    const struct wal__catalogue_filter *filter = &iter->filter;
    const struct wal__snapshot *snapshot = iter->snapshot;
    struct wal__snapshot_key key = {.after = filter->after};

    if (snapshot == NULL) {
        return WAL_OK;
    }
    if (filter->recorded_after != 0 && filter->recorded_after >= snapshot->header.last_sequence) {
        iter->snapshot_end = 0; /* the overlay has all of them */
        return WAL_OK;
    }
    if (filter->cwd.size > 0) {
        key.hash = wal__id_hash(filter->cwd.data, filter->cwd.size);
        iter->cwd_hash = key.hash;
        return wal__snapshot_cwd_begin(snapshot, &key, &iter->snapshot_next);
    }
    if (filter->after.number != 0) {
        return wal__snapshot_recent_begin(snapshot, &key, &iter->snapshot_next);
    }
    return WAL_OK;
}

enum wal_status wal__catalogue_iter_init(struct wal__catalogue_iter *iter,
                                         const struct wal__catalogue *catalogue,
                                         const struct wal__catalogue_filter *filter)
{
    struct wal__catalogue_iter opened = {
        .filter = *filter,
        .snapshot = catalogue->snapshot,
        .snapshot_end = wal__snapshot_count(catalogue->snapshot),
        .key = filter->after,
        .heap = catalogue->heap,
    };
    enum wal_status status;

    if (filter->source.size > 0 && has_sources(catalogue)) {
        opened.snapshot_end = 0;
        status = init_source_heap(&opened, catalogue);
    } else {
        status = seek_snapshot(&opened);
        WAL__ASSERT(status != WAL_OK || opened.snapshot_next <= opened.snapshot_end ||
                    opened.snapshot_end == 0);
        if (status == WAL_OK) {
            status = init_heap(&opened, catalogue);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    (void)wal__snapshot_retain(opened.snapshot);
    opened.frozen = overlay_retain(catalogue->frozen);
    opened.overlay = overlay_retain(catalogue->overlay);
    opened.slot_count = catalogue->overlay == NULL ? 0 : catalogue->overlay->count;
    *iter = opened;
    return WAL_OK;
}

void wal__catalogue_iter_deinit(struct wal__catalogue_iter *iter)
{
    wal__heap_free(iter->heap, iter->items);
    overlay_release(iter->overlay);
    overlay_release(iter->frozen);
    wal__snapshot_release(iter->snapshot);
    *iter = (struct wal__catalogue_iter){.heap = iter->heap};
}

/* Whether the section has passed all sessions of the filter: those of its cwd, among which there
 * may be others with the same hash, or those that changed. */
static bool is_beyond_filter(const struct wal__catalogue_iter *iter, const struct wal__summary *row)
{
    if (iter->filter.cwd.size > 0 && !wal__span_equal(iter->filter.cwd, row->cwd) &&
        wal__id_hash(row->cwd.data, row->cwd.size) != iter->cwd_hash) {
        return true;
    }
    return !is_changed(&iter->filter, row);
}

/* Whether the session had a slot at init, and so is in the heap or did not match. */
static bool had_slot(const struct wal__catalogue_iter *iter, uint32_t number)
{
    uint32_t slot;

    return wal__overlay_find(iter->frozen, number, &slot) ||
           (wal__overlay_find(iter->overlay, number, &slot) && slot < iter->slot_count);
}

/* Advances snapshot_next to the snapshot's newest session that was not returned yet; WAL_END if
 * there is none. */
static enum wal_status peek_snapshot(struct wal__catalogue_iter *iter, struct wal__summary *row)
{
    const struct wal__snapshot *snapshot = iter->snapshot;
    bool by_cwd = iter->filter.cwd.size > 0;

    for (; iter->snapshot_next < iter->snapshot_end; iter->snapshot_next++) {
        uint64_t section = by_cwd ? snapshot->layout.by_cwd : snapshot->layout.by_recent;
        uint32_t rank;
        enum wal_status status = wal__snapshot_rank(snapshot, section, iter->snapshot_next, &rank);

        wal__snapshot_prefetch(snapshot, section, iter->snapshot_next);
        if (status == WAL_OK) {
            status = wal__snapshot_row(snapshot, rank, row);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (is_beyond_filter(iter, row)) {
            iter->snapshot_end = iter->snapshot_next;
            break;
        }
        if (!had_slot(iter, row->number) && matches(&iter->filter, row)) {
            return WAL_OK;
        }
    }
    return WAL_END;
}

/* The newest key in the heap; number 0 if it is empty. */
static struct wal__list_key peek_heap(const struct wal__catalogue_iter *iter)
{
    return iter->item_count > 0 ? list_key_from_item(&iter->items[0])
                                : (struct wal__list_key){.number = 0};
}

/* Replaces a summary of the iterator's snapshot by the present one. */
static enum wal_status get_present(const struct wal__catalogue_iter *iter,
                                   const struct wal__catalogue *catalogue,
                                   struct wal__summary *summary)
{
    if (catalogue_get_changed(catalogue, summary->number, summary) ||
        catalogue->snapshot == iter->snapshot) {
        return WAL_OK;
    }
    return wal__snapshot_get(catalogue->snapshot, summary->number, summary);
}

/* The session of the next key, which may have been deleted since init: WAL_ENOTFOUND when a newer
 * snapshot omits it. */
static enum wal_status next_session(struct wal__catalogue_iter *iter,
                                    const struct wal__catalogue *catalogue,
                                    struct wal__summary *summary)
{
    struct wal__list_key first = peek_heap(iter);
    enum wal_status status = peek_snapshot(iter, summary);

    if (status == WAL_OK) {
        struct wal__list_key key = wal__summary_list_key(summary);

        if (first.number == 0 || wal__list_key_is_after(&first, &key)) {
            iter->snapshot_next++;
            iter->key = key;
            return get_present(iter, catalogue, summary);
        }
    }
    if (status < 0 || first.number == 0) {
        return status;
    }
    (void)wal__heapsort_pop(iter->items, &iter->item_count);
    WAL__ASSERT(wal__list_key_is_after(&first, &iter->filter.after));
    iter->key = first;
    return wal__catalogue_get(catalogue, first.number, summary);
}

bool wal__catalogue_is_listed(const struct wal__catalogue_filter *filter,
                              const struct wal__summary *summary)
{
    return !wal__summary_is_hidden(summary) &&
           ((summary->flags & WAL__SUMMARY_TRASHED) != 0) == filter->is_trash;
}

enum wal_status wal__catalogue_iter_next(struct wal__catalogue_iter *iter,
                                         const struct wal__catalogue *catalogue,
                                         struct wal__summary *summary)
{
    enum wal_status status;

    do {
        status = next_session(iter, catalogue, summary);
    } while (status == WAL_ENOTFOUND ||
             (status == WAL_OK && !wal__catalogue_is_listed(&iter->filter, summary)));
    return status;
}
