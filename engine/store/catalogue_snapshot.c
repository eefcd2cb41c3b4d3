/*
 * catalogue_snapshot.c - reads the mapped snapshot of the catalogue, and writes the next one
 * (catalogue.h, SPEC.md 2.13).
 *
 * Reading. A page is verified at the first access: no result comes from one whose checksum was not;
 * the table of checksums was verified when the snapshot was opened. Several readers may verify the
 * same page concurrently.
 *
 * Merging. The next snapshot has the sessions of all layers, ranked by number, in three orders.
 * Each order is that of the old snapshot, without the sessions that have a slot or are left out,
 * merged with the sorted slots: so nothing of the old snapshot is sorted, and few of its summaries
 * are compared. What takes memory or time is proportional to the changed sessions where it can be.
 * Deleted sessions that no other session refers to are left out.
 *
 * Writing. In one pass: the pages, their checksums, and last the header, which has the checksum of
 * the checksums.
 *
 * Invariants: ranks are assigned once, before anything is written; new_ranks ascend where they are
 * not NO_RANK. The caller's lock: any readers; the catalogue does not change while it is written,
 * and an image needs no lock.
 */
#include "engine/store/catalogue_internal.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/base/containers.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    PAGE = WAL__CATALOGUE_PAGE,
    CHUNK = 16 * PAGE, /* written at once */
    CACHE_LINE = 64,
    BITS = 8,
    /* How many items ahead summaries and texts are prefetched. */
    PREFETCH_SUMMARY_DISTANCE = 16,
    PREFETCH_TEXT_DISTANCE = 8,
    PREFETCH_TEXT_SIZE = 320 /* about the texts of a session */
};

/* --- the layers above ----------------------------------------------------- */

