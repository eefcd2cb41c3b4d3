/*
 * catalogue_snapshot.c - reads the mapped snapshot of the catalogue
 * (catalogue_internal.h, SPEC.md 2.13).
 *
 * Invariant: no result comes from a page whose checksum was not verified; the
 * table of checksums was verified when the snapshot was opened. The caller's
 * lock: any readers; several may verify the same page concurrently.
 */
#include <stdatomic.h>
#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "engine/index/catalogue_overlay.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    PAGE = WAL__CATALOGUE_PAGE,
    CACHE_LINE = 64,
    BITS = 8,
    /* How many items ahead summaries and texts are prefetched. */
    PREFETCH_SUMMARY_DISTANCE = 16,
    PREFETCH_TEXT_DISTANCE = 8
};

/* ------------------------------------------------------------ verifying --- */

/* The checksum of page 0 excludes the header, which has a separate one. */
static bool is_page_valid(const struct wal__snapshot *snapshot, uint64_t page)
{
    const uint8_t *table = snapshot->bytes.data + snapshot->layout.table;
    size_t skip = page == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;

    return wal__crc32(0, snapshot->bytes.data + page * PAGE + skip,
                      PAGE - skip) ==
           wal__get32(table + page * sizeof(uint32_t));
}

/* Relaxed order is enough: the bit publishes no data, since nobody writes the
 * bytes that it describes. */
static enum wal_status verify_page(const struct wal__snapshot *snapshot,
                                   uint64_t page)
{
    uint8_t *byte = &snapshot->verified[page / BITS];
    uint8_t bit = (uint8_t)(1u << page % BITS);

    if ((__atomic_load_n(byte, __ATOMIC_RELAXED) & bit) != 0) {
        return WAL_OK;
    }
    if (!is_page_valid(snapshot, page)) {
        return WAL_ECORRUPT;
    }
    (void)__atomic_fetch_or(byte, bit, __ATOMIC_RELAXED);
    return WAL_OK;
}

/* Verifies the pages of a range, which is not empty and before the table. */
static enum wal_status verify(const struct wal__snapshot *snapshot,
                              uint64_t offset, uint64_t size)
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

/* -------------------------------------------------------------- opening --- */