bool wal__overlay_find(const struct wal__overlay *overlay, uint32_t number, uint32_t *slot)
{
    uint32_t cursor = 0;
    bool found = overlay != NULL && wal__hashmap_find(&overlay->by_number, number, &cursor, slot);

    WAL__ASSERT(!found || (*slot < overlay->count &&
                           wal__summary_number(overlay->slots[*slot]->summary) == number));
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

uint32_t wal__catalogue_overlay_count(const struct wal__catalogue *catalogue)
{
    uint32_t count = catalogue->overlay == NULL ? 0 : catalogue->overlay->count;

    return catalogue->frozen == NULL ? count : count + catalogue->frozen->count;
}

/* --- verifying ---------------------------------------------------------- */

/* The checksum of page 0 excludes the header, which has a separate one. */
static bool is_page_valid(const struct wal__snapshot *snapshot, uint64_t page)
{
    const uint8_t *table = snapshot->bytes.data + snapshot->layout.table;
    size_t skip = page == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;

    return wal__crc32(0, snapshot->bytes.data + page * PAGE + skip, PAGE - skip) ==
           wal__get32(table + page * sizeof(uint32_t));
}

/* The bit publishes the bytes of a page that was brought in. */
static enum wal_status verify_page(const struct wal__snapshot *snapshot, uint64_t page)
{
    uint8_t *byte = &snapshot->verified[page / BITS];
    uint8_t bit = (uint8_t)(1u << page % BITS);

    if ((__atomic_load_n(byte, __ATOMIC_ACQUIRE) & bit) != 0) {
        return WAL_OK;
    }
    if (snapshot->load != NULL) {
        enum wal_status status = snapshot->load(snapshot->owner, page);

        if (status != WAL_OK) {
            return status;
        }
    }
    if (!is_page_valid(snapshot, page)) {
        return WAL_ECORRUPT;
    }
    (void)__atomic_fetch_or(byte, bit, __ATOMIC_RELEASE);
    return WAL_OK;
}

/* Verifies the pages of a range, which is not empty and before the table. */
static enum wal_status verify(const struct wal__snapshot *snapshot, uint64_t offset, uint64_t size)
{
    uint64_t last = (offset + size - 1) / PAGE;

    WAL__ASSERT(size > 0 && offset + size <= snapshot->layout.table);
    for (uint64_t page = offset / PAGE; page <= last; page++) {
        enum wal_status status = verify_page(snapshot, page);

        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

/* --- opening ------------------------------------------------------------ */

/* Brings the first page in, or the page table. */
static enum wal_status load_pages(const struct wal__snapshot *snapshot, uint64_t from, uint64_t to)
{
    enum wal_status status = WAL_OK;

    for (uint64_t page = from / PAGE; page * PAGE < to && snapshot->load != NULL; page++) {
        status = snapshot->load(snapshot->owner, page);
        if (status != WAL_OK) {
            break;
        }
    }
    return status;
}

static enum wal_status check_header(struct wal__snapshot *snapshot, const uint8_t uuid[16])
{
    struct wal__catalogue_header *header = &snapshot->header;
    struct wal__catalogue_layout *layout = &snapshot->layout;
    const struct wal__span bytes = snapshot->bytes;
    enum wal_status status;

    if (bytes.size < PAGE) {
        return WAL_ECORRUPT;
    }
    status = load_pages(snapshot, 0, PAGE);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__catalogue_header_decode(bytes, header) != WAL__FMT_OK ||
        memcmp(header->uuid, uuid, sizeof(header->uuid)) != 0 ||
        wal__catalogue_layout(header, layout) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    /* Numbers are assigned once, from 1; the store's summary adds one. */
    if (layout->size != bytes.size || header->session_count > (uint64_t)header->last_session + 1 ||
        header->hidden_count > header->session_count) {
        return WAL_ECORRUPT;
    }
    status = load_pages(snapshot, layout->table, layout->size);
    if (status != WAL_OK) {
        return status;
    }
    return wal__crc32(0, bytes.data + layout->table, layout->size - layout->table) ==
                   header->table_crc
               ? WAL_OK
               : WAL_ECORRUPT;
}

enum wal_status wal__snapshot_open(const struct wal__heap *heap, struct wal__span bytes,
                                   const uint8_t uuid[16], struct wal__snapshot **snapshot)
{
    return wal__snapshot_open_loading(heap, bytes, uuid, NULL, NULL, snapshot);
}

enum wal_status wal__snapshot_open_loading(const struct wal__heap *heap, struct wal__span bytes,
                                           const uint8_t uuid[16],
                                           enum wal_status (*load)(void *owner, uint64_t page),
                                           void *owner, struct wal__snapshot **snapshot)
{
    struct wal__snapshot *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return WAL_ENOMEM;
    }
    opened->heap = heap;
    opened->bytes = bytes;
    opened->load = load;
    opened->owner = owner;
    atomic_init(&opened->references, 1);
    status = check_header(opened, uuid);
    if (status == WAL_OK) {
        opened->verified = wal__heap_zalloc(heap, opened->layout.table / PAGE / BITS + 1);
        status = opened->verified == NULL ? WAL_ENOMEM : verify_page(opened, 0);
    }
    if (status != WAL_OK) {
        wal__snapshot_release(opened);
        return status;
    }
    *snapshot = opened;
    return WAL_OK;
}

struct wal__snapshot *wal__snapshot_retain(struct wal__snapshot *snapshot)
{
    if (snapshot != NULL) {
        atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
    }
    return snapshot;
}

void wal__snapshot_release(struct wal__snapshot *snapshot)
{
    uint32_t before;

    if (snapshot == NULL) {
        return;
    }
    /* What other holders read happens before the bytes are unmapped. */
    before = atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel);
    WAL__ASSERT(before > 0);
    if (before > 1) {
        return;
    }
    if (snapshot->unmap != NULL) {
        snapshot->unmap(snapshot->owner);
    }
    wal__heap_free(snapshot->heap, snapshot->verified);
    wal__heap_free(snapshot->heap, snapshot);
}

uint32_t wal__snapshot_count(const struct wal__snapshot *snapshot)
{
    return snapshot != NULL ? snapshot->header.session_count : 0;
}

enum wal_status wal__snapshot_rank(const struct wal__snapshot *snapshot, uint64_t section,
                                   uint32_t item, uint32_t *rank)
{
    WAL__ASSERT(item < snapshot->header.session_count);

    uint64_t offset = section + (uint64_t)item * sizeof(uint32_t);
    enum wal_status status = verify(snapshot, offset, sizeof(uint32_t));

    if (status != WAL_OK) {
        return status;
    }

    uint32_t read = wal__get32(snapshot->bytes.data + offset);

    if (read >= snapshot->header.session_count) {
        return WAL_ECORRUPT;
    }
    *rank = read;
    return WAL_OK;
}

/* The address of an item's summary, for a prefetch: the rank is not verified, since a wrong address
 * costs only time. Null if out of bounds. */
static const uint8_t *row_hint(const struct wal__snapshot *snapshot, uint64_t section,
                               uint64_t item)
{
    uint64_t rank;

    if (item >= snapshot->header.session_count) {
        return NULL;
    }
    rank = wal__get32(snapshot->bytes.data + section + item * sizeof(uint32_t));
    return rank < snapshot->header.session_count
               ? snapshot->bytes.data + snapshot->layout.summaries + rank * WAL__SUMMARY_SIZE
               : NULL;
}

void wal__snapshot_prefetch(const struct wal__snapshot *snapshot, uint64_t section, uint64_t item)
{
    const uint8_t *far = row_hint(snapshot, section, item + PREFETCH_SUMMARY_DISTANCE);
    const uint8_t *near = row_hint(snapshot, section, item + PREFETCH_TEXT_DISTANCE);

    for (size_t at = 0; far != NULL && at < WAL__SUMMARY_SIZE; at += CACHE_LINE) {
        __builtin_prefetch(far + at);
    }
    if (near != NULL) {
        uint64_t offset = wal__summary_text_offset(near);
        uint64_t end = offset + PREFETCH_TEXT_SIZE;

        for (; offset < end && offset < snapshot->header.text_size; offset += CACHE_LINE) {
            __builtin_prefetch(snapshot->bytes.data + snapshot->layout.texts + offset);
        }
    }
}

/* The encoded summary of a rank; its texts are not verified. */
static enum wal_status find_row(const struct wal__snapshot *snapshot, uint32_t rank,
                                const uint8_t **at)
{
    WAL__ASSERT(rank < snapshot->header.session_count);

    uint64_t offset = snapshot->layout.summaries + (uint64_t)rank * WAL__SUMMARY_SIZE;
    enum wal_status status = verify(snapshot, offset, WAL__SUMMARY_SIZE);

    if (status != WAL_OK) {
        return status;
    }
    *at = snapshot->bytes.data + offset;
    return WAL_OK;
}

enum wal_status wal__snapshot_row(const struct wal__snapshot *snapshot, uint32_t rank,
                                  struct wal__summary *summary)
{
    struct wal__span texts = {
        .data = snapshot->bytes.data + snapshot->layout.texts,
        .size = snapshot->header.text_size,
    };
    const uint8_t *at;
    enum wal_status status = find_row(snapshot, rank, &at);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__summary_decode(at, texts, summary) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    return verify(snapshot, (uint64_t)(summary->id.data - snapshot->bytes.data),
                  wal__summary_text_size(summary));
}

/* --- searching ---------------------------------------------------------- */

static enum wal_status snapshot_flags(const struct wal__snapshot *snapshot, uint32_t rank,
                                      uint32_t *number, uint32_t *flags)
{
    const uint8_t *at;
    enum wal_status status = find_row(snapshot, rank, &at);

    if (status == WAL_OK) {
        *number = wal__summary_number(at);
        *flags = wal__summary_flags(at);
    }
    return status;
}

/* Single fields of the summary of a rank. */
static enum wal_status snapshot_number(const struct wal__snapshot *snapshot, uint32_t rank,
                                       uint32_t *number)
{
    uint32_t flags;

    return snapshot_flags(snapshot, rank, number, &flags);
}

/* Where to look for a number first: numbers ascend with ranks, and few are missing. */
static uint32_t guess_rank(const struct wal__snapshot *snapshot, uint32_t number)
{
    uint64_t last = snapshot->header.last_session;

    return last == 0 ? 0
                     : (uint32_t)((uint64_t)(number - 1) * snapshot->header.session_count / last);
}

enum wal_status wal__snapshot_find_rank(const struct wal__snapshot *snapshot, uint32_t number,
                                        uint32_t *rank)
{
    uint32_t low = 0;
    uint32_t high = wal__snapshot_count(snapshot);
    uint32_t middle = high == 0 ? 0 : guess_rank(snapshot, number);

    if (high > 0 && number > snapshot->header.last_session && number != WAL__STORE_NUMBER) {
        return WAL_ENOTFOUND;
    }
    while (low < high) {
        uint32_t found;

        if (middle < low || middle >= high) {
            middle = low + (high - low) / 2;
        }

        enum wal_status status = snapshot_number(snapshot, middle, &found);

        if (status != WAL_OK) {
            return status;
        }
        if (found == number) {
            *rank = middle;
            return WAL_OK;
        }
        if (found < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
        middle = low + (high - low) / 2;
    }
    return WAL_ENOTFOUND;
}

enum wal_status wal__snapshot_get(const struct wal__snapshot *snapshot, uint32_t number,
                                  struct wal__summary *summary)
{
    uint32_t rank;
    enum wal_status status = wal__snapshot_find_rank(snapshot, number, &rank);

    return status == WAL_OK ? wal__snapshot_row(snapshot, rank, summary) : status;
}

/* Whether the session with this rank is before a key in its section. */
typedef enum wal_status is_before(const struct wal__snapshot *snapshot, uint32_t rank,
                                  const struct wal__snapshot_key *key, bool *before);

static enum wal_status id_is_before(const struct wal__snapshot *snapshot, uint32_t rank,
                                    const struct wal__snapshot_key *key, bool *before)
{
    const uint8_t *at;
    enum wal_status status = find_row(snapshot, rank, &at);

    if (status != WAL_OK) {
        return status;
    }
    *before = wal__summary_id_hash(at) < key->hash;
    return WAL_OK;
}

static enum wal_status recent_is_before(const struct wal__snapshot *snapshot, uint32_t rank,
                                        const struct wal__snapshot_key *key, bool *before)
{
    struct wal__summary row;
    enum wal_status status = wal__snapshot_row(snapshot, rank, &row);

    if (status == WAL_OK) {
        struct wal__list_key row_key = wal__summary_list_key(&row);

        *before = !wal__list_key_is_after(&row_key, &key->after);
    }
    return status;
}

static enum wal_status cwd_is_before(const struct wal__snapshot *snapshot, uint32_t rank,
                                     const struct wal__snapshot_key *key, bool *before)
{
    struct wal__summary row;
    enum wal_status status = wal__snapshot_row(snapshot, rank, &row);

    if (status == WAL_OK) {
        uint64_t hash = wal__id_hash(row.cwd.data, row.cwd.size);
        struct wal__list_key row_key = wal__summary_list_key(&row);

        *before = hash < key->hash ||
                  (hash == key->hash && !wal__list_key_is_after(&row_key, &key->after));
    }
    return status;
}

/* The first item of a section that is not before the key. */
static enum wal_status lower_bound(const struct wal__snapshot *snapshot, uint64_t section,
                                   is_before *compare, const struct wal__snapshot_key *key,
                                   uint32_t *item)
{
    uint32_t low = 0;
    uint32_t high = wal__snapshot_count(snapshot);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t rank;
        bool before;
        enum wal_status status = wal__snapshot_rank(snapshot, section, middle, &rank);

        if (status == WAL_OK) {
            status = compare(snapshot, rank, key, &before);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    WAL__ASSERT(low <= wal__snapshot_count(snapshot));
    *item = low;
    return WAL_OK;
}

enum wal_status wal__snapshot_recent_begin(const struct wal__snapshot *snapshot,
                                           const struct wal__snapshot_key *key, uint32_t *item)
{
    return lower_bound(snapshot, snapshot->layout.by_recent, recent_is_before, key, item);
}

enum wal_status wal__snapshot_cwd_begin(const struct wal__snapshot *snapshot,
                                        const struct wal__snapshot_key *key, uint32_t *item)
{
    return lower_bound(snapshot, snapshot->layout.by_cwd, cwd_is_before, key, item);
}

static bool is_visible_match(const struct wal__catalogue *catalogue, const struct wal__summary *row,
                             struct wal__span id)
{
    uint32_t slot;

    return wal__span_equal(row->id, id) && !wal__summary_is_hidden(row) &&
           !wal__overlay_find(catalogue->overlay, row->number, &slot) &&
           !wal__overlay_find(catalogue->frozen, row->number, &slot);
}

enum wal_status wal__snapshot_find(const struct wal__catalogue *catalogue, struct wal__span id,
                                   struct wal__summary *summary)
{
    const struct wal__snapshot *snapshot = catalogue->snapshot;
    struct wal__snapshot_key key = {.hash = wal__id_hash(id.data, id.size)};
    enum wal_status status;
    uint32_t item;

    if (snapshot == NULL) {
        return WAL_ENOTFOUND;
    }
    status = lower_bound(snapshot, snapshot->layout.by_id, id_is_before, &key, &item);
    if (status != WAL_OK) {
        return status;
    }
    for (; item < wal__snapshot_count(snapshot); item++) {
        struct wal__summary row;
        uint32_t rank;

        status = wal__snapshot_rank(snapshot, snapshot->layout.by_id, item, &rank);
        if (status == WAL_OK) {
            status = wal__snapshot_row(snapshot, rank, &row);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (row.id_hash != key.hash) {
            break;
        }
        if (is_visible_match(catalogue, &row, id)) {
            *summary = row;
            return WAL_OK;
        }
    }
    return WAL_ENOTFOUND;
}

/* --- the next snapshot's sessions --------------------------------------- */

enum merge_order { MERGE_BY_ID, MERGE_BY_RECENT, MERGE_BY_CWD, MERGE_ORDERS };

struct merge_slot {
    const struct wal__overlay *layer;
    uint32_t slot;
    uint32_t rank; /* in the next snapshot */
};

struct merge {
    const struct wal__catalogue *catalogue;
    uint32_t count;        /* sessions of the next snapshot */
    uint32_t hidden_count; /* of these */
    uint32_t *sources;     /* of each rank: of a slot or of the snapshot */
    uint32_t *new_ranks;   /* of each rank of the snapshot */
    /* The newest slot of each changed session, ascending by number. */
    struct merge_slot *slots;
    uint32_t slot_count;
    uint32_t *recent; /* those of the next snapshot, newest first */
    uint32_t recent_count;
    struct wal__heapsort_item *items; /* for sorting */
};

/* Set in a source that is an item of `slots`, not a rank of the snapshot. */
#define IS_SLOT (UINT32_C(1) << 31)
/* Of a rank of the snapshot that is not in the next one. */
#define NO_RANK UINT32_MAX

static enum wal_status read_source(const struct merge *merge, uint32_t source,
                                   struct wal__summary *summary)
{
    if ((source & IS_SLOT) != 0) {
        const struct merge_slot *slot = &merge->slots[source & ~IS_SLOT];

        wal__overlay_get(slot->layer, slot->slot, summary);
        return WAL_OK;
    }
    return wal__snapshot_row(merge->catalogue->snapshot, source, summary);
}

/* The summary of a rank below `count`. */
static enum wal_status merge_read(const struct merge *merge, uint32_t rank,
                                  struct wal__summary *summary)
{
    WAL__ASSERT(rank < merge->count);
    return read_source(merge, merge->sources[rank], summary);
}

/* --- merging ------------------------------------------------------------ */

/* Collects the slots of a layer that `newer` does not hide. */
static void add_slots(struct merge *merge, const struct wal__overlay *layer,
                      const struct wal__overlay *newer)
{
    for (uint32_t i = 0; layer != NULL && i < layer->count; i++) {
        uint32_t number = wal__summary_number(layer->slots[i]->summary);
        uint32_t slot;

        if (!wal__overlay_find(newer, number, &slot)) {
            merge->slots[merge->slot_count++] = (struct merge_slot){.layer = layer, .slot = i};
        }
    }
}

static uint32_t slot_number(const struct merge *merge, uint32_t item)
{
    const struct merge_slot *slot = &merge->slots[item];

    return wal__summary_number(slot->layer->slots[slot->slot]->summary);
}

/* Sorts the slots by number. */
static enum wal_status sort_slots(struct merge *merge)
{
    const struct wal__heap *heap = merge->catalogue->heap;
    struct merge_slot *sorted = wal__heap_resize(heap, NULL, merge->slot_count, sizeof(*sorted));

    if (sorted == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        merge->items[i] = (struct wal__heapsort_item){.key = slot_number(merge, i), .value = i};
    }
    wal__heapsort_sort(merge->items, merge->slot_count);
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        sorted[i] = merge->slots[merge->items[i].value];
    }
    wal__heap_free(heap, merge->slots);
    merge->slots = sorted;
    return WAL_OK;
}

/* Merges the rows of the snapshot and the slots, ascending by number. */
static enum wal_status merge_sources(struct merge *merge)
{
    const struct wal__snapshot *snapshot = merge->catalogue->snapshot;
    uint32_t rows = wal__snapshot_count(snapshot);
    uint32_t last = 0;
    uint32_t item = 0;

    for (uint32_t i = 0; i < rows; i++) {
        uint32_t number;
        enum wal_status status = snapshot_number(snapshot, i, &number);

        if (status != WAL_OK) {
            return status;
        }
        if (number <= last) {
            return WAL_ECORRUPT;
        }
        last = number;
        while (item < merge->slot_count && slot_number(merge, item) < number) {
            merge->sources[merge->count++] = item++ | IS_SLOT;
        }
        if (item == merge->slot_count || slot_number(merge, item) != number) {
            merge->sources[merge->count++] = i;
        }
    }
    while (item < merge->slot_count) {
        merge->sources[merge->count++] = item++ | IS_SLOT;
    }
    return WAL_OK;
}

/* --- omitting ----------------------------------------------------------- */

/* Deleted sessions that others refer to, and how they are found. */
struct references {
    struct wal__bitset numbers;
    bool changed;
};

static enum wal_status add_reference(struct references *references, const struct wal__summary *from,
                                     uint32_t to)
{
    enum wal_status status;

    if (to == 0 || to == from->number || wal__bitset_contains(&references->numbers, to)) {
        return WAL_OK;
    }
    status = wal__bitset_reserve(&references->numbers, to);
    if (status == WAL_OK) {
        wal__bitset_set(&references->numbers, to);
        /* One that was passed already is looked at in the next pass. A session refers to older
         * ones, so that there is seldom another. */
        references->changed = references->changed || to > from->number;
    }
    return status;
}

static bool is_kept(const struct references *references, const struct wal__summary *summary)
{
    return (summary->flags & WAL__SUMMARY_DELETED) == 0 ||
           wal__bitset_contains(&references->numbers, summary->number);
}

/* Collects what the kept sessions refer to: the sessions whose entries, first message and documents
 * they share. */
static enum wal_status find_references(const struct merge *merge, struct references *references)
{
    enum wal_status status = WAL_OK;

    references->changed = false;
    for (uint32_t rank = merge->count; rank > 0 && status == WAL_OK; rank--) {
        struct wal__summary summary;

        status = merge_read(merge, rank - 1, &summary);
        if (status != WAL_OK || !is_kept(references, &summary)) {
            continue;
        }
        status = add_reference(references, &summary, summary.fork_owner);
        if (status == WAL_OK) {
            status = add_reference(references, &summary, summary.fork_source);
        }
        if (status == WAL_OK) {
            status = add_reference(references, &summary, summary.first_owner);
        }
    }
    return status;
}

static enum wal_status count_hidden(struct merge *merge, bool *has_deleted)
{
    for (uint32_t rank = 0; rank < merge->count; rank++) {
        uint32_t source = merge->sources[rank];
        uint32_t number;
        uint32_t flags;
        enum wal_status status = WAL_OK;

        if ((source & IS_SLOT) != 0) {
            const struct merge_slot *slot = &merge->slots[source & ~IS_SLOT];
            const uint8_t *at = slot->layer->slots[slot->slot]->summary;

            number = wal__summary_number(at);
            flags = wal__summary_flags(at);
        } else {
            status = snapshot_flags(merge->catalogue->snapshot, source, &number, &flags);
        }
        if (status != WAL_OK) {
            return status;
        }
        *has_deleted = *has_deleted || (flags & WAL__SUMMARY_DELETED) != 0;
        merge->hidden_count += (flags & WAL__SUMMARY_DELETED) != 0 || number == WAL__STORE_NUMBER;
    }
    return WAL_OK;
}

/* Removes the sessions that are not kept from the sources. */
static enum wal_status omit(struct merge *merge, const struct references *references)
{
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < merge->count; rank++) {
        struct wal__summary summary;
        enum wal_status status = merge_read(merge, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }
        if (is_kept(references, &summary)) {
            merge->sources[count++] = merge->sources[rank];
        } else {
            merge->hidden_count--;
        }
    }
    merge->count = count;
    return WAL_OK;
}

static enum wal_status omit_deleted(struct merge *merge)
{
    struct references references = {.changed = true};
    bool has_deleted = false;
    enum wal_status status = count_hidden(merge, &has_deleted);

    if (status != WAL_OK || !has_deleted) {
        return status;
    }
    wal__bitset_init(&references.numbers, merge->catalogue->heap);
    while (status == WAL_OK && references.changed) {
        status = find_references(merge, &references);
    }
    if (status == WAL_OK) {
        status = omit(merge, &references);
    }
    wal__bitset_deinit(&references.numbers);
    return status;
}

static void set_ranks(struct merge *merge)
{
    uint32_t rows = wal__snapshot_count(merge->catalogue->snapshot);

    for (uint32_t i = 0; i < rows; i++) {
        merge->new_ranks[i] = NO_RANK;
    }
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        merge->slots[i].rank = NO_RANK;
    }
    for (uint32_t rank = 0; rank < merge->count; rank++) {
        uint32_t source = merge->sources[rank];

        if ((source & IS_SLOT) != 0) {
            merge->slots[source & ~IS_SLOT].rank = rank;
        } else {
            merge->new_ranks[source] = rank;
        }
    }
}

/* --- keys --------------------------------------------------------------- */

/* What a session is ordered by: ascending. */
struct order_key {
    uint64_t hash;               /* of id or cwd; 0 in by_recent */
    struct wal__list_key recent; /* zero in by_id */
    uint32_t number;
};

static void set_order_key(enum merge_order order, const struct wal__summary *summary,
                          struct order_key *key)
{
    *key = (struct order_key){.number = summary->number};
    if (order == MERGE_BY_ID) {
        key->hash = summary->id_hash;
        return;
    }
    key->recent = wal__summary_list_key(summary);
    if (order == MERGE_BY_CWD) {
        key->hash = wal__id_hash(summary->cwd.data, summary->cwd.size);
    }
}

static bool is_order_before(const struct order_key *a, const struct order_key *b)
{
    if (a->hash != b->hash) {
        return a->hash < b->hash;
    }
    if (a->recent.updated_ms != b->recent.updated_ms) {
        return a->recent.updated_ms > b->recent.updated_ms;
    }
    if (a->recent.sequence != b->recent.sequence) {
        return a->recent.sequence > b->recent.sequence;
    }
    return a->number < b->number;
}

static void get_slot_key(const struct merge *merge, enum merge_order order, uint32_t slot,
                         struct order_key *key)
{
    const struct merge_slot *at = &merge->slots[slot];
    struct wal__summary summary;

    wal__overlay_get(at->layer, at->slot, &summary);
    set_order_key(order, &summary, key);
}

/* Collects the slots of the next snapshot in `recent`, newest first. */
static void sort_recent(struct merge *merge)
{
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        struct order_key key;
        struct wal__heapsort_item *item = &merge->items[merge->recent_count];

        if (merge->slots[i].rank == NO_RANK) {
            continue;
        }
        get_slot_key(merge, MERGE_BY_RECENT, i, &key);
        *item = wal__list_key_to_item(&key.recent);
        item->key = ~item->key;
        item->tie = ~item->tie;
        item->value = i;
        merge->recent_count++;
    }
    wal__heapsort_sort(merge->items, merge->recent_count);
    for (uint32_t i = 0; i < merge->recent_count; i++) {
        merge->recent[i] = merge->items[i].value;
    }
}

static enum wal_status allocate(struct merge *merge, uint32_t slots, uint32_t rows)
{
    const struct wal__heap *heap = merge->catalogue->heap;

    if (slots >= IS_SLOT || rows >= IS_SLOT - slots) {
        return WAL_ETOOBIG;
    }
    merge->slots = wal__heap_resize(heap, NULL, slots, sizeof(*merge->slots));
    merge->items = wal__heap_resize(heap, NULL, slots, sizeof(*merge->items));
    merge->recent = wal__heap_resize(heap, NULL, slots, sizeof(*merge->recent));
    merge->new_ranks = wal__heap_resize(heap, NULL, rows, sizeof(*merge->new_ranks));
    merge->sources = wal__heap_resize(heap, NULL, (size_t)rows + slots, sizeof(uint32_t));
    return merge->slots == NULL || merge->items == NULL || merge->recent == NULL ||
                   merge->new_ranks == NULL || merge->sources == NULL
               ? WAL_ENOMEM
               : WAL_OK;
}

/* WAL_ENOMEM; WAL_ECORRUPT when the snapshot is damaged. *merge can be deinitialised after a
 * failure. */
static enum wal_status merge_init(struct merge *merge, const struct wal__catalogue *catalogue)
{
    enum wal_status status;

    *merge = (struct merge){.catalogue = catalogue};
    status = allocate(merge, wal__catalogue_overlay_count(catalogue),
                      wal__snapshot_count(catalogue->snapshot));
    if (status != WAL_OK) {
        return status;
    }
    add_slots(merge, catalogue->overlay, NULL);
    add_slots(merge, catalogue->frozen, catalogue->overlay);
    status = sort_slots(merge);
    if (status == WAL_OK) {
        status = merge_sources(merge);
    }
    if (status == WAL_OK) {
        status = omit_deleted(merge);
    }
    if (status == WAL_OK) {
        set_ranks(merge);
        sort_recent(merge);
    }
    return status;
}