static enum wal_status check_header(struct wal__span bytes,
                                    const uint8_t uuid[16],
                                    struct wal__catalogue_header *header,
                                    struct wal__catalogue_layout *layout)
{
    if (wal__catalogue_header_decode(bytes, header) != WAL__FMT_OK ||
        memcmp(header->uuid, uuid, sizeof(header->uuid)) != 0 ||
        wal__catalogue_layout(header, layout) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    /* Numbers are assigned once, from 1; the store's summary adds one. */
    if (layout->size != bytes.size ||
        header->session_count > (uint64_t)header->last_session + 1 ||
        header->hidden_count > header->session_count) {
        return WAL_ECORRUPT;
    }
    if (wal__crc32(0, bytes.data + layout->table,
                   layout->size - layout->table) != header->table_crc) {
        return WAL_ECORRUPT;
    }
    return WAL_OK;
}

enum wal_status wal__snapshot_open(const struct wal__heap *heap,
                                   struct wal__span bytes,
                                   const uint8_t uuid[16],
                                   struct wal__snapshot **snapshot)
{
    struct wal__snapshot *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return WAL_ENOMEM;
    }
    opened->heap = heap;
    opened->bytes = bytes;
    atomic_init(&opened->references, 1);
    status = check_header(bytes, uuid, &opened->header, &opened->layout);
    if (status == WAL_OK) {
        opened->verified =
            wal__heap_zalloc(heap, opened->layout.table / PAGE / BITS + 1);
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
        atomic_fetch_add_explicit(&snapshot->references, 1,
                                  memory_order_relaxed);
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
    before = atomic_fetch_sub_explicit(&snapshot->references, 1,
                                       memory_order_acq_rel);
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

/* -------------------------------------------------------------- reading --- */

uint32_t wal__snapshot_count(const struct wal__snapshot *snapshot)
{
    return snapshot != NULL ? snapshot->header.session_count : 0;
}

enum wal_status wal__snapshot_rank(const struct wal__snapshot *snapshot,
                                   uint64_t section, uint32_t item,
                                   uint32_t *rank)
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

/* The address of an item's summary, for a prefetch: the rank is not verified,
 * since a wrong address costs only time. Null if out of bounds. */
static const uint8_t *row_hint(const struct wal__snapshot *snapshot,
                               uint64_t section, uint64_t item)
{
    uint64_t rank;

    if (item >= snapshot->header.session_count) {
        return NULL;
    }
    rank = wal__get32(snapshot->bytes.data + section + item * sizeof(uint32_t));
    return rank < snapshot->header.session_count
               ? snapshot->bytes.data + snapshot->layout.summaries +
                     rank * WAL__SUMMARY_SIZE
               : NULL;
}

void wal__snapshot_prefetch(const struct wal__snapshot *snapshot,
                            uint64_t section, uint64_t item)
{
    const uint8_t *far =
        row_hint(snapshot, section, item + PREFETCH_SUMMARY_DISTANCE);
    const uint8_t *near =
        row_hint(snapshot, section, item + PREFETCH_TEXT_DISTANCE);

    for (size_t at = 0; far != NULL && at < WAL__SUMMARY_SIZE;
         at += CACHE_LINE) {
        __builtin_prefetch(far + at);
    }
    if (near != NULL) {
        uint64_t offset = wal__summary_text_offset(near);

        if (offset < snapshot->header.text_size) {
            __builtin_prefetch(snapshot->bytes.data + snapshot->layout.texts +
                               offset);
        }
    }
}

/* The encoded summary of a rank; its texts are not verified. */
static enum wal_status find_row(const struct wal__snapshot *snapshot,
                                uint32_t rank, const uint8_t **at)
{
    WAL__ASSERT(rank < snapshot->header.session_count);

    uint64_t offset =
        snapshot->layout.summaries + (uint64_t)rank * WAL__SUMMARY_SIZE;
    enum wal_status status = verify(snapshot, offset, WAL__SUMMARY_SIZE);

    if (status != WAL_OK) {
        return status;
    }
    *at = snapshot->bytes.data + offset;
    return WAL_OK;
}

enum wal_status wal__snapshot_row(const struct wal__snapshot *snapshot,
                                  uint32_t rank, struct wal__summary *summary)
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

/* ------------------------------------------------------------ searching --- */

enum wal_status wal__snapshot_flags(const struct wal__snapshot *snapshot,
                                    uint32_t rank, uint32_t *number,
                                    uint32_t *flags)
{
    const uint8_t *at;
    enum wal_status status = find_row(snapshot, rank, &at);

    if (status == WAL_OK) {
        *number = wal__summary_number(at);
        *flags = wal__summary_flags(at);
    }
    return status;
}

enum wal_status wal__snapshot_number(const struct wal__snapshot *snapshot,
                                     uint32_t rank, uint32_t *number)
{
    uint32_t flags;

    return wal__snapshot_flags(snapshot, rank, number, &flags);
}

/* Where to look for a number first: numbers ascend with ranks, and few are
 * missing. */
static uint32_t guess_rank(const struct wal__snapshot *snapshot,
                           uint32_t number)
{
    uint64_t last = snapshot->header.last_session;

    return last == 0 ? 0
                     : (uint32_t)((uint64_t)(number - 1) *
                                  snapshot->header.session_count / last);
}

enum wal_status wal__snapshot_find_rank(const struct wal__snapshot *snapshot,
                                        uint32_t number, uint32_t *rank)
{
    uint32_t low = 0;
    uint32_t high = wal__snapshot_count(snapshot);
    uint32_t middle = high == 0 ? 0 : guess_rank(snapshot, number);

    if (high > 0 && number > snapshot->header.last_session &&
        number != WAL__STORE_NUMBER) {
        return WAL_ENOTFOUND;
    }
    while (low < high) {
        uint32_t found;

        if (middle < low || middle >= high) {
            middle = low + (high - low) / 2;
        }

        enum wal_status status = wal__snapshot_number(snapshot, middle, &found);

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

enum wal_status wal__snapshot_get(const struct wal__snapshot *snapshot,
                                  uint32_t number, struct wal__summary *summary)
{
    uint32_t rank;
    enum wal_status status = wal__snapshot_find_rank(snapshot, number, &rank);

    return status == WAL_OK ? wal__snapshot_row(snapshot, rank, summary)
                            : status;
}

/* Whether the session with this rank is before a key in its section. */
typedef enum wal_status is_before(const struct wal__snapshot *snapshot,
                                  uint32_t rank,
                                  const struct wal__snapshot_key *key,
                                  bool *before);

static enum wal_status id_is_before(const struct wal__snapshot *snapshot,
                                    uint32_t rank,
                                    const struct wal__snapshot_key *key,
                                    bool *before)
{
    const uint8_t *at;
    enum wal_status status = find_row(snapshot, rank, &at);

    if (status != WAL_OK) {
        return status;
    }
    *before = wal__summary_id_hash(at) < key->hash;
    return WAL_OK;
}

static enum wal_status recent_is_before(const struct wal__snapshot *snapshot,
                                        uint32_t rank,
                                        const struct wal__snapshot_key *key,
                                        bool *before)
{
    struct wal__summary row;
    enum wal_status status = wal__snapshot_row(snapshot, rank, &row);

    if (status == WAL_OK) {
        struct wal__list_key row_key = wal__summary_list_key(&row);

        *before = !wal__list_key_is_after(&row_key, &key->after);
    }
    return status;
}

static enum wal_status cwd_is_before(const struct wal__snapshot *snapshot,
                                     uint32_t rank,
                                     const struct wal__snapshot_key *key,
                                     bool *before)
{
    struct wal__summary row;
    enum wal_status status = wal__snapshot_row(snapshot, rank, &row);

    if (status == WAL_OK) {
        uint64_t hash = wal__id_hash(row.cwd.data, row.cwd.size);
        struct wal__list_key row_key = wal__summary_list_key(&row);

        *before = hash < key->hash ||
                  (hash == key->hash &&
                   !wal__list_key_is_after(&row_key, &key->after));
    }
    return status;
}

/* The first item of a section that is not before the key. */
static enum wal_status lower_bound(const struct wal__snapshot *snapshot,
                                   uint64_t section, is_before *compare,
                                   const struct wal__snapshot_key *key,
                                   uint32_t *item)
{
    uint32_t low = 0;
    uint32_t high = wal__snapshot_count(snapshot);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t rank;
        bool before;
        enum wal_status status =
            wal__snapshot_rank(snapshot, section, middle, &rank);

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
                                           const struct wal__snapshot_key *key,
                                           uint32_t *item)
{
    return lower_bound(snapshot, snapshot->layout.by_recent, recent_is_before,
                       key, item);
}

enum wal_status wal__snapshot_cwd_begin(const struct wal__snapshot *snapshot,
                                        const struct wal__snapshot_key *key,
                                        uint32_t *item)
{
    return lower_bound(snapshot, snapshot->layout.by_cwd, cwd_is_before, key,
                       item);
}

static bool is_visible_match(const struct wal__catalogue *catalogue,
                             const struct wal__summary *row,
                             struct wal__span id)
{
    uint32_t slot;

    return wal__span_equal(row->id, id) && !wal__summary_is_hidden(row) &&
           !wal__overlay_find(catalogue->overlay, row->number, &slot) &&
           !wal__overlay_find(catalogue->frozen, row->number, &slot);
}

enum wal_status wal__snapshot_find(const struct wal__catalogue *catalogue,
                                   struct wal__span id,
                                   struct wal__summary *summary)
{
    const struct wal__snapshot *snapshot = catalogue->snapshot;
    struct wal__snapshot_key key = {.hash = wal__id_hash(id.data, id.size)};
    enum wal_status status;
    uint32_t item;

    if (snapshot == NULL) {
        return WAL_ENOTFOUND;
    }
    status = lower_bound(snapshot, snapshot->layout.by_id, id_is_before, &key,
                         &item);
    if (status != WAL_OK) {
        return status;
    }
    for (; item < wal__snapshot_count(snapshot); item++) {
        struct wal__summary row;
        uint32_t rank;

        status =
            wal__snapshot_rank(snapshot, snapshot->layout.by_id, item, &rank);
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