static void merge_deinit(struct merge *merge)
{
    const struct wal__heap *heap = merge->catalogue->heap;

    wal__heap_free(heap, merge->sources);
    wal__heap_free(heap, merge->new_ranks);
    wal__heap_free(heap, merge->slots);
    wal__heap_free(heap, merge->items);
    wal__heap_free(heap, merge->recent);
}

/* --- orders ------------------------------------------------------------- */

/* Sorts positions in `recent`, by a hash: equal cwds stay ordered by recency, and equal ids get
 * ordered by number below. */
static void sort_slots_by(const struct merge *merge, enum merge_order order)
{
    for (uint32_t i = 0; i < merge->recent_count; i++) {
        struct order_key key;

        get_slot_key(merge, order, merge->recent[i], &key);
        merge->items[i] = (struct wal__heapsort_item){
            .key = key.hash, .tie = order == MERGE_BY_ID ? key.number : 0, .value = i};
    }
    if (order != MERGE_BY_RECENT) {
        wal__heapsort_sort(merge->items, merge->recent_count);
    }
}

static uint64_t order_section(const struct wal__snapshot *snapshot, enum merge_order order)
{
    const struct wal__catalogue_layout *layout = &snapshot->layout;

    return order == MERGE_BY_ID       ? layout->by_id
           : order == MERGE_BY_RECENT ? layout->by_recent
                                      : layout->by_cwd;
}

/* Whether an item of the old order is before a key. */
static enum wal_status is_item_before(const struct merge *merge, enum merge_order order,
                                      uint32_t item, const struct order_key *key, bool *before)
{
    const struct wal__snapshot *snapshot = merge->catalogue->snapshot;
    struct wal__summary row;
    struct order_key row_key;
    uint32_t rank;
    enum wal_status status =
        wal__snapshot_rank(snapshot, order_section(snapshot, order), item, &rank);

    if (status == WAL_OK) {
        status = wal__snapshot_row(snapshot, rank, &row);
    }
    if (status == WAL_OK) {
        set_order_key(order, &row, &row_key);
        *before = is_order_before(&row_key, key);
    }
    return status;
}

/* Advances *item to the first one of the old order that is not before the key: in growing steps,
 * then by binary search in the last step. */
static enum wal_status seek(const struct merge *merge, enum merge_order order,
                            const struct order_key *key, uint32_t *item)
{
    uint32_t rows = wal__snapshot_count(merge->catalogue->snapshot);
    uint32_t low = *item;
    uint32_t high = rows;
    uint32_t step = 1;
    enum wal_status status = WAL_OK;

    while (low < high && status == WAL_OK) {
        uint32_t probe =
            high == rows && step <= rows - low ? low + step - 1 : low + (high - low) / 2;
        bool before = false;

        status = is_item_before(merge, order, probe, key, &before);
        if (before) {
            low = probe + 1;
        } else {
            high = probe;
        }
        step *= 2;
    }
    *item = low;
    return status;
}

typedef enum wal_status merge_visitor(void *ctx, uint32_t rank);

/* A visit of an order: `count` ranks are to come. */
struct visit {
    const struct merge *merge;
    enum merge_order order;
    merge_visitor *visitor;
    void *ctx;
    uint32_t count;
};

/* WAL_ECORRUPT when the old order has more ranks than the snapshot. */
static enum wal_status visit_rank(struct visit *visit, uint32_t rank)
{
    if (visit->count == 0) {
        return WAL_ECORRUPT;
    }
    visit->count--;
    return visit->visitor(visit->ctx, rank);
}

/* Visits the items of the old order that are in the next snapshot. */
static enum wal_status visit_rows(struct visit *visit, uint32_t from, uint32_t to)
{
    const struct merge *merge = visit->merge;
    const struct wal__snapshot *snapshot = merge->catalogue->snapshot;
    enum wal_status status = WAL_OK;

    for (uint32_t i = from; i < to && status == WAL_OK; i++) {
        uint32_t rank;

        status = wal__snapshot_rank(snapshot, order_section(snapshot, visit->order), i, &rank);
        if (status == WAL_OK && merge->new_ranks[rank] != NO_RANK) {
            status = visit_rank(visit, merge->new_ranks[rank]);
        }
    }
    return status;
}

/* Calls `visit` with each rank, in an order; stops at its first failure. */
static enum wal_status merge_visit_order(const struct merge *merge, enum merge_order order,
                                         merge_visitor *visit, void *ctx)
{
    struct visit rest = {merge, order, visit, ctx, merge->count};
    uint32_t rows = wal__snapshot_count(merge->catalogue->snapshot);
    uint32_t from = 0;
    enum wal_status status = WAL_OK;

    sort_slots_by(merge, order);
    for (uint32_t i = 0; i < merge->recent_count && status == WAL_OK; i++) {
        uint32_t slot = merge->recent[merge->items[i].value];
        struct order_key key;
        uint32_t to = from;

        get_slot_key(merge, order, slot, &key);
        status = seek(merge, order, &key, &to);
        if (status == WAL_OK) {
            status = visit_rows(&rest, from, to);
        }
        if (status == WAL_OK) {
            status = visit_rank(&rest, merge->slots[slot].rank);
        }
        from = to;
    }
    if (status == WAL_OK) {
        status = visit_rows(&rest, from, rows);
    }
    return status == WAL_OK && rest.count > 0 ? WAL_ECORRUPT : status;
}

/* --- writing ------------------------------------------------------------ */

struct writer {
    const struct merge *merge;
    struct wal__catalogue_header header;
    struct wal__buf table; /* the page table */
    uint8_t *chunk;        /* CHUNK bytes; not flushed yet */
    size_t chunk_size;
    uint64_t flushed; /* offset of the chunk in the file */
    wal__write_callback *write;
    void *ctx;
};

/* Appends the checksums of the chunk's pages to the table. Page 0 excludes the header. */
static enum wal_status checksum_pages(struct writer *writer)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(writer->flushed % PAGE == 0 && writer->chunk_size % PAGE == 0);
    for (size_t at = 0; at < writer->chunk_size && status == WAL_OK; at += PAGE) {
        size_t skip = writer->flushed + at == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;
        uint8_t crc[sizeof(uint32_t)];

        wal__put32(crc, wal__crc32(0, writer->chunk + at + skip, PAGE - skip));
        status = wal__buf_append(&writer->table, crc, sizeof(crc));
    }
    return status;
}

static enum wal_status flush(struct writer *writer, bool is_table)
{
    enum wal_status status = is_table ? WAL_OK : checksum_pages(writer);

    WAL__ASSERT(writer->chunk_size <= CHUNK);
    if (status == WAL_OK && writer->chunk_size > 0) {
        status = writer->write(writer->ctx, writer->flushed, writer->chunk, writer->chunk_size);
    }
    writer->flushed += writer->chunk_size;
    writer->chunk_size = 0;
    return status;
}

static enum wal_status append(struct writer *writer, const void *data, size_t size)
{
    const uint8_t *from = data;
    enum wal_status status = WAL_OK;

    while (size > 0 && status == WAL_OK) {
        size_t part = CHUNK - writer->chunk_size;

        WAL__ASSERT(writer->chunk_size < CHUNK);
        if (part > size) {
            part = size;
        }
        memcpy(writer->chunk + writer->chunk_size, from, part);
        writer->chunk_size += part;
        from += part;
        size -= part;
        if (writer->chunk_size == CHUNK) {
            status = flush(writer, false);
        }
    }
    return status;
}

/* Appends zeros up to the next page, where the next section starts. */
static enum wal_status pad(struct writer *writer)
{
    static const uint8_t zeros[PAGE];
    size_t used = writer->chunk_size % PAGE;

    return used == 0 ? WAL_OK : append(writer, zeros, PAGE - used);
}

static enum wal_status append_summaries(struct writer *writer)
{
    uint8_t encoded[WAL__SUMMARY_SIZE];
    uint8_t texts[WAL__SUMMARY_TEXT_MAX];
    uint64_t *text_size = &writer->header.text_size;

    for (uint32_t rank = 0; rank < writer->merge->count; rank++) {
        struct wal__summary summary;
        enum wal_status status = merge_read(writer->merge, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }
        if (*text_size + wal__summary_text_size(&summary) > UINT32_MAX) {
            return WAL_ETOOBIG;
        }
        wal__summary_encode(&summary, (uint32_t)*text_size, encoded, texts);
        status = append(writer, encoded, sizeof(encoded));
        if (status != WAL_OK) {
            return status;
        }
        *text_size += wal__summary_text_size(&summary);
    }
    return pad(writer);
}

static enum wal_status append_texts(struct writer *writer)
{
    uint8_t encoded[WAL__SUMMARY_SIZE];
    uint8_t texts[WAL__SUMMARY_TEXT_MAX];

    for (uint32_t rank = 0; rank < writer->merge->count; rank++) {
        struct wal__summary summary;
        enum wal_status status = merge_read(writer->merge, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }
        wal__summary_encode(&summary, 0, encoded, texts);
        status = append(writer, texts, wal__summary_text_size(&summary));
        if (status != WAL_OK) {
            return status;
        }
    }
    return pad(writer);
}

static enum wal_status append_rank(void *ctx, uint32_t rank)
{
    struct writer *writer = ctx;
    uint8_t bytes[sizeof(rank)];

    WAL__ASSERT(rank < writer->merge->count);
    wal__put32(bytes, rank);
    return append(writer, bytes, sizeof(bytes));
}

/* Appends all sections; page 0 without the header. */
static enum wal_status append_pages(struct writer *writer)
{
    static const uint8_t zeros[PAGE];
    enum wal_status status = append(writer, zeros, PAGE);

    if (status == WAL_OK) {
        status = append_summaries(writer);
    }
    for (int order = 0; order < MERGE_ORDERS && status == WAL_OK; order++) {
        status = merge_visit_order(writer->merge, (enum merge_order)order, append_rank, writer);
        if (status == WAL_OK) {
            status = pad(writer);
        }
    }
    return status == WAL_OK ? append_texts(writer) : status;
}

/* Appends the page table, in pieces as all else. */
static enum wal_status append_table(struct writer *writer)
{
    const struct wal__buf *table = &writer->table;
    enum wal_status status;
    size_t at = 0;

    /* Its checksum is the header's: it has no page checksums. */
    status = checksum_pages(writer);
    writer->header.table_crc = wal__crc32(0, table->data, table->size);
    while (status == WAL_OK && at < table->size) {
        size_t part = CHUNK - writer->chunk_size;

        part = part < table->size - at ? part : table->size - at;
        memcpy(writer->chunk + writer->chunk_size, table->data + at, part);
        writer->chunk_size += part;
        at += part;
        if (writer->chunk_size == CHUNK) {
            status = flush(writer, true);
        }
    }
    return status == WAL_OK ? flush(writer, true) : status;
}

static enum wal_status write_all(struct writer *writer)
{
    uint8_t header[WAL__CATALOGUE_HEADER_SIZE];
    struct wal__catalogue_layout layout;
    enum wal_status status = append_pages(writer);

    if (status == WAL_OK) {
        status = append_table(writer);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__catalogue_layout(&writer->header, &layout) != WAL__FMT_OK) {
        return WAL_ETOOBIG;
    }
    WAL__ASSERT(writer->flushed == layout.size);
    wal__catalogue_header_encode(&writer->header, header);
    return writer->write(writer->ctx, 0, header, sizeof(header));
}

enum wal_status wal__catalogue_write(const struct wal__catalogue *catalogue,
                                     const struct wal__catalogue_header *header,
                                     wal__write_callback *write, void *ctx)
{
    struct merge merge;
    struct writer writer = {.merge = &merge, .header = *header, .write = write, .ctx = ctx};
    enum wal_status status = merge_init(&merge, catalogue);

    wal__buf_init(&writer.table, catalogue->heap);
    if (status == WAL_OK) {
        writer.chunk = wal__heap_alloc(catalogue->heap, CHUNK);
        status = writer.chunk == NULL ? WAL_ENOMEM : WAL_OK;
    }
    if (status == WAL_OK) {
        writer.header.session_count = merge.count;
        writer.header.hidden_count = merge.hidden_count;
        writer.header.last_session = catalogue->last_session;
        writer.header.text_size = 0;
        writer.header.table_crc = 0;
        status = write_all(&writer);
    }
    wal__heap_free(catalogue->heap, writer.chunk);
    wal__buf_deinit(&writer.table);
    merge_deinit(&merge);
    return status;
}
